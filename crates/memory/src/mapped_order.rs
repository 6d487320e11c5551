//! The order in which frames were mapped in the segment, and the number of the system's mappings that they take.
//!
//! The system merges adjacent and equal mappings: consecutive pages in consecutive frames with the same access; and
//! ranges without access. Each such area is a mapping, and the number of mappings of a process is limited. At the
//! limit, pages make room for others. An unmapped page stays in its frame, and the next access maps it again.
//!
//! Uses of mapped pages leave no trace, so only their faults are known. Pages mapped before the limit was reached are
//! settled. Later ones are new, and make room again once as many others were mapped as instructions may need meanwhile.
//! So a loop over more pages than can be mapped finds most of the settled ones in each round; in mapping order it would
//! find none. A new page that soon faults again becomes settled, and so does one in [`SETTLED_PART`] of the others:
//! then the first settled page makes room.

use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_protocol::coherence::{Access, FrameId};

const NONE: u32 = u32::MAX;

/// Maximum number of new pages, if less than a quarter of all.
const NEW_MAX: u32 = 1024;

/// One new page in this many is settled even without a second fault.
const SETTLED_PART: u32 = 16;

/// Pages of a segment mapped or about to be, one bit each. Lock-free.
#[derive(Debug)]
pub(super) struct MappedPages(Box<[AtomicU64]>);

impl MappedPages {
    /// No mapped pages, of `pages`.
    pub(super) fn new(pages: usize) -> MappedPages {
        MappedPages((0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Whether a page is mapped. Pages behind the segment's last one are not.
    pub(super) fn has(&self, index: u32) -> bool {
        let word = self.0.get(index as usize / 64);
        word.is_some_and(|word| word.load(Ordering::Acquire) & (1 << (index % 64)) != 0)
    }

    fn insert(&self, index: u32) {
        self.0[index as usize / 64].fetch_or(1 << (index % 64), Ordering::AcqRel);
    }

    fn remove(&self, index: u32) {
        self.0[index as usize / 64].fetch_and(!(1 << (index % 64)), Ordering::AcqRel);
    }
}

/// State of a frame.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The page as which it is mapped, or was last.
    page: u32,
    older: u32,
    newer: u32,
    state: MappingState,
    is_writable: bool,
}

/// Position of a frame in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MappingState {
    Unmapped,
    /// Unmapped to make room, when the count of mapped frames was `older`.
    MadeRoom,
    Settled,
    /// Mapped at the limit, and not settled yet.
    New {
        /// It has faulted again soon.
        is_soon: bool,
    },
}

impl MappingState {
    fn is_mapped(self) -> bool {
        matches!(self, MappingState::Settled | MappingState::New { .. })
    }
}

/// Consecutive frames mapped as consecutive pages with the same access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedRun {
    pub(super) first: FrameId,
    pub(super) count: u32,
}

impl MappedRun {
    pub(super) fn frames(self) -> impl Iterator<Item = FrameId> {
        (self.first.0..self.first.0 + self.count).map(FrameId)
    }
}

/// Frames in order of arrival.
#[derive(Clone, Copy, Debug)]
struct Queue {
    oldest: u32,
    newest: u32,
    count: u32,
}

/// The frames mapped or about to be.
#[derive(Debug)]
pub(super) struct MappedOrder {
    by_frame: Box<[Entry]>,
    /// The settled ones, and the new ones.
    queues: [Queue; 2],
    /// Some had to make room.
    is_crowded: bool,
    /// The system's mappings besides the one of a segment without mapped pages.
    areas: i64,
    /// Number of frames mapped so far, wrapping.
    mapped: u32,
}

impl MappedOrder {
    /// No mapped frames, of `frames`.
    pub(super) fn new(frames: u32) -> MappedOrder {
        let unmapped =
            Entry { page: NONE, older: NONE, newer: NONE, state: MappingState::Unmapped, is_writable: false };
        let by_frame = vec![unmapped; frames as usize].into();
        let queues = [Queue { oldest: NONE, newest: NONE, count: 0 }; 2];
        MappedOrder { by_frame, queues, is_crowded: false, areas: 0, mapped: 0 }
    }

