//! Where the cache's bytes are.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Chunks begin at a multiple of this.
pub const CHUNK_ALIGN: usize = 64;

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

/// The heap of the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, CHUNK_ALIGN).ok().filter(|_| bytes > 0)
}

// SAFETY: the allocator gives what the layout says, and nobody else has it until it is freed.
unsafe impl Memory for Heap {
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        // SAFETY: the layout has bytes.
        NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) })
    }

    fn free(&mut self, chunk: NonNull<u8>, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: it was allocated with this layout, and the cache gives each chunk back once.
            unsafe { dealloc(chunk.as_ptr(), layout) }
        }
    }
}
