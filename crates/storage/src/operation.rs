//! An operation in flight, and its progress with the kernel's results.

use super::{BLOCK_BYTES, NamedFile};
use std::io;
use vgasnet_settings::IoDirection;

/// Maximum length of a request to the kernel, in bytes. The kernel moves at most 2 GiB less a page at once, and the
/// length in an io_uring request has 32 bits.
pub(super) const REQUEST_BYTES_MAX: usize = 1 << 30;

/// Names a file of a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileSlot(pub u32);

impl FileSlot {
    /// The backing file.
    pub const BACKING: FileSlot = FileSlot(0);
}

/// One read or write of a file.
#[derive(Debug, Clone, Copy)]
pub struct IoOperation {
    /// The file.
    pub file: FileSlot,
    /// Whether the file is read or written.
    pub direction: IoDirection,
    /// Position in the file.
    pub offset_bytes: u64,
    /// The first byte of the memory.
    pub memory: *mut u8,
    /// Number of bytes.
    pub len_bytes: usize,
    /// Returned with the result; unique among the operations in flight.
    pub token: u64,
    /// A thread or rank waits for it. It goes before other operations if operations queue outside of the kernel.
    pub is_urgent: bool,
}

// SAFETY: only this operation uses the pointer, and nothing else accesses the memory until it ends (`Storage::start`).
// Any thread may do so.
unsafe impl Send for IoOperation {}

/// Maximum number of reads without progress of a named file that claims to have more bytes.
const TRIES_MAX: u32 = 8;

/// An operation and its progress.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) operation: IoOperation,
    done_bytes: usize,
    /// Consecutive reads of a named file without progress.
    tries: u32,
    /// The operation has already switched the file to the page cache.
    is_buffered: bool,
}

/// The next part of an operation to request from the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) offset_bytes: u64,
    pub(super) pointer: *mut u8,
    pub(super) len_bytes: usize,
}

/// The continuation of an operation after a result.
#[derive(Debug)]
pub(super) enum Step {
    Complete(io::Result<()>),
    /// The operation needs another request.
    Continue,
}

impl IoOperation {
    /// Panics where the contract of `Storage::start` requires it, for a backing file of `backing_bytes`.
    pub(super) fn check(&self, backing_bytes: u64) {
        // A named file is limited only by the system's type for offsets.
        let size_bytes = if self.file == FileSlot::BACKING { backing_bytes } else { i64::MAX as u64 };
        let IoOperation { offset_bytes, memory, len_bytes, .. } = *self;
        let block = BLOCK_BYTES as u64;
        assert!(len_bytes > 0 && len_bytes % BLOCK_BYTES == 0, "a length of {len_bytes} bytes is not whole blocks");
        assert!(offset_bytes % block == 0, "the offset {offset_bytes} is not at a block");
        assert!(memory as usize % BLOCK_BYTES == 0, "the memory at {memory:p} is not aligned to a block");
        let end_bytes = offset_bytes.checked_add(len_bytes as u64);
        assert!(
            end_bytes.is_some_and(|end_bytes| end_bytes <= size_bytes),
            "{len_bytes} bytes at {offset_bytes} leave the file of {size_bytes} bytes"
        );
    }
}

impl Progress {
    /// An operation of a storage with a backing file of `backing_bytes`; panics where the contract of `Storage::start`
    /// requires it.
    pub(super) fn new(operation: IoOperation, backing_bytes: u64) -> Progress {
        operation.check(backing_bytes);
        Progress { operation, done_bytes: 0, tries: 0, is_buffered: false }
    }

    /// The next request, of at most `len_bytes_max` (whole blocks).
    pub(super) fn request(&self, len_bytes_max: usize) -> Request {
        Request {
            offset_bytes: self.operation.offset_bytes + self.done_bytes as u64,
            pointer: self.operation.memory.wrapping_add(self.done_bytes),
            len_bytes: (self.operation.len_bytes - self.done_bytes).min(len_bytes_max),
        }
    }

    /// Takes the kernel's answer to the last request: the number of bytes moved, or an error. `named` is the file of
    /// the operation if it is a named file.
    pub(super) fn advance(&mut self, result: io::Result<usize>, named: Option<&NamedFile>) -> Step {
        let moved_bytes = match result {
            Ok(moved_bytes) => moved_bytes,
            Err(error) if is_transient(&error) || self.goes_buffered(&error, named) => return Step::Continue,
            Err(error) => return Step::Complete(Err(error)),
        };
        let done_bytes = self.done_bytes + moved_bytes;
        assert!(
            done_bytes <= self.operation.len_bytes,
            "the kernel moved {moved_bytes} bytes that it was not asked for"
        );
        if done_bytes == self.operation.len_bytes {
            named.into_iter().for_each(|file| file.note_done(&self.operation));
            return Step::Complete(Ok(()));
        }
        let is_whole = moved_bytes > 0 && moved_bytes % BLOCK_BYTES == 0;
        if let Some(file) = named.filter(|_| !is_whole && self.operation.direction == IoDirection::Read) {
            return self.end_or_try_again(done_bytes, file);
        }
        // O_DIRECT can continue only at a block boundary; moving a part of a block twice does no harm.
        let done_bytes = done_bytes / BLOCK_BYTES * BLOCK_BYTES;
        if done_bytes == self.done_bytes {
            let kind = match self.operation.direction {
                IoDirection::Read => io::ErrorKind::UnexpectedEof,
                IoDirection::Write => io::ErrorKind::WriteZero,
            };
            return Step::Complete(Err(kind.into()));
        }
        self.done_bytes = done_bytes;
        Step::Continue
    }

