//! The invariants of the pages mapped in a rank's segment.

use crate::job::Job;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Access, FrameId, PageId};

impl Job {
    /// A mapped page is in its frame, with the rights of the mapping. A page pinned for an instruction is mapped. A
    /// page pinned by the client is mapped and open until the client unpins it.
    pub fn check_mapped(&self, rank: usize) {
        let node = &self.nodes[rank];
        let mapped = node.mapper.pages();
        for (index, mapped) in &mapped {
            self.check_use(rank, PageId::of_segment(node.space.rank, *index), mapped.frame, mapped.access);
        }
        assert_eq!(node.view().mapped() as usize, mapped.len(), "r{rank} does not know what it maps");
        for page in self.access_pins(rank) {
            assert!(
                node.mapper.at(page.index).is_some(),
                "{page:?} was unmapped while a thread of r{rank} had it pinned"
            );
        }
        let table = &node.space.own.table;
        for (page, access, is_unpinning) in self.client_pins(rank) {
            assert!(node.mapper.allows(page.index, access), "{page:?} is pinned at r{rank}, but not for {access:?}");
            assert!(
                table.is_open(page, access) || is_unpinning,
                "{page:?} is pinned by the client of r{rank}, but closed to its operations"
            );
        }
    }

    /// A block is mapped only while no rank holds its page, and at the address of the storage's copy of it.
    pub fn check_mapped_blocks(&self, rank: usize) {
        let node = &self.nodes[rank];
        for ((index, block), mapped) in node.mapper.blocks() {
            let page = PageId::of_segment(node.space.rank, index);
            assert!(!node.engine.protocol().home.has_entry(page), "a rank has {page:?}, and block {block} is mapped");
            let memory = node.engine.storage().block_in_memory(page, block as usize);
            assert_eq!(memory, Some(node.pool_memory(mapped.offset_bytes).cast_const()), "block {block} of {page:?}");
        }
    }

    /// A page borrowed from a neighbour is in its frame there, and the lender knows of the loan, so no rank writes the
    /// page elsewhere.
    pub fn check_lent(&self) {
        let mut lent = vec![0; self.nodes.len()];
        for (rank, node) in self.nodes.iter().enumerate() {
            let loans = node.view().loans().expect("every simulated rank may borrow").all();
            assert_eq!(loans.len(), node.mapper.lent().len(), "r{rank} does not know what it has borrowed");
            assert!(loans.len() <= self.shape.ranks[rank].frames as usize, "r{rank} has borrowed {loans:?}");
            for (index, (lender, frame)) in node.mapper.lent() {
                lent[lender.index()] += 1;
                self.check_use(lender.index(), PageId::of_segment(node.space.rank, index), frame, Access::Read);
                assert!(self.nodes[lender.index()].space.own.table.is_lent(frame), "{frame:?} of {lender:?}");
            }
        }
        for (node, lent) in self.nodes.iter().zip(lent) {
            let table = &node.space.own.table;
            assert_eq!(table.lent(), lent, "what {:?} has lent", node.space.rank);
            let frames = node.engine.protocol().cache.frames();
            assert!(lent <= frames / 2, "{:?} has lent {lent} of {frames} frames", node.space.rank);
            assert_eq!((0..frames).filter(|frame| table.is_lent(FrameId(*frame))).count(), lent as usize);
        }
    }

    /// When nothing is in flight, no page is pinned, and no thread waits for one.
    pub fn check_unpinned(&mut self) {
        for (rank, node) in self.nodes.iter_mut().enumerate() {
            assert!(!node.mailbox.has_any() && !node.mailbox.has_sleepers(), "a request for nobody is left at r{rank}");
            assert_eq!(node.turn, None, "a thread of r{rank} that is through has the turn");
            for index in 0..node.engine.protocol().spaces().pages(Space::of_segment(node.space.rank)) {
                assert!(!node.engine.remove_pins(index..=index), "page {index} of r{rank} is pinned for nobody");
            }
        }
    }
}
