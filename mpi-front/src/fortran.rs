//! Defining functions of MPI's as Fortran calls them, where its calls do not come by the C functions: all of them in Open MPI, and in
//! MPICH those of `mpi_f08` without buffers.
//!
//! Every argument is an address. Handles are integers; `mpi_f08` has them in structs of one integer. The next definition gets the caller's
//! own arguments, so what Fortran has of its own, its `MPI_BOTTOM` and its statuses, is left to MPI.
//!
//! MPI's second names in Fortran are not defined: MPI's own functions of these names call those of C by `PMPI_`, which are.

/// Defines functions with these arguments, all by the same body: that of mpif.h and `use mpi` before the comma, that of `mpi_f08` after it.
/// Arguments behind a semicolon are lengths of strings, which come last.
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
                // SAFETY: the function has this name, so it takes these arguments, which are those of the caller, who calls MPI.
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
            // `mpi_f08` may leave it out.
            if !error.is_null() {
                // SAFETY: the caller has an integer there.
                unsafe { *error = code };
            }
        }
    };
    (@word $argument:ident) => { usize };
}
