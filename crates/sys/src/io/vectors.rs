//! `readv`, `writev` and their kin.

use super::descriptors::split_rules_of;
use super::pieces::{Direction, carry};
use super::{next, slice, touch};
use libc::{iovec, off64_t};
use std::ffi::c_int;

/// Defines functions on vectors with `more` arguments behind them. `again` gives these after `done` bytes.
macro_rules! vector_functions {
    ($($name:ident($($more:ident: $type:ty),*), $direction:ident, $next:ident, |$done:ident| ($($again:expr),*);)*) => {
        $(
            /// As the function of this name in readv(2).
            ///
            /// # Safety
            /// As for the C library's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(
                file: c_int,
                vectors: *const iovec,
                count: c_int,
                $($more: $type),*
            ) -> isize {
                let len = usize::try_from(count).unwrap_or(usize::MAX);
                // SAFETY: there are as many vectors, as the caller says.
                if !unsafe { touch(vectors, len) } {
                    // SAFETY: `vectors` is valid for reads of `count` vectors, and each of them for its length in the
                    // direction of the call.
                    return unsafe { next::$next::call(file, vectors, count, $($more),*) };
                }
                let rules = split_rules_of(file, Direction::$direction);
                // SAFETY: the vectors' memory is the caller's to read or to write.
                unsafe {
                    carry(slice(vectors, len), rules, |piece, $done| {
                        next::$next::call(file, piece.as_ptr(), piece.len() as c_int, $($again),*)
                    })
                }
            }
        )*
    };
}

/// The next offset. Offset -1 stands for the file's own.
fn after(at: off64_t, done: usize) -> off64_t {
    if at == -1 { at } else { at + done as off64_t }
}

vector_functions! {
    readv(), In, readv, |_done| ();
    writev(), Out, writev, |_done| ();
    preadv(at: off64_t), In, preadv64, |done| (at + done as off64_t);
    preadv64(at: off64_t), In, preadv64, |done| (at + done as off64_t);
    pwritev(at: off64_t), Out, pwritev64, |done| (at + done as off64_t);
    pwritev64(at: off64_t), Out, pwritev64, |done| (at + done as off64_t);
    preadv2(at: off64_t, flags: c_int), In, preadv64v2, |done| (after(at, done), flags);
    preadv64v2(at: off64_t, flags: c_int), In, preadv64v2, |done| (after(at, done), flags);
    pwritev2(at: off64_t, flags: c_int), Out, pwritev64v2, |done| (after(at, done), flags);
    pwritev64v2(at: off64_t, flags: c_int), Out, pwritev64v2, |done| (after(at, done), flags);
}
