//! The library's own heap.
//!
//! A load or store may miss its page anywhere in the client's code, also in malloc under its locks. The fetching
//! thread, which is the faulting thread or the helper, allocates. So the library shares no heap with the client. The
//! heap's lock defers signals: a handler of the client that misses a page waits for the helper, which needs the lock.

use super::deferred_signals::Signalproof;
use super::futex::{Guard, Lock};
#[cfg(asan)]
use super::poisoned_heap::Dlmalloc;
#[cfg(not(asan))]
use dlmalloc::Dlmalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::Once;

/// An allocator, and the number of bytes in use.
struct Blocks {
    dlmalloc: Dlmalloc,
    live_bytes: usize,
}

/// The heap of all threads.
struct Heap {
    blocks: Lock<Blocks>,
    /// The lock, while its owner forks.
    forking: UnsafeCell<Option<Locked>>,
}

type Locked = Signalproof<Guard<'static, Blocks>>;

// SAFETY: `forking` is accessed only by the owner of the lock.
unsafe impl Sync for Heap {}

static HEAP: Heap = Heap::new();

/// The library's heap as a global allocator. The library declares it; tools that link some of its crates keep the system's.
pub struct LibraryHeap;

impl Heap {
    const fn new() -> Heap {
        let blocks = Blocks { dlmalloc: Dlmalloc::new(), live_bytes: 0 };
        Heap { blocks: Lock::new(blocks), forking: UnsafeCell::new(None) }
    }

    fn live_bytes(&self) -> usize {
        self.lock().live_bytes
    }

    fn lock(&self) -> Signalproof<Guard<'_, Blocks>> {
        Signalproof::take(|| self.blocks.lock())
    }
}

// SAFETY: dlmalloc gives blocks of the requested size and alignment, which nobody else has until they are freed, and it
// has one caller at a time.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut blocks = self.lock();
        // SAFETY: the size and the alignment belong together.
        let block = unsafe { blocks.dlmalloc.malloc(layout.size(), layout.align()) };
        blocks.live_bytes += if block.is_null() { 0 } else { layout.size() };
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let mut blocks = self.lock();
        // SAFETY: the size and the alignment belong together.
        let block = unsafe { blocks.dlmalloc.calloc(layout.size(), layout.align()) };
        blocks.live_bytes += if block.is_null() { 0 } else { layout.size() };
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let mut blocks = self.lock();
        blocks.live_bytes -= layout.size();
        // SAFETY: the caller gives back a block of this heap with its layout.
        unsafe { blocks.dlmalloc.free(block, layout.size(), layout.align()) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        let mut blocks = self.lock();
        // SAFETY: the caller names a block of this heap with its layout, and a size valid for its alignment.
        let moved = unsafe { blocks.dlmalloc.realloc(block, layout.size(), layout.align(), size_bytes) };
        if !moved.is_null() {
            blocks.live_bytes = blocks.live_bytes - layout.size() + size_bytes;
        }
        moved
    }
}

// SAFETY: all blocks come from and go back to `Heap`, whose methods keep the promises of `GlobalAlloc`.
unsafe impl GlobalAlloc for LibraryHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of the method of this name. So it is below.
        unsafe { HEAP.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see `alloc`.
        unsafe { HEAP.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: see `alloc`.
        unsafe { HEAP.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        // SAFETY: see `alloc`.
        unsafe { HEAP.realloc(block, layout, size_bytes) }
    }
}

/// Bytes allocated by the library and not freed.
pub fn live_bytes() -> usize {
    HEAP.live_bytes()
}

/// Asked for when the library is loaded, before the program's own constructors run, so that the heap is locked after
/// the program's own handlers of forks, which may wait for other threads. If the program loads the library by dlopen,
/// handlers that it has registered before run with the heap locked.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array.00101")]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        survive_forks();
    }
    at_start
};

/// Keeps the heap consistent in a child forked by a thread of the client while another thread allocates.
pub fn survive_forks() {
    static ONCE: Once = Once::new();
    extern "C" fn before() {
        let locked = HEAP.lock();
        // SAFETY: this thread has the lock.
        unsafe { *HEAP.forking.get() = Some(locked) };
    }
    extern "C" fn after() {
        // SAFETY: this thread, or the one whose copy it is, has had the lock since `before`.
        drop(unsafe { (*HEAP.forking.get()).take() });
    }
    // SAFETY: the functions have the expected types. Without memory for the entry, children do without.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(after), Some(after));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[global_allocator]
    static LIBRARY_HEAP: LibraryHeap = LibraryHeap;

    #[test]
    fn blocks_have_their_size_and_alignment_and_are_counted() {
        // A heap of its own: other tests allocate in the library's meanwhile.
        static HEAP: Heap = Heap::new();
        let mut held = Vec::new();
        for size in [1, 24, 4096, 300_000] {
            for align in [1, 16, 64, 4096] {
                let layout = Layout::from_size_align(size, align).expect("a power of two");
                // SAFETY: the layout has a size, and the block as many bytes.
                let block = unsafe { HEAP.alloc_zeroed(layout) };
                assert!(block.addr() % align == 0 && !block.is_null());
                // SAFETY: as above.
                assert!(unsafe { std::slice::from_raw_parts(block, size) }.iter().all(|byte| *byte == 0));
                held.push((block, layout));
            }
        }
        assert_eq!(HEAP.live_bytes(), 4 * (1 + 24 + 4096 + 300_000));
        let (block, layout) = held.pop().expect("sixteen blocks");
        // SAFETY: the block has this layout, and a longer size is valid for its alignment.
        let block = unsafe { HEAP.realloc(block, layout, 400_000) };
        assert_eq!(HEAP.live_bytes(), 4 * (1 + 24 + 4096 + 300_000) + 100_000);
        held.push((block, Layout::from_size_align(400_000, layout.align()).expect("a power of two")));
        // SAFETY: each block is given back once, with its layout.
        held.into_iter().for_each(|(block, layout)| unsafe { HEAP.dealloc(block, layout) });
        assert_eq!(HEAP.live_bytes(), 0);
    }

    /// Forks a child that allocates, and is ended by SIGALRM if it hangs. Returns its status.
    fn status_of_child() -> i32 {
        // SAFETY: the child does nothing but the following.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the call takes a number.
            unsafe { libc::alarm(5) };
            let block = std::hint::black_box(Box::new([1_u8; 100]));
            // SAFETY: the call takes a number, and does not return.
            unsafe { libc::_exit(i32::from(block[99]) - 1) };
        }
        let mut status = -1;
        // SAFETY: the child is this thread's, and the status has room.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        status
    }

    #[test]
    fn children_of_busy_threads_allocate() {
        survive_forks();
        let ends = AtomicBool::new(false);
        let failed = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    drop(std::hint::black_box(Box::new([0_u8; 100])));
                }
            });
            let failed = (0..300).map(|_| status_of_child()).find(|status| *status != 0);
            ends.store(true, Ordering::Relaxed);
            failed
        });
        assert_eq!(failed, None);
    }
}
