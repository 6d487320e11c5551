//! Small gets, puts, loads and stores at random places, by location, compared with raw I/O and the kernel's paging.

pub mod mapped;
mod measure;
mod reference;

pub use reference::{Reference, ReferenceCell};

use crate::calls;
use crate::options::Access;
use crate::plan::Spec;
use crate::rank::{Rank, fail};
use measure::Measuring;
use serde::{Deserialize, Serialize};
use vgasnet_measuring::progress;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the accesses.
pub const SIZES_BYTES: [usize; 5] = [8, 64, 512, 4 << 10, 64 << 10];

const SIZE_BYTES_MAX: usize = SIZES_BYTES[SIZES_BYTES.len() - 1];

/// Accesses started before the first wait.
pub const IN_FLIGHT: u32 = 64;

/// The data of each rank, in pools.
pub const SEGMENT_POOLS: u64 = 8;

/// The pool if neither an option nor the environment sets one.
pub const POOL_BYTES_DEFAULT: u64 = 64 << 20;

/// Half of a pool of this size has room for accesses of the largest size, at more than one place.
pub const POOL_BYTES_MIN: u64 = 4 * SIZE_BYTES_MAX as u64;

/// Maximum number of pages accessed in pools.
const WINDOW_PAGES_MAX: u64 = 64;

/// The rank with the pages of neighbour locations.
const NEIGHBOUR: u32 = 1;

/// The location of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    OwnPool,
    /// Open in the neighbour's pool. For loads and stores, pages of the own segment.
    NeighbourPool,
    /// In the own segment, mostly in no pool.
    OwnDisk,
    /// In the neighbour's segment, mostly in no pool.
    NeighbourDisk,
}

impl Place {
    /// Pools come last in a round, because pages in pools are no longer only on the disk.
    pub const ALL: [Place; 4] = [Place::OwnDisk, Place::NeighbourDisk, Place::OwnPool, Place::NeighbourPool];

    pub fn name(self) -> &'static str {
        match self {
            Place::OwnPool => "own pool",
            Place::NeighbourPool => "neighbour's pool",
            Place::OwnDisk => "own disk",
            Place::NeighbourDisk => "neighbour's disk",
        }
    }

    /// The name, for ranks on different hosts or on one.
    pub fn name_of(self, is_far: bool) -> &'static str {
        match self {
            Place::NeighbourPool if is_far => "other host's pool",
            Place::NeighbourDisk if is_far => "other host's disk",
            _ => self.name(),
        }
    }

    pub fn is_pool(self) -> bool {
        matches!(self, Place::OwnPool | Place::NeighbourPool)
    }

    fn is_own(self) -> bool {
        matches!(self, Place::OwnPool | Place::OwnDisk)
    }
}

/// One kind of access, and the median times of its rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    pub access: Access,
    pub place: Place,
    pub size_bytes: usize,
    pub in_flight: u32,
    /// For one access.
    pub us_each: Vec<f64>,
}

impl Cell {
    /// Whether each page is accessed only once, because loads and stores move or map it.
    fn is_of_first_accesses(&self) -> bool {
        self.place == Place::NeighbourPool && self.access.is_by_instruction()
    }

    /// The rank with the bytes in its segment.
    fn home(&self) -> u32 {
        if self.place.is_own() || self.access.is_by_instruction() { 0 } else { NEIGHBOUR }
    }
}

/// Measurements of rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub cells: Vec<Cell>,
    pub references: Vec<ReferenceCell>,
    /// All ranks together, to one word; one rate per round.
    pub adds_per_second: Vec<f64>,
    pub plain_is_direct: bool,
    /// The reason for having no loads and stores of a mapped file.
    pub mapped_not_run: Option<String>,
}

