//! Requests of gets, and their outcomes.

use super::key::EntryId;
use alloc::vec::Vec;

/// A get's request. Its bytes begin `skip` bytes after its key's address; on a miss, all bytes from the key on are
/// cached.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// Bytes between the key's address and the requested bytes.
    pub skip: u32,
    /// Requested bytes. If `skip + len` reaches [`u32::MAX`], the get is too large to cache.
    pub len: u32,
    /// Bytes to cache on a miss, from the key's address on; at least up to the end of the requested bytes.
    pub fetch: u32,
    /// Relative value of the entry; normally 1.
    pub weight: f32,
}

impl Want {
    /// All bytes of an object.
    pub fn all(len: u32, weight: f32) -> Want {
        Want { skip: 0, len, fetch: len, weight }
    }

    /// The end of the requested bytes, from the key's address on.
    #[inline]
    pub fn end(&self) -> u32 {
        self.skip.saturating_add(self.len)
    }

    /// Number of requested bytes among the first `len` of the entry.
    #[inline]
    pub fn within(&self, len: u32) -> u32 {
        len.saturating_sub(self.skip).min(self.len)
    }
}

/// Bytes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The entry.
    pub entry: EntryId,
    /// Its start in the arena, in units.
    pub place: u32,
    /// Number of its leading bytes.
    pub len: u32,
}

/// The outcome of a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The bytes are cached. The entry is pinned for the caller, which copies and unpins.
    Hit(Part),
    /// A fetch of the bytes is in flight; the waiter will be notified.
    Joined,
    /// The caller fetches the bytes.
    Miss {
        /// The leading bytes from the key on are cached, pinned as for a hit, and need no fetch. They may end before
        /// the requested bytes.
        head: Option<Part>,
        /// The place for all bytes up to [`Want::fetch`], to be cached: the caller fetches them there and reports
        /// success or failure. From the head's end on, no one else uses the place meanwhile. If the head is another
        /// entry, its bytes must be copied there.
        fill: Option<Part>,
    },
}

/// The outcome for an entry whose fetch has completed.
#[derive(Debug, PartialEq, Eq)]
pub struct Filled<W> {
    /// Whether it is cached.
    pub is_kept: bool,
    /// Whether it is pinned for the caller, which copies the waiters' bytes and unpins.
    pub is_pinned: bool,
    /// The joined gets; their bytes have arrived whether or not the entry is cached.
    pub waiters: Vec<W>,
}
