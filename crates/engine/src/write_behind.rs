//! Write-behind of dirty file pages, and their limit of half of the frames. Unwritable pages stay dirty and must leave
//! room: the pages of other files get half of the frames not taken by them.

use super::aging::Aging;
use super::{Engine, Work};
use crate::request::Part;
use std::collections::VecDeque;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Cause, Event, PageId};

/// Write-behind runs while more than one frame in this many is dirty with a file page not yet being written. At one in
/// [`HELD_PART`] no more pages may become dirty.
const BEHIND_PART: u32 = 4;
const HELD_PART: u32 = 2;

/// One frame in this many is never dirty with a file page, even with several unwritable files.
const FREE_PART: u32 = 4;

/// Maximum dirty pages that a search skips because they are in use or unwritable, unless parts would wait for ever.
const LOOKS_MAX: usize = 64;

/// Maximum write-backs begun at a time for waiting parts.
const WRITES_MAX: usize = 16;

/// Number of latest write-behinds remembered. If such a page becomes dirty again, writing gains nothing: in a small
/// pool each write would wait for the one before to reach the disk.
const RECENT: usize = 8;

/// Position of write-behind, and the parts waiting for it.
#[derive(Debug)]
pub(super) struct WriteBehind {
    next: PageId,
    held: VecDeque<Part>,
    recent: VecDeque<PageId>,
    pub(super) aging: Aging,
}

impl Default for WriteBehind {
    fn default() -> WriteBehind {
        let recent = VecDeque::with_capacity(RECENT);
        WriteBehind { next: FIRST, held: VecDeque::new(), recent, aging: Aging::default() }
    }
}

impl WriteBehind {
    /// Whether no part is held back and no page ages.
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.aging.is_idle()
    }

    fn note_recent(&mut self, page: PageId) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(page);
    }
}

/// The first file page in page order. Pages of segments come before.
const FIRST: PageId = PageId { space: Space::of_file(0), index: 0 };

impl Engine {
    /// Returns a part unless it would dirty a page beyond the limit. Then it is held until fewer pages are dirty.
    #[inline]
    pub(super) fn pass_or_hold(&mut self, part: Part) -> Option<Part> {
        if part.piece.page.space.segment().is_some() || !part.copy.is_put() {
            return Some(part);
        }
        self.pass_or_hold_of_file(part)
    }

    #[inline(never)]
    fn pass_or_hold_of_file(&mut self, part: Part) -> Option<Part> {
        if self.may_pass(part.piece.page) {
            return Some(part);
        }
        let (is_first, is_refused) = (self.held_parts() == 0, self.refusal_to_dirty(part.piece.page).is_some());
        self.write_behind.held.push_back(part);
        if !is_refused {
            // Each drive continues for the other parts.
            self.write_one_behind(is_first);
        }
        None
    }

    /// Whether a file page may become dirty now.
    fn may_pass(&self, page: PageId) -> bool {
        let cache = &self.protocol.cache;
        let is_below = |most| cache.dirty_of_files() < most;
        cache.will_be_dirty(page) || is_below(self.dirty_pages_max(0)) || is_below(self.dirty_pages_max_for(page))
    }

    /// Maximum number of dirty file pages, given the number of unwritable pages of other files.
    fn dirty_pages_max(&self, unwritten: u32) -> u32 {
        let frames = self.protocol.cache.frames();
        let most = unwritten + frames.saturating_sub(unwritten) / HELD_PART;
        most.min(frames - frames.div_ceil(FREE_PART)).max(1)
    }

    /// Maximum number of dirty file pages for this one to become dirty.
    fn dirty_pages_max_for(&self, page: PageId) -> u32 {
        self.dirty_pages_max(self.files.unwritten_pages(|space| space != page.space))
    }

    /// A file page may be dirty from now on: starts the write-back of another one if many are dirty.
    pub(super) fn on_dirtied(&mut self, page: PageId) {
        if page.space.segment().is_some() {
            return;
        }
        self.note_age(page);
        let cache = &self.protocol.cache;
        // Pages being written do not count; otherwise pages would be written before they are full. Segment pages among
        // them only delay this.
        let waiting = cache.dirty_of_files().saturating_sub(cache.write_backs());
        if waiting > cache.frames() / BEHIND_PART && !self.write_behind.recent.contains(&page) {
            self.write_one_behind(false);
        }
    }

    /// Starts the write-back of the next dirty page not in use. If a part waits and all are in use, takes one of them:
    /// it is closed, so its user reports when it is done. Otherwise the part could wait for ever.
    fn write_one_behind(&mut self, is_awaited: bool) {
        let (cache, files, table) = (&self.protocol.cache, &self.files, &self.space.own.table);
        let may_go = |page: PageId, is_in_use: bool| {
            let frame = cache.dirty_frame(page).filter(|frame| cache.evictable(*frame));
            frame.is_some_and(|frame| is_in_use || !table.is_pinned(frame)) && !files.stays(page)
        };
        // Write-backs in flight will let parts proceed.
        let looks = if is_awaited && cache.flushed() { usize::MAX } else { LOOKS_MAX };
        let from = |page, is_in_use| cache.dirty_from(page).take(looks).find(|page| may_go(*page, is_in_use));
        let idle = from(self.write_behind.next, false).or_else(|| from(FIRST, false));
        let Some(page) = idle.or_else(|| from(FIRST, true).filter(|_| is_awaited)) else { return };
        self.write_behind.next = PageId { index: page.index + 1, ..page };
        self.write_behind.aging.on_written(page);
        self.write_behind.note_recent(page);
        self.queue.raise(Event::WriteBack(page));
    }

    /// Resumes parts held until fewer pages are dirty. If no page can be written, they fail.
    pub(super) fn retry_held(&mut self) {
        while let Some(part) = self.write_behind.held.pop_front() {
            if self.may_pass(part.piece.page) {
                self.fetch_for(part);
            } else if let Some(cause) = self.refusal_to_dirty(part.piece.page) {
                self.queue.add(Work::Fail { parts: vec![part], cause });
            } else {
                self.write_behind.held.push_front(part);
                break;
            }
        }
        for nth in 0..self.write_behind.held.len().min(WRITES_MAX) {
            self.write_one_behind(nth == 0);
        }
        // The write-backs must reach the storage in this drive, since no other may follow.
        if self.queue.has_events() {
            self.handle_events();
        }
    }

    /// Why a page cannot become dirty: the dirty pages in its way are unwritable.
    fn refusal_to_dirty(&self, page: PageId) -> Option<Cause> {
        if self.files.unwritten_pages(|_| true) < self.dirty_pages_max_for(page) {
            return None;
        }
        let (cache, files) = (&self.protocol.cache, &self.files);
        files.refusal(page.space).or_else(|| cache.dirty_from(FIRST).find_map(|page| files.unwritten_because(page)))
    }

    /// Number of parts waiting until fewer pages are dirty.
    pub fn held_parts(&self) -> usize {
        self.write_behind.held.len()
    }
}
