//! Syncing a file to the disk, and the state of its bytes after a failed sync.

use super::super::IoDirection;
use super::super::operation::IoOperation;
use super::super::unsynced::{Doubt, Unsynced};
use super::{Kind, NamedFile, is_because};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use vgasnet_conduit::blocking_signals;

impl NamedFile {
    /// Waits until all writes, the size and the name of a created file are on the disk. The ranks with this file then
    /// exchange their results and call [`NamedFile::end_sync`].
    ///
    /// # Errors
    /// The system's, including errors of earlier writes through the page cache.
    pub fn sync(&self) -> io::Result<()> {
        blocking_signals(|| self.unsynced().begin_sync());
        let Kind::Disk(disk) = &self.kind else { return self.memory_to_write()?.sync() };
        disk.file.sync_all()?;
        self.sync_name()
    }

    /// Waits until the name is on the disk, if the file may be a new one. Later calls do nothing.
    ///
    /// # Errors
    /// The system's. The next call tries again.
    pub fn sync_name(&self) -> io::Result<()> {
        if let Kind::Disk(disk) = &self.kind
            && self.is_name_new.load(Ordering::Relaxed)
        {
            sync_name_of(&disk.file)?;
            self.is_name_new.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Ends a sync on all ranks. `failed` is the error number of a rank with a failed sync, if any. If all ranks have
    /// succeeded, the bytes in `again`, rewritten before the sync began, are no longer doubtful. Returns the remaining
    /// doubt, including doubt from earlier syncs.
    pub fn end_sync(&self, failed: Option<i32>, again: &[Range<u64>]) -> Option<Doubt> {
        let size_bytes = self.size_bytes().unwrap_or(u64::MAX);
        blocking_signals(|| {
            let mut unsynced = self.unsynced();
            match failed {
                Some(errno) => unsynced.on_failed(errno),
                None => unsynced.on_succeeded(again, size_bytes),
            }
            let doubt = unsynced.doubt();
            self.is_doubted.store(doubt.is_some(), Ordering::Release);
            doubt
        })
    }

    /// The bytes left doubtful by failed syncs.
    pub fn doubt(&self) -> Option<Doubt> {
        blocking_signals(|| self.unsynced().doubt())
    }

    /// Forgets all bytes behind the new end, after any rank has truncated the file.
    pub fn note_cut(&self, size_bytes: u64) {
        blocking_signals(|| self.unsynced().cut(size_bytes));
    }

    /// Records a successful operation.
    pub(crate) fn note_done(&self, operation: &IoOperation) {
        let range = operation.offset_bytes..operation.offset_bytes + operation.len_bytes as u64;
        match operation.direction {
            _ if self.is_nameless => {}
            IoDirection::Write => self.unsynced().note_written(range),
            IoDirection::Read if !self.is_doubted.load(Ordering::Acquire) => {}
            // A blocking reader may be in a thread whose signal handler reads as well.
            IoDirection::Read => blocking_signals(|| self.unsynced().note_read(range)),
        }
    }

    fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock().expect("nothing panics under this lock")
    }
}

/// Waits until the name of a file is on the disk. A file without a name needs no sync.
fn sync_name_of(file: &File) -> io::Result<()> {
    if file.metadata()?.nlink() == 0 {
        return Ok(());
    }
    let dir = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).and_then(|path| {
        let dir = path.parent().ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        File::open(dir)
    });
    match dir.map(|dir| dir.sync_all()) {
        // Some file systems cannot sync a directory.
        Ok(Err(error)) if is_because(&error, libc::EINVAL) => Ok(()),
        Ok(done) => done,
        // This user may not read the directory, or it has been renamed.
        Err(_) => {
            // SAFETY: the file is open.
            let done = unsafe { libc::syncfs(file.as_raw_fd()) };
            if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
        }
    }
}
