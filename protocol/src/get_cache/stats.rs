//! What a cache has done.

use super::mirror::Seen;

/// Numbers of a cache. Each get counts in exactly one of hits, partial, joined, direct, conflicting, capacity, failing and dormant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Gets so far.
    pub gets: u64,
    /// All bytes were here.
    pub hits: u64,
    /// The first bytes were here, and the others are fetched.
    pub partial: u64,
    /// The bytes were on their way for another get.
    pub joined: u64,
    /// Nothing was here, and there was room.
    pub direct: u64,
    /// Another entry had to go for room in the index.
    pub conflicting: u64,
    /// Another entry had to go for room in memory.
    pub capacity: u64,
    /// There was no room, and it is not cached.
    pub failing: u64,
    /// It was not looked for, since looking had not paid.
    pub dormant: u64,
    /// Entries that had to go.
    pub evicted: u64,
    /// Bytes that were here.
    pub bytes_hit: u64,
    /// Bytes that were not, nor on their way.
    pub bytes_fetched: u64,
    /// Entries now.
    pub entries: u64,
    /// Bytes of memory that those take.
    pub bytes_used: u64,
    /// Bytes of memory that the cache has now.
    pub bytes_held: u64,
    /// Bytes of memory that it may have.
    pub bytes_max: u64,
}

impl Stats {
    /// The numbers of two caches together.
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

    /// With the gets that the machine was not asked about, and all gets counted.
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
