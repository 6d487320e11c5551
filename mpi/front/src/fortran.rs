//! Defines MPI's functions for Fortran callers, where Fortran's calls bypass the C functions: all functions in Open
//! MPI; in MPICH the functions of `mpi_f08` without buffers.
//!
//! Every argument is an address. Handles are integers; `mpi_f08` wraps them in structs of one integer. The next
//! definition gets the caller's own arguments, so MPI itself handles Fortran's own `MPI_BOTTOM` and statuses.
//!
//! MPI's second names in Fortran are not defined. MPI's functions of these names call the C functions by `PMPI_`, which
//! are defined.

/// Defines functions with these arguments and one body. The name for mpif.h and `use mpi` stands before the comma, the
/// name for `mpi_f08` after it. Arguments behind a semicolon are lengths of strings, which come last.
#[macro_export]
#[allow(clippy::crate_in_macro_def, reason = "the constant is that of the library that calls this")]
macro_rules! fortran {
    ($($($plain:ident)*, $($new:ident)* => $arguments:tt |$next:ident| $body:expr;)+) => {
        $(
            $(#[cfg(open_mpi)] $crate::fortran!(@one $plain $arguments |$next| $body);)*
            $($crate::fortran!(@one $new $arguments |$next| $body);)*
        )+
    };
    (@one $name:ident ($($argument:ident)* $(; $($length:ident)+)?) |$next:ident| $body:expr) => {
        /// See the MPI standard.
        ///
        /// # Safety
        ///
        /// As for MPI's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: usize,)* error: *mut std::ffi::c_int $($(, $length: usize)+)?) {
            static NEXT: $crate::Next = $crate::Next::new(
                crate::LIBRARY,
                $crate::c_string(concat!(stringify!($name), "\0")),
                $crate::c_string(concat!("p", stringify!($name), "\0")),
            );
            let _serving = $crate::Serving::begin();
            let $next = || -> std::ffi::c_int {
                let mut code: std::ffi::c_int = 0;
                let (function, _passing) = NEXT.pass();
                // SAFETY: the function has this name, so it takes these arguments. A caller of MPI has supplied them.
                unsafe {
                    let function: unsafe extern "C" fn(
                        $($crate::fortran!(@word $argument),)* *mut std::ffi::c_int
                        $($(, $crate::fortran!(@word $length))+)?
                    ) = std::mem::transmute(function);
                    function($($argument,)* &mut code $($(, $length)+)?);
                }
                code
            };
            let code = $body;
            // `mpi_f08` programs may omit it.
            if !error.is_null() {
                // SAFETY: the caller has an integer there.
                unsafe { *error = code };
            }
        }
    };
    (@word $argument:ident) => { usize };
}
