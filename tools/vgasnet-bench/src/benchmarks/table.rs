//! Inserts of random keys into an open-addressing hash table of several pools: by gets and puts, by loads and stores,
//! and by loads and stores in a file mapped by a process with the same memory. Each rank has a table in its own
//! segment, and all ranks insert at the same time.

use super::small::{POOL, POOL_BYTES_DEFAULT, SEGMENT_POOLS};
use crate::Stop;
use crate::calls;
use crate::mapped::{self, MAPPED_MEMORY, NO_MAPPED_FILE, Process, jobs_beside, written_file};
use crate::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// The page sizes to measure.
const PAGES_BYTES: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 4 << 20];

/// Duration of a round of one way, and of the preparation before the first, which fills memory with written pages.
const ROUND: Duration = Duration::from_millis(250);
const BEFORE: Duration = Duration::from_secs(1);

/// A key and a value.
const SLOT_BYTES: usize = 16;

/// The key of a free slot. Inserted keys are odd, keys of the initial table are even.
const FREE: u64 = 0;

/// Inserts between two looks at the clock.
const INSERTS: u64 = 16;

const PAGE: &str = "Page size [default: VGASNET_PAGE_SIZE, else 4K, 16K, 64K and 4M]";

/// Inserts into a hash table of eight pools in each rank's segment, compared with a mapped file with the same
/// memory
#[derive(Args, Serialize, Deserialize)]
#[command(mut_arg("pool", |pool| pool.help(POOL)), mut_arg("page", |page| page.help(PAGE)))]
#[command(mut_arg("check", |check| check.help(CHECK_ALL)))]
pub struct Table {
    #[command(flatten)]
    setup: Setup,

    /// Number of ranks, also as -np; several numbers are measured one after another
    #[arg(short = 'n', value_name = "RANKS", default_value = "1,4", value_delimiter = ',', value_parser = ranks())]
    ranks: Vec<u32>,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    check: bool,
}

impl Benchmark for Table {
    const NAME: &'static str = "table";
    const DATA: Data = Data::Each;
    const IS_SMALL: bool = true;

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let setups = self.setup.with_pool(POOL_BYTES_DEFAULT).in_pages(PAGES_BYTES);
        jobs_beside(self, &self.ranks, &setups, |job| SEGMENT_POOLS.saturating_mul(job.config.pool_bytes))
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let bar = progress::bar(rank.is_first(), "inserts into a table", 3 + 3 * u64::from(spec.repeat));
        rank.fill(rank.me, spec.data_bytes, |offset, page| fill(spec, offset, page));
        rank.write_back();
        bar.inc(1);
        let mut process = Process::<f64>::start(spec);
        let mut not_run = process.step().err();
        bar.inc(1);
        let by_puts = ByPuts { rank: rank.me, base: rank.segment_base(rank.me) };
        let by_stores = ByStores(rank.own_segment().cast());
        let mut inserter = Inserter::new(spec);
        rank.barrier();
        inserter.insert(&by_puts, BEFORE);
        bar.inc(1);
        let mut row = Row::default();
        for _ in 0..spec.repeat {
            row.add("puts_per_second", of_all_ranks(rank, || inserter.insert(&by_puts, ROUND)));
            bar.inc(1);
            row.add("stores_per_second", of_all_ranks(rank, || inserter.insert(&by_stores, ROUND)));
            bar.inc(1);
            let mapped = of_all_ranks(rank, || mapped_round(&mut process, &mut not_run));
            // Without the rate of one rank there is none of all.
            if mapped.is_nan() {
                row.add("mapped_per_second", f64::NAN);
                not_run.get_or_insert_with(|| "another rank has no mapped file".into());
            } else {
                row.add("mapped_per_second", mapped);
            }
            bar.inc(1);
        }
        let row = row
            .ratio("puts_to_mapped", "puts_per_second", "mapped_per_second")
            .ratio("stores_to_mapped", "stores_per_second", "mapped_per_second")
            .keep("mapped_not_run", &not_run);
        let is_mapped = not_run.is_none();
        let figures = Figures::of(row).not_run(not_run.map(|why| format!("{NO_MAPPED_FILE}: {why}")));
        if is_mapped { figures.remark(MAPPED_MEMORY) } else { figures }
    }

    fn serve(&self, spec: &Spec) {
        mapped::serve(spec, |mapping| {
            let memory = written_file(mapping, spec.data_bytes, |offset, part| fill(spec, offset, part));
            memory.use_at_random();
            let (mut inserter, mut time) = (Inserter::new(spec), BEFORE);
            // The first step prepares.
            move || inserter.insert(&ByStores(memory.start().cast()), std::mem::replace(&mut time, ROUND))
        });
    }

    /// With the last page size the best one is judged.
    fn compare(&self, _job: &Job, figures: Figures, before: &[Run], _peak_bytes: Option<u64>) -> Figures {
        let pages = self.setup.in_pages(PAGES_BYTES).len();
        let same_ranks = &before[before.len() / pages * pages..];
        if same_ranks.len() + 1 < pages || figures.row.number("mapped_per_second").is_nan() {
            return figures;
        }
        let best = ["puts_to_mapped", "stores_to_mapped"].map(|name| {
            let others = same_ranks.iter().map(|run| run.figures.row.number(name));
            others.fold(figures.row.number(name), f64::max)
        });
        let row = Row::default().keep("puts_to_mapped", best[0]).keep("stores_to_mapped", best[1]);
        figures
            .with("best", Json(&row))
            .target("puts_to_mmap", "inserts by puts to mmap, best pages", best[0], Bound::AtLeast, 1.0)
            .target("stores_time_to_mmap", "time by stores to mmap, best pages", 1.0 / best[1], Bound::AtMost, 1.3)
    }
}

