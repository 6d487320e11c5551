//! The protocol that keeps the copies of a page coherent, as a state machine.
//!
//! Each rank has one [`Protocol`]: a [`Home`] with the directory of the pages in its own segment, and a [`Cache`] that
//! tracks the pages in its frames. [`Protocol::handle`] takes one [`Event`] and appends the [`Action`]s that it calls
//! for. The driver (the engine, the simulation, the exploration) carries actions out in any order and at any pace, and
//! answers those that ask for an event. Messages may overtake each other.
//!
//! | word | meaning |
//! | --- | --- |
//! | holder | a rank with a valid copy |
//! | owner | the holder with the right to write; no other rank holds the page then |
//! | dirty owner | the holder that accounts for bytes which the backing file lacks: the owner or the last one (MOESI's O) |
//! | transaction | a request about a page, and all that follows from it until it is done |
//! | copy version | names a transaction, and afterwards the copy that came of it |
//! | nack | the answer of a rank that was told to serve a requester and has no copy |
//!
//! Sources: Matsumiya and Endo, "vGASNet" (2017); for the states of a copy Sweazey and Smith, "A Class of Compatible
//! Cache Consistency Protocols and Their Support by the IEEE Futurebus" (1986). docs/internals/protocol.md has the message
//! diagrams and the invariants.

mod cache;
mod copy_version;
mod home;
mod message;
mod relay;

pub use cache::Cache;
pub use copy_version::CopyVersion;
pub use home::{Holder, Home};
pub use message::{CoherenceBody, CoherenceMessage, Forward, ToCache, ToHome};
pub use relay::Share;

use crate::{Hosts, Limits, Nonsense, Rank, Space, Spaces, Stripes, layout_as_in_memory};
use alloc::vec::Vec;
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, TryFromBytes};

/// Names a page of the job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct PageId {
    /// The segment or file that it is a page of.
    pub space: Space,
    /// Its place there, in pages from the start.
    pub index: u32,
}

impl PageId {
    /// A page of a rank's segment.
    #[inline]
    pub const fn of_segment(rank: Rank, index: u32) -> PageId {
        PageId { space: Space::of_segment(rank), index }
    }
}

layout_as_in_memory!(PageId, FrameId, CopyVersion, Access, Priority, Cause);

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{:?}.{}", self.space, self.index)
    }
}

/// A frame of some rank's pool, in frames from the pool's start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct FrameId(pub u32);

impl fmt::Debug for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}", self.0)
    }
}

/// Why I/O has failed: the system's error number. The protocol only hands it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Cause(pub u32);

impl Cause {
    /// The number in messages that have a byte for it, where 0 stands for none.
    pub fn to_byte(self) -> u8 {
        u8::try_from(self.0).unwrap_or(u8::MAX)
    }

    /// The number of such a byte.
    pub fn of_byte(byte: u8) -> Option<Cause> {
        (byte != 0).then_some(Cause(u32::from(byte)))
    }
}

/// Names an operation that waits for a page. The driver chooses the number; the protocol only hands it back.
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
    /// Reads it; any valid copy will do.
    Read,
    /// Writes it, and may read it; the rank must own it.
    Write,
}

/// How soon somebody needs what the backing file has, or is to have. The most urgent comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, TryFromBytes, IntoBytes, Immutable)]
#[repr(u8)]
pub enum Priority {
    /// An operation waits for it.
    #[default]
    Now,
    /// Operations may wait for it soon: a page that is read ahead, or its frame; a flush.
    Soon,
    /// Nobody waits for it: a write-back ahead of need, or a copy of a page that another rank is about to give up.
    Later,
}

/// A page on its way from a holder's frame to a requester's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outgoing {
    /// The page.
    pub page: PageId,
    /// The holder's frame.
    pub from: FrameId,
    /// The home's order: the requester and its frame.
    pub forward: Forward,
}

