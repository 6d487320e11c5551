//! What hits and misses cost: `cargo run --release -p vgasnet-getcache --example measure`. Medians of rounds, which alternate with a copy
//! of the same bytes.

use std::hint::black_box;
use std::time::Instant;
use vgasnet_getcache::{Ask, GetCache, Heap, Key, Limits, Outcome};

const ROUNDS: usize = 31;

fn cache(chunks_max: u32) -> GetCache {
    let limits = Limits {
        chunk_bytes: 1 << 20,
        chunks_max,
        chunks_start: chunks_max,
        entries_max: 1 << 17,
        entries_start: 1 << 10,
        len_max: 64 << 10,
        seed: 1,
    };
    GetCache::new(limits, Heap)
}

fn key(at: u64, bytes: usize) -> Key {
    Key { space: 1, target: (at % 7) as u32, address: at * bytes as u64 }
}

fn get(cache: &GetCache, key: &Key, dest: &mut [u8]) -> bool {
    // SAFETY: one thread, so no get joins another.
    match unsafe { cache.get(key, &Ask::all(dest.len(), 1.0, 0), dest.as_mut_ptr()) } {
        Outcome::Miss { fill: Some(fill), .. } => _ = cache.fill(fill, dest),
        Outcome::Miss { .. } => {}
        _ => return true,
    }
    false
}

/// Nanoseconds that one of so many calls takes.
fn time(count: u64, mut call: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (0..count).for_each(&mut call);
    start.elapsed().as_nanos() as f64 / count as f64
}

/// The least and the median.
fn times(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[0], times[times.len() / 2])
}

/// A number that looks random.
fn scatter(at: u64, end: u64) -> u64 {
    ((u128::from(at.wrapping_mul(0x9E37_79B9_7F4A_7C15)) * u128::from(end)) >> 64) as u64
}

fn hits(bytes: usize, objects: u64) {
    let cache = cache(64);
    let source = vec![1u8; objects as usize * bytes.next_multiple_of(64)];
    let mut dest = vec![0u8; bytes];
    (0..objects).for_each(|at| _ = get(&cache, &key(at, bytes), &mut dest));
    let (mut hits, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        hits.push(time(20_000, |at| _ = black_box(get(&cache, &key(scatter(at, objects), bytes), &mut dest))));
        copies.push(time(20_000, |at| {
            let from = scatter(at, objects) as usize * bytes.next_multiple_of(64);
            dest.copy_from_slice(black_box(&source[from..from + bytes]));
            black_box(&mut dest);
        }));
    }
    let stats = cache.stats();
    assert!(stats.hits * 1000 > (stats.gets - objects) * 999, "nearly all hit: {stats:?}");
    let ((least, hit), (_, copy)) = (times(hits), times(copies));
    println!(
        "hit of {bytes:>5} bytes, one of {objects:>6} objects: {hit:>7.1} ns (least {least:>7.1}), copy {copy:>7.1} ns, {:.2} of it",
        copy / hit
    );
}

fn misses(bytes: usize, chunks: u32) {
    let mut dest = vec![0u8; bytes];
    let mut rounds = Vec::new();
    let cache = cache(chunks);
    let mut at = 0;
    for _ in 0..ROUNDS {
        rounds.push(time(3_000, |_| {
            at += 1;
            // Each key twice, so that the cache does not go dormant.
            get(&cache, &key(at / 2, bytes), &mut dest);
        }));
    }
    let stats = cache.stats();
    println!(
        "get of {bytes:>5} bytes, each twice, {chunks:>2} MiB: {:>7.1} ns ({} hits, {} direct, {} capacity, {} failing)",
        times(rounds).1,
        stats.hits,
        stats.direct,
        stats.capacity,
        stats.failing
    );
}

fn main() {
    for (bytes, objects) in [(8, 1), (8, 1_000), (8, 100_000), (64, 1_000), (4096, 1), (4096, 500), (4096, 10_000)] {
        hits(bytes, objects);
    }
    for (bytes, chunks) in [(8, 64), (4096, 64), (8, 1), (4096, 1)] {
        misses(bytes, chunks);
    }
}