    /// Number of frames.
    pub(super) fn count(&self) -> u32 {
        self.queues[0].count + self.queues[1].count
    }

    /// The system's mappings that they take, besides one of the segment.
    pub(super) fn areas(&self) -> u32 {
        u32::try_from(self.areas).expect("each frame adds what it takes away later")
    }

    /// Adds an unmapped frame, mapped as page `page`.
    pub(super) fn append(&mut self, FrameId(frame): FrameId, page: u32, access: Access, pages: &MappedPages) {
        self.mapped = self.mapped.wrapping_add(1);
        let Entry { page: last, older: since, state, .. } = self.by_frame[frame as usize];
        assert!(!state.is_mapped(), "frame {frame} is mapped twice");
        let has_made_room = state == MappingState::MadeRoom && last == page;
        let is_soon = has_made_room && self.mapped.wrapping_sub(since) <= self.count() / 4;
        let state = if self.is_crowded { MappingState::New { is_soon } } else { MappingState::Settled };
        let entry = &mut self.by_frame[frame as usize];
        (entry.page, entry.is_writable) = (page, access == Access::Write);
        self.areas += self.areas_of(MappedRun { first: FrameId(frame), count: 1 }, pages);
        pages.insert(page);
        self.link(frame, state);
    }

    /// Removes a frame.
    pub(super) fn remove(&mut self, FrameId(frame): FrameId, pages: &MappedPages) {
        assert!(self.by_frame[frame as usize].state.is_mapped(), "frame {frame} is unmapped twice");
        self.unlink(frame);
        pages.remove(self.by_frame[frame as usize].page);
        self.areas -= self.areas_of(MappedRun { first: FrameId(frame), count: 1 }, pages);
        self.by_frame[frame as usize].state = MappingState::Unmapped;
    }

    /// Notes that a frame was unmapped to make room for others. It may be mapped again by now.
    pub(super) fn note_room_made(&mut self, FrameId(frame): FrameId) {
        let entry = &mut self.by_frame[frame as usize];
        if !entry.state.is_mapped() {
            (entry.state, entry.older) = (MappingState::MadeRoom, self.mapped);
        }
    }

    /// Makes a mapped frame writable.
    pub(super) fn allow_writes(&mut self, FrameId(frame): FrameId, pages: &MappedPages) {
        let run = MappedRun { first: FrameId(frame), count: 1 };
        self.areas -= self.areas_of(run, pages);
        self.by_frame[frame as usize].is_writable = true;
        self.areas += self.areas_of(run, pages);
    }

    /// Moves a frame to the end of the settled ones, if it is still mapped.
    pub(super) fn settle(&mut self, FrameId(frame): FrameId) {
        if self.by_frame[frame as usize].state.is_mapped() {
            self.unlink(frame);
            self.link(frame, MappingState::Settled);
        }
    }

    /// The run to make room, if there are more than `areas` areas: a frame with its neighbours among the aligned
    /// `window` pages around its page. Frames to be kept, and runs that save no areas, are skipped, unless `whatever`
    /// is to be unmapped.
    pub(super) fn first_above(
        &mut self,
        areas: u32,
        window: u32,
        whatever: bool,
        pages: &MappedPages,
    ) -> Option<MappedRun> {
        self.is_crowded |= self.areas > i64::from(areas);
        for _ in 0..=2 * self.count() {
            if self.areas <= i64::from(areas) || self.count() == 0 {
                return None;
            }
            let [settled, new] = self.queues;
            // With `whatever` nothing is kept and each is examined once: a frame that has to stay is settled behind all
            // others.
            let is_enough_new = new.count > if whatever { 0 } else { NEW_MAX.min(self.count() / 4) };
            let takes_new = settled.count == 0 || is_enough_new;
            let frame = if takes_new { new.oldest } else { settled.oldest };
            let run = self.run_of(frame, window);
            let is_soon = self.by_frame[frame as usize].state == MappingState::New { is_soon: true };
            let is_kept = takes_new && (is_soon || self.mapped % SETTLED_PART == 0);
            if whatever || (!is_kept && self.areas_of(run, pages) > 0) {
                return Some(run);
            }
            run.frames().for_each(|frame| self.settle(frame));
        }
        None
    }

