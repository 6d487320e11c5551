//! Gets, puts and atomic operations by the functions of the C interface, as programs call them.

pub mod readonly;

use std::ffi::{c_int, c_void};
use std::ptr::with_exposed_provenance_mut;

unsafe extern "C" {
    fn vgasnet_get(to: *mut c_void, node: u32, from: *mut c_void, len_bytes: usize);
    fn vgasnet_put(node: u32, to: *mut c_void, from: *mut c_void, len_bytes: usize);
    fn vgasnet_get_nbi(to: *mut c_void, node: u32, from: *mut c_void, len_bytes: usize);
    fn vgasnet_put_nbi(node: u32, to: *mut c_void, from: *mut c_void, len_bytes: usize);
    fn vgasnet_atomic_u64(node: u32, address: *mut c_void, op: c_int, operand: u64, compare: u64) -> u64;
    fn vgasnet_atomic_u64_nbi(old: *mut u64, node: u32, address: *mut c_void, op: c_int, operand: u64, compare: u64);
    fn vgasnet_wait_syncnbi_all();
}

/// Gets from the address `from` of `node`'s segment. An address that is not there ends the job.
#[inline]
pub fn get(to: &mut [u8], node: u32, from: usize) {
    // SAFETY: the slice is valid for its length, and this call's alone until it returns.
    unsafe { vgasnet_get(to.as_mut_ptr().cast(), node, with_exposed_provenance_mut(from), to.len()) }
}

/// Puts to the address `to` of `node`'s segment.
#[inline]
pub fn put(node: u32, to: usize, from: &[u8]) {
    // SAFETY: the slice is valid for its length, and only read.
    unsafe { vgasnet_put(node, with_exposed_provenance_mut(to), from.as_ptr().cast_mut().cast(), from.len()) }
}

/// `VGASNET_ATOMIC_ADD`.
const ADD: c_int = 0;

/// Adds to the number at `address` of `node`'s segment. Returns what it was.
#[inline]
pub fn fetch_and_add(node: u32, address: usize, operand: u64) -> u64 {
    // SAFETY: the library checks the address, which is in no memory of Rust's.
    unsafe { vgasnet_atomic_u64(node, with_exposed_provenance_mut(address), ADD, operand, 0) }
}

/// Adds nothing to the numbers at all addresses at once, which gets them.
pub fn fetch_side_by_side(to: &mut [u8], node: u32, addresses: &[usize]) {
    for (to, address) in to.chunks_exact_mut(size_of::<u64>()).zip(addresses) {
        // SAFETY: the chunk has room for a number, which need not be aligned; it is borrowed until all are complete, below.
        unsafe {
            vgasnet_atomic_u64_nbi(to.as_mut_ptr().cast(), node, with_exposed_provenance_mut(*address), ADD, 0, 0)
        }
    }
    // SAFETY: this thread has no access region open.
    unsafe { vgasnet_wait_syncnbi_all() }
}

/// Gets from all addresses at once, as many bytes each as the chunks of `to` have.
pub fn get_side_by_side(to: &mut [u8], len_bytes: usize, node: u32, from: &[usize]) {
    for (to, from) in to.chunks_exact_mut(len_bytes).zip(from) {
        // SAFETY: the chunk is valid for its length; it is borrowed until all gets are complete, below.
        unsafe { vgasnet_get_nbi(to.as_mut_ptr().cast(), node, with_exposed_provenance_mut(*from), len_bytes) }
    }
    // SAFETY: this thread has no access region open.
    unsafe { vgasnet_wait_syncnbi_all() }
}

/// Puts the same bytes to all addresses at once.
pub fn put_side_by_side(node: u32, to: &[usize], from: &[u8]) {
    for to in to {
        // SAFETY: the slice is valid for its length, and only read.
        unsafe { vgasnet_put_nbi(node, with_exposed_provenance_mut(*to), from.as_ptr().cast_mut().cast(), from.len()) }
    }
    // SAFETY: this thread has no access region open.
    unsafe { vgasnet_wait_syncnbi_all() }
}
