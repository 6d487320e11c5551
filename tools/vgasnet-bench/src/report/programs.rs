//! Results of examples in all their ways.

use super::Verdict;
use crate::baseline::median;
use crate::programs::examples::Said;
use serde::Serialize;
use vgasnet_settings::format_size_about;

/// A way for an example to get remote bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// By vgasnet, with a pool hardly larger than the own data.
    Uncached,
    /// Through a cache in the example itself.
    DirectMapped,
    /// With a larger pool.
    PageCache,
    /// Through the cache of gets.
    Cached,
    /// Through both: an eighth of the memory is for the cache of gets, as by default, and the remainder for the pool.
    Both,
    Mpi,
    /// With a preloaded library that caches gets.
    MpiCached,
}

impl Way {
    pub fn name(self) -> &'static str {
        match self {
            Way::Uncached => "uncached",
            Way::DirectMapped => "direct-mapped cache",
            Way::PageCache => "page cache",
            Way::Cached => "get cache",
            Way::Both => "page and get cache",
            Way::Mpi => "MPI",
            Way::MpiCached => "MPI, cached",
        }
    }

    /// Whether this way uses memory for remote bytes.
    pub fn has_memory(self) -> bool {
        !matches!(self, Way::Uncached | Way::Mpi)
    }

    /// The minimum amount of memory.
    pub fn memory_bytes_min(self) -> u64 {
        match self {
            Way::Both => 128 << 10,
            _ => 64 << 10,
        }
    }

    fn baseline(self) -> Way {
        if self == Way::MpiCached || self == Way::Mpi { Way::Mpi } else { Way::Uncached }
    }
}

/// One way with an amount of memory.
#[derive(Debug, Serialize)]
pub struct WayRow {
    pub way: Way,
    /// The memory divided by the remote bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    pub memory_bytes: u64,
    /// The median of the rounds.
    pub seconds: f64,
    seconds_each: Vec<f64>,
    gets: u64,
    bytes: u64,
    hits: u64,
}

impl WayRow {
    pub fn new(way: Way, part: Option<f64>, memory_bytes: u64) -> WayRow {
        WayRow { way, part, memory_bytes, seconds: f64::NAN, seconds_each: Vec::new(), gets: 0, bytes: 0, hits: 0 }
    }

    pub fn add(&mut self, said: &Said) {
        self.seconds_each.push(said.seconds);
        (self.gets, self.bytes, self.hits) = (said.gets, said.bytes, said.hits);
    }

    /// Computes the results after the last round.
    pub fn end(&mut self) {
        self.seconds = median(&self.seconds_each);
    }
}

#[derive(Serialize)]
pub struct ProgramReport<'a> {
    pub program: &'static str,
    pub args: &'a [String],
    pub ranks: u32,
    pub mpi_ranks: u32,
    pub page_bytes: u64,
    pub two_hosts: bool,
    pub repeat: u32,
    /// Distinct bytes read by a rank from others.
    pub remote_bytes: u64,
    pub rows: Vec<WayRow>,
    /// The reasons for missing ways.
    pub not_run: Vec<String>,
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl ProgramReport<'_> {
    /// Speedup over the uncached way of its kind.
    pub fn speedup(&self, row: &WayRow) -> f64 {
        let baseline = self.rows.iter().find(|other| other.way == row.way.baseline());
        baseline.map_or(f64::NAN, |baseline| baseline.seconds / row.seconds)
    }

    pub fn table(&self) -> String {
        let hosts = if self.two_hosts { "two hosts over TCP" } else { "one host, as on several; MPI by shared memory" };
        let mut text = format!(
            "{} {}, {} ranks, {} by MPI, {hosts}, pages of {}: a rank reads {} of others\n",
            self.program,
            self.args.join(" "),
            self.ranks,
            self.mpi_ranks,
            format_size_about(self.page_bytes),
            format_size_about(self.remote_bytes)
        );
        text += &format!(
            "{:<20} {:>6} {:>8} {:>10} {:>10} {:>7}\n",
            "way", "part", "memory", "seconds", "speed-up", "hits"
        );
        for row in &self.rows {
            let part = row.part.map_or_else(String::new, |part| format!("{part}"));
            let memory = row.part.map_or_else(String::new, |_| format_size_about(row.memory_bytes));
            let hits = 100.0 * row.hits as f64 / row.gets.max(1) as f64;
            let hits = if row.hits > 0 { format!("{hits:.1} %") } else { String::new() };
            let line = format!(
                "{:<20} {part:>6} {memory:>8} {:>10.3} {:>10.2} {hits:>7}",
                row.way.name(),
                row.seconds,
                self.speedup(row)
            );
            text += line.trim_end();
            text += "\n";
        }
        for why in &self.not_run {
            text += &format!("NOT RUN: by MPI: {why}\n");
        }
        text += if self.program == "lcc" {
            "the paper: 5 times as fast as foMPI with 128 MB, 2^20 vertices, 32 nodes of a Cray XC50; this is another machine\n"
        } else {
            "the paper: up to 5 times as fast as uncached and 3 times as a direct-mapped cache, 20K bodies and more, 16 to 128 nodes \
             of a Cray XC50; this is another machine\n"
        };
        text + &self.verdict.table()
    }
}
