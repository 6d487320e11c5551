//! The measurements of rank 0.

use super::reference::References;
use super::{Access, Cell, IN_FLIGHT, NEIGHBOUR, SIZE_BYTES_MAX, SIZES_BYTES, window_bytes, word};
use crate::calls;
use crate::prelude::*;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// Durations of the measurement of a cell in a round, with minimum numbers of samples: for accesses of disks, and for
/// the faster hits.
pub const DISK: Limits = Limits { time: Duration::from_millis(30), samples_min: 8, batch: 1 };
pub const HITS: Limits = Limits { time: Duration::from_millis(4), samples_min: 3, batch: 64 };

/// Accesses before the first that counts, so the pool is filled as accesses of this kind leave it.
const ACCESSES_BEFORE: u64 = 64;

/// The extent of a measurement.
#[derive(Clone, Copy)]
pub struct Limits {
    pub time: Duration,
    pub samples_min: usize,
    /// Operations in a sample.
    pub batch: usize,
}

/// The median time of `work`, in microseconds.
pub fn median_us(limits: Limits, mut work: impl FnMut()) -> f64 {
    let (begun, mut us_each) = (Instant::now(), Vec::new());
    while us_each.len() < limits.samples_min || begun.elapsed() < limits.time {
        let start = Instant::now();
        (0..limits.batch).for_each(|_| work());
        us_each.push(start.elapsed().as_secs_f64() * 1e6 / limits.batch as f64);
    }
    median(&us_each)
}

/// Loads, as a program does.
///
/// # Safety
/// `from` is valid for reading `to.len()` bytes, and they are not written meanwhile.
#[inline]
pub unsafe fn load(to: &mut [u8], from: *const u8) {
    if to.len() == 8 {
        // SAFETY: all places are multiples of the size.
        let word = unsafe { from.cast::<u64>().read_volatile() };
        to.copy_from_slice(&word.to_ne_bytes());
    } else {
        // SAFETY: the caller guarantees the source. The destination is ordinary memory.
        unsafe { black_box(from).copy_to_nonoverlapping(black_box(to.as_mut_ptr()), to.len()) };
    }
}

/// Stores, as a program does.
///
/// # Safety
/// `to` is valid for writing `from.len()` bytes, and has no other user meanwhile.
#[inline]
pub unsafe fn store(to: *mut u8, from: &[u8]) {
    if let Ok(word) = from.try_into() {
        // SAFETY: all places are multiples of the size.
        unsafe { to.cast::<u64>().write_volatile(u64::from_ne_bytes(word)) };
    } else {
        // SAFETY: the caller guarantees the destination. The source is ordinary memory.
        unsafe { black_box(to).copy_from_nonoverlapping(black_box(from.as_ptr()), from.len()) };
    }
}

/// State of rank 0 for the measurements.
pub struct Measuring<'a> {
    rank: &'a Rank,
    spec: &'a Spec,
    random: fastrand::Rng,
    buffer: Memory,
    /// The bytes put to the segment of each home.
    sources: [Vec<u8>; 2],
    pub references: References,
}

