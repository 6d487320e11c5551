//! The protocol that keeps the copies of a page coherent, as a state machine.
//!
//! Each rank has one [`Protocol`]: a [`Home`] with the directory of the pages in its own segment, and a [`Cache`] that
//! tracks the pages in its frames. [`Protocol::handle`] takes one [`Event`] and appends the [`Action`]s that it calls
//! for; there is no I/O, no clock, no lock and no thread in here. Whoever drives it (the engine, the simulation, the
//! exhaustive exploration) carries the actions out in any order and at any pace, and answers where an action says so.
//! Messages may overtake each other.
//!
//! Source: Matsumiya and Endo, "vGASNet" (2017). ARCHITECTURE.md has the diagrams and the invariants.

mod cache;
mod home;
mod message;

pub use cache::Cache;
pub use home::Home;
pub use message::{Body, Forward, Message, ToCache, ToHome};

use crate::{Rank, layout_as_in_memory};
use alloc::vec::Vec;
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, TryFromBytes};

/// A page: the rank that is its home, and its place in that rank's segment, counted in pages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct PageId {
    /// The rank whose backing file has the page.
    pub home: Rank,
    /// Counted from the segment's base.
    pub index: u32,
}

layout_as_in_memory!(PageId, FrameId, CopyVersion, Access);

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}.{}", self.home.0, self.index)
    }
}

/// A frame of some rank's pool, counted from the pool's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct FrameId(pub u32);

impl fmt::Debug for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}", self.0)
    }
}

/// Names an transaction about a page, and afterwards the copy that came of it. Given out by the page's home, never twice.
///
/// A message about a copy carries its version, so that one that was overtaken cannot be taken for news of a later copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct CopyVersion(pub u64);

impl fmt::Debug for CopyVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// Names an operation that waits for a page, to whoever submitted it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter(pub u32);

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

/// What an operation does to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TryFromBytes, IntoBytes, Immutable)]
#[repr(u8)]
pub enum Access {
    /// Reads it: any valid copy will do.
    Read,
    /// Writes it: the rank must own it.
    Write,
}

/// A page on its way from a holder's frame to a requester's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outgoing {
    /// The page.
    pub page: PageId,
    /// The holder's frame.
    pub from: FrameId,
    /// Whom it serves and where it goes.
    pub forward: Forward,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A message came.
    Message {
        /// Its sender.
        from: Rank,
        /// The message.
        message: Message,
    },
    /// An operation here needs the page. Answered by an [`Action::Open`] that names the waiter.
    Want {
        /// The page.
        page: PageId,
        /// What for.
        access: Access,
        /// The operation.
        waiter: Waiter,
    },
    /// An operation here may need the page soon. Never answered; done when the page is open.
    Prefetch(PageId),
    /// Give up this frame, which [`Cache::evictable`] allows.
    Evict(FrameId),
    /// Write this page back if it is dirty, keeping a clean copy. Never answered.
    WriteBack(PageId),
    /// Write every dirty page back, keeping clean copies. [`Cache::flushed`] tells when that is done.
    Flush,
    /// There is nothing else to do: send what was put off.
    Idle,
    /// [`Action::Close`] is carried out: nobody here uses the page.
    Closed(PageId),
    /// [`Action::Transfer`] is carried out.
    Transferred(Outgoing),
    /// [`Action::Clear`] is carried out.
    Cleared(PageId),
    /// [`Action::Load`] is carried out.
    Loaded(PageId),
    /// [`Action::Store`] is carried out.
    Stored(PageId),
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Send a message; `to` may be this rank.
    Send {
        /// The receiver.
        to: Rank,
        /// The message.
        message: Message,
    },
    /// From now on operations here may use the page as `access` says, and the waiters' operations are to be done now:
    /// they hold the page open until they are through. It may be open already, then for the waiters' sake.
    Open {
        /// The page.
        page: PageId,
        /// Where it is.
        frame: FrameId,
        /// `Read`, or `Write` which allows both.
        access: Access,
        /// Operations that waited for this.
        waiters: Vec<Waiter>,
    },
    /// No operation may begin to use the page. [`Event::Closed`] when those that use it are through.
    Close(PageId),
    /// Put the page into the requester's frame. [`Event::Transferred`] when it is there.
    Transfer(Outgoing),
    /// Fill the frame with zeros, then [`Event::Cleared`].
    Clear {
        /// The page the frame is for.
        page: PageId,
        /// The frame.
        frame: FrameId,
    },
    /// Read the page from the backing file into a frame of `to`, then [`Event::Loaded`].
    Load {
        /// A page of this home.
        page: PageId,
        /// The requester.
        to: Rank,
        /// Its frame.
        frame: FrameId,
    },
    /// Write the page to the backing file from a frame of `from`, then [`Event::Stored`].
    Store {
        /// A page of this home.
        page: PageId,
        /// The holder.
        from: Rank,
        /// Its frame.
        frame: FrameId,
    },
}

/// One rank's part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol {
    /// The directory of this rank's own pages.
    pub home: Home,
    /// The pages in this rank's frames.
    pub cache: Cache,
}

impl Protocol {
    /// A rank whose segment has `pages` pages and whose pool has `frames` frames (at least 1), nothing cached.
    ///
    /// Without `cooperative`, a page is fetched from its home's pool or from the file, never from another rank, and a
    /// dirty page is written back before another rank reads or writes it.
    pub fn new(rank: Rank, pages: u32, frames: u32, cooperative: bool) -> Protocol {
        Protocol { home: Home::new(rank, pages, cooperative), cache: Cache::new(frames) }
    }

    /// Takes one event and appends what it calls for to `actions`.
    pub fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Message { from, message } => match message.body {
                Body::Home(body) => self.home.on_message(from, message.page.index, body, actions),
                Body::Cache(body) => self.cache.on_message(message.page, body, actions),
            },
            Event::Want { page, access, waiter } => self.cache.on_want(page, access, waiter, actions),
            Event::Prefetch(page) => self.cache.on_prefetch(page, actions),
            Event::Evict(frame) => self.cache.on_evict(frame, actions),
            Event::WriteBack(page) => self.cache.on_write_back(page, actions),
            Event::Flush => self.cache.on_flush(actions),
            Event::Idle => self.cache.on_idle(actions),
            Event::Closed(page) => self.cache.on_closed(page, actions),
            Event::Transferred(outgoing) => self.cache.on_transferred(outgoing, actions),
            Event::Cleared(page) => self.cache.on_cleared(page, actions),
            Event::Loaded(page) => self.home.on_loaded(page.index, actions),
            Event::Stored(page) => self.home.on_stored(page.index, actions),
        }
    }
}
