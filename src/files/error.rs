//! Why a call about a file fails.

use super::unwritten::named;
use super::{Bytes, Files, SharedFile};
use crate::engine::joined;
use crate::error::UserError;
use crate::stats::{self, Row};
use std::fmt::Display;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use vgasnet_protocol::coherence::Cause;

/// What becomes of bytes that could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// They stay in the pools.
    Kept,
    /// They are lost: the file is closed.
    Lost,
}

/// A call about a file has failed.
#[derive(Debug)]
pub enum FileError {
    /// The call makes no sense.
    Argument(UserError),
    /// The file system has refused something; its error number.
    Io(i32, UserError),
    /// For the reason of an error before, of which the user was told.
    Again(i32),
}

impl FileError {
    /// What makes no sense, and what to do about it.
    pub fn argument(line: impl Display) -> FileError {
        FileError::Argument(UserError::new(line.to_string()))
    }

    /// What could not be done with a file, and what to do about it.
    pub(super) fn io(path: &Path, what: &str, errno: i32) -> FileError {
        let (shown, error) = (path.display(), io::Error::from_raw_os_error(errno));
        FileError::Io(errno, UserError::new(format!("{shown}: cannot {what}: {error}; {}", hint(errno))))
    }

    /// These bytes could not be written.
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
    /// A sync has failed, and these bytes may be lost.
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

    /// How many errors of the file there were on this rank.
    pub fn errors(&self) -> u64 {
        self.state.errors.load(Ordering::Acquire)
    }

    pub(super) fn failed(&self, what: &str, Cause(errno): Cause) -> FileError {
        FileError::io(&self.path, what, errno as i32)
    }

    /// A call could not write these bytes, or not all of them.
    pub(super) fn not_written(&self, ranges: impl Iterator<Item = Bytes>, cause: Cause) -> FileError {
        stats::count(Row::FileRefused);
        FileError::unwritten(&self.path, cause, &named(&ranges_of(ranges), 0), Otherwise::Kept)
    }
}

impl Files {
    /// Fails if something that was to be written could not be: these bytes are not taken, then. A program that writes on gets a line once.
    pub(super) fn check_not_refused(
        &self,
        file: &SharedFile,
        ranges: impl Iterator<Item = Bytes>,
    ) -> Result<(), FileError> {
        let errno = file.state.refusal.load(Ordering::Relaxed);
        if errno == 0 {
            return Ok(());
        }
        stats::count(Row::FileRefused);
        file.state.note_error(Cause(errno));
        if file.state.told_refusal.swap(true, Ordering::Relaxed) {
            return Err(FileError::Again(errno as i32));
        }
        let before = self.driver().engine().unwritten(file.space).map(|unwritten| unwritten.ranges).unwrap_or_default();
        let bytes = format!("{} could not be written, so {}", named(&before, 0), named(&ranges_of(ranges), 0));
        Err(FileError::unwritten(&file.path, Cause(errno), &bytes, Otherwise::Kept))
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
        libc::EACCES | libc::EPERM => "give this user the right to it; to write a file also that to read it",
        libc::EROFS => "open it without VGASNET_FILE_WRITE, or give a path on another file system",
        libc::EMFILE | libc::ENFILE => "close files, or raise `ulimit -n`",
        libc::EISDIR => "give the path of a file",
        libc::ENAMETOOLONG => "give a shorter path",
        libc::EFBIG => "raise `ulimit -f`, or use a file system for larger files",
        libc::EINVAL | libc::EOPNOTSUPP => "give the path of a regular file",
        _ => "check the file system that it is on",
    }
}
