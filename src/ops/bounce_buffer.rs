//! Operations whose client memory lies in the caller's own segment, and so in pages too.

use super::{Operation, Ops, Remote};
use crate::error::UserError;
use crate::request::CompletionId;
use crate::stats::{self, Row};
use vgasnet_protocol::coherence::Access;

/// Bytes that go through the buffer at a time.
const BUFFER_BYTES: usize = 64 << 10;

impl Ops {
    /// Does such an operation. Bytes go from page to page where both pages are open, else through a buffer, so that no
    /// page is pinned while another one is waited for.
    #[cold]
    pub(super) fn through_bounce_buffer(&self, operation: Operation, remote: Remote) -> Result<(), UserError> {
        let Some(local) = operation.address() else { return Ok(()) };
        let own = self.space.rank.0;
        self.space.pieces(own, local, remote.len_bytes)?;
        let mut buffer = Vec::new();
        let mut at = 0;
        while at < remote.len_bytes {
            let here = Remote { rank: own, address: local + at, len_bytes: remote.len_bytes - at };
            let there = Remote { address: remote.address + at, len_bytes: remote.len_bytes - at, ..remote };
            let (from, to) = if operation.is_get() { (there, here) } else { (here, there) };
            at += match self.copy_page_to_page(from, to)? {
                0 => self.copy_through(&mut buffer, from, to)?,
                len_bytes => len_bytes,
            };
        }
        Ok(())
    }

    /// Whether an operation is a put from the own segment to a segment.
    pub(super) fn is_put_between_segments(&self, operation: Operation, remote: Remote) -> bool {
        let (Operation::Put(from) | Operation::PutNow(from)) = operation else { return false };
        let is_inside = |rank, address| self.space.pieces(rank, address, remote.len_bytes).is_ok();
        self.is_own_segment(operation, remote.len_bytes)
            && is_inside(remote.rank, remote.address)
            && is_inside(self.space.rank.0, from.addr())
    }

    /// Starts such a put. It may wait for pages of its source, which are this rank's own, but as a rule for none of its target: what was
    /// read is a copy, which the put keeps.
    ///
    /// # Errors
    /// As [`Ops::transfer`]; nothing is started then.
    #[cold]
    pub(super) fn start_between_segments(
        &self,
        from: usize,
        remote: Remote,
        completion: CompletionId,
    ) -> Result<(), UserError> {
        self.check_write(&remote)?;
        let mut buffer = Vec::new();
        let mut at = 0;
        while at < remote.len_bytes {
            let here = Remote { rank: self.space.rank.0, address: from + at, len_bytes: remote.len_bytes - at };
            let there = Remote { address: remote.address + at, len_bytes: remote.len_bytes - at, ..remote };
            at += match self.copy_page_to_page(here, there)? {
                0 => {
                    let len_bytes = BUFFER_BYTES.min(here.len_bytes);
                    buffer.resize(BUFFER_BYTES, 0);
                    // SAFETY: the buffer has at least `len_bytes` bytes, and nothing else uses it. The put does not read it any more when
                    // it has been started.
                    unsafe {
                        self.transfer(Operation::Get(buffer.as_mut_ptr()), Remote { len_bytes, ..here })?;
                        self.start_put_now(buffer.as_ptr(), Remote { len_bytes, ..there }, completion)?;
                    }
                    len_bytes
                }
                len_bytes => len_bytes,
            };
        }
        Ok(())
    }

    /// Copies the bytes up to the nearer page border, if both pages are open. Returns how many it copied.
    fn copy_page_to_page(&self, from: Remote, to: Remote) -> Result<usize, UserError> {
        let first = |side: Remote| self.space.pieces(side.rank, side.address, side.len_bytes).map(|mut all| all.next());
        let (Some(from), Some(to)) = (first(from)?, first(to)?) else { return Ok(0) };
        let Some(source) = self.pin_anywhere(from.page, Access::Read) else { return Ok(0) };
        let mut copied = 0;
        if let Some(target) = self.pin_anywhere(to.page, Access::Write) {
            copied = from.len_bytes.min(to.len_bytes);
            stats::add(Row::HitPins, 2);
            self.mark_dirty(&target, to.offset_bytes, copied);
            // SAFETY: both pages are pinned, the target for writing, and the pieces end inside them. The bytes may
            // overlap.
            unsafe {
                let (source, target) = (source.frame.add(from.offset_bytes), target.frame.add(to.offset_bytes));
                std::ptr::copy(source, target, copied);
            }
            self.unpin_page(target);
        }
        self.unpin_page(source);
        Ok(copied)
    }

    /// Copies some bytes through a buffer. Returns how many.
    fn copy_through(&self, buffer: &mut Vec<u8>, from: Remote, to: Remote) -> Result<usize, UserError> {
        let len_bytes = BUFFER_BYTES.min(from.len_bytes);
        buffer.resize(BUFFER_BYTES, 0);
        // SAFETY: the buffer has at least `len_bytes` bytes, and nothing else uses it.
        unsafe {
            self.transfer(Operation::Get(buffer.as_mut_ptr()), Remote { len_bytes, ..from })?;
            self.transfer(Operation::Put(buffer.as_ptr()), Remote { len_bytes, ..to })?;
        }
        Ok(len_bytes)
    }
}
