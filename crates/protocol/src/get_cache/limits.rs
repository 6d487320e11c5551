//! The bounds of a cache.

use super::arena::UNIT_BYTES;
use super::key::SLOTS;

/// The bounds of a cache, and its initial size.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a chunk of memory.
    pub chunk_bytes: u32,
    /// Maximum number of chunks.
    pub chunks_max: u32,
    /// Chunks allowed before they have proven useful.
    pub chunks_start: u32,
    /// Maximum number of entries.
    pub entries_max: u32,
    /// Initial capacity of the index, in entries.
    pub entries_start: u32,
    /// Maximum bytes of a cached get.
    pub len_max: u32,
    /// Seed of hashes and samples.
    pub seed: u64,
}

/// Maximum bytes of memory requested at a time.
const CHUNK_BYTES_MAX: u64 = 1 << 20;

/// Minimum number of chunks, unless they would be too small. Less than one chunk of the allowed memory is lost.
const CHUNKS: u64 = 16;

/// Minimum average memory per entry, and the range of entry counts of any cache.
const ENTRY_BYTES: u64 = 64;
const ENTRIES: core::ops::RangeInclusive<u64> = 64..=1 << 24;

impl Limits {
    /// The bounds of a cache with up to `bytes` of memory, at least 64, caching gets of at most `len_max`. It starts
    /// small, and never reaches [`super::MEMORY_MAX`].
    pub fn of_memory(bytes: u64, len_max: u32, seed: u64) -> Limits {
        let bytes = (bytes / 64 * 64).max(64);
        let units_max = u64::from(u32::MAX) - 1;
        let chunk_bytes = (1 << (bytes / CHUNKS).max(1).ilog2()).clamp(u64::from(len_max), CHUNK_BYTES_MAX).min(bytes);
        let limits = Limits {
            chunk_bytes: chunk_bytes as u32,
            chunks_max: (bytes / chunk_bytes).min(units_max * u64::from(UNIT_BYTES) / chunk_bytes).min(1 << 24) as u32,
            chunks_start: 1,
            entries_max: (bytes / ENTRY_BYTES).clamp(*ENTRIES.start(), *ENTRIES.end()) as u32,
            entries_start: 1 << 10,
            len_max,
            seed,
        };
        let all_bytes = u64::from(limits.chunks_max) * u64::from(limits.chunk_bytes);
        debug_assert!(all_bytes < super::MEMORY_MAX, "units are numbered in 32 bits");
        limits
    }

    /// Maximum number of buckets of the index.
    pub fn buckets_max(&self) -> u32 {
        buckets_for(self.entries_max)
    }
}

/// Buckets for `entries` entries.
pub(super) fn buckets_for(entries: u32) -> u32 {
    let slots = u64::from(entries) * 5 / 4;
    let buckets = (slots.div_ceil(u64::from(SLOTS)) as u32).next_power_of_two().max(super::BUCKETS_MIN);
    debug_assert!(u64::from(buckets) * u64::from(SLOTS) >= slots, "{entries} entries have a slot each, and some spare");
    buckets
}
