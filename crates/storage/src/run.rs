//! Consecutive operations in a file, executed by one vectored request.

use super::operation::IoOperation;
use io_uring::{opcode, squeue, types};
use std::io;
use vgasnet_settings::IoDirection;

/// Operations of one direction on one file, each beginning at the end of the one before; at least one.
pub(super) struct Run {
    operations: Vec<IoOperation>,
    /// The memory of each. The kernel reads this when it takes the request.
    vectors: Box<[libc::iovec]>,
}

// SAFETY: the vectors point to the memory of the operations, which are `Send`.
unsafe impl Send for Run {}

impl Run {
    /// # Panics
    /// If the operations are not a run, or there are none.
    pub(super) fn new(operations: &[IoOperation]) -> Run {
        let follows = |pair: &[IoOperation]| {
            pair[0].direction == pair[1].direction
                && pair[0].file == pair[1].file
                && pair[0].offset_bytes + pair[0].len_bytes as u64 == pair[1].offset_bytes
        };
        assert!(!operations.is_empty() && operations.windows(2).all(follows), "they are no run: {operations:?}");
        let vector =
            |operation: &IoOperation| libc::iovec { iov_base: operation.memory.cast(), iov_len: operation.len_bytes };
        Run { operations: operations.to_vec(), vectors: operations.iter().map(vector).collect() }
    }

    pub(super) fn operations(&self) -> &[IoOperation] {
        &self.operations
    }

    pub(super) fn into_operations(self) -> Vec<IoOperation> {
        self.operations
    }

    /// The request for all operations, or for the first ones if they have more than `len_bytes_max` bytes; at least for
    /// one.
    pub(super) fn entry(&self, file: types::Fd, len_bytes_max: usize) -> squeue::Entry {
        let mut left_bytes = len_bytes_max;
        let mut fits = |vector: &&libc::iovec| {
            let after_bytes = left_bytes.checked_sub(vector.iov_len);
            left_bytes = after_bytes.unwrap_or(0);
            after_bytes.is_some()
        };
        let count = self.vectors.iter().take_while(|vector| fits(vector)).count().max(1) as u32;
        let (vectors, offset_bytes) = (self.vectors.as_ptr(), self.operations[0].offset_bytes);
        match self.operations[0].direction {
            IoDirection::Read => opcode::Readv::new(file, vectors, count).offset(offset_bytes).build(),
            IoDirection::Write => opcode::Writev::new(file, vectors, count).offset(offset_bytes).build(),
        }
    }

    /// Whether the kernel has moved all bytes of the run.
    pub(super) fn is_complete(&self, result: &io::Result<usize>) -> bool {
        let len_bytes: usize = self.operations.iter().map(|operation| operation.len_bytes).sum();
        result.as_ref().is_ok_and(|moved_bytes| *moved_bytes == len_bytes)
    }
}
