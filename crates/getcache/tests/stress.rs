//! Concurrent gets, fills, writes and invalidations: a hit returns bytes valid at some time during the get.

mod support;

use fastrand::Rng;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_getcache::{Ask, Fill, GetCache, Heap, Key, Limits, Outcome};

const SPACES: u32 = 3;
const BLOCKS: u32 = 24;
const BLOCK_BYTES: u32 = 512;
const THREADS: usize = 4;

const WAITING: u32 = 0;
const SERVED: u32 = 1;
const ABANDONED: u32 = 2;

/// The version of some bytes: the present one, and the last one announced to all.
#[derive(Default)]
struct Version {
    now: AtomicU32,
    told: AtomicU32,
}

struct World {
    cache: GetCache,
    versions: Vec<Version>,
    /// By thread, the state of its waiting get.
    waits: [AtomicU32; THREADS],
    run: String,
    joined: Mutex<u32>,
}

/// The word at an address, in a version.
fn word(space: u32, address: u64, version: u32) -> u64 {
    (u64::from(space) << 56 ^ u64::from(version) << 32 ^ address).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn write_words(bytes: &mut [u8], key: &Key, version: u32) {
    for (at, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&word(key.space, key.address + 8 * at as u64, version).to_ne_bytes());
    }
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Rng::with_seed(seed);
        let limits = Limits {
            chunk_bytes: 4096,
            chunks_max: random.u32(1..6),
            chunks_start: 1,
            entries_max: random.u32(8..200),
            entries_start: 4,
            len_max: 600,
            seed,
        };
        World {
            cache: GetCache::new(limits, Heap),
            versions: (0..SPACES * BLOCKS).map(|_| Version::default()).collect(),
            waits: Default::default(),
            run: format!("GET_CACHE_SEED={seed} cargo test -p vgasnet-getcache --test stress"),
            joined: Mutex::new(0),
        }
    }

    fn version(&self, key: &Key) -> &Version {
        &self.versions[(key.space * BLOCKS + key.address as u32 / BLOCK_BYTES) as usize]
    }

    /// Gets all or part of an object; the bytes must be of versions between now and the end of the get.
    fn get(&self, thread: usize, random: &mut Rng) {
        let block = random.u32(0..BLOCKS);
        let offset = random.u32(0..4) * 64;
        let fetch = 8 * random.u32(1..=(BLOCK_BYTES - offset) / 8);
        let skip = if random.bool() { 0 } else { 8 * random.u32(0..fetch / 8) };
        let len = 8 * random.u32(1..=(fetch - skip) / 8);
        let ask = Ask { skip, len, fetch, weight: 1.0, waiter: thread as u64 };
        let key = Key { space: random.u32(0..SPACES), target: 0, address: u64::from(block * BLOCK_BYTES + offset) };
        let asked = Key { address: key.address + u64::from(skip), ..key };
        let first = self.version(&key).told.load(Ordering::Acquire);
        let mut bytes = vec![0; len as usize];
        self.waits[thread].store(WAITING, Ordering::Release);
        // SAFETY: the bytes live until this function returns, and it waits until the waiter is handed back.
        match unsafe { self.cache.get(&key, &ask, bytes.as_mut_ptr()) } {
            Outcome::Hit => self.check(&asked, &bytes, first),
            Outcome::Joined => {
                *self.joined.lock().unwrap() += 1;
                while self.waits[thread].load(Ordering::Acquire) == WAITING {
                    std::thread::yield_now();
                }
                if self.waits[thread].load(Ordering::Acquire) == SERVED {
                    self.check(&asked, &bytes, first);
                }
            }
            Outcome::Miss { from, fill } => {
                self.check(&asked, &bytes[..from], first);
                let Some(fill) = fill else { return };
                assert!(fill.size() == fetch as usize && fill.first_missing() < fill.size());
                assert_eq!(from, fill.first_missing().saturating_sub(skip as usize));
                self.end(fill, &key, first, random);
            }
        }
    }

    /// Fetches bytes and fills the entry, in one of two ways, or abandons it.
    fn end(&self, fill: Fill, key: &Key, first: u32, random: &mut Rng) {
        // SAFETY: the place belongs to the fill, and these bytes are present.
        let head = unsafe { std::slice::from_raw_parts(fill.bytes().as_ptr(), fill.first_missing()) };
        self.check(key, head, first);
        // The head's version may be outdated by now: then the entry is too, and the fill is not cached.
        let version = self.version(key).now.load(Ordering::Acquire);
        let missing = Key { address: key.address + head.len() as u64, ..*key };
        let is_in_place = random.bool();
        let mut all = head.to_vec();
        all.resize(fill.size(), 0);
        if is_in_place {
            let (room, len) = fill.room();
            // SAFETY: the room belongs to the fill.
            write_words(unsafe { std::slice::from_raw_parts_mut(room.as_ptr(), len) }, &missing, version);
        } else {
            write_words(&mut all[fill.first_missing()..], &missing, version);
        }
        if random.u32(0..4) == 0 {
            std::thread::yield_now();
        }
        let tell = |waiter: u64, what| self.waits[waiter as usize].store(what, Ordering::Release);
        if random.u32(0..10) == 0 {
            self.cache.abandon(fill).for_each(|waiter| tell(waiter, ABANDONED));
        } else if is_in_place {
            self.cache.fill_in_place(fill).for_each(|waiter| tell(waiter, SERVED));
        } else {
            self.cache.fill(fill, &all).for_each(|waiter| tell(waiter, SERVED));
        }
    }

    /// Each word must be of a version present during the get.
    fn check(&self, key: &Key, bytes: &[u8], first: u32) {
        let last = self.version(key).now.load(Ordering::Acquire);
        for (at, chunk) in bytes.chunks_exact(8).enumerate() {
            let found = u64::from_ne_bytes(chunk.try_into().unwrap());
            let is_right = |version| found == word(key.space, key.address + 8 * at as u64, version);
            assert!((first..=last).any(is_right), "{}: {key:?} of {first} to {last}", self.run);
        }
    }

    fn change(&self, random: &mut Rng) {
        let space = random.u32(0..SPACES);
        let blocks = if random.u32(0..4) == 0 { 0..BLOCKS } else { random.u32(0..BLOCKS)..0 };
        let is_all = !blocks.is_empty();
        let blocks = if is_all { blocks } else { blocks.start..blocks.start + 1 };
        let cells = &self.versions[(space * BLOCKS + blocks.start) as usize..(space * BLOCKS + blocks.end) as usize];
        let new: Vec<u32> = cells.iter().map(|cell| cell.now.fetch_add(1, Ordering::AcqRel) + 1).collect();
        match random.u32(0..3) {
            0 if is_all => self.cache.forget(space),
            1 if is_all => self.cache.invalidate_target(space, 0),
            _ if is_all => self.cache.invalidate(space),
            _ => self.cache.drop_range(space, 0, u64::from(blocks.start * BLOCK_BYTES), u64::from(BLOCK_BYTES)),
        }
        cells.iter().zip(new).for_each(|(cell, new)| _ = cell.told.fetch_max(new, Ordering::AcqRel));
    }
}

