//! The writes of all calls, with the times of their begins and ends: the bytes a read may return.

use super::steps::Run;
use std::ops::Range;

/// The writes to a file since it was opened. Time is a count of events.
pub struct History {
    now: u64,
    /// The bytes when the file was opened.
    first: Vec<u8>,
    /// Writes, by number.
    writes: Vec<Write>,
}

struct Write {
    rank: usize,
    start_bytes: usize,
    bytes: Vec<u8>,
    begun: u64,
    ended: Option<u64>,
    /// Each of its bytes may have been written or not.
    has_failed: bool,
}

impl Write {
    fn end_bytes(&self) -> usize {
        self.start_bytes + self.bytes.len()
    }

    /// Whether it had replaced all older bytes by `begun`.
    fn has_replaced(&self, begun: u64) -> bool {
        !self.has_failed && self.ended.is_some_and(|ended| ended < begun)
    }

    fn touches(&self, start_bytes: usize, end_bytes: usize) -> bool {
        self.start_bytes < end_bytes && start_bytes < self.end_bytes()
    }
}

impl History {
    pub fn new(first: Vec<u8>) -> History {
        History { now: 0, first, writes: Vec::new() }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Returns the numbers of the writes.
    pub fn begin_writes(&mut self, rank: usize, runs: &[Run], bytes: &[u8]) -> Range<usize> {
        let (begun, first) = (self.tick(), self.writes.len());
        let mut before = 0;
        for Run { start_bytes, len_bytes } in runs {
            let bytes = bytes[before..before + len_bytes].to_vec();
            before += len_bytes;
            self.writes.push(Write { rank, start_bytes: *start_bytes, bytes, begun, ended: None, has_failed: false });
        }
        first..self.writes.len()
    }

    pub fn end_writes(&mut self, numbers: Range<usize>, has_failed: bool) {
        let ended = Some(self.tick());
        for write in &mut self.writes[numbers] {
            (write.ended, write.has_failed) = (ended, has_failed);
        }
    }

    /// Checks the bytes returned by a read. Each is from the last write that was complete at `begun`, or from a write
    /// that overlaps the read in time.
    pub fn check_read(&self, begun: u64, runs: &[Run], read: &[u8]) {
        let mut before = 0;
        for run in runs {
            self.check_run(begun, run.start_bytes, &read[before..before + run.len_bytes]);
            before += run.len_bytes;
        }
    }

    fn check_run(&self, begun: u64, start_bytes: usize, read: &[u8]) {
        for (start, end) in self.parts(start_bytes, start_bytes + read.len()) {
            let touching = || self.writes.iter().filter(move |write| write.touches(start, end));
            let is_replaced = |before: u64| touching().any(|write| write.has_replaced(begun) && write.begun > before);
            let candidates: Vec<&[u8]> = touching()
                .filter(|write| !write.ended.is_some_and(&is_replaced))
                .map(|write| &write.bytes[start - write.start_bytes..end - write.start_bytes])
                .chain((!is_replaced(0)).then(|| &self.first[start..end]))
                .collect();
            for (at, byte) in read[start - start_bytes..end - start_bytes].iter().enumerate() {
                let is_right = candidates.iter().any(|bytes| bytes[at] == *byte);
                assert!(is_right, "a read returned {byte} at {}, none of {} writes", start + at, candidates.len());
            }
        }
    }

    /// Checks that a file has the bytes a rank had written before a time, wherever no write has begun since.
    pub fn check_flushed(&self, rank: usize, before: u64, file: &[u8]) {
        let its = |write: &&Write| write.rank == rank && write.has_replaced(before);
        for write in self.writes.iter().filter(its) {
            for (start, end) in self.parts(write.start_bytes, write.end_bytes()) {
                let is_later =
                    |other: &Write| !std::ptr::eq(other, write) && other.ended.is_none_or(|ended| ended > write.begun);
                if self.writes.iter().any(|other| other.touches(start, end) && is_later(other)) {
                    continue;
                }
                let bytes = &write.bytes[start - write.start_bytes..end - write.start_bytes];
                let is_there = file.get(start..end).is_some_and(|there| there == bytes);
                assert!(is_there, "r{rank} has flushed the file, which lacks what it wrote at {start}..{end}");
            }
        }
    }

    /// The parts of a range with the same writes.
    fn parts(&self, start_bytes: usize, end_bytes: usize) -> Vec<(usize, usize)> {
        let borders = self.writes.iter().flat_map(|write| [write.start_bytes, write.end_bytes()]);
        let mut borders: Vec<usize> = borders.filter(|at| start_bytes < *at && *at < end_bytes).collect();
        borders.extend([start_bytes, end_bytes]);
        borders.sort_unstable();
        borders.dedup();
        borders.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// The time now.
    pub fn timestamp(&mut self) -> u64 {
        self.tick()
    }
}
