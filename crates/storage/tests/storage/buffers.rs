//! Memory pinned at its first use, up to the limits.

use crate::support::{Pages, disk, settle, skip};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use vgasnet_storage::{BackingFile, FileSlot, IoDirection, IoOperation, RingStorage, Storage};

const PAGE_BYTES: usize = 64 << 10;

/// A ring on a file of `pages` pages, if this machine has io_uring.
fn ring(pages: usize) -> Option<RingStorage> {
    let file = BackingFile::create(&disk(), (pages * PAGE_BYTES) as u64).unwrap();
    let ring = RingStorage::new(file, 4).ok();
    if ring.is_none() {
        skip("no io_uring here");
    }
    ring
}

fn operation(direction: IoDirection, memory: *mut u8, len_bytes: usize) -> IoOperation {
    IoOperation { file: FileSlot::BACKING, direction, offset_bytes: 0, memory, len_bytes, token: 0, is_urgent: true }
}

/// Shared memory, like a pool's, untouched at first. Tests drop it after the storage that uses it.
struct Mapping(*mut u8, usize);

impl Mapping {
    fn new(len_bytes: usize) -> Mapping {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a mapping at an address chosen by the kernel replaces nothing.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), len_bytes, protection, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        Mapping(memory.cast(), len_bytes)
    }

    fn resident_bytes(&self) -> usize {
        let mut pages = vec![0u8; self.1 / 4096];
        // SAFETY: the range is mapped, and the vector has a byte for each of its pages.
        assert_eq!(unsafe { libc::mincore(self.0.cast(), self.1, pages.as_mut_ptr()) }, 0);
        pages.iter().filter(|page| **page & 1 == 1).count() * 4096
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and its storage was dropped before.
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

/// Runs tests one at a time: all threads of a user share the limit on locked memory.
fn locked_memory() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn never(line: &str) {
    panic!("so little memory is under any limit: {line}");
}

fn finish(ring: &mut RingStorage) {
    while ring.in_flight() > 0 {
        settle(ring, &mut |_, result| result.unwrap());
    }
}

fn move_page(ring: &mut RingStorage, direction: IoDirection, pages: &mut Pages, page: usize) {
    pages.start(ring, direction, (page * PAGE_BYTES) as u64, page, 0).unwrap();
    finish(ring);
}

#[test]
fn pinned_memory_serves_operations_inside_and_outside() {
    let _memory = locked_memory();
    let Some(mut ring) = ring(4) else { return };
    let (mut inside, mut outside) = (Pages::new(4, PAGE_BYTES), Pages::new(4, PAGE_BYTES));
    ring.register(&[inside.range()], PAGE_BYTES, never);
    for page in 0..4 {
        inside.fill(page, page as u64);
        inside.start(&mut ring, IoDirection::Write, (page * PAGE_BYTES) as u64, page, 0).unwrap();
    }
    finish(&mut ring);
    assert_eq!(ring.registered_bytes(), 4 * PAGE_BYTES);
    (0..4).for_each(|page| inside.clear(page));
    for (pages, numbers) in [(&mut inside, [0, 2]), (&mut outside, [1, 3])] {
        for page in numbers {
            pages.start(&mut ring, IoDirection::Read, (page * PAGE_BYTES) as u64, page, 0).unwrap();
        }
    }
    finish(&mut ring);
    assert_eq!(ring.registered_bytes(), 4 * PAGE_BYTES);
    assert!(inside.holds(0, 0) && outside.holds(1, 1) && inside.holds(2, 2) && outside.holds(3, 3));
}

#[test]
fn memory_is_pinned_with_its_first_use_while_operations_are_in_flight() {
    let _memory = locked_memory();
    let mut pages = Pages::new(4, PAGE_BYTES);
    let Some(mut ring) = ring(4) else { return };
    ring.register(&[pages.range()], PAGE_BYTES, never);
    assert_eq!(ring.registered_bytes(), 0);
    for (started, page) in [2, 0, 3].into_iter().enumerate() {
        pages.start(&mut ring, IoDirection::Read, 0, page, page as u64).unwrap();
        assert_eq!(ring.registered_bytes(), (started + 1) * PAGE_BYTES);
    }
    finish(&mut ring);
    move_page(&mut ring, IoDirection::Write, &mut pages, 2);
    assert_eq!(ring.registered_bytes(), 3 * PAGE_BYTES, "a page is pinned once");
}

#[test]
fn an_operation_that_spans_chunks_works_without() {
    let _memory = locked_memory();
    let Some(mut ring) = ring(8) else { return };
    let mut large = Pages::new(2, 3 * PAGE_BYTES);
    ring.register(&[large.range()], 2 * PAGE_BYTES, never);
    large.fill(1, 9);
    for direction in [IoDirection::Write, IoDirection::Read] {
        large.start(&mut ring, direction, 0, 1, 0).unwrap();
        finish(&mut ring);
        if direction == IoDirection::Write {
            large.clear(1);
        }
    }
    assert!(large.holds(1, 9));
    assert_eq!(ring.registered_bytes(), 0);
}

#[test]
fn a_large_pool_becomes_resident_only_where_it_is_used() {
    let _memory = locked_memory();
    const POOL_BYTES: usize = 1 << 30;
    const CHUNK_BYTES: usize = 4 << 20;
    let pool = Mapping::new(POOL_BYTES);
    let Some(mut ring) = ring(CHUNK_BYTES / PAGE_BYTES) else { return };
    ring.register(&[(pool.0, POOL_BYTES)], CHUNK_BYTES, |_| {});
    assert_eq!(pool.resident_bytes(), 0);
    for chunk in [255, 3] {
        // SAFETY: the chunk is inside the mapping. Nothing else uses the mapping, and it outlives the operation.
        unsafe { ring.start(operation(IoDirection::Read, pool.0.add(chunk * CHUNK_BYTES), CHUNK_BYTES)) }.unwrap();
        finish(&mut ring);
    }
    assert_eq!(pool.resident_bytes(), 2 * CHUNK_BYTES);
}

/// Takes `CAP_IPC_LOCK` from the calling thread. The capability exempts root from `ulimit -l`.
fn drop_ipc_lock() {
    const VERSION_3: u32 = 0x2008_0522;
    const IPC_LOCK: u32 = 14;
    let header = [VERSION_3, 0];
    let mut sets = [0u32; 6];
    // SAFETY: the header and the sets have the layout of version 3 (two times three words), and live during the calls.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()), 0);
        sets[0] &= !(1 << IPC_LOCK);
        assert_eq!(libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()), 0);
    }
}

