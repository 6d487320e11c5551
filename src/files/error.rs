//! Errors of calls about files.

use super::unwritten::named;
use super::{Bytes, Files, SharedFile};
use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::Path;
use vgasnet_engine::joined;
use vgasnet_protocol::coherence::Cause;
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};

/// The fate of bytes that could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// They stay in the pools.
    Kept,
    /// They are lost: the file is closed.
    Lost,
}

/// The error of a call about a file.
#[derive(Debug)]
pub enum FileError {
    /// The call is invalid.
    Argument(UserError),
    /// The file system has refused an operation, with this error number.
    Io(i32, UserError),
    /// An earlier error, already reported to the user, has refused the call.
    Again(i32),
}

impl FileError {
    /// An invalid call: the line gives the mistake and the remedy.
    pub fn argument(line: impl Display) -> FileError {
        FileError::Argument(UserError::new(line.to_string()))
    }

    /// A failed operation on a file: the line gives the operation, the error and the remedy.
    pub(super) fn io(path: &Path, what: &str, errno: i32) -> FileError {
        let (shown, error) = (path.display(), io::Error::from_raw_os_error(errno));
        FileError::Io(errno, UserError::new(format!("{shown}: cannot {what}: {error}; {}", hint(errno))))
    }

    /// A failed write of these bytes.
    pub(super) fn unwritten(path: &Path, Cause(errno): Cause, bytes: &str, otherwise: Otherwise) -> FileError {
        let (shown, error) = (path.display(), io::Error::from_raw_os_error(errno as i32));
        let end = match otherwise {
            Otherwise::Kept => format!("were not written; {}, then sync it", hint(errno as i32)),
            Otherwise::Lost => format!("were not written and are lost; {}", hint(errno as i32)),
        };
        FileError::Io(errno as i32, UserError::new(format!("{shown}: cannot be written: {error}: {bytes} {end}")))
    }
}

impl FileError {
    /// A failed sync: these bytes may be lost.
    pub(super) fn doubtful(path: &Path, Cause(errno): Cause, bytes: &str) -> FileError {
        let (shown, error) = (path.display(), io::Error::from_raw_os_error(errno as i32));
        let hint = hint(errno as i32);
        FileError::Io(
            errno as i32,
            UserError::new(format!(
                "{shown}: cannot reach the disk: {error}: {bytes} may be lost; {hint}, write them again, then sync it"
            )),
        )
    }
}

#[cfg(feature = "mpi")]
impl FileError {
    /// A sync by one rank alone has failed, or came after a failed one.
    pub(super) fn synced_alone(path: &Path, errno: i32) -> FileError {
        let (shown, error) = (path.display(), io::Error::from_raw_os_error(errno));
        let hint = hint(errno);
        FileError::Io(
            errno,
            UserError::new(format!(
                "{shown}: cannot reach the disk: {error}: what was written since the last sync may be lost; {hint}, write it again, then \
                 have all ranks sync the file"
            )),
        )
    }
}

impl From<UserError> for FileError {
    fn from(line: UserError) -> FileError {
        FileError::Argument(line)
    }
}

impl SharedFile {
    /// The number of the file's first error on this rank, if there is one.
    pub fn first_error(&self) -> Option<i32> {
        self.state().first_error().map(|Cause(errno)| errno as i32)
    }

    /// Count of the file's errors on this rank.
    pub fn errors(&self) -> u64 {
        self.state().errors()
    }

    pub(super) fn failed(&self, what: &str, Cause(errno): Cause) -> FileError {
        FileError::io(self.path(), what, errno as i32)
    }

    /// The error of a call that wrote none of these bytes, or not all.
    pub(super) fn not_written(&self, ranges: impl Iterator<Item = Bytes>, cause: Cause) -> FileError {
        stats::count(Row::FileRefused);
        FileError::unwritten(self.path(), cause, &named(&ranges_of(ranges), 0), Otherwise::Kept)
    }
}

impl Files {
    /// Refuses a write of these bytes after a failed write-back. A program that goes on writing gets one line only.
    pub(super) fn check_not_refused(
        &self,
        file: &SharedFile,
        ranges: impl Iterator<Item = Bytes>,
    ) -> Result<(), FileError> {
        let Some(Cause(errno)) = file.state().refusal() else { return Ok(()) };
        stats::count(Row::FileRefused);
        file.state().note_error(Cause(errno));
        if !file.state().must_tell_refusal() {
            return Err(FileError::Again(errno as i32));
        }
        let before =
            self.driver().engine().unwritten(file.space()).map(|unwritten| unwritten.ranges).unwrap_or_default();
        let bytes = format!("{} could not be written, so {}", named(&before, 0), named(&ranges_of(ranges), 0));
        Err(FileError::unwritten(file.path(), Cause(errno), &bytes, Otherwise::Kept))
    }
}

fn ranges_of(bytes: impl Iterator<Item = Bytes>) -> Vec<Range<u64>> {
    let ranges = bytes.map(|Bytes { offset, len }| offset..offset + len as u64);
    joined(ranges.filter(|range| !range.is_empty()).collect())
}

fn hint(errno: i32) -> &'static str {
    match errno {
        libc::ENOSPC | libc::EDQUOT => "make room on its file system",
        libc::ENOENT => "give the path of a file, or one in a directory that is there, and VGASNET_FILE_CREATE",
        libc::EBUSY => {
            "a rank, another team or another job has it open to be written, or another program has locked it: use that handle, or \
             close it first"
        }
        libc::EEXIST => "remove it, or open it without VGASNET_FILE_EXCLUSIVE",
        libc::EACCES | libc::EPERM => "give this user the right to it; writing a file needs the right to read it, too",
        libc::EROFS => "open it without VGASNET_FILE_WRITE, or give a path on another file system",
        libc::EMFILE | libc::ENFILE => "close files, or raise `ulimit -n`",
        libc::EISDIR => "give the path of a file",
        libc::ENAMETOOLONG => "give a shorter path",
        libc::EFBIG => "raise `ulimit -f`, or use a file system for larger files",
        libc::EINVAL | libc::EOPNOTSUPP => "give the path of a regular file",
        _ => "check the file system that it is on",
    }
}
