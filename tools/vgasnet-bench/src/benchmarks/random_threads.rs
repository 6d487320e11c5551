//! Records at random places of data larger than memory, accessed by several threads of each rank at once: by gets and
//! puts in all segments, by loads and stores in the own one, and, with the same memory, by loads and stores in a mapped
//! file and by reads of a file past the page cache.

use super::small::POOL;
use crate::Stop;
use crate::calls;
use crate::mapped::{self, MAPPED_MEMORY, NO_MAPPED_FILE, Process, jobs_beside, written_and_open};
use crate::prelude::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_storage::BLOCK_BYTES as DISK_BLOCK_BYTES;
use xxhash_rust::xxh3::xxh3_64;

/// The page sizes to measure.
const PAGES_BYTES: [u64; 3] = [4 << 10, 64 << 10, 4 << 20];

/// The pool, and the data of a rank in pools.
const POOL_BYTES_DEFAULT: u64 = 256 << 20;
const DATA_POOLS: u64 = 4;

/// Duration of a round of one way, and of the preparation before the first, which fills the pools.
const ROUND: Duration = Duration::from_millis(300);
const BEFORE: Duration = Duration::from_secs(1);

/// A record, whose first word tells its number.
const RECORD_BYTES: usize = 120;

/// Most processor time an access may take.
const PROCESSOR_US_MAX: f64 = 30.0;

const THREADS: std::ops::RangeInclusive<i64> = 1..=32;

const PAGE: &str = "Page size [default: VGASNET_PAGE_SIZE, else 4K, 64K and 4M]";

/// Random records of 120 bytes by several threads, in data of four pools, compared with a mapped file with the same
/// memory and with plain reads
#[derive(Args, Serialize, Deserialize)]
#[command(mut_arg("pool", |pool| pool.help(POOL)), mut_arg("page", |page| page.help(PAGE)))]
#[command(mut_arg("check", |check| check.help(CHECK_ALL)))]
pub struct RandomThreads {
    #[command(flatten)]
    setup: Setup,

    /// Number of ranks, also as -np; several numbers are measured one after another
    #[arg(short = 'n', value_name = "RANKS", default_value = "1,4", value_delimiter = ',', value_parser = ranks())]
    ranks: Vec<u32>,

    /// Number of threads of each rank
    #[arg(long, value_name = "THREADS", default_value = "1,4,16", value_delimiter = ',', value_parser = within(THREADS))]
    threads: Vec<u32>,

    /// Data of each rank [default: four pools]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    check: bool,
}

/// A way to access a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Gets,
    Puts,
    Loads,
    Stores,
    MappedLoads,
    MappedStores,
    PlainReads,
}

impl Way {
    const OF_RANK: [Way; 4] = [Way::Gets, Way::Puts, Way::Loads, Way::Stores];
    const OF_PROCESS: [Way; 3] = [Way::MappedLoads, Way::MappedStores, Way::PlainReads];

    fn name(self) -> &'static str {
        match self {
            Way::Gets => "gets",
            Way::Puts => "puts",
            Way::Loads => "loads",
            Way::Stores => "stores",
            Way::MappedLoads => "mapped_loads",
            Way::MappedStores => "mapped_stores",
            Way::PlainReads => "plain_reads",
        }
    }
}

/// Accesses a second, and the processor time of one in microseconds.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Rate {
    per_second: f64,
    processor_us: f64,
}

const NO_RATE: Rate = Rate { per_second: f64::NAN, processor_us: f64::NAN };

