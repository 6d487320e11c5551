//! Blocks that are mapped in the segment: loads and stores use them where they are, and leave no trace.
//!
//! Only blocks of pages that no rank holds are mapped: those of a page are unmapped before its home hears of a message about it. A
//! block that is mapped for stores counts as dirty. It is mapped for loads only before it is written, so that a store after
//! that is seen. All of it happens under the engine's lock.

use crate::memory::{BlockMapper, MAPPED_BLOCK_BYTES};
use crate::storage::BLOCK_BYTES;
use std::collections::HashMap;
use vgasnet_protocol::coherence::Access;

const _: () = assert!(MAPPED_BLOCK_BYTES == BLOCK_BYTES);

/// A slot of the block cache, and the block in it: of which page, and which one of that.
#[derive(Clone, Copy, Debug)]
pub(super) struct InSlot {
    pub(super) slot: usize,
    pub(super) index: u32,
    pub(super) block: u32,
}

/// The blocks that are mapped.
pub(super) struct MappedBlocks {
    mapper: Box<dyn BlockMapper>,
    /// By slot.
    rights: Vec<Option<Access>>,
    /// How many each page has, by its index.
    of_page: HashMap<u32, u32>,
    mapped: u32,
    /// The most that may be mapped.
    most: u32,
    /// Slots are unmapped in order from here on where others need room.
    hand: usize,
    /// The system has refused to unmap a block: the job has to end before its slot is used again.
    refused: Option<i32>,
}

impl MappedBlocks {
    /// None is mapped of `slots`, and never more than `most`.
    pub(super) fn new(mapper: Box<dyn BlockMapper>, slots: usize, most: u32) -> MappedBlocks {
        let rights = vec![None; slots];
        MappedBlocks { mapper, rights, of_page: HashMap::new(), mapped: 0, most, hand: 0, refused: None }
    }

    /// Whether any block of a page is mapped.
    pub(super) fn has(&self, index: u32) -> bool {
        self.of_page.contains_key(&index)
    }

    /// The error number of the system, where it has refused to unmap a block.
    pub(super) fn refused(&self) -> Option<i32> {
        self.refused
    }

    /// The slot that is to make room for another one, if one has to.
    pub(super) fn in_the_way(&mut self) -> Option<usize> {
        if self.mapped < self.most {
            return None;
        }
        let slots = self.rights.len();
        let found = (self.hand..self.hand + slots).map(|at| at % slots).find(|at| self.rights[*at].is_some());
        self.hand = found.map_or(0, |at| at + 1);
        found
    }

    /// Maps a block, at least for `access`. Where the system has no room, it stays as it was, and no more are mapped from now on
    /// than are now.
    pub(super) fn map(&mut self, at: InSlot, access: Access) {
        let before = self.rights[at.slot];
        if self.most == 0 || before >= Some(access) {
            return;
        }
        if self.mapper.map(at.index, at.block, at.slot as u32, access).is_err() {
            self.most = self.mapped;
        } else if self.rights[at.slot].replace(access).is_none() {
            self.mapped += 1;
            *self.of_page.entry(at.index).or_default() += 1;
        }
    }

    /// Takes the right to store from a block, which is about to be written.
    pub(super) fn protect(&mut self, at: InSlot) {
        if self.rights[at.slot] != Some(Access::Write) {
            return;
        }
        if self.mapper.map(at.index, at.block, at.slot as u32, Access::Read).is_ok() {
            self.rights[at.slot] = Some(Access::Read);
        } else {
            self.unmap(at);
        }
    }

    /// Unmaps a block, if it is mapped.
    pub(super) fn unmap(&mut self, at: InSlot) {
        if self.rights[at.slot].is_none() {
            return;
        }
        if let Err(errno) = self.mapper.unmap(at.index, at.block) {
            self.refused = Some(errno);
            return;
        }
        self.forget(at.slot);
        let left = self.of_page.get_mut(&at.index).expect("the page had this block");
        *left -= 1;
        if *left == 0 {
            self.of_page.remove(&at.index);
        }
    }

    /// Unmaps all blocks of a page, which are in some of these slots.
    pub(super) fn unmap_page(&mut self, index: u32, slots: impl Iterator<Item = usize>) {
        if let Err(errno) = self.mapper.unmap_page(index) {
            self.refused = Some(errno);
            return;
        }
        slots.for_each(|slot| self.forget(slot));
        self.of_page.remove(&index);
    }

    fn forget(&mut self, slot: usize) {
        self.mapped -= u32::from(self.rights[slot].take().is_some());
    }
}
