//! Input and output of a segment's bytes: `read`, `write` and their kin, in front of the C library's.
//!
//! The kernel does not fault pages of a segment in: a system call that meets an address of one fails with EFAULT, or
//! stops there. So bytes of a segment go through a buffer: loads and stores fetch the pages as usual, and the system
//! call sees ordinary memory. No page is pinned while the call waits for a pipe or a peer. Calls on other memory cost
//! two comparisons.

mod descriptors;
mod next;
mod pieces;
mod sockets;
mod stdio;
mod vectors;

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The first address of the own segment.
static BASE: AtomicUsize = AtomicUsize::new(0);

/// Length of the own segment in bytes; 0 before it exists.
static SIZE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Declares these addresses as the segment's: accessed by loads and stores, but not given to the kernel.
pub fn keep_from_kernel(base: usize, size_bytes: usize) {
    BASE.store(base, Ordering::Relaxed);
    SIZE_BYTES.store(size_bytes, Ordering::Release);
}

/// Whether the address is the segment's.
#[inline(always)]
pub(super) fn is_in_segment(address: usize) -> bool {
    let size_bytes = SIZE_BYTES.load(Ordering::Acquire);
    address.wrapping_sub(BASE.load(Ordering::Relaxed)) < size_bytes
}

/// Whether the range overlaps the segment.
#[inline(always)]
fn touches(memory: *const c_void, len_bytes: usize) -> bool {
    let (size_bytes, address) = (SIZE_BYTES.load(Ordering::Acquire), memory.addr());
    let base = BASE.load(Ordering::Relaxed);
    size_bytes > 0 && (address.wrapping_sub(base) < size_bytes || base.wrapping_sub(address) < len_bytes)
}

/// Whether these vectors lie in the segment, or the memory of some overlaps it. Vectors that the kernel refuses do not
/// count.
///
/// # Safety
/// `vectors` is valid for reads of `count` vectors.
unsafe fn touch(vectors: *const libc::iovec, count: usize) -> bool {
    if SIZE_BYTES.load(Ordering::Acquire) == 0 || count > libc::UIO_MAXIOV as usize {
        return false;
    }
    // SAFETY: there are as many.
    let vectors = unsafe { slice(vectors, count) };
    let is_refused = vectors.iter().any(|vector| isize::try_from(vector.iov_len).is_err());
    let are_inside = touches(vectors.as_ptr().cast(), size_of_val(vectors));
    !is_refused && (are_inside || vectors.iter().any(|vector| touches(vector.iov_base, vector.iov_len)))
}

/// # Safety
/// `vectors` is valid for reads of `count` vectors as long as the slice is used, or `count` is 0.
unsafe fn slice<'a>(vectors: *const libc::iovec, count: usize) -> &'a [libc::iovec] {
    if count == 0 {
        return &[];
    }
    // SAFETY: `vectors` is valid for reads of `count` vectors, which is not 0 here.
    unsafe { std::slice::from_raw_parts(vectors, count) }
}
