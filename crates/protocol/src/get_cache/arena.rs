//! The memory of the cache: chunks of regions, best fit.

use super::key::EntryId;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use slab::Slab;

/// Allocation unit of regions.
pub const UNIT_BYTES: u32 = 16;

/// Exclusive upper bound of a cache's memory, in bytes: units are numbered in 32 bits.
pub const MEMORY_MAX: u64 = UNIT_BYTES as u64 * (1 << 32);

const NONE: u32 = u32::MAX;

/// A region of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegionId(u32);

impl RegionId {
    /// No region.
    pub const NONE: RegionId = RegionId(NONE);
}

/// State of a region. Neighbours belong to the same chunk.
#[derive(Clone, Copy, Debug)]
struct Region {
    start: u32,
    units: u32,
    /// `None` if free.
    entry: Option<EntryId>,
    before: u32,
    after: u32,
}

/// Adjacent regions, some with entries, including the adjacent free ones.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    first: u32,
    last: u32,
    /// Their total units.
    pub units: u32,
}

/// The arena. Regions tile each chunk; no two free ones are adjacent.
#[derive(Debug)]
pub struct Arena {
    chunk_units: u32,
    /// The first region of each chunk.
    firsts: Vec<u32>,
    regions: Slab<Region>,
    /// Allocatable regions, by size and place.
    free: BTreeSet<(u32, u32, RegionId)>,
    free_units: u32,
    /// The last chunk is to be removed: nothing is allocated there.
    is_last_sealed: bool,
}

/// Units occupied by `bytes`.
pub fn units_of(bytes: u32) -> u32 {
    bytes.div_ceil(UNIT_BYTES).max(1)
}

impl Arena {
    /// An arena without chunks; each chunk will have `chunk_units` units.
    pub fn new(chunk_units: u32) -> Arena {
        Arena {
            chunk_units,
            firsts: Vec::new(),
            regions: Slab::new(),
            free: BTreeSet::new(),
            free_units: 0,
            is_last_sealed: false,
        }
    }

    /// Number of chunks.
    pub fn chunks(&self) -> u32 {
        self.firsts.len() as u32
    }

    /// Number of units.
    pub fn units(&self) -> u32 {
        self.chunks() * self.chunk_units
    }

    /// Number of free units.
    pub fn free_units(&self) -> u32 {
        self.free_units
    }

    /// Adds a chunk.
    pub fn add_chunk(&mut self) {
        self.unseal();
        let start = self.units();
        assert!(self.chunk_units > 0 && start.checked_add(self.chunk_units).is_some(), "units are numbered in 32 bits");
        let region = Region { start, units: self.chunk_units, entry: None, before: NONE, after: NONE };
        let id = self.regions.insert(region) as u32;
        self.firsts.push(id);
        self.free_units += self.chunk_units;
        self.note_free(RegionId(id));
    }

    /// Stops allocation in the last chunk, so that it drains.
    pub fn seal(&mut self) {
        if !self.is_last_sealed && !self.firsts.is_empty() {
            self.free_in_last().into_iter().for_each(|region| self.note_taken(region));
            self.is_last_sealed = true;
        }
    }

    /// Undoes [`Arena::seal`].
    pub fn unseal(&mut self) {
        if core::mem::take(&mut self.is_last_sealed) {
            self.free_in_last().into_iter().for_each(|region| self.note_free(region));
        }
    }

    /// Removes the last chunk, if it is sealed and free.
    pub fn remove_chunk(&mut self) -> bool {
        let Some(first) = self.firsts.last().filter(|_| self.is_last_sealed).map(|first| *first as usize) else {
            return false;
        };
        if self.regions[first].entry.is_some() || self.regions[first].units != self.chunk_units {
            return false;
        }
        debug_assert!(self.free_units >= self.chunk_units, "the free units are counted");
        debug_assert_eq!(self.regions[first].after, NONE, "the only region of the chunk is free");
        self.regions.remove(first);
        self.firsts.pop();
        self.free_units -= self.chunk_units;
        self.is_last_sealed = false;
        true
    }