/// Uses more memory than the calling thread may lock. Returns the warnings, the pinned bytes, and the limit.
fn warnings_beyond_the_limit() -> Option<(Vec<String>, usize, u64)> {
    drop_ipc_lock();
    let (limit_bytes, _) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_MEMLOCK).unwrap();
    if limit_bytes > 64 << 20 {
        skip(&format!("the limit on locked memory is {limit_bytes} bytes"));
        return None;
    }
    let count = limit_bytes as usize / PAGE_BYTES + 2;
    let mut ring = ring(count)?;
    let mut pages = Pages::new(count, PAGE_BYTES);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    ring.register(&[pages.range()], PAGE_BYTES, move |line| sink.lock().unwrap().push(line.to_owned()));
    for page in 0..count {
        pages.fill(page, page as u64);
        move_page(&mut ring, IoDirection::Write, &mut pages, page);
    }
    for page in 0..count {
        pages.clear(page);
        move_page(&mut ring, IoDirection::Read, &mut pages, page);
        assert!(pages.holds(page, page as u64), "page {page}");
    }
    let lines = lines.lock().unwrap().clone();
    Some((lines, ring.registered_bytes(), limit_bytes))
}

#[test]
fn a_limit_on_locked_memory_is_foreseen_and_storage_works() {
    let _memory = locked_memory();
    let limited = thread::spawn(|| {
        let Some((lines, registered_bytes, limit_bytes)) = warnings_beyond_the_limit() else { return };
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("the limit on locked memory, ") && lines[0].contains("ulimit -l"), "{lines:?}");
        assert!(registered_bytes as u64 <= limit_bytes);
    });
    limited.join().unwrap();
}

#[test]
fn an_unforeseen_refusal_is_reported_once() {
    let _memory = locked_memory();
    let mapping = Mapping::new(3 * PAGE_BYTES);
    let Some(mut ring) = ring(4) else { return };
    // SAFETY: the range is this test's own mapping, and no thread writes to it.
    assert_eq!(unsafe { libc::mprotect(mapping.0.cast(), 2 * PAGE_BYTES, libc::PROT_READ) }, 0);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    ring.register(&[(mapping.0, mapping.1)], PAGE_BYTES, move |line| sink.lock().unwrap().push(line.to_owned()));
    // The kernel pins memory for writing. The first two pages do not permit that.
    for page in [2, 0, 1] {
        // SAFETY: the page is inside the mapping. Nothing else uses the mapping, and it outlives the operation.
        unsafe { ring.start(operation(IoDirection::Write, mapping.0.add(page * PAGE_BYTES), PAGE_BYTES)) }.unwrap();
        finish(&mut ring);
        assert_eq!(lines.lock().unwrap().len(), usize::from(page < 2));
    }
    assert_eq!(ring.registered_bytes(), PAGE_BYTES);
    let lines = lines.lock().unwrap();
    assert!(
        lines[0].starts_with("the kernel refused to pin more than 64K of the pool and its staging frames, 192K"),
        "{lines:?}"
    );
}
