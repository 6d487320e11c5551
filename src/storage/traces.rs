//! What an open leaves in the file system, and how that is undone where it fails.

use super::NamedFile;
use nix::sys::stat::{Mode, fchmod, fstat, futimens};
use nix::sys::time::TimeSpec;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A time of change that no other file has, by which hosts tell whether they see the same file.
#[derive(Debug)]
pub struct Mark {
    /// The time that the file had.
    before: TimeSpec,
}

impl Mark {
    /// Marks a file that is open to be written; `None` if that cannot be taken off again. Who does not own the file can only have its time
    /// of change be now, which copies do not have either.
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
        // Where that is refused too, copies are told apart by size and time alone.
        let _refused = futimens(descriptor, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW);
        None
    }

    /// The file gets its time of change back.
    pub fn take_off(self, file: &NamedFile) {
        if let Some(descriptor) = file.as_fd() {
            // Who could set it a moment ago can do so now, unless the file system fails: then the time is wrong, and nothing else.
            let _failed = futimens(descriptor, &TimeSpec::UTIME_OMIT, &self.before);
        }
    }
}

impl NamedFile {
    /// Denies permissions that the file has. Descriptors that are open keep their rights.
    ///
    /// # Errors
    /// The system's.
    pub fn deny(&self, permissions: u32) -> io::Result<()> {
        let Some(descriptor) = self.as_fd() else { return Ok(()) };
        let has = fstat(descriptor)?.st_mode & 0o7777;
        Ok(fchmod(descriptor, Mode::from_bits_truncate(has & !permissions))?)
    }

    /// Removes its name, if the path is still that of this file.
    pub fn remove(&self, path: &Path) {
        let is_this = fs::metadata(path).is_ok_and(|about| (about.dev(), about.ino()) == self.identity());
        if is_this {
            // What cannot be removed stays, empty.
            let _failed = fs::remove_file(path);
        }
    }
}
