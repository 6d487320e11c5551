//! Descriptors of the process. A cached file takes more of them than a file served by MPI. In a program with many open
//! files, further files are therefore served by MPI.

use crate::hold::Identity;
use crate::{ffi, say};
use std::ffi::{CString, c_int};
use std::sync::Once;

/// Whether half of the descriptors are in use: the library leaves the remaining ones to the program.
pub fn are_short() -> bool {
    lowest_free().is_none_or(|free| free >= limit() / 2)
}

/// Whether a file is not cached for lack of descriptors. The first time a line says so.
pub fn are_short_for(path: &std::ffi::CStr) -> bool {
    let (is_short, limit) = (are_short(), limit());
    if is_short {
        static TOLD: Once = Once::new();
        TOLD.call_once(|| {
            say(format_args!(
                "rank {}: MPI_File_open: {}: more than half of the {limit} descriptors of this process are in use; it is not cached, nor \
                 are further files until some are closed; raise ulimit -n",
                ffi::world_rank(),
                path.to_string_lossy()
            ));
        });
    }
    is_short
}

/// Writable descriptors of these files, searched only if descriptors are about to run short: the search takes a system
/// call for each.
pub fn writable_of(paths: &[CString]) -> Vec<c_int> {
    let limit = limit();
    if lowest_free().is_some_and(|free| free < limit / 4) {
        return Vec::new();
    }
    let files: Vec<Identity> = paths.iter().filter_map(|path| Identity::of(path)).collect();
    let is_writable = |descriptor: &c_int| {
        // SAFETY: the call changes nothing; a descriptor that is not open is refused.
        let flags = unsafe { libc::fcntl(*descriptor, libc::F_GETFL) };
        flags >= 0 && [libc::O_WRONLY, libc::O_RDWR].contains(&(flags & libc::O_ACCMODE))
    };
    let is_one = |descriptor: &c_int| Identity::of_descriptor(*descriptor).is_some_and(|its| files.contains(&its));
    (0..c_int::try_from(limit).unwrap_or(c_int::MAX)).filter(is_writable).filter(is_one).collect()
}

/// Maximum number of descriptors.
fn limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: there is room for the limits.
    let error = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if error == 0 { limit.rlim_cur } else { u64::MAX }
}

/// The next descriptor to be opened: all lower ones are in use. `None` if there is none.
fn lowest_free() -> Option<u64> {
    // SAFETY: the path is a string.
    let opened = unsafe { libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    if opened >= 0 {
        // SAFETY: it was just opened.
        unsafe { libc::close(opened) };
    }
    u64::try_from(opened).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_descriptor_is_the_next_one() {
        let free = lowest_free().expect("the test has few files");
        assert!(free > 2 && free < limit());
    }
}
