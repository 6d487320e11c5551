//! Cost of hits and misses: `cargo bench -p vgasnet-getcache --bench hits -- [--json] [--all]`.
//!
//! Hits are on random objects, compared with copies from equally random places in memory of the same size. Nanoseconds
//! of thread CPU time per get, minimum over rounds; rounds of hits and copies alternate.

use std::hint::black_box;
use std::sync::Barrier;
use vgasnet_getcache::{Ask, GetCache, Heap, Key, Limits, Memory, Outcome};

const ROUNDS: usize = 7;
const GETS: usize = 100_000;

fn cache(memory_bytes: usize, entries: u32) -> GetCache {
    let chunks = (memory_bytes.div_ceil(4 << 20) as u32).max(1);
    let limits = Limits {
        chunk_bytes: 4 << 20,
        chunks_max: chunks,
        chunks_start: chunks,
        entries_max: entries + entries / 8,
        entries_start: entries,
        len_max: 64 << 10,
        seed: 1,
    };
    GetCache::new(limits, Heap)
}

fn key(object: u32) -> Key {
    Key { space: 1, target: object % 7, address: u64::from(object) << 12 }
}

/// Returns whether the get hit. A miss is cached, without a fetch.
fn get(cache: &GetCache, object: u32, dest: &mut [u8]) -> bool {
    // SAFETY: no get joins another: one thread at a time gets missing bytes.
    match unsafe { cache.get(&key(object), &Ask::all(dest.len(), 1.0, 0), dest.as_mut_ptr()) } {
        Outcome::Hit => return true,
        Outcome::Miss { fill: Some(fill), .. } => {
            let (room, len) = fill.room();
            // SAFETY: the room belongs to the fill.
            unsafe { room.write_bytes(1, len) };
            _ = cache.fill_in_place(fill);
        }
        _ => {}
    }
    false
}

fn draws(objects: u32, seed: u64) -> Vec<u32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..GETS).map(|_| random.u32(0..objects)).collect()
}

/// CPU time of this thread, in nanoseconds.
fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Time per call in `threads` concurrent threads; the slowest thread counts.
fn time(threads: usize, calls: usize, work: impl Fn(usize) + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let run = |thread: usize| {
        barrier.wait();
        let start = now();
        work(thread);
        (now() - start) / calls as f64
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        others.into_iter().map(|other| other.join().unwrap()).fold(run(0), f64::max)
    })
}

struct Report(Vec<serde_json::Value>);

impl Report {
    fn add(&mut self, what: &str, bytes: usize, objects: u32, threads: usize, ns: f64, copy_ns: Option<f64>) {
        let ratio = copy_ns.map(|copy| copy / ns);
        let compared = copy_ns.map_or(String::new(), |copy| format!(", copy {copy:>6.1} ns: {:.2} x", copy / ns));
        eprintln!("{what:<9} {bytes:>5} bytes, {objects:>7} objects, {threads} threads: {ns:>7.1} ns{compared}");
        self.0.push(serde_json::json!({
            "what": what, "bytes": bytes, "objects": objects, "threads": threads, "ns": ns, "copy_ns": copy_ns, "ratio": ratio
        }));
    }
}

fn hits(report: &mut Report, bytes: usize, objects: u32) {
    let stride = bytes.next_multiple_of(64);
    let cache = cache(objects as usize * stride, objects);
    let mut dest = vec![0; bytes];
    (0..objects).for_each(|object| _ = get(&cache, object, &mut dest));
    let source = Heap.allocate(objects as usize * stride).expect("memory");
    // SAFETY: the allocation has this many bytes, initialised to zeros.
    let places = unsafe { std::slice::from_raw_parts_mut(source.as_ptr(), objects as usize * stride) };
    places.fill(1);
    let places = &*places;
    for threads in [1, 2] {
        let draws = [draws(objects, 1), draws(objects, 2)];
        let (mut hit, mut copy) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            hit = hit.min(time(threads, GETS, |thread| {
                let mut dest = vec![0; bytes];
                draws[thread].iter().for_each(|object| _ = black_box(get(&cache, *object, &mut dest)));
            }));
            copy = copy.min(time(threads, GETS, |thread| {
                let mut dest = vec![0; bytes];
                for object in &draws[thread] {
                    let at = *object as usize * stride;
                    black_box(&mut dest).copy_from_slice(&places[at..at + bytes]);
                }
            }));
        }
        report.add("hit", bytes, objects, threads, hit, Some(copy));
    }
    let stats = cache.stats();
    assert!((stats.gets - stats.hits - u64::from(objects)) * 1000 < stats.gets, "nearly all hit: {stats:?}");
    Heap.free(source, objects as usize * stride);
}

/// Misses, with room or with evictions. Each is followed by a hit, so that the cache does not go dormant; the hit is
/// included in the time.
fn misses(report: &mut Report, what: &str, bytes: usize, objects: u32) {
    let mut dest = vec![0; bytes];
    let cache = cache(objects as usize * bytes.next_multiple_of(64), objects);
    let mut random = fastrand::Rng::with_seed(1);
    let (mut least, mut at) = (f64::INFINITY, 0);
    let mut run = |calls: u32, draw: &mut dyn FnMut() -> u32| {
        let before = cache.stats();
        let ns = time_once(calls as usize, || {
            let object = draw();
            get(&cache, object, &mut dest);
            get(&cache, if object % 2 == 0 { object } else { 0 }, &mut dest);
        });
        let after = cache.stats();
        assert_eq!((after.dormant, after.joined), (0, 0));
        ns * f64::from(calls) / (after.gets - after.hits - (before.gets - before.hits)) as f64
    };
    for _ in 0..ROUNDS {
        let ns = if what == "direct" {
            // All tables are resident from the second round on.
            cache.forget(1);
            run(objects, &mut || {
                at = (at + 1) % objects;
                at
            })
        } else {
            run(objects, &mut || random.u32(0..2 * objects))
        };
        least = least.min(ns);
    }
    report.add(what, bytes, objects, 1, least, None);
}

fn time_once(calls: usize, mut call: impl FnMut()) -> f64 {
    let start = now();
    (0..calls).for_each(|_| call());
    (now() - start) / calls as f64
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let is_asked = |name: &str| args.iter().any(|arg| arg == name);
    let mut report = Report(Vec::new());
    let sizes = [1_000, 10_000, 100_000, 1_000_000];
    for objects in sizes {
        hits(&mut report, 8, objects);
    }
    for objects in &sizes[..if is_asked("--all") { 4 } else { 3 }] {
        hits(&mut report, 4096, *objects);
    }
    for (bytes, objects) in [(8, 10_000), (8, 1_000_000), (4096, 1_000), (4096, 100_000)] {
        ["direct", "evicting"].into_iter().for_each(|what| misses(&mut report, what, bytes, objects));
    }
    if is_asked("--json") {
        println!("{}", serde_json::Value::Array(report.0));
    }
}
