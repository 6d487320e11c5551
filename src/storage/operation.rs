//! An operation in flight, and how the kernel's results move it on.

use super::{BLOCK_BYTES, FileSlot};
use crate::settings::IoDirection;
use std::io;

/// The longest request to the kernel, in bytes. The kernel moves at most 2 GiB less a page at once, and the length in
/// an io_uring request has 32 bits.
pub(super) const REQUEST_BYTES_MAX: usize = 1 << 30;

/// One read or write of a file.
#[derive(Debug, Clone, Copy)]
pub struct IoOperation {
    /// Whether the memory is written or read.
    pub direction: IoDirection,
    /// Which file.
    pub file: FileSlot,
    /// Where in it.
    pub offset_bytes: u64,
    /// The first byte of the memory.
    pub memory: *mut u8,
    /// How much.
    pub len_bytes: usize,
    /// Comes back with the result; no other operation in flight has it.
    pub token: u64,
    /// Somebody waits for it. It goes before others, where operations queue outside of the kernel.
    pub is_urgent: bool,
}

// SAFETY: the pointer is used only for this operation, until whose end nothing else accesses the memory
// (`Storage::start`). It does not matter which thread does.
unsafe impl Send for IoOperation {}

/// An operation, and how far it has come.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) operation: IoOperation,
    done_bytes: usize,
    /// The file has a name: what a read lacks behind its end is zeros.
    is_named: bool,
    /// The last read ended within a block.
    has_ended: bool,
}

/// The part of an operation for which to ask the kernel next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) offset_bytes: u64,
    pub(super) pointer: *mut u8,
    pub(super) len_bytes: usize,
}

/// How an operation goes on after a result.
#[derive(Debug)]
pub(super) enum Step {
    /// The operation is complete.
    Complete(io::Result<()>),
    /// The operation needs another request.
    Continue,
}

impl IoOperation {
    /// Panics where the contract of `Storage::start` says so, for the backing file of `size_bytes`, or a file with a name.
    pub(super) fn check(&self, size_bytes: Option<u64>) {
        let IoOperation { offset_bytes, memory, len_bytes, .. } = *self;
        let block = BLOCK_BYTES as u64;
        assert!(len_bytes > 0 && len_bytes % BLOCK_BYTES == 0, "a length of {len_bytes} bytes is not whole blocks");
        assert!(offset_bytes % block == 0, "the offset {offset_bytes} is not at a block");
        assert!(memory as usize % BLOCK_BYTES == 0, "the memory at {memory:p} is not aligned to a block");
        let end_bytes = offset_bytes.checked_add(len_bytes as u64);
        assert!(
            end_bytes.is_some_and(|end_bytes| size_bytes.is_none_or(|size_bytes| end_bytes <= size_bytes)),
            "{len_bytes} bytes at {offset_bytes} leave the file of {size_bytes:?} bytes"
        );
    }
}

impl Progress {
    /// An operation on the backing file of `size_bytes`, or on a file with a name; panics where the contract of `Storage::start` says
    /// so.
    pub(super) fn new(operation: IoOperation, size_bytes: Option<u64>) -> Progress {
        operation.check(size_bytes);
        Progress { operation, done_bytes: 0, is_named: size_bytes.is_none(), has_ended: false }
    }

    /// The next request, of at most `len_bytes_max` (whole blocks).
    pub(super) fn request(&self, len_bytes_max: usize) -> Request {
        Request {
            offset_bytes: self.operation.offset_bytes + self.done_bytes as u64,
            pointer: self.operation.memory.wrapping_add(self.done_bytes),
            len_bytes: (self.operation.len_bytes - self.done_bytes).min(len_bytes_max),
        }
    }