    /// The first `count` entries of the last chunk.
    pub fn entries_of_last(&self, count: usize) -> Vec<EntryId> {
        let first = self.firsts.last().copied().unwrap_or(NONE);
        self.regions_from(first).filter_map(|at| self.regions[at as usize].entry).take(count).collect()
    }

    /// Allocates a region of `units` for an entry: best fit, lowest address.
    pub fn allocate(&mut self, units: u32, entry: EntryId) -> Option<RegionId> {
        debug_assert!(units > 0, "{entry:?} needs memory");
        let (_, _, region) = *self.free.range((units, 0, RegionId(0))..).next()?;
        self.note_taken(region);
        self.cut(region, units);
        assert!(self.free_units >= units, "the free units are counted");
        debug_assert!(self.is_free(region.0), "a region has one entry");
        self.regions[region.0 as usize].entry = Some(entry);
        self.free_units -= units;
        Some(region)
    }

    /// Frees a region and returns the merged free region.
    pub fn release(&mut self, region: RegionId) -> RegionId {
        assert!(self.regions[region.0 as usize].entry.is_some(), "a region is freed once");
        let Region { before, after, .. } = self.regions[region.0 as usize];
        self.free_units += self.units_of(region);
        self.regions[region.0 as usize].entry = None;
        if self.is_free(after) {
            self.note_taken(RegionId(after));
            self.join(region.0, after);
        }
        let hole = if self.is_free(before) {
            self.note_taken(RegionId(before));
            self.join(before, region.0);
            RegionId(before)
        } else {
            region
        };
        debug_assert!(self.free_units <= self.units(), "no more units are free than there are");
        self.note_free(hole);
        hole
    }

    /// Extends a region into the free space after it, if there is enough.
    pub fn extend(&mut self, region: RegionId, units: u32) -> bool {
        debug_assert!(self.regions[region.0 as usize].entry.is_some(), "only the region of an entry grows");
        let Region { units: own, after, .. } = self.regions[region.0 as usize];
        let more = units.saturating_sub(own);
        if more == 0 {
            return true;
        }
        let is_sealed = self.is_last_sealed && self.is_in_last(self.place(region));
        if is_sealed || !self.is_free(after) || self.units_of(RegionId(after)) < more {
            return false;
        }
        self.note_taken(RegionId(after));
        self.cut(RegionId(after), more);
        self.join(region.0, after);
        self.free_units -= more;
        debug_assert_eq!(self.units_of(region), units, "the region has the units that were asked for");
        true
    }

    /// Start of a region, in units.
    pub fn place(&self, region: RegionId) -> u32 {
        self.regions[region.0 as usize].start
    }

    /// Size of a region, in units.
    pub fn units_of(&self, region: RegionId) -> u32 {
        self.regions[region.0 as usize].units
    }

    /// Free units adjacent to a region.
    pub fn free_adjacent(&self, region: RegionId) -> u32 {
        let Region { before, after, .. } = self.regions[region.0 as usize];
        [before, after].into_iter().filter(|at| self.is_free(*at)).map(|at| self.units_of(RegionId(at))).sum()
    }

    /// The entries adjacent to a region.
    pub fn adjacent(&self, region: RegionId) -> [Option<EntryId>; 2] {
        let Region { before, after, .. } = self.regions[region.0 as usize];
        [before, after].map(|at| self.regions.get(at as usize)?.entry)
    }

    /// An entry's region with the adjacent free ones.
    pub fn span(&self, region: RegionId) -> Span {
        let span = Span { first: region.0, last: region.0, units: self.units_of(region) };
        self.with_free(span)
    }

    /// The regions adjacent to a span, which are not free.
    pub fn outside(&self, span: &Span) -> [Option<(RegionId, EntryId)>; 2] {
        debug_assert!(
            !self.is_free(self.regions[span.last as usize].after),
            "free regions beside a span are part of it"
        );
        let outside = [self.regions[span.first as usize].before, self.regions[span.last as usize].after];
        outside.map(|at| Some((RegionId(at), self.regions.get(at as usize)?.entry?)))
    }

