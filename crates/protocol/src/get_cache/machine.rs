//! The cache as a whole: the outcome of each get.

use super::answer::{Answer, Filled, Part, Want};
use super::arena::{Arena, UNIT_BYTES};
use super::demand::{Demand, Room, SAMPLE_KEPT, Sampling};
use super::entries::{Entries, Entry};
use super::ghosts::Ghosts;
use super::heat::{Clock, Heat};
use super::index::Index;
use super::key::{
    ENTRIES_MAX, EntryId, GENERATION_PLACES, Hasher, Key, SLOTS, TARGET_PLACES, generation_place, target_place,
};
use super::limits::{Limits, buckets_for};
use super::mirror::{Mirror, Opened};
use super::ranges::Ranges;
use super::sizing::{Counts, Sizing};
use super::stats::Stats;
use super::window::Window;
use alloc::vec;
use alloc::vec::Vec;

/// Missing gets between two reviews of the size.
const GETS_A_LOOK: u32 = 16;

/// Heat halves in 2 to the power of this times as many missing gets as there are entries.
const HALF_LIFE_LOG2: u32 = 2;

/// Entries still to be removed.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// Dropped entries that were still pinned.
    pub(super) lingering: Vec<EntryId>,
    /// Listed entries before this one may belong to an older generation.
    pub(super) unswept: usize,
}

/// The cache of a rank. `W` is the driver's handle of a waiting get.
#[derive(Debug)]
pub struct Machine<M, W> {
    /// The driver's side.
    pub mirror: M,
    pub(super) limits: Limits,
    pub(super) hasher: Hasher,
    pub(super) index: Index,
    pub(super) arena: Arena,
    pub(super) entries: Entries<W>,
    pub(super) ranges: Ranges,
    pub(super) ghosts: Ghosts,
    pub(super) window: Window,
    pub(super) sizing: Sizing,
    pub(super) stats: Stats,
    pub(super) generations: Vec<u32>,
    pub(super) clock: Clock,
    pub(super) demand: Demand,
    pub(super) remains: Remains,
    pub(super) sampling: Sampling,
}

impl<M: Mirror, W> Machine<M, W> {
    /// An empty cache without memory.
    pub fn new(mut mirror: M, mut limits: Limits) -> Machine<M, W> {
        // Ensures no entry suffices for a get of [`u32::MAX`], the stand-in for any longer get.
        limits.len_max = limits.len_max.min(u32::MAX - 1);
        limits.entries_max = limits.entries_max.min(ENTRIES_MAX);
        let start = buckets_for(limits.entries_start.min(limits.entries_max));
        Machine {
            index: Index::new(start, limits.buckets_max(), &mut mirror),
            mirror,
            hasher: Hasher::new(limits.seed),
            arena: Arena::new(limits.chunk_bytes / UNIT_BYTES),
            entries: Entries::new(limits.entries_max),
            ranges: Ranges::new(Hasher::new(limits.seed), limits.entries_max),
            ghosts: Ghosts::new(limits.buckets_max() * SLOTS),
            window: Window::default(),
            sizing: Sizing::new(limits.chunks_start, limits.chunks_max),
            stats: Stats::default(),
            generations: vec![0; (GENERATION_PLACES + TARGET_PLACES) as usize],
            clock: Clock::default(),
            demand: Demand::default(),
            remains: Remains::default(),
            sampling: Sampling { sample: [None; SAMPLE_KEPT], random: limits.seed | 1 },
            limits,
        }
    }

    /// Handles a get that did not find its bytes, or did not look.
    pub fn get(&mut self, key: &Key, want: &Want, waiter: W) -> Answer {
        self.maintain();
        self.clock.now = self.clock.now.wrapping_add(1);
        let listed = self.entries.listed().len().max(1);
        self.clock.half_life_log2 = (listed.ilog2() + HALF_LIFE_LOG2).min(31);
        self.mirror.set_clock(self.clock);
        let Some(entry) = self.find_current(key) else { return self.miss(key, want, None) };
        let known = self.entries.get_mut(entry);
        debug_assert!(known.valid <= known.claimed, "bytes that are here were asked for");
        if want.end() <= known.valid {
            self.stats.hits += 1;
            self.stats.bytes_hit += u64::from(want.len);
            return Answer::Hit(self.pin(entry, want.end()));
        }
        if want.end() <= known.claimed {
            known.waiters.push(waiter);
            self.stats.joined += 1;
            self.warm(entry);
            return Answer::Joined;
        }
        self.miss(key, want, Some(entry))
    }

    /// All requested bytes of an entry have arrived. The waiters get them from elsewhere.
    pub fn fill(&mut self, entry: EntryId) -> Filled<W> {
        self.end_filling(entry, false)
    }

