//! The size of a file. A rank that extends the file notes the new end and sends no message. A rank that reads past the
//! end it knows asks the others for theirs.

use super::error::Otherwise;
use super::together::Collective;
use super::{Bytes, Call, FileError, Files, SharedFile};
use crate::ops::Operation;
use std::ops::Range;
use std::time::{Duration, Instant};
use vgasnet_engine::request::Handle;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_message::{FileAsk, PageFilter};
use vgasnet_storage::errno_of;

/// Above this team size each rank asks the first one, by two messages in sequence in place of one. Asking each other
/// takes a quadratic number of messages when all ranks ask at once.
const ASKED_MAX: usize = 4;

/// Size of the word written back unchanged to have its block written.
const NUMBER_BYTES: u64 = 4;

impl SharedFile {
    /// The file's size in bytes, as far as this rank knows.
    pub(super) fn known_bytes(&self) -> u64 {
        self.length().known().max(self.state().written_end())
    }
}

/// Extends the file to the end of these bytes, whether or not their write succeeds. Zero bytes extend nothing. Comes
/// before any page of the write may reach the file: a rank that sets the file's size meanwhile would cut it off.
pub(super) fn note_end(file: &SharedFile, Bytes { offset, len }: Bytes) {
    let end = offset + len as u64;
    if len > 0 {
        file.state().note_written_end(end);
    }
}

/// How long a write waits for a rank that sets the file's size. The rank gives up after half of this time, unless it
/// has died.
const HOLD_PATIENCE: Duration = Duration::from_secs(2);

/// How long a write waits for the end of a job that a rank has announced. A write that returned would be lost with the
/// job. Launchers end the other ranks earlier, if at all.
const ENDING_PATIENCE: Duration = Duration::from_secs(10);

fn range_of(Bytes { offset, len }: Bytes) -> Range<u64> {
    offset..offset + len as u64
}

impl SharedFile {
    /// Notes a successful write, which may repeat data of a failed sync.
    pub(super) fn note_again(&self, bytes: impl Iterator<Item = Bytes>) {
        if self.state().again().is_doubted() {
            bytes.for_each(|bytes| self.state().again().note(range_of(bytes)));
        }
    }
}

impl Files {
    /// Announces a write of these bytes before any of them can reach the file. Waits while a rank that rescues the file
    /// sets its size, and once it has rescued the file.
    #[inline]
    pub(super) fn intend(&self, file: &SharedFile, Bytes { offset, len }: Bytes) {
        if len > 0 && file.state().intend_end(offset + len as u64) {
            self.wait_for_holder(file);
        }
    }

    /// A write is complete. Once a rank ends the job it does not return: the rescue may have missed it.
    #[inline]
    pub fn end_write(&self, file: &SharedFile) {
        if file.state().is_ending() {
            self.wait_for_holder(file);
        }
    }

    #[cold]
    fn wait_for_holder(&self, file: &SharedFile) {
        let start = Instant::now();
        let wait = |patience| self.driver().wait_until_or(&|| !file.state().is_end_held(), Some(start + patience));
        wait(HOLD_PATIENCE);
        if file.state().is_ending() {
            wait(ENDING_PATIENCE);
        }
        if file.state().is_end_held() {
            file.state().abandon_holds();
        }
    }

    /// Cuts the file behind the end of all writes. Other ranks may write meanwhile.
    ///
    /// # Errors
    /// The file system has refused, or other ranks have answered too late.
    #[cfg(feature = "mpi")]
    pub(super) fn cut_to_end(&self, file: &SharedFile) -> std::io::Result<()> {
        let Some(named) = file.named() else { return Ok(()) };
        let (driver, start) = (self.driver(), Instant::now());
        let members = || file.members().ranks();
        let answers = driver.ask_of_file(members(), file.space(), FileAsk::HoldEnd, 0);
        let end = answers.iter().map(|answer| answer.value).fold(file.known_bytes(), u64::max);
        let cut = named.size_bytes().and_then(|bytes| match bytes > end {
            true if start.elapsed() > HOLD_PATIENCE / 2 => Err(std::io::Error::from_raw_os_error(libc::ETIMEDOUT)),
            true => named.set_size(end),
            false => Ok(()),
        });
        driver.ask_of_file(members(), file.space(), FileAsk::ReleaseEnd, 0);
        cut
    }

