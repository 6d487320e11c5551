//! One test body for every kind of storage, on a disk and on a tmpfs.

mod buffers;
mod directories;
mod full_disk;
mod named;
mod support;

use std::io;
use std::thread;
use std::time::Duration;
use support::{Pages, each_owned, each_storage, is_readable, settle};
use vgasnet_settings::{IoDirection, IoFault};
use vgasnet_storage::{Busy, Faulty, FileSlot, IoOperation, MemoryStorage, SharedFile, Storage};

const PAGE_BYTES: usize = 64 << 10;
const DEPTH: usize = 16;

/// Starts the `operations` (offset, page of `pages`) as fast as `storage` accepts them. All must succeed.
fn run(storage: &mut dyn Storage, direction: IoDirection, pages: &mut Pages, operations: &[(u64, usize)]) {
    let mut completed = vec![false; operations.len()];
    let mut next = 0;
    while next < operations.len() || storage.in_flight() > 0 {
        while next < operations.len() {
            let (offset_bytes, page) = operations[next];
            match pages.start(storage, direction, offset_bytes, page, next as u64) {
                Ok(()) => next += 1,
                Err(Busy) => break,
            }
        }
        assert!(storage.in_flight() == DEPTH || next == operations.len(), "busy before the bound");
        settle(storage, &mut |token, result| {
            result.unwrap();
            assert!(!std::mem::replace(&mut completed[token as usize], true), "token {token} came twice");
        });
    }
    assert!(completed.iter().all(|completed| *completed));
}

#[test]
fn bytes_come_back_from_where_they_were_put() {
    for page_bytes in [PAGE_BYTES, 4 << 20] {
        let count = if page_bytes == PAGE_BYTES { 100 } else { 20 };
        each_storage((2 * count * page_bytes) as u64, DEPTH, |storage| {
            // Every other page of the file, out of order; 37 is prime to both counts.
            let places: Vec<_> = (0..count).map(|i| ((i * 37 % count * 2 * page_bytes) as u64, i)).collect();
            let mut pages = Pages::new(count, page_bytes);
            for page in 0..count {
                pages.fill(page, page as u64);
            }
            run(storage, IoDirection::Write, &mut pages, &places);
            let mut back = Pages::new(count, page_bytes);
            run(storage, IoDirection::Read, &mut back, &places);
            for page in 0..count {
                assert!(back.holds(page, page as u64), "page {page} of {page_bytes} bytes");
            }
            let between: Vec<_> = places.iter().map(|&(place, page)| (place + page_bytes as u64, page)).collect();
            run(storage, IoDirection::Read, &mut back, &between);
            assert!((0..count).all(|page| back.is_zero(page)), "pages that were never written are zeros");
        });
    }
}

#[test]
fn threads_read_side_by_side_with_blocking_calls() {
    const COUNT: usize = 24;
    each_storage(((COUNT + 1) * PAGE_BYTES) as u64, DEPTH, |storage| {
        let Some(reader) = storage.reader(FileSlot::BACKING) else { return };
        let places: Vec<_> = (0..COUNT).map(|page| ((page * PAGE_BYTES) as u64, page)).collect();
        let mut pages = Pages::new(COUNT, PAGE_BYTES);
        (0..COUNT).for_each(|page| pages.fill(page, page as u64));
        run(storage, IoDirection::Write, &mut pages, &places);
        let mut back = Pages::new(COUNT + 1, PAGE_BYTES);
        let whole = (0..=COUNT).map(|page| back.operation(IoDirection::Read, (page * PAGE_BYTES) as u64, page));
        let reads: Vec<IoOperation> = whole.collect();
        thread::scope(|scope| {
            for read in reads {
                let reader = &reader;
                // SAFETY: each read has a page of its own, and the page outlives the scope.
                scope.spawn(move || unsafe { reader.read(&{ read }) }.expect("inside the file"));
            }
        });
        assert!((0..COUNT).all(|page| back.holds(page, page as u64)) && back.is_zero(COUNT));
        assert_eq!(storage.in_flight(), 0, "they do not count");
    });
}