impl Benchmark for RandomThreads {
    const NAME: &'static str = "random-threads";
    const DATA: Data = Data::Each;
    const IS_SMALL: bool = true;

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let setups = self.setup.with_pool(POOL_BYTES_DEFAULT).in_pages(PAGES_BYTES);
        let size = |job: &Job| self.size.unwrap_or(DATA_POOLS.saturating_mul(job.config.pool_bytes));
        jobs_beside(self, &self.ranks, &setups, size)
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let rounds = u64::from(spec.repeat) * self.threads.len() as u64;
        let bar = progress::bar(rank.is_first(), "random records", 3 + 7 * rounds);
        rank.fill(rank.me, spec.data_bytes, |offset, page| fill(spec, offset, page));
        rank.write_back();
        bar.inc(1);
        let mut process = Process::<Rate>::start(spec);
        let mut not_run = process.step().err();
        bar.inc(1);
        let segments = Segments::new(rank, spec);
        rank.barrier();
        for way in Way::OF_RANK {
            access(*self.threads.last().expect("a default"), BEFORE / 4, |thread| segments.by(way, thread));
        }
        bar.inc(1);
        let mut rows: Vec<_> = self.threads.iter().map(|threads| Row::labelled(format!("{threads} threads"))).collect();
        for _ in 0..spec.repeat {
            for (row, &threads) in rows.iter_mut().zip(&self.threads) {
                for way in Way::OF_RANK {
                    add(rank, row, way, || access(threads, ROUND, |thread| segments.by(way, thread)));
                    bar.inc(1);
                }
                for way in Way::OF_PROCESS {
                    let mut rate = || {
                        process.step().unwrap_or_else(|reason| {
                            not_run.get_or_insert(reason);
                            NO_RATE
                        })
                    };
                    add(rank, row, way, &mut rate);
                    bar.inc(1);
                }
            }
        }
        figures(&self.threads, rows, not_run)
    }

    fn serve(&self, spec: &Spec) {
        mapped::serve(spec, |mapping| {
            // Ends with the process.
            let file = Box::leak(Box::new(written_and_open(mapping, spec.data_bytes, |offset, part| {
                fill(spec, offset, part)
            })));
            file.memory.use_at_random();
            // The first step prepares, and each later one is a round of one way.
            let of_threads = |threads| Way::OF_PROCESS.map(|way| (threads, way, ROUND));
            let prepares = (self.threads.last().copied().unwrap_or(1), Way::MappedLoads, BEFORE);
            let rounds: Vec<_> = self.threads.iter().copied().flat_map(of_threads).collect();
            let mut steps = std::iter::once(prepares).chain(rounds.into_iter().cycle());
            let (base, descriptor) = (file.memory.start().expose_provenance(), &file.file);
            move || {
                let (threads, way, time) = steps.next().expect("rounds without an end");
                let places = |thread| Places::new(spec, PROCESS, thread);
                access(threads, time, |thread| Plain { base, descriptor, spec, way, places: places(thread) })
            }
        });
    }
}

/// Rows by the number of threads. Several threads are judged.
fn figures(threads: &[u32], rows: Vec<Row>, not_run: Option<String>) -> Figures {
    let worst = |better: fn(f64, f64) -> f64, of: &dyn Fn(&Row) -> f64| {
        let many = rows.iter().zip(threads).filter(|(_, threads)| **threads > 1);
        many.map(|(row, _)| of(row)).reduce(better)
    };
    let to_mapped = |way: &'static str| {
        let ratio = move |row: &Row| row.number(&format!("{way}_per_second")) / row.number("mapped_loads_per_second");
        worst(f64::min, &ratio).filter(|ratio| ratio.is_finite())
    };
    let processor = |way: &'static str| worst(f64::max, &move |row: &Row| row.number(&format!("{way}_us")));
    let [gets, loads] = ["gets", "loads"].map(to_mapped);
    let [of_get, of_load] = ["gets", "loads"].map(processor);
    let is_mapped = not_run.is_none();
    let figures = Figures::of(Row::default().keep("mapped_not_run", &not_run).rows("by_threads", rows))
        .target("gets_to_mmap", "gets to loads by mmap, several threads", gets, Bound::AtLeast, 1.0)
        .target("loads_to_mmap", "loads to loads by mmap, several threads", loads, Bound::AtLeast, 1.0)
        .target("get_us", "processor time of a get, us", of_get, Bound::AtMost, PROCESSOR_US_MAX)
        .target("load_us", "processor time of a load, us", of_load, Bound::AtMost, PROCESSOR_US_MAX)
        .not_run(not_run.map(|why| format!("{NO_MAPPED_FILE}: {why}")));
    if is_mapped { figures.remark(MAPPED_MEMORY) } else { figures }
}

