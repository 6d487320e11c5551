//! CLOCK-Pro: pages reused soon enough are hot and stay; a scan passes through the small set of cold frames.
//!
//! Jiang, Chen and Zhang, "CLOCK-Pro" (2005), with two queues in place of one ring. The clock counts arriving pages.
//!
//! ```text
//!            comes                               comes back, or is used again after a while,
//!   page ──────────▶ cold ──not used──▶ history  and since longer ago than that the first hot page is unused
//!                     ▲ │                  │                │
//!                     │ └──────────────────┴────────────────┴──▶ hot
//!                     └──────────── unused for the longest ──────┘
//! ```
//!
//! A page's test period lasts from its own last use to the time the first hot page was last seen used. A page used
//! within it becomes hot and replaces the first hot page, which was not used. In a cyclic scan each page returns after
//! as many others as lie between two uses of any hot page, so no page replaces another: a page once hot stays, and hits
//! in each round.
//!
//! If a page replaces a recently evicted hot page, cold pages get more frames. If a returning page finds all hot pages
//! used, cold pages get fewer.
//!
//! The first look at a cold page is meaningless: its mark dates from the use that fetched it, which may still go on.
//! Half of the cold pages have had their first look. Each victim therefore costs one first look, and a page has time
//! for its write-back between the two looks.

use super::history::History;
use super::queues::{POLICY, Queues};
use super::search::{Look, Search};
use super::{Policy, age};
use crate::coherence::{FrameId, PageId};
use alloc::boxed::Box;
use alloc::vec;

const COLD: usize = POLICY;
const HOT: usize = POLICY + 1;
/// Cold pages not yet visited by the hand.
const FRESH: usize = POLICY + 2;

/// At least one frame in this many is for cold pages.
const COLD_PART: u32 = 10;

/// Frames for cold pages in small pools, if at most half of them.
const COLD_MIN: u32 = 3;

/// Hot pages examined for each candidate replacement.
const RIVALS: u32 = 2;

/// State of a frame's page.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Time of its last observed use; for a returned page, before its eviction.
    used_at: u64,
    /// Time of arrival, lower half; enough for cold pages.
    came_at: u32,
    /// Set if it was recently evicted and the hand has not visited it since: the number of such pages it represents,
    /// else 0.
    came_back: u8,
    is_hot: bool,
    /// The hand has not visited the page since it arrived.
    is_fresh: bool,
    /// Evicted so recently that slightly more cold frames would have kept it.
    is_soon: bool,
}

/// The hot and the cold pages of a pool.
#[derive(Debug)]
pub struct ClockPro {
    entries: Box<[Entry]>,
    history: History,
    /// Pages arrived so far.
    now: u64,
    /// Current, maximum and minimum number of hot pages.
    hot_now: u32,
    hot_max: u32,
    hot_min: u32,
    /// Number of next arrivals that may become hot at once.
    vacant: u32,
    /// Uses of a page within this many arrivals count as one.
    apart_min: u64,
}

impl ClockPro {
    /// A pool of `frames` empty frames.
    pub fn new(frames: u32) -> ClockPro {
        let entry = Entry { is_hot: false, is_fresh: false, came_at: 0, used_at: 0, came_back: 0, is_soon: false };
        let cold = (frames / COLD_PART).max(COLD_MIN.min(frames / 2));
        assert!(cold <= frames, "cold pages are some of all");
        ClockPro {
            entries: vec![entry; frames as usize].into(),
            history: History::new(frames),
            now: 0,
            vacant: 0,

            hot_now: frames - cold,
            hot_max: frames - cold,
            hot_min: cold.min(frames - cold),
            apart_min: u64::from(2 * cold),
        }
    }

    fn entry(&mut self, frame: FrameId) -> &mut Entry {
        &mut self.entries[frame.0 as usize]
    }

    fn make_hot(&mut self, frame: FrameId, queues: &mut Queues) {
        let now = self.now;
        let entry = self.entry(frame);
        (entry.is_hot, entry.used_at) = (true, now);
        queues.push_back(HOT, frame);
        debug_assert!(queues.len(HOT) <= self.entries.len() as u32, "a frame is in one queue");
    }

