//! What a get asks for, and what becomes of it.

use std::ptr::NonNull;
use vgasnet_protocol::get_cache::{EntryId, Want};

/// What a get asks for: a part of an object, or all of it.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Bytes between the key's address and those that are asked for.
    pub skip: u32,
    /// Bytes that are asked for. A get of [`u32::MAX`] bytes, as which those of more count, is never kept.
    pub len: u32,
    /// On a miss all bytes from the key's address on, up to so many, are to be fetched and kept: `skip + len` at least.
    pub fetch: u32,
    /// Of equal use, what has more weight stays longer; 1 is usual.
    pub weight: f32,
    /// What the caller knows the get by, should it join another.
    pub waiter: u64,
}

impl Ask {
    /// All of an object.
    #[inline]
    pub fn all(len: usize, weight: f32, waiter: u64) -> Ask {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        Ask { skip: 0, len, fetch: len, weight, waiter }
    }

    #[inline]
    pub(crate) fn want(&self) -> Want {
        Want { skip: self.skip, len: self.len, fetch: self.fetch, weight: self.weight }
    }
}

/// What has become of a get.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All bytes are at the destination.
    Hit,
    /// They come with those of another get. Who fills that one copies them, and is handed the waiter.
    Joined,
    /// The caller fetches bytes.
    Miss {
        /// So many of the first bytes that were asked for are at the destination already.
        from: usize,
        /// The bytes are to be kept. The caller must pass this to [`crate::GetCache::fill`], [`crate::GetCache::fill_in_place`] or
        /// [`crate::GetCache::abandon`]. Without it, only those that were asked for are of use.
        fill: Option<Fill>,
    },
}

/// A place for bytes that are on their way. Where it is neither filled nor abandoned, gets that join wait for ever.
///
/// ```text
///  bytes()          room()
///  ┌────────────────┬─────────────────────────────┐
///  │ here already   │ to be fetched               │
///  └────────────────┴─────────────────────────────┘
///   first_missing()                          size()
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "gets that join wait for these bytes"]
pub struct Fill {
    pub(crate) entry: EntryId,
    pub(crate) data: NonNull<u8>,
    pub(crate) first_missing: u32,
    pub(crate) size: u32,
    /// Of which cache.
    pub(crate) cache: u64,
}

// SAFETY: the place is for whoever has this.
unsafe impl Send for Fill {}

impl Fill {
    /// The entry's first byte, which is the one at the key's address. Until the entry is filled or abandoned, its bytes stay; those in the
    /// room are the caller's to write meanwhile, and the others nobody's.
    pub fn bytes(&self) -> NonNull<u8> {
        self.data
    }

    /// How many bytes the entry will have.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// How many of its first bytes are there already.
    pub fn first_missing(&self) -> usize {
        self.first_missing as usize
    }

    /// Where the others are to go, and how many there are.
    pub fn room(&self) -> (NonNull<u8>, usize) {
        // SAFETY: the entry has more bytes than are there already.
        let start = unsafe { self.data.add(self.first_missing()) };
        (start, self.size() - self.first_missing())
    }
}
