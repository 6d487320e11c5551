//! The result, as text and as JSON.

use crate::chart;
use crate::plan::{Done, Way};
use serde::Serialize;
use vgasnet_settings::format_size_about;

/// The results of all rounds of all ways.
#[derive(Debug, Serialize)]
pub struct Results {
    processes: u32,
    data_bytes: u64,
    memory_bytes: u64,
    /// The reason for having no comparison, if there is none.
    not_compared: Option<String>,
    rounds: Vec<Round>,
}

#[derive(Debug, Serialize)]
struct Round {
    way: Way,
    #[serde(flatten)]
    done: Done,
}

impl Results {
    pub fn new(processes: u32, data_bytes: u64, memory_bytes: u64, not_compared: Option<String>) -> Results {
        Results { processes, data_bytes, memory_bytes, not_compared, rounds: Vec::new() }
    }

    /// Adds a round. Returns a line about it.
    pub fn add(&mut self, way: Way, done: Done) -> String {
        self.rounds.push(Round { way, done });
        let rate = done.read_bytes as f64 / done.seconds / f64::from(1 << 20);
        let fill = match way {
            Way::Vgasnet => format!(" (and {:.2} s to write it)", done.fill_seconds),
            _ => String::new(),
        };
        format!(
            "{:<8} {} read in {:.2} s, {rate:.0} MiB/s{fill}",
            way.name(),
            format_size_about(done.read_bytes),
            done.seconds
        )
    }

    /// The median time of a way, if it has run.
    pub fn seconds(&self, way: Way) -> Option<f64> {
        let mut times: Vec<f64> = self.of(way).map(|done| done.seconds).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }

    fn of(&self, way: Way) -> impl Iterator<Item = &Done> {
        self.rounds.iter().filter(move |round| round.way == way).map(|round| &round.done)
    }

    /// The fractions of the bytes read by vgasnet's ranks: from the disk, from other ranks' memory, from their own.
    fn sources(&self) -> [f64; 3] {
        let sum = |bytes: fn(&Done) -> u64| self.of(Way::Vgasnet).map(bytes).sum::<u64>() as f64;
        let all = sum(|done| done.read_bytes);
        let (disk, own) = (sum(|done| done.disk_bytes) / all, sum(|done| done.own_pool_bytes) / all);
        [disk, (1.0 - disk - own).max(0.0), own]
    }

    pub fn text(&self) -> String {
        let [disk, others, own] = self.sources().map(|part| 100.0 * part);
        let all: u64 = self.rounds.iter().map(|round| round.done.read_bytes).sum();
        let mut text = chart::bars(self);
        if let Some(reason) = &self.not_compared {
            text += &format!("  mmap and read() were not run, since their memory cannot be bounded here: {reason}\n");
        }
        text += &format!(
            "  Of the bytes that vgasnet's ranks read, {disk:.0} % came from the disk, {others:.0} % from the memory of other ranks, {own:.0} % from \
             their own.\n  All {} were compared with the file: every byte is the same.\n",
            format_size_about(all)
        );
        text
    }
}