#[test]
fn other_processes_find_the_backing_file_by_its_description() {
    const COUNT: usize = 4;
    each_storage((COUNT * PAGE_BYTES) as u64, DEPTH, |storage| {
        let Some(shared) = storage.reader(FileSlot::BACKING).and_then(|reader| reader.shared()) else { return };
        let places: Vec<_> = (0..COUNT).map(|page| ((page * PAGE_BYTES) as u64, page)).collect();
        let (mut pages, mut back) = (Pages::new(COUNT, PAGE_BYTES), Pages::new(COUNT, PAGE_BYTES));
        (0..COUNT).for_each(|page| pages.fill(page, page as u64));
        run(storage, IoDirection::Write, &mut pages, &places);
        let described = SharedFile::from_numbers(shared.to_numbers());
        assert_eq!(described, shared);
        let opened = described.open().expect("a file of this process");
        for page in 0..COUNT {
            let read = back.operation(IoDirection::Read, (page * PAGE_BYTES) as u64, page);
            // SAFETY: the page is this read's.
            unsafe { opened.read(&read) }.expect("inside the file");
        }
        assert!((0..COUNT).all(|page| back.holds(page, page as u64)));
        // Another file by this description is refused before it is opened.
        let mut numbers = shared.to_numbers();
        numbers[3] += 1;
        assert_eq!(
            SharedFile::from_numbers(numbers).open().err().and_then(|error| error.raw_os_error()),
            Some(libc::ESTALE)
        );
        numbers[0] = u64::from(u32::MAX);
        assert!(SharedFile::from_numbers(numbers).open().is_err(), "there is no such process");
    });
}

#[test]
fn reads_that_are_to_fail_are_not_done_by_threads() {
    each_owned(PAGE_BYTES as u64, 1, |storage| {
        let has_reader = storage.reader(FileSlot::BACKING).is_some();
        let fault = |direction| IoFault::once(direction, 1);
        let writes_fail = Faulty::new(storage, fault(IoDirection::Write));
        assert_eq!(writes_fail.reader(FileSlot::BACKING).is_some(), has_reader);
        assert!(Faulty::new(Box::new(writes_fail), fault(IoDirection::Read)).reader(FileSlot::BACKING).is_none());
    });
}

#[test]
fn busy_exactly_at_the_bound() {
    for depth in [1, 3, DEPTH] {
        each_storage((2 * DEPTH * PAGE_BYTES) as u64, depth, |storage| {
            let mut pages = Pages::new(depth + 1, PAGE_BYTES);
            for round in 0..3 {
                for page in 0..depth {
                    let offset_bytes = (page * PAGE_BYTES) as u64;
                    pages.start(storage, IoDirection::Read, offset_bytes, page, page as u64).unwrap();
                    assert_eq!(storage.in_flight(), page + 1);
                }
                let refused = pages.start(storage, IoDirection::Write, 0, depth, 99);
                assert_eq!(refused, Err(Busy), "round {round}");
                let mut tokens = Vec::new();
                while storage.in_flight() > 0 {
                    settle(storage, &mut |token, result| {
                        result.unwrap();
                        tokens.push(token);
                    });
                }
                tokens.sort_unstable();
                assert!(tokens.into_iter().eq(0..depth as u64));
            }
        });
    }
}

#[test]
fn the_doorbell_is_readable_exactly_while_there_is_something_to_hand_out() {
    each_storage((DEPTH * PAGE_BYTES) as u64, DEPTH, |storage| {
        if storage.doorbell().is_none() {
            return;
        }
        let mut pages = Pages::new(DEPTH, PAGE_BYTES);
        for _ in 0..50 {
            assert!(!is_readable(storage, Duration::ZERO), "nothing was started");
            for page in 0..DEPTH {
                pages.start(storage, IoDirection::Write, (page * PAGE_BYTES) as u64, page, 0).unwrap();
            }
            while storage.in_flight() > 0 {
                assert!(is_readable(storage, Duration::from_secs(20)), "asleep with {} in flight", storage.in_flight());
                assert!(is_readable(storage, Duration::ZERO), "looking at it does not clear it");
                let before = storage.in_flight();
                storage.poll(&mut |_, result| result.unwrap());
                assert!(storage.in_flight() < before, "it rang for nothing");
            }
        }
    });
}

#[test]
fn a_poll_with_nothing_to_do_is_harmless() {
    each_storage(PAGE_BYTES as u64, 1, |storage| {
        for _ in 0..1000 {
            storage.poll(&mut |token, _| panic!("token {token} was never given"));
        }
    });
}

#[test]
fn the_nth_operation_fails() {
    for (direction, other) in [(IoDirection::Read, IoDirection::Write), (IoDirection::Write, IoDirection::Read)] {
        support::each_owned((8 * PAGE_BYTES) as u64, 4, |storage| {
            let mut storage = Faulty::new(storage, IoFault::once(direction, 3));
            let mut pages = Pages::new(8, PAGE_BYTES);
            let mut failed = Vec::new();
            for token in 0..8 {
                let direction = if token % 2 == 0 { direction } else { other };
                let page = token as usize;
                while pages.start(&mut storage, direction, token * PAGE_BYTES as u64, page, token).is_err() {
                    settle(&mut storage, &mut |token, result| failed.extend(result.err().map(|error| (token, error))));
                }
            }
            while storage.in_flight() > 0 {
                settle(&mut storage, &mut |token, result| failed.extend(result.err().map(|error| (token, error))));
            }
            assert_eq!(failed.len(), 1);
            assert_eq!((failed[0].0, failed[0].1.raw_os_error()), (4, Some(libc::EIO)));
        });
    }
}

