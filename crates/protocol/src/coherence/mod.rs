//! The protocol that keeps the copies of a page coherent, as a state machine.
//!
//! Each rank has one [`Protocol`]: a [`Home`] with the directory of its pages (of its own segment, or of all segments in
//! turns, and of its stripes of files), and a [`Cache`] that tracks the pages in its frames. [`Protocol::handle`] takes one [`Event`] and appends the resulting [`Action`]s. The
//! driver (the engine, the simulation, the exploration) carries actions out in any order and at any pace, and answers
//! each with its event, if it has one. Messages may overtake each other.
//!
//! | word | meaning |
//! | --- | --- |
//! | holder | a rank with a valid copy |
//! | owner | the holder with the right to write; no other rank holds the page then |
//! | dirty owner | the holder accounting for bytes missing from the backing file: the owner or the last one (MOESI's O) |
//! | transaction | a request about a page, and all its consequences until it is done |
//! | copy version | identifies a transaction, and afterwards the resulting copy |
//! | nack | the answer of a rank told to serve a requester without having a copy |
//!
//! Sources: Matsumiya and Endo, "vGASNet" (2017); for the states of a copy Sweazey and Smith, "A Class of Compatible
//! Cache Consistency Protocols and Their Support by the IEEE Futurebus" (1986). docs/internals/protocol.md has the message
//! diagrams and the invariants.

mod cache;
mod checked;
mod copy_version;
mod home;
mod message;
mod relay;
mod share;

pub use cache::Cache;
pub use copy_version::CopyVersion;
pub use home::{Holder, Home};
pub use message::{CoherenceBody, CoherenceMessage, Forward, ToCache, ToHome};
pub use share::Share;

pub use crate::page_id::{FrameId, PageId};

use crate::{Hosts, Limits, Rank, Space, Spaces, Stripes, Violation, layout_as_in_memory};
use alloc::vec::Vec;
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, TryFromBytes};

layout_as_in_memory!(CopyVersion, Access, Priority, Cause);

/// The system error number of failed I/O. The protocol only passes it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Cause(pub u32);

impl Cause {
    /// The number for messages with a byte for it; 0 means no error, 255 any larger number.
    pub fn to_byte(self) -> u8 {
        u8::try_from(self.0).unwrap_or(u8::MAX)
    }

    /// The number in such a byte.
    pub fn of_byte(byte: u8) -> Option<Cause> {
        (byte != 0).then_some(Cause(u32::from(byte)))
    }
}

/// Identifies an operation waiting for a page. The driver chooses the number; the protocol only returns it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter(pub u32);

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

/// The access of an operation to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TryFromBytes, IntoBytes, Immutable)]
#[repr(u8)]
pub enum Access {
    /// Reads it; any valid copy will do.
    Read,
    /// Writes it, and may read it; the rank must own it.
    Write,
}

/// Priority of reads and writes of the backing file, most urgent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, TryFromBytes, IntoBytes, Immutable)]
#[repr(u8)]
pub enum Priority {
    /// An operation waits for it.
    #[default]
    Now,
    /// Operations may wait for it soon: read-ahead, the frame for it, or a flush.
    Soon,
    /// No operation waits for it: write-behind, or adopting a page another rank is about to give up.
    Later,
}

/// A page in flight from a holder's frame to a requester's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outgoing {
    /// The page.
    pub page: PageId,
    /// The holder's frame.
    pub from: FrameId,
    /// The home's order: the requester and its frame.
    pub forward: Forward,
}

