//! How long a file is. Who writes behind its end notes that, and tells nobody; who reads there asks.

use super::error::Otherwise;
use super::together::Collective;
use super::{Bytes, Call, FileError, Files, SharedFile};
use crate::ops::Operation;
use crate::request::Handle;
use crate::storage::errno_of;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_message::{FileAsk, PageFilter};

/// In a larger team ranks do not ask each other, which takes messages as the square of their number when all ask at once. Each asks the
/// first, which takes two messages one after the other in place of one.
const ASKED_MAX: usize = 4;

/// Bytes of a number that is written back as it is.
const NUMBER_BYTES: u64 = 4;

impl SharedFile {
    /// Bytes of the file, as far as this rank knows.
    pub(super) fn known_bytes(&self) -> u64 {
        self.known_bytes.load(Ordering::Acquire).max(self.state.written_end.load(Ordering::Acquire))
    }

    /// The other ranks that have the file open.
    pub(super) fn others(&self) -> impl Iterator<Item = Rank> + '_ {
        let is_other = |(at, _): &(usize, &u32)| *at != self.me as usize;
        self.members.iter().enumerate().filter(is_other).map(|(_, rank)| Rank(*rank))
    }
}

/// The file is so long from now on, whatever becomes of the write. No bytes make no file longer. Noted before some of the write's pages may
/// reach the file, or who gives the file its size meanwhile would cut them off.
pub(super) fn note_end(file: &SharedFile, Bytes { offset, len }: Bytes) {
    let end = offset + len as u64;
    // Mostly it is known: threads that write side by side leave each other's caches alone.
    if len > 0 && file.state.written_end.load(Ordering::Relaxed) < end {
        file.state.written_end.fetch_max(end, Ordering::AcqRel);
    }
}

/// How long a write waits for a rank that gives the file its size. That rank gives up in half of this time, unless it has died.
const HOLD_PATIENCE: Duration = Duration::from_secs(2);

fn range_of(Bytes { offset, len }: Bytes) -> Range<u64> {
    offset..offset + len as u64
}

impl SharedFile {
    /// A write has succeeded: what a failed sync was about may be written again.
    pub(super) fn note_again(&self, bytes: impl Iterator<Item = Bytes>) {
        if self.state.again.is_doubted() {
            bytes.for_each(|bytes| self.state.again.note(range_of(bytes)));
        }
    }
}

impl Files {
    /// Notes a write of these bytes before any of them can reach the file. Waits while a rank that rescues the file gives it its size.
    #[inline]
    pub(super) fn intend(&self, file: &SharedFile, Bytes { offset, len }: Bytes) {
        if len > 0 && file.state.intend_end(offset + len as u64) {
            self.wait_for_holder(file);
        }
    }

    #[cold]
    fn wait_for_holder(&self, file: &SharedFile) {
        let end = Instant::now() + HOLD_PATIENCE;
        self.driver().wait_until_or(&|| !file.state.is_end_held(), Some(end));
        if file.state.is_end_held() {
            file.state.abandon_holds();
        }
    }

    /// Cuts whatever the file has behind the end of all writes. Other ranks may write meanwhile.
    ///
    /// # Errors
    /// The file system has refused, or other ranks have answered too late.
    #[cfg(feature = "mpi")]
    pub(super) fn cut_to_end(&self, file: &SharedFile) -> std::io::Result<()> {
        let Some(named) = &file.file else { return Ok(()) };
        let (driver, start) = (self.driver(), Instant::now());
        let members = || file.members.iter().map(|rank| Rank(*rank));
        let answers = driver.ask_of_file(members(), file.space, FileAsk::HoldEnd, 0);
        let end = answers.iter().map(|answer| answer.value).fold(file.known_bytes(), u64::max);
        let cut = match named.size_bytes()? > end {
            true if start.elapsed() > HOLD_PATIENCE / 2 => Err(std::io::Error::from_raw_os_error(libc::ETIMEDOUT)),
            true => named.set_size(end),
            false => Ok(()),
        };
        driver.ask_of_file(members(), file.space, FileAsk::ReleaseEnd, 0);
        cut
    }

    /// How many bytes the file has: what a read that begins now can find.
    pub fn size(&self, file: &SharedFile) -> u64 {
        if !file.access.write {
            return file.known_bytes();
        }
        let driver = self.driver();
        let answers = if file.members.len() <= ASKED_MAX {
            driver.ask_of_file(file.others(), file.space, FileAsk::End, 0)
        } else {
            driver.ask_of_file(std::iter::once(Rank(file.members[0])), file.space, FileAsk::Size, 0)
        };
        let end = answers.iter().map(|answer| answer.value).fold(file.known_bytes(), u64::max);
        self.note_size(file, end);
        end
    }