    /// The size of the file in bytes, up to which a read starting now finds data.
    pub fn size(&self, file: &SharedFile) -> u64 {
        if !file.access().write {
            return file.known_bytes();
        }
        let driver = self.driver();
        let answers = if file.members().ranks().len() <= ASKED_MAX {
            driver.ask_of_file(file.members().others(), file.space(), FileAsk::End, 0)
        } else {
            driver.ask_of_file(std::iter::once(file.members().first()), file.space(), FileAsk::Size, 0)
        };
        let end = answers.iter().map(|answer| answer.value).fold(file.known_bytes(), u64::max);
        self.note_size(file, end);
        end
    }

    /// The size of the file, exact if a read that ends at `end` needs it.
    pub(super) fn size_up_to(&self, file: &SharedFile, end: u64) -> u64 {
        let known = file.known_bytes();
        if end > known { self.size(file) } else { known }
    }

    /// Notes a write of these bytes, complete or not: a rank that learns the new size finds the bytes. The call is in
    /// progress until then, so no thread sets the file's size meanwhile.
    pub(super) fn note_written(&self, file: &SharedFile, bytes: Bytes) {
        note_end(file, bytes);
        if let Some(pages) = self.pages_of(bytes) {
            file.state().note_written_pages(pages);
        }
    }

    /// Notes the start of an operation on these bytes. An operation with a handle gives no notice of its end.
    pub(super) fn note_begun(&self, file: &SharedFile, bytes: Bytes, handle: Option<Handle>, is_write: bool) {
        let pages = self.pages_of(bytes).filter(|_| is_write).unwrap_or_default();
        if is_write {
            file.state().again().note_begun(range_of(bytes), || file.errors());
        }
        match handle {
            Some(handle) => file.state().note_begun(handle, pages, |handle| self.ops.is_in_flight(handle)),
            None => file.state().note_written_pages(pages),
        }
    }

    fn pages_of(&self, Bytes { offset, len }: Bytes) -> Option<PageFilter> {
        let page_bytes = self.page_bytes();
        let last = (offset + len as u64).checked_sub(1).filter(|_| len > 0)?;
        Some(PageFilter::of((offset / page_bytes) as u32, (last / page_bytes) as u32))
    }

    /// Raises the known size to at least `bytes`.
    pub(super) fn note_size(&self, file: &SharedFile, bytes: u64) {
        if file.length().raise(bytes) {
            let pages = bytes.div_ceil(self.page_bytes()) as u32;
            self.driver().engine().note_end(file.space(), pages);
        }
    }

    /// Extends the file to at least `bytes`, with zeros where nothing was written. The file system learns the length at
    /// this rank's next flush.
    ///
    /// # Errors
    /// The file is not open for writing, or may not be as long.
    pub fn extend(&self, file: &SharedFile, bytes: u64) -> Result<(), FileError> {
        self.check_size(file, bytes)?;
        note_end(file, Bytes { offset: 0, len: bytes as usize });
        file.length().extend(bytes);
        Ok(())
    }

    /// Extends the file in the file system to the length set by this rank without writing. If there is no room for a
    /// block, the next sync sets the size, which takes no room.
    ///
    /// # Errors
    /// The file system refuses it for another reason.
    pub(super) fn extend_named(&self, file: &SharedFile) -> Result<(), FileError> {
        let end = file.length().extension();
        let Some(last) = end.checked_sub(1) else { return Ok(()) };
        match file.named().map_or(Ok(false), |named| named.extend(end)) {
            Ok(true) => {}
            Ok(false) => self.write_block(file, Bytes { offset: last, len: 1 })?,
            Err(error) if matches!(errno_of(&error), libc::ENOSPC | libc::EDQUOT) => return Ok(()),
            Err(error) => return Err(file.failed("get its size", Cause(errno_of(&error).unsigned_abs()))),
        }
        file.length().end_extension(end);
        Ok(())
    }

