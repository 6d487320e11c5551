//! Atomic operations on numbers in any segment, performed at the page's holder.

use super::nonblocking::Kind;
use super::{Operation, Ops, Remote};
use vgasnet_engine::request::{Atomic, Copy, Handle};
use vgasnet_memory::Piece;
use vgasnet_protocol::byte_message::{AtomicOp, Operands};
use vgasnet_settings::UserError;

/// An atomic operation on a number of 4 or 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct AtomicOperation {
    /// The operation.
    pub op: AtomicOp,
    /// Its operands.
    pub operands: Operands,
    /// The place of the number.
    pub remote: Remote,
}

impl Ops {
    /// Performs an atomic operation. Returns the number's old value.
    ///
    /// # Errors
    /// The number is not aligned, or not inside the rank's segment.
    pub fn atomic(&self, operation: AtomicOperation) -> Result<u64, UserError> {
        let mut old = [0_u8; size_of::<u64>()];
        let AtomicOperation { op, operands, remote } = operation;
        self.check_change(&operation)?;
        let (piece, copy) = (self.number_at(remote)?, Copy::Atomic(Atomic { op, operands, old: old.as_mut_ptr() }));
        // SAFETY: `old` is as long as the longest number.
        if !unsafe { self.hits.hit(&piece, &copy) } {
            let completion = self.completions().begin();
            self.submit_one(piece, copy, completion);
            // The bytes stay until the operation is done.
            self.driver.finish(completion);
        }
        Ok(number(old, remote.len_bytes))
    }

    /// Starts an atomic operation that stores the number's old value at `old`, unless `old` is null. `None`: it is
    /// complete already.
    ///
    /// # Errors
    /// As [`Ops::atomic`].
    ///
    /// # Safety
    /// `old` is null, or valid for as many bytes as the number has until the handle has been synced.
    #[inline]
    pub unsafe fn start_atomic_explicit(
        &self,
        operation: AtomicOperation,
        old: *mut u8,
    ) -> Result<Option<Handle>, UserError> {
        // SAFETY: `old` is null, or valid until the handle of the completion below is synced.
        let Some((piece, copy)) = (unsafe { self.atomic_at_once(operation, old) })? else { return Ok(None) };
        let completion = self.completions().begin();
        self.submit_one(piece, copy, completion);
        Ok(self.handle_unless_done(completion))
    }

    /// As [`Ops::start_atomic_explicit`], counted among this thread's implicit operations of a kind, or in its open access region.
    ///
    /// # Errors
    /// As [`Ops::atomic`].
    ///
    /// # Safety
    /// `old` is null, or valid for as many bytes as the number has until the thread has synced its implicit operations.
    pub unsafe fn start_atomic_implicit(
        &self,
        operation: AtomicOperation,
        old: *mut u8,
        kind: Kind,
    ) -> Result<(), UserError> {
        // SAFETY: `old` is null, or valid until the implicit operations are synced.
        if let Some((piece, copy)) = unsafe { self.atomic_at_once(operation, old) }? {
            self.submit_one(piece, copy, self.implicit_completion(kind));
        }
        Ok(())
    }

    /// Performs an atomic operation on a number with its page in a pool of this host. Otherwise returns the part to be
    /// submitted. If `old` lies in the own segment, waits for the operation instead.
    ///
    /// # Safety
    /// `old` is null, or valid for as many bytes as the number has until the returned part is done.
    #[inline(always)]
    unsafe fn atomic_at_once(
        &self,
        operation: AtomicOperation,
        old: *mut u8,
    ) -> Result<Option<(Piece, Copy)>, UserError> {
        let AtomicOperation { op, operands, remote } = operation;
        if self.space.own_segment().overlaps(old.addr(), remote.len_bytes) {
            return self.atomic_to_segment(operation, old.addr()).map(|()| None);
        }
        // SAFETY: `old` is null or valid.
        if op.is_read() && remote.address % remote.len_bytes == 0 && unsafe { self.hits.get_number(old, remote) } {
            return Ok(None);
        }
        self.check_change(&operation)?;
        let piece = self.number_at(remote)?;
        let copy = Copy::Atomic(Atomic { op, operands, old });
        // SAFETY: `old` is null or valid.
        Ok(if unsafe { self.hits.hit(&piece, &copy) } { None } else { Some((piece, copy)) })
    }

    /// Performs an atomic operation with `old` in the own segment.
    #[inline(never)]
    fn atomic_to_segment(&self, operation: AtomicOperation, old: usize) -> Result<(), UserError> {
        let len_bytes = operation.remote.len_bytes;
        let was = self.atomic(operation)?;
        let (word, half) = (was.to_ne_bytes(), (was as u32).to_ne_bytes());
        let bytes = if len_bytes == half.len() { &half[..] } else { &word[..] };
        let here = Remote { rank: self.space.rank.0, address: old, len_bytes };
        // SAFETY: `bytes` is as long as the put.
        unsafe { self.transfer(Operation::Put(bytes.as_ptr()), here) }
    }

    /// Refuses a change of a number in a range declared read-only by this rank.
    fn check_change(&self, operation: &AtomicOperation) -> Result<(), UserError> {
        if operation.op.is_read() { Ok(()) } else { self.readonly.check_write(&operation.remote) }
    }

    /// The piece of an aligned number, which lies in one page.
    #[inline(always)]
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

/// The number in the first bytes.
fn number(bytes: [u8; size_of::<u64>()], len_bytes: usize) -> u64 {
    match bytes.first_chunk() {
        Some(half) if len_bytes == half.len() => u64::from(u32::from_ne_bytes(*half)),
        _ => u64::from_ne_bytes(bytes),
    }
}
