//! The open files: their ends, and the pages that could not be written or are to be dropped.

use super::file_state::FileState;
use super::own_flushes::{OwnFlush, OwnFlushes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vgasnet_protocol::coherence::{Cause, PageId};
use vgasnet_protocol::{Rank, Space};

/// The open files.
#[derive(Debug, Default)]
pub struct OpenFiles {
    files: BTreeMap<Space, OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    /// First page behind the end, as far as this rank knows.
    end: u32,
    state: Arc<FileState>,
    /// Dirty pages that could not be written. They stay until the next flush of the file.
    unwritten: BTreeSet<PageId>,
    /// Pages to be dropped that are still pinned.
    leaving: BTreeSet<PageId>,
    flushes: OwnFlushes,
}

impl OpenFiles {
    /// Adds a file of `pages` pages.
    pub fn open(&mut self, space: Space, pages: u32, state: Arc<FileState>) {
        assert!(space.segment().is_none(), "{space:?} is a segment");
        let (unwritten, leaving, flushes) = Default::default();
        let before = self.files.insert(space, OpenFile { end: pages, state, unwritten, leaving, flushes });
        assert!(before.is_none(), "{space:?} is opened once");
    }

    /// Removes a file.
    pub fn close(&mut self, space: Space) {
        self.files.remove(&space);
    }

    /// The state that file calls share, if the file is open.
    pub fn state(&self, space: Space) -> Option<&FileState> {
        self.files.get(&space).map(|file| &*file.state)
    }

    /// The state of each open file.
    pub fn states(&self) -> impl Iterator<Item = &FileState> {
        self.files.values().map(|file| &*file.state)
    }

    /// At the first member of a file's team: the other members.
    pub fn others_of(&self, space: Space) -> &[Rank] {
        self.state(space).map_or(&[], |state| state.others())
    }

    /// End of the data that this rank has written to a file, in bytes.
    pub fn written_end(&self, space: Space) -> u64 {
        self.state(space).map_or(0, |state| state.written_end())
    }

    /// Sets the file's number of pages, as far as this rank knows.
    pub fn set_end(&mut self, space: Space, pages: u32) {
        self.files.get_mut(&space).into_iter().for_each(|file| file.end = pages);
    }

    /// First page behind the end, with the pages that this rank has written. `None` if the file is not open.
    pub fn end_of(&self, space: Space, page_bytes: usize) -> Option<u32> {
        let written = self.written_end(space).div_ceil(page_bytes as u64) as u32;
        self.files.get(&space).map(|file| file.end.max(written))
    }

    /// Whether a page can be neither written nor evicted: its last write-back failed, or it is about to be dropped.
    pub fn stays(&self, page: PageId) -> bool {
        self.files.get(&page.space).is_some_and(|file| file.unwritten.contains(&page) || file.leaving.contains(&page))
    }

    /// Takes the pages to be dropped that were pinned at the last attempt.
    pub fn take_leaving(&mut self, space: Space) -> BTreeSet<PageId> {
        self.files.get_mut(&space).map(|file| std::mem::take(&mut file.leaving)).unwrap_or_default()
    }

    /// Keeps the pages to be dropped that are pinned.
    pub fn set_leaving(&mut self, space: Space, leaving: BTreeSet<PageId>) {
        if let Some(file) = self.files.get_mut(&space) {
            debug_assert!(leaving.iter().all(|page| page.space == space), "the pages are of the file");
            file.leaving = leaving;
        }
    }

    /// Adds a dirty page that could not be written.
    pub fn note_unwritten(&mut self, page: PageId) {
        self.files.get_mut(&page.space).into_iter().for_each(|file| _ = file.unwritten.insert(page));
    }

    /// Removes a page that is written or gone.
    pub fn forget_unwritten(&mut self, page: PageId) {
        self.files.get_mut(&page.space).into_iter().for_each(|file| _ = file.unwritten.remove(&page));
    }

    /// The unwritten pages of a file.
    pub fn unwritten_of(&self, space: Space) -> impl Iterator<Item = PageId> {
        self.files.get(&space).into_iter().flat_map(|file| file.unwritten.iter().copied())
    }

    /// Number of unwritten pages of the selected files.
    pub fn unwritten_pages(&self, is_meant: impl Fn(Space) -> bool) -> u32 {
        let files = self.files.iter().filter(|(space, _)| is_meant(**space));
        files.map(|(_, file)| file.unwritten.len() as u32).sum()
    }

    /// Why a page could not be written, if it could not, and its file still refuses writes.
    pub fn unwritten_because(&self, page: PageId) -> Option<Cause> {
        self.files.get(&page.space).filter(|file| file.unwritten.contains(&page))?.state.refusal()
    }

    /// Why pages of a file could not be written, if some could not.
    pub fn refusal(&self, space: Space) -> Option<Cause> {
        self.state(space)?.refusal()
    }

    /// Refuses further writes to a file by this rank. Returns whether it is open.
    pub fn refuse(&self, space: Space, cause: Cause) -> bool {
        let Some(state) = self.state(space) else { return false };
        state.refuse(cause);
        true
    }

    /// Accepts writes to a file again.
    pub fn accept(&self, space: Space) {
        self.state(space).into_iter().for_each(FileState::accept);
    }

    /// A flush tries to write all pages again. Returns whether the file is open.
    pub fn retry(&mut self, space: Space) -> bool {
        self.accept(space);
        let Some(file) = self.files.get_mut(&space) else { return false };
        file.state.forget_told_refusal();
        file.unwritten.clear();
        true
    }

    /// Begins a flush of the file by this rank alone.
    pub fn begin_flush(&mut self, space: Space) -> OwnFlush {
        self.files.get_mut(&space).map(|file| file.flushes.begin(&file.state)).unwrap_or_default()
    }

    /// Ends such a flush.
    pub fn end_flush(&mut self, space: Space, flush: OwnFlush, is_refused: bool) {
        self.files.get_mut(&space).into_iter().for_each(|file| file.flushes.end(flush, is_refused, &file.state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: Space = Space::of_file(3);

    #[test]
    fn an_unwritten_page_stays_until_a_flush_retries_it() {
        let (mut files, state) = (OpenFiles::default(), Arc::new(FileState::default()));
        let (page, other) = (PageId { space: SPACE, index: 7 }, PageId { space: SPACE, index: 8 });
        assert!(!files.refuse(SPACE, Cause(28)) && !files.retry(SPACE), "it is not open");
        files.open(SPACE, 9, Arc::clone(&state));
        assert!(files.refuse(SPACE, Cause(28)));
        files.note_unwritten(page);
        assert!(files.stays(page) && !files.stays(other));
        assert_eq!((files.unwritten_because(page), files.unwritten_because(other)), (Some(Cause(28)), None));
        assert_eq!(
            [files.unwritten_pages(|space| space == SPACE), files.unwritten_pages(|space| space != SPACE)],
            [1, 0]
        );
        assert_eq!((files.refusal(SPACE), state.errors()), (Some(Cause(28)), 1));
        assert!(files.retry(SPACE) && !files.stays(page));
        assert_eq!((files.refusal(SPACE), files.unwritten_of(SPACE).count()), (None, 0));
    }

    #[test]
    fn a_page_to_be_dropped_stays_while_it_is_pinned() {
        let (mut files, page) = (OpenFiles::default(), PageId { space: SPACE, index: 7 });
        files.open(SPACE, 9, Arc::default());
        files.set_leaving(SPACE, [page].into_iter().collect());
        assert!(files.stays(page));
        assert_eq!(files.take_leaving(SPACE).len(), 1);
        assert!(!files.stays(page) && files.take_leaving(SPACE).is_empty());
    }

    #[test]
    fn the_end_is_the_farthest_known() {
        let (mut files, state) = (OpenFiles::default(), Arc::new(FileState::default()));
        assert_eq!(files.end_of(SPACE, 4096), None);
        files.open(SPACE, 9, Arc::clone(&state));
        state.note_written_end(10 * 4096 + 1);
        assert_eq!((files.end_of(SPACE, 4096), files.written_end(SPACE)), (Some(11), 40_961));
        state.forget_end();
        files.set_end(SPACE, 2);
        assert_eq!(files.end_of(SPACE, 4096), Some(2));
        files.close(SPACE);
        assert!(files.state(SPACE).is_none() && files.others_of(SPACE).is_empty());
    }
}
