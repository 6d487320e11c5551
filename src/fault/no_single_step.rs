//! Processors without single steps that a process can take by itself.
//!
//! A page is let go when it is mapped, and a thread that loses it before its instruction asks again.

use std::ffi::c_void;

pub fn is_under_way() -> bool {
    false
}

pub unsafe fn keep(_page: u32, _context: *mut c_void) -> bool {
    false
}

pub fn take_turn() {}

pub fn let_go() -> impl Iterator<Item = u32> {
    std::iter::empty()
}

pub unsafe fn is_repeated(_context: *mut c_void, _address: usize) -> bool {
    false
}

pub unsafe fn end(_context: *mut c_void) -> Option<std::iter::Empty<u32>> {
    None
}
