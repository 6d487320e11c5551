//! What MPI says of the system's errors (MPI 4.0, section 14.7).

use crate::ffi::constants;
use std::ffi::c_int;

/// The class for an error number, which is a code as well.
pub fn class_of(errno: Option<c_int>) -> c_int {
    let constants = constants();
    match errno {
        Some(libc::ENOSPC) => constants.err_no_space,
        Some(libc::EDQUOT) => constants.err_quota,
        Some(libc::EROFS) => constants.err_read_only,
        Some(libc::EACCES | libc::EPERM) => constants.err_access,
        Some(libc::ENOENT) => constants.err_no_such_file,
        Some(libc::EEXIST) => constants.err_file_exists,
        Some(libc::ENAMETOOLONG | libc::EISDIR | libc::ENOTDIR | libc::ELOOP) => constants.err_bad_file,
        _ => constants.err_io,
    }
}
