//! Locks of bytes of shared files, as a state machine: messages in, actions out.
//!
//! A request names ranges of bytes of a file, each shared or exclusive, and is granted as a whole. Locks belong to the
//! request, so threads of a rank exclude each other too, and an unlock names the request. A lock of bytes lives at the
//! homes of their stripes: `home` keeps the locks of one home, `client` the requests of one rank, and [`FileLocks`]
//! combines both for a rank.
//!
//! ```text
//!   nobody conflicts                   the second home refuses
//!   Na        Nb         Nc            Na        Nb         Nc
//!    │──Ask───▶│          │             │──Ask───▶│          │     both are tried
//!    │──Ask──────────────▶│             │──Ask──────────────▶│
//!    │◀─Granted│          │             │◀─Granted│          │
//!    │◀──────────Granted──│             │◀──────────Refused──│
//!    ╎ (has it) ╎          ╎             │──Ask, waits───────▶│     Nb's is kept: it is below
//!    │──Unlock▶│          │             │                    ╎
//!    │──Unlock───────────▶│             │◀──────────Granted──│
//! ```
//!
//! Without contention a lock costs one round trip: all homes are tried at once. If one refuses, the request continues in
//! ascending order of homes. It waits at the lowest home without a grant, keeps the grants below it, and returns the
//! grants above it. A home grants all ranges of a request at once, however many stripes they cover.
//!
//! # Mutual exclusion
//! Two conflicting requests have a byte in common. The home of the byte gets a range with it from both, and grants only
//! one of them.
//!
//! # No cycle of waits
//! Let a request wait at home h. It waits for earlier requests at h, granted or waiting there. A waiting one waits for
//! still earlier ones, so the chain ends at a request with a grant at h. There are three cases:
//!
//! - It is granted as a whole, and will be unlocked.
//! - It waits at a home above h: a waiting request holds grants only below the home it waits at.
//! - Its grant at h is a try, and answers to its other tries are in flight. A try never waits, so the answers arrive; the
//!   request then continues as one of the other cases, or returns its grant at h.
//!
//! The number of homes is finite, so the chain ends at a request without a wait. Deadlock by a program that holds one
//! lock while it waits for another is the program's own error, as with any lock.
//!
//! # No starvation
//! A home refuses or queues an ask in conflict with a waiting one. At each home a request therefore waits only for a
//! finite number of earlier requests, and each of them ends, as shown above. It tries once, then waits at most once at
//! each of its homes.
//!
//! # Messages may overtake each other
//! A name is never reused, and a try and a waiting ask have different names. An ask, its answer and its unlock cause each
//! other in this order, so at most one message of a name is in flight to a home, apart from the parts of an ask. The
//! parts carry their positions; the home decides when it has them all. A later ask of the same rank may overtake an
//! unlock. It then finds the ranges locked, and waits or is refused, at the cost of one more round trip. An unlock may
//! arrive after its file was closed: see [`FileLocks::forget_file`].

mod client;
mod home;
mod index;
mod message;
mod range;

pub use home::AskAtHome;
pub use message::{AskName, AskPart, LockMessage, LockPurpose, TAG_FILE_LOCKS};
pub use range::{LockMode, LockRange};

use crate::{Rank, Space, Stripes, Violation};
use alloc::vec::Vec;
use client::LockClient;
use home::LockHome;

/// Identifies a request of this rank, from [`FileLocks::lock`] on. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(u64);

/// A request for a lock.
#[derive(Clone, Copy, Debug)]
pub struct LockRequest<'a> {
    /// The file; it must be open.
    pub file: Space,
    /// The lock's purpose.
    pub purpose: LockPurpose,
    /// The homes of the file's pages, alike on all ranks.
    pub stripes: &'a Stripes,
    /// Bytes of a page, at least 1, alike on all ranks.
    pub page_bytes: u64,
    /// The bytes, in any order. Empty ranges are ignored. Overlapping ranges merge into one, exclusive if one of them
    /// is.
    pub ranges: &'a [LockRange],
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Send a message to a rank, which may be this one. Messages may overtake each other.
    Send {
        /// The rank.
        to: Rank,
        /// The message, beginning with [`TAG_FILE_LOCKS`].
        bytes: Vec<u8>,
    },
    /// All bytes of this request are locked.
    Granted(LockId),
}