    /// Has the block of a byte written, unchanged.
    fn write_block(&self, file: &SharedFile, byte: Bytes) -> Result<(), FileError> {
        let word = Bytes { offset: byte.offset / NUMBER_BYTES * NUMBER_BYTES, len: NUMBER_BYTES as usize };
        let marked = self.pieces(file, word).try_for_each(|piece| self.ops.make_dirty(piece));
        self.note_written(file, byte);
        marked.map_err(|cause| file.not_written(std::iter::once(byte), cause))?;
        self.flush_written(file)
    }

    /// Sets the file's size: cuts it, or adds zeros. Collective over the file's team. Calls of other threads end
    /// before, or wait.
    ///
    /// # Errors
    /// The file is not open for writing; or the file system has refused, and the file is unchanged. Or some of the
    /// remaining data could not be written: a cut is done nevertheless.
    pub fn set_size(&self, file: &Call<'_>, bytes: u64) -> Result<(), FileError> {
        self.come_together(file, Collective::SetSize(bytes))?;
        self.check_size(file, bytes)?;
        // All ranks are in this call, so none of them waits for a barred call.
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
            file.length().forget_extension();
            // The last page is read again, without the bytes behind the new end.
            self.forget_behind(file, bytes / self.page_bytes(), bytes)?;
        }
        file.members().meet()?;
        resized
    }

    /// Whether the file is longer on some rank. All ranks learn its size.
    fn is_longer(&self, file: &SharedFile, bytes: u64) -> Result<bool, FileError> {
        let ends = file.members().gather(file.known_bytes())?;
        let size = ends.into_iter().fold(0, u64::max);
        self.note_size(file, size);
        Ok(size > bytes)
    }

    /// Cuts the file before writing the remaining data, since only the cut may make room for them.
    fn write_shortened(&self, file: &SharedFile, bytes: u64) -> Result<(), FileError> {
        let size = file.known_bytes();
        self.by_first(file, "change its size", |named| named.set_size(bytes))?;
        let end = bytes.next_multiple_of(self.page_bytes());
        self.forget_behind(file, end / self.page_bytes(), bytes)?;
        self.write_all(file, Otherwise::Kept).inspect_err(|_| {
            // The last page stays, and its bytes behind the new end must not come back.
            let zeros = vec![0_u8; end.min(size).saturating_sub(bytes) as usize];
            let tail = Bytes { offset: bytes, len: if file.members().is_first() { zeros.len() } else { 0 } };
            // SAFETY: the buffer has as many bytes, and is outside the segment.
            let zeroed = unsafe { self.transfer(file, Operation::Put(zeros.as_ptr()), tail) };
            // The caller learns of the failed write anyway.
            zeroed.err().into_iter().for_each(|cause| file.state().note_error(cause));
        })
    }

    /// Has all ranks drop the pages from `first` on. The file has `bytes` bytes now.
    fn forget_behind(&self, file: &SharedFile, first: u64, bytes: u64) -> Result<(), FileError> {
        self.driver().settle_file(file.space());
        file.members().meet()?;
        self.driver().settle_file_at_home(file.space());
        file.members().meet()?;
        self.driver().cut_file(file.space(), first as u32, bytes.div_ceil(self.page_bytes()) as u32);
        file.state().forget_end();
        file.length().set(bytes);
        file.named().iter().for_each(|named| named.note_cut(bytes));
        Ok(())
    }

    fn page_bytes(&self) -> u64 {
        self.ops.space().page_bytes() as u64
    }

    /// Allocates the space of the file's first `bytes`, and extends a shorter file to this length. Collective over the
    /// file's team. Calls of other threads end before, or wait.
    ///
    /// # Errors
    /// The file is not open for writing, or some data could not be written. Or the file system has refused; the file
    /// keeps its size and data.
    pub fn preallocate(&self, file: &Call<'_>, bytes: u64) -> Result<(), FileError> {
        self.come_together(file, Collective::Preallocate(bytes))?;
        self.check_size(file, bytes)?;
        // If zeros have to be written, there must be no other writer.
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
        self.end_of(file.path(), 0, bytes).map(drop)
    }
}
