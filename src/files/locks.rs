//! Byte-range locks: of programs, and for atomic calls.

use super::together::Collective;
use super::{Bytes, Call, FileError, Files, SharedFile};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_protocol::file_locks::{LockId, LockMode, LockPurpose, LockRange, LockRequest};
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::Signalproof;

/// The locks of a file on this rank.
pub(super) struct Locks {
    /// Calls on the file are atomic, by a lock each.
    is_atomic: AtomicBool,
    held: Mutex<Vec<Held>>,
}

/// A lock held by the program: its range and its identity.
#[derive(Clone, Copy, Debug)]
struct Held {
    offset: u64,
    len: u64,
    id: LockId,
}

impl Locks {
    /// No locks. `is_atomic`: calls on the file are atomic.
    pub(super) fn new(is_atomic: bool) -> Locks {
        Locks { is_atomic: AtomicBool::new(is_atomic), held: Mutex::default() }
    }

    /// Whether calls on the file are atomic.
    pub(super) fn are_calls_atomic(&self) -> bool {
        self.is_atomic.load(Ordering::Relaxed)
    }

    /// Takes out the lock of exactly this range.
    fn take(&self, offset: u64, len: u64) -> Option<LockId> {
        let mut held = Signalproof::lock(&self.held);
        let at = held.iter().position(|held| (held.offset, held.len) == (offset, len))?;
        Some(held.swap_remove(at).id)
    }
}

impl Files {
    /// Switches atomicity of calls on or off. Collective over the file's team. Calls of other threads end before, or
    /// wait.
    ///
    /// # Errors
    /// The ranks disagree, or make different calls.
    pub fn set_atomic(&self, file: &Call<'_>, is_atomic: bool) -> Result<(), FileError> {
        self.come_together(file, Collective::SetAtomic(is_atomic))?;
        // No call in the new mode starts on any rank while one in the old mode is in progress on another.
        let alone = file.bar();
        self.wait_for_begun(&alone, Collective::SetAtomic(is_atomic));
        file.members().meet()?;
        alone.locks().is_atomic.store(is_atomic, Ordering::Relaxed);
        Ok(())
    }

    /// Locks a range of bytes, possibly beyond the file's end, and waits until the lock is granted.
    ///
    /// # Errors
    /// The range is empty, or its end is not below 2^64.
    pub fn lock(&self, file: &SharedFile, offset: u64, len: u64, mode: LockMode) -> Result<(), FileError> {
        let path = file.path().display();
        let Some(end) = offset.checked_add(len).filter(|_| len > 0) else {
            return Err(FileError::argument(format!(
                "{path}: a lock of {len} bytes from {offset} on; give at least one byte, and an end below 2^64"
            )));
        };
        let id = self.wait_for_lock(file, LockPurpose::Program, &[LockRange { start: offset, end, mode }]);
        Signalproof::lock(&file.locks().held).push(Held { offset, len, id });
        Ok(())
    }

    /// Releases this rank's lock of exactly this range.
    ///
    /// # Errors
    /// This rank has no lock of exactly this range.
    pub fn unlock(&self, file: &SharedFile, offset: u64, len: u64) -> Result<(), FileError> {
        let Some(id) = file.locks().take(offset, len) else {
            let path = file.path().display();
            return Err(FileError::argument(format!(
                "{path}: {len} bytes from {offset} on are not locked by this rank; unlock what was locked, with the same bytes"
            )));
        };
        self.driver().unlock_bytes(id);
        Ok(())
    }

    /// Releases all locks of the program: the file is being closed.
    pub(super) fn unlock_all(&self, file: &SharedFile) {
        let held = std::mem::take(&mut *Signalproof::lock(&file.locks().held));
        held.into_iter().for_each(|held| self.driver().unlock_bytes(held.id));
    }

    /// Runs `body`, atomically for these bytes if calls on the file are atomic.
    pub(super) fn in_one_step<R>(
        &self,
        file: &SharedFile,
        mode: LockMode,
        bytes: impl Iterator<Item = Bytes>,
        body: impl FnOnce() -> R,
    ) -> R {
        if !file.locks().are_calls_atomic() {
            return body();
        }
        let range = |bytes: Bytes| LockRange { start: bytes.offset, end: bytes.offset + bytes.len as u64, mode };
        let ranges: Vec<LockRange> = bytes.map(range).collect();
        let id = self.wait_for_lock(file, LockPurpose::Atomicity, &ranges);
        let result = body();
        self.driver().unlock_bytes(id);
        result
    }

    fn wait_for_lock(&self, file: &SharedFile, purpose: LockPurpose, ranges: &[LockRange]) -> LockId {
        let page_bytes = self.ops.space().page_bytes() as u64;
        let _waiting = stats::wait(Row::WaitLock);
        self.driver().lock_bytes(LockRequest {
            file: file.space(),
            purpose,
            stripes: file.stripes(),
            page_bytes,
            ranges,
        })
    }
}