fn run(seed: u64, steps: u32) -> (u64, u32) {
    let world = World::new(seed);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let world = &world;
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed ^ (thread as u64 + 1) << 40);
                for _ in 0..steps {
                    if random.u32(0..40) == 0 { world.change(&mut random) } else { world.get(thread, &mut random) }
                }
            });
        }
    });
    let stats = world.cache.stats();
    let classes = [
        stats.hits,
        stats.partial,
        stats.joined,
        stats.direct,
        stats.conflicting,
        stats.capacity,
        stats.failing,
        stats.dormant,
    ];
    assert_eq!(stats.gets, classes.iter().sum::<u64>(), "{}", world.run);
    let joined = *world.joined.lock().unwrap();
    assert_eq!(stats.joined, u64::from(joined), "{}", world.run);
    (stats.hits, joined)
}

#[test]
fn hits_are_right_while_threads_write_and_invalidate() {
    let seeds = std::env::var("GET_CACHE_SEED").map(|seed| seed.parse().expect("a number"));
    let seeds = seeds.map_or(0..if cfg!(miri) { 1 } else { 30 }, |seed: u64| seed..seed + 1);
    let steps = if cfg!(miri) { 100 } else { 10_000 };
    let counts: Vec<_> = seeds.map(|seed| run(seed, steps)).collect();
    let sums = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    assert!(cfg!(miri) || counts.len() < 10 || (sums.0 > 10_000 && sums.1 > 100), "{sums:?}");
}

/// Memory that refuses every request.
struct Refusing(std::sync::Arc<AtomicU32>);

// SAFETY: it returns no memory.
unsafe impl vgasnet_getcache::Memory for Refusing {
    fn allocate(&mut self, _bytes: usize) -> Option<std::ptr::NonNull<u8>> {
        None
    }

    fn free(&mut self, _chunk: std::ptr::NonNull<u8>, _bytes: usize) {}

    fn on_refused(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_cache_without_memory_is_off_and_says_so_once() {
    let told = std::sync::Arc::new(AtomicU32::new(0));
    let limits = Limits {
        chunk_bytes: 4096,
        chunks_max: 4,
        chunks_start: 1,
        entries_max: 64,
        entries_start: 4,
        len_max: 600,
        seed: 1,
    };
    let cache: GetCache<Refusing> = GetCache::new(limits, Refusing(told.clone()));
    support::expect_off(&cache, &told);
}