    /// Continues a read of a named file that got a part of a block, or nothing: the file ends there, or it has grown
    /// meanwhile.
    fn end_or_try_again(&mut self, done_bytes: usize, file: &NamedFile) -> Step {
        let size_bytes = match file.size_bytes() {
            Ok(size_bytes) => size_bytes,
            Err(error) => return Step::Complete(Err(error)),
        };
        if size_bytes <= self.operation.offset_bytes + done_bytes as u64 {
            let (tail, tail_bytes) =
                (self.operation.memory.wrapping_add(done_bytes), self.operation.len_bytes - done_bytes);
            // SAFETY: this is a part of the operation's memory. It is valid for writes and left alone until the
            // operation is returned (`Storage::start`), which happens later.
            unsafe { tail.write_bytes(0, tail_bytes) };
            file.note_done(&self.operation);
            return Step::Complete(Ok(()));
        }
        let done_bytes = done_bytes / BLOCK_BYTES * BLOCK_BYTES;
        self.tries = if done_bytes == self.done_bytes { self.tries + 1 } else { 0 };
        self.done_bytes = done_bytes;
        if self.tries > TRIES_MAX {
            return Step::Complete(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        Step::Continue
    }

    /// Switches a named file to the page cache after it refused a block; returns whether to try again. Another
    /// operation may have switched it first, so each operation tries again once.
    fn goes_buffered(&mut self, error: &io::Error, named: Option<&NamedFile>) -> bool {
        let is_refused = !self.is_buffered && error.raw_os_error() == Some(libc::EINVAL);
        self.is_buffered |= is_refused;
        is_refused && named.is_some_and(NamedFile::give_up_direct)
    }
}

/// Whether to repeat the request after this error. io_uring cancels requests not yet begun when the submitting thread
/// ends; nothing else cancels requests.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE_BYTES: u64 = 1 << 20;

    fn operation(direction: IoDirection, len_bytes: usize) -> Progress {
        let memory = 0x10_0000 as *mut u8;
        Progress::new(
            IoOperation {
                file: FileSlot::BACKING,
                direction,
                offset_bytes: 8192,
                memory,
                len_bytes,
                token: 7,
                is_urgent: true,
            },
            SIZE_BYTES,
        )
    }

    /// Gives `results` to an operation of four blocks. Returns `(offset, len)` of the requests, and the outcome if the
    /// operation ended.
    fn run(results: Vec<io::Result<usize>>) -> (Vec<(u64, usize)>, Option<io::Result<()>>) {
        let mut operation = operation(IoDirection::Read, 4 * BLOCK_BYTES);
        let mut requests = Vec::new();
        for result in results {
            let request = operation.request(REQUEST_BYTES_MAX);
            assert_eq!(request.pointer as u64, 0x10_0000 + request.offset_bytes - 8192);
            requests.push((request.offset_bytes, request.len_bytes));
            if let Step::Complete(outcome) = operation.advance(result, None) {
                return (requests, Some(outcome));
            }
        }
        (requests, None)
    }

    #[test]
    fn a_short_result_is_continued_at_the_last_whole_block() {
        let (requests, outcome) = run(vec![Ok(4096), Ok(5000), Ok(8192)]);
        assert_eq!(requests, [(8192, 16384), (12288, 12288), (16384, 8192)]);
        assert!(outcome.unwrap().is_ok());
    }

    #[test]
    fn interruptions_are_retried_from_where_it_stopped() {
        let again = |errno| Err(io::Error::from_raw_os_error(errno));
        let (requests, outcome) =
            run(vec![again(libc::EINTR), Ok(8192), again(libc::EAGAIN), again(libc::ECANCELED), Ok(8192)]);
        assert_eq!(requests, [(8192, 16384), (8192, 16384), (16384, 8192), (16384, 8192), (16384, 8192)]);
        assert!(outcome.unwrap().is_ok());
    }

    #[test]
    fn errors_keep_their_errno() {
        let (_, outcome) = run(vec![Ok(4096), Err(io::Error::from_raw_os_error(libc::ENOSPC))]);
        assert_eq!(outcome.unwrap().unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }

    #[test]
    fn no_progress_is_an_error() {
        for moved_bytes in [0, 512] {
            let (_, outcome) = run(vec![Ok(4096), Ok(moved_bytes)]);
            assert_eq!(outcome.unwrap().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        let Step::Complete(outcome) = operation(IoDirection::Write, BLOCK_BYTES).advance(Ok(0), None) else { panic!() };
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::WriteZero);
    }

    #[test]
    fn a_request_is_no_longer_than_asked() {
        let mut operation = operation(IoDirection::Write, 3 * BLOCK_BYTES);
        assert_eq!(operation.request(8192).len_bytes, 8192);
        assert!(matches!(operation.advance(Ok(8192), None), Step::Continue));
        assert_eq!(operation.request(8192).len_bytes, 4096);
    }

    #[test]
    fn misuse_is_caught() {
        let bad = [(1, 0x1000, 4096), (0, 0x1001, 4096), (0, 0x1000, 0), (0, 0x1000, 100), (SIZE_BYTES, 0x1000, 4096)];
        for (offset_bytes, address, len_bytes) in bad.into_iter().chain([(u64::MAX - 4095, 0x1000, 4096)]) {
            let (direction, memory) = (IoDirection::Read, address as *mut u8);
            let operation = IoOperation {
                file: FileSlot::BACKING,
                direction,
                offset_bytes,
                memory,
                len_bytes,
                token: 0,
                is_urgent: true,
            };
            let made = std::panic::catch_unwind(|| Progress::new(operation, SIZE_BYTES));
            assert!(made.is_err(), "{offset_bytes} {address:#x} {len_bytes}");
        }
    }
}
