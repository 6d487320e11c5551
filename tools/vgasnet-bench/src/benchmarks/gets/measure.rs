//! The measurements of rank 0.

use super::keys::{Key, Places, draws, is_right};
use super::{DRAWS_OF_OCCUPANCY, Gets, RANKS, of_sizes};
use crate::calls;
use crate::calls::readonly::{ReadOnly, Stats, stats};
use crate::prelude::*;
use vgasnet_measuring::progress::ProgressBar;

/// Number and size of the gets in a scan: enough for the cache to find that caching does not pay.
const SCAN_GETS: usize = 20_000;
const SCAN_BYTES: usize = 512;

/// Hits in a sample, and samples of a size in a round.
const HITS: usize = 64;
const SAMPLES: usize = 64;

/// Number of samples of the used cache memory in a round of draws.
const LOOKS: usize = 20;

pub struct Measuring<'a> {
    rank: &'a Rank,
    spec: &'a Spec,
    orders: &'a Gets,
    keys: Vec<Key>,
    draws: Vec<usize>,
    scan: Vec<Key>,
    random: fastrand::Rng,
    buffer: Memory,
}

/// The time of a call, in microseconds.
fn us(work: impl FnOnce()) -> f64 {
    seconds(work) * 1e6
}

impl<'a> Measuring<'a> {
    pub fn new(rank: &'a Rank, spec: &'a Spec, orders: &'a Gets) -> Measuring<'a> {
        let mut random = fastrand::Rng::with_seed(spec.seed);
        let places = Places::new(rank, spec);
        let keys = places.keys(orders, &mut random);
        if keys.len() < orders.distinct as usize {
            fail(format!(
                "there is room for {} different gets; give a smaller --distinct or a larger --pool",
                keys.len()
            ));
        }
        let draws = draws(orders, keys.len(), &mut random);
        let scan = places.scan(SCAN_BYTES, SCAN_GETS, &mut random);
        Measuring { rank, spec, orders, keys, draws, scan, random, buffer: Memory::shared(1 << 17) }
    }

    pub fn run(mut self) -> Figures {
        let bar = progress::bar(true, "gets", u64::from(self.spec.repeat));
        match self.orders.cache_bytes {
            None => self.sizes(&bar),
            Some(cache_bytes) => self.drawn(cache_bytes, &bar),
        }
    }

    fn distinct_bytes(&self) -> u64 {
        self.keys.iter().map(|key| key.size_bytes as u64).sum()
    }

    fn sizes(&mut self, bar: &ProgressBar) -> Figures {
        let mut sizes: Vec<usize> = self.keys.iter().map(|key| key.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let row = |size_bytes| Row::labelled(format!("{size_bytes} bytes")).keep("size_bytes", size_bytes);
        let mut latencies: Vec<Row> = sizes.into_iter().map(row).collect();
        let mut scans = Vec::new();
        for _ in 0..self.spec.repeat {
            self.latencies(&mut latencies);
            let uncached = self.scan();
            let open = self.open();
            scans.push(self.scan() / uncached);
            drop(open);
            bar.inc(1);
        }
        let measured = latencies.iter().filter(|row| !row.numbers("hit_ns_each").is_empty());
        of_sizes(self.distinct_bytes(), measured.map(compared).collect(), &scans)
    }

    fn drawn(&mut self, cache_bytes: u64, bar: &ProgressBar) -> Figures {
        let mut drawn = Drawn::default();
        for _ in 0..self.spec.repeat {
            self.draw(cache_bytes, &mut drawn);
            bar.inc(1);
        }
        let distinct_bytes = self.distinct_bytes();
        let row = drawn.row(cache_bytes, distinct_bytes);
        let is_judged = drawn.stats.evicted > 0 && self.orders.draws >= DRAWS_OF_OCCUPANCY;
        let occupancy = is_judged.then_some(row.number("occupancy_last"));
        Figures::of(Row::default().keep("distinct_bytes", distinct_bytes).row("drawn", row)).target(
            "occupancy",
            "memory that copies take",
            occupancy,
            Bound::AtLeast,
            0.9,
        )
    }

    /// Declares all data read-only.
    fn open(&self) -> Vec<ReadOnly> {
        let begin = |home| ReadOnly::begin(home, self.rank.segment_base(home), self.spec.data_bytes as usize);
        (1..RANKS).map(begin).collect()
    }

    fn get(&mut self, key: &Key) {
        let address = self.rank.segment_base(key.home) + key.offset as usize;
        calls::get(&mut self.buffer.bytes()[..key.size_bytes], key.home, address);
    }

    /// Checks the bytes of the last get.
    fn check(&mut self, key: &Key) {
        if !is_right(key, &self.buffer.bytes()[..key.size_bytes]) {
            fail(format!("a get of {} bytes has other bytes than were written", key.size_bytes));
        }
    }

    /// One round for each size: gets without the cache, first gets with it, hits, and copies.
    fn latencies(&mut self, latencies: &mut [Row]) {
        let mut order: Vec<Key> = self.keys.clone();
        let mut uncached: Vec<Vec<f64>> = latencies.iter().map(|_| Vec::new()).collect();
        let mut misses = uncached.clone();
        let size_of = |row: &Row| row.number("size_bytes") as usize;
        let place = |sizes: &[Row], key: &Key| sizes.partition_point(|row| size_of(row) < key.size_bytes);
        // Of overlapping gets only the first misses all its bytes. The others miss some, and start elsewhere.
        for _ in 0..3 {
            self.random.shuffle(&mut order);
            let without: Vec<f64> = order.iter().map(|key| self.get_apart(key).0).collect();
            let open = self.open();
            for (key, without) in order.iter().zip(without) {
                let (taken, counted) = self.get_apart(key);
                // A get that was not counted went to a page in rank 0's pool. It is neither a miss nor comparable to
                // one.
                if counted > 0 {
                    uncached[place(latencies, key)].push(without);
                    misses[place(latencies, key)].push(taken);
                }
            }
            drop(open);
        }
        let open = self.open();
        for key in &order {
            self.get(key);
            self.get(key);
            self.check(key);
        }
        for (at, row) in latencies.iter_mut().enumerate() {
            row.add("uncached_us", median(&uncached[at]));
            row.add("miss_us", median(&misses[at]));
            let is_same = |key: &Key| key.size_bytes == size_of(row);
            let here: Vec<Key> = order.iter().copied().filter(|key| is_same(key) && self.is_hit(key)).collect();
            // Of rare sizes all pages may have moved to rank 0's pool.
            if !here.is_empty() {
                row.add("hit_ns", self.hits(&here));
                row.add("copy_ns", self.copies(&here));
            }
        }
        drop(open);
    }

    /// The time of a get, and whether the cache counted it. The surrounding work is the same with and without the
    /// cache, because a home answers more slowly the longer it has been idle.
    fn get_apart(&mut self, key: &Key) -> (f64, u64) {
        let before = stats();
        let taken = us(|| self.get(key));
        self.check(key);
        (taken, (stats() - before).gets)
    }

    /// Nanoseconds of a get of cached keys.
    fn hits(&mut self, keys: &[Key]) -> f64 {
        let mut samples = Vec::new();
        for sample in 0..SAMPLES {
            let taken = us(|| (0..HITS).for_each(|at| self.get(&keys[(sample * HITS + at) % keys.len()])));
            samples.push(taken * 1e3 / HITS as f64);
        }
        median(&samples)
    }

    /// Whether a get of this key is a hit now. Its page may have moved to rank 0's pool.
    fn is_hit(&mut self, key: &Key) -> bool {
        let before = stats();
        self.get(key);
        (stats() - before).hits == 1
    }

    /// Nanoseconds of a copy of the same size, from the same number of places.
    fn copies(&mut self, keys: &[Key]) -> f64 {
        let mut sources = Memory::shared(keys.iter().map(|key| key.size_bytes.next_multiple_of(64)).sum());
        let stride = keys[0].size_bytes.next_multiple_of(64);
        let mut samples = Vec::new();
        for sample in 0..SAMPLES {
            let taken = us(|| {
                for at in 0..HITS {
                    let from = (sample * HITS + at) % keys.len() * stride;
                    let from = &sources.bytes()[from..from + keys[0].size_bytes];
                    black_box(&mut self.buffer.bytes()[..from.len()]).copy_from_slice(black_box(from));
                }
            });
            samples.push(taken * 1e3 / HITS as f64);
        }
        median(&samples)
    }

    /// Seconds of a scan without reuse of bytes.
    fn scan(&mut self) -> f64 {
        let scan = std::mem::take(&mut self.scan);
        let taken = us(|| scan.iter().for_each(|key| self.get(key)));
        if let Some(last) = scan.last() {
            self.check(last);
        }
        self.scan = scan;
        taken / 1e6
    }

    /// A round of all draws, without the cache and with it.
    fn draw(&mut self, cache_bytes: u64, drawn: &mut Drawn) {
        let order: Vec<Key> = self.draws.iter().map(|at| self.keys[*at]).collect();
        let taken = us(|| order.iter().for_each(|key| self.get(key)));
        drawn.uncached_seconds.push(taken / 1e6);
        let open = self.open();
        let (first, mut before, mut all_us) = (stats(), stats(), 0.0);
        drawn.class_us = Default::default();
        drawn.occupancy.clear();
        for (at, key) in order.iter().enumerate() {
            let taken = us(|| self.get(key));
            all_us += taken;
            let now = stats();
            if let Some(class) = class_of(&(now - before)) {
                drawn.class_us[class].push(taken);
            }
            before = now;
            if (at + 1) % order.len().div_ceil(LOOKS) == 0 {
                drawn.occupancy.push(now.bytes_used as f64 / cache_bytes as f64);
            }
        }
        drawn.stats = stats() - first;
        drop(open);
        drawn.seconds.push(all_us / 1e6);
    }
}

/// Compares the times of successive gets of one size: without the cache, the first get of its bytes in a read-only range,
/// a hit, and a copy from ordinary memory, over the same number of places.
fn compared(row: &Row) -> Row {
    let [misses, uncached] = ["miss_us_each", "uncached_us_each"].map(|name| row.numbers(name));
    let ratios: Vec<f64> = misses.iter().zip(&uncached).map(|(miss, uncached)| miss / uncached).collect();
    let uncached_to_hit = row.number("uncached_us") * 1e3 / row.number("hit_ns");
    let row = row.clone().show("miss_to_uncached", median(&ratios)).against("miss_us", "uncached_us");
    row.speedup("copy_to_hit", "hit_ns", "copy_ns").show("uncached_to_hit", uncached_to_hit)
}

/// All draws, by round, and details of the last round.
#[derive(Default)]
struct Drawn {
    seconds: Vec<f64>,
    uncached_seconds: Vec<f64>,
    stats: Stats,
    /// The used fraction of the memory for copies, after each twentieth of the draws.
    occupancy: Vec<f64>,
    /// Microseconds of the gets of each class.
    class_us: [Vec<f64>; CLASSES.len()],
}

impl Drawn {
    fn row(&self, cache_bytes: u64, distinct_bytes: u64) -> Row {
        let [cache, distinct] = [cache_bytes, distinct_bytes].map(format_size_about);
        let stats = &self.stats;
        let classes = CLASSES.iter().zip(&self.class_us).filter(|(_, us)| !us.is_empty());
        let class_us: Vec<(&str, f64)> = classes.map(|((name, _), us)| (*name, median(us))).collect();
        let row = Row::labelled(format!("{cache} for copies of {distinct}"))
            .keep("cache_bytes", cache_bytes)
            .median("seconds", &self.seconds)
            .median("uncached_seconds", &self.uncached_seconds)
            .speedup("uncached_to_cached", "seconds", "uncached_seconds")
            .show("hit_ratio", stats.hits as f64 / stats.gets as f64);
        let row = CLASSES.iter().zip(&self.class_us).skip(1).fold(row, |row, ((name, count), us)| {
            let part = 100.0 * count(stats) as f64 / stats.gets as f64;
            if us.is_empty() { row } else { row.show(&format!("{name}_percent"), part) }
        });
        let row = class_us.iter().fold(row, |row, (name, us)| row.show(&format!("{name}_us"), us));
        row.keep("stats", stats)
            .show("occupancy_last", self.occupancy.last())
            .against("hit_ratio", "occupancy_last")
            .keep("occupancy", &self.occupancy)
            .keep("class_us", class_us)
    }
}

/// The outcomes of a get, and the number of gets with each.
type Class = (&'static str, fn(&Stats) -> u64);

const CLASSES: [Class; 6] = [
    ("hit", |stats| stats.hits),
    ("partial", |stats| stats.partial),
    ("direct", |stats| stats.direct),
    ("conflicting", |stats| stats.conflicting),
    ("capacity", |stats| stats.capacity),
    ("failing", |stats| stats.failing),
];

/// The class of the only counted get.
fn class_of(counted: &Stats) -> Option<usize> {
    CLASSES.iter().position(|(_, count)| count(counted) == counted.gets.max(1))
}