    /// The run of frames around a mapped one that are mapped as adjacent pages with the same access.
    fn run_of(&self, frame: u32, window: u32) -> MappedRun {
        let page = self.by_frame[frame as usize].page;
        let (mut first, mut last) = (frame, frame);
        let place = page % window;
        while frame - first < place && self.joins(first, -1) {
            first -= 1;
        }
        while last - frame < window - 1 - place && self.joins(last, 1) {
            last += 1;
        }
        MappedRun { first: FrameId(first), count: last - first + 1 }
    }

    /// Whether a frame and the next or previous one are mapped as one area, if the frame is mapped.
    fn joins(&self, frame: u32, step: i32) -> bool {
        let Some(other) = frame.checked_add_signed(step).and_then(|other| self.by_frame.get(other as usize)) else {
            return false;
        };
        let Entry { page, is_writable, .. } = self.by_frame[frame as usize];
        other.state.is_mapped() && page.checked_add_signed(step) == Some(other.page) && other.is_writable == is_writable
    }

    /// The number of areas that a run adds.
    fn areas_of(&self, run: MappedRun, pages: &MappedPages) -> i64 {
        let (first, last) = (run.first.0, run.first.0 + run.count - 1);
        let [first_page, last_page] = [first, last].map(|frame| self.by_frame[frame as usize].page);
        // Nothing precedes the first page of the segment. The range without access behind the last one stays.
        let is_first_adjacent = first_page.checked_sub(1).is_none_or(|before| pages.has(before));
        let is_last_adjacent = pages.has(last_page + 1);
        let joined = i64::from(self.joins(first, -1)) + i64::from(self.joins(last, 1));
        2 - joined - i64::from(is_first_adjacent) - i64::from(is_last_adjacent)
    }

    fn link(&mut self, frame: u32, state: MappingState) {
        let queue = &mut self.queues[usize::from(state != MappingState::Settled)];
        let older = std::mem::replace(&mut queue.newest, frame);
        queue.count += 1;
        if older == NONE {
            queue.oldest = frame;
        } else {
            self.by_frame[older as usize].newer = frame;
        }
        let entry = &mut self.by_frame[frame as usize];
        (entry.older, entry.newer, entry.state) = (older, NONE, state);
    }

