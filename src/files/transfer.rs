//! Reading and writing, by any thread of any rank, without the other ranks.

use super::size::note_end;
use super::{FileError, Files, SharedFile};
use crate::ops::{Advice, Operation, Remote};
use std::path::Path;
use vgasnet_engine::request::Handle;
use vgasnet_memory::Piece;
use vgasnet_protocol::coherence::{Cause, PageId};
use vgasnet_protocol::file_locks::LockMode;
use vgasnet_stats::{self as stats, Row};

/// Bytes copied through a buffer at a time, for client memory in its own segment.
const BUFFER_BYTES: usize = 1 << 20;

/// Maximum size of a file in pages: page indices have 32 bits.
pub(super) const PAGES_MAX: u64 = u32::MAX as u64;

/// Maximum size of a file in bytes: with the largest pages, of 64 MiB.
const BYTES_MAX: u64 = PAGES_MAX * (64 << 20);

/// A range of bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: usize,
}

/// Counts a read or write.
pub(super) fn count(row: Row, row_of_bytes: Row, bytes: Bytes) {
    stats::count(row);
    stats::add(row_of_bytes, bytes.len as u64);
}

impl Files {
    /// Reads bytes, up to the end of the file. Returns their number.
    ///
    /// # Errors
    /// The file is not open for reading, the range is invalid, or the read failed.
    ///
    /// # Safety
    /// `to` is valid for as many bytes.
    pub unsafe fn read(&self, file: &SharedFile, bytes: Bytes, to: *mut u8) -> Result<usize, FileError> {
        file.check_readable()?;
        let end = self.end(file, bytes, to.is_null())?;
        self.in_one_step(file, LockMode::Shared, std::iter::once(bytes), || {
            let len = self.found(file, bytes, end);
            let bytes = Bytes { len, ..bytes };
            // SAFETY: the caller guarantees the memory, and `len` does not exceed it.
            let read = unsafe { self.transfer(file, Operation::Get(to), bytes) };
            count(Row::FileReads, Row::FileReadBytes, bytes);
            read.map_err(|cause| file.failed("be read", cause))?;
            Ok(len)
        })
    }

    /// Writes bytes. When it returns, every rank reads them.
    ///
    /// # Errors
    /// The file is not open for writing, the range is invalid, or a read or write of the file failed.
    ///
    /// # Safety
    /// `from` is valid for as many bytes.
    pub unsafe fn write(&self, file: &SharedFile, bytes: Bytes, from: *const u8) -> Result<(), FileError> {
        self.writable(file, bytes, from.is_null())?;
        self.in_one_step(file, LockMode::Exclusive, std::iter::once(bytes), || {
            self.intend(file, bytes);
            // SAFETY: the caller guarantees the memory.
            let written = unsafe { self.transfer(file, Operation::Put(from), bytes) };
            count(Row::FileWrites, Row::FileWriteBytes, bytes);
            // Some bytes may be in pages even after a failure.
            self.note_written(file, bytes);
            if written.is_ok() {
                file.note_again(std::iter::once(bytes));
            }
            self.end_write(file);
            written.map_err(|cause| file.not_written(std::iter::once(bytes), cause))
        })
    }

    /// Starts to read bytes. Returns their number, and the handle unless the read is done. A later failure becomes the
    /// file's error.
    ///
    /// # Errors
    /// As [`Files::read`], as far as known by now.
    ///
    /// # Safety
    /// `to` is valid for as many bytes until the handle has been synced.
    pub unsafe fn start_read(
        &self,
        file: &SharedFile,
        bytes: Bytes,
        to: *mut u8,
    ) -> Result<(usize, Option<Handle>), FileError> {
        if file.locks().are_calls_atomic() {
            // SAFETY: `to` is valid for as many bytes until the handle has been synced.
            return unsafe { self.read(file, bytes, to) }.map(|read| (read, None));
        }
        file.check_readable()?;
        let len = self.found(file, bytes, self.end(file, bytes, to.is_null())?);
        let bytes = Bytes { len, ..bytes };
        // SAFETY: `to` is valid for as many bytes until the handle has been synced.
        let handle = unsafe { self.start(file, Operation::Get(to), bytes) };
        count(Row::FileReads, Row::FileReadBytes, bytes);
        let handle = handle.map_err(|cause| file.failed("be read", cause))?;
        self.note_begun(file, bytes, handle, false);
        Ok((len, handle))
    }

    /// Starts to write bytes. A later failure becomes the file's error.
    ///
    /// # Errors
    /// As [`Files::write`], as far as known by now.
    ///
    /// # Safety
    /// `from` is valid for as many bytes until the handle has been synced.
    pub unsafe fn start_write(
        &self,
        file: &SharedFile,
        bytes: Bytes,
        from: *const u8,
    ) -> Result<Option<Handle>, FileError> {
        if file.locks().are_calls_atomic() {
            // SAFETY: `from` is valid for as many bytes until the handle has been synced.
            return unsafe { self.write(file, bytes, from) }.map(|()| None);
        }
        self.writable(file, bytes, from.is_null())?;
        self.intend(file, bytes);
        note_end(file, bytes);
        // SAFETY: `from` is valid for as many bytes until the handle has been synced.
        let handle = unsafe { self.start(file, Operation::Put(from), bytes) };
        count(Row::FileWrites, Row::FileWriteBytes, bytes);
        // Some bytes may be in pages even after a failure.
        self.note_begun(file, bytes, handle.unwrap_or_default(), true);
        handle.map_err(|cause| file.not_written(std::iter::once(bytes), cause))
    }

