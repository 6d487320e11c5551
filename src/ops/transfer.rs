//! Gets, puts and memsets.

use super::Ops;
use super::resolve::Resolved;
use vgasnet_engine::request::{Completion, CompletionId, Copy, Part};
use vgasnet_memory::Piece;
use vgasnet_settings::UserError;

/// An operation, with the first byte of the client's memory.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A get, which writes the memory.
    Get(*mut u8),
    /// A get with the weight of its copy, if one is kept.
    GetWeighted(*mut u8, f32),
    /// A put, which may read the memory until it is complete.
    Put(*const u8),
    /// A put that has read the memory once it has been started.
    PutNow(*const u8),
    /// A memset of this byte.
    Set(u8),
}

impl Operation {
    pub(super) fn copy(self, piece: &Piece) -> Copy {
        match self {
            Operation::Get(to) | Operation::GetWeighted(to, _) => Copy::Get(to.wrapping_add(piece.start_bytes)),
            Operation::Put(from) | Operation::PutNow(from) => Copy::Put(from.wrapping_add(piece.start_bytes)),
            Operation::Set(byte) => Copy::Set(byte),
        }
    }

    /// Whether it is a get.
    pub fn is_get(self) -> bool {
        matches!(self, Operation::Get(_) | Operation::GetWeighted(..))
    }

    /// The weight of a copy kept of its bytes.
    pub(super) fn weight(self) -> f32 {
        if let Operation::GetWeighted(_, weight) = self { weight } else { 1.0 }
    }

    /// The address of the client's memory, if it has any.
    pub fn address(self) -> Option<usize> {
        match self {
            Operation::Get(to) | Operation::GetWeighted(to, _) => Some(to.addr()),
            Operation::Put(from) | Operation::PutNow(from) => Some(from.addr()),
            Operation::Set(_) => None,
        }
    }
}

/// One side of an operation: `len_bytes` bytes at `address` of `rank`'s segment.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// The rank of the segment.
    pub rank: u32,
    /// The first address, in this rank's address space.
    pub address: usize,
    /// The length.
    pub len_bytes: usize,
}

impl Ops {
    /// Performs an operation and returns when it is complete.
    ///
    /// # Errors
    /// The range is not inside the rank's segment, or the client's pointer is null.
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes, or null.
    #[inline(always)]
    pub unsafe fn transfer(&self, operation: Operation, remote: Remote) -> Result<(), UserError> {
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null; once resolved, not null.
        unsafe {
            if self.hits.small(operation, remote) {
                return Ok(());
            }
            match self.resolve(operation, remote)? {
                Resolved::Done => {}
                Resolved::Missed(missed) => self.finish_missing(missed),
                Resolved::Between(between) => self.finish_between(&between)?,
            }
        }
        Ok(())
    }

    pub(super) fn submit_one(&self, piece: Piece, copy: Copy, completion: CompletionId) {
        self.driver.submit(std::iter::once(Part { piece, copy, completion: Completion::Counted(completion) }));
    }

    #[inline]
    pub(super) fn check_client(&self, operation: Operation, len_bytes: usize) -> Result<(), UserError> {
        if operation.address() == Some(0) && len_bytes > 0 {
            return Err(null_pointer(operation, len_bytes));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn is_own_segment(&self, operation: Operation, len_bytes: usize) -> bool {
        operation.address().is_some_and(|address| self.space.own_segment().overlaps(address, len_bytes))
    }
}

#[cold]
fn null_pointer(operation: Operation, len_bytes: usize) -> UserError {
    let what = if operation.is_get() { "destination" } else { "source" };
    UserError::new(format!(
        "the {what} of {len_bytes} bytes is a null pointer; give the address of memory of that size"
    ))
}