/// An event at a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A message arrived.
    Message {
        /// Its sender.
        from: Rank,
        /// The message.
        message: CoherenceMessage,
    },
    /// An operation here needs the page. The answer is an [`Action::Open`] with the waiter.
    Want {
        /// The page.
        page: PageId,
        /// The operation's access.
        access: Access,
        /// Identifies the operation.
        waiter: Waiter,
    },
    /// An operation here overwrites the whole page and needs none of its bytes. The answer, with the waiter, is an
    /// [`Action::Fill`], or an [`Action::Open`] if the page is resident or being fetched.
    Overwrite {
        /// The page.
        page: PageId,
        /// Identifies the operation.
        waiter: Waiter,
    },
    /// Operations here may need the page soon. The only answer is the [`Action::Open`] of a page that arrives.
    Prefetch(PageId),
    /// Another rank is about to give up a page with possibly no other copy: fetches it from a holder if a frame is free
    /// and no page awaits one. The answer is an [`Action::Open`] or an [`Action::GiveUp`], or none if the page is
    /// resident or being fetched.
    Adopt(PageId),
    /// Frees this frame. [`Cache::evictable`] must allow it.
    Evict(FrameId),
    /// No frame can be freed for the awaiting pages. [`Cache::fetches_for_others`] tells when that matters: the home
    /// then serves other ranks without the cache, since frames may be awaited in a circle.
    NoVictim,
    /// Writes this page back if dirty; a clean copy stays. There is no answer.
    WriteBack(PageId),
    /// Writes every dirty page back; clean copies stay. [`Cache::flushed`] tells when that is done.
    Flush,
    /// The same for the pages of one space.
    FlushSpace(Space),
    /// If this rank has given up a clean copy of the page, notifies the home now instead of with the next message to
    /// it.
    Tell(PageId),
    /// The same for all pages.
    TellAll,
    /// A frame taken by [`Cache::take_free_frame`] is free again.
    Freed(FrameId),
    /// [`Action::Close`] is done: no operation here uses the page.
    Closed(PageId),
    /// [`Action::Transfer`] is done.
    Transferred(Outgoing),
    /// [`Action::Clear`] is done.
    Cleared(PageId),
    /// [`Action::Fill`] is done.
    Filled(PageId),
    /// [`Action::Load`] is done.
    Loaded(PageId),
    /// [`Action::Load`] has failed. The frame's bytes are unspecified.
    LoadFailed {
        /// The page.
        page: PageId,
        /// The error; `None` if no operation waited for it. Operations waiting by now try again.
        cause: Option<Cause>,
    },
    /// [`Action::Store`] is done.
    Stored(PageId),
    /// [`Action::Store`] has failed. The file's bytes of the page are unspecified.
    StoreFailed {
        /// The page.
        page: PageId,
        /// The error.
        cause: Cause,
    },
    /// Brings the file up to date with a page of this home, wherever its newest bytes are. The answer is
    /// [`Action::Recalled`].
    Recall(PageId),
    /// Ranks keeping this page of this home for others give it up, if no other rank has it. The answer is
    /// [`Action::Dismissed`], also if the condition does not hold.
    Dismiss(PageId),
    /// Bytes of a page of this home without an entry ([`Home::has_entry`]) are being written to the backing file. The
    /// driver holds back all messages about the page until the write is done.
    Written(PageId),
}

/// An action for a rank's driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Send a message; `to` may be this rank.
    Send {
        /// The receiver.
        to: Rank,
        /// The message.
        message: CoherenceMessage,
    },
    /// Let operations use the page with `access` from now on. Run the waiters' operations now; they hold the page open
    /// until they finish. An open page may be opened again for other waiters, or for more access.
    Open {
        /// The page.
        page: PageId,
        /// Its frame.
        frame: FrameId,
        /// The maximum access.
        access: Access,
        /// The operations to run.
        waiters: Vec<Waiter>,
    },
    /// Let no new operation use the page. Answer [`Event::Closed`] when the current ones have finished.
    Close(PageId),
    /// Copy the page into the requester's frame. Answer [`Event::Transferred`] when it is there.
    Transfer(Outgoing),
    /// Fill the frame with zeros, then answer [`Event::Cleared`].
    Clear {
        /// The page in the frame.
        page: PageId,
        /// The frame.
        frame: FrameId,
    },
    /// Run the waiter's operation, which overwrites the whole page, in the frame, then answer [`Event::Filled`]. No
    /// rank has the page by now, and no other operation may use it before it is opened.
    Fill {
        /// The page in the frame.
        page: PageId,
        /// The frame.
        frame: FrameId,
        /// The operation.
        waiter: Waiter,
    },
    /// The page could not be read: fail the operations of these waiters.
    Fail {
        /// The page.
        page: PageId,
        /// Its frame, which is free.
        frame: FrameId,
        /// The operations.
        waiters: Vec<Waiter>,
        /// The error.
        cause: Cause,
    },
    /// A write-back has failed, and the page stays as it is. Evicting it is pointless until something has changed.
    Unwritten {
        /// The page.
        page: PageId,
        /// The error.
        cause: Cause,
    },
    /// [`Event::Recall`] has ended, done or failed.
    Recalled {
        /// The page.
        page: PageId,
        /// The error of the write, if it failed.
        cause: Option<Cause>,
    },
    /// [`Event::Dismiss`] has ended, with or without effect.
    Dismissed(PageId),
    /// A page possibly requested by [`Event::Prefetch`] or [`Event::Adopt`] does not come: its read failed, no frame
    /// can be freed for it, or it has no holder.
    GiveUp(PageId),
    /// The [`Action::Load`] or [`Action::Store`] of this page in flight has become more urgent.
    Hurry {
        /// A page of this home.
        page: PageId,
        /// The new priority.
        priority: Priority,
    },
    /// Read the page from the backing file into a frame of `to`, then answer [`Event::Loaded`].
    Load {
        /// A page of this home.
        page: PageId,
        /// The requester.
        to: Rank,
        /// Its frame.
        frame: FrameId,
        /// Priority of the read.
        priority: Priority,
    },
    /// Write the page to the backing file from a frame of `from`, then answer [`Event::Stored`].
    Store {
        /// A page of this home.
        page: PageId,
        /// The holder.
        from: Rank,
        /// Its frame.
        frame: FrameId,
        /// Priority of the write.
        priority: Priority,
    },
}