#[test]
fn dropping_leaves_the_memory_alone_afterwards() {
    support::each_owned((DEPTH * (4 << 20)) as u64, DEPTH, |mut storage| {
        let mut pages = Pages::new(DEPTH, 4 << 20);
        for page in 0..DEPTH {
            pages.start(&mut *storage, IoDirection::Read, (page * (4 << 20)) as u64, page, page as u64).unwrap();
        }
        drop(storage);
        for page in 0..DEPTH {
            pages.fill(page, 1);
        }
        thread::sleep(Duration::from_millis(50));
        assert!((0..DEPTH).all(|page| pages.holds(page, 1)));
    });
}

#[test]
fn operations_outlive_the_thread_that_started_them() {
    const LARGE_BYTES: usize = 32 << 20;
    support::each_owned((4 * LARGE_BYTES) as u64, 4, |mut storage| {
        let mut pages = Pages::new(4, LARGE_BYTES);
        for direction in [IoDirection::Write, IoDirection::Read] {
            (0..4).for_each(|page| {
                if direction == IoDirection::Write { pages.fill(page, page as u64) } else { pages.clear(page) }
            });
            thread::scope(|scope| {
                let (storage, pages) = (&mut storage, &mut pages);
                let starter = scope.spawn(move || {
                    for page in 0..4 {
                        let offset_bytes = (page * LARGE_BYTES) as u64;
                        pages.start(&mut **storage, direction, offset_bytes, page, page as u64).unwrap();
                    }
                });
                starter.join().unwrap();
            });
            while storage.in_flight() > 0 {
                settle(&mut *storage, &mut |_, result| result.unwrap());
            }
        }
        assert!((0..4).all(|page| pages.holds(page, page as u64)));
    });
}

/// The tokens from `storage`, in order, with the number of the poll and the error.
fn transcript(storage: &mut MemoryStorage) -> Vec<(usize, u64, Option<i32>)> {
    let mut pages = Pages::new(DEPTH, PAGE_BYTES);
    for page in 0..DEPTH {
        let direction = if page % 2 == 0 { IoDirection::Read } else { IoDirection::Write };
        pages.start(storage, direction, (page * PAGE_BYTES) as u64, page, page as u64).unwrap();
    }
    let mut lines = Vec::new();
    let mut polls = 0;
    while storage.in_flight() > 0 {
        polls += 1;
        storage
            .poll(&mut |token, result| lines.push((polls, token, result.err().and_then(|error| error.raw_os_error()))));
    }
    lines
}

#[test]
fn the_twin_in_memory_follows_from_its_seed() {
    let with_seed = |seed| {
        let mut storage = MemoryStorage::new(1 << 20, DEPTH, seed);
        storage.fail_one_in(4);
        transcript(&mut storage)
    };
    assert_eq!(with_seed(1), with_seed(1));
    assert_ne!(with_seed(1), with_seed(2));
    let all: Vec<_> = (0..20).flat_map(with_seed).collect();
    assert!(all.iter().any(|line| line.0 > 1) && all.iter().any(|line| line.2 == Some(libc::EIO)));
    assert!(all.iter().any(|line| line.2.is_none()));
}

#[test]
fn the_twin_in_memory_fails_as_set() {
    let failed = |storage: &mut MemoryStorage| {
        let mut tokens: Vec<_> =
            transcript(storage).into_iter().filter(|line| line.2.is_some()).map(|line| line.1).collect();
        tokens.sort_unstable();
        tokens
    };
    let mut storage = MemoryStorage::new(1 << 20, DEPTH, 7);
    assert!(failed(&mut storage).is_empty());
    storage.fail_reads_after(6);
    assert_eq!(failed(&mut storage), [12, 14]);
    storage.heal();
    storage.fail_writes_after(0);
    assert_eq!(failed(&mut storage), [1, 3, 5, 7, 9, 11, 13, 15]);
    storage.heal();
    let page_bytes = PAGE_BYTES as u64;
    storage.fail_at(3 * page_bytes - 1..4 * page_bytes + 1);
    assert_eq!(failed(&mut storage), [2, 3, 4]);
    storage.heal();
    assert!(failed(&mut storage).is_empty());
}

#[test]
fn misuse_is_caught_before_it_reaches_the_kernel() {
    each_storage(PAGE_BYTES as u64, 1, |storage| {
        let mut pages = Pages::new(2, PAGE_BYTES);
        let beyond = std::panic::AssertUnwindSafe(|| pages.start(storage, IoDirection::Read, 4096, 0, 0));
        assert!(std::panic::catch_unwind(beyond).is_err());
        assert_eq!(storage.in_flight(), 0);
    });
}

#[test]
fn storage_moves_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<Box<dyn Storage>>();
    is_send::<io::Result<()>>();
}
