//! Blocks mapped in the segment: loads and stores access them in place and leave no trace.
//!
//! Only blocks of pages held by no rank are mapped: a page's blocks are unmapped before its home handles a message
//! about it. A block mapped for stores counts as dirty. Before it is written, it is mapped for loads only, so that a
//! later store faults. All of this happens under the engine's lock.

use super::super::home_page::HomePage;
use super::Blocks;
use super::copies::Copies;
use super::jobs::Needed;
use super::slots::SlotState;
use crate::work::Copier;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use vgasnet_memory::{BlockMapper, MAPPED_BLOCK_BYTES};
use vgasnet_protocol::coherence::Access;
use vgasnet_storage::BLOCK_BYTES;

const _: () = assert!(MAPPED_BLOCK_BYTES == BLOCK_BYTES);

/// A slot of the block cache, with the page and the index in the page of its block.
#[derive(Clone, Copy, Debug)]
pub(super) struct InSlot {
    pub slot: usize,
    /// Offset of the slot in the pool's memory.
    pub offset_bytes: usize,
    pub page: HomePage,
    pub block: u32,
}

/// After this many consecutive refusals by the system no blocks are mapped any more.
const REFUSALS_MAX: u32 = 64;

/// Attempts to map a block, between which others make room.
const MAP_TRIES: usize = 3;

/// The mapped blocks.
pub(super) struct MappedBlocks {
    mapper: Box<dyn BlockMapper>,
    copies: Option<Copies>,
    /// Access by slot.
    rights: Vec<Option<Access>>,
    /// Number of mapped blocks per page index.
    of_page: BTreeMap<u32, u32>,
    mapped: u32,
    /// Maximum number of mapped blocks.
    most: u32,
    /// Pages make room in order from here on.
    hand: u32,
    /// Consecutive refusals by the system.
    refusals: u32,
    /// Pages with blocks mapped for stores; `None` until a query wants them.
    opened: Option<BTreeSet<u32>>,
    /// The system has refused to unmap a block. The job ends at the next drive, before the slot is reused.
    refused: Option<i32>,
}

impl MappedBlocks {
    /// No blocks mapped of `slots`, and never more than `most`.
    pub(super) fn new(mapper: Box<dyn BlockMapper>, slots: usize, most: u32) -> MappedBlocks {
        let rights = vec![None; slots];
        MappedBlocks {
            copies: mapper.copier().map(|copier| Copies::new(Copier(copier))),
            mapper,
            rights,
            of_page: BTreeMap::new(),
            mapped: 0,
            most,
            hand: 0,
            refusals: 0,
            opened: None,
            refused: None,
        }
    }

    /// Whether any block of a page is mapped.
    pub(super) fn has(&self, index: u32) -> bool {
        self.of_page.contains_key(&index)
    }

    /// The errno value of the system's refusal to unmap a block.
    pub(super) fn refused(&self) -> Option<i32> {
        self.refused
    }

    /// Whether pages with blocks mapped for stores are noted.
    pub(super) fn is_watched(&self) -> bool {
        self.opened.is_some()
    }

    /// Starts noting them.
    pub(super) fn watch(&mut self) {
        debug_assert!(self.mapped == 0 || self.refused.is_some(), "a block mapped before would not be noticed");
        self.opened = Some(BTreeSet::new());
    }