/// Differences between the paper's protocol and this one. No job sets them; the cluster model compares with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AsInPaper {
    /// Every clean eviction is reported to its home at once.
    pub notices_at_once: bool,
    /// A writer proceeds while other ranks may still read the old bytes.
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
    /// The protocol of the rank in `limits`, with an empty cache.
    ///
    /// With `cooperative`, set alike on all ranks, any holder serves a request. Without it, a page is fetched only from
    /// the pool of its home, which reads the file into it, and a dirty page is written back before another rank reads
    /// or writes it.
    pub fn new(limits: Limits, cooperative: bool) -> Protocol {
        let own = limits.own();
        Protocol {
            home: Home::new(limits.rank(), own.pages, cooperative),
            cache: Cache::new(limits.rank(), own.frames, limits.spaces().clone()),
            limits,
        }
    }

    /// Places consecutive pages in consecutive frames, in groups of at most `pages`, a power of two. Call before the
    /// first event.
    pub fn in_groups(self, pages: u32) -> Protocol {
        Protocol { cache: self.cache.in_groups(pages), ..self }
    }

    /// Sets the maximum number of readers of a page served by a holder at a time, at least 1. Call before the first event.
    pub fn serving_at_once(self, readers: usize) -> Protocol {
        Protocol { home: self.home.serving_at_once(readers), ..self }
    }

    /// Makes the home keep a copy of the segment pages it reads from its file for others. Call before the first event.
    pub fn keeping_at_home(self) -> Protocol {
        Protocol { home: self.home.keeping(), ..self }
    }

    /// Makes the ranks of a host get a page requested by many from each other. Call before the first event.
    pub fn on_hosts(self, hosts: Hosts) -> Protocol {
        Protocol { home: self.home.on_hosts(hosts), ..self }
    }

    /// Sets the maximum number of holders of a page the home invalidates by its own messages; more relay to each other. Call
    /// before the first event.
    pub fn telling_itself(self, holders: usize) -> Protocol {
        Protocol { home: self.home.telling_itself(holders), ..self }
    }

    /// Selects the paper's behaviour, for comparison: the guarantees of this module do not hold.
    pub fn following_paper(self, what: AsInPaper) -> Protocol {
        Protocol { cache: self.cache.following_paper(what), home: self.home.following_paper(what), ..self }
    }

    /// The job's spaces.
    pub fn spaces(&self) -> &Spaces {
        self.limits.spaces()
    }

    /// A file is open. Its first `pages` pages have bytes.
    ///
    /// # Panics
    /// A file of this number is already open.
    pub fn add_file(&mut self, file: Space, stripes: Stripes, pages: u32) {
        let is_home = stripes.homes.contains(&self.limits.rank());
        self.limits.spaces_mut().add_file(file, stripes);
        self.cache.set_spaces(self.limits.spaces().clone());
        if is_home {
            self.home.add_file(file, pages);
        }
        debug_assert!(self.home.known_pages_of(file).next().is_none(), "{file:?} is new, and nobody has pages of it");
    }

    /// A file is truncated to `pages` pages with bytes, the first `kept` of them unchanged. No rank has any other page,
    /// and this home forgets them.
    pub fn cut_file(&mut self, file: Space, kept: u32, pages: u32) {
        assert!(kept <= pages, "{kept} of {pages} pages of {file:?} are unchanged");
        if !self.spaces().is_closed(file) {
            self.home.cut_file(file, kept, pages);
        }
    }

    /// A file is closed, after [`Cache::forget_page`] of every page in [`Cache::pages_of`]. No rank has an operation on
    /// it in flight. Later messages about it are ignored.
    pub fn remove_file(&mut self, file: Space) {
        assert!(self.cache.pages_of(file).next().is_none(), "{file:?} has pages in frames");
        self.home.remove_file(file);
        self.cache.forget_notices_of(file);
        self.limits.spaces_mut().remove_file(file);
        self.cache.set_spaces(self.limits.spaces().clone());
    }

    /// Handles one event and appends the resulting actions to `actions`.
    ///
    /// # Errors
    /// A message makes no sense, this one or one deferred until this event. The job must end: `actions` and the state
    /// are meaningless.
    ///
    /// # Panics
    /// The event is impossible now: no action asked for it. No message can cause this.
    pub fn handle(&mut self, event: Event, actions: &mut Vec<Action>) -> Result<(), Violation> {
        let begun = actions.len();
        let taken = self.take(event, actions);
        self.cache.tell_along(begun, actions);
        debug_assert!(actions.len() >= begun, "the actions of earlier events stay");
        if cfg!(debug_assertions) && taken.is_ok() {
            self.cache.check();
        }
        self.cache.settle();
        taken
    }

    fn take(&mut self, event: Event, actions: &mut Vec<Action>) -> Result<(), Violation> {
        match event {
            Event::Message { from, message } => {
                if self.limits.spaces().is_closed(message.page.space) {
                    // The end of its file overtook it.
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
