//! Invariants after every step, and in quiet states.

use super::{World, home_of};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, PageId};

impl World {
    /// Checks the invariants of every state.
    pub fn check(&self) {
        let zeros = vec![0; self.shape.page_bytes];
        let newest = |page: PageId| self.model.get(&page).unwrap_or(&zeros);
        let place = |page: PageId| home_of(page).index() * self.shape.pages as usize + page.index as usize;
        let mut counts = vec![(0, 0); self.nodes.len() * self.shape.pages as usize];
        for (at, node) in self.nodes.iter().enumerate() {
            let cache = &node.protocol.cache;
            assert!(cache.notices() <= cache.notices_max(), "r{at} keeps {} notices", cache.notices());
            for (page, frame, access) in cache.copies() {
                let (copies, writers) = &mut counts[place(page)];
                *copies += 1;
                *writers += u32::from(access == Access::Write);
                assert_eq!(&node.frames[frame.0 as usize], newest(page), "the copy of {page:?} at r{at} is old");
            }
        }
        for page in self.pages() {
            let (copies, writers) = counts[place(page)];
            assert!(writers == 0 || copies == 1, "{page:?} has {writers} writers and {copies} copies");
            self.check_accounted(page, newest(page));
        }
        for node in &self.nodes {
            let open = node.words.iter().filter_map(|(page, word)| word.open.map(|(frame, _)| (frame, *page)));
            for (frame, page) in open {
                assert_eq!(node.protocol.cache.page_in(frame), Some(page), "{page:?} is open in {frame:?}");
            }
        }
    }

    /// The newest bytes are in the dirty owner's frame or else in the file, unless a new owner is being made.
    fn check_accounted(&self, page: PageId, newest: &Vec<u8>) {
        let home = &self.nodes[home_of(page).index()];
        let directory = &home.protocol.home;
        if directory.is_writing(page) {
            return;
        }
        if let Some(dirty_owner) = directory.dirty_owner(page) {
            let node = &self.nodes[dirty_owner.index()];
            let frame = node.protocol.cache.dirty_frame(page).expect("a dirty owner has dirty bytes");
            assert_eq!(&node.frames[frame.0 as usize], newest, "the dirty owner's {page:?} is old");
        } else if directory.is_written(page) {
            assert_eq!(&home.file[&page.index], newest, "the file's {page:?} is old");
        } else {
            assert!(newest.iter().all(|byte| *byte == 0), "{page:?} was written and nobody accounts for it");
        }
    }

    /// Checks the invariants of a quiet state: every request is answered, and every home knows the copies of its pages.
    pub fn check_quiet(&self) {
        assert!(self.recalls.is_empty(), "recalls wait for ever: {:?}", self.recalls);
        assert!(self.flights.is_empty());
        for (at, node) in self.nodes.iter().enumerate() {
            assert!(node.waiting.is_empty(), "operations of r{at} wait forever: {:?}", node.waiting);
            assert!(
                node.protocol.home.is_quiet() && node.protocol.cache.is_quiet(),
                "r{at} is stuck:\n{:#?}",
                node.protocol
            );
            assert!(node.protocol.cache.flushed(), "r{at} has not flushed");
            for (page, _, _) in node.protocol.cache.copies() {
                let home = &self.nodes[home_of(page).index()].protocol.home;
                assert!(home.holders(page).any(|h| h.rank == Rank(at as u32)), "{page:?} does not know r{at}");
                let dirty = node.protocol.cache.dirty_frame(page).is_some();
                assert_eq!(dirty, home.dirty_owner(page) == Some(Rank(at as u32)), "who accounts for {page:?}");
            }
        }
        for page in self.pages() {
            for holder in self.nodes[home_of(page).index()].protocol.home.holders(page) {
                let cache = &self.nodes[holder.rank.index()].protocol.cache;
                let is_known = cache.contains(page) || cache.has_notice(page);
                assert!(is_known, "{holder:?} has no copy of {page:?}, and will not tell");
            }
        }
    }

    /// After a flush of every rank: the files alone have the newest bytes.
    pub fn check_files(&self) {
        for (page, newest) in &self.model {
            let home = &self.nodes[home_of(*page).index()];
            let zeros = vec![0; self.shape.page_bytes];
            assert_eq!(home.file.get(&page.index).unwrap_or(&zeros), newest, "the file's {page:?} is old");
        }
    }
}