/// The words of a table: two for each slot.
trait Words {
    fn read(&self, word: u64) -> u64;

    fn write_slot(&self, slot: u64, key: u64, value: u64);
}

/// By gets from the own segment, and puts to it.
struct ByPuts {
    rank: u32,
    base: usize,
}

impl Words for ByPuts {
    fn read(&self, word: u64) -> u64 {
        let mut bytes = [0; 8];
        calls::get(&mut bytes, self.rank, self.base + 8 * word as usize);
        u64::from_le_bytes(bytes)
    }

    fn write_slot(&self, slot: u64, key: u64, value: u64) {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(&key.to_le_bytes());
        bytes[8..].copy_from_slice(&value.to_le_bytes());
        calls::put(self.rank, self.base + SLOT_BYTES * slot as usize, &bytes);
    }
}

/// By loads and stores to memory with no other user, as long as the table.
struct ByStores(*mut u64);

impl Words for ByStores {
    fn read(&self, word: u64) -> u64 {
        // SAFETY: the word is part of the table.
        u64::from_le(unsafe { self.0.add(word as usize).read_volatile() })
    }

    fn write_slot(&self, slot: u64, key: u64, value: u64) {
        // SAFETY: the slot is part of the table.
        unsafe {
            self.0.add(2 * slot as usize).write_volatile(key.to_le());
            self.0.add(2 * slot as usize + 1).write_volatile(value.to_le());
        }
    }
}

/// Inserts new keys.
struct Inserter {
    slots: u64,
    keys: fastrand::Rng,
    /// Maximum number in a round, so that free slots remain at the end.
    round_max: u64,
}

impl Inserter {
    fn new(spec: &Spec) -> Inserter {
        let slots = spec.data_bytes / SLOT_BYTES as u64;
        // Half of the slots are free. Each round, and the preparation before the first, has two ways to insert.
        let round_max = slots / 8 / (2 * (u64::from(spec.repeat) + 1));
        Inserter { slots, keys: fastrand::Rng::with_seed(spec.seed), round_max }
    }

    /// Inserts for this time. Returns inserts a second.
    fn insert(&mut self, words: &impl Words, time: Duration) -> f64 {
        let (start, mut inserted, mut last) = (Instant::now(), 0, 0);
        while inserted < self.round_max && start.elapsed() < time {
            for _ in 0..INSERTS {
                last = self.keys.u64(..) | 1;
                let slot = self.find(words, last);
                words.write_slot(slot, last, !last);
            }
            inserted += INSERTS;
        }
        let rate = inserted as f64 / start.elapsed().as_secs_f64();
        let slot = self.find(words, last);
        let found = [words.read(2 * slot), words.read(2 * slot + 1)];
        if inserted > 0 && found != [last, !last] {
            fail(format!("slot {slot} of the table has {found:x?} where key {last:#x} was inserted"));
        }
        rate
    }

    /// The slot with the key, or a free one for it.
    fn find(&self, words: &impl Words, key: u64) -> u64 {
        let mut slot = ((u128::from(key) * u128::from(self.slots)) >> 64) as u64;
        while ![FREE, key].contains(&words.read(2 * slot)) {
            slot = if slot + 1 < self.slots { slot + 1 } else { 0 };
        }
        slot
    }
}

/// A part of the initial table. Half of the slots, chosen at random, are taken.
fn fill(spec: &Spec, offset: u64, part: &mut [u8]) {
    for (slot, bytes) in (offset / SLOT_BYTES as u64..).zip(part.chunks_exact_mut(SLOT_BYTES)) {
        let is_taken = xxh3_64(&(slot ^ spec.seed << 40).to_le_bytes()) & 1 == 1;
        let key = if is_taken { 2 * slot + 2 } else { FREE };
        bytes[..8].copy_from_slice(&key.to_le_bytes());
        bytes[8..].fill(0);
    }
}

/// The rate of a mapped file, or NaN.
fn mapped_round(mapped: &mut Process<f64>, not_run: &mut Option<String>) -> f64 {
    mapped.step().unwrap_or_else(|reason| {
        *not_run = Some(reason);
        f64::NAN
    })
}

/// The sum of the rates of all ranks after a common start. It is NaN if one of them is.
fn of_all_ranks(rank: &Rank, rate: impl FnOnce() -> f64) -> f64 {
    rank.barrier();
    let all = rank.gather([rate().to_bits(), 0, 0, 0]);
    all.iter().map(|told| f64::from_bits(told[0])).sum()
}
