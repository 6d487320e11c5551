//! The measurements of rank 0.

use super::keys::{Key, Places, draws, is_right};
use super::{Class, Drawn, Found, Latency, Orders, RANKS, Sizes};
use crate::baseline::median;
use crate::calls;
use crate::calls::readonly::{ReadOnly, Stats, stats};
use crate::plan::Spec;
use crate::rank::{Rank, fail};
use std::hint::black_box;
use std::time::Instant;
use vgasnet_measuring::memory::Memory;
use vgasnet_measuring::progress;
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
    orders: &'a Orders,
    keys: Vec<Key>,
    draws: Vec<usize>,
    scan: Vec<Key>,
    random: fastrand::Rng,
    buffer: Memory,
}

/// The time of a call, in microseconds.
fn us(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6
}

impl<'a> Measuring<'a> {
    pub fn new(rank: &'a Rank, spec: &'a Spec, orders: &'a Orders) -> Measuring<'a> {
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

    pub fn run(mut self) -> Found {
        let distinct_bytes = self.keys.iter().map(|key| key.size_bytes as u64).sum();
        let bar = progress::bar(true, "gets", u64::from(self.spec.repeat));
        let (mut sizes, mut drawn) = (None, None);
        match self.orders.cache_bytes {
            None => sizes = Some(self.sizes(&bar)),
            Some(cache_bytes) => drawn = Some(self.drawn(cache_bytes, &bar)),
        }
        Found { distinct_bytes, sizes, drawn }
    }

    fn sizes(&mut self, bar: &ProgressBar) -> Sizes {
        let mut sizes: Vec<usize> = self.keys.iter().map(|key| key.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut latencies: Vec<Latency> = sizes.into_iter().map(latency).collect();
        let (mut scan_seconds_each, mut uncached_scan_seconds_each) = (Vec::new(), Vec::new());
        for _ in 0..self.spec.repeat {
            self.latencies(&mut latencies);
            uncached_scan_seconds_each.push(self.scan());
            let open = self.open();
            scan_seconds_each.push(self.scan());
            drop(open);
            bar.inc(1);
        }
        Sizes { latencies, scan_seconds_each, uncached_scan_seconds_each }
    }

    fn drawn(&mut self, cache_bytes: u64, bar: &ProgressBar) -> Drawn {
        let mut drawn = Drawn {
            cache_bytes,
            seconds_each: Vec::new(),
            uncached_seconds_each: Vec::new(),
            stats: Stats::default(),
            occupancy: Vec::new(),
            class_us: Vec::new(),
        };
        for _ in 0..self.spec.repeat {
            self.draw(&mut drawn);
            bar.inc(1);
        }
        drawn
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
    fn latencies(&mut self, latencies: &mut [Latency]) {
        let mut order: Vec<Key> = self.keys.clone();
        let mut uncached: Vec<Vec<f64>> = latencies.iter().map(|_| Vec::new()).collect();
        let mut misses = uncached.clone();
        let place = |sizes: &[Latency], key: &Key| sizes.partition_point(|latency| latency.size_bytes < key.size_bytes);
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
        for (at, latency) in latencies.iter_mut().enumerate() {
            latency.uncached_us_each.push(median(&uncached[at]));
            latency.miss_us_each.push(median(&misses[at]));
            let is_same = |key: &Key| key.size_bytes == latency.size_bytes;
            let here: Vec<Key> = order.iter().copied().filter(|key| is_same(key) && self.is_hit(key)).collect();
            // Of rare sizes all pages may have moved to rank 0's pool.
            if !here.is_empty() {
                latency.hit_ns_each.push(self.hits(&here));
                latency.copy_ns_each.push(self.copies(&here));
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
    fn draw(&mut self, drawn: &mut Drawn) {
        let order: Vec<Key> = self.draws.iter().map(|at| self.keys[*at]).collect();
        let taken = us(|| order.iter().for_each(|key| self.get(key)));
        drawn.uncached_seconds_each.push(taken / 1e6);
        let open = self.open();
        let (first, mut before, mut all_us) = (stats(), stats(), 0.0);
        let mut class_us: Vec<Vec<f64>> = Class::ALL.map(|_| Vec::new()).into();
        drawn.occupancy.clear();
        for (at, key) in order.iter().enumerate() {
            let taken = us(|| self.get(key));
            all_us += taken;
            let now = stats();
            if let Some(class) = class_of(&(now - before)) {
                class_us[class].push(taken);
            }
            before = now;
            if (at + 1) % order.len().div_ceil(LOOKS) == 0 {
                drawn.occupancy.push(now.bytes_used as f64 / drawn.cache_bytes as f64);
            }
        }
        drawn.stats = stats() - first;
        drop(open);
        drawn.seconds_each.push(all_us / 1e6);
        let medians = Class::ALL.into_iter().zip(&class_us).filter(|(_, us_each)| !us_each.is_empty());
        drawn.class_us = medians.map(|(class, us_each)| (class, median(us_each))).collect();
    }
}

/// The class of the only counted get.
fn class_of(counted: &Stats) -> Option<usize> {
    Class::ALL.iter().position(|class| class.count(counted) == counted.gets.max(1))
}

fn latency(size_bytes: usize) -> Latency {
    Latency {
        size_bytes,
        uncached_us_each: Vec::new(),
        miss_us_each: Vec::new(),
        hit_ns_each: Vec::new(),
        copy_ns_each: Vec::new(),
    }
}
