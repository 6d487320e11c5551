//! Gets, puts and memsets: splits a range into pages; each is a hit, done here, or a miss, left to the engine.
//!
//! The hit path is [`Runtime::hit`]: no lock, no message, no system call.

use crate::engine::{Copy, Part};
use crate::error::UserError;
use crate::handles::CompletionId;
use crate::page_table::Pinned;
use crate::runtime::Runtime;
use crate::space::Piece;

/// How much of a range that lies in the caller's own segment is moved at a time.
const BOUNCE_BYTES: usize = 64 << 10;

/// What an operation does with the client's memory, from its first byte on.
#[derive(Clone, Copy, Debug)]
pub enum Client {
    /// A get writes there.
    Get(*mut u8),
    /// A put reads there, and may go on reading until it is complete.
    Put(*const u8),
    /// A put reads there, and is through with it when it has started.
    PutNow(*const u8),
    /// A memset.
    Set(u8),
}

impl Client {
    fn copy(self, piece: &Piece) -> Copy {
        match self {
            Client::Get(to) => Copy::Get(to.wrapping_add(piece.start_bytes)),
            Client::Put(from) | Client::PutNow(from) => Copy::Put(from.wrapping_add(piece.start_bytes)),
            Client::Set(byte) => Copy::Set(byte),
        }
    }

    fn address(self) -> Option<usize> {
        match self {
            Client::Get(to) => Some(to.addr()),
            Client::Put(from) | Client::PutNow(from) => Some(from.addr()),
            Client::Set(_) => None,
        }
    }
}

/// One side of an operation: `len_bytes` bytes at `address` of `rank`'s segment.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// The rank whose segment it is.
    pub rank: u32,
    /// The first address, as the rank itself has it.
    pub address: usize,
    /// The length.
    pub len_bytes: usize,
}

impl Runtime {
    /// Does an operation and returns when it is complete.
    ///
    /// # Errors
    /// The range is not inside the rank's segment, or the client's pointer is null.
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes, or null.
    #[inline]
    pub unsafe fn transfer(&self, client: Client, remote: Remote) -> Result<(), UserError> {
        // SAFETY: the caller's promise.
        if unsafe { self.at_once(client, remote)? } {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.transfer_slowly(client, remote) }
    }

    /// Does an operation if it needs no waiting for a page: one within a page that hits, one of no bytes, and one between
    /// segments, which is done through a buffer. Returns whether it is done.
    ///
    /// # Errors
    /// As [`Runtime::transfer`].
    ///
    /// # Safety
    /// As [`Runtime::transfer`].
    #[inline]
    pub(crate) unsafe fn at_once(&self, client: Client, remote: Remote) -> Result<bool, UserError> {
        let mut pieces = self.space().pieces(remote.rank, remote.address, remote.len_bytes)?;
        self.check_client(client, remote.len_bytes)?;
        if self.is_own_segment(client, remote.len_bytes) {
            return self.bounce(client, remote).map(|()| true);
        }
        let Some(first) = pieces.next() else { return Ok(true) };
        // SAFETY: the caller's promise.
        Ok(first.len_bytes == remote.len_bytes && unsafe { self.hit(&first, &client.copy(&first)) })
    }

    /// An operation on several pages, or one that missed. Pages that have to be fetched are fetched side by side.
    unsafe fn transfer_slowly(&self, client: Client, remote: Remote) -> Result<(), UserError> {
        let completion = self.completions().begin();
        let client = if let Client::PutNow(from) = client { Client::Put(from) } else { client };
        // SAFETY: the caller's promise, and the completion is waited for.
        let started = unsafe { self.start(client, remote, completion) };
        self.wait(completion);
        self.completions().end(completion);
        started
    }

    /// Starts an operation that [`Runtime::at_once`] has not done. Its parts count in `completion`.
    ///
    /// # Errors
    /// As [`Runtime::transfer`]; nothing is started then.
    ///
    /// # Safety
    /// The client's memory is valid for `remote.len_bytes` bytes and stays so until the completion is done; the memory of a
    /// [`Client::PutNow`] until this returns.
    pub(crate) unsafe fn start(
        &self,
        client: Client,
        remote: Remote,
        completion: CompletionId,
    ) -> Result<(), UserError> {
        let pieces = self.space().pieces(remote.rank, remote.address, remote.len_bytes)?;
        if let Client::PutNow(from) = client {
            // SAFETY: the caller's promise.
            return unsafe { self.start_put_now(from, remote, completion) };
        }
        let missing = pieces.filter(|piece| {
            // SAFETY: the caller's promise.
            !unsafe { self.hit(piece, &client.copy(piece)) }
        });
        let mut missing = missing.map(|piece| Part { piece, copy: client.copy(&piece), completion }).peekable();
        if missing.peek().is_some() {
            let missing: Vec<Part> = missing.collect();
            self.progress().submit(missing.into_iter());
        }
        Ok(())
    }

