//! What gets want, and what becomes of them.

use super::key::EntryId;
use alloc::vec::Vec;

/// What a get wants. Its bytes begin so many after its key's address; on a miss all bytes from the key on are to be kept.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// Bytes between the key's address and those that are wanted.
    pub skip: u32,
    /// Bytes that are wanted. With those before them they are a get's that is too large to be kept, if they are [`u32::MAX`] or more.
    pub len: u32,
    /// Bytes that a miss is to keep, from the key's address on: those that are wanted, at least.
    pub fetch: u32,
    /// How much the entry is worth beside others; 1 is usual.
    pub weight: f32,
}

impl Want {
    /// All bytes of an object.
    pub fn all(len: u32, weight: f32) -> Want {
        Want { skip: 0, len, fetch: len, weight }
    }

    /// Where the wanted bytes end, from the key's address on.
    #[inline]
    pub fn end(&self) -> u32 {
        self.skip.saturating_add(self.len)
    }

    /// How many of the wanted bytes are among so many first ones.
    #[inline]
    pub fn within(&self, len: u32) -> u32 {
        len.saturating_sub(self.skip).min(self.len)
    }
}

/// Bytes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub entry: EntryId,
    /// Where it begins in the arena, in units.
    pub place: u32,
    /// How many of its bytes, from the first one on.
    pub len: u32,
}

/// What becomes of a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The bytes are here. The entry is pinned for the caller, who copies and unpins.
    Hit(Part),
    /// They are on their way, and the waiter is told.
    Joined,
    /// The caller fetches them.
    Miss {
        /// The first bytes from the key on are here, pinned as those of a hit, and need not be fetched. They may end before those that
        /// are wanted.
        head: Option<Part>,
        /// All bytes up to [`Want::fetch`] are to be kept: the caller has them there and says so, or says that they do not come. Nobody
        /// else uses that place meanwhile, from the head's end on. If the head is another entry, its bytes are to be copied there.
        fill: Option<Part>,
    },
}

/// What has become of an entry whose bytes came.
#[derive(Debug, PartialEq, Eq)]
pub struct Filled<W> {
    /// It is kept.
    pub is_kept: bool,
    /// It is pinned for the caller, who copies what the waiters want, and unpins.
    pub is_pinned: bool,
    /// Gets that joined, whose bytes have come whether it is kept or not.
    pub waiters: Vec<W>,
}
