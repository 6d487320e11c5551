//! Small gets, puts, loads and stores at random places, by location, compared with raw I/O and the kernel's paging.

mod figures;
mod mapped;
mod measure;
mod reference;

use crate::Stop;
use crate::calls;
use crate::mapped::file_bytes;
use crate::prelude::*;
use measure::Measuring;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the accesses.
const SIZES_BYTES: [usize; 5] = [8, 64, 512, 4 << 10, 64 << 10];

const SIZE_BYTES_MAX: usize = SIZES_BYTES[SIZES_BYTES.len() - 1];

/// Accesses started before the first wait.
const IN_FLIGHT: u32 = 64;

/// The data of each rank, in pools.
pub const SEGMENT_POOLS: u64 = 8;

/// The pool if neither an option nor the environment sets one.
pub const POOL_BYTES_DEFAULT: u64 = 64 << 20;

/// Half of a pool of this size has room for accesses of the largest size, at more than one place.
const POOL_BYTES_MIN: u64 = 4 * SIZE_BYTES_MAX as u64;

/// Maximum number of pages accessed in pools.
const WINDOW_PAGES_MAX: u64 = 64;

/// The rank with the pages of neighbour locations.
const NEIGHBOUR: u32 = 1;

pub const POOL: &str = "DRAM cache of each rank [default: VGASNET_POOL_SIZE, else 64M]";
const PAGE: &str = "Page size [default: VGASNET_PAGE_SIZE, else 64K and 4M]";

/// Gets, puts, loads and stores of 8 bytes to 64 KiB at random places, by location, compared with raw I/O and a
/// mapped file
#[derive(Args, Serialize, Deserialize)]
#[command(mut_arg("pool", |pool| pool.help(POOL)), mut_arg("page", |page| page.help(PAGE)))]
pub struct Small {
    #[command(flatten)]
    setup: Setup,

    /// Number of ranks, also as -np; a single rank has no neighbour
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 2, value_parser = ranks())]
    ranks: u32,

    /// Measure these accesses only; several, as in get,load, are possible
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "get,put,atomic,load,store",
        hide_default_value = true
    )]
    only: Vec<Access>,

    /// The neighbour is treated as on another host: the ranks share no memory
    #[arg(long)]
    other_host: bool,

    #[command(flatten)]
    judging: Judging,
}

impl Benchmark for Small {
    const NAME: &'static str = "small";
    const DATA: Data = Data::Each;
    const IS_SMALL: bool = true;

    /// Small pages first, because large ones are judged against them.
    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let job = |setup: Setup| {
            let job = Job::in_modes(self, self.ranks, true, !self.other_host, &setup)?;
            let frames = FRAMES_MIN.max(POOL_BYTES_MIN / job.config.page_bytes);
            let job = job.with_frames(frames)?;
            let data_bytes = file_bytes(SEGMENT_POOLS.saturating_mul(job.config.pool_bytes), &job);
            Ok(Job { mapped_processes: 1, ..job.with_data(data_bytes, 2) })
        };
        self.setup.with_pool(POOL_BYTES_DEFAULT).in_pages(LARGE_AND_SMALL).into_iter().rev().map(job).collect()
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        fill(rank, spec);
        let mut cells = self.cells(rank);
        let mut measuring = rank.is_first().then(|| Measuring::new(rank, spec, &self.only));
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
            if rank.ranks > 1 && self.only.contains(&Access::Atomic) {
                adds_per_second.push(add_together(rank, spec));
            }
            if let Some(measuring) = &mut measuring {
                measuring.references.measure();
            }
            bar.inc(1);
        }
        let references = measuring.map(|measuring| measuring.references);
        references.map_or_else(Figures::default, |references| {
            figures::of(&cells, &references, &adds_per_second, self.other_host)
        })
    }

    fn serve(&self, spec: &Spec) {
        mapped::serve(spec, &self.only);
    }

    fn compare(&self, job: &Job, figures: Figures, before: &[Run], _peak_bytes: Option<u64>) -> Figures {
        let is_alone = self.setup.in_pages(LARGE_AND_SMALL).len() == 1;
        figures::judged(job, figures, before.first().map(|run| &run.figures.row), is_alone)
    }
}

impl Small {
    fn cells(&self, rank: &Rank) -> Vec<Cell> {
        let mut cells = Vec::new();
        for place in Place::ALL.into_iter().filter(|place| place.is_own() || rank.ranks > 1) {
            for &access in &self.only {
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
}

/// A way to access bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Get,
    Put,
    /// A fetch-and-add of an 8-byte number.
    Atomic,
    Load,
    Store,
}

impl Access {
    /// Whether the access changes bytes. Measured atomic operations add 0.
    fn is_write(self) -> bool {
        matches!(self, Access::Put | Access::Store)
    }

    /// Whether the access is an instruction, on the own segment.
    fn is_by_instruction(self) -> bool {
        matches!(self, Access::Load | Access::Store)
    }
}

/// The location of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Place {
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
    const ALL: [Place; 4] = [Place::OwnDisk, Place::NeighbourDisk, Place::OwnPool, Place::NeighbourPool];

    /// The name, for ranks on different hosts or on one.
    fn words(self, is_far: bool) -> String {
        words(self).replace("neighbour", if is_far { "other host's" } else { "neighbour's" })
    }

    fn is_pool(self) -> bool {
        matches!(self, Place::OwnPool | Place::NeighbourPool)
    }

    fn is_own(self) -> bool {
        matches!(self, Place::OwnPool | Place::OwnDisk)
    }
}

/// One kind of access, and the median times of its rounds.
struct Cell {
    access: Access,
    place: Place,
    size_bytes: usize,
    in_flight: u32,
    /// For one access.
    us_each: Vec<f64>,
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
    let bar = progress::bar(rank.is_first(), "filling", spec.data_bytes / rank.page_bytes as u64);
    rank.fill(rank.me, spec.data_bytes, |_, page| {
        repeat(word(spec, rank.me), page);
        bar.inc(1);
    });
    rank.write_back();
    rank.barrier();
}

fn repeat(word: u64, bytes: &mut [u8]) {
    bytes.chunks_exact_mut(8).for_each(|to| to.copy_from_slice(&word.to_le_bytes()));
}

/// The word repeated throughout a segment.
fn word(spec: &Spec, rank: u32) -> u64 {
    xxh3_64(&[spec.seed.to_le_bytes(), u64::from(rank).to_le_bytes()].concat())
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
        rank.fill(cell.home(), window_bytes(rank), |_, page| repeat(word(spec, cell.home()), page));
    }
    rank.barrier();
}
