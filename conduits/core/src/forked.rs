//! Descriptors that forked children do not keep. A child has its parent's open files, and with them the locks that
//! belong to these files: after the death of the parent it would keep them.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

/// Number of descriptors that are known. A child keeps further ones.
const KNOWN_MAX: usize = 4096;

const NONE: c_int = -1;

static KNOWN: [AtomicI32; KNOWN_MAX] = [const { AtomicI32::new(NONE) }; KNOWN_MAX];

/// Closes a descriptor in children of `fork`. Its number stays in use there.
pub fn keep_from_children(descriptor: c_int) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function makes only calls that a forked child may make.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    replace(NONE, descriptor);
}

/// The descriptor is about to be closed.
pub fn forget(descriptor: c_int) {
    replace(descriptor, NONE);
}

fn replace(old: c_int, new: c_int) {
    let _full =
        KNOWN.iter().find(|known| known.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok());
}

unsafe extern "C" fn in_child() {
    // SAFETY: the path is a string. These calls may be made in a forked child, and the descriptors are the library's.
    unsafe {
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        for known in &KNOWN {
            let descriptor = known.swap(NONE, Ordering::Relaxed);
            if descriptor != NONE {
                libc::dup3(nothing, descriptor, libc::O_CLOEXEC);
            }
        }
        libc::close(nothing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_child_has_nothing_in_place_of_the_file() {
        let kept = std::fs::File::open("/proc/self/exe").expect("a program");
        keep_from_children(kept.as_raw_fd());
        // SAFETY: all fields may be 0, and there is room for the answers. The child makes only calls that it may make.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let mut about: libc::stat = std::mem::zeroed();
                let is_known = libc::fstat(kept.as_raw_fd(), &mut about) == 0;
                libc::_exit(if is_known && about.st_mode & libc::S_IFMT == libc::S_IFCHR { 7 } else { 1 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(libc::WEXITSTATUS(status), 7);
        }
        forget(kept.as_raw_fd());
        assert!(kept.metadata().expect("it is open here").is_file());
    }
}
