//! Room for entries: eviction, growth and shrinkage.

use super::arena::{RegionId, units_of};
use super::demand::{Room, SAMPLE_KEPT};
use super::entries::Entry;
use super::key::{EntryId, Key};
use super::machine::Machine;
use super::mirror::Mirror;
use super::window::PROBES_PART;

/// Entries a victim is chosen from: newly drawn ones, and the least valuable ones of the last sample. Examining an
/// entry is a cache miss, and the kept ones are already in the processor's cache.
const SAMPLE: usize = SAMPLE_NEW + SAMPLE_KEPT;
const SAMPLE_NEW: usize = 4;

/// Maximum number of evictions for one get.
const EVICTIONS_MAX: u32 = 3;

/// Fixed cost of a get, as bytes a network moves in that time.
const REQUEST_BYTES: f32 = 8192.0;

/// Adjacent entries.
struct Group {
    members: [Option<EntryId>; EVICTIONS_MAX as usize],
    /// Their total value.
    worth: f32,
    /// Units free after their eviction.
    units: u32,
}

impl<M: Mirror, W> Machine<M, W> {
    /// Creates a pending entry, replacing a shorter one if there is one.
    pub(super) fn reserve(
        &mut self,
        key: &Key,
        len: u32,
        weight: f32,
        shorter: Option<EntryId>,
    ) -> (Option<EntryId>, Room) {
        let mut left = EVICTIONS_MAX;
        let is_full = self.entries.is_full();
        if len == 0 || len > self.limits.len_max || (is_full && self.evict_sampled(&mut left).is_none()) {
            return (None, Room::None);
        }
        let generation = self.generation(key);
        let entry = self.entries.insert(Entry::new(*key, generation, len, weight));
        debug_assert!(self.entries.get(entry).is_filling(), "{entry:?} awaits its bytes");
        let hash = self.hasher.hash(key);
        let heat = self.ghosts.heat(hash, self.ghost_places()).used(self.clock);
        self.mirror.set_heat(entry, heat);
        let Some(is_made) = self.allocate(entry, units_of(len), &mut left) else {
            self.window.remove(&mut self.entries, entry, units_of(len));
            self.entries.remove(entry);
            self.ghosts.note(hash, heat, self.ghost_places());
            return (None, Room::None);
        };
        // The shorter entry is pinned or pending, so it was not evicted.
        if let Some(shorter) = shorter {
            self.drop(shorter);
        }
        match self.list(entry, &mut left) {
            Some(true) => (Some(entry), Room::Displaced),
            Some(false) if is_full => (Some(entry), Room::Displaced),
            Some(false) => (Some(entry), if is_made { Room::Made } else { Room::Free }),
            None => {
                self.leave_window(entry);
                self.release(entry);
                (None, Room::None)
            }
        }
    }

    /// Allocates memory for an entry. Returns whether others were evicted.
    fn allocate(&mut self, entry: EntryId, units: u32, left: &mut u32) -> Option<bool> {
        let mut is_made = false;
        let mut region = self.arena.allocate(units, entry);
        if region.is_none() && self.grow() {
            region = self.arena.allocate(units, entry);
        }
        if region.is_none() && self.make_hole(entry, units, left) {
            region = self.arena.allocate(units, entry);
            is_made = true;
        }
        let region = region?;
        debug_assert_eq!(self.arena.units_of(region), units, "a region has the units that were asked for");
        self.entries.get_mut(entry).region = region;
        Some(is_made)
    }

