//! References for small accesses: raw I/O on a file in the same directory, loads and stores of a mapped file with the
//! same memory, and copies within memory.

use super::mapped::{self, Times};
use super::measure::{DISK, HITS, Limits, load, median_us};
use super::{Access, Cell, IN_FLIGHT, SIZE_BYTES_MAX, SIZES_BYTES, window_bytes};
use crate::disk::{Buffers, PlainFile, Step};
use crate::mapped::Process;
use crate::prelude::*;
use vgasnet_storage::BLOCK_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// Past the page cache; at least 4 KiB.
    RawRead,
    RawWrite,
    MappedLoad,
    MappedStore,
    /// From random places in as many bytes as are accessed in the pages of a pool.
    Copy,
}

/// A reference, and the median times of its rounds.
pub struct ReferenceCell {
    pub reference: Reference,
    pub size_bytes: usize,
    pub in_flight: u32,
    /// For one access.
    pub us_each: Vec<f64>,
}

impl ReferenceCell {
    /// Whether this is the reference of a cell.
    pub fn is_of(&self, cell: &Cell) -> bool {
        let raw_bytes = cell.size_bytes.max(BLOCK_BYTES);
        let expected = match (cell.place.is_pool(), cell.access) {
            (true, _) => (Reference::Copy, cell.size_bytes, 1),
            (false, Access::Get | Access::Atomic) => (Reference::RawRead, raw_bytes, cell.in_flight),
            (false, Access::Put) => (Reference::RawWrite, raw_bytes, cell.in_flight),
            (false, Access::Load) => (Reference::MappedLoad, cell.size_bytes, 1),
            (false, Access::Store) => (Reference::MappedStore, cell.size_bytes, 1),
        };
        (self.reference, self.size_bytes, self.in_flight) == expected
    }
}

pub struct References {
    cells: Vec<ReferenceCell>,
    plain: PlainFile,
    mapped: Process<Vec<Times>>,
    /// The reason for having no loads and stores of a mapped file.
    pub mapped_not_run: Option<String>,
    memory: Memory,
    random: fastrand::Rng,
}

impl References {
    pub fn new(rank: &Rank, spec: &Spec, accesses: &[Access]) -> References {
        let whole = PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::LargePages);
        References {
            cells: cells(accesses),
            plain: whole.for_small_steps(IN_FLIGHT as usize, SIZE_BYTES_MAX),
            mapped: Process::start(spec),
            mapped_not_run: None,
            memory: Memory::allocated(window_bytes(rank) as usize, true),
            random: fastrand::Rng::with_seed(!spec.seed),
        }
    }

    /// Measures a round.
    pub fn measure(&mut self) {
        for at in 0..self.cells.len() {
            let ReferenceCell { reference, size_bytes, in_flight, .. } = self.cells[at];
            let us = match reference {
                Reference::RawRead => self.raw(false, size_bytes, in_flight),
                Reference::RawWrite => self.raw(true, size_bytes, in_flight),
                Reference::Copy => self.copy(size_bytes),
                Reference::MappedLoad | Reference::MappedStore => continue,
            };
            self.cells[at].us_each.push(us);
        }
        if self.cells.iter().any(|cell| mapped::access(cell.reference).is_some()) {
            self.measure_mapped();
        }
    }

    fn measure_mapped(&mut self) {
        let times = match self.mapped.step() {
            Ok(times) => times,
            Err(reason) => return self.mapped_not_run = Some(reason),
        };
        for Times { access, size_bytes, us } in times {
            let is_same = |cell: &&mut ReferenceCell| {
                (mapped::access(cell.reference), cell.size_bytes) == (Some(access), size_bytes)
            };
            self.cells.iter_mut().filter(is_same).for_each(|cell| cell.us_each.push(us));
        }
    }

    fn raw(&mut self, is_write: bool, len_bytes: usize, in_flight: u32) -> f64 {
        let (plain, random) = (&mut self.plain, &mut self.random);
        let places = plain.size_bytes() / len_bytes as u64;
        let mut step = || Step { is_write, offset_bytes: random.u64(0..places) * len_bytes as u64, len_bytes };
        let limits = if in_flight > 1 { Limits { samples_min: 1, ..DISK } } else { DISK };
        let us = median_us(limits, || {
            let steps = (0..in_flight).map(|_| step());
            let done =
                if in_flight > 1 { plain.at_depth(in_flight as usize, steps) } else { plain.one_at_a_time(steps) };
            done.unwrap_or_else(|error| fail(format!("plain I/O: {error}")));
        });
        us / f64::from(in_flight)
    }

    fn copy(&mut self, len_bytes: usize) -> f64 {
        let (memory, random) = (self.memory.bytes(), &mut self.random);
        let (places, mut to) = (memory.len() / len_bytes, vec![0; len_bytes]);
        median_us(HITS, || {
            let from = &memory[random.usize(0..places) * len_bytes..][..len_bytes];
            // SAFETY: the slice has this number of bytes.
            unsafe { load(&mut to, from.as_ptr()) };
        })
    }

    /// The measured references.
    pub fn cells(&self) -> impl Iterator<Item = &ReferenceCell> {
        self.cells.iter().filter(|cell| !cell.us_each.is_empty())
    }

    /// Whether plain I/O bypassed the page cache.
    pub fn is_direct(&self) -> bool {
        self.plain.is_direct
    }
}

/// The references of the measured accesses.
fn cells(accesses: &[Access]) -> Vec<ReferenceCell> {
    let raw_sizes = SIZES_BYTES.into_iter().filter(|size_bytes| *size_bytes >= BLOCK_BYTES);
    let mut kinds: Vec<(Reference, usize, u32)> = SIZES_BYTES.map(|size_bytes| (Reference::Copy, size_bytes, 1)).into();
    // Puts are additionally compared with reads.
    if accesses.iter().any(|access| !access.is_by_instruction()) {
        kinds.extend(raw_sizes.clone().flat_map(|size| [1, IN_FLIGHT].map(|depth| (Reference::RawRead, size, depth))));
    }
    if accesses.contains(&Access::Put) {
        kinds.extend(raw_sizes.flat_map(|size| [1, IN_FLIGHT].map(|depth| (Reference::RawWrite, size, depth))));
    }
    for reference in [Reference::MappedLoad, Reference::MappedStore] {
        let is_measured = mapped::access(reference).is_some_and(|access| accesses.contains(&access));
        let sizes = SIZES_BYTES.into_iter().filter(|_| is_measured);
        kinds.extend(sizes.map(|size_bytes| (reference, size_bytes, 1)));
    }
    let cell =
        |(reference, size_bytes, in_flight)| ReferenceCell { reference, size_bytes, in_flight, us_each: Vec::new() };
    kinds.into_iter().map(cell).collect()
}