    /// The pages noted since the last call.
    pub(super) fn take_opened(&mut self) -> BTreeSet<u32> {
        self.opened.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The pages of a range with mapped blocks.
    pub(super) fn among(&self, pages: Range<u32>) -> Vec<u32> {
        self.of_page.range(pages).map(|(index, _)| *index).collect()
    }

    /// Grows the number of slots.
    pub(super) fn grow(&mut self, slots: usize) {
        debug_assert!(slots >= self.rights.len(), "slots are numbered for good");
        self.rights.resize(slots, None);
    }

    /// Whether to map blocks at all.
    pub(super) fn has_room(&self) -> bool {
        self.most > 0 && self.refusals < REFUSALS_MAX
    }

    /// The next page to make room for other blocks.
    pub(super) fn next_to_unmap(&mut self) -> Option<u32> {
        let next = self.of_page.range(self.hand..).next().or_else(|| self.of_page.iter().next());
        let index = next.map(|(index, _)| *index);
        self.hand = index.map_or(0, |index| index + 1);
        index
    }

    /// Maps a block at least for `access`. Returns false without a change if there is no room.
    pub(super) fn map(&mut self, at: InSlot, access: Access) -> bool {
        let before = self.rights[at.slot];
        if before >= Some(access) {
            return true;
        }
        if before.is_none() && self.mapped >= self.most {
            return false;
        }
        if self.mapper.map(at.page.index(), at.block, at.offset_bytes, access).is_err() {
            self.refusals += 1;
            return false;
        }
        self.refusals = 0;
        if let Some(opened) = self.opened.as_mut().filter(|_| access == Access::Write) {
            opened.insert(at.page.index());
        }
        if self.rights[at.slot].replace(access).is_none() {
            self.mapped += 1;
            *self.of_page.entry(at.page.index()).or_default() += 1;
        }
        debug_assert!(self.mapped <= self.most, "at most so many blocks are mapped");
        true
    }

    /// Write-protects a block that is about to be written.
    pub(super) fn protect(&mut self, at: InSlot) {
        if self.rights[at.slot] != Some(Access::Write) {
            return;
        }
        if self.mapper.map(at.page.index(), at.block, at.offset_bytes, Access::Read).is_ok() {
            self.rights[at.slot] = Some(Access::Read);
        } else {
            self.unmap(at);
        }
        let is_protected = self.rights[at.slot] != Some(Access::Write);
        debug_assert!(is_protected || self.refused.is_some(), "no store changes a block that is being written");
    }

    /// Unmaps a block, if it is mapped.
    pub(super) fn unmap(&mut self, at: InSlot) {
        if self.rights[at.slot].is_none() {
            return;
        }
        if let Err(errno) = self.mapper.unmap(at.page.index(), at.block) {
            self.refused = Some(errno);
            return;
        }
        self.forget(at.slot);
        let left = self.of_page.get_mut(&at.page.index()).expect("the page had this block");
        *left -= 1;
        if *left == 0 {
            self.of_page.remove(&at.page.index());
        }
    }

    /// Unmaps all blocks of a page. `slots` contain them.
    pub(super) fn unmap_page(&mut self, index: u32, slots: impl Iterator<Item = usize>) {
        if let Err(errno) = self.mapper.unmap_page(index) {
            self.refused = Some(errno);
            return;
        }
        slots.for_each(|slot| self.forget(slot));
        self.of_page.remove(&index);
        debug_assert_eq!(self.of_page.values().sum::<u32>(), self.mapped, "each mapped block is of a page");
    }

    /// Copies blocks into the segment, if it can.
    pub(super) fn copier(&self) -> Option<Copier> {
        self.copies.as_ref().map(Copies::copier)
    }

    fn forget(&mut self, slot: usize) {
        let was_mapped = self.rights[slot].take().is_some();
        assert!(!was_mapped || self.mapped > 0, "the blocks that are mapped are counted");
        self.mapped -= u32::from(was_mapped);
    }
}

impl Blocks {
    /// Enables mapping of at most `most` blocks.
    pub(in super::super) fn map_by(&mut self, mapper: Box<dyn BlockMapper>, most: u32) {
        assert!(self.mapped.is_none(), "blocks have one mapper");
        self.mapped = Some(MappedBlocks::new(mapper, self.slots.len(), most));
    }

    pub(super) fn unmap(&mut self, slot: usize) {
        let at = self.in_slot(slot);
        self.mapped.iter_mut().for_each(|mapped| mapped.unmap(at));
    }

