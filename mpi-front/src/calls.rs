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

/// Defines functions with these arguments, by both of MPI's names. `|next|` is a call of the next definition with the same ones.
///
/// A tool that stands before this library calls it by `PMPI_`. One behind it comes back by that name with a call that the library has
/// passed on, which goes to MPI then ([`crate::passing`]).
///
/// Every argument is an integer or a pointer, which differ from one MPI to the next. Each is passed on as a whole register or stack slot,
/// which holds any of them on 64-bit systems. What an `int` has beyond its half means nothing.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "the constant is that of the library that calls this")]
macro_rules! calls {
    ($($name:ident ($($argument:ident)*) |$next:ident| $body:expr;)+) => {
        $(const _: () = {
            const NAME: &std::ffi::CStr = $crate::c_string(concat!(stringify!($name), "\0"));
            const PROFILING_NAME: &std::ffi::CStr = $crate::c_string(concat!("P", stringify!($name), "\0"));
            static NEXT: $crate::Next = $crate::Next::new(crate::LIBRARY, NAME, PROFILING_NAME);
            static NEXT_PROFILING: $crate::Next = $crate::Next::new(crate::LIBRARY, PROFILING_NAME, NAME);

            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "as many as MPI's function has")]
            fn call(function: usize, $($argument: usize),*) -> std::ffi::c_int {
                // SAFETY: the function has this name, so it takes these arguments, which are those of the caller, who calls MPI.
                unsafe {
                    let function: unsafe extern "C" fn($($crate::calls!(@word $argument)),*) -> std::ffi::c_int =
                        std::mem::transmute(function);
                    function($($argument),*)
                }
            }

            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "as many as MPI's function has")]
            fn serve(from: &'static $crate::Next, $($argument: usize),*) -> std::ffi::c_int {
                let _serving = $crate::Serving::begin();
                // By value, so that nothing is stored before the body wants it.
                let $next = move || -> std::ffi::c_int {
                    let (function, _passing) = from.pass();
                    call(function, $($argument),*)
                };
                $body
            }

            /// See the MPI standard.
            ///
            /// # Safety
            ///
            /// As for MPI's.
            #[unsafe(export_name = stringify!($name))]
            #[allow(clippy::too_many_arguments, reason = "as many as MPI's function has")]
            unsafe extern "C" fn plain($($argument: usize),*) -> std::ffi::c_int {
                serve(&NEXT, $($argument),*)
            }

            /// The same by MPI's second name.
            ///
            /// # Safety
            ///
            /// As for MPI's.
            #[unsafe(export_name = concat!("P", stringify!($name)))]
            #[allow(clippy::too_many_arguments, reason = "as many as MPI's function has")]
            unsafe extern "C" fn profiling($($argument: usize),*) -> std::ffi::c_int {
                if NEXT_PROFILING.is_passed() {
                    return call(NEXT_PROFILING.address(), $($argument),*);
                }
                serve(&NEXT_PROFILING, $($argument),*)
            }
        };)+
    };
    (@word $argument:ident) => { usize };
}
