//! Gets, puts and memsets: splits a range into pages. Hits are performed here, and misses are left to the engine.

use super::Ops;
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
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
        if unsafe { self.hit_small(operation, remote) } {
            return Ok(());
        }
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
        unsafe { self.transfer_pinned(operation, remote) }
    }

    /// As [`Ops::transfer`], without the shortest path.
    #[inline(never)]
    unsafe fn transfer_pinned(&self, operation: Operation, remote: Remote) -> Result<(), UserError> {
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
        if unsafe { self.at_once(operation, remote)? } {
            return Ok(());
        }
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, and not null, as `at_once` has checked.
        unsafe { self.transfer_slowly(operation, remote) }
    }

    /// Performs an operation without a miss: an empty one, or one within a page that hits. Also performs an operation
    /// with client memory in the own segment, through a buffer. Returns whether it is done.
    ///
    /// # Errors
    /// As [`Ops::transfer`].
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes, or null.
    #[inline]
    pub(super) unsafe fn at_once(&self, operation: Operation, remote: Remote) -> Result<bool, UserError> {
        let mut pieces = match self.space.pieces(remote.rank, remote.address, remote.len_bytes) {
            Ok(pieces) => pieces,
            // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
            Err(error) => return unsafe { self.in_own_memory(operation, remote, error) }.map(|()| true),
        };
        self.check_client(operation, remote.len_bytes)?;
        if self.is_own_segment(operation, remote.len_bytes) {
            return self.through_bounce_buffer(operation, remote).map(|()| true);
        }
        let Some(first) = pieces.next() else { return Ok(true) };
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, and not null, as checked.
        if self.readonly.is_any() && unsafe { self.by_copy(operation, remote)? } {
            return Ok(true);
        }
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, and not null, as checked.
        Ok(first.len_bytes == remote.len_bytes && unsafe { self.hit(&first, &operation.copy(&first)) })
    }

    /// Performs an operation on several pages, or one that missed. The missing pages are fetched in parallel.
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes.
    unsafe fn transfer_slowly(&self, operation: Operation, remote: Remote) -> Result<(), UserError> {
        let completion = self.completions().begin();
        let operation = if let Operation::PutNow(from) = operation { Operation::Put(from) } else { operation };
        // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, and this function waits for the
        // completion.
        let missing = unsafe { self.missing_parts(&operation, remote, completion) };
        let started = missing.map(|missing| self.driver.submit_and_wait(missing));
        self.driver.finish(completion);
        started
    }

    /// Starts an operation that [`Ops::at_once`] has not done. Its parts count in `completion`.
    ///
    /// # Errors
    /// As [`Ops::transfer`]; nothing is started then.
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes until nothing is pending in `completion`; for an
    /// [`Operation::PutNow`] until this returns.
    pub(super) unsafe fn start(
        &self,
        operation: Operation,
        remote: Remote,
        completion: CompletionId,
    ) -> Result<(), UserError> {
        if let Operation::PutNow(from) = operation {
            self.space.pieces(remote.rank, remote.address, remote.len_bytes)?;
            // SAFETY: the client's memory at `from` is valid for `remote.len_bytes` bytes until this returns.
            return unsafe { self.start_put_now(from, remote, completion) };
        }
        // SAFETY: as the caller promises.
        let mut missing = unsafe { self.missing_parts(&operation, remote, completion) }?;
        self.submit_missing(&mut missing);
        Ok(())
    }

    /// Performs the hits of an operation. Returns the missing parts, which count in `completion`; of very many, only
    /// the last ones.
    ///
    /// # Errors
    /// As [`Ops::transfer`].
    ///
    /// # Safety
    /// As [`Ops::start`].
    unsafe fn missing_parts(
        &self,
        operation: &Operation,
        remote: Remote,
        completion: CompletionId,
    ) -> Result<Vec<Part>, UserError> {
        let mut missing = Vec::new();
        for piece in self.space.pieces(remote.rank, remote.address, remote.len_bytes)? {
            // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, so for this piece of them, as long as the caller says.
            let part = unsafe {
                let hits = self.hit(&piece, &operation.copy(&piece));
                if hits { None } else { self.part_for(operation, &remote, piece, completion) }
            };
            part.into_iter().for_each(|part| self.add_missing(&mut missing, part));
        }
        Ok(missing)
    }

    /// Starts a put that has read the client's memory when this returns. Bytes for missing pages are copied; without
    /// room for copies, this waits for the pages.
    ///
    /// # Safety
    /// The client's memory at `from` is valid for `remote.len_bytes` bytes until this returns.
    pub(super) unsafe fn start_put_now(
        &self,
        from: *const u8,
        remote: Remote,
        completion: CompletionId,
    ) -> Result<(), UserError> {
        let mut missing = Vec::new();
        // SAFETY: as the caller promises.
        unsafe { self.put_copies(from, remote, completion, &mut missing)? };
        self.submit_missing(&mut missing);
        Ok(())
    }

    /// As [`Ops::start_put_now`], but leaves copies for missing pages in `missing`.
    ///
    /// # Safety
    /// As [`Ops::start_put_now`].
    pub(super) unsafe fn put_copies(
        &self,
        from: *const u8,
        remote: Remote,
        completion: CompletionId,
        missing: &mut Vec<Part>,
    ) -> Result<(), UserError> {
        let operation = Operation::Put(from);
        for piece in self.space.pieces(remote.rank, remote.address, remote.len_bytes)? {
            // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, so for this piece of them.
            if unsafe { self.hit(&piece, &operation.copy(&piece)) } {
                continue;
            }
            if let Some(room) = self.room_for_copy(piece.len_bytes) {
                // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, so for this piece of them.
                let bytes = unsafe { std::slice::from_raw_parts(from.add(piece.start_bytes), piece.len_bytes) };
                let copy = Copy::PutOwned(bytes.into(), room);
                missing.push(Part { piece, copy, completion: Completion::Counted(completion) });
            } else {
                self.submit_missing(missing);
                let now = self.completions().begin();
                self.submit_one(piece, operation.copy(&piece), now);
                self.driver.finish(now);
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