    /// Adds a chunk, if planned and if there is memory.
    fn grow(&mut self) -> bool {
        debug_assert!(self.sizing.chunks() <= self.sizing.chunks_max(), "memory is limited");
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

    /// Drains the last chunk a little, or resumes using it, as planned.
    pub(super) fn resize(&mut self) {
        debug_assert!(self.arena.chunks() <= self.sizing.chunks_max(), "memory is limited");
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

    /// Evicts adjacent entries for another entry, if it is worth more or belongs to the window.
    fn make_hole(&mut self, entry: EntryId, units: u32, left: &mut u32) -> bool {
        debug_assert!(*left <= EVICTIONS_MAX, "a get evicts few entries");
        let (density, group) = self.least_group(units, *left);
        let own = self.worth_of(self.asked_before(entry), entry) / units as f32;
        if group.is_some() && density <= own {
            return self.evict_group(group, left);
        }
        let is_drawn = self.draw(PROBES_PART) == 0;
        if !self.window.admits(is_drawn) {
            return false;
        }
        let is_made = if self.window.has_room(units, self.arena.units()) {
            self.evict_group(group, left)
        } else {
            self.turn_window(density, group, units, left)
        };
        if is_made {
            self.window.push(&mut self.entries, entry, self.mirror.heat(entry), units);
            if let Some((recent, came_with)) = self.window.recent(&self.entries) {
                self.window.on_recent(self.mirror.heat(recent) != came_with);
            }
        }
        is_made
    }

    /// Makes room in the window. If its oldest entry is worth more than other entries, these are evicted instead.
    fn turn_window(&mut self, density: f32, group: Option<Group>, units: u32, left: &mut u32) -> bool {
        let Some((oldest, came_with)) = self.window.pop(&self.entries) else { return false };
        debug_assert_ne!(self.entries.get(oldest).region, RegionId::NONE, "{oldest:?} has memory");
        if !self.can_go(oldest) {
            self.window.put_back(oldest, came_with);
            return false;
        }
        let heat = self.mirror.heat(oldest);
        let was_hit = heat != came_with;
        let heat = heat.without_one().at(self.clock);
        let own_units = self.arena.units_of(self.entries.get(oldest).region);
        if group.is_some() && was_hit && self.worth_of(heat, oldest) / own_units as f32 > density {
            self.leave_window(oldest);
            return self.window.has_room(units, self.arena.units()) && self.evict_group(group, left);
        }
        // Its neighbours are evicted only if they are worth no more than the alternative.
        let adjacent = self.group(oldest, units, *left);
        let adjacent =
            adjacent.filter(|group| group.members[1].is_none() || group.worth <= density * group.units as f32);
        let is_made = if adjacent.is_none() {
            self.evict_for(oldest, left);
            false
        } else {
            self.evict_group(adjacent, left)
        };
        if self.entries.is_new(oldest) {
            // It is pinned.
            self.window.put_back(oldest, came_with);
        }
        is_made
    }

    /// Removes an entry from the window.
    pub(super) fn leave_window(&mut self, entry: EntryId) {
        let known = self.entries.get(entry);
        if known.is_new {
            debug_assert_ne!(known.region, RegionId::NONE, "{entry:?} is in the window, so it has memory");
            let units = self.arena.units_of(known.region);
            self.window.remove(&mut self.entries, entry, units);
        }
    }

    /// The group of least value per unit in a sample, and that value.
    fn least_group(&mut self, units: u32, left: u32) -> (f32, Option<Group>) {
        let least = self.least_of_sample(|machine, entry| {
            let group = machine.group(entry, units, left)?;
            Some((group.worth / group.units as f32, group))
        });
        least.map_or((f32::INFINITY, None), |(density, group)| (density, Some(group)))
    }

    /// The result of `look` for the least valuable entry of a sample, with its value.
    fn least_of_sample<T>(&mut self, look: impl Fn(&Self, EntryId) -> Option<(f32, T)>) -> Option<(f32, T)> {
        let (known, count) = (self.sampling.sample, self.entries.listed().len());
        let drawn: [usize; SAMPLE_NEW] = core::array::from_fn(|_| self.draw(count));
        let drawn = drawn.into_iter().filter_map(|at| self.entries.listed().get(at).copied());
        let is_new = |entry: &EntryId| !known.contains(&Some(*entry));
        let mut looked = [(f32::INFINITY, None); SAMPLE];
        let (mut len, mut least) = (0, None);
        for entry in known.into_iter().flatten().chain(drawn.filter(is_new)) {
            let Some((worth, what)) = look(self, entry) else { continue };
            looked[len] = (worth, Some(entry));
            len += 1;
            if least.as_ref().is_none_or(|(lowest, _)| worth < *lowest) {
                least = Some((worth, what));
            }
        }
        looked.select_nth_unstable_by(SAMPLE_KEPT, |one, other| one.0.total_cmp(&other.0));
        self.sampling.sample.copy_from_slice(&looked.map(|(_, entry)| entry)[..SAMPLE_KEPT]);
        least
    }

    fn evict_group(&mut self, group: Option<Group>, left: &mut u32) -> bool {
        let Some(group) = group else { return false };
        group.members.into_iter().flatten().all(|member| self.evict_for(member, left).is_some())
    }

    /// The heat of an entry without the get creating it.
    fn asked_before(&self, entry: EntryId) -> f32 {
        let hash = self.hasher.hash(&self.entries.get(entry).key);
        self.ghosts.heat(hash, self.ghost_places()).at(self.clock)
    }

    pub(super) fn ghost_places(&self) -> u32 {
        self.index.buckets().next_power_of_two() * super::SLOTS
    }

    /// The adjacent entries from this one on to evict for `units` free units, at most `left` of them.
    fn group(&self, entry: EntryId, units: u32, left: u32) -> Option<Group> {
        if !self.can_go(entry) {
            return None;
        }
        let mut group = Group { members: [Some(entry), None, None], worth: self.worth(entry), units: 0 };
        let mut span = self.arena.span(self.entries.get(entry).region);
        for member in 1..EVICTIONS_MAX as usize {
            if span.units >= units {
                break;
            }
            let outside = self.arena.outside(&span).into_iter().flatten().filter(|(_, entry)| self.can_go(*entry));
            let worth =
                outside.map(|(region, entry)| (self.worth(entry) / self.arena.units_of(region) as f32, region, entry));
            let (_, region, next) = worth.min_by(|one, other| one.0.total_cmp(&other.0))?;
            span = self.arena.widen(&span, region);
            group.members[member] = Some(next);
            group.worth += self.worth(next);
        }
        group.units = span.units;
        let members = group.members.iter().flatten().count() as u32;
        debug_assert!((1..=EVICTIONS_MAX).contains(&members), "so many entries leave for one get");
        (span.units >= units && members <= left).then_some(group)
    }

    /// Indexes an entry. Returns whether another was evicted.
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
        debug_assert!(known.is_filling() && known.valid == 0, "{entry:?} is new");
        self.ranges.insert(&known.key, entry, known.claimed);
        self.entries.list(entry);
        Some(is_displaced)
    }

    fn index_entry(&mut self, entry: EntryId) -> bool {
        let (hasher, entries) = (self.hasher, &self.entries);
        let known = entries.get(entry);
        let hash = hasher.hash(&known.key);
        let slot = hash.slot(entry, self.arena.place(known.region));
        self.index.insert(&mut self.mirror, |entry| hasher.hash(&entries.get(entry).key), hash, slot)
    }

    /// Evicts the least valuable entry of a sample. Returns the hole.
    fn evict_sampled(&mut self, left: &mut u32) -> Option<RegionId> {
        let (_, victim) =
            self.least_of_sample(|machine, entry| machine.can_go(entry).then(|| (machine.worth(entry), entry)))?;
        self.evict_for(victim, left)
    }

    /// Evicts an entry if the get may evict one more.
    fn evict_for(&mut self, entry: EntryId, left: &mut u32) -> Option<RegionId> {
        *left = left.checked_sub(1)?;
        self.evict(entry)
    }

    /// Evicts an entry unless it is dropped already, or a thread fills or copies it. Returns the hole.
    fn evict(&mut self, entry: EntryId) -> Option<RegionId> {
        if !self.can_go(entry) || !self.mirror.try_close(entry) {
            return None;
        }
        self.stats.evicted += 1;
        let hash = self.hasher.hash(&self.entries.get(entry).key);
        self.ghosts.note(hash, self.mirror.heat(entry), self.ghost_places());
        self.unlist(entry);
        let hole = self.release(entry);
        debug_assert!(self.entries.find(entry).is_none(), "{entry:?} has left");
        Some(hole)
    }

    /// The least valuable evictable entry.
    fn least(&self, among: impl Iterator<Item = EntryId>) -> Option<EntryId> {
        let worth = |entry: EntryId| (self.worth(entry), entry);
        let can_go = among.filter(|entry| self.can_go(*entry));
        can_go.map(worth).min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, entry)| entry)
    }

    /// Whether an entry is evictable, unless pinned.
    fn can_go(&self, entry: EntryId) -> bool {
        self.entries.find(entry).is_some_and(|known| known.is_listed() && !known.is_filling())
    }

    /// Value of an entry: recent use times the cost of a get of it.
    fn worth(&self, entry: EntryId) -> f32 {
        if self.is_stale(entry) {
            return 0.0;
        }
        self.worth_of(self.mirror.heat(entry).at(self.clock), entry)
    }

    fn worth_of(&self, heat: f32, entry: EntryId) -> f32 {
        let known = self.entries.get(entry);
        heat * known.weight * (REQUEST_BYTES + known.claimed as f32)
    }

    /// A number below `end`, or 0.
    fn draw(&mut self, end: usize) -> usize {
        debug_assert_ne!(self.sampling.random, 0, "zeros stay zeros");
        self.sampling.random ^= self.sampling.random << 13;
        self.sampling.random ^= self.sampling.random >> 7;
        self.sampling.random ^= self.sampling.random << 17;
        ((u128::from(self.sampling.random.wrapping_mul(0x2545_F491_4F6C_DD1D)) * end as u128) >> 64) as usize
    }
}
