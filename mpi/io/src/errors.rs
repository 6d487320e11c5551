//! MPI's error classes for system errors (MPI 4.0, section 14.7).

use crate::ffi::constants;
use crate::vgasnet::Failed;
use std::ffi::c_int;

/// The class for a failure, which is also a code.
pub fn class_of(failed: Failed) -> c_int {
    let constants = constants();
    let errno = match failed {
        Failed::System(errno) => errno,
        Failed::Argument => return constants.err_arg,
        Failed::Unsupported => return constants.err_unsupported,
        Failed::Otherwise => return constants.err_other,
    };
    match errno {
        libc::ENOSPC => constants.err_no_space,
        libc::EDQUOT => constants.err_quota,
        libc::EROFS => constants.err_read_only,
        libc::EACCES | libc::EPERM => constants.err_access,
        libc::ENOENT => constants.err_no_such_file,
        libc::EEXIST => constants.err_file_exists,
        libc::ENAMETOOLONG | libc::EISDIR | libc::ENOTDIR | libc::ELOOP => constants.err_bad_file,
        _ => constants.err_io,
    }
}
