//! Gets, puts and memsets: splits a range into pages; each is a hit, done here, or a miss, left to the engine.
//!
//! The hit path is [`Runtime::hit`]: no lock, no message, no system call.

use crate::coherence::{Access, PageId};
use crate::engine::{Copy, Part};
use crate::error::UserError;
use crate::handles::CompletionId;
use crate::page_table::{Pinned, Slot};
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
    pub(crate) fn copy(self, piece: &Piece) -> Copy {
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

/// A page in use, in the memory of some rank of this host.
struct PinnedPage {
    rank: usize,
    page: PageId,
    slot: Slot,
    /// It was fetched ahead, and this is its first use.
    first_use: bool,
    frame: *mut u8,
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
        let mut missing =
            missing.map(|piece| Part { piece, copy: client.copy(&piece), completion: Some(completion) }).peekable();
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
                self.progress().submit(std::iter::once(Part { piece, copy, completion: Some(completion) }));
            } else {
                let now = self.completions().begin();
                let part = Part { piece, copy: client.copy(&piece), completion: Some(now) };
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
    pub(crate) unsafe fn hit(&self, piece: &Piece, copy: &Copy) -> bool {
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

    /// An operation whose client memory lies in the caller's own segment: that is pages too. Where both pages are at hand
    /// the bytes go from one to the other; else through a buffer, so that nothing is pinned while a page is waited for.
    #[cold]
    fn bounce(&self, client: Client, remote: Remote) -> Result<(), UserError> {
        let Some(local) = client.address() else { return Ok(()) };
        let own = self.space().rank.0;
        self.space().pieces(own, local, remote.len_bytes)?;
        let mut buffer = Vec::new();
        let mut at = 0;
        while at < remote.len_bytes {
            let here = Remote { rank: own, address: local + at, len_bytes: remote.len_bytes - at };
            let there = Remote { address: remote.address + at, len_bytes: remote.len_bytes - at, ..remote };
            let (from, to) = if matches!(client, Client::Get(_)) { (there, here) } else { (here, there) };
            at += match self.copy_page_to_page(from, to)? {
                0 => self.copy_through(&mut buffer, from, to)?,
                len_bytes => len_bytes,
            };
        }
        Ok(())
    }

    /// Copies the bytes up to the nearer page border, if both pages may be used here and now. Returns how many it copied.
    fn copy_page_to_page(&self, from: Remote, to: Remote) -> Result<usize, UserError> {
        let first =
            |side: Remote| self.space().pieces(side.rank, side.address, side.len_bytes).map(|mut all| all.next());
        let (Some(from), Some(to)) = (first(from)?, first(to)?) else { return Ok(0) };
        let Some(source) = self.pin_anywhere(from.page, Access::Read) else { return Ok(0) };
        let mut copied = 0;
        if let Some(target) = self.pin_anywhere(to.page, Access::Write) {
            copied = from.len_bytes.min(to.len_bytes);
            // SAFETY: both pages are pinned, the target for writing, and the pieces end inside them. They may be the same.
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
        let len_bytes = BOUNCE_BYTES.min(from.len_bytes);
        buffer.resize(BOUNCE_BYTES, 0);
        // SAFETY: the buffer is at least that long, and not in any segment.
        unsafe {
            self.transfer(Client::Get(buffer.as_mut_ptr()), Remote { len_bytes, ..from })?;
            self.transfer(Client::Put(buffer.as_ptr()), Remote { len_bytes, ..to })?;
        }
        Ok(len_bytes)
    }

    /// Pins a page in the memory of this rank or of one on this host, if it is open there.
    fn pin_anywhere(&self, page: PageId, access: Access) -> Option<PinnedPage> {
        let space = self.space();
        let slot = space.slots.of(page);
        let own = space.rank.index();
        let ranks = [own, page.home.index()].into_iter().chain(self.neighbours().iter().copied());
        ranks.filter_map(|rank| Some((rank, space.memories[rank].as_ref()?))).find_map(|(rank, memory)| {
            let Pinned { frame, ahead } = memory.table.pin(slot, access)?;
            memory.pool.touch(frame);
            let first_use = ahead && memory.table.take_ahead(slot);
            Some(PinnedPage { rank, page, slot, first_use, frame: memory.pool.frame(frame) })
        })
    }

    fn unpin_page(&self, page: PinnedPage) {
        let memory = self.space().memories[page.rank].as_ref().expect("a page is pinned in memory that is mapped");
        if memory.table.unpin(page.slot) {
            self.kick(page.rank);
        }
        if page.first_use {
            self.progress().read_ahead(page.page);
        }
    }

    #[inline]
    pub(crate) fn check_client(&self, client: Client, len_bytes: usize) -> Result<(), UserError> {
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
