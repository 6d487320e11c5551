//! The next definitions of functions: those that the process would call if the library were not there.

use crate::say::say;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

unsafe extern "C" {
    fn vgasnet_mpi_front_find(name: *const c_char, profiling_name: *const c_char) -> *mut c_void;
    fn vgasnet_mpi_front_is_its_mpi() -> c_int;
}

/// One of them, looked for when it is called first.
#[derive(Debug)]
pub struct Next {
    /// Who looks for it.
    library: &'static str,
    name: &'static CStr,
    /// MPI's second name of it, for MPIs that have nothing by the first.
    profiling_name: &'static CStr,
    address: AtomicUsize,
}

impl Next {
    /// The function of these names, for a library of this name.
    pub const fn new(library: &'static str, name: &'static CStr, profiling_name: &'static CStr) -> Next {
        Next { library, name, profiling_name, address: AtomicUsize::new(0) }
    }

    /// Where it is. Without any the process ends with a line.
    #[inline]
    pub fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.find(),
            address => address,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        // SAFETY: both are strings.
        let address = unsafe { vgasnet_mpi_front_find(self.name.as_ptr(), self.profiling_name.as_ptr()) } as usize;
        if address == 0 {
            let name = self.name.to_string_lossy();
            say(
                self.library,
                format_args!("{name}: no library of this process has it besides; preload MPI behind this one"),
            );
            std::process::abort();
        }
        self.address.store(address, Ordering::Relaxed);
        address
    }
}

/// Whether the process has the MPI that the library was built for, as far as can be told.
pub fn is_its_mpi() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    // SAFETY: it asks MPI for its name, by a function that has the same arguments in all of them.
    *IS.get_or_init(|| unsafe { vgasnet_mpi_front_is_its_mpi() != 0 })
}
