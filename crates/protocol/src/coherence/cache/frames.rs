//! The frames of a cache: assignment to pages, and eviction.

use super::super::{Action, FrameId, PageId, Priority, ToHome, send_home};
use super::Cache;
use super::page::{AccessState, CachedPage, Phase};
use alloc::vec::Vec;

impl Cache {
    pub(in super::super) fn on_evict(&mut self, frame: FrameId, actions: &mut Vec<Action>) {
        assert!(self.evictable(frame), "{frame:?} cannot be evicted now");
        let page = self.page_in(frame).expect("an evictable frame has a page");
        let others = self.evictions as usize;
        let priority = match others.checked_sub(self.awaiting_frame.len()) {
            None => Priority::Now,
            Some(others) if others < self.awaiting_ahead.len() => Priority::Soon,
            Some(_) => Priority::Later,
        };
        self.evictions += 1;
        assert!(self.evictions <= self.frames(), "each eviction frees another frame");
        self.cached(page).deferred.evict = Some(priority);
        if priority != Priority::Now {
            self.unhurried.push_back(page);
        }
        self.close(page, actions);
    }

    /// Evicts a closed page. A clean page frees its frame at once. A dirty page frees it after the home has written the
    /// page, by this eviction or by a write-back already in flight.
    pub(super) fn evict(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let home = self.spaces.home(page);
        let cached = self.cached(page);
        let copy = cached.copy;
        assert_eq!(cached.access_state, AccessState::Closed, "{page:?} leaves once no operation uses it");
        assert!(cached.deferred.evict.is_some(), "the driver has chosen {page:?} to leave");
        if cached.outgoing > 0 || cached.phase == Phase::Evicting {
            return;
        }
        if cached.flushing {
            if cached.deferred.evict == Some(Priority::Now) {
                actions.push(send_home(home, page, ToHome::Hurry));
            }
            return;
        }
        if cached.dirty {
            cached.phase = Phase::Evicting;
            let priority = cached.deferred.evict.unwrap_or(Priority::Later);
            actions.push(send_home(home, page, ToHome::Evict { frame: cached.frame(), copy, keep: false, priority }));
            return;
        }
        self.free_frame(page, actions);
        self.note_eviction(page, copy, actions);
    }

    /// Frees the page's frame. If operations wait for the page, it awaits a frame again.
    pub(super) fn free_frame(&mut self, page: PageId, actions: &mut Vec<Action>) {
        self.mark_clean(page);
        let cached = self.pages.remove(page).expect("a page with a frame is known");
        assert_eq!(cached.outgoing, 0, "{page:?} is still being read");
        assert!(cached.overwriter.is_none(), "the operation that overwrites {page:?} needs its frame");
        let is_served = cached.is_leaving() || cached.is_serving_readers();
        debug_assert!(!is_served, "no other rank waits for {page:?} from here");
        let frame = cached.frame();
        self.free.push(frame);
        self.end_eviction(page, cached.deferred.evict);
        if !cached.readers.is_empty() || !cached.writers.is_empty() {
            let again = CachedPage { readers: cached.readers, writers: cached.writers, ..CachedPage::default() };
            self.pages.insert(page, again);
            self.await_frame(page, actions);
        } else {
            self.hand_out_frames(actions);
        }
    }

    /// Ends the eviction of a page, if one of this priority was in flight.
    pub(super) fn end_eviction(&mut self, page: PageId, evicted: Option<Priority>) {
        let Some(priority) = evicted else { return };
        assert!(self.evictions > 0, "the eviction of {page:?} was counted");
        self.evictions -= 1;
        if priority != Priority::Now {
            self.unhurried.remove(page);
        }
    }

    /// Queues a page with waiting operations for a frame.
    pub(super) fn await_frame(&mut self, page: PageId, actions: &mut Vec<Action>) {
        debug_assert!(self.contains(page) && self.frame_of(page).is_none(), "{page:?} is known and has no frame");
        self.awaiting_frame.push_back(page);
        self.hand_out_frames(actions);
        self.hurry_evictions(actions);
    }

