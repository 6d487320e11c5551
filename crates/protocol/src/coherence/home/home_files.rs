//! The files of a home.

use super::Home;
use crate::Space;
use crate::coherence::PageId;
use alloc::vec::Vec;

impl Home {
    /// A file with pages of this home is open. Its first `pages` pages have bytes.
    pub(in super::super) fn add_file(&mut self, file: Space, pages: u32) {
        self.written.set_file(file, pages);
    }

    /// A file is closed: forgets its pages.
    pub(in super::super) fn remove_file(&mut self, file: Space) {
        assert!(file.segment().is_none(), "segments stay, and {file:?} is one");
        let known: Vec<PageId> = self.known_pages_of(file).collect();
        known.into_iter().for_each(|page| self.entries.remove(page));
        self.written.remove_file(file);
    }

    pub(in super::super) fn cut_file(&mut self, file: Space, kept: u32, pages: u32) {
        let behind: Vec<PageId> = self.known_pages_of(file).filter(|page| page.index >= kept).collect();
        behind.into_iter().for_each(|page| self.entries.remove(page));
        if self.written.has_file(file) {
            self.written.set_file(file, pages);
        }
    }

    /// Whether this home has no transaction in flight and no request pending about a page of a file.
    pub fn is_quiet_about(&self, file: Space) -> bool {
        self.entries.transient_of(file).all(|(_, entry)| entry.is_quiet())
    }

    /// The pages of a file with an entry, in order.
    pub fn known_pages_of(&self, file: Space) -> impl Iterator<Item = PageId> + '_ {
        self.entries.pages_from(*file.all_pages().start()).take_while(move |page| page.space == file)
    }
}
