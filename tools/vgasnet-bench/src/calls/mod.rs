//! Gets, puts and atomic operations through the functions of the C interface, as called by programs.

pub mod readonly;
pub mod values;

use std::ffi::{c_int, c_void};
use std::ptr::with_exposed_provenance_mut;

/// `vgasnet_handle_t`.
type Handle = *mut c_void;

unsafe extern "C" {
    fn vgasnet_get(to: *mut c_void, node: u32, from: *mut c_void, len_bytes: usize);
    fn vgasnet_put(node: u32, to: *mut c_void, from: *mut c_void, len_bytes: usize);
    fn vgasnet_get_nb(to: *mut c_void, node: u32, from: *mut c_void, len_bytes: usize) -> Handle;
    fn vgasnet_put_nb(node: u32, to: *mut c_void, from: *mut c_void, len_bytes: usize) -> Handle;
    fn vgasnet_wait_syncnb(handle: Handle);
    fn vgasnet_get_nbi(to: *mut c_void, node: u32, from: *mut c_void, len_bytes: usize);
    fn vgasnet_put_nbi(node: u32, to: *mut c_void, from: *mut c_void, len_bytes: usize);
    fn vgasnet_atomic_u64(node: u32, address: *mut c_void, op: c_int, operand: u64, compare: u64) -> u64;
    fn vgasnet_atomic_u64_nbi(old: *mut u64, node: u32, address: *mut c_void, op: c_int, operand: u64, compare: u64);
    fn vgasnet_wait_syncnbi_all();
}

/// Gets from the address `from` of `node`'s segment. An address outside it ends the job.
#[inline]
pub fn get(to: &mut [u8], node: u32, from: usize) {
    // SAFETY: the slice is valid for its length, and borrowed exclusively until the call returns.
    unsafe { vgasnet_get(to.as_mut_ptr().cast(), node, with_exposed_provenance_mut(from), to.len()) }
}

/// Puts to the address `to` of `node`'s segment.
#[inline]
pub fn put(node: u32, to: usize, from: &[u8]) {
    // SAFETY: the slice is valid for its length, and only read.
    unsafe { vgasnet_put(node, with_exposed_provenance_mut(to), from.as_ptr().cast_mut().cast(), from.len()) }
}

/// A get with a handle.
#[inline]
pub fn get_by_handle(to: &mut [u8], node: u32, from: usize) {
    // SAFETY: the slice is valid for its length, and borrowed until the get is complete. The handle is waited for once.
    unsafe {
        let from = with_exposed_provenance_mut(from);
        vgasnet_wait_syncnb(vgasnet_get_nb(to.as_mut_ptr().cast(), node, from, to.len()));
    }
}

/// A put with a handle.
#[inline]
pub fn put_by_handle(node: u32, to: usize, from: &[u8]) {
    // SAFETY: the slice is valid for its length, and only read. The handle is waited for once.
    unsafe {
        let to = with_exposed_provenance_mut(to);
        vgasnet_wait_syncnb(vgasnet_put_nb(node, to, from.as_ptr().cast_mut().cast(), from.len()));
    }
}

/// Starts a get of `len_bytes` from the address `from` of `node`'s segment. [`wait_for_all`] completes it.
///
/// # Safety
/// `to` is valid for writing `len_bytes`, and has no other user until the get is complete.
#[inline]
pub unsafe fn begin_get(to: *mut u8, node: u32, from: usize, len_bytes: usize) {
    // SAFETY: the caller guarantees the destination. The library checks the address.
    unsafe { vgasnet_get_nbi(to.cast(), node, with_exposed_provenance_mut(from), len_bytes) }
}

/// Starts a put of `len_bytes` to the address `to` of `node`'s segment. [`wait_for_all`] completes it.
///
/// # Safety
/// `from` is valid for reading `len_bytes`, and is not written until the put is complete.
#[inline]
pub unsafe fn begin_put(node: u32, to: usize, from: *const u8, len_bytes: usize) {
    // SAFETY: the caller guarantees the source. The library checks the address.
    unsafe { vgasnet_put_nbi(node, with_exposed_provenance_mut(to), from.cast_mut().cast(), len_bytes) }
}

/// Waits for all gets and puts started by this thread.
#[inline]
pub fn wait_for_all() {
    // SAFETY: no thread of this program has an access region open.
    unsafe { vgasnet_wait_syncnbi_all() }
}

/// `VGASNET_ATOMIC_ADD`.
const ADD: c_int = 0;

/// Adds to the number at `address` of `node`'s segment. Returns the previous value.
#[inline]
pub fn fetch_and_add(node: u32, address: usize, operand: u64) -> u64 {
    // SAFETY: the library checks the address. It lies outside Rust's memory.
    unsafe { vgasnet_atomic_u64(node, with_exposed_provenance_mut(address), ADD, operand, 0) }
}

/// Fetches the numbers at all addresses at once, by adding 0.
pub fn fetch_side_by_side(to: &mut [u8], node: u32, addresses: &[usize]) {
    for (to, address) in to.chunks_exact_mut(size_of::<u64>()).zip(addresses) {
        // SAFETY: the chunk has room for a number, which may be unaligned. It is borrowed until all operations are
        // complete, below.
        unsafe {
            vgasnet_atomic_u64_nbi(to.as_mut_ptr().cast(), node, with_exposed_provenance_mut(*address), ADD, 0, 0)
        }
    }
    wait_for_all();
}

/// Gets from all addresses at once, `len_bytes` into each chunk of `to`.
pub fn get_side_by_side(to: &mut [u8], len_bytes: usize, node: u32, from: &[usize]) {
    for (to, from) in to.chunks_exact_mut(len_bytes).zip(from) {
        // SAFETY: the chunk is valid for its length. It is borrowed until all gets are complete, below.
        unsafe { vgasnet_get_nbi(to.as_mut_ptr().cast(), node, with_exposed_provenance_mut(*from), len_bytes) }
    }
    wait_for_all();
}

/// Puts the same bytes to all addresses at once.
pub fn put_side_by_side(node: u32, to: &[usize], from: &[u8]) {
    for to in to {
        // SAFETY: the slice is valid for its length, and only read.
        unsafe { vgasnet_put_nbi(node, with_exposed_provenance_mut(*to), from.as_ptr().cast_mut().cast(), from.len()) }
    }
    wait_for_all();
}
