//! Gets, puts and atomic operations by the functions of the C interface, as programs call them.

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

/// Gets as [`get`] does, by a handle.
#[inline]
pub fn get_by_handle(to: &mut [u8], node: u32, from: usize) {
    // SAFETY: the slice is valid for its length, and borrowed until the get is complete. The handle is waited for once.
    unsafe {
        let from = with_exposed_provenance_mut(from);
        vgasnet_wait_syncnb(vgasnet_get_nb(to.as_mut_ptr().cast(), node, from, to.len()));
    }
}

/// Puts as [`put`] does, by a handle.
#[inline]
pub fn put_by_handle(node: u32, to: usize, from: &[u8]) {
    // SAFETY: the slice is valid for its length, and only read. The handle is waited for once.
    unsafe {
        let to = with_exposed_provenance_mut(to);
        vgasnet_wait_syncnb(vgasnet_put_nb(node, to, from.as_ptr().cast_mut().cast(), from.len()));
    }
}

/// Begins a get of so many bytes from the address `from` of `node`'s segment, which [`wait_for_all`] completes.
///
/// # Safety
/// So many bytes may be written to `to`, and nobody uses them until the get is complete.
#[inline]
pub unsafe fn begin_get(to: *mut u8, node: u32, from: usize, len_bytes: usize) {
    // SAFETY: the caller has said so of the destination, and the library checks the address.
    unsafe { vgasnet_get_nbi(to.cast(), node, with_exposed_provenance_mut(from), len_bytes) }
}

/// Begins a put of so many bytes to the address `to` of `node`'s segment, which [`wait_for_all`] completes.
///
/// # Safety
/// So many bytes may be read at `from`, and nobody writes them until the put is complete.
#[inline]
pub unsafe fn begin_put(node: u32, to: usize, from: *const u8, len_bytes: usize) {
    // SAFETY: the caller has said so of the source, and the library checks the address.
    unsafe { vgasnet_put_nbi(node, with_exposed_provenance_mut(to), from.cast_mut().cast(), len_bytes) }
}

/// Waits for all gets and puts that this thread has begun.
#[inline]
pub fn wait_for_all() {
    // SAFETY: no thread of this program has an access region open.
    unsafe { vgasnet_wait_syncnbi_all() }
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
    wait_for_all();
}

/// Gets from all addresses at once, as many bytes each as the chunks of `to` have.
pub fn get_side_by_side(to: &mut [u8], len_bytes: usize, node: u32, from: &[usize]) {
    for (to, from) in to.chunks_exact_mut(len_bytes).zip(from) {
        // SAFETY: the chunk is valid for its length; it is borrowed until all gets are complete, below.
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