    fn make_cold(&mut self, frame: FrameId, queues: &mut Queues) {
        let entry = self.entry(frame);
        debug_assert!(entry.is_hot, "{frame:?} cools");
        (entry.is_hot, entry.is_fresh, entry.came_back) = (false, false, 0);
        queues.push_back(COLD, frame);
    }

    /// Examines up to `looks` hot pages for one unused and last seen used before `before`, and makes it cold.
    fn cool_one(&mut self, search: &mut Search<'_>, looks: u32, before: u64) -> bool {
        for _ in 0..looks {
            let Some(frame) = search.queues.front(HOT) else { return false };
            if self.entry(frame).used_at >= before {
                return false;
            }
            debug_assert!(self.entry(frame).is_hot, "{frame:?} is in the queue of hot pages");
            match search.look(frame) {
                Look::Held => {}
                Look::InUse | Look::Used => self.make_hot(frame, search.queues),
                Look::Unused => {
                    self.make_cold(frame, search.queues);
                    search.will_go(frame);
                    return true;
                }
            }
        }
        false
    }

    /// Makes a cold page last used at `used_at` hot, if a hot page has been unused for longer.
    fn promote(&mut self, frame: FrameId, search: &mut Search<'_>, used_at: u64) -> bool {
        let has_place =
            search.queues.len(HOT) < self.hot_now || self.cool_one(search, RIVALS, self.clearly_before(used_at));
        if has_place {
            debug_assert!(!self.entry(frame).is_hot, "{frame:?} becomes hot");
            self.make_hot(frame, search.queues);
        }
        has_place
    }

    /// A margin, because times are approximate.
    fn clearly_before(&self, used_at: u64) -> u64 {
        used_at.saturating_sub(self.apart_min / 2)
    }

    /// A page representing forgotten ones has become hot. Reserves their places for the next pages.
    fn vacate(&mut self, search: &mut Search<'_>, stands_for: u8, used_at: u64) {
        let cooled =
            (1..stands_for).take_while(|_| self.cool_one(search, RIVALS, self.clearly_before(used_at))).count();
        self.vacant = (self.vacant + cooled as u32).min(self.hot_max);
        debug_assert!(self.vacant <= self.hot_max, "only hot pages leave vacant places");
    }

    /// The hand passes a cold page. Returns whether the page stays.
    fn pass(&mut self, frame: FrameId, is_used: bool, search: &mut Search<'_>) -> bool {
        let now = self.now;
        debug_assert!(!self.entry(frame).is_hot, "the hand passes cold pages, and {frame:?} is hot");
        debug_assert!((self.hot_min..=self.hot_max).contains(&self.hot_now), "hot pages are limited");
        let Entry { is_fresh, came_at, used_at, came_back, is_soon, .. } = *self.entry(frame);
        let is_again = came_back > 0 || (is_used && !is_fresh && age(now, came_at) >= self.apart_min);
        if is_again && self.promote(frame, search, used_at) {
            if came_back > 0 && is_soon {
                self.hot_now = self.hot_now.saturating_sub(1).max(self.hot_min);
            }
            self.vacate(search, came_back, used_at);
            return true;
        }
        if is_fresh && self.vacant > 0 && search.queues.len(HOT) < self.hot_now {
            self.vacant -= 1;
            self.make_hot(frame, search.queues);
            return true;
        }
        if came_back > 0 {
            self.hot_now = (self.hot_now + 1).min(self.hot_max);
        }
        let entry = self.entry(frame);
        (entry.is_fresh, entry.came_back) = (false, 0);
        if is_used || came_back > 0 {
            entry.used_at = now;
        }
        if is_fresh || (is_used && search.gives_chance()) {
            search.queues.push_back(COLD, frame);
            if is_fresh {
                search.will_go(frame);
            }
            return true;
        }
        false
    }

    fn evict(&mut self, frame: FrameId, search: &mut Search<'_>) {
        let was_listed = search.queues.remove(frame);
        debug_assert!(was_listed, "{frame:?} was in a queue of the policy");
        let Entry { used_at, .. } = *self.entry(frame);
        debug_assert!(!self.entry(frame).is_hot, "cold pages leave, and {frame:?} is hot");
        self.history.on_evicted(search.page(frame), used_at, self.now);
    }

