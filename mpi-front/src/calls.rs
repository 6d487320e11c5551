//! Defining functions of MPI's as C calls them.

use std::ffi::CStr;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the arguments of MPI's functions are passed on as 64-bit registers and stack slots");

/// A string for C.
pub const fn c_string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("one zero, at the end"),
    }
}

/// Defines functions with these arguments. `|next|` is a call of the next definition with the same ones.
///
/// Every argument is an integer or a pointer, which differ from one MPI to the next. Each is passed on as a whole register or stack slot,
/// which holds any of them on 64-bit systems. What an `int` has beyond its half means nothing.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "the constant is that of the library that calls this")]
macro_rules! calls {
    ($($name:ident ($($argument:ident)*) |$next:ident| $body:expr;)+) => {
        $(
            /// See the MPI standard.
            ///
            /// # Safety
            ///
            /// As for MPI's.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "MPI's name")]
            pub unsafe extern "C" fn $name($($argument: usize),*) -> std::ffi::c_int {
                static NEXT: $crate::Next = $crate::Next::new(
                    crate::LIBRARY,
                    $crate::c_string(concat!(stringify!($name), "\0")),
                    $crate::c_string(concat!("P", stringify!($name), "\0")),
                );
                let $next = || -> std::ffi::c_int {
                    // SAFETY: the function has this name, so it takes these arguments, which are those of the caller, who calls MPI.
                    unsafe {
                        let function: unsafe extern "C" fn($($crate::calls!(@word $argument)),*) -> std::ffi::c_int =
                            std::mem::transmute(NEXT.address());
                        function($($argument),*)
                    }
                };
                $body
            }
        )+
    };
    (@word $argument:ident) => { usize };
}
