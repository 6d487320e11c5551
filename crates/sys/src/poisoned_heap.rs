//! The heap below the library's in builds checked by AddressSanitizer: `--cfg asan`. Nobody may touch the bytes around
//! a block, nor a freed block, which is not reused for long.

use std::ffi::c_void;
use std::ptr::null_mut;

unsafe extern "C" {
    fn __asan_poison_memory_region(start: *const c_void, len_bytes: usize);
    fn __asan_unpoison_memory_region(start: *const c_void, len_bytes: usize);
}

/// The bytes behind a block, and between its header and it.
const ZONE_BYTES: usize = 32;

/// Freed blocks are reused once later ones have this many bytes.
const FREED_BYTES_MAX: usize = 16 << 20;

/// Lies before a block and its zone, and is not poisoned.
struct Header {
    /// The next block in order of freeing.
    next: *mut u8,
    size_bytes: usize,
    align: usize,
}

const HEADER_BYTES: usize = size_of::<Header>().next_multiple_of(ZONE_BYTES);

/// Provides the functions of [`dlmalloc::Dlmalloc`] that the heap uses.
pub struct Dlmalloc {
    inner: dlmalloc::Dlmalloc,
    /// The first and the last freed block, linked by their headers.
    oldest: *mut u8,
    newest: *mut u8,
    freed_bytes: usize,
}

// SAFETY: the blocks that the pointers name belong to the heap in any thread.
unsafe impl Send for Dlmalloc {}

/// The bytes before a block.
fn lead_bytes(align: usize) -> usize {
    (HEADER_BYTES + ZONE_BYTES).next_multiple_of(align)
}

/// A block's own bytes with the bytes before and behind it.
fn whole_bytes(size_bytes: usize, align: usize) -> usize {
    lead_bytes(align) + size_bytes.next_multiple_of(ZONE_BYTES) + ZONE_BYTES
}

/// # Safety
/// `block` is a block of this heap, in use or freed, and nobody else uses its header.
unsafe fn header<'a>(block: *mut u8) -> &'a mut Header {
    // SAFETY: each block has a header, at a multiple of its alignment of at least 16.
    unsafe { &mut *block.sub(ZONE_BYTES + HEADER_BYTES).cast::<Header>() }
}

#[allow(clippy::missing_safety_doc, reason = "the conditions are those of dlmalloc's functions")]
impl Dlmalloc {
    pub const fn new() -> Dlmalloc {
        Dlmalloc { inner: dlmalloc::Dlmalloc::new(), oldest: null_mut(), newest: null_mut(), freed_bytes: 0 }
    }

    pub unsafe fn malloc(&mut self, size_bytes: usize, align: usize) -> *mut u8 {
        let align = align.max(ZONE_BYTES);
        let (lead, whole) = (lead_bytes(align), whole_bytes(size_bytes, align));
        // SAFETY: the size and the alignment belong together. The written and poisoned bytes lie in the block given.
        unsafe {
            let start = self.inner.malloc(whole, align);
            if start.is_null() {
                return start;
            }
            let block = start.add(lead);
            *header(block) = Header { next: null_mut(), size_bytes, align };
            __asan_poison_memory_region(block.sub(ZONE_BYTES).cast(), whole - lead + ZONE_BYTES);
            __asan_unpoison_memory_region(block.cast(), size_bytes);
            block
        }
    }

    pub unsafe fn calloc(&mut self, size_bytes: usize, align: usize) -> *mut u8 {
        // SAFETY: the caller's, and the block has as many bytes.
        unsafe {
            let block = self.malloc(size_bytes, align);
            if !block.is_null() {
                block.write_bytes(0, size_bytes);
            }
            block
        }
    }

    pub unsafe fn free(&mut self, block: *mut u8, size_bytes: usize, align: usize) {
        // SAFETY: the caller gives back a block of this heap, which becomes the newest freed one.
        unsafe {
            let its = header(block);
            assert!(its.size_bytes == size_bytes && its.align == align.max(ZONE_BYTES), "a block freed as another");
            __asan_poison_memory_region(block.cast(), size_bytes);
            match self.newest.is_null() {
                true => self.oldest = block,
                false => header(self.newest).next = block,
            }
            self.newest = block;
            self.freed_bytes += whole_bytes(size_bytes, its.align);
            while self.freed_bytes > FREED_BYTES_MAX {
                self.free_oldest();
            }
        }
    }

    pub unsafe fn realloc(&mut self, block: *mut u8, size_bytes: usize, align: usize, new_bytes: usize) -> *mut u8 {
        // SAFETY: the caller's. Both blocks have the copied bytes.
        unsafe {
            let moved = self.malloc(new_bytes, align);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, size_bytes.min(new_bytes));
                self.free(block, size_bytes, align);
            }
            moved
        }
    }

    /// # Safety
    /// A block was freed.
    unsafe fn free_oldest(&mut self) {
        let block = self.oldest;
        // SAFETY: the block and the poisoned bytes around it were given by dlmalloc as one.
        unsafe {
            let Header { next, size_bytes, align } = *header(block);
            self.oldest = next;
            if next.is_null() {
                self.newest = next;
            }
            let (start, whole) = (block.sub(lead_bytes(align)), whole_bytes(size_bytes, align));
            self.freed_bytes -= whole;
            __asan_unpoison_memory_region(start.cast(), whole);
            self.inner.free(start, whole, align);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn __asan_address_is_poisoned(address: *const c_void) -> i32;
    }

    fn is_poisoned(address: *const u8) -> bool {
        // SAFETY: the function takes any address.
        unsafe { __asan_address_is_poisoned(address.cast()) != 0 }
    }

    #[test]
    fn bytes_around_blocks_and_of_freed_ones_are_poisoned() {
        let mut heap = Dlmalloc::new();
        for (size_bytes, align) in [(1, 1), (13, 8), (64, 64), (5000, 4096)] {
            // SAFETY: the block is freed once, with its size and alignment. Later its bytes are not touched.
            let block = unsafe { heap.malloc(size_bytes, align) };
            assert!(block.addr() % align == 0);
            assert!((0..size_bytes).all(|at| !is_poisoned(block.wrapping_add(at))));
            assert!(is_poisoned(block.wrapping_sub(1)) && is_poisoned(block.wrapping_add(size_bytes)));
            // SAFETY: as above.
            unsafe { heap.free(block, size_bytes, align) };
            assert!(is_poisoned(block) && is_poisoned(block.wrapping_add(size_bytes - 1)));
        }
    }

    #[test]
    fn freed_blocks_are_used_again_in_the_end() {
        let mut heap = Dlmalloc::new();
        let size_bytes = 1 << 20;
        // SAFETY: each block is freed once.
        unsafe {
            for _ in 0..100 {
                let block = heap.calloc(size_bytes, 8);
                let block = heap.realloc(block, size_bytes, 8, 2 * size_bytes);
                heap.free(block, 2 * size_bytes, 8);
            }
        }
        assert!(heap.freed_bytes <= FREED_BYTES_MAX && heap.freed_bytes > FREED_BYTES_MAX / 2);
    }
}
