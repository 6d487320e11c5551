//! The figures of small accesses, and their targets.

use super::reference::{Reference, ReferenceCell, References};
use super::{Access, Cell, IN_FLIGHT, SIZES_BYTES};
use crate::mapped::{MAPPED_MEMORY, NO_MAPPED_FILE};
use crate::prelude::*;
use vgasnet_storage::BLOCK_BYTES;

/// Sizes that are judged: one word, and one block of the disk.
const JUDGED_BYTES: [usize; 2] = [SIZES_BYTES[0], 4 << 10];

fn in_matrix(label: String, size_bytes: usize, in_flight: u32) -> Row {
    let label = if in_flight > 1 { format!("{label}, {in_flight} at once") } else { label };
    Row::cell(label, format_size(size_bytes as u64))
}

pub fn of(cells: &[Cell], references: &References, adds_per_second: &[f64], is_far: bool) -> Figures {
    let row = |cell: &Cell| {
        let reference = references.cells().find(|reference| reference.is_of(cell));
        in_matrix(format!("{} {}", name(cell.access), cell.place.words(is_far)), cell.size_bytes, cell.in_flight)
            .in_group(name(cell.access))
            .keep("access", cell.access)
            .keep("place", cell.place)
            .keep("size_bytes", cell.size_bytes)
            .keep("in_flight", cell.in_flight)
            .median("us", &cell.us_each)
            .keep("reference", reference.map(|reference| reference.reference))
            .keep("reference_us", reference.map(|reference| median(&reference.us_each)))
            .ratio("to_reference", "us", "reference_us")
    };
    let reference = |cell: &ReferenceCell| {
        in_matrix(words(cell.reference), cell.size_bytes, cell.in_flight)
            .keep("reference", cell.reference)
            .keep("size_bytes", cell.size_bytes)
            .keep("in_flight", cell.in_flight)
            .median("us", &cell.us_each)
    };
    let is_read = |row: &&Row| row.is("reference", "raw_read") && has(row, BLOCK_BYTES, 1);
    let references_rows: Vec<Row> = references.cells().map(reference).collect();
    let raw_read_us = references_rows.iter().find(is_read).map(|row| row.number("us"));
    let adds = (!adds_per_second.is_empty()).then(|| median(adds_per_second));
    let mut row = Row::default().rows("rows", cells.iter().map(row).collect()).rows("references", references_rows);
    if let Some(adds) = adds {
        row = row.show("adds_per_second", adds);
    }
    let figures = Figures::of(row.keep("raw_read_us", raw_read_us)).with_direct(references.is_direct());
    let is_mapped = |cell: &ReferenceCell| matches!(cell.reference, Reference::MappedLoad | Reference::MappedStore);
    match &references.mapped_not_run {
        Some(why) => figures.with("mapped_not_run", why).remark(format!("NOT RUN: {NO_MAPPED_FILE}: {why}")),
        None if references.cells().any(is_mapped) => figures.remark(MAPPED_MEMORY),
        None => figures,
    }
}

fn has(row: &Row, size_bytes: usize, in_flight: u32) -> bool {
    row.is("size_bytes", size_bytes) && row.is("in_flight", in_flight)
}

fn is_same(one: &Row, other: &Row) -> bool {
    let has_same = |name: &str| one.value(name) == other.value(name);
    ["access", "place", "size_bytes", "in_flight"].into_iter().all(has_same)
}

/// The targets, each at its worst size. A put reads the block, and writes it later. The page size should not matter, so
/// loads are compared with loads at small pages. Small pages are not judged if large ones follow.
pub fn judged(job: &Job, mut figures: Figures, small_pages: Option<&Row>, is_alone: bool) -> Figures {
    let rows = figures.row.list("rows").to_vec();
    let with_ratio = |row: &Row| {
        let small = small_pages.and_then(|small| small.list("rows").iter().find(|other| is_same(other, row)));
        row.clone().keep("to_small_page", small.map(|small| row.number("us") / small.number("us")))
    };
    let rows: Vec<Row> = rows.iter().map(with_ratio).collect();
    figures.row = figures.row.replaced("rows", rows.clone());
    if small_pages.is_none() && !is_alone {
        return figures;
    }
    let raw_read_us = figures.row.number("raw_read_us");
    let worst = |access: Access, place: &str, in_flight: u32, ratio: &dyn Fn(&Row) -> f64| {
        let is_it = |row: &&Row| row.is("access", name(access)) && row.is("place", place);
        let judged = rows.iter().filter(is_it).filter(|row| JUDGED_BYTES.iter().any(|size| has(row, *size, in_flight)));
        judged.map(ratio).filter(|ratio| !ratio.is_nan()).max_by(f64::total_cmp)
    };
    let names = [
        (Access::Get, "own_disk", 1.5, "get, own disk"),
        (Access::Get, "neighbour_disk", 1.5, "get, neighbour's disk"),
        (Access::Put, "own_disk", 2.0, "put, own disk"),
        (Access::Put, "neighbour_disk", 2.0, "put, neighbour's disk"),
    ];
    for (access, place, most, what) in names {
        let (target, meaning) = (format!("{}_{place}_to_raw_read", name(access)), format!("{what}, to a raw read"));
        figures = figures.target(
            &target,
            &meaning,
            worst(access, place, 1, &|row| row.number("us") / raw_read_us),
            AtMost,
            most,
        );
    }
    for (access, place, _, what) in names {
        let (target, meaning) =
            (format!("{}s_{place}_to_raw_rate", name(access)), format!("64 times {what}, to the raw rate"));
        let to_raw = worst(access, place, IN_FLIGHT, &|row| row.number("to_reference"));
        figures = figures.target(&target, &meaning, to_raw.map(|to_raw| 1.0 / to_raw), AtLeast, 0.7);
    }
    let loads = worst(Access::Load, "own_disk", 1, &|row| row.number("to_small_page"));
    let adds = Some(figures.row.number("adds_per_second") / 1e6).filter(|adds| !adds.is_nan() && job.ranks > 1);
    figures.target("load_to_small_page", "load, own disk, to that at pages of 64K", loads, AtMost, 2.0).target(
        "adds_per_second",
        "million additions of all ranks to a word, a second",
        adds,
        AtLeast,
        1.0,
    )
}