    /// As [`Machine::fill`], but the waiters copy from the entry: it stays pinned while there are any, cached or not.
    pub fn fill_pinned(&mut self, entry: EntryId) -> Filled<W> {
        self.end_filling(entry, true)
    }

    fn end_filling(&mut self, entry: EntryId, pins: bool) -> Filled<W> {
        assert!(self.entries.get(entry).is_filling(), "the bytes of {entry:?} arrive once");
        let waiters = core::mem::take(&mut self.entries.get_mut(entry).waiters);
        let is_pinned = pins && !waiters.is_empty();
        let is_kept = self.entries.get(entry).is_listed() && !self.is_stale(entry);
        if is_kept {
            self.open(entry);
        }
        if is_pinned {
            self.mirror.pin(entry);
        }
        if !is_kept {
            self.discard_fill(entry);
        }
        Filled { is_kept, is_pinned, waiters }
    }

    /// The bytes of an entry will not arrive. Returns its waiters, to be failed.
    pub fn abandon(&mut self, entry: EntryId) -> Vec<W> {
        assert!(self.entries.get(entry).is_filling(), "the bytes of {entry:?} arrive or fail once");
        let waiters = core::mem::take(&mut self.entries.get_mut(entry).waiters);
        let known = self.entries.get_mut(entry);
        if known.is_listed() && known.valid > 0 {
            known.claimed = known.valid;
        } else {
            self.discard_fill(entry);
        }
        waiters
    }

    /// Stops serving earlier bytes of a space, and of other spaces sharing its place.
    pub fn invalidate(&mut self, space: u32) {
        let place = generation_place(space);
        self.begin_generation(place, |known| generation_place(known.key.space) == place);
    }

    /// Stops serving earlier bytes of a target's space, and of other targets sharing its place.
    pub fn invalidate_target(&mut self, space: u32, target: u32) {
        let place = target_place(space, target);
        self.begin_generation(place, |known| target_place(known.key.space, known.key.target) == place);
    }

    /// Begins a new generation of a place with the given entries.
    fn begin_generation(&mut self, place: usize, belongs: impl Fn(&Entry<W>) -> bool) {
        let next = self.generations[place].wrapping_add(1);
        if next % (1 << 31) == 0 {
            // An entry stores the sum of two generations. The entries are dropped before a sum can recur.
            self.drop_all(belongs);
        }
        self.generations[place] = next;
        self.mirror.set_generation(place, next);
        self.remains.unswept = self.entries.listed().len();
    }

    /// Sum of the generations of a key's space and target; it changes when either does.
    pub(super) fn generation(&self, key: &Key) -> u32 {
        let of_target = self.generations[target_place(key.space, key.target)];
        self.generations[generation_place(key.space)].wrapping_add(of_target)
    }

    /// A space is gone: stops serving it and drops its entries at once.
    pub fn forget(&mut self, space: u32) {
        self.invalidate(space);
        self.drop_all(|known| known.key.space == space);
        let is_left = |entry: &EntryId| self.entries.get(*entry).key.space == space;
        debug_assert!(!self.entries.listed().iter().any(is_left), "nothing is found of space {space}");
    }

    /// Drops entries with bytes of a range; bytes in flight for it will not be cached.
    pub fn drop_range(&mut self, space: u32, target: u32, start: u64, len: u64) {
        let end = start.saturating_add(len);
        let suits = |known: &Entry<W>| {
            let key = &known.key;
            let known_end = key.address.saturating_add(u64::from(known.claimed));
            (key.space, key.target) == (space, target) && key.address < end && known_end > start
        };
        let first = Key { space, target, address: start };
        match self.ranges.near(&first, len, |entry| self.entries.get(entry).key) {
            Some(near) => near.into_iter().for_each(|entry| {
                if suits(self.entries.get(entry)) {
                    self.drop(entry);
                }
            }),
            None => self.drop_all(suits),
        }
    }

    /// Statistics so far.
    pub fn stats(&self) -> Stats {
        debug_assert!(self.arena.free_units() <= self.arena.units(), "no more units are free than there are");
        let bytes = |units: u32| u64::from(units) * u64::from(UNIT_BYTES);
        let now = Stats {
            entries: self.entries.listed().len() as u64,
            bytes_used: bytes(self.arena.units() - self.arena.free_units()),
            bytes_held: bytes(self.arena.units()),
            bytes_max: u64::from(self.limits.chunk_bytes) * u64::from(self.sizing.chunks_max()),
            ..self.stats
        };
        now.with(self.mirror.seen())
    }

