//! The next definitions of functions: those that the process would call if the library were not there.

use crate::passing::{self, Family, Passing};
use crate::say::say;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

unsafe extern "C" {
    fn vgasnet_mpi_front_find(name: *const c_char, other_name: *const c_char) -> *mut c_void;
    fn vgasnet_mpi_front_is_its_mpi() -> c_int;
}

/// One of them, looked for when it is called first.
#[derive(Debug)]
pub struct Next {
    /// Who looks for it.
    library: &'static str,
    name: &'static CStr,
    /// MPI's other name of it, for MPIs that have nothing by the first.
    other_name: &'static CStr,
    family: Family,
    address: AtomicUsize,
    /// A call of it may come back to the library by MPI's second name. Set before the address.
    comes_back: AtomicBool,
}

impl Next {
    /// The function of these names, for a library of this name.
    pub const fn new(library: &'static str, name: &'static CStr, other_name: &'static CStr) -> Next {
        let family = Family::of(name.to_bytes());
        Next { library, name, other_name, family, address: AtomicUsize::new(0), comes_back: AtomicBool::new(false) }
    }

    /// Where it is. Without any the process ends with a line.
    #[inline]
    pub fn address(&self) -> usize {
        match self.address.load(Ordering::Acquire) {
            0 => self.find(),
            address => address,
        }
    }

    /// Where it is, for a call that lasts until the other value is dropped.
    #[inline]
    pub fn pass(&self) -> (usize, Passing) {
        let address = self.address();
        if self.comes_back.load(Ordering::Relaxed) { self.pass_noted(address) } else { (address, Passing::away()) }
    }

    #[cold]
    fn pass_noted(&self, address: usize) -> (usize, Passing) {
        let is_past_tools = passing::is_behind_the_end(self.family);
        (if is_past_tools { find(self.other_name, self.name) } else { address }, Passing::noted(self.family))
    }

    /// Whether this thread has passed on a call of the function, by whichever name, and this is the same call.
    #[inline]
    pub fn is_passed(&self) -> bool {
        passing::is_passed(self.family)
    }

    #[cold]
    fn find(&self) -> usize {
        let address = find(self.name, self.other_name);
        if address == 0 {
            let name = self.name.to_string_lossy();
            say(
                self.library,
                format_args!("{name}: no library of this process has it besides; preload MPI behind this one"),
            );
            std::process::abort();
        }
        // Between the library and an MPI whose two names are one function there is nobody. Fortran's names are others.
        let comes_back = match self.name.to_bytes() {
            [b'P', ..] => false,
            [b'M', ..] => address != find(self.other_name, self.name),
            _ => true,
        };
        self.comes_back.store(comes_back, Ordering::Relaxed);
        self.address.store(address, Ordering::Release);
        address
    }
}

fn find(name: &CStr, other_name: &CStr) -> usize {
    // SAFETY: both are strings.
    unsafe { vgasnet_mpi_front_find(name.as_ptr(), other_name.as_ptr()) as usize }
}

/// Whether the process has the MPI that the library was built for, as far as can be told.
pub fn is_its_mpi() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    // SAFETY: it asks MPI for its name, by a function that has the same arguments in all of them.
    *IS.get_or_init(|| unsafe { vgasnet_mpi_front_is_its_mpi() != 0 })
}
