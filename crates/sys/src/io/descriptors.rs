//! `read`, `write`, `pread` and `pwrite`, and the rules for splitting calls.

use super::pieces::{Direction, MESSAGE_BYTES_MAX, PIECE_BYTES, SplitRules, carry};
use super::{next, touches};
use libc::{iovec, off64_t};
use std::ffi::{c_int, c_void};

/// The rules for input from a descriptor or output to it. Only files and disks have their next bytes at hand: on others
/// a second call might wait although one call would not. Messages are never split.
pub(super) fn split_rules_of(file: c_int, direction: Direction) -> SplitRules {
    // SAFETY: a status may be all zeros.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the status has room. An invalid descriptor is reported by the call itself.
    unsafe { libc::fstat(file, &raw mut status) };
    match status.st_mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFBLK => SplitRules { direction, goes_on: true, piece_bytes: PIECE_BYTES },
        libc::S_IFSOCK if !is_stream(file) => SplitRules { direction, goes_on: false, piece_bytes: MESSAGE_BYTES_MAX },
        _ => SplitRules { direction, goes_on: direction == Direction::Out, piece_bytes: PIECE_BYTES },
    }
}

fn is_stream(socket: c_int) -> bool {
    let (mut kind, mut len) = (0 as c_int, size_of::<c_int>() as u32);
    // SAFETY: the answer has room.
    let failed =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &raw mut len) } != 0;
    !failed && kind == libc::SOCK_STREAM
}

/// The memory of a call as a vector. The kernel takes no more than this length at a time.
pub(super) fn vector(memory: *const c_void, len: usize) -> [iovec; 1] {
    const LEN_MAX: usize = 0x7fff_f000;
    [iovec { iov_base: memory.cast_mut(), iov_len: len.min(LEN_MAX) }]
}

/// As POSIX `read`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn read(file: c_int, to: *mut c_void, len: usize) -> isize {
    if !touches(to, len) {
        // SAFETY: `to` is valid for writes of `len` bytes, as `read` demands.
        return unsafe { next::read::call(file, to, len) };
    }
    // SAFETY: the memory is the caller's to write, so the vectors are.
    unsafe {
        carry(&vector(to, len), split_rules_of(file, Direction::In), |to, _| {
            next::readv::call(file, to.as_ptr(), to.len() as c_int)
        })
    }
}

/// As POSIX `write`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn write(file: c_int, from: *const c_void, len: usize) -> isize {
    if !touches(from, len) {
        // SAFETY: `from` is valid for reads of `len` bytes, as `write` demands.
        return unsafe { next::write::call(file, from, len) };
    }
    let rules = split_rules_of(file, Direction::Out);
    // SAFETY: the memory is the caller's to read, so the vectors are.
    unsafe { carry(&vector(from, len), rules, |from, _| next::writev::call(file, from.as_ptr(), from.len() as c_int)) }
}

/// Defines the functions with a file offset. On systems with 64-bit offsets each has two names.
macro_rules! functions_at {
    ($($name:ident, $direction:ident, $memory:ty, $next:ident, $vectors:ident;)*) => {
        $(
            /// As POSIX `pread` or `pwrite`.
            ///
            /// # Safety
            /// As for the C library's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(file: c_int, memory: $memory, len: usize, at: off64_t) -> isize {
                if !touches(memory, len) {
                    // SAFETY: `memory` is valid for `len` bytes in the direction of the call.
                    return unsafe { next::$next::call(file, memory, len, at) };
                }
                let rules = split_rules_of(file, Direction::$direction);
                // SAFETY: the memory is the caller's to read or to write, so the vectors are.
                unsafe {
                    carry(&vector(memory, len), rules, |memory, done| {
                        next::$vectors::call(file, memory.as_ptr(), memory.len() as c_int, at + done as off64_t)
                    })
                }
            }
        )*
    };
}

functions_at! {
    pread, In, *mut c_void, pread64, preadv64;
    pread64, In, *mut c_void, pread64, preadv64;
    pwrite, Out, *const c_void, pwrite64, pwritev64;
    pwrite64, Out, *const c_void, pwrite64, pwritev64;
}