    /// Whether only sampled keys need be asked about.
    pub fn is_dormant(&self) -> bool {
        self.sizing.is_dormant()
    }

    /// The window's units, as counted and as recomputed from its entries.
    pub fn window_units(&self) -> (u32, u32) {
        let listed = self.entries.listed().iter().filter(|entry| self.entries.is_new(**entry));
        (self.window.units(), listed.map(|entry| self.arena.units_of(self.entries.get(*entry).region)).sum())
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The memory.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The entries.
    pub fn entries(&self) -> &Entries<W> {
        &self.entries
    }

    /// The hasher of the index.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// A missing get; there may be a shorter entry.
    fn miss(&mut self, key: &Key, want: &Want, shorter: Option<EntryId>) -> Answer {
        let len = want.fetch.max(want.end());
        self.demand.mean_bytes += (len as f32 - self.demand.mean_bytes) / self.clock.now.clamp(1, 64) as f32;
        let valid = shorter.map_or(0, |entry| self.entries.get(entry).valid);
        debug_assert!(valid <= len, "the entry that is there has too few bytes");
        let head = shorter.filter(|_| valid > 0).map(|entry| self.pin(entry, valid));
        let (fill, room) = match shorter {
            Some(entry) if self.extend(entry, len) => (Some(entry), Room::Free),
            _ => self.reserve(key, len, want.weight, shorter),
        };
        let fetched = if fill.is_some() { len - valid } else { want.len - want.within(valid) };
        self.stats.bytes_fetched += u64::from(fetched);
        self.demand.pressed += u64::from(len <= self.limits.len_max && matches!(room, Room::Made | Room::None));
        let class = match room {
            _ if head.is_some() => &mut self.stats.partial,
            Room::Free => &mut self.stats.direct,
            Room::Displaced => &mut self.stats.conflicting,
            Room::Made => &mut self.stats.capacity,
            Room::None => &mut self.stats.failing,
        };
        *class += 1;
        Answer::Miss { head, fill: fill.map(|entry| self.part(entry, len)) }
    }

    /// Lets an open entry await more bytes, if there is free room behind it.
    fn extend(&mut self, entry: EntryId, len: u32) -> bool {
        let known = self.entries.get(entry);
        let can = !known.is_filling()
            && !known.is_new
            && len <= self.limits.len_max
            && self.arena.extend(known.region, super::units_of(len));
        if can {
            debug_assert!(len > self.entries.get(entry).claimed, "{entry:?} awaits more bytes");
            self.entries.get_mut(entry).claimed = len;
            self.ranges.lengthen(len);
        }
        can
    }

    /// The entry of a key in the current generation.
    fn find_current(&mut self, key: &Key) -> Option<EntryId> {
        let hash = self.hasher.hash(key);
        let mut candidates = self.index.candidates(&self.mirror, hash);
        let (_, entry) = candidates.find(|(_, entry)| self.entries.get(*entry).key == *key)?;
        drop(candidates);
        debug_assert!(self.entries.get(entry).is_listed(), "the index leads to entries that are in it");
        if self.is_stale(entry) {
            self.drop(entry);
            return None;
        }
        Some(entry)
    }

    pub(super) fn is_stale(&self, entry: EntryId) -> bool {
        let known = self.entries.get(entry);
        known.generation != self.generation(&known.key)
    }

    fn part(&self, entry: EntryId, len: u32) -> Part {
        Part { entry, place: self.arena.place(self.entries.get(entry).region), len }
    }

    fn pin(&mut self, entry: EntryId, len: u32) -> Part {
        debug_assert!(len <= self.entries.get(entry).valid, "the bytes of {entry:?} are here");
        self.mirror.pin(entry);
        self.warm(entry);
        self.part(entry, len)
    }

    pub(super) fn warm(&mut self, entry: EntryId) {
        let heat = self.mirror.heat(entry).used(self.clock);
        self.mirror.set_heat(entry, heat);
    }

    fn open(&mut self, entry: EntryId) {
        let known = self.entries.get_mut(entry);
        let is_longer = known.valid > 0;
        debug_assert!(known.valid < known.claimed, "bytes of {entry:?} have arrived");
        known.valid = known.claimed;
        let (key, generation, len) = (known.key, known.generation, known.claimed);
        if is_longer {
            self.mirror.lengthen(entry, len);
        } else {
            let place = self.arena.place(self.entries.get(entry).region);
            self.mirror.open(entry, &Opened { key, generation, place, len });
        }
    }

    /// Bytes in flight arrived for an entry no longer cached, or will not arrive.
    fn discard_fill(&mut self, entry: EntryId) {
        debug_assert!(self.entries.get(entry).is_filling(), "bytes of {entry:?} were in flight");
        let known = self.entries.get_mut(entry);
        let was_open = known.valid > 0;
        known.claimed = known.valid;
        if known.is_listed() {
            self.unlist(entry);
        }
        self.free_or_linger(entry, was_open);
    }

    /// Drops indexed entries. Examines all of them.
    fn drop_all(&mut self, suits: impl Fn(&Entry<W>) -> bool) {
        let all = self.entries.listed().iter().copied();
        let suiting: Vec<EntryId> = all.filter(|entry| suits(self.entries.get(*entry))).collect();
        suiting.into_iter().for_each(|entry| self.drop(entry));
    }

    /// Removes an entry from every index. It is freed once no thread fills or copies it.
    pub(super) fn drop(&mut self, entry: EntryId) {
        debug_assert!(self.entries.get(entry).is_listed(), "{entry:?} is dropped once");
        self.unlist(entry);
        let known = self.entries.get(entry);
        let (is_filling, is_open) = (known.is_filling(), known.valid > 0);
        if is_filling && is_open {
            self.mirror.close(entry);
        }
        if !is_filling {
            self.free_or_linger(entry, is_open);
        }
    }

    /// Frees an unlisted entry, or lets it linger.
    fn free_or_linger(&mut self, entry: EntryId, was_open: bool) {
        debug_assert!(!self.entries.get(entry).is_listed(), "nothing leads to {entry:?} any more");
        debug_assert!(!self.entries.get(entry).is_filling(), "no bytes are in flight for {entry:?}");
        if was_open {
            self.mirror.close(entry);
        }
        if self.mirror.is_pinned(entry) {
            self.remains.lingering.push(entry);
        } else {
            self.release(entry);
        }
    }

    pub(super) fn unlist(&mut self, entry: EntryId) {
        let (hasher, entries) = (self.hasher, &self.entries);
        self.index.remove(&mut self.mirror, |entry| hasher.hash(&entries.get(entry).key), entry);
        self.ranges.remove(&self.entries.get(entry).key, entry);
        self.leave_window(entry);
        self.entries.unlist(entry);
        debug_assert!(!self.entries.is_new(entry), "{entry:?} has left the window, too");
    }

    /// Frees an entry's memory. Returns the hole.
    pub(super) fn release(&mut self, entry: EntryId) -> super::RegionId {
        self.mirror.set_heat(entry, Heat::default());
        let gone = self.entries.remove(entry);
        debug_assert!(gone.waiters.is_empty(), "nobody waits for it");
        self.arena.release(gone.region)
    }

    /// Incremental upkeep at each get.
    fn maintain(&mut self) {
        self.free_lingering();
        self.sweep();
        if self.clock.now % GETS_A_LOOK == 0 {
            self.review_size();
        }
        self.resize();
    }

    /// Reviews the amount of memory, and whether lookups pay.
    fn review_size(&mut self) {
        let seen = self.mirror.seen();
        let stats = &self.stats;
        let missed = stats.partial + stats.joined + stats.direct + stats.conflicting + stats.capacity + stats.failing;
        let hits = seen.hits + stats.hits;
        let counts = Counts {
            looked_up: hits + missed,
            hits: hits + stats.joined + stats.partial,
            pressed: self.demand.pressed,
        };
        let (free, chunks) = (self.arena.free_units(), self.arena.chunks());
        let is_roomy = free > self.arena.units() / 2 && free > self.limits.chunk_bytes / UNIT_BYTES;
        let was_dormant = self.sizing.is_dormant();
        debug_assert!(free <= self.arena.units(), "no more units are free than there are");
        self.sizing.look(counts, chunks, is_roomy);
        if was_dormant != self.sizing.is_dormant() {
            self.mirror.set_dormant(!was_dormant);
        }
    }

    /// Frees a lingering entry if it is no longer pinned.
    fn free_lingering(&mut self) {
        for _ in 0..2.min(self.remains.lingering.len()) {
            let entry = self.remains.lingering.swap_remove(0);
            debug_assert!(!self.entries.get(entry).is_listed(), "{entry:?} only waits for its readers");
            if self.mirror.is_pinned(entry) {
                self.remains.lingering.push(entry);
            } else {
                self.release(entry);
            }
        }
    }

    /// Drops entries of older generations.
    fn sweep(&mut self) {
        self.remains.unswept = self.remains.unswept.min(self.entries.listed().len());
        for _ in 0..2.min(self.remains.unswept) {
            self.remains.unswept -= 1;
            let entry = self.entries.listed()[self.remains.unswept];
            if self.is_stale(entry) {
                self.drop(entry);
            }
        }
    }
}
