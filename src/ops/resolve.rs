//! The one look for the bytes of an operation. Its answer is handed on, so nothing looks again for a page that has
//! missed, except the engine under its lock.

use super::bounce_buffer::Between;
use super::readonly::Declared;
use super::{Operation, Ops, Remote};
use vgasnet_memory::{Piece, Pieces};
use vgasnet_settings::UserError;

/// The answer about an operation.
pub(super) enum Resolved {
    /// It is done.
    Done,
    /// A page is not open on this host.
    Missed(Missed),
    /// The client's memory is in the own segment. It is not a get that is done.
    Between(Between),
}

/// The rest of an operation, from a missing page on.
pub(super) struct Missed {
    pub(super) operation: Operation,
    pub(super) remote: Remote,
    /// Its page is not open on this host. All pieces before it are done.
    pub(super) first: Piece,
    /// The pieces behind it. Nothing has looked for their pages yet.
    pub(super) rest: Pieces,
    /// The declared range of a get, if there is one.
    pub(super) range: Option<Declared>,
}

impl Ops {
    /// Looks for the bytes of an operation that `Hits::small` has missed: in the own memory, in the copies of a
    /// declared range, and in the pools of this host. Performs the operation up to the first missing page. An operation
    /// that is done may have been empty.
    ///
    /// # Errors
    /// The range is not inside the rank's segment, or declared read-only and would be written; or the client's pointer
    /// is null.
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes, or null.
    #[inline(never)]
    pub(super) unsafe fn resolve(&self, operation: Operation, remote: Remote) -> Result<Resolved, UserError> {
        let mut pieces = match self.space.pieces(remote.rank, remote.address, remote.len_bytes) {
            Ok(pieces) => pieces,
            // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
            Err(error) => return unsafe { self.in_own_memory(operation, remote, error) }.map(|()| Resolved::Done),
        };
        self.check_client(operation, remote.len_bytes)?;
        if self.is_own_segment(operation, remote.len_bytes) {
            return self.resolve_between(operation, remote);
        }
        let Some(mut piece) = pieces.next() else { return Ok(Resolved::Done) };
        let mut range = None;
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, and not null, as checked.
        if self.readonly.is_any() && unsafe { self.readonly.by_copy(operation, &remote, &piece, &mut range)? } {
            return Ok(Resolved::Done);
        }
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, so for each piece, and not null, as checked.
        while unsafe { self.hits.hit(&piece, &operation.copy(&piece)) } {
            let Some(next) = pieces.next() else { return Ok(Resolved::Done) };
            piece = next;
        }
        Ok(Resolved::Missed(Missed { operation, remote, first: piece, rest: pieces, range }))
    }

    /// As [`Ops::resolve`], with a page already looked for: `missed` is all of the operation, or `None` if nothing was
    /// looked for.
    ///
    /// # Safety
    /// As [`Ops::resolve`]. With `missed`, the client's memory is neither null nor in the own segment.
    pub(super) unsafe fn resolve_after(
        &self,
        missed: Option<Piece>,
        operation: Operation,
        remote: Remote,
    ) -> Result<Resolved, UserError> {
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
        let Some(first) = missed else { return unsafe { self.resolve(operation, remote) } };
        let mut range = None;
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, and not null.
        if self.readonly.is_any() && unsafe { self.readonly.by_copy(operation, &remote, &first, &mut range)? } {
            return Ok(Resolved::Done);
        }
        let rest = self.space.pieces(remote.rank, remote.address, 0)?;
        Ok(Resolved::Missed(Missed { operation, remote, first, rest, range }))
    }
}
