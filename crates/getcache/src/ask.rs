//! Requests of gets, and their outcomes.

use std::ptr::NonNull;
use vgasnet_protocol::get_cache::{EntryId, Want};

/// A get's request: a part of an object, or all of it.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Bytes between the key's address and the requested bytes.
    pub skip: u32,
    /// Requested bytes. [`u32::MAX`], the stand-in for any greater length, is never cached.
    pub len: u32,
    /// Bytes to fetch and cache on a miss, from the key's address on; at least `skip + len`.
    pub fetch: u32,
    /// Retention weight: with equal use, heavier entries stay longer; normally 1.
    pub weight: f32,
    /// The caller's handle of the get, returned if it joins another.
    pub waiter: u64,
}

impl Ask {
    /// All bytes of an object.
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

/// The outcome of a get.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All bytes are at the destination.
    Hit,
    /// The bytes arrive with another get. The thread filling that one copies them, and receives the waiter.
    Joined,
    /// The caller fetches bytes.
    Miss {
        /// Number of leading requested bytes already at the destination.
        from: usize,
        /// The place to cache the bytes. The caller must pass it to [`crate::GetCache::fill`],
        /// [`crate::GetCache::fill_in_place`] or [`crate::GetCache::abandon`]. Without it, only the requested bytes
        /// need a fetch.
        fill: Option<Fill>,
    },
}

/// A place for bytes in flight. If it is neither filled nor abandoned, joined gets wait for ever.
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
    /// Number of the cache.
    pub(crate) cache: u64,
}

// SAFETY: the holder of this value has exclusive use of the room.
unsafe impl Send for Fill {}

impl Fill {
    /// The entry's first byte, at the key's address. The bytes stay until the entry is filled or abandoned. Until then
    /// the caller may write the bytes in the room, and nobody the others.
    pub fn bytes(&self) -> NonNull<u8> {
        self.data
    }

    /// Total bytes of the entry.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Number of leading bytes already present.
    pub fn first_missing(&self) -> usize {
        self.first_missing as usize
    }

    /// Place and number of the missing bytes.
    pub fn room(&self) -> (NonNull<u8>, usize) {
        // SAFETY: the entry is longer than its present bytes.
        let start = unsafe { self.data.add(self.first_missing()) };
        (start, self.size() - self.first_missing())
    }
}
