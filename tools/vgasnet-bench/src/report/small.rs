//! Results of `small`.

use super::{Figures, MAPPED_MEMORY, SETTING_HEAD, Setting, Verdict, not_direct};
use crate::baseline::median;
use crate::options::Access;
use crate::plan::Job;
use crate::small::{Cell, Found, IN_FLIGHT, Place, Reference, ReferenceCell, SIZES_BYTES};
use crate::targets::judge_small;
use serde::Serialize;
use vgasnet_settings::format_size;
use vgasnet_storage::BLOCK_BYTES;

#[derive(Serialize)]
pub struct SmallFigures {
    pub rows: Vec<SmallRow>,
    pub references: Vec<ReferenceRow>,
    /// All ranks together, to one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adds_per_second: Option<f64>,
    /// One at a time, of 4 KiB.
    pub raw_read_us: Option<f64>,
    plain_is_direct: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mapped_not_run: Option<String>,
    /// Whether the targets apply to this page size. Otherwise it is the basis for comparison.
    #[serde(skip)]
    is_judged: bool,
}

/// One kind of access.
#[derive(Serialize)]
pub struct SmallRow {
    #[serde(flatten)]
    cell: Cell,
    /// The median of the rounds.
    pub us: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<Reference>,
    pub reference_us: Option<f64>,
    pub to_reference: Option<f64>,
    /// The time divided by the time with small pages, if both were measured.
    pub to_small_page: Option<f64>,
}

#[derive(Serialize)]
pub struct ReferenceRow {
    #[serde(flatten)]
    pub cell: ReferenceCell,
    pub us: f64,
}

impl SmallFigures {
    pub fn new(found: Found, small_pages: Option<&SmallFigures>, is_judged: bool) -> SmallFigures {
        let row = |cell: Cell| SmallRow::new(cell, &found.references, small_pages);
        let reference = |cell: &ReferenceCell| ReferenceRow { us: median(&cell.us_each), cell: cell.clone() };
        let references: Vec<ReferenceRow> = found.references.iter().map(reference).collect();
        let is_read = |row: &&ReferenceRow| {
            (row.cell.reference, row.cell.size_bytes, row.cell.in_flight) == (Reference::RawRead, BLOCK_BYTES, 1)
        };
        SmallFigures {
            rows: found.cells.into_iter().map(row).collect(),
            raw_read_us: references.iter().find(is_read).map(|row| row.us),
            references,
            adds_per_second: (!found.adds_per_second.is_empty()).then(|| median(&found.adds_per_second)),
            plain_is_direct: found.plain_is_direct,
            mapped_not_run: found.mapped_not_run,
            is_judged,
        }
    }

    pub fn row(&self, access: Access, place: Place, size_bytes: usize, in_flight: u32) -> Option<&SmallRow> {
        self.rows.iter().find(|row| row.is(access, place, in_flight) && row.cell.size_bytes == size_bytes)
    }

    /// The locations of an access and the numbers in flight, in the order of measurement.
    pub fn lines(&self, access: Access) -> Vec<(Place, u32)> {
        let first = |row: &&SmallRow| row.cell.access == access && row.cell.size_bytes == SIZES_BYTES[0];
        self.rows.iter().filter(first).map(|row| (row.cell.place, row.cell.in_flight)).collect()
    }
}

impl SmallRow {
    fn new(cell: Cell, references: &[ReferenceCell], small_pages: Option<&SmallFigures>) -> SmallRow {
        let us = median(&cell.us_each);
        let reference = references.iter().find(|reference| reference.is_of(&cell));
        let reference_us = reference.map(|reference| median(&reference.us_each));
        let small_page =
            small_pages.and_then(|figures| figures.row(cell.access, cell.place, cell.size_bytes, cell.in_flight));
        SmallRow {
            us,
            reference: reference.map(|reference| reference.reference),
            reference_us,
            to_reference: reference_us.map(|reference_us| us / reference_us),
            to_small_page: small_page.map(|row| us / row.us),
            cell,
        }
    }

    fn is(&self, access: Access, place: Place, in_flight: u32) -> bool {
        (self.cell.access, self.cell.place, self.cell.in_flight) == (access, place, in_flight)
    }
}

impl Figures for SmallFigures {
    fn judge(&self, _job: &Job) -> Option<Verdict> {
        Some(Verdict::new(if self.is_judged { judge_small(self) } else { Vec::new() }, true))
    }

    fn rows(&self, setting: &Setting) -> String {
        let mut text = format!("{SETTING_HEAD}\n{}\n", setting.columns());
        text += &format!("  {:<34}", "us an access, to its reference");
        text += &SIZES_BYTES.map(|size_bytes| format!(" {:>15}", format_size(size_bytes as u64))).concat();
        text += "\n";
        for access in Access::ALL {
            for (place, in_flight) in self.lines(access) {
                let side_by_side = if in_flight > 1 { format!(", {in_flight} at once") } else { String::new() };
                let place_name = place.name_of(!setting.peer_memory);
                text += &format!("  {:<34}", format!("{:<6} {place_name}{side_by_side}", access.name()));
                for row in self.rows.iter().filter(|row| row.is(access, place, in_flight)) {
                    let ratio = row.to_reference.map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}"));
                    text += &format!(" {:>8} {ratio:>6}", microseconds(row.us));
                }
                text += "\n";
            }
        }
        if let Some(rate) = self.adds_per_second {
            text += &format!("  additions of all ranks to one word: {:.2} million/s\n", rate / 1e6);
        }
        text + &self.reference_lines() + &not_direct(self.plain_is_direct, "  ", "I/O")
    }
}

impl SmallFigures {
    fn reference_lines(&self) -> String {
        let kinds = [
            (Reference::Copy, 1, "copy within memory"),
            (Reference::RawRead, 1, "raw read"),
            (Reference::RawRead, IN_FLIGHT, "raw read, 64 at once"),
            (Reference::RawWrite, 1, "raw write"),
            (Reference::RawWrite, IN_FLIGHT, "raw write, 64 at once"),
            (Reference::MappedLoad, 1, "load, mmap"),
            (Reference::MappedStore, 1, "store, mmap"),
        ];
        let mut text = "  references\n".to_owned();
        for (reference, in_flight, name) in kinds {
            let of_kind = |row: &&ReferenceRow| (row.cell.reference, row.cell.in_flight) == (reference, in_flight);
            let of_size = |size_bytes| {
                let row = self.references.iter().filter(of_kind).find(|row| row.cell.size_bytes == size_bytes);
                row.map_or_else(String::new, |row| microseconds(row.us))
            };
            if self.references.iter().any(|row| of_kind(&row)) {
                let columns = SIZES_BYTES.map(|size_bytes| format!(" {:>8}       ", of_size(size_bytes)));
                text += format!("  {name:<34}{}", columns.concat()).trim_end();
                text += "\n";
            }
        }
        let mapped = [Reference::MappedLoad, Reference::MappedStore];
        let is_mapped = self.references.iter().any(|row| mapped.contains(&row.cell.reference));
        text + &match &self.mapped_not_run {
            Some(why) => format!("  no mmap beside it: {why}\n"),
            None if is_mapped => format!("  {MAPPED_MEMORY}\n"),
            None => String::new(),
        }
    }
}

/// With about three digits.
fn microseconds(us: f64) -> String {
    match us {
        ..1.0 => format!("{us:.4}"),
        1.0..100.0 => format!("{us:.2}"),
        _ => format!("{us:.0}"),
    }
}