/// What happened at a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A message came.
    Message {
        /// Its sender.
        from: Rank,
        /// The message.
        message: CoherenceMessage,
    },
    /// An operation here needs the page. The answer is an [`Action::Open`] that names the waiter.
    Want {
        /// The page.
        page: PageId,
        /// What the operation does to it.
        access: Access,
        /// Names the operation.
        waiter: Waiter,
    },
    /// An operation here overwrites the whole page, and needs none of its bytes. The answer names the waiter: an
    /// [`Action::Fill`], or an [`Action::Open`] where the page is here or coming already.
    Overwrite {
        /// The page.
        page: PageId,
        /// Names the operation.
        waiter: Waiter,
    },
    /// Operations here may need the page soon. There is no answer but the [`Action::Open`] of a page that comes.
    Prefetch(PageId),
    /// Another rank is about to give up a page that may be in no other pool: it is to come here, from a rank that has it, if a frame
    /// is free for which no page waits. The answer is an [`Action::Open`] or an [`Action::GiveUp`], but for a page that is here or
    /// coming already.
    Adopt(PageId),
    /// This frame is to be freed. [`Cache::evictable`] must allow it.
    Evict(FrameId),
    /// No frame can be freed now that a page waits for. [`Cache::fetches_for_others`] tells when that matters: other ranks
    /// are served without such a page, whose frames may be wanted in a circle.
    NoVictim,
    /// This page is to be written back if it is dirty; a clean copy stays. There is no answer.
    WriteBack(PageId),
    /// Every dirty page is to be written back; clean copies stay. [`Cache::flushed`] tells when that is done.
    Flush,
    /// The same for the pages of one space.
    FlushSpace(Space),
    /// If this rank has given up a clean copy of the page, the home is to hear of that now, and not with the next message to it.
    Tell(PageId),
    /// The same for all pages.
    TellAll,
    /// A frame is free again that was taken by [`Cache::take_free_frame`].
    Freed(FrameId),
    /// [`Action::Close`] is carried out: no operation here uses the page.
    Closed(PageId),
    /// [`Action::Transfer`] is carried out.
    Transferred(Outgoing),
    /// [`Action::Clear`] is carried out.
    Cleared(PageId),
    /// [`Action::Fill`] is carried out.
    Filled(PageId),
    /// [`Action::Load`] is carried out.
    Loaded(PageId),
    /// [`Action::Load`] has failed. The frame's bytes are unspecified.
    LoadFailed {
        /// The page.
        page: PageId,
        /// Why; `None` if nobody waited for it. Who waits by now tries again.
        cause: Option<Cause>,
    },
    /// [`Action::Store`] is carried out.
    Stored(PageId),
    /// [`Action::Store`] has failed. What the file has of the page is unspecified.
    StoreFailed {
        /// The page.
        page: PageId,
        /// Why.
        cause: Cause,
    },
    /// The file is to have what a page of this home is by now, whoever has that: [`Action::Recalled`] when it has.
    Recall(PageId),
    /// Ranks that keep this page of this home for others are to give it up, if nobody else has it: [`Action::Dismissed`] when they have,
    /// or where that is not so.
    Dismiss(PageId),
    /// Bytes of a page of this home, which [`Home::has_entry`] does not have, are being written to the backing file. The driver
    /// keeps back all messages about the page until that is done.
    Written(PageId),
}

/// What a rank is to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Send a message; `to` may be this rank.
    Send {
        /// The receiver.
        to: Rank,
        /// The message.
        message: CoherenceMessage,
    },
    /// Let operations use the page as `access` says, from now on. Do the waiters' operations now; they hold the page
    /// open until they are through. A page that is open already may be opened again for other waiters, or for more
    /// access.
    Open {
        /// The page.
        page: PageId,
        /// Its frame.
        frame: FrameId,
        /// The most that operations may do.
        access: Access,
        /// The operations that waited for this.
        waiters: Vec<Waiter>,
    },
    /// Let no operation begin to use the page. [`Event::Closed`] when the operations that use it are through.
    Close(PageId),
    /// Put the page into the requester's frame. [`Event::Transferred`] when it is there.
    Transfer(Outgoing),
    /// Fill the frame with zeros, then [`Event::Cleared`].
    Clear {
        /// The page in the frame.
        page: PageId,
        /// The frame.
        frame: FrameId,
    },
    /// Do the waiter's operation, which overwrites the whole page, in the frame, then [`Event::Filled`]. No rank has the page
    /// by now, and nobody else may use it before it is opened.
    Fill {
        /// The page in the frame.
        page: PageId,
        /// The frame.
        frame: FrameId,
        /// The operation.
        waiter: Waiter,
    },
    /// The page could not be read: the operations of these waiters fail.
    Fail {
        /// The page.
        page: PageId,
        /// Its frame, which is free.
        frame: FrameId,
        /// The operations.
        waiters: Vec<Waiter>,
        /// Why.
        cause: Cause,
    },
    /// A page that was to be written back could not be, and stays as it is. It is not worth while to evict it before something has
    /// changed.
    Unwritten {
        /// The page.
        page: PageId,
        /// Why.
        cause: Cause,
    },
    /// [`Event::Recall`] is carried out, or was in vain.
    Recalled {
        /// The page.
        page: PageId,
        /// Why it could not be written, if it could not.
        cause: Option<Cause>,
    },
    /// [`Event::Dismiss`] is carried out, or was in vain.
    Dismissed(PageId),
    /// A page that [`Event::Prefetch`] or [`Event::Adopt`] may have asked for does not come: it could not be read, or no frame can be
    /// freed for it, or nobody has it.
    GiveUp(PageId),
    /// The [`Action::Load`] or [`Action::Store`] of this page that is under way has become more urgent.
    Hurry {
        /// A page of this home.
        page: PageId,
        /// How urgent it is now.
        priority: Priority,
    },
    /// Read the page from the backing file into a frame of `to`, then [`Event::Loaded`].
    Load {
        /// A page of this home.
        page: PageId,
        /// The requester.
        to: Rank,
        /// Its frame.
        frame: FrameId,
        /// How urgent it is.
        priority: Priority,
    },
    /// Write the page to the backing file from a frame of `from`, then [`Event::Stored`].
    Store {
        /// A page of this home.
        page: PageId,
        /// The holder.
        from: Rank,
        /// Its frame.
        frame: FrameId,
        /// How urgent it is.
        priority: Priority,
    },
}

