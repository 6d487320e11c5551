//! `fread`, `fwrite` and their kin. The C library gives long ranges of the client's memory to the kernel itself.

use super::pieces::{Direction, PIECE_BYTES, SplitRules, carry};
use super::{next, touches};
use libc::{FILE, c_char, iovec};
use std::ffi::{c_int, c_void};

unsafe extern "C" {
    fn flockfile(stream: *mut FILE);
    fn funlockfile(stream: *mut FILE);
}

/// Excludes other threads from a stream.
struct Locked(*mut FILE);

impl Locked {
    /// # Safety
    /// The stream is open.
    unsafe fn new(stream: *mut FILE) -> Locked {
        // SAFETY: the stream is open.
        unsafe { flockfile(stream) };
        Locked(stream)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: this thread has locked it.
        unsafe { funlockfile(self.0) };
    }
}

/// Carries items by a function with the parameters memory, item size and count, until it takes less than it was given.
/// Returns how many whole items were carried.
///
/// # Safety
/// The memory is the caller's to read or to write.
unsafe fn carry_items(
    (memory, size, count): (*const c_void, usize, usize),
    direction: Direction,
    function: impl Fn(*mut c_void, usize, usize) -> usize,
) -> usize {
    let len_bytes = size * count;
    let carry_vectors = |vectors: &[iovec], _done: usize| {
        let mut carried = 0;
        for vector in vectors {
            let len = function(vector.iov_base, 1, vector.iov_len);
            carried += len;
            if len < vector.iov_len {
                break;
            }
        }
        carried as isize
    };
    let rules = SplitRules { direction, goes_on: true, piece_bytes: PIECE_BYTES };
    let memory = iovec { iov_base: memory.cast_mut(), iov_len: len_bytes };
    // SAFETY: the memory is the caller's to read or to write.
    let carried = unsafe { carry(&[memory], rules, carry_vectors) };
    usize::try_from(carried).unwrap_or_default() / size
}

/// Whether these items overlap the segment.
#[inline(always)]
fn items_touch(memory: *const c_void, size: usize, count: usize) -> bool {
    touches(memory, size.saturating_mul(count)) && size.checked_mul(count).is_some_and(|len| len > 0)
}

/// Defines functions on items.
macro_rules! item_functions {
    ($($name:ident, $direction:ident, $memory:ty;)*) => {
        $(
            /// As the C library's function of this name.
            ///
            /// # Safety
            /// As for the C library's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(memory: $memory, size: usize, count: usize, stream: *mut FILE) -> usize {
                if !items_touch(memory, size, count) {
                    // SAFETY: the stream is open, and `memory` valid for `count` items of `size` bytes.
                    return unsafe { next::$name::call(memory, size, count, stream) };
                }
                // SAFETY: the stream is open, and the memory the caller's to read or to write.
                unsafe {
                    let _locked = Locked::new(stream);
                    carry_items((memory, size, count), Direction::$direction, |memory, size, count| {
                        next::$name::call(memory, size, count, stream)
                    })
                }
            }
        )*
    };
}

item_functions! {
    fread, In, *mut c_void;
    fread_unlocked, In, *mut c_void;
    fwrite, Out, *const c_void;
    fwrite_unlocked, Out, *const c_void;
}

/// As C's `fputs`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fputs(text: *const c_char, stream: *mut FILE) -> c_int {
    if !touches(text.cast(), 1) {
        // SAFETY: the text ends with a zero, and the stream is open.
        return unsafe { next::fputs::call(text, stream) };
    }
    // SAFETY: the text ends with a zero, and the stream is open.
    unsafe {
        let len = libc::strlen(text);
        if fwrite(text.cast(), 1, len, stream) == len { 1 } else { libc::EOF }
    }
}

/// As C's `puts`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn puts(text: *const c_char) -> c_int {
    unsafe extern "C" {
        static stdout: *mut FILE;
    }
    if !touches(text.cast(), 1) {
        // SAFETY: the text ends with a zero.
        return unsafe { next::puts::call(text) };
    }
    // SAFETY: the text ends with a zero.
    unsafe {
        let _locked = Locked::new(stdout);
        let is_written = fputs(text, stdout) >= 0 && fwrite(c"\n".as_ptr().cast(), 1, 1, stdout) == 1;
        if is_written { 1 } else { libc::EOF }
    }
}
