//! Atomic operations on numbers of any segment, carried out where the page is.

use super::nonblocking::Kind;
use super::{Operation, Ops, Remote};
use crate::error::UserError;
use crate::memory::Piece;
use crate::request::{Atomic, CompletionId, Copy, Handle};
use vgasnet_protocol::byte_message::{AtomicOp, Operands};

/// An atomic operation, and where the number is: 4 or 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct AtomicOperation {
    /// What is done.
    pub op: AtomicOp,
    /// With what.
    pub operands: Operands,
    /// The number.
    pub remote: Remote,
}

impl Ops {
    /// Does an atomic operation. Returns what the number was.
    ///
    /// # Errors
    /// The number is not aligned, or not inside the rank's segment.
    pub fn atomic(&self, operation: AtomicOperation) -> Result<u64, UserError> {
        let mut old = [0_u8; size_of::<u64>()];
        let AtomicOperation { op, operands, remote } = operation;
        self.check_write(&remote)?;
        let (piece, copy) = (self.number_at(remote)?, Copy::Atomic(Atomic { op, operands, old: old.as_mut_ptr() }));
        // SAFETY: there are as many bytes as any number has.
        if !unsafe { self.hit(&piece, &copy) } {
            let completion = self.completions().begin();
            self.submit_one(piece, copy, completion);
            // The bytes stay until the operation is done.
            self.driver.finish(completion);
        }
        Ok(number(old, remote.len_bytes))
    }

    /// Starts an atomic operation that leaves what the number was at `old`, unless that is null. `None`: it is complete already.
    ///
    /// # Errors
    /// As [`Ops::atomic`].
    ///
    /// # Safety
    /// `old` is null, or valid for as many bytes as the number has until the handle has been synced.
    pub unsafe fn start_atomic_explicit(
        &self,
        operation: AtomicOperation,
        old: *mut u8,
    ) -> Result<Option<Handle>, UserError> {
        let completion = self.completions().begin();
        // SAFETY: `old` is null, or valid until the handle of this completion is synced.
        let started = unsafe { self.start_atomic_anywhere(operation, old, completion) };
        let handle = self.handle_unless_done(completion);
        started.map(|()| handle)
    }

    /// As [`Ops::start_atomic_explicit`], counted among this thread's implicit puts, or in its open access region.
    ///
    /// # Errors
    /// As [`Ops::atomic`].
    ///
    /// # Safety
    /// `old` is null, or valid for as many bytes as the number has until the thread has synced its implicit operations.
    pub unsafe fn start_atomic_implicit(&self, operation: AtomicOperation, old: *mut u8) -> Result<(), UserError> {
        let completion = self.implicit_completion(Kind::Put);
        // SAFETY: `old` is null, or valid until the implicit operations are synced.
        unsafe { self.start_atomic_anywhere(operation, old, completion) }
    }

    /// As [`Ops::start_atomic`], also where `old` lies in the own segment: then it is complete on return.
    ///
    /// # Safety
    /// As [`Ops::start_atomic`].
    unsafe fn start_atomic_anywhere(
        &self,
        operation: AtomicOperation,
        old: *mut u8,
        completion: CompletionId,
    ) -> Result<(), UserError> {
        let len_bytes = operation.remote.len_bytes;
        if !self.space.own_segment().overlaps(old.addr(), len_bytes) {
            // SAFETY: as the caller says.
            return unsafe { self.start_atomic(operation, old, completion) };
        }
        let was = self.atomic(operation)?;
        let (word, half) = (was.to_ne_bytes(), (was as u32).to_ne_bytes());
        let bytes = if len_bytes == half.len() { &half[..] } else { &word[..] };
        let here = Remote { rank: self.space.rank.0, address: old.addr(), len_bytes };
        // SAFETY: the bytes are as many as the put has.
        unsafe { self.transfer(Operation::Put(bytes.as_ptr()), here) }
    }

    /// Does an atomic operation on a number whose page is in a pool of this host, or starts it; then it counts in `completion`.
    ///
    /// # Safety
    /// `old` is null, or valid for as many bytes as the number has until nothing is pending in `completion`. It is not in the own
    /// segment.
    unsafe fn start_atomic(
        &self,
        AtomicOperation { op, operands, remote }: AtomicOperation,
        old: *mut u8,
        completion: CompletionId,
    ) -> Result<(), UserError> {
        self.check_write(&remote)?;
        let piece = self.number_at(remote)?;
        let copy = Copy::Atomic(Atomic { op, operands, old });
        // SAFETY: `old` is null or valid.
        if !unsafe { self.hit(&piece, &copy) } {
            self.submit_one(piece, copy, completion);
        }
        Ok(())
    }

    /// The piece that is a number: one that is aligned lies in one page.
    fn number_at(&self, remote: Remote) -> Result<Piece, UserError> {
        let Remote { rank, address, len_bytes } = remote;
        debug_assert!(matches!(len_bytes, 4 | 8));
        if address % len_bytes != 0 {
            return Err(UserError::new(format!(
                "the number of {len_bytes} bytes at {address:#x} of rank {rank} is not aligned; give an address that is a multiple \
                 of {len_bytes}"
            )));
        }
        let piece = self.space.pieces(rank, address, len_bytes)?.next();
        Ok(piece.expect("a number has bytes"))
    }
}

/// What the first bytes are as a number.
fn number(bytes: [u8; size_of::<u64>()], len_bytes: usize) -> u64 {
    match bytes.first_chunk() {
        Some(half) if len_bytes == half.len() => u64::from(u32::from_ne_bytes(*half)),
        _ => u64::from_ne_bytes(bytes),
    }
}
