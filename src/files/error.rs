//! Why a call about a file fails.

use super::SharedFile;
use crate::error::UserError;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use vgasnet_protocol::coherence::Cause;

/// A call about a file has failed.
#[derive(Debug)]
pub enum FileError {
    /// The call makes no sense.
    Argument(UserError),
    /// The file system has refused something; its error number.
    Io(i32, UserError),
}

impl FileError {
    pub(super) fn argument(line: impl Display) -> FileError {
        FileError::Argument(UserError::new(line.to_string()))
    }

    /// What could not be done with a file, and what to do about it.
    pub(super) fn io(path: &Path, what: &str, errno: i32) -> FileError {
        let (shown, error) = (path.display(), io::Error::from_raw_os_error(errno));
        FileError::Io(errno, UserError::new(format!("{shown}: cannot {what}: {error}; {}", hint(errno))))
    }
}

impl From<UserError> for FileError {
    fn from(line: UserError) -> FileError {
        FileError::Argument(line)
    }
}

impl SharedFile {
    /// The first error of the file on this rank, as an error number.
    pub fn first_error(&self) -> Option<i32> {
        let state = &self.state;
        let errors = [&state.first_error, &state.refusal].map(|error| error.load(Ordering::Relaxed));
        errors.into_iter().find(|errno| *errno != 0).map(|errno| errno as i32)
    }

    /// Fails if something that was to be written could not be.
    pub(super) fn check_not_refused(&self) -> Result<(), FileError> {
        match self.state.refusal.load(Ordering::Relaxed) {
            0 => Ok(()),
            errno => Err(self.failed("be written: something before could not be", Cause(errno))),
        }
    }

    pub(super) fn failed(&self, what: &str, Cause(errno): Cause) -> FileError {
        FileError::io(&self.path, what, errno as i32)
    }
}

fn hint(errno: i32) -> &'static str {
    match errno {
        libc::ENOSPC | libc::EDQUOT => "make room on its file system, then sync or close it again",
        libc::ENOENT => "give the path of a file, or open it with VGASNET_FILE_CREATE",
        libc::EEXIST => "remove it, or open it without VGASNET_FILE_EXCLUSIVE",
        libc::EACCES | libc::EPERM => "give this user the right to it",
        libc::EROFS => "open it without VGASNET_FILE_WRITE, or give a path on another file system",
        libc::EISDIR => "give the path of a file",
        libc::ENAMETOOLONG => "give a shorter path",
        libc::EFBIG => "raise `ulimit -f`, or use a file system for larger files",
        libc::EINVAL | libc::EOPNOTSUPP => "give the path of a regular file",
        _ => "check the file system that it is on",
    }
}
