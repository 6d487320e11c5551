//! The next definitions of functions of the C library that this library replaces. `front.c` has those of MPI's.

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The answer in place of a function that the C library lacks: -1, with `errno`.
pub fn missing() -> c_int {
    // SAFETY: the place is the thread's own.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

/// The next function of a name. It is looked up once, at the start: later the caller may be a signal handler.
pub struct NextFunction {
    name: &'static CStr,
    address: AtomicUsize,
}

impl NextFunction {
    /// The next function of this name.
    pub const fn new(name: &'static CStr) -> NextFunction {
        NextFunction { name, address: AtomicUsize::new(0) }
    }

    /// The address, or 0 if there is no such function.
    pub fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.look_up(),
            address => address,
        }
    }

    /// Looks the function up.
    #[cold]
    pub fn look_up(&self) -> usize {
        // SAFETY: the name is a string.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.address.store(address, Ordering::Relaxed);
        address
    }
}