pub fn run(rank: &Rank, spec: &Spec) -> Option<Found> {
    fill(rank, spec);
    let mut cells = cells(rank, spec);
    let mut measuring = rank.is_first().then(|| Measuring::new(rank, spec));
    let mut adds_per_second = Vec::new();
    let bar = progress::bar(rank.is_first(), "small accesses", u64::from(spec.repeat) * (cells.len() as u64 + 1));
    for _ in 0..spec.repeat {
        rank.empty_pool();
        rank.barrier();
        for cell in &mut cells {
            prepare(rank, spec, cell);
            if let Some(measuring) = &mut measuring {
                cell.us_each.push(measuring.access(cell));
            }
            rank.barrier();
            bar.inc(1);
        }
        if rank.ranks > 1 && spec.accesses.contains(&Access::Atomic) {
            adds_per_second.push(add_together(rank, spec));
        }
        if let Some(measuring) = &mut measuring {
            measuring.references();
        }
        bar.inc(1);
    }
    measuring.map(|measuring| measuring.end(cells, adds_per_second))
}

/// The rate at which all ranks together add to one word. Collective.
fn add_together(rank: &Rank, spec: &Spec) -> f64 {
    const ADDS: u64 = 100_000;
    let address = rank.segment_base(0);
    let taken = rank.time(|| (0..ADDS).for_each(|_| _ = calls::fetch_and_add(0, address, 1)));
    let all = ADDS * u64::from(rank.ranks);
    if rank.is_first() {
        let sum = calls::fetch_and_add(0, address, all.wrapping_neg());
        if sum != word(spec, 0).wrapping_add(all) {
            fail(format!("{all} additions to one word make {sum:#x} of {:#x}", word(spec, 0)));
        }
    }
    rank.barrier();
    all as f64 / taken.as_secs_f64()
}

/// Writes the whole own segment, since reads of unwritten blocks do not reach the disk.
fn fill(rank: &Rank, spec: &Spec) {
    let bytes = word(spec, rank.me).to_le_bytes().repeat(rank.page_bytes / 8);
    let bar = progress::bar(rank.is_first(), "filling", spec.data_bytes / rank.page_bytes as u64);
    for offset in (0..spec.data_bytes).step_by(rank.page_bytes) {
        rank.put(rank.me, offset, &bytes);
        bar.inc(1);
    }
    rank.write_back();
    rank.barrier();
}

/// The word repeated throughout a segment.
fn word(spec: &Spec, rank: u32) -> u64 {
    xxh3_64(&[spec.seed.to_le_bytes(), u64::from(rank).to_le_bytes()].concat())
}

fn cells(rank: &Rank, spec: &Spec) -> Vec<Cell> {
    let mut cells = Vec::new();
    for place in Place::ALL.into_iter().filter(|place| place.is_own() || rank.ranks > 1) {
        for &access in &spec.accesses {
            // Loads and stores work only on the own segment.
            if place == Place::NeighbourDisk && access.is_by_instruction() {
                continue;
            }
            let depths: &[u32] = if access.is_by_instruction() { &[1] } else { &[1, IN_FLIGHT] };
            let sizes = if access == Access::Atomic { &SIZES_BYTES[..1] } else { &SIZES_BYTES };
            for &size_bytes in sizes {
                let cell = |&in_flight| Cell { access, place, size_bytes, in_flight, us_each: Vec::new() };
                cells.extend(depths.iter().map(cell));
            }
        }
    }
    cells
}

/// The part of a segment brought to a pool: half of the pool, so it stays there.
fn window_bytes(rank: &Rank) -> u64 {
    let page_bytes = rank.page_bytes as u64;
    (rank.pool_bytes / page_bytes / 2).clamp(1, WINDOW_PAGES_MAX) * page_bytes
}

/// Brings the pages of a cell to its pool. Collective. Nothing is needed for locations on disks: a round starts with
/// empty pools, and later accesses go to pages all over the segment.
fn prepare(rank: &Rank, spec: &Spec, cell: &Cell) {
    if !cell.place.is_pool() {
        return;
    }
    rank.empty_pool();
    rank.barrier();
    let holder = if cell.place == Place::OwnPool { 0 } else { NEIGHBOUR };
    if rank.me == holder {
        // Smaller puts might be shipped to the page.
        let bytes = word(spec, cell.home()).to_le_bytes().repeat(rank.page_bytes / 8);
        (0..window_bytes(rank)).step_by(rank.page_bytes).for_each(|offset| rank.put(cell.home(), offset, &bytes));
    }
    rank.barrier();
}
