//! Sequential reads of 4 MiB pages from the backing file, as ratios to a plain loop of `O_DIRECT` `pread`s over the
//! same file. The command is `cargo bench --bench storage`. The directory is `VGASNET_STORAGE_DIR`, else `/var/tmp`.
//!
//! Each row is the median of its rounds. A round runs every row once, and successive rounds start with different rows,
//! so a slow phase of the disk affects all rows alike. All rows fill the same frames round robin: a single frame would
//! stay in the processor's cache, which would speed up a virtual disk that copies.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::time::Instant;
use vgasnet_storage::{BackingFile, FileSlot, IoDirection, IoOperation, RingStorage, Storage, ThreadStorage};

const PAGE_BYTES: usize = 4 << 20;
const PAGES: u64 = 192;
const ROUNDS: usize = 9;
const FRAMES: usize = 16;
const DEPTHS: [usize; 4] = [1, 2, 4, 8];

/// Memory for [`FRAMES`] pages, shared between processes like a pool. It is never unmapped.
#[derive(Clone, Copy)]
struct Frames(*mut u8);

impl Frames {
    fn new() -> Frames {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a mapping at an address chosen by the kernel replaces nothing.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), FRAMES * PAGE_BYTES, protection, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        // SAFETY: the mapping has this length and no other user yet.
        unsafe { memory.write_bytes(0x5A, FRAMES * PAGE_BYTES) };
        Frames(memory.cast())
    }

    /// Returns the memory to the system. Afterwards it is zeros and not resident.
    fn forget(self) {
        // SAFETY: the range is this mapping. No operation is in flight on it.
        let forgotten = unsafe { libc::madvise(self.0.cast(), FRAMES * PAGE_BYTES, libc::MADV_REMOVE) };
        assert_eq!(forgotten, 0, "{}", std::io::Error::last_os_error());
    }

    fn frame(self, index: usize) -> *mut u8 {
        assert!(index < FRAMES);
        self.0.wrapping_add(index * PAGE_BYTES)
    }
}

/// Sleeps until `storage` has a completion.
fn sleep(storage: &dyn Storage) {
    let descriptor = storage.doorbell().expect("storage on a file has a doorbell").as_raw_fd();
    let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: `entry` is one entry and outlives the call.
    unsafe { libc::poll(&mut entry, 1, -1) };
}

/// Moves every page of the file once, with as many operations in flight as `storage` accepts.
fn scan(storage: &mut dyn Storage, frames: Frames, is_write: bool) {
    let mut idle: VecDeque<usize> = (0..FRAMES).collect();
    let mut next = 0;
    while next < PAGES || storage.in_flight() > 0 {
        while next < PAGES {
            let Some(&frame) = idle.front() else { break };
            let (offset_bytes, memory) = (next * PAGE_BYTES as u64, frames.frame(frame));
            let direction = if is_write { IoDirection::Write } else { IoDirection::Read };
            let operation = IoOperation {
                file: FileSlot::BACKING,
                direction,
                offset_bytes,
                memory,
                len_bytes: PAGE_BYTES,
                token: frame as u64,
                is_urgent: true,
            };
            // SAFETY: a frame is a page long and stays mapped. It is idle, and is not used again before its operation
            // completes below.
            let started = unsafe { storage.start(operation) };
            if started.is_err() {
                break;
            }
            idle.pop_front();
            next += 1;
        }
        sleep(storage);
        storage.poll(&mut |frame, result| {
            result.expect("the disk works");
            idle.push_back(frame as usize);
        });
    }
}

/// The baseline.
fn scan_plainly(file: &File, frames: Frames) {
    for page in 0..PAGES {
        let memory = frames.frame(page as usize % FRAMES);
        let offset = (page * PAGE_BYTES as u64) as libc::off_t;
        // SAFETY: the frame is a page long. No other code uses it.
        let moved = unsafe { libc::pread(file.as_raw_fd(), memory.cast(), PAGE_BYTES, offset) };
        assert_eq!(moved, PAGE_BYTES as isize, "{}", std::io::Error::last_os_error());
    }
}

/// A way to read all pages once.
struct Row {
    name: String,
    run: Box<dyn FnMut()>,
    seconds: Vec<f64>,
    cpu_seconds: Vec<f64>,
}

fn row(name: String, run: impl FnMut() + 'static) -> Row {
    Row { name, run: Box::new(run), seconds: Vec::new(), cpu_seconds: Vec::new() }
}

fn scanning(mut storage: Box<dyn Storage>, frames: Frames, name: String) -> Row {
    row(name, move || scan(&mut *storage, frames, false))
}

/// Microseconds for one page: the whole read, and the call that starts it.
type Cost = (f64, f64);

/// The cost of the first use of a frame. Each round starts with untouched memory.
#[derive(Default)]
struct FirstUse {
    first_unpinned: Vec<Cost>,
    again_unpinned: Vec<Cost>,
    first_pinned: Vec<Cost>,
    again_pinned: Vec<Cost>,
    touched_pinned: Vec<Cost>,
}

/// Reads as many pages as there are frames, one after the other.
fn read_each(ring: &mut RingStorage, frames: Frames) -> Cost {
    let (begin, mut call_seconds) = (Instant::now(), 0.0);
    for frame in 0..FRAMES {
        let start = Instant::now();
        let (offset_bytes, memory) = ((frame * PAGE_BYTES) as u64, frames.frame(frame));
        let read = IoOperation {
            file: FileSlot::BACKING,
            direction: IoDirection::Read,
            offset_bytes,
            memory,
            len_bytes: PAGE_BYTES,
            token: 0,
            is_urgent: true,
        };
        // SAFETY: the frame is a page long and stays mapped. Its operation completes before any other use of the frame.
        unsafe { ring.start(read) }.expect("nothing is in flight");
        call_seconds += start.elapsed().as_secs_f64();
        while ring.in_flight() > 0 {
            sleep(ring);
            ring.poll(&mut |_, result| result.expect("the disk works"));
        }
    }
    let per_page = 1e6 / FRAMES as f64;
    (begin.elapsed().as_secs_f64() * per_page, call_seconds * per_page)
}