    /// Gives a hint about bytes of a file.
    ///
    /// # Errors
    /// The range is invalid.
    pub fn advise(&self, file: &SharedFile, bytes: Bytes, advice: Advice) -> Result<(), FileError> {
        let end = self.end(file, bytes, false)?.min(file.known_bytes());
        if bytes.offset < end {
            let page_bytes = self.ops.space().page_bytes() as u64;
            let pages = (bytes.offset / page_bytes) as u32..=((end - 1) / page_bytes) as u32;
            self.ops.advise_pages(file.space(), &pages, advice);
        }
        Ok(())
    }

    /// The number of these bytes, which end at `end`, that a read finds.
    fn found(&self, file: &SharedFile, bytes: Bytes, end: u64) -> usize {
        self.size_up_to(file, end).min(end).saturating_sub(bytes.offset) as usize
    }

    fn writable(&self, file: &SharedFile, bytes: Bytes, is_null: bool) -> Result<(), FileError> {
        file.check_writable()?;
        self.end(file, bytes, is_null)?;
        self.check_not_refused(file, std::iter::once(bytes))
    }

    /// The end of a valid range.
    pub(super) fn end(&self, file: &SharedFile, Bytes { offset, len }: Bytes, is_null: bool) -> Result<u64, FileError> {
        if is_null && len > 0 {
            return Err(FileError::argument(format!(
                "{}: {len} bytes at a null pointer; give the address of memory of that size",
                file.path().display()
            )));
        }
        self.end_of(file.path(), offset, len as u64)
    }

    /// The same for a file that need not be open.
    pub(super) fn end_of(&self, path: &Path, offset: u64, len: u64) -> Result<u64, FileError> {
        let most = PAGES_MAX * self.ops.space().page_bytes() as u64;
        let path = path.display();
        let end = offset.checked_add(len).filter(|end| *end <= most);
        end.ok_or_else(|| {
            let hint = match offset.checked_add(len) {
                Some(end) if end <= BYTES_MAX => "raise VGASNET_PAGE_SIZE",
                _ => "stay below this end",
            };
            FileError::argument(format!(
                "{path}: {len} bytes from {offset} on; a file has at most {most} bytes with pages of this size; {hint}"
            ))
        })
    }

    /// Does a get or put.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes.
    pub(super) unsafe fn transfer(&self, file: &SharedFile, operation: Operation, bytes: Bytes) -> Result<(), Cause> {
        if operation.address().is_some_and(|address| self.ops.is_in_own_segment(address, bytes.len)) {
            return self.through_buffer(file, operation, bytes);
        }
        // SAFETY: the memory is valid for as many bytes, and outside the own segment.
        unsafe { self.ops.transfer_pieces(&operation, self.pieces(file, bytes)) }
    }

    /// Starts a get or put.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes until the handle has been synced.
    unsafe fn start(&self, file: &SharedFile, operation: Operation, bytes: Bytes) -> Result<Option<Handle>, Cause> {
        if operation.address().is_some_and(|address| self.ops.is_in_own_segment(address, bytes.len)) {
            return self.through_buffer(file, operation, bytes).map(|()| None);
        }
        let completion = self.ops.begin_pieces();
        // SAFETY: as the caller promises; the memory is outside the own segment.
        unsafe { self.ops.start_pieces(&operation, self.pieces(file, bytes), completion) };
        Ok(self.ops.handle_unless_done(completion))
    }

    /// Does a get or put with client memory in the own segment, and therefore in pages as well.
    pub(super) fn through_buffer(&self, file: &SharedFile, operation: Operation, bytes: Bytes) -> Result<(), Cause> {
        let Some(local) = operation.address() else { return Ok(()) };
        let mut buffer = vec![0_u8; BUFFER_BYTES.min(bytes.len)];
        let rank = self.ops.space().rank.0;
        for at in (0..bytes.len).step_by(BUFFER_BYTES) {
            let len = BUFFER_BYTES.min(bytes.len - at);
            let (here, part) =
                (Remote { rank, address: local + at, len_bytes: len }, Bytes { offset: bytes.offset + at as u64, len });
            let (get, put) = (Operation::Get(buffer.as_mut_ptr()), Operation::Put(buffer.as_ptr()));
            // A range that leaves the segment is refused there, and ends the job.
            let in_segment = |operation| {
                // SAFETY: the buffer has as many bytes, and nothing else uses it.
                let done = unsafe { self.ops.transfer(operation, here) };
                done.unwrap_or_else(|line| self.driver().fail("shared file", &line));
            };
            // SAFETY: the buffer has as many bytes, and is outside the segment.
            let in_file = |operation| unsafe { self.ops.transfer_pieces(&operation, self.pieces(file, part)) };
            if operation.is_get() {
                in_file(get)?;
                in_segment(put);
            } else {
                in_segment(get);
                in_file(put)?;
            }
        }
        Ok(())
    }

    /// Splits a range into pieces of pages.
    pub(super) fn pieces(&self, file: &SharedFile, bytes: Bytes) -> impl Iterator<Item = Piece> + use<> {
        let (page_bytes, space) = (self.ops.space().page_bytes(), file.space());
        let mut at = 0;
        std::iter::from_fn(move || {
            let left = bytes.len - at;
            if left == 0 {
                return None;
            }
            let offset = bytes.offset + at as u64;
            let offset_bytes = (offset % page_bytes as u64) as usize;
            let len_bytes = left.min(page_bytes - offset_bytes);
            let page = PageId { space, index: (offset / page_bytes as u64) as u32 };
            let piece = Piece { page, offset_bytes, len_bytes, start_bytes: at };
            at += len_bytes;
            Some(piece)
        })
    }
}
