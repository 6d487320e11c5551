//! The next definitions of functions: those that the process would call if this library were not there.

use crate::ffi;
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One of them, looked for when it is called first.
pub struct Next {
    name: &'static CStr,
    /// MPI's second name of it, for MPIs that have nothing by the first.
    profiling_name: &'static CStr,
    address: AtomicUsize,
}

impl Next {
    /// The function of these names.
    pub const fn new(name: &'static CStr, profiling_name: &'static CStr) -> Next {
        Next { name, profiling_name, address: AtomicUsize::new(0) }
    }

    /// Where it is.
    #[inline]
    pub fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.find(),
            address => address,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        let address = ffi::find(self.name, self.profiling_name);
        if address == 0 {
            eprintln!(
                "vgasnet-mpi-cache: {}: no library of this process has it besides; preload MPI behind this one",
                self.name.to_string_lossy()
            );
            std::process::abort();
        }
        self.address.store(address, Ordering::Relaxed);
        address
    }
}
