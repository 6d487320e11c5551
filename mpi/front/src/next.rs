//! The next definitions of functions: the process would call them if the library were absent.

use crate::passing::{self, Family, Passing};
use crate::say::say;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

unsafe extern "C" {
    fn vgasnet_mpi_front_find(name: *const c_char, other_name: *const c_char) -> *mut c_void;
    fn vgasnet_mpi_front_is_its_mpi() -> c_int;
}

/// A function's next definition, looked up at the first call.
#[derive(Debug)]
pub struct Next {
    /// The library that looks it up.
    library: &'static str,
    name: &'static CStr,
    /// MPI's other name of the function, for MPIs without the first.
    other_name: &'static CStr,
    family: Family,
    address: AtomicUsize,
    /// Whether a call may come back to the library by MPI's second name. Set before the address.
    comes_back: AtomicBool,
}

impl Next {
    /// The function of these names, for a library of this name.
    pub const fn new(library: &'static str, name: &'static CStr, other_name: &'static CStr) -> Next {
        let family = Family::of(name.to_bytes());
        Next { library, name, other_name, family, address: AtomicUsize::new(0), comes_back: AtomicBool::new(false) }
    }

    /// The address. If there is none, the process ends with a line.
    #[inline]
    pub fn address(&self) -> usize {
        match self.address.load(Ordering::Acquire) {
            0 => self.find(),
            address => address,
        }
    }

    /// The address, for a call in progress until the other value is dropped.
    #[inline]
    pub fn pass(&self) -> (usize, Passing) {
        let address = self.address();
        if self.comes_back.load(Ordering::Relaxed) { self.pass_noted(address) } else { (address, Passing::away()) }
    }

    #[cold]
    fn pass_noted(&self, address: usize) -> (usize, Passing) {
        let is_past_tools = passing::bypasses_tools(self.family);
        (if is_past_tools { find(self.other_name, self.name) } else { address }, Passing::noted(self.family))
    }

    /// Whether this thread is passing on a call of the function, by any of its names: then this is the same call coming
    /// back.
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
        // If both of MPI's names are one function, no tool stands between the library and MPI. Calls by Fortran's names
        // always come back, by their C names.
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
    // SAFETY: both names end with a zero.
    unsafe { vgasnet_mpi_front_find(name.as_ptr(), other_name.as_ptr()) as usize }
}

/// Whether the process has the MPI for which the library was built, as far as MPI's name tells.
pub fn is_its_mpi() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    // SAFETY: it asks MPI for its name, by a function with the same arguments in every MPI.
    *IS.get_or_init(|| unsafe { vgasnet_mpi_front_is_its_mpi() != 0 })
}

/// Has the C layer of a library find the functions it calls, and returns MPI's constants. If there is no such function,
/// the process ends with a line.
///
/// # Safety
///
/// `resolve` returns null, or a name with a zero at its end. `store` stores all fields of `T`, as C lays them out.
/// Nobody calls the layer meanwhile.
pub unsafe fn resolve<T: Default>(
    library: &str,
    resolve: unsafe extern "C" fn() -> *const c_char,
    store: unsafe extern "C" fn(*mut T),
) -> T {
    // SAFETY: the caller promises a function of the layer without other conditions, and no call of the layer meanwhile.
    let missing = unsafe { resolve() };
    if !missing.is_null() {
        // SAFETY: it is not null, so it is a name with a zero at its end, as the caller promises.
        let name = unsafe { CStr::from_ptr(missing) }.to_string_lossy();
        say(library, format_args!("{name}: no library of this process has it"));
        std::process::abort();
    }
    let mut constants = T::default();
    // SAFETY: the caller promises a function that stores all fields of `T`, and there is a `T` to store to.
    unsafe { store(&mut constants) };
    constants
}
