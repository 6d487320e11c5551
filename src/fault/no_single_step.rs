//! Replaces `single_step.rs` on processors without single steps by the process itself.
//!
//! A page is unpinned once it is mapped. A thread that loses it before its instruction faults again.

use std::ffi::c_void;

pub(super) fn is_in_flight() -> bool {
    false
}

/// # Safety
/// None: nothing is read.
pub(super) unsafe fn keep(_page: u32, _context: *mut c_void) -> bool {
    false
}

pub(super) fn take_turn() {}

pub(super) fn release_pages() -> impl Iterator<Item = u32> {
    std::iter::empty()
}

/// # Safety
/// None: nothing is read.
pub(super) unsafe fn end(_context: *mut c_void) -> Option<std::iter::Empty<u32>> {
    None
}
