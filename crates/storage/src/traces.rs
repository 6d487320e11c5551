//! Traces of an open in the file system, and their removal if the open fails.

use super::NamedFile;
use nix::sys::stat::{Mode, fchmod, fstat, futimens};
use nix::sys::time::TimeSpec;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A modification time no other file has. Hosts compare it to learn whether they see the same file.
#[derive(Debug)]
pub struct Mark {
    /// The previous modification time.
    before: TimeSpec,
}

impl Mark {
    /// Marks a file open for writing; `None` if the mark cannot be removed again. A user without ownership of the file
    /// can only set its time to now; copies of the file lack this time, too.
    pub fn put(file: &NamedFile) -> Option<Mark> {
        let descriptor = file.as_fd()?;
        let about = fstat(descriptor).ok()?;
        let before = TimeSpec::new(about.st_mtime, about.st_mtime_nsec);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
        let nonce = RandomState::new().hash_one(now) % 1_000_000_000;
        let mark = TimeSpec::new(now as i64, nonce as i64);
        if futimens(descriptor, &TimeSpec::UTIME_OMIT, &mark).is_ok() {
            return Some(Mark { before });
        }
        // If this is refused as well, only size and time distinguish copies.
        let _refused = futimens(descriptor, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW);
        None
    }

    /// Restores the modification time.
    pub fn take_off(self, file: &NamedFile) {
        if let Some(descriptor) = file.as_fd() {
            // Setting the time worked before, so it fails only with the file system. Then the time stays wrong, without
            // further harm.
            let _failed = futimens(descriptor, &TimeSpec::UTIME_OMIT, &self.before);
        }
    }
}

impl NamedFile {
    /// Removes permissions from the file. Open descriptors keep their rights.
    ///
    /// # Errors
    /// The system's.
    pub fn deny(&self, permissions: u32) -> io::Result<()> {
        let Some(descriptor) = self.as_fd() else { return Ok(()) };
        let has = fstat(descriptor)?.st_mode & 0o7777;
        Ok(fchmod(descriptor, Mode::from_bits_truncate(has & !permissions))?)
    }

    /// Removes its name, if `path` still leads to this file.
    pub fn remove(&self, path: &Path) {
        let is_this = fs::metadata(path).is_ok_and(|about| (about.dev(), about.ino()) == self.identity());
        if is_this {
            // A name that cannot be removed stays, with an empty file.
            let _failed = fs::remove_file(path);
        }
    }
}