    fn unlink(&mut self, frame: u32) {
        let Entry { older, newer, state, .. } = self.by_frame[frame as usize];
        let queue = &mut self.queues[usize::from(state != MappingState::Settled)];
        queue.count -= 1;
        match older {
            NONE => queue.oldest = newer,
            older => self.by_frame[older as usize].newer = newer,
        }
        match newer {
            NONE => queue.newest = older,
            newer => self.by_frame[newer as usize].older = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The areas of these mappings, with the ranges without access between them.
    fn areas(mapped: &BTreeMap<u32, (u32, bool)>) -> i64 {
        let mut areas = 0;
        for (page, (frame, is_writable)) in mapped {
            let before = page.checked_sub(1).and_then(|before| mapped.get(&before));
            let joins =
                before.is_some_and(|(its, writable)| Some(*its) == frame.checked_sub(1) && writable == is_writable);
            areas += i64::from(!joins) + i64::from(before.is_none() && *page > 0);
        }
        areas
    }

    #[test]
    fn a_frame_that_made_room_may_be_mapped_again_before_that_is_noted() {
        let (mut order, pages) = (MappedOrder::new(8), MappedPages::new(400));
        for frame in 0..8 {
            order.append(FrameId(frame), 40 * frame, Access::Read, &pages);
        }
        order.remove(FrameId(3), &pages);
        order.append(FrameId(3), 50, Access::Read, &pages);
        order.note_room_made(FrameId(3));
        (0..8).for_each(|frame| order.remove(FrameId(frame), &pages));
        assert_eq!((order.count(), order.areas()), (0, 0));
    }

    #[test]
    fn areas_are_counted_as_the_system_counts_them() {
        const PAGES: u32 = 128;
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut order, pages) = (MappedOrder::new(PAGES), MappedPages::new(PAGES as usize));
            let mut mapped = BTreeMap::new();
            for _ in 0..4000 {
                let page = random.u32(0..PAGES);
                let frame = if random.u32(0..8) > 0 { page } else { random.u32(0..PAGES) };
                let access = if random.bool() { Access::Read } else { Access::Write };
                match mapped.get(&page).copied() {
                    None if !mapped.values().any(|(its, _)| *its == frame) => {
                        order.append(FrameId(frame), page, access, &pages);
                        mapped.insert(page, (frame, access == Access::Write));
                    }
                    Some((frame, false)) if random.bool() => {
                        order.allow_writes(FrameId(frame), &pages);
                        mapped.insert(page, (frame, true));
                    }
                    Some((frame, _)) if random.bool() => {
                        order.remove(FrameId(frame), &pages);
                        mapped.remove(&page);
                    }
                    _ => {}
                }
                // The range without access behind the last page continues behind the segment.
                assert_eq!(i64::from(order.areas()), areas(&mapped), "seed {seed}: {mapped:?}");
                assert!((0..PAGES).all(|page| pages.has(page) == mapped.contains_key(&page)) && !pages.has(PAGES));
                assert_eq!(order.count(), mapped.len() as u32);
            }
        }
    }

    /// The number of pages found mapped in the last of many rounds over `pages` separate pages.
    fn found_in_a_round(areas_max: u32, pages: u32, next: &mut dyn FnMut(u32) -> u32) -> u32 {
        let (mut order, mapped) = (MappedOrder::new(pages), MappedPages::new(2 * pages as usize + 2));
        let mut found = 0;
        for at in 0..20 * pages {
            let page = next(at) % pages;
            if mapped.has(2 * page + 1) {
                found += u32::from(at >= 19 * pages);
                continue;
            }
            order.append(FrameId(page), 2 * page + 1, Access::Read, &mapped);
            for whatever in [false, true] {
                while let Some(run) = order.first_above(areas_max, 16, whatever, &mapped) {
                    assert!(run.count == 1 && run.first != FrameId(page), "it makes no room for itself");
                    order.remove(run.first, &mapped);
                    order.note_room_made(run.first);
                }
            }
            assert!(order.areas() <= areas_max);
        }
        found
    }

    #[test]
    fn a_loop_finds_most_of_the_pages_that_may_be_mapped() {
        let found = found_in_a_round(16_000, 12_000, &mut |at| at);
        assert!((4_500..8_000).contains(&found), "{found} of 12000 pages, of which 8000 may be mapped");
        assert_eq!(found_in_a_round(24_000, 12_000, &mut |at| at), 12_000);
    }

    #[test]
    fn pages_that_are_used_most_stay() {
        let mut random = fastrand::Rng::with_seed(5);
        // Nine of ten accesses go to a tenth of the pages, and later to another tenth.
        let mut next = |at| {
            let hot = if at < 120_000 { 0 } else { 6_000 };
            if random.u32(0..10) > 0 { hot + random.u32(0..1_200) } else { random.u32(0..12_000) }
        };
        let found = found_in_a_round(4_000, 12_000, &mut next);
        assert!(found > 9_500, "{found} of 12000 accesses, where 2000 pages may be mapped");
    }
}
