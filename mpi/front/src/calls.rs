//! Defines MPI's functions for C callers.

use std::ffi::CStr;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the arguments of MPI's functions are passed on as 64-bit registers and stack slots");

/// A text with one zero, at its end, as a C string.
pub const fn c_string(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("one zero, at the end"),
    }
}

/// Defines functions with these arguments under both of MPI's names. `|next|` calls the next definition with the same
/// arguments.
///
/// A tool loaded before this library calls the function by its `PMPI_` name. A tool loaded after it comes back by the
/// `PMPI_` name with a call the library has passed on; such a call goes to MPI ([`crate::passing`]).
///
/// Every argument is an integer or a pointer, depending on the MPI. Each is passed on as a whole register or stack
/// slot, which holds either on 64-bit systems. The upper half of an `int` argument is undefined.
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
                // SAFETY: the function has this name, so it takes these arguments. A caller of MPI has supplied them.
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
                // By value, so that nothing is stored before the body needs it.
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

            /// The function under MPI's second name.
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
