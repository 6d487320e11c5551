//! Concurrent misses: threads load from pages in random order, each page from the disk. The baseline is plain reads of
//! the same number of pages with many in flight.

use super::Fault;
use crate::Stop;
use crate::disk::{Buffers, PlainFile, Step};
use crate::prelude::*;
use crate::rank::leave_alternate_stack;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use std::sync::atomic::{AtomicUsize, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// The pages loaded from, in pools: most of them displace another one.
const DATA_POOLS: u64 = 4;

pub fn job(options: &Fault, setup: &Setup) -> Result<Job, Stop> {
    let threads_max = options.threads.iter().copied().max().unwrap_or(1);
    // With two frames each, threads are guaranteed to progress.
    let job = Job::new(options, 1, setup)?.with_frames((2 * u64::from(threads_max)).max(FRAMES_MIN))?;
    let data_bytes = DATA_POOLS * job.config.pool_bytes;
    Ok(job.with_data(data_bytes, 1))
}

/// The time of each number of threads for one load of each page, by round.
pub fn measure(threads: &[u32], rank: &Rank, spec: &Spec) -> Figures {
    let pages = spec.data_bytes / rank.page_bytes as u64;
    // Whole pages are written, since reads of unwritten blocks do not reach the disk.
    rank.fill(0, spec.data_bytes, |offset, bytes| {
        let page = offset / rank.page_bytes as u64;
        let at = in_page(rank, page);
        bytes.fill(page as u8);
        bytes[at..at + 8].copy_from_slice(&word(spec, page).to_le_bytes());
    });
    rank.write_back();
    let mut plain = PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::LargePages);
    let label = |threads: u32| format!("{threads} {}", if threads == 1 { "thread" } else { "threads" });
    let row = |threads: &u32| Row::labelled(label(*threads)).keep("threads", threads);
    let (mut plain_row, mut rows): (Row, Vec<Row>) = (Row::default(), threads.iter().map(row).collect());
    let mut random = fastrand::Rng::with_seed(spec.seed);
    let mut order: Vec<u64> = (0..pages).collect();
    let bar = progress::bar(true, "threads", u64::from(spec.repeat) * (1 + threads.len() as u64));
    for _ in 0..spec.repeat {
        random.shuffle(&mut order);
        let len_bytes = rank.page_bytes;
        let step = |&page: &u64| Step { is_write: false, offset_bytes: page * len_bytes as u64, len_bytes };
        let seconds = plain.side_by_side(order.iter().map(step));
        plain_row.add("plain_seconds", seconds.unwrap_or_else(|error| fail(format!("reading plainly: {error}"))));
        bar.inc(1);
        for (threads, row) in threads.iter().zip(&mut rows) {
            random.shuffle(&mut order);
            rank.empty_pool();
            let before = processor_seconds();
            row.add("seconds", load_all(rank, spec, &order, *threads));
            row.add("processor_seconds", processor_seconds() - before);
            bar.inc(1);
        }
    }
    let plain_rate = pages as f64 / plain_row.number("plain_seconds");
    let rows: Vec<Row> = rows.into_iter().map(|row| compared(row, pages, plain_rate)).collect();
    // At least as many threads as plain reads in flight come near plain reads.
    let most = threads.iter().zip(&rows).max_by_key(|(threads, _)| **threads);
    let most = most.filter(|(threads, _)| **threads as usize >= PlainFile::IN_FLIGHT_MAX);
    let to_plain = most.map(|(_, row)| row.number("to_plain"));
    let row = plain_row
        .show("plain_pages_per_second", plain_rate)
        .show("plain_in_flight", PlainFile::IN_FLIGHT_MAX)
        .rows("threads", rows);
    Figures::of(row).with_direct(plain.is_direct).target(
        "threads_to_plain",
        "loads of most threads to plain reads",
        to_plain,
        Bound::AtLeast,
        0.7,
    )
}

/// The row of a number of threads, with its rate beside plain reads'.
fn compared(row: Row, pages: u64, plain_rate: f64) -> Row {
    let rate = |name: &str| pages as f64 / row.number(name);
    let (own, processor_us) = (rate("seconds"), 1e6 / rate("processor_seconds"));
    let row = row
        .hide(&["seconds", "processor_seconds"])
        .show("pages_per_second", own)
        .show("processor_us_each", processor_us);
    let row = row.keep("plain_pages_per_second", plain_rate);
    row.ratio("to_plain", "pages_per_second", "plain_pages_per_second")
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
