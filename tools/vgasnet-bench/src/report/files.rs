//! Results of `files`.

use super::Verdict;
use crate::baseline::median;
use crate::files::programs::Times;
use crate::files::sequential::Direct;
use crate::files::{Case, Way};
use serde::Serialize;
use vgasnet_settings::format_size_about;

/// One way of a case.
#[derive(Debug, Serialize)]
pub struct FileRow {
    pub way: Way,
    pub ends_with_sync: bool,
    /// From open to close of all files, the median of the rounds.
    pub seconds: f64,
    seconds_each: Vec<f64>,
    written_seconds_each: Vec<f64>,
    read_seconds_each: Vec<f64>,
    /// Peak memory of its ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_bytes: Option<u64>,
}

impl FileRow {
    pub fn new(way: Way, ends_with_sync: bool) -> FileRow {
        let none = Vec::new;
        FileRow {
            way,
            ends_with_sync,
            seconds: f64::NAN,
            seconds_each: none(),
            written_seconds_each: none(),
            read_seconds_each: none(),
            peak_bytes: None,
        }
    }

    pub fn add(&mut self, times: Times, peak_bytes: Option<u64>) {
        self.seconds_each.push(times.written_seconds + times.read_seconds);
        self.written_seconds_each.push(times.written_seconds);
        self.read_seconds_each.push(times.read_seconds);
        self.peak_bytes = self.peak_bytes.max(peak_bytes);
        self.seconds = median(&self.seconds_each);
    }
}

#[derive(Debug, Serialize)]
pub struct CaseFigures {
    #[serde(flatten)]
    pub case: Case,
    /// Memory limit of all ranks together.
    memory_bytes: u64,
    /// Checksum of the files, equal for all ways.
    checksum: String,
    pub rows: Vec<FileRow>,
}

impl CaseFigures {
    pub fn new(case: Case, memory_bytes: u64, checksum: String, rows: Vec<FileRow>) -> CaseFigures {
        CaseFigures { case, memory_bytes, checksum, rows }
    }

    fn row(&self, way: Way, ends_with_sync: bool) -> Option<&FileRow> {
        self.rows.iter().find(|row| row.way == way && row.ends_with_sync == ends_with_sync)
    }

    /// The time of a way divided by vgasnet's.
    pub fn to_vgasnet(&self, way: Way, ends_with_sync: bool) -> Option<f64> {
        Some(self.row(way, ends_with_sync)?.seconds / self.row(Way::Vgasnet, ends_with_sync)?.seconds)
    }

    fn table(&self) -> String {
        let Case { pattern, ranks, label, moved_bytes, .. } = &self.case;
        let memory = format_size_about(self.memory_bytes);
        let mut text = format!("{}, {ranks} ranks, {label}; {memory} of memory\n", pattern.name());
        for row in &self.rows {
            let end = if row.ends_with_sync { "sync" } else { "close" };
            let speed = *moved_bytes as f64 / row.seconds / 1e6;
            let ratio = self.to_vgasnet(row.way, row.ends_with_sync).unwrap_or(f64::NAN);
            let times = [&row.written_seconds_each, &row.read_seconds_each].map(|each| median(each));
            text += &format!(
                "  {end:<5} {:<20} {:>9.3} {:>9.3} {:>9.3} {speed:>8.0} {ratio:>9.2}\n",
                row.way.name(),
                row.seconds,
                times[0],
                times[1]
            );
        }
        text
    }
}

/// One rank and a file larger than its pool.
#[derive(Debug, Serialize)]
pub struct SequentialFigures {
    #[serde(flatten)]
    case: Case,
    page_bytes: u64,
    vgasnet: FileRow,
    is_direct: bool,
    direct: Vec<Direct>,
    /// The time of `O_DIRECT` at its best depth, divided by vgasnet's.
    pub written_to_vgasnet: f64,
    pub read_to_vgasnet: f64,
}

impl SequentialFigures {
    pub fn new(case: Case, page_bytes: u64, vgasnet: FileRow, is_direct: bool, direct: Vec<Direct>) -> Self {
        let best = |each: fn(&Direct) -> &Vec<f64>| {
            direct.iter().map(|passes| median(each(passes))).fold(f64::INFINITY, f64::min)
        };
        let written_to_vgasnet = best(|passes| &passes.written_seconds_each) / median(&vgasnet.written_seconds_each);
        let read_to_vgasnet = best(|passes| &passes.read_seconds_each) / median(&vgasnet.read_seconds_each);
        SequentialFigures { case, page_bytes, vgasnet, is_direct, direct, written_to_vgasnet, read_to_vgasnet }
    }

    fn table(&self) -> String {
        let mut text = format!("sequential, 1 rank, {}\n", self.case.label);
        let times = [&self.vgasnet.written_seconds_each, &self.vgasnet.read_seconds_each].map(|each| median(each));
        let mut line = |name: String, [written, read]: [f64; 2]| {
            text += &format!("  sync  {name:<20} {:>9.3} {written:>9.3} {read:>9.3}\n", written + read);
        };
        line("vgasnet".into(), times);
        for passes in &self.direct {
            let times = [&passes.written_seconds_each, &passes.read_seconds_each].map(|each| median(each));
            line(format!("O_DIRECT, depth {}", passes.depth), times);
        }
        text + &super::not_direct(self.is_direct, "  ", "reads and writes")
    }
}

/// Rows of many ranks in a page.
#[derive(Debug, Serialize)]
pub struct RowFigures {
    #[serde(flatten)]
    case: Case,
    page_bytes: u64,
    pages_moved: f64,
    pages_moved_without_shipping: f64,
    /// Less than one moved page counts as one.
    pub fewer_moves: f64,
}

impl RowFigures {
    pub fn new(case: Case, page_bytes: u64, pages_moved: f64, pages_moved_without_shipping: f64) -> RowFigures {
        let fewer_moves = pages_moved_without_shipping / pages_moved.max(1.0);
        RowFigures { case, page_bytes, pages_moved, pages_moved_without_shipping, fewer_moves }
    }

    fn table(&self) -> String {
        format!(
            "{}, {} ranks: {:.0} pages moved, {:.0} with VGASNET_SHIP=0\n",
            self.case.label, self.case.ranks, self.pages_moved, self.pages_moved_without_shipping
        )
    }
}

#[derive(Serialize)]
pub struct FilesReport<'a> {
    pub benchmark: &'static str,
    pub mpi: &'a str,
    pub page_bytes: u64,
    pub pool_bytes: u64,
    pub repeat: u32,
    pub cases: Vec<CaseFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential: Option<SequentialFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<RowFigures>,
    /// The reasons for missing ways.
    pub not_run: Vec<String>,
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl FilesReport<'_> {
    pub fn table(&self) -> String {
        let (page, pool) = (format_size_about(self.page_bytes), format_size_about(self.pool_bytes));
        let mut text = format!("files, {}, pages of {page}, pools of {pool}; seconds from open to close\n", self.mpi);
        text += &format!(
            "  {:<5} {:<20} {:>9} {:>9} {:>9} {:>8} {:>9}\n",
            "end", "way", "all", "written", "read", "MB/s", "/ vgasnet"
        );
        self.cases.iter().for_each(|case| text += &case.table());
        text += &self.sequential.as_ref().map_or_else(String::new, SequentialFigures::table);
        text += &self.rows.as_ref().map_or_else(String::new, RowFigures::table);
        for why in &self.not_run {
            text += &format!("NOT RUN: {why}\n");
        }
        text + &self.verdict.table()
    }
}
