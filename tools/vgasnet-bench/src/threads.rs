//! Concurrent misses: threads load from pages in random order, each page from the disk. The baseline is plain reads of
//! the same number of pages with many in flight.

use crate::disk::{Buffers, PlainFile, Step};
use crate::plan::Spec;
use crate::rank::{Rank, fail, leave_alternate_stack};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use vgasnet_measuring::progress;
use xxhash_rust::xxh3::xxh3_64;

/// The pages loaded from, in pools: most of them displace another one.
pub const DATA_POOLS: u64 = 4;

/// Measurements of rank 0 by round.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Found {
    pub loads: u64,
    pub threads: Vec<Loads>,
    pub plain_seconds_each: Vec<f64>,
    pub plain_in_flight: usize,
    pub plain_is_direct: bool,
}

/// Time of a number of threads for one load of each page.
#[derive(Debug, Serialize, Deserialize)]
pub struct Loads {
    pub threads: u32,
    pub seconds_each: Vec<f64>,
    /// Of all processors together.
    pub processor_seconds_each: Vec<f64>,
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let pages = spec.data_bytes / rank.page_bytes as u64;
    // Whole pages are written, since reads of unwritten blocks do not reach the disk.
    let mut bytes = vec![0; rank.page_bytes];
    for page in 0..pages {
        bytes.fill(page as u8);
        let at = in_page(rank, page);
        bytes[at..at + 8].copy_from_slice(&word(spec, page).to_le_bytes());
        rank.put(0, page * rank.page_bytes as u64, &bytes);
    }
    rank.write_back();
    let mut plain = PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::LargePages);
    let mut found = Found {
        loads: pages,
        threads: spec
            .threads
            .iter()
            .map(|&threads| Loads { threads, seconds_each: Vec::new(), processor_seconds_each: Vec::new() })
            .collect(),
        plain_in_flight: PlainFile::IN_FLIGHT_MAX,
        plain_is_direct: plain.is_direct,
        ..Found::default()
    };
    let mut random = fastrand::Rng::with_seed(spec.seed);
    let mut order: Vec<u64> = (0..pages).collect();
    let bar = progress::bar(true, "threads", u64::from(spec.repeat) * (1 + spec.threads.len() as u64));
    for _ in 0..spec.repeat {
        random.shuffle(&mut order);
        let page_bytes = rank.page_bytes;
        let step =
            |&page: &u64| Step { is_write: false, offset_bytes: page * page_bytes as u64, len_bytes: page_bytes };
        let taken = plain.side_by_side(order.iter().map(step));
        found.plain_seconds_each.push(taken.unwrap_or_else(|error| fail(format!("reading plainly: {error}"))));
        bar.inc(1);
        for loads in &mut found.threads {
            random.shuffle(&mut order);
            rank.empty_pool();
            let before = processor_seconds();
            loads.seconds_each.push(load_all(rank, spec, &order, loads.threads));
            loads.processor_seconds_each.push(processor_seconds() - before);
            bar.inc(1);
        }
    }
    found
}

/// Loads once from each page in this order, with this number of threads. Returns seconds.
fn load_all(rank: &Rank, spec: &Spec, order: &[u64], threads: u32) -> f64 {
    let next = AtomicUsize::new(0);
    let segment = rank.own_segment().expose_provenance();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                leave_alternate_stack();
                while let Some(&page) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = segment + offset(rank, page) as usize;
                    // SAFETY: the word is aligned and lies in this rank's segment. It is not written meanwhile.
                    let found = unsafe { std::ptr::with_exposed_provenance::<u64>(at).read_volatile() };
                    if found != word(spec, page) {
                        fail(format!("page {page} has {found:#x} where {:#x} was written", word(spec, page)));
                    }
                }
            });
        }
    });
    start.elapsed().as_secs_f64()
}

/// Processor time used by this process on all processors together, in seconds.
fn processor_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap_or_else(|error| fail(format!("getrusage: {error}")));
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// The word in a page.
fn word(spec: &Spec, page: u64) -> u64 {
    xxh3_64(&[spec.seed.to_le_bytes(), page.to_le_bytes()].concat())
}

/// Its place in the segment.
fn offset(rank: &Rank, page: u64) -> u64 {
    page * rank.page_bytes as u64 + in_page(rank, page) as u64
}

/// Its place in the page, which differs from page to page.
fn in_page(rank: &Rank, page: u64) -> usize {
    (page * 4160 % rank.page_bytes as u64 / 8 * 8) as usize
}
