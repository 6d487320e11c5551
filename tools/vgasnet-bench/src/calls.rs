//! Gets and puts by the functions of the C interface, as programs call them.

use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;

unsafe extern "C" {
    fn vgasnet_get(to: *mut c_void, node: u32, from: *mut c_void, len_bytes: usize);
    fn vgasnet_put(node: u32, to: *mut c_void, from: *mut c_void, len_bytes: usize);
    fn vgasnet_get_nbi(to: *mut c_void, node: u32, from: *mut c_void, len_bytes: usize);
    fn vgasnet_put_nbi(node: u32, to: *mut c_void, from: *mut c_void, len_bytes: usize);
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