    /// Maps the block in a slot, at least for `access`.
    pub(super) fn map(&mut self, slot: usize, access: Access) {
        let is_watched = self.mapped.as_ref().is_some_and(MappedBlocks::is_watched);
        let access = if self.slots.state(slot) == SlotState::Dirty && !is_watched { Access::Write } else { access };
        let at = self.in_slot(slot);
        debug_assert!(at.page.is_of_segment(), "blocks of files have no address");
        for _ in 0..MAP_TRIES {
            let Some(mapped) = &mut self.mapped else { return };
            if mapped.map(at, access) {
                return;
            }
            let Some(index) = mapped.next_to_unmap() else { return };
            self.unmap_page(index);
        }
    }

    /// The copies for loads, if blocks of this page can have any.
    fn copies_of(&mut self, page: HomePage) -> Option<&mut Copies> {
        self.mapped.as_mut().filter(|_| page.is_of_segment())?.copies.as_mut()
    }

    /// Whether blocks of a page may be copied into the segment.
    pub(super) fn may_copy(&mut self, page: HomePage) -> bool {
        // A put that began before the page was opened would not keep copies away.
        let has_blocks = self.mapped.as_ref().is_some_and(|mapped| mapped.has(page.index()));
        let may_open = !has_blocks && !self.jobs.has_puts(page);
        self.copies_of(page).is_some_and(|copies| copies.is_open(page.index()) || may_open && copies.open(page.index()))
    }

    /// A put to these blocks begins: loads find no copies of them until it has ended.
    pub(super) fn close_copies(&mut self, needed: &Needed) {
        let (index, blocks) = (needed.page.index(), self.places_of(needed));
        if let Some(Err(errno)) = self.copies_of(needed.page).map(|copies| copies.close(index, blocks)) {
            self.refuse(errno);
        }
    }

    /// The put has ended.
    pub(super) fn reopen_copies(&mut self, needed: &Needed) {
        let (index, blocks) = (needed.page.index(), self.places_of(needed));
        self.copies_of(needed.page).into_iter().for_each(|copies| copies.reopen(index, blocks.clone()));
    }

    fn refuse(&mut self, errno: i32) {
        self.mapped.iter_mut().for_each(|mapped| mapped.refused = Some(errno));
    }

    fn places_of(&self, needed: &Needed) -> Range<u32> {
        let first = self.numbering.place_in_page(needed.first) as u32;
        first..first + needed.count as u32
    }

    /// Whether blocks may be mapped.
    pub(in super::super) fn may_map(&self) -> bool {
        self.mapped.as_ref().is_some_and(MappedBlocks::has_room)
    }

    /// The errno value of the system's refusal to unmap a block.
    pub(in super::super) fn refused(&self) -> Option<i32> {
        self.mapped.as_ref().and_then(MappedBlocks::refused)
    }

    /// Starts noting pages with blocks mapped for stores. First unmaps all.
    pub(in super::super) fn watch(&mut self) {
        self.unmap_pages(0..u32::MAX);
        self.mapped.iter_mut().for_each(MappedBlocks::watch);
    }

    /// Pages with blocks mapped for stores since the last call.
    pub(in super::super) fn take_opened(&mut self) -> BTreeSet<u32> {
        self.mapped.as_mut().map(MappedBlocks::take_opened).unwrap_or_default()
    }

    /// Unmaps all blocks of these pages.
    pub(in super::super) fn unmap_pages(&mut self, pages: Range<u32>) {
        let Some(mapped) = &self.mapped else { return };
        mapped.among(pages).into_iter().for_each(|index| self.unmap_page(index));
    }

    /// Unmaps all blocks of a page, and removes their copies.
    pub(in super::super) fn unmap_page(&mut self, index: u32) {
        if let Some(Err(errno)) = self.copies_of(HomePage::of_segment(index)).map(|copies| copies.drop_page(index)) {
            self.refuse(errno);
        }
        let range = self.numbering.of_page(HomePage::of_segment(index));
        if let Some(mapped) = self.mapped.as_mut().filter(|mapped| mapped.has(index)) {
            mapped.unmap_page(index, self.slots.among(range).map(|(_, slot)| slot));
        }
    }
}
