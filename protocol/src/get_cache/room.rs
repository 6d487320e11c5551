//! Room for entries: what goes where there is none, and how the memory grows and shrinks.

use super::arena::{RegionId, UNIT_BYTES, units_of};
use super::entries::Entry;
use super::key::{EntryId, Key, generation_place};
use super::machine::Machine;
use super::mirror::Mirror;

/// Entries among which the victim is chosen.
const SAMPLE: usize = 16;

/// Entries that one get has go at most.
const EVICTIONS_MAX: u32 = 3;

/// How room for an entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// It was free.
    Free,
    /// Entries went for its memory.
    Made,
    /// An entry went for its place in the index.
    Displaced,
    /// It was not found.
    None,
}

impl<M: Mirror, W> Machine<M, W> {
    /// Makes a pending entry, in the place of a shorter one if there is one.
    pub(super) fn reserve(
        &mut self,
        key: &Key,
        len: u32,
        weight: f32,
        shorter: Option<EntryId>,
    ) -> (Option<EntryId>, Room) {
        let mut left = EVICTIONS_MAX;
        let is_full = self.entries.is_full();
        if len > self.limits.len_max || (is_full && self.evict_sampled(&mut left).is_none()) {
            return (None, Room::None);
        }
        let generation = self.generations[generation_place(key.space)];
        let entry = self.entries.insert(Entry::new(*key, generation, len, weight));
        let Some(is_made) = self.allocate(entry, units_of(len), &mut left) else {
            self.entries.remove(entry);
            return (None, Room::None);
        };
        // It is pinned or pending, so it was not evicted.
        if let Some(shorter) = shorter {
            self.drop(shorter);
        }
        self.warm(entry);
        match self.list(entry, &mut left) {
            Some(true) => (Some(entry), Room::Displaced),
            Some(false) if is_full => (Some(entry), Room::Displaced),
            Some(false) => (Some(entry), if is_made { Room::Made } else { Room::Free }),
            None => {
                self.release(entry);
                (None, Room::None)
            }
        }
    }

    /// Finds memory for an entry. Returns whether others had to go.
    fn allocate(&mut self, entry: EntryId, units: u32, left: &mut u32) -> Option<bool> {
        let mut is_made = false;
        let mut region = self.arena.allocate(units, entry);
        if region.is_none() && self.grow() {
            region = self.arena.allocate(units, entry);
        }
        if region.is_none() && self.make_hole(units, left) {
            region = self.arena.allocate(units, entry);
            is_made = true;
        }
        self.entries.get_mut(entry).region = region?;
        Some(is_made)
    }

    /// Adds a chunk, if that is decided and there is memory.
    fn grow(&mut self) -> bool {
        let chunks = self.arena.chunks();
        if chunks >= self.sizing.chunks() || self.sizing.is_shrinking() {
            return false;
        }
        if !self.mirror.add_chunk() {
            self.sizing.on_refused(chunks);
            return false;
        }
        self.arena.add_chunk();
        true
    }

    /// Empties the last chunk a little, or goes on using it, as is decided.
    pub(super) fn resize(&mut self) {
        if !self.sizing.is_shrinking() {
            return self.arena.unseal();
        }
        self.arena.seal();
        for entry in self.arena.entries_of_last(EVICTIONS_MAX as usize) {
            self.evict(entry);
        }
        if self.arena.remove_chunk() {
            self.mirror.remove_chunk();
            self.sizing.on_shrunk(self.arena.chunks());
        }
    }

    /// Evicts until so many units are free in one piece: an entry of a sample, then those beside the hole.
    fn make_hole(&mut self, units: u32, left: &mut u32) -> bool {
        let Some(mut hole) = self.evict_sampled(left) else { return false };
        while self.arena.units_of(hole) < units {
            let beside = self.arena.beside(hole).into_iter().flatten();
            let Some(next) = self.least(beside) else { return false };
            let Some(larger) = self.evict_for(next, left) else { return false };
            hole = larger;
        }
        true
    }

    /// Puts an entry into the index. Returns whether another one had to go.
    fn list(&mut self, entry: EntryId, left: &mut u32) -> Option<bool> {
        let mut is_displaced = false;
        while !self.index_entry(entry) {
            let hash = self.hasher.hash(&self.entries.get(entry).key);
            let around = self.index.around(&self.mirror, hash);
            let victim = self.least(around.into_iter())?;
            self.evict_for(victim, left)?;
            is_displaced = true;
        }
        let known = self.entries.get(entry);
        self.ranges.insert(known.key, entry, known.claimed);
        self.entries.list(entry);
        Some(is_displaced)
    }

    fn index_entry(&mut self, entry: EntryId) -> bool {
        let (hasher, entries) = (self.hasher, &self.entries);
        self.index.insert(&mut self.mirror, |entry| hasher.hash(&entries.get(entry).key), entry)
    }

    /// Evicts the least worth of a sample. Returns the hole.
    fn evict_sampled(&mut self, left: &mut u32) -> Option<RegionId> {
        let count = self.entries.listed().len();
        let sample: [usize; SAMPLE] = core::array::from_fn(|_| self.draw(count));
        let sample = sample.map(|at| self.entries.listed().get(at).copied());
        let victim = self.least(sample.into_iter().flatten())?;
        self.evict_for(victim, left)
    }

    /// Evicts an entry if the get may have one more go.
    fn evict_for(&mut self, entry: EntryId, left: &mut u32) -> Option<RegionId> {
        *left = left.checked_sub(1)?;
        self.evict(entry)
    }

    /// Evicts an entry unless somebody fills or copies it. Returns the hole.
    fn evict(&mut self, entry: EntryId) -> Option<RegionId> {
        if self.entries.get(entry).is_filling() || !self.mirror.try_close(entry) {
            return None;
        }
        self.stats.evicted += 1;
        self.unlist(entry);
        Some(self.release(entry))
    }

    /// The entry that is worth least, of those that can go.
    fn least(&self, among: impl Iterator<Item = EntryId>) -> Option<EntryId> {
        let can_go = |entry: &EntryId| {
            let known = self.entries.get(*entry);
            known.is_listed() && !known.is_filling() && !self.mirror.is_pinned(*entry)
        };
        let worth = |entry: EntryId| (self.worth(entry), entry);
        among.filter(can_go).map(worth).min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, entry)| entry)
    }

    /// What an entry is worth: how much it was used lately, less if it lies beside a hole of usual size, which is then used up.
    fn worth(&self, entry: EntryId) -> f32 {
        if self.is_stale(entry) {
            return -1.0;
        }
        let known = self.entries.get(entry);
        let beside = (self.arena.free_beside(known.region) * UNIT_BYTES) as f32;
        let mean = self.mean_bytes.max(1.0);
        let position = ((mean - beside).abs() / mean).min(1.0);
        self.mirror.heat(entry).at(self.clock) * position * known.weight
    }

    /// A number below `end`, or 0.
    fn draw(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (u128::from(self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)) * end as u128 >> 64) as usize
    }
}
