//! What holds of what a rank's segment maps.

use crate::job::Job;
use vgasnet_protocol::coherence::{Access, PageId};

impl Job {
    /// What is mapped is held, with these rights and in this frame; what is pinned for loads and stores is mapped, and what the
    /// client has pinned can be used in every way until it says otherwise.
    pub fn check_mapped(&self, rank: usize) {
        let node = &self.nodes[rank];
        let mapped = node.mapper.pages();
        for (index, mapped) in &mapped {
            self.check_use(rank, PageId { home: node.space.rank, index: *index }, mapped.frame, mapped.access);
        }
        assert_eq!(node.view().mapped() as usize, mapped.len(), "r{rank} does not know what it maps");
        for page in self.kept_pages(rank) {
            assert!(node.mapper.at(page.index).is_some(), "{page:?} was unmapped from a thread of r{rank}");
        }
        let table = &node.space.own.table;
        for (page, access, is_released) in self.held_pages(rank) {
            assert!(node.mapper.allows(page.index, access), "{page:?} is pinned at r{rank}, but not for {access:?}");
            let slot = node.space.slots.of(page);
            let is_open = if access == Access::Write { table.is_writable(slot) } else { table.is_readable(slot) };
            assert!(is_open || is_released, "{page:?} is held at r{rank}, and shut to its operations");
        }
    }

    /// When nothing is under way, nobody has any page pinned, or waits to.
    pub fn check_let_go(&mut self) {
        for (rank, node) in self.nodes.iter_mut().enumerate() {
            assert!(!node.mailbox.has_any() && !node.mailbox.has_sleepers(), "r{rank} waits for a page for nobody");
            assert_eq!(node.turn, None, "a thread of r{rank} that is through keeps the turn");
            for index in 0..node.space.pages_of(node.space.rank) {
                assert!(!node.engine.remove_pins(index..=index), "page {index} of r{rank} stays held for nobody");
            }
        }
    }
}