/// Adds the sum of the rates of all ranks, and the mean processor time. Collective.
fn add(rank: &Rank, row: &mut Row, way: Way, rate: impl FnOnce() -> Rate) {
    rank.barrier();
    let Rate { per_second, processor_us } = rate();
    let all = rank.gather([per_second.to_bits(), (processor_us * per_second).to_bits(), 0, 0]);
    let sum = |word: usize| all.iter().map(|told| f64::from_bits(told[word])).sum::<f64>();
    row.add(&format!("{}_per_second", way.name()), sum(0));
    row.add(&format!("{}_us", way.name()), sum(1) / sum(0));
}

/// Accesses to records of a thread, one after another.
trait Accesses {
    fn access(&mut self);
}

/// Runs this many threads for this time. Processor time is the whole process's.
fn access<A: Accesses>(threads: u32, time: Duration, accesses: impl Fn(u32) -> A + Sync) -> Rate {
    let (start, is_over) = (Barrier::new(threads as usize + 1), AtomicBool::new(false));
    let (count, elapsed, processor) = std::thread::scope(|scope| {
        let begin = |thread| {
            let (start, is_over, accesses) = (&start, &is_over, &accesses);
            scope.spawn(move || {
                crate::rank::leave_alternate_stack();
                let (mut accesses, mut count) = (accesses(thread), 0_u64);
                start.wait();
                while !is_over.load(Ordering::Relaxed) {
                    accesses.access();
                    count += 1;
                }
                count
            })
        };
        let threads: Vec<_> = (0..threads).map(begin).collect();
        start.wait();
        let (begin, processor) = (Instant::now(), processor_seconds());
        std::thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        let count = threads.into_iter().map(|thread| thread.join().expect("it only measures")).sum::<u64>();
        (count as f64, begin.elapsed().as_secs_f64(), processor_seconds() - processor)
    });
    Rate { per_second: count / elapsed, processor_us: processor * 1e6 / count }
}

/// The processor time used by this process.
fn processor_seconds() -> f64 {
    // SAFETY: zero is a valid value of each field.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: there is room for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Stands for a rank's number in processes that map a file.
const PROCESS: u32 = 1 << 15;

/// Numbers of records.
struct Places {
    random: fastrand::Rng,
    records: u64,
}

impl Places {
    fn new(spec: &Spec, rank: u32, thread: u32) -> Places {
        static BEGUN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let own = u64::from(rank) << 48 | u64::from(thread) << 40 | BEGUN.fetch_add(1, Ordering::Relaxed);
        let random = fastrand::Rng::with_seed(xxh3_64(&(own ^ spec.seed.rotate_left(24)).to_le_bytes()));
        Places { random, records: spec.data_bytes / RECORD_BYTES as u64 }
    }

    fn next(&mut self) -> u64 {
        self.random.u64(0..self.records)
    }
}

/// The segments of all ranks, as a rank's threads access them.
struct Segments<'a> {
    spec: &'a Spec,
    me: u32,
    bases: Vec<usize>,
}

impl<'a> Segments<'a> {
    fn new(rank: &Rank, spec: &'a Spec) -> Segments<'a> {
        Segments { spec, me: rank.me, bases: (0..rank.ranks).map(|other| rank.segment_base(other)).collect() }
    }

    fn by(&self, way: Way, thread: u32) -> BySegments<'_> {
        BySegments { segments: self, way, places: Places::new(self.spec, self.me, thread) }
    }
}

struct BySegments<'a> {
    segments: &'a Segments<'a>,
    way: Way,
    places: Places,
}