    /// The size of the file, as far as it matters for a read that ends there.
    pub(super) fn size_up_to(&self, file: &SharedFile, end: u64) -> u64 {
        let known = file.known_bytes();
        if end > known { self.size(file) } else { known }
    }

    /// This rank has written these bytes, or some of them: who finds the file to be so long finds them there. The call is under way until
    /// then, and nobody gives the file its size meanwhile.
    pub(super) fn note_written(&self, file: &SharedFile, bytes: Bytes) {
        note_end(file, bytes);
        if let Some(pages) = self.pages_of(bytes) {
            file.state.note_written_pages(pages);
        }
    }

    /// An operation on these bytes has begun. When it ends is its program's affair, if it has a handle.
    pub(super) fn note_begun(&self, file: &SharedFile, bytes: Bytes, handle: Option<Handle>, is_write: bool) {
        let pages = self.pages_of(bytes).filter(|_| is_write).unwrap_or_default();
        if is_write {
            file.state.again.note_begun(range_of(bytes), || file.errors());
        }
        match handle {
            Some(handle) => file.state.note_begun(handle, pages, |handle| self.ops.is_under_way(handle)),
            None => file.state.note_written_pages(pages),
        }
    }

    fn pages_of(&self, Bytes { offset, len }: Bytes) -> Option<PageFilter> {
        let page_bytes = self.page_bytes();
        let last = (offset + len as u64).checked_sub(1).filter(|_| len > 0)?;
        Some(PageFilter::of((offset / page_bytes) as u32, (last / page_bytes) as u32))
    }

    /// The file has at least so many bytes.
    pub(super) fn note_size(&self, file: &SharedFile, bytes: u64) {
        let before = file.known_bytes.fetch_max(bytes, Ordering::AcqRel);
        if bytes > before {
            let pages = bytes.div_ceil(self.page_bytes()) as u32;
            self.driver().engine().note_end(file.space, pages);
        }
    }

    /// Has the file at least so many bytes: zeros where nobody has written. In the file system it has them when this rank has flushed it.
    ///
    /// # Errors
    /// It is not to be written, or may not be so long.
    pub fn extend(&self, file: &SharedFile, bytes: u64) -> Result<(), FileError> {
        self.check_size(file, bytes)?;
        note_end(file, Bytes { offset: 0, len: bytes as usize });
        file.extended_end.fetch_max(bytes, Ordering::AcqRel);
        Ok(())
    }

    /// Has the file in the file system at least as long as this rank has made it without writing. Where there is no room for a block it gets
    /// that size from the next sync, which needs none.
    ///
    /// # Errors
    /// The file system refuses it otherwise.
    pub(super) fn extend_named(&self, file: &SharedFile) -> Result<(), FileError> {
        let end = file.extended_end.load(Ordering::Acquire);
        let Some(last) = end.checked_sub(1) else { return Ok(()) };
        match file.file.as_ref().map_or(Ok(false), |named| named.extend(end)) {
            Ok(true) => {}
            Ok(false) => self.write_block(file, Bytes { offset: last, len: 1 })?,
            Err(error) if matches!(errno_of(&error), libc::ENOSPC | libc::EDQUOT) => return Ok(()),
            Err(error) => return Err(file.failed("get its size", Cause(errno_of(&error).unsigned_abs()))),
        }
        // Unless the file has been made longer by now.
        let _longer = file.extended_end.compare_exchange(end, 0, Ordering::AcqRel, Ordering::Relaxed);
        Ok(())
    }

    /// Has the block of a byte written, as it is.
    fn write_block(&self, file: &SharedFile, byte: Bytes) -> Result<(), FileError> {
        let word = Bytes { offset: byte.offset / NUMBER_BYTES * NUMBER_BYTES, len: NUMBER_BYTES as usize };
        let soiled = self.pieces(file, word).try_for_each(|piece| self.ops.make_dirty(piece));
        self.note_written(file, byte);
        soiled.map_err(|cause| file.not_written(std::iter::once(byte), cause))?;
        self.flush_written(file)
    }

