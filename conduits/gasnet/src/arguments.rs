//! The arguments of the program. Some launchers of GASNet pass options to their ranks in them.

use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStringExt;

/// The arguments of `main`, to be read and modified by GASNet.
#[derive(Debug)]
pub struct Arguments {
    pub(crate) count: *mut c_int,
    pub(crate) values: *mut *mut *mut c_char,
}

impl Arguments {
    /// The program's arguments, as passed to `vgasnet_init`. GASNet removes its own.
    ///
    /// # Safety
    /// Both are `main`'s or equivalent: `count` strings and a null pointer, valid until the process ends, and not used
    /// by others while GASNet starts.
    pub unsafe fn of_program(count: *mut c_int, values: *mut *mut *mut c_char) -> Arguments {
        Arguments { count, values }
    }

    /// A copy of the arguments the process was started with, for a program that passes none.
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