/// Measures one operation at a time; `None` without io_uring.
fn first_use(file: &BackingFile) -> Option<FirstUse> {
    let frames = Frames::new();
    let mut costs = FirstUse::default();
    let ring = |is_pinned: bool| {
        let mut ring = RingStorage::new(file.try_clone().expect("a descriptor"), 1).ok()?;
        if is_pinned {
            ring.register(&[(frames.frame(0), FRAMES * PAGE_BYTES)], PAGE_BYTES, |line| println!("{line}"));
        }
        Some(ring)
    };
    for _ in 0..ROUNDS {
        frames.forget();
        let mut unpinned = ring(false)?;
        costs.first_unpinned.push(read_each(&mut unpinned, frames));
        costs.again_unpinned.push(read_each(&mut unpinned, frames));
        costs.touched_pinned.push(read_each(&mut ring(true)?, frames));
        frames.forget();
        let mut pinned = ring(true)?;
        costs.first_pinned.push(read_each(&mut pinned, frames));
        costs.again_pinned.push(read_each(&mut pinned, frames));
    }
    Some(costs)
}

fn print_first_use(costs: &FirstUse) {
    let lines = [
        ("untouched, not pinned", &costs.first_unpinned),
        ("untouched, pinned now", &costs.first_pinned),
        ("touched, not pinned", &costs.again_unpinned),
        ("touched, pinned now", &costs.touched_pinned),
        ("pinned before", &costs.again_pinned),
    ];
    let medians = |costs: &[Cost]| {
        let (mut totals, mut calls): (Vec<f64>, Vec<f64>) = costs.iter().copied().unzip();
        (median(&mut totals), median(&mut calls))
    };
    let (pinned, _) = medians(&costs.again_pinned);
    println!("\nFirst use of a frame, depth 1, a page; ratios to a read into a frame that was pinned before");
    println!("{:<26} {:>8} {:>12} {:>14} {:>10}", "", "us", "ratio", "us in the call", "ratio");
    for (name, costs) in lines {
        let (total, call) = medians(costs);
        println!("{name:<26} {total:>8.0} {:>12.2} {call:>14.0} {:>10.2}", total / pinned, call / pinned);
    }
}

/// One row for each kind of storage and depth. All read the same file, since speed varies over a disk.
fn rows(file: &BackingFile) -> Vec<Row> {
    for line in file.warnings() {
        println!("{line}");
    }
    let frames = Frames::new();
    let again = || file.try_clone().expect("a descriptor");
    // Reads of unwritten blocks would not reach the disk.
    scan(&mut ThreadStorage::new(again(), 1).expect("threads"), frames, true);
    let descriptor = File::from(file.as_fd().try_clone_to_owned().expect("a descriptor"));
    let mut rows = vec![row("plain pread".into(), move || scan_plainly(&descriptor, frames))];
    for (depth, is_pinned) in DEPTHS.into_iter().flat_map(|depth| [(depth, false), (depth, true)]) {
        let mut ring = match RingStorage::new(again(), depth) {
            Ok(ring) => ring,
            Err(refused) => {
                println!("no io_uring: {}", refused.error);
                break;
            }
        };
        if is_pinned {
            ring.register(&[(frames.frame(0), FRAMES * PAGE_BYTES)], PAGE_BYTES, |line| println!("{line}"));
        }
        let name = format!("io_uring{}, depth {depth}", if is_pinned { " pinned" } else { "" });
        rows.push(scanning(Box::new(ring), frames, name));
    }
    for depth in DEPTHS {
        let threads = ThreadStorage::new(again(), depth).expect("threads");
        rows.push(scanning(Box::new(threads), frames, format!("threads, depth {depth}")));
    }
    rows
}

fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("own usage");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let dir = std::env::var_os("VGASNET_STORAGE_DIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let file = BackingFile::create(&dir, PAGES * PAGE_BYTES as u64).unwrap_or_else(|error| panic!("{error}"));
    let mut rows = rows(&file);
    let count = rows.len();
    for round in 0..ROUNDS {
        for turn in 0..count {
            let row = &mut rows[(round + turn) % count];
            let (start, cpu) = (Instant::now(), cpu_seconds());
            (row.run)();
            row.seconds.push(start.elapsed().as_secs_f64());
            row.cpu_seconds.push(cpu_seconds() - cpu);
        }
    }
    let total_bytes = (PAGES * PAGE_BYTES as u64) as f64;
    let results: Vec<(f64, f64)> =
        rows.iter_mut().map(|row| (median(&mut row.seconds), median(&mut row.cpu_seconds))).collect();
    println!("{PAGES} pages of 4 MiB in {}; ratios to the plain loop", dir.display());
    println!("{:<26} {:>8} {:>12} {:>10}", "", "GB/s", "throughput", "CPU time");
    for (row, (seconds, cpu)) in rows.iter().zip(&results) {
        let (ratio, cpu_ratio) = (results[0].0 / seconds, cpu / results[0].1);
        println!("{:<26} {:>8.2} {:>12.2} {:>10.2}", row.name, total_bytes / seconds / 1e9, ratio, cpu_ratio);
    }
    if let Some(costs) = first_use(&file) {
        print_first_use(&costs);
    }
}
