//! Defines MPI's functions under all their names, from one body each.
//!
//! In Fortran, functions are defined where Fortran's calls bypass the C functions: all functions in Open MPI; in MPICH
//! the functions of `mpi_f08` without buffers. MPI's second names in Fortran are not defined. MPI's functions of these
//! names call the C functions by `PMPI_`, which are defined.

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

/// Defines functions with these arguments for each group of names in brackets. In the body `|next|` calls the next
/// definition with the same arguments. An argument with a kind ([`crate::kind`]) is an [`crate::Argument`] in the body,
/// and others are words.
///
/// # Safety
///
/// The word `unsafe` at the beginning is a promise, as for the signatures of an `unsafe extern` block: by MPI's
/// standard the functions have these parameters, and the kinds are theirs.
///
/// | group | names |
/// | --- | --- |
/// | `c` | `MPI_Get`, `PMPI_Get` |
/// | `large` | with counts of 8 bytes, of MPI 4: `MPI_Get_c`, `PMPI_Get_c` |
/// | `fortran` | of mpif.h and `use mpi` in Open MPI: `mpi_get_`; of `mpi_f08`: `mpi_get_f08_` |
/// | `fortran_buffers` | the same, in Open MPI only. MPICH's functions with buffers call the C functions. |
/// | `fortran_cptr` | in Open MPI, with a C pointer as result: `mpi_win_allocate_cptr_` |
///
/// Arguments behind a semicolon are lengths of Fortran's strings, which come last; in C they are 0.
///
/// A tool loaded before this library calls the function by its `PMPI_` name. A tool loaded after it comes back by the
/// `PMPI_` name with a call the library has passed on; such a call goes to MPI ([`crate::passing`]).
///
/// In C every argument is an integer or a pointer, depending on the MPI. Each is passed on as a whole register or stack
/// slot, which holds either on 64-bit systems. In Fortran every argument is an address. The next definition gets the
/// caller's own arguments, so MPI itself handles Fortran's own `MPI_BOTTOM` and statuses.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "the constant is that of the library that calls this")]
macro_rules! calls {
    (unsafe $([$($group:ident)+] $entries:tt)+) => { $($($crate::calls!(@$group $entries);)+)+ };

    (@c {$($name:ident $($of_fortran:ident)? ($($argument:tt)*) |$next:ident| $body:expr;)+}) => {
        $($crate::calls!(@in_c $name "" false ($($argument)*) |$next| $body);)+
    };
    (@large {$($name:ident $($of_fortran:ident)? ($($argument:tt)*) |$next:ident| $body:expr;)+}) => {
        $(#[cfg(mpi_4)] $crate::calls!(@in_c $name "_c" true ($($argument)*) |$next| $body);)+
    };
    (@fortran {$($of_c:ident $name:ident $arguments:tt |$next:ident| $body:expr;)+}) => {$(
        #[cfg(open_mpi)]
        $crate::calls!(@in_fortran $name "_" $arguments |$next| $body);
        $crate::calls!(@in_fortran $name "_f08_" $arguments |$next| $body);
    )+};
    (@fortran_buffers $entries:tt) => {
        #[cfg(open_mpi)]
        $crate::calls!(@fortran $entries);
    };
    (@fortran_cptr {$($of_c:ident $name:ident $arguments:tt |$next:ident| $body:expr;)+}) => {
        $(#[cfg(open_mpi)] $crate::calls!(@in_fortran $name "_cptr_" $arguments |$next| $body);)+
    };

    (@in_c $name:ident $end:literal $is_large:literal
        ($($argument:ident $(: $kind:ident)?)* $(; $($length:ident)+)?) |$next:ident| $body:expr
    ) => {
        const _: () = {
            const NAME: &std::ffi::CStr = $crate::c_string(concat!(stringify!($name), $end, "\0"));
            const PROFILING_NAME: &std::ffi::CStr = $crate::c_string(concat!("P", stringify!($name), $end, "\0"));
            static NEXT: $crate::Next = $crate::Next::new(crate::LIBRARY, NAME, PROFILING_NAME);
            static NEXT_PROFILING: $crate::Next = $crate::Next::new(crate::LIBRARY, PROFILING_NAME, NAME);
            #[allow(dead_code, reason = "not every body reads arguments")]
            type Lang = $crate::C<$is_large>;

            /// # Safety
            ///
            /// `function` has this name. MPI's caller has passed these arguments to a function of the name, with the
            /// memory demanded by MPI's standard.
            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "as many as MPI's function has")]
            unsafe fn call(function: usize, $($argument: usize),*) -> std::ffi::c_int {
                // SAFETY: a function of this name takes these arguments, each in a register or stack slot. They are of
                // MPI's caller, who has promised the memory to it.
                unsafe {
                    let function: unsafe extern "C" fn($($crate::calls!(@word $argument)),*) -> std::ffi::c_int =
                        std::mem::transmute(function);
                    function($($argument),*)
                }
            }

            /// # Safety
            ///
            /// MPI's caller has passed these arguments to a function of this name, with the memory demanded by MPI's
            /// standard.
            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "as many as MPI's function has")]
            unsafe fn serve(from: &'static $crate::Next, $($argument: usize),*) -> std::ffi::c_int {
                #[allow(unused_variables, reason = "not every body reads arguments")]
                let serving = $crate::Serving::begin();
                // By value, so that nothing is stored before the body needs it.
                let $next = move || -> std::ffi::c_int {
                    let (function, _passing) = from.pass();
                    // SAFETY: the function was looked up by this name. MPI's caller has passed it these arguments.
                    unsafe { call(function, $($argument),*) }
                };
                $($(
                    // SAFETY: MPI's caller has passed the argument to this function, and the parameter is of this kind,
                    // by the promise to `calls!`. Both hold while the call is served.
                    let $argument = unsafe { $crate::Argument::<'_, Lang, $crate::kind::$kind>::new(&serving, $argument) };
                )?)*
                $($(#[allow(unused_variables, reason = "not every body reads strings")] let $length = 0;)+)?
                $body
            }

            /// See the MPI standard.
            ///
            /// # Safety
            ///
            /// MPI's caller promises the conditions of MPI's standard for this function. Addresses have the memory for
            /// their parameters; handles are of the parameters' kinds; buffers are left to the operation until it is
            /// complete.
            #[unsafe(export_name = concat!(stringify!($name), $end))]
            #[allow(clippy::too_many_arguments, reason = "as many as MPI's function has")]
            unsafe extern "C" fn plain($($argument: usize),*) -> std::ffi::c_int {
                // SAFETY: MPI's caller has passed these arguments to this name, and promises the memory.
                unsafe { serve(&NEXT, $($argument),*) }
            }

            /// The function under MPI's second name.
            ///
            /// # Safety
            ///
            /// As under the first: MPI's caller promises the memory of addresses, the kinds of handles, and buffers
            /// until the operation is complete.
            #[unsafe(export_name = concat!("P", stringify!($name), $end))]
            #[allow(clippy::too_many_arguments, reason = "as many as MPI's function has")]
            unsafe extern "C" fn profiling($($argument: usize),*) -> std::ffi::c_int {
                if NEXT_PROFILING.is_passed() {
                    // SAFETY: the function was looked up by this name. Its caller has passed these arguments, and
                    // promises the memory.
                    return unsafe { call(NEXT_PROFILING.address(), $($argument),*) };
                }
                // SAFETY: MPI's caller has passed these arguments to this name, and promises the memory.
                unsafe { serve(&NEXT_PROFILING, $($argument),*) }
            }
        };
    };

    (@in_fortran $name:ident $end:literal
        ($($argument:ident $(: $kind:ident)?)* $(; $($length:ident)+)?) |$next:ident| $body:expr
    ) => {
        const _: () = {
            static NEXT: $crate::Next = $crate::Next::new(
                crate::LIBRARY,
                $crate::c_string(concat!(stringify!($name), $end, "\0")),
                $crate::c_string(concat!("p", stringify!($name), $end, "\0")),
            );
            #[allow(dead_code, reason = "not every body reads arguments")]
            type Lang = $crate::Fortran;

            /// See the MPI standard.
            ///
            /// # Safety
            ///
            /// MPI's caller promises the conditions of MPI's standard for this function. Every argument is the address
            /// of the memory for its parameter, and `error` may be null; integers of handles are of the parameters'
            /// kinds; buffers are left to the operation until it is complete.
            #[unsafe(export_name = concat!(stringify!($name), $end))]
            #[allow(clippy::too_many_arguments, reason = "as many as MPI's function has")]
            unsafe extern "C" fn plain($($argument: usize,)* error: *mut std::ffi::c_int $($(, $length: usize)+)?) {
                #[allow(unused_variables, reason = "not every body reads arguments")]
                let serving = $crate::Serving::begin();
                let $next = move || -> std::ffi::c_int {
                    let mut code: std::ffi::c_int = 0;
                    let (function, _passing) = NEXT.pass();
                    // SAFETY: the function was looked up by this name, so it takes these arguments. They are of MPI's
                    // caller, who has promised the memory to it; the code has room of its own.
                    unsafe {
                        let function: unsafe extern "C" fn(
                            $($crate::calls!(@word $argument),)* *mut std::ffi::c_int
                            $($(, $crate::calls!(@word $length))+)?
                        ) = std::mem::transmute(function);
                        function($($argument,)* &mut code $($(, $length)+)?);
                    }
                    code
                };
                $($(
                    // SAFETY: MPI's caller has passed the argument to this function, and the parameter is of this kind,
                    // by the promise to `calls!`. Both hold while the call is served.
                    let $argument = unsafe { $crate::Argument::<'_, Lang, $crate::kind::$kind>::new(&serving, $argument) };
                )?)*
                let code = (move || -> std::ffi::c_int { $body })();
                // `mpi_f08` programs may omit it.
                if !error.is_null() {
                    // SAFETY: MPI's caller has room for an integer there, since it has not omitted the argument.
                    unsafe { *error = code };
                }
            }
        };
    };
    (@word $argument:ident) => { usize };
}