    /// A span extended by an adjacent region and the free space beyond.
    pub fn widen(&self, span: &Span, region: RegionId) -> Span {
        let units = span.units + self.units_of(region);
        debug_assert!(!self.is_free(region.0), "free regions beside a span are part of it");
        if self.regions[region.0 as usize].after == span.first {
            self.with_free(Span { first: region.0, units, ..*span })
        } else {
            self.with_free(Span { last: region.0, units, ..*span })
        }
    }

    fn with_free(&self, mut span: Span) -> Span {
        let (before, after) = (self.regions[span.first as usize].before, self.regions[span.last as usize].after);
        if self.is_free(before) {
            span = Span { first: before, units: span.units + self.units_of(RegionId(before)), ..span };
        }
        if self.is_free(after) {
            span = Span { last: after, units: span.units + self.units_of(RegionId(after)), ..span };
        }
        debug_assert!(span.units <= self.chunk_units, "regions beside each other are of one chunk");
        span
    }

    /// All regions in order, with start, units and entry.
    pub fn all(&self) -> impl Iterator<Item = (u32, u32, Option<EntryId>)> + '_ {
        let ids = self.firsts.iter().flat_map(|first| self.regions_from(*first));
        ids.map(|at| self.regions[at as usize]).map(|region| (region.start, region.units, region.entry))
    }

    fn regions_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let known = move |at: u32| Some(at).filter(|at| *at != NONE);
        core::iter::successors(known(first), move |at| known(self.regions[*at as usize].after))
    }

    fn free_in_last(&self) -> Vec<RegionId> {
        let first = self.firsts.last().copied().unwrap_or(NONE);
        self.regions_from(first).filter(|at| self.is_free(*at)).map(RegionId).collect()
    }

    fn is_in_last(&self, place: u32) -> bool {
        place + self.chunk_units >= self.units()
    }

    fn is_free(&self, at: u32) -> bool {
        at != NONE && self.regions[at as usize].entry.is_none()
    }

    fn note_free(&mut self, region: RegionId) {
        debug_assert!(self.is_free(region.0), "the region has no entry");
        let Region { start, units, .. } = self.regions[region.0 as usize];
        if !(self.is_last_sealed && self.is_in_last(start)) {
            let is_new = self.free.insert((units, start, region));
            debug_assert!(is_new, "a free region is noted once");
        }
    }

    fn note_taken(&mut self, region: RegionId) {
        debug_assert!(self.is_free(region.0), "the region was free");
        let Region { start, units, .. } = self.regions[region.0 as usize];
        let was_noted = self.free.remove(&(units, start, region));
        debug_assert!(was_noted || self.is_last_sealed && self.is_in_last(start), "a free region was noted");
    }

    /// Shrinks a region marked as taken to `units`. The remainder becomes free.
    fn cut(&mut self, region: RegionId, units: u32) {
        let Region { start, units: all, after, .. } = self.regions[region.0 as usize];
        debug_assert!(0 < units && units <= all, "a region of {all} units is cut to {units}");
        if all == units {
            return;
        }
        let remainder = Region { start: start + units, units: all - units, entry: None, before: region.0, after };
        let remainder = self.regions.insert(remainder) as u32;
        self.link(remainder, after);
        self.link(region.0, remainder);
        self.regions[region.0 as usize].units = units;
        self.note_free(RegionId(remainder));
    }

    /// Merges a region into the one before it.
    fn join(&mut self, region: u32, next: u32) {
        let gone = self.regions.remove(next as usize);
        debug_assert_eq!(
            gone.start,
            self.regions[region as usize].start + self.regions[region as usize].units,
            "regions meet"
        );
        debug_assert_eq!(gone.before, region, "regions that are joined follow each other");
        self.regions[region as usize].units += gone.units;
        self.link(region, gone.after);
    }

    fn link(&mut self, before: u32, after: u32) {
        debug_assert_ne!(before, after, "a region has others beside it");
        self.regions[before as usize].after = after;
        if after != NONE {
            self.regions[after as usize].before = before;
        }
    }
}