impl Accesses for BySegments<'_> {
    fn access(&mut self) {
        let Segments { spec, me, bases } = self.segments;
        let record = self.places.next();
        let offset = record as usize * RECORD_BYTES;
        let other = self.places.random.usize(0..bases.len());
        let mut bytes = [0; RECORD_BYTES];
        match self.way {
            Way::Gets => calls::get(&mut bytes, other as u32, bases[other] + offset),
            Way::Puts => {
                bytes = record_bytes(spec, record, self.places.random.u64(..));
                return calls::put(other as u32, bases[other] + offset, &bytes);
            }
            way => {
                let own = std::ptr::with_exposed_provenance_mut(bases[*me as usize] + offset);
                // SAFETY: the record is in the own segment.
                return unsafe { touch(own, spec, record, way == Way::Stores, &mut self.places) };
            }
        }
        check(&bytes, spec, record);
    }
}

/// Loads the record at this address and checks it, or stores another value of it.
///
/// # Safety
/// The record is mapped there. Threads only store what others may load.
unsafe fn touch(at: *mut u8, spec: &Spec, record: u64, is_store: bool, places: &mut Places) {
    let at = at.cast::<[u8; RECORD_BYTES]>();
    // SAFETY: as this function requires. Volatile accesses are all made, in whatever order of bytes.
    unsafe {
        if is_store {
            at.write_volatile(record_bytes(spec, record, places.random.u64(..)));
        } else {
            check(&at.read_volatile(), spec, record);
        }
    }
}

/// A mapped file, and the same one read past the page cache.
struct Plain<'a> {
    base: usize,
    descriptor: &'a File,
    spec: &'a Spec,
    way: Way,
    places: Places,
}

impl Accesses for Plain<'_> {
    fn access(&mut self) {
        let record = self.places.next();
        let offset = record * RECORD_BYTES as u64;
        match self.way {
            Way::PlainReads => {
                let mut blocks = Blocks([0; 2 * DISK_BLOCK_BYTES]);
                read_past_cache(self.descriptor, offset, &mut blocks);
                check(&blocks.0[offset as usize % DISK_BLOCK_BYTES..], self.spec, record);
            }
            way => {
                let at = std::ptr::with_exposed_provenance_mut(self.base + offset as usize);
                // SAFETY: the record is in the mapped file.
                unsafe { touch(at, self.spec, record, way == Way::MappedStores, &mut self.places) };
            }
        }
    }
}

/// Memory for direct reads.
#[repr(align(4096))]
struct Blocks([u8; 2 * DISK_BLOCK_BYTES]);

/// Reads the one or two blocks with the record at `offset`.
fn read_past_cache(file: &File, offset: u64, blocks: &mut Blocks) {
    let block = DISK_BLOCK_BYTES as u64;
    let (start, end) = (offset / block * block, (offset + RECORD_BYTES as u64).next_multiple_of(block));
    let read = file.read_exact_at(&mut blocks.0[..(end - start) as usize], start);
    read.unwrap_or_else(|error| fail(format!("reading plainly: {error}")));
}

/// The first word of a record.
fn number_of(spec: &Spec, record: u64) -> [u8; 8] {
    (record.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ spec.seed).to_le_bytes()
}

fn record_bytes(spec: &Spec, record: u64, rest: u64) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&number_of(spec, record));
    bytes[8..16].copy_from_slice(&rest.to_le_bytes());
    bytes
}

fn check(bytes: &[u8], spec: &Spec, record: u64) {
    if bytes[..8] != number_of(spec, record) {
        fail(format!("record {record} begins with {:x?} instead of its number", &bytes[..8]));
    }
}

/// A part of the data.
fn fill(spec: &Spec, offset: u64, part: &mut [u8]) {
    let record_bytes = RECORD_BYTES as u64;
    for (byte, at) in part.iter_mut().zip(offset..) {
        let within = (at % record_bytes) as usize;
        *byte = if within < 8 { number_of(spec, at / record_bytes)[within] } else { 0 };
    }
}