    /// Takes the kernel's answer to the last request: the bytes that it moved, or an error.
    pub(super) fn advance(&mut self, result: io::Result<usize>) -> Step {
        let moved_bytes = match result {
            Ok(moved_bytes) => moved_bytes,
            Err(error) if is_transient(&error) => return Step::Continue,
            Err(error) => return Step::Complete(Err(error)),
        };
        let done_bytes = self.done_bytes + moved_bytes;
        assert!(
            done_bytes <= self.operation.len_bytes,
            "the kernel moved {moved_bytes} bytes that it was not asked for"
        );
        if done_bytes == self.operation.len_bytes {
            return Step::Complete(Ok(()));
        }
        // O_DIRECT can continue only at a block; moving a part of a block a second time does no harm.
        let whole_bytes = done_bytes / BLOCK_BYTES * BLOCK_BYTES;
        if whole_bytes == self.done_bytes {
            if self.is_named && self.operation.direction == IoDirection::Read {
                return self.end_of_file(done_bytes);
            }
            let kind = match self.operation.direction {
                IoDirection::Read => io::ErrorKind::UnexpectedEof,
                IoDirection::Write => io::ErrorKind::WriteZero,
            };
            return Step::Complete(Err(kind.into()));
        }
        self.done_bytes = whole_bytes;
        Step::Continue
    }

    /// A read has come no block further, to `done_bytes`. If that is the end of the file, the rest is zeros.
    fn end_of_file(&mut self, done_bytes: usize) -> Step {
        // A read within the file may be cut short, too, but not twice within the same block.
        if done_bytes > self.done_bytes && !self.has_ended {
            self.has_ended = true;
            return Step::Continue;
        }
        // SAFETY: the operation's memory is valid for writes of its length, and left to it until it is handed out.
        unsafe {
            self.operation.memory.add(done_bytes).write_bytes(0, self.operation.len_bytes - done_bytes);
        }
        Step::Complete(Ok(()))
    }
}

/// Whether to ask again after this error. io_uring cancels requests that were not begun when their thread ended;
/// nothing else cancels any.
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
                direction,
                file: FileSlot::BACKING,
                offset_bytes: 8192,
                memory,
                len_bytes,
                token: 7,
                is_urgent: true,
            },
            Some(SIZE_BYTES),
        )
    }

    /// Gives `results` to an operation of four blocks. Returns `(offset, len)` of the requests, and the outcome if it
    /// ended.
    fn run(results: Vec<io::Result<usize>>) -> (Vec<(u64, usize)>, Option<io::Result<()>>) {
        let mut operation = operation(IoDirection::Read, 4 * BLOCK_BYTES);
        let mut requests = Vec::new();
        for result in results {
            let request = operation.request(REQUEST_BYTES_MAX);
            assert_eq!(request.pointer as u64, 0x10_0000 + request.offset_bytes - 8192);
            requests.push((request.offset_bytes, request.len_bytes));
            if let Step::Complete(outcome) = operation.advance(result) {
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
        let Step::Complete(outcome) = operation(IoDirection::Write, BLOCK_BYTES).advance(Ok(0)) else { panic!() };
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::WriteZero);
    }

    #[test]
    fn a_request_is_no_longer_than_asked() {
        let mut operation = operation(IoDirection::Write, 3 * BLOCK_BYTES);
        assert_eq!(operation.request(8192).len_bytes, 8192);
        assert!(matches!(operation.advance(Ok(8192)), Step::Continue));
        assert_eq!(operation.request(8192).len_bytes, 4096);
    }

    #[test]
    fn misuse_is_caught() {
        let bad = [(1, 0x1000, 4096), (0, 0x1001, 4096), (0, 0x1000, 0), (0, 0x1000, 100), (SIZE_BYTES, 0x1000, 4096)];
        for (offset_bytes, address, len_bytes) in bad.into_iter().chain([(u64::MAX - 4095, 0x1000, 4096)]) {
            let (direction, memory) = (IoDirection::Read, address as *mut u8);
            let file = FileSlot::BACKING;
            let operation = IoOperation { direction, file, offset_bytes, memory, len_bytes, token: 0, is_urgent: true };
            let made = std::panic::catch_unwind(|| Progress::new(operation, Some(SIZE_BYTES)));
            assert!(made.is_err(), "{offset_bytes} {address:#x} {len_bytes}");
        }
    }
}