    /// Makes the file so long: cuts it, or adds zeros. Collective over the file's team. Calls of other threads end before, or wait.
    ///
    /// # Errors
    /// It is not to be written; or the file system has refused, and the file is what it was. Or some of what it keeps could not be written:
    /// if it was to be cut, it is.
    pub fn set_size(&self, file: &Call<'_>, bytes: u64) -> Result<(), FileError> {
        self.come_together(file, Collective::SetSize(bytes))?;
        self.check_size(file, bytes)?;
        // All have come, so none of them waits for a call that is barred.
        let file = &*file.bar();
        self.wait_for_begun(file, Collective::SetSize(bytes));
        if let Err(unwritten) = self.write_all(file, Otherwise::Kept) {
            if !self.is_longer(file, bytes)? {
                return Err(unwritten);
            }
            self.write_shortened(file, bytes)?;
        }
        self.give_end(file)?;
        let resized = self.by_first(file, "change its size", |named| named.set_size(bytes));
        if resized.is_ok() {
            file.extended_end.store(0, Ordering::Relaxed);
            // The page in which the file ends is read again, without what lay behind that.
            self.forget_behind(file, bytes / self.page_bytes(), bytes)?;
        }
        self.coll.gather_all(file.team, 0_u32)?;
        resized
    }

    /// Whether the file is longer on some rank. All ranks learn how long it is.
    fn is_longer(&self, file: &SharedFile, bytes: u64) -> Result<bool, FileError> {
        let ends = self.coll.gather_all(file.team, file.known_bytes())?;
        let size = ends.into_iter().fold(0, u64::max);
        self.note_size(file, size);
        Ok(size > bytes)
    }

    /// Cuts the file before what it keeps is written, since there may be room for that only then.
    fn write_shortened(&self, file: &SharedFile, bytes: u64) -> Result<(), FileError> {
        let size = file.known_bytes();
        self.by_first(file, "change its size", |named| named.set_size(bytes))?;
        let end = bytes.next_multiple_of(self.page_bytes());
        self.forget_behind(file, end / self.page_bytes(), bytes)?;
        self.write_all(file, Otherwise::Kept).inspect_err(|_| {
            // The page in which the file ends stays, and what lies behind that is not to come back.
            let zeros = vec![0_u8; end.min(size).saturating_sub(bytes) as usize];
            let tail = Bytes { offset: bytes, len: if file.me == 0 { zeros.len() } else { 0 } };
            // SAFETY: the buffer has as many bytes, and is none of the segment.
            let zeroed = unsafe { self.transfer(file, Operation::Put(zeros.as_ptr()), tail) };
            // That something could not be written is told in any case.
            zeroed.err().into_iter().for_each(|cause| file.state.note_error(cause));
        })
    }

    /// Has all ranks forget the pages from one on of a file that has so many bytes now.
    fn forget_behind(&self, file: &SharedFile, first: u64, bytes: u64) -> Result<(), FileError> {
        self.driver().settle_file(file.space);
        self.coll.gather_all(file.team, 0_u32)?;
        self.driver().settle_file_at_home(file.space);
        self.coll.gather_all(file.team, 0_u32)?;
        self.driver().cut_file(file.space, first as u32, bytes.div_ceil(self.page_bytes()) as u32);
        file.state.forget_end();
        file.known_bytes.store(bytes, Ordering::Release);
        file.file.iter().for_each(|named| named.note_cut(bytes));
        Ok(())
    }

    fn page_bytes(&self) -> u64 {
        self.ops.space().page_bytes() as u64
    }

    /// Takes the space of the file's first `bytes`, and makes it so long if it is shorter. Collective over the file's team. Calls of other
    /// threads end before, or wait.
    ///
    /// # Errors
    /// It is not to be written, or some of it could not be. Or the file system has refused; the file has the bytes that it had.
    pub fn preallocate(&self, file: &Call<'_>, bytes: u64) -> Result<(), FileError> {
        self.come_together(file, Collective::Preallocate(bytes))?;
        self.check_size(file, bytes)?;
        // Where zeros have to be written, nobody else is to write.
        let file = &*file.bar();
        self.wait_for_begun(file, Collective::Preallocate(bytes));
        self.write_all(file, Otherwise::Kept)?;
        self.give_end(file)?;
        let size = file.known_bytes();
        self.by_first(file, "get space", |named| match named.allocate(0, bytes) {
            Err(error) => named.set_size(size).and(Err(error)),
            done => done,
        })?;
        self.note_size(file, bytes);
        Ok(())
    }

    /// Fails unless the file may get this size.
    fn check_size(&self, file: &SharedFile, bytes: u64) -> Result<(), FileError> {
        file.check_writable()?;
        self.end_of(&file.path, 0, bytes).map(drop)
    }
}
