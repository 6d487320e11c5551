//! Access to regions as by a client of the contract.
#![allow(unsafe_code, reason = "a region is memory that others share; there is no safe way to it")]

use std::sync::atomic::AtomicU64;

use crate::Region;

/// Copies `bytes` into a region.
pub(super) fn write(region: Region, offset_bytes: usize, bytes: &[u8]) {
    assert!(offset_bytes + bytes.len() <= region.len_bytes);
    // SAFETY: the range lies in the region, mapped by contract until the process ends. The tests let no one else access
    // a range during a write.
    unsafe { region.at(offset_bytes).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}

/// Copies bytes out of a region.
pub(super) fn read(region: Region, offset_bytes: usize, len_bytes: usize) -> Vec<u8> {
    assert!(offset_bytes + len_bytes <= region.len_bytes);
    let mut bytes = vec![0; len_bytes];
    // SAFETY: as in `write`; nobody writes the range meanwhile.
    unsafe { region.at(offset_bytes).copy_to_nonoverlapping(bytes.as_mut_ptr(), len_bytes) };
    bytes
}

/// A word shared by ranks of a host.
pub(super) fn word(region: Region, offset_bytes: usize) -> &'static AtomicU64 {
    assert!(offset_bytes + 8 <= region.len_bytes && (region.address + offset_bytes) % 8 == 0);
    // SAFETY: inside the region, mapped until the process ends, and aligned. The tests access it by atomics only.
    unsafe { AtomicU64::from_ptr(region.at(offset_bytes).cast()) }
}
