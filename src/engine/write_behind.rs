//! Dirty pages of files are written behind, and are no more than half of the frames: what cannot be written stays, and must leave room.
//! Where one file cannot be written, others get half of what its pages leave.

use super::aging::Aging;
use super::{Engine, Work};
use crate::request::Part;
use std::collections::VecDeque;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Cause, Event, PageId};

/// Pages are written behind while one frame in so many is dirty with a file's page and not being written yet, and no more get so while one
/// in so many is dirty.
const BEHIND_PART: u32 = 4;
const HELD_PART: u32 = 2;

/// One frame in so many is not dirty with pages of files, though none of several can be written.
const FREE_PART: u32 = 4;

/// Dirty pages that a search for one to write passes over, because they are in use, or could not be written, unless parts would wait for
/// ever.
const LOOKS_MAX: usize = 64;

/// So many pages are begun to be written at a time for parts that wait.
const WRITES_MAX: usize = 16;

/// Pages that were written behind last. If one of them gets dirty again, writing gains nothing: in a small pool each write would wait for
/// the one before to reach the disk.
const RECENT: usize = 8;

/// Where writing goes on, and the parts that wait for it.
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
    /// Whether no part is held back, and nothing grows old.
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

/// The first page of a file: those of segments come before.
const FIRST: PageId = PageId { space: Space::of_file(0), index: 0 };

impl Engine {
    /// Takes a part of which the page may get dirty. It comes back unless it has to wait until fewer are.
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
        let (is_first, is_in_vain) = (self.held_parts() == 0, self.why_in_vain(part.piece.page).is_some());
        self.write_behind.held.push_back(part);
        if !is_in_vain {
            // For the others each drive looks, once.
            self.write_one_behind(is_first);
        }
        None
    }

    /// Whether a page of a file may get dirty now.
    fn may_pass(&self, page: PageId) -> bool {
        let cache = &self.protocol.cache;
        let is_below = |most| cache.dirty_of_files() < most;
        cache.will_be_dirty(page) || is_below(self.dirty_pages_max(0)) || is_below(self.dirty_pages_max_for(page))
    }

    /// How many pages of files may be dirty, where so many are of other files and cannot be written.
    fn dirty_pages_max(&self, unwritten: u32) -> u32 {
        let frames = self.protocol.cache.frames();
        let most = unwritten + frames.saturating_sub(unwritten) / HELD_PART;
        most.min(frames - frames.div_ceil(FREE_PART)).max(1)
    }

    /// How many may be for this one to get so.
    fn dirty_pages_max_for(&self, page: PageId) -> u32 {
        self.dirty_pages_max(self.files.unwritten_pages(|space| space != page.space))
    }

    /// A page of a file may be dirty from now on: another one is written, if many are dirty.
    pub(super) fn on_soiled(&mut self, page: PageId) {
        if page.space.segment().is_some() {
            return;
        }
        self.note_age(page);
        let cache = &self.protocol.cache;
        // What is being written is older. Were it counted, pages would be written before they are full. Pages of segments that are being
        // written only delay this.
        let waiting = cache.dirty_of_files().saturating_sub(cache.write_backs());
        if waiting > cache.frames() / BEHIND_PART && !self.write_behind.recent.contains(&page) {
            self.write_one_behind(false);
        }
    }

    /// Begins to write the next dirty page that is not in use. If a part waits for that, and there is none, one that is in use does: it is
    /// closed, so who uses it tells when it is through. Nobody would, and the part would wait for ever.
    fn write_one_behind(&mut self, is_awaited: bool) {
        let (cache, files, table) = (&self.protocol.cache, &self.files, &self.space.own.table);
        let may_go = |page: PageId, is_in_use: bool| {
            let frame = cache.dirty_frame(page).filter(|frame| cache.evictable(*frame));
            frame.is_some_and(|frame| is_in_use || !table.is_pinned(frame)) && !files.stays(page)
        };
        // What is being written already lets parts go on.
        let looks = if is_awaited && cache.flushed() { usize::MAX } else { LOOKS_MAX };
        let from = |page, is_in_use| cache.dirty_from(page).take(looks).find(|page| may_go(*page, is_in_use));
        let idle = from(self.write_behind.next, false).or_else(|| from(FIRST, false));
        let Some(page) = idle.or_else(|| from(FIRST, true).filter(|_| is_awaited)) else { return };
        self.write_behind.next = PageId { index: page.index + 1, ..page };
        self.write_behind.aging.on_written(page);
        self.write_behind.note_recent(page);
        self.events.push_back(Event::WriteBack(page));
    }

    /// Lets parts go on that have waited until fewer pages are dirty. Where nothing can be written, they fail.
    pub(super) fn retry_held(&mut self) {
        while let Some(part) = self.write_behind.held.pop_front() {
            if self.may_pass(part.piece.page) {
                self.fetch_for(part);
            } else if let Some(cause) = self.why_in_vain(part.piece.page) {
                self.work.push_back(Work::Fail { parts: vec![part], cause });
            } else {
                self.write_behind.held.push_front(part);
                break;
            }
        }
        for nth in 0..self.write_behind.held.len().min(WRITES_MAX) {
            self.write_one_behind(nth == 0);
        }
        // What is to be written behind must reach the storage in this drive: there may be no other.
        if !self.events.is_empty() {
            self.handle_events();
        }
    }

    /// Why a page cannot get dirty, if the pages that keep it from that are such as could not be written.
    fn why_in_vain(&self, page: PageId) -> Option<Cause> {
        if self.files.unwritten_pages(|_| true) < self.dirty_pages_max_for(page) {
            return None;
        }
        let (cache, files) = (&self.protocol.cache, &self.files);
        files.refusal(page.space).or_else(|| cache.dirty_from(FIRST).find_map(|page| files.unwritten_because(page)))
    }

    /// How many parts wait until fewer pages are dirty.
    pub fn held_parts(&self) -> usize {
        self.write_behind.held.len()
    }
}