    /// Keeps a cold page possibly without other copies: it replaces an unused hot page, if there is one.
    fn spare(&mut self, frame: FrameId, search: &mut Search<'_>) {
        debug_assert!(!self.entry(frame).is_hot, "{frame:?} is cold, and stays");
        if self.cool_one(search, RIVALS, u64::MAX) {
            self.make_hot(frame, search.queues);
        } else {
            search.queues.push_back(COLD, frame);
        }
    }

    /// Makes the first hot page cold, because no cold page can be evicted. Returns whether there was one.
    fn cool_any(&mut self, search: &mut Search<'_>) -> bool {
        self.cool_one(search, 2 * RIVALS, u64::MAX)
            || search.queues.front(HOT).map(|frame| self.make_cold(frame, search.queues)).is_some()
    }
}

impl Policy for ClockPro {
    fn on_filled(&mut self, frame: FrameId, page: PageId, queues: &mut Queues) {
        debug_assert!(queues.list_of(frame).is_none(), "{frame:?} has a new page, and is in no queue");
        self.now += 1;
        let now = self.now;
        let known = self.history.take(page, now);
        let (came_back, used_at) = known.map_or((0, now), |gone| (gone.stands_for, gone.used_at));
        let is_soon = known.is_some_and(|gone| now - gone.evicted_at <= self.apart_min);
        *self.entry(frame) = Entry { is_hot: false, is_fresh: true, came_at: now as u32, used_at, came_back, is_soon };
        if now <= self.entries.len() as u64 && queues.len(HOT) < self.hot_now {
            self.make_hot(frame, queues);
        } else {
            queues.push_back(FRESH, frame);
        }
    }

    fn put_back(&mut self, frame: FrameId, queues: &mut Queues) {
        debug_assert!(queues.list_of(frame) < Some(POLICY), "{frame:?} was held");
        let list = match *self.entry(frame) {
            Entry { is_hot: true, .. } => HOT,
            Entry { is_fresh: true, .. } => FRESH,
            _ => COLD,
        };
        queues.push_back(list, frame);
    }

