//! Write-behind of dirty file pages, and their limit of half of the frames. Unwritable pages stay dirty and must leave
//! room: the pages of other files get half of the frames not taken by them.

use super::open_files::OpenFiles;
use crate::request::Part;
use std::collections::VecDeque;
use vgasnet_memory::PageTable;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Cache, Cause, PageId};

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

/// The first file page in page order. Pages of segments come before.
const FIRST: PageId = PageId { space: Space::of_file(0), index: 0 };

/// Position of write-behind, and the parts waiting for it.
#[derive(Debug)]
pub(super) struct WriteBehind {
    next: PageId,
    held: VecDeque<Part>,
    recent: VecDeque<PageId>,
}

/// A part that no longer waits until fewer pages are dirty.
#[derive(Debug)]
pub enum Resumed {
    /// Its page may become dirty.
    Passes(Part),
    /// No page in its way can be written.
    Fails(Part, Cause),
}

impl Default for WriteBehind {
    fn default() -> WriteBehind {
        WriteBehind { next: FIRST, held: VecDeque::new(), recent: VecDeque::with_capacity(RECENT) }
    }
}

impl WriteBehind {
    /// Number of parts waiting until fewer pages are dirty.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Number of write-backs to begin for them.
    pub(super) fn writes_due(&self) -> usize {
        self.held.len().min(WRITES_MAX)
    }

    /// Makes a part wait.
    pub(super) fn hold(&mut self, part: Part) {
        debug_assert!(part.copy.is_put() && part.piece.page.space.segment().is_none(), "only puts to files wait");
        self.held.push_back(part);
    }

    /// Resumes the first waiting part, if its page may become dirty or never will.
    pub(super) fn resume(&mut self, cache: &Cache, files: &OpenFiles) -> Option<Resumed> {
        debug_assert!(self.held.iter().all(|part| part.copy.is_put()), "only puts wait until fewer pages are dirty");
        let page = self.held.front()?.piece.page;
        if may_be_dirtied(page, cache, files) {
            return self.held.pop_front().map(Resumed::Passes);
        }
        let cause = refusal_to_dirty(page, cache, files)?;
        self.held.pop_front().map(|part| Resumed::Fails(part, cause))
    }

    /// Whether a page that has become dirty starts the write-back of another one.
    pub(super) fn is_due_after(&self, page: PageId, cache: &Cache) -> bool {
        // Pages being written do not count; otherwise pages would be written before they are full. Segment pages among
        // them only delay this.
        let waiting = cache.dirty_of_files().saturating_sub(cache.write_backs());
        waiting > cache.frames() / BEHIND_PART && !self.recent.contains(&page)
    }

    /// The next dirty page not in use, to be written now. If a part waits and all are in use, one of them: it is
    /// closed, so its user reports when it is done. Otherwise the part could wait for ever.
    pub(super) fn next(
        &mut self,
        is_awaited: bool,
        cache: &Cache,
        table: &PageTable,
        files: &OpenFiles,
    ) -> Option<PageId> {
        let may_go = |page: PageId, is_in_use: bool| {
            let frame = cache.dirty_frame(page).filter(|frame| cache.evictable(*frame));
            frame.is_some_and(|frame| is_in_use || !table.is_pinned(frame)) && !files.stays(page)
        };
        // Write-backs in flight will let parts proceed.
        let looks = if is_awaited && cache.flushed() { usize::MAX } else { LOOKS_MAX };
        let from = |page, is_in_use| cache.dirty_from(page).take(looks).find(|page| may_go(*page, is_in_use));
        let idle = from(self.next, false).or_else(|| from(FIRST, false));
        let page = idle.or_else(|| from(FIRST, true).filter(|_| is_awaited))?;
        self.next = PageId { index: page.index + 1, ..page };
        debug_assert!(page.space.segment().is_none(), "only pages of files are written behind");
        self.note_recent(page);
        Some(page)
    }

    fn note_recent(&mut self, page: PageId) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(page);
        debug_assert!(self.recent.len() <= RECENT, "so many write-backs are remembered");
    }
}