impl<'a> Measuring<'a> {
    pub fn new(rank: &'a Rank, spec: &'a Spec, accesses: &[Access]) -> Measuring<'a> {
        Measuring {
            rank,
            spec,
            random: fastrand::Rng::with_seed(spec.seed),
            buffer: Memory::shared(IN_FLIGHT as usize * SIZE_BYTES_MAX),
            sources: [0, NEIGHBOUR].map(|home| word(spec, home).to_le_bytes().repeat(SIZE_BYTES_MAX / 8)),
            references: References::new(rank, spec, accesses),
        }
    }

    /// The median time of an access of a cell, in microseconds.
    pub fn access(&mut self, cell: &Cell) -> f64 {
        if cell.is_of_first_accesses() {
            return self.first_accesses(cell);
        }
        let span_bytes = if cell.place.is_pool() { window_bytes(self.rank) } else { self.spec.data_bytes };
        if cell.place.is_pool() {
            // Loads and stores map the pages, and puts obtain the right to write.
            for offset in (0..span_bytes).step_by(self.rank.page_bytes.max(cell.size_bytes)) {
                self.one(cell, offset);
                self.check(cell);
            }
        } else if cell.size_bytes == SIZES_BYTES[0] && cell.in_flight == 1 {
            let frames = self.rank.pool_bytes / self.rank.page_bytes as u64;
            for _ in 0..frames.min(ACCESSES_BEFORE) {
                let offset = self.place(cell, span_bytes);
                self.one(cell, offset);
            }
        }
        let limits = if cell.place.is_pool() { HITS } else { DISK };
        let us = if cell.in_flight > 1 {
            let limits = Limits { samples_min: 1, batch: 1, ..limits };
            median_us(limits, || self.side_by_side(cell, span_bytes)) / f64::from(cell.in_flight)
        } else {
            median_us(limits, || {
                let offset = self.place(cell, span_bytes);
                self.one(cell, offset);
            })
        };
        let offset = self.place(cell, span_bytes);
        self.check_written(cell, offset);
        self.check(cell);
        us
    }

    /// Accesses each page once, in random order.
    fn first_accesses(&mut self, cell: &Cell) -> f64 {
        let unit_bytes = self.rank.page_bytes.max(cell.size_bytes) as u64;
        let mut units: Vec<u64> = (0..window_bytes(self.rank) / unit_bytes).collect();
        self.random.shuffle(&mut units);
        let mut us_each = Vec::new();
        for unit in units {
            let offset = unit * unit_bytes + self.place(cell, unit_bytes);
            let start = Instant::now();
            self.one(cell, offset);
            us_each.push(start.elapsed().as_secs_f64() * 1e6);
            self.check(cell);
        }
        median(&us_each)
    }

    /// Checks that changed bytes read back as written. Restores the previous bytes.
    fn check_written(&mut self, cell: &Cell, offset: u64) {
        if !cell.access.is_write() {
            return;
        }
        let (home, len_bytes) = (cell.home(), cell.size_bytes);
        let invert = |source: &mut Vec<u8>| source.iter_mut().for_each(|byte| *byte = !*byte);
        invert(&mut self.sources[home as usize]);
        self.one(cell, offset);
        self.rank.get(home, offset, &mut self.buffer.bytes()[..len_bytes]);
        if self.buffer.bytes()[..len_bytes] != self.sources[home as usize][..len_bytes] {
            let (name, place) = (name(cell.access), words(cell.place));
            fail(format!("a {name} of {len_bytes} bytes, {place}, is not seen by a get after it"));
        }
        invert(&mut self.sources[home as usize]);
        self.one(cell, offset);
    }

    /// Checks the bytes of the last read: repetitions of the same word.
    fn check(&mut self, cell: &Cell) {
        let (expected, found) = (&self.sources[cell.home() as usize][..cell.size_bytes], self.buffer.bytes());
        if !cell.access.is_write() && &found[..cell.size_bytes] != expected {
            let (name, place, size_bytes) = (name(cell.access), words(cell.place), cell.size_bytes);
            fail(format!("a {name} of {size_bytes} bytes, {place}, has other bytes than were written"));
        }
    }

    /// A random multiple of the size.
    fn place(&mut self, cell: &Cell, span_bytes: u64) -> u64 {
        self.random.u64(0..span_bytes / cell.size_bytes as u64) * cell.size_bytes as u64
    }

    fn one(&mut self, cell: &Cell, offset: u64) {
        let at = self.rank.segment_base(cell.home()) + offset as usize;
        let to = &mut self.buffer.bytes()[..cell.size_bytes];
        let from = &self.sources[cell.home() as usize][..cell.size_bytes];
        match cell.access {
            Access::Get => calls::get(to, cell.home(), at),
            Access::Put => calls::put(cell.home(), at, from),
            Access::Atomic => to.copy_from_slice(&calls::fetch_and_add(cell.home(), at, 0).to_ne_bytes()),
            // SAFETY: the range lies in the own segment, and no other rank writes to it meanwhile.
            Access::Load => unsafe { load(to, with_exposed_provenance(at)) },
            // SAFETY: as for a load. No other rank reads it meanwhile either.
            Access::Store => unsafe { store(with_exposed_provenance_mut(at), from) },
        }
    }

    fn side_by_side(&mut self, cell: &Cell, span_bytes: u64) {
        let base = self.rank.segment_base(cell.home());
        let at = [(); IN_FLIGHT as usize].map(|()| base + self.place(cell, span_bytes) as usize);
        let (to, from) = (self.buffer.bytes(), &self.sources[cell.home() as usize][..cell.size_bytes]);
        match cell.access {
            Access::Get => calls::get_side_by_side(to, cell.size_bytes, cell.home(), &at),
            Access::Atomic => calls::fetch_side_by_side(to, cell.home(), &at),
            _ => calls::put_side_by_side(cell.home(), &at, from),
        }
    }
}
