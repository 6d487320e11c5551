//! Locks of bytes of shared files, as a state machine: messages in, actions out.
//!
//! A request names ranges of bytes of a file, each shared or exclusive, and is granted as a whole. Locks belong to the request,
//! so threads of a rank exclude each other too, and an unlock names the request. A lock of bytes lives at the homes of their
//! stripes: `home` keeps those of one home, `client` the requests of one rank, and [`FileLocks`] is both of a rank.
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
//! With one home, or several that nobody else uses at the moment, a lock costs one round trip. All homes are tried at once. Where
//! one refuses, the request goes on in ascending order of homes. It waits at the lowest home that lacks, and gives back what it
//! has above; what it has below it keeps. A home grants all ranges of a request at once, however many stripes they are in.
//!
//! # Why two requests that conflict exclude each other
//! They have a byte in common. Its home gets a range with that byte from both, and grants one of them only.
//!
//! # Why waits form no cycle
//! Let a request wait at home h. It waits for requests that came to h before it: those that have something there, and those
//! that wait there. Whoever waits at h came before, so going from one to the next ends at one that has something at h. That one
//! is granted as a whole, and will be unlocked; or it waits at a home above h, since all that it has while it waits lies below
//! that; or it has a try at h, and answers to tries are on their way. A try never waits, so its answers come, whoever waits, and
//! then either it goes on as one of the former or it has given h back. There are finitely many homes, so this ends at a
//! request that waits for nobody.
//!
//! That a program waits for a lock while it has another is its own affair, as with any lock.
//!
//! # Why nobody waits for ever
//! A home refuses and queues what conflicts with who waits already. So at each home a request waits for those before it only, of
//! which there are finitely many, and by the above each of them goes. It tries once and then waits at each of its homes at most
//! once.
//!
//! # Why messages may overtake each other
//! An ask has a name that is not used again, and a try and an ask that waits have different names. A name sees an ask, an answer
//! and an unlock, each of which follows from the one before, so no two messages with one name are under way to a home, besides the
//! parts of an ask. These say where they belong; the home decides when it has them all. An unlock may be overtaken by a later ask
//! of the same rank: then that finds the ranges locked, and waits for them or is refused, which costs a round trip more. An unlock
//! that comes after its file was closed is expected, as [`FileLocks::forget_file`] says.

mod client;
mod home;
mod index;
mod message;
mod range;

pub use home::AskAtHome;
pub use message::{AskName, AskPart, LockMessage, LockPurpose, TAG_FILE_LOCKS};
pub use range::{LockMode, LockRange};

use crate::{Nonsense, Rank, Space, Stripes};
use alloc::vec::Vec;
use client::LockClient;
use home::LockHome;

/// Names a request of this rank, from [`FileLocks::lock`] on. No two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(u64);

/// What is to be locked.
#[derive(Clone, Copy, Debug)]
pub struct LockRequest<'a> {
    /// The file, which is open.
    pub file: Space,
    /// What the lock is for.
    pub purpose: LockPurpose,
    /// The homes of the file's pages, the same at all ranks.
    pub stripes: &'a Stripes,
    /// Bytes of a page, at least 1, the same at all ranks.
    pub page_bytes: u64,
    /// The bytes, in any order. Empty ranges count for nothing; where ranges overlap, both together are one range, which is
    /// exclusive if one of them is.
    pub ranges: &'a [LockRange],
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Send a message to a rank, which may be this one. Messages may overtake each other.
    Send {
        /// The rank.
        to: Rank,
        /// The message, which begins with [`TAG_FILE_LOCKS`].
        bytes: Vec<u8>,
    },
    /// This request has all of its bytes locked.
    Granted(LockId),
}

impl Action {
    fn send(to: Rank, message: LockMessage) -> Action {
        Action::Send { to, bytes: message.encode(&[]) }
    }
}

/// A rank's part in the locks of all files: those of which it is a home, and its own requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileLocks {
    ranks: u32,
    home: LockHome,
    client: LockClient,
}

impl FileLocks {
    /// A part in a job of so many ranks. No message is longer than `message_bytes_max`.
    ///
    /// # Panics
    /// A message has no room for a range.
    pub fn new(ranks: u32, message_bytes_max: usize) -> FileLocks {
        let ranges_max = message::ranges_max(message_bytes_max);
        assert!(ranges_max > 0, "messages of {message_bytes_max} bytes have no room for a range");
        FileLocks { ranks, home: LockHome::default(), client: LockClient::new(ranges_max) }
    }

    /// Asks for a lock. [`Action::Granted`] follows when it is there: among these actions if there are no bytes to lock.
    ///
    /// # Panics
    /// There are 2^32 ranges, or pages have no bytes.
    pub fn lock(&mut self, request: LockRequest<'_>, actions: &mut Vec<Action>) -> LockId {
        let ranges = range::by_home(&range::joined(request.ranges), request.stripes, request.page_bytes);
        self.client.lock(request.file, request.purpose, ranges, actions)
    }

    /// Unlocks what was granted. What others have asked for may be granted as soon as the homes know.
    ///
    /// # Panics
    /// The request is not granted, or is unlocked already.
    pub fn unlock(&mut self, id: LockId, actions: &mut Vec<Action>) {
        self.client.unlock(id, actions);
    }

    /// Takes a message that begins with [`TAG_FILE_LOCKS`], and appends the actions that it calls for.
    ///
    /// # Errors
    /// It makes no sense. The job has to end: actions and state mean nothing any more.
    pub fn on_message(&mut self, from: Rank, bytes: &[u8], actions: &mut Vec<Action>) -> Result<(), Nonsense> {
        if from.0 >= self.ranks {
            return Err(Nonsense::new(from, "a message, and there is no such rank"));
        }
        let Ok((message, ranges)) = LockMessage::decode(bytes) else {
            return Err(Nonsense::new(from, "a malformed message about locks"));
        };
        match message {
            LockMessage::Ask(part) => self.home.on_ask(from, part, ranges, actions),
            LockMessage::Unlock(name) => self.home.on_unlock(from, name, actions),
            LockMessage::Granted(name) => self.client.on_answer(from, name, true, actions),
            LockMessage::Refused(name) => self.client.on_answer(from, name, false, actions),
        }
    }

    /// A file is closed: all ranks have unlocked what they had of it. Their unlocks may still be under way. Every rank does this
    /// before a file of the same number is opened.
    ///
    /// # Errors
    /// A rank waits for a lock of this file, although it should have closed it.
    ///
    /// # Panics
    /// A request of this rank is under way or granted.
    pub fn forget_file(&mut self, file: Space) -> Result<(), Nonsense> {
        assert!(self.requests_of(file).next().is_none(), "{file:?} is closed, and this rank has locks of it");
        self.home.forget_file(file)
    }

    /// Whether a request is granted, and not unlocked yet.
    pub fn is_granted(&self, id: LockId) -> bool {
        self.client.is_granted(id)
    }

    /// This rank's requests about a file, from lock to unlock.
    pub fn requests_of(&self, file: Space) -> impl Iterator<Item = LockId> + '_ {
        self.client.requests_of(file)
    }

    /// What is granted and what waits at this home.
    pub fn asks_here(&self) -> impl Iterator<Item = AskAtHome<'_>> {
        self.home.asks()
    }

    /// Whether this rank has no request, and nobody has anything here.
    pub fn is_quiet(&self) -> bool {
        self.client.is_quiet() && self.home.is_quiet()
    }
}