    fn pick(&mut self, search: &mut Search<'_>) -> Option<FrameId> {
        let mut in_use = 0;
        if search.queues.len(HOT) > self.hot_now {
            self.cool_one(search, RIVALS, u64::MAX);
        }
        let cold = |queues: &Queues| queues.len(COLD) + queues.len(FRESH);
        for _ in 0..=2 * (cold(search.queues) + search.queues.len(HOT)) + search.spares_left() {
            if in_use >= cold(search.queues) && !self.cool_any(search) {
                return None;
            }
            let (seen, fresh) = (search.queues.len(COLD), search.queues.len(FRESH));
            let list = if fresh > seen || (fresh > 0 && in_use >= seen) { FRESH } else { COLD };
            let frame = search.queues.front(list)?;
            match search.look(frame) {
                Look::Held => {}
                Look::InUse if search.is_over() => return None,
                Look::InUse => {
                    in_use += 1;
                    search.queues.push_back(list, frame);
                }
                look => {
                    in_use = 0;
                    if self.pass(frame, look == Look::Used, search) {
                        continue;
                    }
                    if !search.spares(frame) {
                        self.evict(frame, search);
                        return Some(frame);
                    }
                    self.spare(frame, search);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FillKind, FrameState, FrameUse, Need, PolicyKind, Replacement};
    use super::*;
    use crate::Rank;
    use std::collections::HashMap;
    use std::vec::Vec;

    struct Marks(Vec<bool>);

    impl FrameUse for Marks {
        fn state(&self, _frame: FrameId) -> FrameState {
            FrameState::Idle
        }

        fn is_ahead(&self, _frame: FrameId) -> bool {
            false
        }

        fn take_used(&mut self, frame: FrameId) -> bool {
            core::mem::take(&mut self.0[frame.0 as usize])
        }
    }

    /// The hits of a cyclic scan of `pages` pages in its last round.
    fn hits_of_last_round(frames: u32, pages: u32, uses: u32) -> u32 {
        let mut pool = Replacement::new(Box::new(ClockPro::new(frames)), frames);
        let (mut marks, mut frame_of, mut hits) = (Marks(std::vec![false; frames as usize]), HashMap::new(), 0);
        let mut page_in = std::vec![None; frames as usize];
        for at in 0..6 * pages {
            let page = PageId::of_segment(Rank(0), at % pages);
            for _ in 0..uses {
                if let Some(FrameId(frame)) = frame_of.get(&page) {
                    marks.0[*frame as usize] = true;
                    hits += u32::from(at >= 5 * pages);
                    continue;
                }
                let frame =
                    if at < frames { FrameId(at) } else { pool.victim(&mut marks, Need::Now).expect("all are idle") };
                if let Some(gone) = page_in[frame.0 as usize].replace(page) {
                    frame_of.remove(&gone);
                }
                frame_of.insert(page, frame);
                pool.on_filled(frame, page, FillKind::ForUse);
                marks.0[frame.0 as usize] = true;
            }
        }
        hits
    }

    #[test]
    fn a_cyclic_scan_keeps_what_fits_whatever_its_length() {
        for (frames, pages) in [(16, 32), (32, 64), (128, 256), (1024, 2048), (1000, 1100), (1000, 1500), (1000, 5000)]
        {
            let hits = hits_of_last_round(frames, pages, 1);
            assert!(hits >= frames * 8 / 10, "{hits} of {pages} pages in {frames} frames");
            let missed = pages - hits;
            assert_eq!(hits_of_last_round(frames, pages, 3), 3 * pages - missed, "several uses of a page are one");
        }
    }

    /// Frames that may hold only copies; none is used.
    struct OnlyCopies(Vec<bool>);

    impl FrameUse for OnlyCopies {
        fn state(&self, _frame: FrameId) -> FrameState {
            FrameState::Idle
        }

        fn is_ahead(&self, _frame: FrameId) -> bool {
            false
        }

        fn take_used(&mut self, _frame: FrameId) -> bool {
            false
        }

        fn is_only_copy(&self, frame: FrameId) -> bool {
            self.0[frame.0 as usize]
        }
    }

    #[test]
    fn where_all_are_only_copies_one_goes_however_small_the_pool() {
        for policy in [PolicyKind::ClockPro, PolicyKind::Clock] {
            for frames in 1..12 {
                let mut pool = Replacement::new(policy.make(frames), frames);
                let mut copies = OnlyCopies(std::vec![true; frames as usize]);
                let page = |at| PageId::of_segment(Rank(0), at);
                (0..frames).for_each(|frame| pool.on_filled(FrameId(frame), page(frame), FillKind::ForUse));
                for at in 0..100 {
                    let frame = pool.victim(&mut copies, Need::Now);
                    let frame = frame.unwrap_or_else(|| panic!("all of {frames} are idle, {policy:?}"));
                    pool.on_filled(frame, page(frames + at), FillKind::ForUse);
                }
            }
        }
    }

    #[test]
    fn only_copies_go_after_second_ones_and_some_goes_in_any_case() {
        for policy in [PolicyKind::ClockPro, PolicyKind::Clock] {
            for (only, most) in [(0, 0), (32, 4), (48, 8), (60, 16)] {
                let mut pool = Replacement::new(policy.make(64), 64);
                let mut copies = OnlyCopies((0..64).map(|frame| frame % 64 < only).collect());
                (0..64).for_each(|frame| {
                    pool.on_filled(FrameId(frame), PageId::of_segment(Rank(0), frame), FillKind::ForUse)
                });
                let mut gone = 0;
                for at in 64..1064 {
                    let frame = pool.victim(&mut copies, Need::Now).expect("all are idle");
                    // The page fetched into it is a second copy.
                    gone += u32::from(core::mem::take(&mut copies.0[frame.0 as usize]));
                    pool.on_filled(frame, PageId::of_segment(Rank(0), at), FillKind::ForUse);
                }
                assert!(gone <= most, "{gone} only copies of {only} with {policy:?}");
            }
        }
    }
}