    /// An operation now waits for a page being read ahead.
    pub(super) fn hurry_fetch(&mut self, page: PageId, actions: &mut Vec<Action>) {
        debug_assert!(self.cached(page).ahead.is_none(), "an operation waits for {page:?} now");
        if self.cached(page).phase == Phase::AwaitingFrame {
            self.awaiting_ahead.remove(page);
            self.awaiting_frame.push_back(page);
            self.hurry_evictions(actions);
        } else {
            actions.push(send_home(self.spaces.home(page), page, ToHome::Hurry));
        }
    }

    /// Raises evictions to urgent until as many are urgent as pages await a frame.
    fn hurry_evictions(&mut self, actions: &mut Vec<Action>) {
        assert!(self.unhurried.len() <= self.evictions as usize, "only pages that leave can be unhurried");
        while self.evictions as usize - self.unhurried.len() < self.awaiting_frame.len() {
            let Some(page) = self.unhurried.pop_front() else { return };
            let home = self.spaces.home(page);
            let cached = self.cached(page);
            debug_assert!(cached.deferred.evict.is_some(), "{page:?} leaves, at less haste so far");
            cached.deferred.evict = Some(Priority::Now);
            if cached.phase == Phase::Evicting || cached.flushing {
                actions.push(send_home(home, page, ToHome::Hurry));
            }
        }
    }

    /// Takes a free frame that no page awaits, for a use other than pages. [`super::super::Event::Freed`] returns it.
    pub fn take_free_frame(&mut self) -> Option<FrameId> {
        debug_assert!(
            self.free.is_empty() || self.starving() == 0,
            "free frames go to the pages that await them first"
        );
        if self.awaiting_frame.is_empty() && self.awaiting_ahead.len() == 0 {
            self.free.take(0, core::iter::empty())
        } else {
            None
        }
    }

    /// A frame taken for another use is free again.
    pub(in super::super) fn on_freed(&mut self, frame: FrameId, actions: &mut Vec<Action>) {
        assert!(self.page_in(frame).is_none(), "{frame:?} was used for something else than pages");
        self.free.push(frame);
        self.hand_out_frames(actions);
    }

    /// Places consecutive pages in consecutive frames, in groups of at most `frames`.
    pub(in super::super) fn in_groups(mut self, frames: u32) -> Cache {
        assert!(self.pages.is_empty(), "frames are in use");
        self.free = self.free.in_groups(frames);
        self
    }

    /// Takes a free frame suited to this page. One must be free.
    fn take_frame(&mut self, page: PageId) -> FrameId {
        /// Neighbour pages whose frames are examined, on each side.
        const LOOKS: usize = 2;
        let group = self.free.group();
        let first = PageId { index: page.index & !(group - 1), ..page };
        let last = PageId { index: page.index | (group - 1), ..page };
        // The frame at the same distance from the neighbour's frame as the page from the neighbour.
        let adjacent = |(other, frame): (PageId, Option<FrameId>)| {
            let frame = frame?.0.checked_add_signed(page.index.wrapping_sub(other.index) as i32)?;
            Some(FrameId(frame))
        };
        let before = self.pages.frames_before(page).take(LOOKS).take_while(|(other, _)| *other >= first);
        let behind = self.pages.frames_from(page).take(LOOKS).take_while(|(other, _)| *other <= last);
        let frame = self.free.take(page.index, before.chain(behind).filter_map(adjacent));
        let frame = frame.expect("there is a free frame");
        debug_assert!(self.page_in(frame).is_none(), "{frame:?} is free, and has no page");
        frame
    }

    /// Gives free frames to pages awaiting one.
    pub(super) fn hand_out_frames(&mut self, actions: &mut Vec<Action>) {
        while !self.free.is_empty() {
            let next = self.awaiting_frame.pop_front().or_else(|| self.awaiting_ahead.pop_front());
            let Some(page) = next else { break };
            self.fetch_into_free_frame(page, actions);
        }
    }

    /// Gives the page a free frame and asks its home for the access the waiters need.
    pub(super) fn fetch_into_free_frame(&mut self, page: PageId, actions: &mut Vec<Action>) {
        let frame = self.take_frame(page);
        debug_assert!(self.frame_of(page).is_none(), "{page:?} gets its only frame");
        self.for_others.remove(&page);
        let request = self.pages.place(page, frame).fetch(frame);
        let home = self.spaces.home(page);
        actions.push(send_home(home, page, request));
    }
}
