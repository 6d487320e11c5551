//! Statistics of a cache.

use super::mirror::Seen;

/// Counters of a cache. Each get counts in exactly one of hits, partial, joined, direct, conflicting, capacity, failing
/// and dormant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Gets so far.
    pub gets: u64,
    /// All bytes were cached.
    pub hits: u64,
    /// The leading bytes were cached; the others are fetched.
    pub partial: u64,
    /// The bytes were in flight for another get.
    pub joined: u64,
    /// Nothing was cached, and there was room.
    pub direct: u64,
    /// Another entry was evicted for room in the index.
    pub conflicting: u64,
    /// Another entry was evicted for room in memory.
    pub capacity: u64,
    /// There was no room, and it is not cached.
    pub failing: u64,
    /// It was not looked up: lookups had not paid.
    pub dormant: u64,
    /// Evicted entries.
    pub evicted: u64,
    /// Bytes found cached.
    pub bytes_hit: u64,
    /// Bytes neither cached nor in flight.
    pub bytes_fetched: u64,
    /// Current entries.
    pub entries: u64,
    /// Memory of the current entries, in bytes.
    pub bytes_used: u64,
    /// Current memory of the cache, in bytes.
    pub bytes_held: u64,
    /// Maximum memory of the cache, in bytes.
    pub bytes_max: u64,
}

impl Stats {
    /// The sums of two caches.
    pub fn plus(self, other: &Stats) -> Stats {
        Stats {
            gets: self.gets + other.gets,
            hits: self.hits + other.hits,
            partial: self.partial + other.partial,
            joined: self.joined + other.joined,
            direct: self.direct + other.direct,
            conflicting: self.conflicting + other.conflicting,
            capacity: self.capacity + other.capacity,
            failing: self.failing + other.failing,
            dormant: self.dormant + other.dormant,
            evicted: self.evicted + other.evicted,
            bytes_hit: self.bytes_hit + other.bytes_hit,
            bytes_fetched: self.bytes_fetched + other.bytes_fetched,
            entries: self.entries + other.entries,
            bytes_used: self.bytes_used + other.bytes_used,
            bytes_held: self.bytes_held + other.bytes_held,
            bytes_max: self.bytes_max + other.bytes_max,
        }
    }

    /// Adds the gets handled without the machine, and sets the total.
    pub(super) fn with(mut self, seen: Seen) -> Stats {
        self.hits += seen.hits;
        self.bytes_hit += seen.bytes_hit;
        self.dormant += seen.dormant;
        self.bytes_fetched += seen.bytes_dormant;
        let missed = self.direct + self.conflicting + self.capacity + self.failing;
        self.gets = self.hits + self.partial + self.joined + missed + self.dormant;
        self
    }
}