impl Action {
    fn send(to: Rank, message: LockMessage) -> Action {
        debug_assert!(!matches!(message, LockMessage::Ask(_)), "an ask goes with its ranges");
        Action::Send { to, bytes: message.encode(&[]) }
    }
}

/// A rank's part in the locks of all files: as a home, and its own requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileLocks {
    ranks: u32,
    home: LockHome,
    client: LockClient,
}

impl FileLocks {
    /// A rank's part in a job of `ranks`, with messages of at most `message_bytes_max`.
    ///
    /// # Panics
    /// A message has no room for a range.
    pub fn new(ranks: u32, message_bytes_max: usize) -> FileLocks {
        let ranges_max = message::ranges_max(message_bytes_max);
        assert!(ranges_max > 0, "messages of {message_bytes_max} bytes have no room for a range");
        FileLocks { ranks, home: LockHome::default(), client: LockClient::new(ranges_max) }
    }

    /// Asks for a lock. [`Action::Granted`] follows; if there are no bytes to lock, it is among these actions.
    ///
    /// # Panics
    /// There are 2^32 ranges, or pages have no bytes.
    pub fn lock(&mut self, request: LockRequest<'_>, actions: &mut Vec<Action>) -> LockId {
        let ranges = range::by_home(&range::joined(request.ranges), request.stripes, request.page_bytes);
        self.client.lock(request.file, request.purpose, ranges, actions)
    }

    /// Unlocks a granted request. Waiting requests of others may be granted as soon as the homes know.
    ///
    /// # Panics
    /// The request is not granted, or already unlocked.
    pub fn unlock(&mut self, id: LockId, actions: &mut Vec<Action>) {
        self.client.unlock(id, actions);
    }

    /// Handles a message beginning with [`TAG_FILE_LOCKS`], and appends the resulting actions.
    ///
    /// # Errors
    /// It makes no sense. The job must end: actions and state are meaningless.
    pub fn on_message(&mut self, from: Rank, bytes: &[u8], actions: &mut Vec<Action>) -> Result<(), Violation> {
        if from.0 >= self.ranks {
            return Err(Violation::new(from, "a message, and there is no such rank"));
        }
        let Ok((message, ranges)) = LockMessage::decode(bytes) else {
            return Err(Violation::new(from, "a malformed message about locks"));
        };
        match message {
            LockMessage::Ask(part) => self.home.on_ask(from, part, ranges, actions),
            LockMessage::Unlock(name) => self.home.on_unlock(from, name, actions),
            LockMessage::Granted(name) => self.client.on_answer(from, name, true, actions),
            LockMessage::Refused(name) => self.client.on_answer(from, name, false, actions),
        }
    }

    /// A file is closed: every rank has unlocked its locks of it. Their unlocks may still be in flight. Every rank
    /// calls this before a file of the same number is opened.
    ///
    /// # Errors
    /// A rank waits for a lock of this file, although it should have closed it.
    ///
    /// # Panics
    /// A request of this rank is pending or granted.
    pub fn forget_file(&mut self, file: Space) -> Result<(), Violation> {
        assert!(self.requests_of(file).next().is_none(), "{file:?} is closed, and this rank has locks of it");
        self.home.forget_file(file)
    }

    /// Whether a request is granted and not unlocked.
    pub fn is_granted(&self, id: LockId) -> bool {
        self.client.is_granted(id)
    }

    /// This rank's requests about a file, from lock to unlock.
    pub fn requests_of(&self, file: Space) -> impl Iterator<Item = LockId> + '_ {
        self.client.requests_of(file)
    }

    /// All asks at this home, granted and waiting.
    pub fn asks_here(&self) -> impl Iterator<Item = AskAtHome<'_>> {
        self.home.asks()
    }

    /// Whether this rank has no request and its home no asks.
    pub fn is_quiet(&self) -> bool {
        self.client.is_quiet() && self.home.is_quiet()
    }
}