    /// Starts a put that is through with the client's memory when this returns: what cannot be put at once is copied, as
    /// far as there is room for copies, else waited for.
    unsafe fn start_put_now(&self, from: *const u8, remote: Remote, completion: CompletionId) -> Result<(), UserError> {
        let client = Client::Put(from);
        for piece in self.space().pieces(remote.rank, remote.address, remote.len_bytes)? {
            // SAFETY: the caller's promise.
            if unsafe { self.hit(&piece, &client.copy(&piece)) } {
                continue;
            }
            if let Some(room) = self.copies().take(piece.len_bytes) {
                // SAFETY: the client's memory is valid for the whole range (the caller's promise), so for this piece.
                let bytes = unsafe { std::slice::from_raw_parts(from.add(piece.start_bytes), piece.len_bytes) };
                let copy = Copy::PutOwned(bytes.into(), room);
                self.progress().submit(std::iter::once(Part { piece, copy, completion }));
            } else {
                let now = self.completions().begin();
                let part = Part { piece, copy: client.copy(&piece), completion: now };
                self.progress().submit(std::iter::once(part));
                self.wait(now);
                self.completions().end(now);
            }
        }
        Ok(())
    }

    /// Does one piece if its page may be used here and now: in this rank's pool, or in that of a rank of this host.
    ///
    /// # Safety
    /// The client's memory in `copy` is valid for the piece's length.
    #[inline]
    unsafe fn hit(&self, piece: &Piece, copy: &Copy) -> bool {
        let own = self.space().rank.index();
        // SAFETY: the caller's promise.
        unsafe { self.use_page(own, piece, copy) || self.hit_at_neighbour(piece, copy) }
    }

    /// Uses a page where a rank of this host has it: the home, then without regard to order the others.
    ///
    /// # Safety
    /// As [`Runtime::hit`].
    unsafe fn hit_at_neighbour(&self, piece: &Piece, copy: &Copy) -> bool {
        let home = piece.page.home.index();
        // SAFETY: the caller's promise, for each rank.
        let found = |rank: usize| unsafe { self.use_page(rank, piece, copy) };
        let is_elsewhere = home != self.space().rank.index();
        is_elsewhere && found(home) || self.neighbours().iter().any(|rank| *rank != home && found(*rank))
    }

    /// Uses a page in the memory of a rank of this host, if it is open there.
    ///
    /// # Safety
    /// As [`Runtime::hit`].
    #[inline]
    unsafe fn use_page(&self, rank: usize, piece: &Piece, copy: &Copy) -> bool {
        let space = self.space();
        let Some(memory) = &space.memories[rank] else { return false };
        let slot = space.slots.of(piece.page);
        let Some(Pinned { frame, ahead }) = memory.table.pin(slot, copy.access()) else { return false };
        memory.pool.touch(frame);
        // SAFETY: the page is pinned with the access that the copy needs, and so stays in that frame; the rest is the
        // caller's promise.
        unsafe { copy.run(memory.pool.frame(frame), piece) };
        let first_use = ahead && memory.table.take_ahead(slot);
        if memory.table.unpin(slot) {
            self.kick(rank);
        }
        if first_use {
            self.progress().read_ahead(piece.page);
        }
        true
    }

    /// An operation whose client memory lies in the caller's own segment: that is pages too, and nothing is pinned while
    /// another page is waited for.
    #[cold]
    fn bounce(&self, client: Client, remote: Remote) -> Result<(), UserError> {
        let Some(local) = client.address() else { return Ok(()) };
        let own = self.space().rank.0;
        let mut buffer = vec![0u8; BOUNCE_BYTES.min(remote.len_bytes)];
        for at in (0..remote.len_bytes).step_by(BOUNCE_BYTES) {
            let len_bytes = BOUNCE_BYTES.min(remote.len_bytes - at);
            let here = Remote { rank: own, address: local.wrapping_add(at), len_bytes };
            let there = Remote { address: remote.address + at, len_bytes, ..remote };
            let (from, to) = if matches!(client, Client::Get(_)) { (there, here) } else { (here, there) };
            // SAFETY: the buffer is at least as long as the step, and not in any segment.
            unsafe {
                self.transfer(Client::Get(buffer.as_mut_ptr()), from)?;
                self.transfer(Client::Put(buffer.as_ptr()), to)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn check_client(&self, client: Client, len_bytes: usize) -> Result<(), UserError> {
        if client.address() == Some(0) && len_bytes > 0 {
            return Err(null_pointer(client, len_bytes));
        }
        Ok(())
    }

    #[inline]
    fn is_own_segment(&self, client: Client, len_bytes: usize) -> bool {
        let own = self.space().segments[self.space().rank.index()];
        client.address().is_some_and(|address| own.overlaps(address, len_bytes))
    }
}

#[cold]
fn null_pointer(client: Client, len_bytes: usize) -> UserError {
    let what = if matches!(client, Client::Get(_)) { "destination" } else { "source" };
    UserError::new(format!(
        "the {what} of {len_bytes} bytes is a null pointer; give the address of memory of that size"
    ))
}
