//! The arguments of the program. Some launchers of GASNet hide options for their ranks there.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;

/// The arguments of `main` that GASNet gets, and may change.
#[derive(Debug)]
pub struct Arguments {
    pub(crate) count: *mut c_int,
    pub(crate) values: *mut *mut *mut c_char,
}

impl Arguments {
    /// The places where the program has its arguments, as `vgasnet_init` is given them. GASNet takes its own out.
    ///
    /// # Safety
    /// Both are `main`'s or like them: `count` strings and a null pointer, all of which stay until the process ends, and
    /// nobody else uses the two places while GASNet starts.
    pub unsafe fn of_program(count: *mut c_int, values: *mut *mut *mut c_char) -> Arguments {
        Arguments { count, values }
    }

    /// A copy of the arguments that the process was started with, for a program that gives none.
    pub fn of_process() -> Arguments {
        let strings = std::env::args_os().map(|argument| CString::new(argument.into_vec()).unwrap_or_default());
        let mut values: Vec<*mut c_char> = strings.map(CString::into_raw).collect();
        let count = values.len() as c_int;
        values.push(std::ptr::null_mut());
        // GASNet keeps pointers to all of it.
        let values: &'static mut [*mut c_char] = values.leak();
        Arguments { count: Box::leak(Box::new(count)), values: Box::leak(Box::new(values.as_mut_ptr())) }
    }
}
