//! Memory for the cache's bytes.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Alignment of chunks.
pub const CHUNK_ALIGN: usize = 64;

/// Allocations from this size on request huge pages, to save page-table walks for random access.
const HUGE_PAGE: usize = 2 << 20;

/// Memory for a cache. Called under the cache's lock, so it must not use that cache.
///
/// # Safety
///
/// A chunk is aligned to [`CHUNK_ALIGN`], has the requested number of bytes, all initialised, and belongs to the cache
/// alone until it is freed.
pub unsafe trait Memory: Send {
    /// A chunk, or `None` if there is no memory.
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>>;

    /// Frees a chunk of `bytes` bytes.
    fn free(&mut self, chunk: NonNull<u8>, bytes: usize);

    /// There was no memory for the first chunk: the cache is off from now on. Called once.
    fn on_refused(&mut self) {}
}

/// Memory of the process: from its heap, or mapped if large.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

/// Whether an allocation of `bytes` is a mapping of its own.
fn is_mapped(bytes: usize) -> bool {
    bytes >= HUGE_PAGE && cfg!(all(target_os = "linux", not(miri)))
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, CHUNK_ALIGN).ok().filter(|_| bytes > 0)
}

/// Maps whole huge pages, requested as such from the kernel.
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let bytes = bytes.checked_next_multiple_of(HUGE_PAGE)?;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, one huge page longer than needed.
    let all = unsafe { libc::mmap(std::ptr::null_mut(), bytes + HUGE_PAGE, protection, flags, -1, 0) };
    if all == libc::MAP_FAILED {
        return None;
    }
    let before = all.align_offset(HUGE_PAGE);
    // SAFETY: the trimmed parts belong to the new mapping, and nobody uses them. `madvise` changes no bytes.
    unsafe {
        let start = all.byte_add(before);
        libc::munmap(all, before);
        libc::munmap(start.byte_add(bytes), HUGE_PAGE - before);
        libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        NonNull::new(start.cast())
    }
}

// SAFETY: the allocator or the kernel returns zeroed memory of the requested size, exclusive until it is freed.
unsafe impl Memory for Heap {
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if is_mapped(bytes) {
            return map(bytes);
        }
        // SAFETY: the layout has a non-zero size.
        NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })
    }

    fn free(&mut self, chunk: NonNull<u8>, bytes: usize) {
        if is_mapped(bytes) {
            // SAFETY: these pages were mapped, and the cache frees each chunk once.
            unsafe { libc::munmap(chunk.as_ptr().cast(), bytes.next_multiple_of(HUGE_PAGE)) };
        } else if let Some(layout) = layout(bytes) {
            // SAFETY: it was allocated with this layout, and the cache frees each chunk once.
            unsafe { dealloc(chunk.as_ptr(), layout) }
        }
    }
}

/// [`Heap`], with a callback if there is no memory for the first chunk.
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

/// Memory of the process, initially zeros.
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// Allocates `bytes` bytes, at least one.
    pub fn new(bytes: usize) -> Option<Pages> {
        Some(Pages { start: Heap.allocate(bytes)?, bytes })
    }

    /// The first byte.
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
