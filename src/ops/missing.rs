//! Missing parts of a transfer. They are submitted together, but in bounded numbers, so that a transfer's memory and
//! its time under the engine's lock do not grow with its pages.

use super::resolve::{Missed, Resolved};
use super::{Operation, Ops};
use vgasnet_engine::request::{Completion, CompletionId, Copy, Part};
use vgasnet_memory::Piece;
use vgasnet_settings::UserError;

/// Maximum missing parts of a transfer at a time. A transfer with more continues when these are complete.
pub const PARTS_MAX: usize = 4096;

impl Ops {
    /// Fetches the missing pages of an operation in parallel, and returns when it is complete.
    ///
    /// # Safety
    /// The client's memory is valid for the operation.
    #[inline(never)]
    pub(super) unsafe fn finish_missing(&self, missed: Missed) {
        let operation = match missed.operation {
            Operation::PutNow(from) => Operation::Put(from),
            other => other,
        };
        let completion = self.completions().begin();
        let mut parts = Vec::new();
        // SAFETY: the client's memory is valid for the operation, and this function waits for the completion.
        unsafe { self.add_parts(Missed { operation, ..missed }, completion, &mut parts) };
        self.driver.submit_and_wait(parts);
        self.driver.finish(completion);
    }

    /// Starts the rest of an operation. Its parts count in `completion`.
    ///
    /// # Errors
    /// As [`Ops::transfer`]; nothing is started then.
    ///
    /// # Safety
    /// The client's memory is valid for the operation until nothing is pending in `completion`; for an
    /// [`Operation::PutNow`] until this returns.
    pub(super) unsafe fn start_missing(&self, resolved: Resolved, completion: CompletionId) -> Result<(), UserError> {
        let mut parts = Vec::new();
        // SAFETY: the client's memory is valid until nothing is pending in `completion`; for an [`Operation::PutNow`]
        // until this returns.
        unsafe { self.add_rest(resolved, completion, &mut parts)? };
        self.submit_missing(&mut parts);
        Ok(())
    }

    /// As [`Ops::start_missing`], but leaves missing parts in `parts`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn add_rest(
        &self,
        resolved: Resolved,
        completion: CompletionId,
        parts: &mut Vec<Part>,
    ) -> Result<(), UserError> {
        match resolved {
            Resolved::Done => {}
            // SAFETY: the client's memory is valid until nothing is pending in `completion`; for an
            // [`Operation::PutNow`] until this returns.
            Resolved::Missed(missed) => unsafe { self.add_parts(missed, completion, parts) },
            Resolved::Between(between) => {
                self.submit_missing(parts);
                self.start_between(&between, completion)?;
            }
        }
        Ok(())
    }

    /// Adds the missing parts of an operation, and performs the hits among its later pieces. Of very many parts, only
    /// the last ones are left in `parts`.
    ///
    /// # Safety
    /// As [`Ops::start_missing`].
    unsafe fn add_parts(&self, missed: Missed, completion: CompletionId, parts: &mut Vec<Part>) {
        let Missed { operation, remote, first, mut rest, mut range } = missed;
        let mut next = Some(first);
        while let Some(piece) = next {
            let plain = || Part { piece, copy: operation.copy(&piece), completion: Completion::Counted(completion) };
            // SAFETY: the client's memory is valid for the operation, so for each piece, as long as the caller says.
            unsafe {
                match operation {
                    Operation::PutNow(from) => self.add_copy(from, piece, completion, parts),
                    Operation::Put(_) | Operation::Set(_) => self.add_missing(parts, plain()),
                    Operation::Get(to) | Operation::GetWeighted(to, _) => {
                        let address = remote.address + piece.start_bytes;
                        let part = match self.readonly.range_at(&mut range, remote.rank, address, piece.len_bytes) {
                            None => Some(plain()),
                            Some(range) => {
                                let dest = (to.add(piece.start_bytes), operation.weight());
                                self.readonly.part_or_copy(&range, address, piece, dest, completion)
                            }
                        };
                        part.into_iter().for_each(|part| self.add_missing(parts, part));
                    }
                }
                next = rest.find(|piece| !self.hits.hit(piece, &operation.copy(piece)));
            }
        }
    }

    /// Adds the part of a put that may read the client's memory only now, with a copy of its bytes. Without room for
    /// copies, waits for the page.
    ///
    /// # Safety
    /// The client's memory at `from` is valid for the piece.
    unsafe fn add_copy(&self, from: *const u8, piece: Piece, completion: CompletionId, parts: &mut Vec<Part>) {
        let from = from.wrapping_add(piece.start_bytes);
        if let Some(room) = self.room_for_copy(piece.len_bytes) {
            // SAFETY: the client's memory is valid for the piece.
            let bytes = unsafe { std::slice::from_raw_parts(from, piece.len_bytes) };
            let copy = Copy::PutOwned(bytes.into(), room);
            parts.push(Part { piece, copy, completion: Completion::Counted(completion) });
        } else {
            self.submit_missing(parts);
            let now = self.completions().begin();
            self.submit_one(piece, Copy::Put(from), now);
            self.driver.finish(now);
        }
    }

    /// Adds a missing part of a transfer.
    pub(super) fn add_missing(&self, missing: &mut Vec<Part>, part: Part) {
        if missing.len() == PARTS_MAX {
            self.finish_parts(missing);
        }
        missing.push(part);
    }

    /// Submits all parts. This thread may wait for their bytes next.
    pub(super) fn submit_missing(&self, missing: &mut Vec<Part>) {
        if !missing.is_empty() {
            self.driver.submit(missing.drain(..));
        }
    }

    /// Submits parts and waits for their completion. A failure is reported to their transfer.
    #[cold]
    fn finish_parts(&self, parts: &mut Vec<Part>) {
        let transfer = parts.iter().find_map(|part| match &part.completion {
            Completion::Counted(transfer) | Completion::Then(transfer, _) => Some(*transfer),
            Completion::Fault(_) | Completion::Served(_) | Completion::Nobody => None,
        });
        let now = self.begin_pieces();
        let parts = std::mem::take(parts).into_iter();
        self.driver.submit(parts.map(|part| Part { completion: part.completion.counted_in(now), ..part }));
        self.driver.wait(now);
        if let (Some(transfer), Some(cause)) = (transfer, self.completions().failure(now)) {
            self.completions().fail(transfer, cause);
        }
        self.completions().end(now);
    }
}