/// What the protocol of the paper does otherwise than this one. No job runs so: the model of a cluster compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AsInPaper {
    /// A home is told of each clean eviction at once.
    pub notices_at_once: bool,
    /// A writer is told to go on while other ranks may still read the old bytes.
    pub invalidations_unawaited: bool,
    /// A holder serves all readers at once.
    pub readers_at_once: bool,
}

/// One rank's part of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol {
    /// The directory of this rank's own pages.
    pub home: Home,
    /// The pages in this rank's frames.
    pub cache: Cache,
    limits: Limits,
}

impl Protocol {
    /// The rank of `limits`. Nothing is cached.
    ///
    /// With `cooperative`, which all ranks agree on, any holder serves a request. Without it, a page is fetched from
    /// its home's pool only, to which the file is read, and a dirty page is written back before another rank reads or writes it.
    pub fn new(limits: Limits, cooperative: bool) -> Protocol {
        let own = limits.own();
        Protocol {
            home: Home::new(limits.rank(), own.pages, cooperative),
            cache: Cache::new(limits.rank(), own.frames, limits.spaces().clone()),
            limits,
        }
    }

    /// The same protocol, whose cache gives pages that follow each other frames that do so: of groups of so many pages, a power of
    /// two, where there is room. Nothing has happened yet.
    pub fn in_groups(self, pages: u32) -> Protocol {
        Protocol { cache: self.cache.in_groups(pages), ..self }
    }

    /// The same protocol, whose holders serve so many readers of a page at a time, at least 1. Nothing has happened yet.
    pub fn serving_at_once(self, readers: usize) -> Protocol {
        Protocol { home: self.home.serving_at_once(readers), ..self }
    }

    /// The same protocol, whose home keeps a copy of what it reads from its segment's file for others. Nothing has happened yet.
    pub fn keeping_at_home(self) -> Protocol {
        Protocol { home: self.home.keeping(), ..self }
    }

    /// The same protocol, where ranks of a host get a page that many ask for from each other. Nothing has happened yet.
    pub fn on_hosts(self, hosts: Hosts) -> Protocol {
        Protocol { home: self.home.on_hosts(hosts), ..self }
    }

    /// The same protocol, whose home tells up to so many holders itself that they lose their copies of a page; more are told by each
    /// other. Nothing has happened yet.
    pub fn telling_itself(self, holders: usize) -> Protocol {
        Protocol { home: self.home.telling_itself(holders), ..self }
    }

    /// The same protocol, which does this as in the paper. For comparison: the guarantees of this module do not hold then.
    pub fn following_paper(self, what: AsInPaper) -> Protocol {
        Protocol { cache: self.cache.following_paper(what), home: self.home.following_paper(what), ..self }
    }

    /// The job's spaces.
    pub fn spaces(&self) -> &Spaces {
        self.limits.spaces()
    }