/// Whether a file page may become dirty now.
pub(super) fn may_be_dirtied(page: PageId, cache: &Cache, files: &OpenFiles) -> bool {
    debug_assert!(page.space.segment().is_none(), "pages of segments may always be dirtied");
    let is_below = |most| cache.dirty_of_files() < most;
    let frames = cache.frames();
    cache.will_be_dirty(page) || is_below(dirty_max(frames, 0)) || is_below(dirty_max_for(page, frames, files))
}

/// Why a page cannot become dirty: the dirty pages in its way are unwritable.
pub(super) fn refusal_to_dirty(page: PageId, cache: &Cache, files: &OpenFiles) -> Option<Cause> {
    if files.unwritten_pages(|_| true) < dirty_max_for(page, cache.frames(), files) {
        return None;
    }
    files.refusal(page.space).or_else(|| cache.dirty_from(FIRST).find_map(|page| files.unwritten_because(page)))
}

/// Maximum number of dirty file pages for this one to become dirty.
fn dirty_max_for(page: PageId, frames: u32, files: &OpenFiles) -> u32 {
    dirty_max(frames, files.unwritten_pages(|space| space != page.space))
}

/// Maximum number of dirty file pages, given the number of unwritable pages of other files.
fn dirty_max(frames: u32, unwritten: u32) -> u32 {
    let most = unwritten + frames.saturating_sub(unwritten) / HELD_PART;
    debug_assert!(most <= frames.max(unwritten), "no more pages are dirty than there are frames");
    most.min(frames - frames.div_ceil(FREE_PART)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Completion, Copy, ServedId};
    use std::sync::Arc;
    use vgasnet_memory::Piece;
    use vgasnet_protocol::{Rank, Spaces};

    fn page(file: u32) -> PageId {
        PageId { space: Space::of_file(file), index: 0 }
    }

    fn put(page: PageId) -> Part {
        let piece = Piece { page, offset_bytes: 0, len_bytes: 1, start_bytes: 0 };
        let completion = Completion::Served(ServedId { request: 0, piece: 0 });
        Part { piece, copy: Copy::Put(std::ptr::null_mut()), completion }
    }

    #[test]
    fn unwritable_pages_of_other_files_raise_the_limit_to_three_quarters() {
        assert_eq!([0, 16, 32, 64].map(|unwritten| dirty_max(64, unwritten)), [32, 40, 48, 48]);
        assert_eq!([dirty_max(1, 0), dirty_max(2, 0)], [1, 1], "one page can always become dirty");
    }

    #[test]
    fn a_held_part_passes_below_the_limit() {
        let (mut behind, files) = (WriteBehind::default(), OpenFiles::default());
        let cache = Cache::new(Rank(0), 8, Spaces::new([4]));
        assert!(behind.resume(&cache, &files).is_none() && behind.writes_due() == 0);
        (0..20).for_each(|_| behind.hold(put(page(3))));
        assert_eq!((behind.held(), behind.writes_due()), (20, WRITES_MAX));
        assert!(matches!(behind.resume(&cache, &files), Some(Resumed::Passes(part)) if part.piece.page == page(3)));
        assert_eq!(behind.held(), 19);
    }

    #[test]
    fn only_unwritable_pages_refuse_others() {
        let (mut files, cache) = (OpenFiles::default(), Cache::new(Rank(0), 4, Spaces::new([4])));
        files.open(page(3).space, 9, Arc::default());
        files.open(page(4).space, 9, Arc::default());
        (0..2).for_each(|index| files.note_unwritten(PageId { index, ..page(3) }));
        files.refuse(page(3).space, Cause(28));
        assert_eq!(refusal_to_dirty(page(3), &cache, &files), Some(Cause(28)), "half of the frames are unwritable");
        assert_eq!(refusal_to_dirty(page(4), &cache, &files), None, "another file has half of the rest");
    }

    #[test]
    fn the_latest_pages_are_remembered() {
        let mut behind = WriteBehind::default();
        let pages: Vec<PageId> = (0..=RECENT as u32).map(|index| PageId { index, ..page(3) }).collect();
        pages.iter().for_each(|page| behind.note_recent(*page));
        assert_eq!(behind.recent.make_contiguous(), &pages[1..]);
    }
}
