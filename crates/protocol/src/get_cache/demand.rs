//! The need for room, and the choice of victims for it.

use super::key::EntryId;

/// The need for more memory.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// Gets that found no free room.
    pub(super) pressed: u64,
    /// Mean size of recent missing gets, in bytes.
    pub(super) mean_bytes: f32,
}

/// The way room for an entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// It was free.
    Free,
    /// Entries were evicted for memory.
    Made,
    /// An entry was evicted for its place in the index.
    Displaced,
    /// None was found.
    None,
}

/// Entries of a sample that the next one looks at again.
pub(super) const SAMPLE_KEPT: usize = 12;

/// The choice of victims.
#[derive(Debug)]
pub(super) struct Sampling {
    /// The least valuable entries of the sample of the last victim.
    pub(super) sample: [Option<EntryId>; SAMPLE_KEPT],
    /// State of the random numbers.
    pub(super) random: u64,
}
