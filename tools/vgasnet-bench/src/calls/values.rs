//! Gets and puts by value, through the functions of the C interface.

use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;

unsafe extern "C" {
    fn vgasnet_get_val(node: u32, from: *mut c_void, len_bytes: usize) -> usize;
    fn vgasnet_put_val(node: u32, to: *mut c_void, value: usize, len_bytes: usize);
}

/// Gets up to 8 bytes from the address `from` of `node`'s segment, as the lowest bytes of a number.
#[inline]
pub fn get_val(node: u32, from: usize, len_bytes: usize) -> usize {
    // SAFETY: the library checks the address and the number of bytes.
    unsafe { vgasnet_get_val(node, with_exposed_provenance_mut(from), len_bytes) }
}

/// Puts the lowest bytes of a number, up to 8, to the address `to` of `node`'s segment.
#[inline]
pub fn put_val(node: u32, to: usize, value: usize, len_bytes: usize) {
    // SAFETY: the library checks the address and the number of bytes.
    unsafe { vgasnet_put_val(node, with_exposed_provenance_mut(to), value, len_bytes) }
}
