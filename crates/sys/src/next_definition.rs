//! The definitions of functions that the library's own stand before.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

/// The definition of a function behind the library's own, in the search order of the dynamic linker. If the library
/// comes last there, as a dependency of a dependency, it is the first definition: the library's functions are then
/// called through the slots of `interposed.rs`. Null if there is none, as in a static program.
pub(super) fn next_definition(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a terminated string.
    let next = unsafe { find_next(name) };
    if !next.is_null() {
        return next;
    }
    // SAFETY: the same.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if base_of(first) == base_of(next_definition as fn(&CStr) -> *mut c_void as *mut c_void) {
        null_mut()
    } else {
        first
    }
}

/// glibc before 2.36 finds the oldest version of a name behind the caller. Condition variables of 2.2.5 on x86-64 have
/// another layout than those of 2.3.2, which all programs use.
///
/// # Safety
/// The name is a terminated string.
unsafe fn find_next(name: &CStr) -> *mut c_void {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    if name.to_bytes().starts_with(b"pthread_cond_") {
        // SAFETY: the strings are terminated.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), c"GLIBC_2.3.2".as_ptr()) };
        if !found.is_null() {
            return found;
        }
    }
    // SAFETY: the name is a terminated string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// The start of the object with this address.
fn base_of(address: *const c_void) -> *mut c_void {
    // SAFETY: a `Dl_info` is pointers, which may be null.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: there is room for the answer.
    unsafe { libc::dladdr(address, &raw mut info) };
    info.dli_fbase
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_c_library_are_found_and_others_are_not() {
        let found = next_definition(c"getpid");
        // SAFETY: the name is a terminated string.
        assert_eq!(found, unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"getpid".as_ptr()) });
        assert!(!found.is_null() && base_of(found) == base_of(libc::getppid as *const c_void));
        assert!(next_definition(c"vgasnet_no_such_function").is_null());
    }
}
