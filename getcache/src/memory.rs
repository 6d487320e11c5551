//! Where the cache's bytes are.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Chunks begin at a multiple of this.
pub const CHUNK_ALIGN: usize = 64;

/// What is so large takes huge pages, if there are some: random places in it are found without a walk through page tables.
const HUGE_PAGE: usize = 2 << 20;

/// Memory for a cache. It is asked under the cache's lock, so it must not use that cache.
///
/// # Safety
///
/// A chunk is memory that begins at a multiple of [`CHUNK_ALIGN`], has as many bytes as were asked for, all of them initialised, and is the
/// cache's alone until it gives it back.
pub unsafe trait Memory: Send {
    /// A chunk, or `None`.
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>>;

    /// Takes a chunk of so many bytes back.
    fn free(&mut self, chunk: NonNull<u8>, bytes: usize);

    /// There was no memory for the first chunk: the cache is off from now on. This is called once.
    fn on_refused(&mut self) {}
}

/// Memory of the process: of its heap, or mapped where it is large.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

/// Whether so many bytes are mapped by themselves.
fn is_mapped(bytes: usize) -> bool {
    bytes >= HUGE_PAGE && cfg!(all(target_os = "linux", not(miri)))
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, CHUNK_ALIGN).ok().filter(|_| bytes > 0)
}

/// Maps whole huge pages, which the kernel is asked to have as such.
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let bytes = bytes.checked_next_multiple_of(HUGE_PAGE)?;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, of one huge page more than is needed.
    let all = unsafe { libc::mmap(std::ptr::null_mut(), bytes + HUGE_PAGE, protection, flags, -1, 0) };
    if all == libc::MAP_FAILED {
        return None;
    }
    let before = all.align_offset(HUGE_PAGE);
    // SAFETY: what is before and behind the pages is of the mapping, and nobody uses it. The wish for huge pages changes no bytes.
    unsafe {
        let start = all.byte_add(before);
        libc::munmap(all, before);
        libc::munmap(start.byte_add(bytes), HUGE_PAGE - before);
        libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        NonNull::new(start.cast())
    }
}

// SAFETY: the allocator or the kernel gives what is asked for, all zeros, and nobody else has it until it is freed.
unsafe impl Memory for Heap {
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if is_mapped(bytes) {
            return map(bytes);
        }
        // SAFETY: the layout has bytes.
        NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })
    }

    fn free(&mut self, chunk: NonNull<u8>, bytes: usize) {
        if is_mapped(bytes) {
            // SAFETY: these pages were mapped, and the cache gives each chunk back once.
            unsafe { libc::munmap(chunk.as_ptr().cast(), bytes.next_multiple_of(HUGE_PAGE)) };
        } else if let Some(layout) = layout(bytes) {
            // SAFETY: it was allocated with this layout, and the cache gives each chunk back once.
            unsafe { dealloc(chunk.as_ptr(), layout) }
        }
    }
}

/// [`Heap`], which calls a function when it has none for the first chunk.
#[derive(Clone, Copy, Debug)]
pub struct TellingHeap<F>(pub F);

// SAFETY: the chunks are the heap's.
unsafe impl<F: FnMut() + Send> Memory for TellingHeap<F> {
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        Heap.allocate(bytes)
    }

    fn free(&mut self, chunk: NonNull<u8>, bytes: usize) {
        Heap.free(chunk, bytes);
    }

    fn on_refused(&mut self) {
        self.0();
    }
}

/// Memory of the process, whose bytes are zeros at first.
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// So many bytes, one at least.
    pub fn new(bytes: usize) -> Option<Pages> {
        Some(Pages { start: Heap.allocate(bytes)?, bytes })
    }

    /// The first one.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        Heap.free(self.start, self.bytes);
    }
}