    /// A file is open now. It has bytes of the first `pages` pages.
    ///
    /// # Panics
    /// There is an open file of this number.
    pub fn add_file(&mut self, file: Space, stripes: Stripes, pages: u32) {
        let is_home = stripes.homes.contains(&self.limits.rank());
        self.limits.spaces_mut().add_file(file, stripes);
        self.cache.set_spaces(self.limits.spaces().clone());
        if is_home {
            self.home.add_file(file, pages);
        }
    }

    /// A file has bytes of its first `pages` pages now, of which the first `kept` are what they were. Nobody has any of the others, and
    /// what this home knows of them is forgotten.
    pub fn cut_file(&mut self, file: Space, kept: u32, pages: u32) {
        if !self.spaces().is_closed(file) {
            self.home.cut_file(file, kept, pages);
        }
    }

    /// A file is closed, after [`Cache::forget_page`] of all that [`Cache::pages_of`] has. No rank has an operation on it under way.
    /// Messages about it that still come mean nothing.
    pub fn remove_file(&mut self, file: Space) {
        assert!(self.cache.pages_of(file).next().is_none(), "{file:?} has pages in frames");
        self.home.remove_file(file);
        self.cache.forget_notices_of(file);
        self.limits.spaces_mut().remove_file(file);
        self.cache.set_spaces(self.limits.spaces().clone());
    }

    /// Takes one event and appends the actions that it calls for to `actions`.
    ///
    /// # Errors
    /// A message makes no sense, this one or one that waited for this event. The job has to end: actions and state mean
    /// nothing any more.
    ///
    /// # Panics
    /// The event cannot happen now: no action asked for it. No message can make it happen.
    pub fn handle(&mut self, event: Event, actions: &mut Vec<Action>) -> Result<(), Nonsense> {
        let begun = actions.len();
        let taken = self.take(event, actions);
        self.cache.tell_along(begun, actions);
        self.cache.settle();
        taken
    }

    fn take(&mut self, event: Event, actions: &mut Vec<Action>) -> Result<(), Nonsense> {
        match event {
            Event::Message { from, message } => {
                if self.limits.spaces().is_closed(message.page.space) {
                    // It was overtaken by the end of its file.
                    return Ok(());
                }
                self.limits.check(from, &message)?;
                match message.body {
                    CoherenceBody::Home(body) => return self.home.on_message(from, message.page, body, actions),
                    CoherenceBody::Cache(body) => return self.cache.on_message(from, message.page, body, actions),
                }
            }
            Event::Loaded(page) => self.home.on_loaded(page, actions),
            Event::LoadFailed { page, cause } => return self.home.on_load_failed(page, cause, actions),
            Event::Stored(page) => return self.home.on_stored(page, actions),
            Event::StoreFailed { page, cause } => return self.home.on_store_failed(page, cause, actions),
            Event::Written(page) => self.home.on_written(page),
            Event::Recall(page) => return self.home.on_recall(page, actions),
            Event::Dismiss(page) => return self.home.on_dismiss(page, actions),
            Event::Want { page, access, waiter } => self.cache.on_want(page, access, waiter, actions),
            Event::Overwrite { page, waiter } => self.cache.on_overwrite(page, waiter, actions),
            Event::Prefetch(page) => self.cache.on_prefetch(page, actions),
            Event::Adopt(page) => self.cache.on_adopt(page, actions),
            Event::Evict(frame) => self.cache.on_evict(frame, actions),
            Event::NoVictim => self.cache.on_no_victim(actions),
            Event::WriteBack(page) => self.cache.on_write_back(page, Priority::Later, actions),
            Event::Flush => self.cache.on_flush(actions),
            Event::FlushSpace(space) => self.cache.on_flush_space(space, actions),
            Event::Tell(page) => self.cache.on_tell(page, actions),
            Event::TellAll => self.cache.on_tell_all(actions),
            Event::Freed(frame) => self.cache.on_freed(frame, actions),
            Event::Closed(page) => self.cache.on_closed(page, actions),
            Event::Transferred(outgoing) => self.cache.on_transferred(outgoing, actions),
            Event::Cleared(page) | Event::Filled(page) => self.cache.on_filled(page, actions),
        }
        Ok(())
    }
}

fn send_home(home: Rank, page: PageId, body: ToHome) -> Action {
    Action::Send { to: home, message: CoherenceMessage { body: CoherenceBody::Home(body), page } }
}

fn send_cache(to: Rank, page: PageId, body: ToCache) -> Action {
    Action::Send { to, message: CoherenceMessage { body: CoherenceBody::Cache(body), page } }
}
