//! A copier of blocks without a segment, which keeps its copies.

use crate::job::Job;
use crate::mapper::Mapper;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::slice;
use vgasnet_memory::BlockCopier;
use vgasnet_protocol::coherence::PageId;
use vgasnet_storage::BLOCK_BYTES;

/// A block by page and position there.
type Place = (u32, u32);

/// The copies in a rank's segment.
#[derive(Default)]
pub struct Copies {
    blocks: BTreeMap<Place, Box<[u8]>>,
    /// In the order in which they were made, with some that have been removed.
    order: VecDeque<Place>,
    /// Puts by block.
    puts: BTreeMap<Place, u32>,
    /// Pages without access: they were mapped, and not opened again.
    covered: BTreeSet<u32>,
    opened: u64,
}

impl Copies {
    pub fn assert_without(&self, index: u32) {
        let mut blocks = self.blocks.range((index, 0)..(index + 1, 0));
        assert!(blocks.next().is_none(), "page {index} is mapped, and has a copy of a block");
    }

    /// A mapping has taken the place of a block.
    pub fn replace(&mut self, place: Place) {
        self.blocks.remove(&place);
    }

    /// A page was unmapped, and is without access unless there are too many such ones.
    pub fn cover(&mut self, index: u32) {
        if self.covered.is_empty() {
            self.covered.insert(index);
        }
        self.blocks.retain(|place, _| place.0 != index);
    }

    /// All blocks of a page were unmapped together.
    pub fn cover_blocks(&mut self, index: u32) {
        self.covered.insert(index);
        self.blocks.retain(|place, _| place.0 != index);
    }
}

impl Mapper {
    /// The copy for a load at a byte of page `index`.
    pub fn copy_at(&self, index: u32, offset_bytes: usize) -> Option<*mut u8> {
        let place = (index, (offset_bytes / BLOCK_BYTES) as u32);
        let in_block = offset_bytes % BLOCK_BYTES;
        self.state().copies.blocks.get_mut(&place).map(|bytes| bytes.as_mut_ptr().wrapping_add(in_block))
    }

    /// Pages opened again for copies.
    pub fn opened(&self) -> u64 {
        self.state().copies.opened
    }
}

/// Copies blocks into the segment of a rank.
pub struct CopiesTwin(pub Mapper);

impl BlockCopier for CopiesTwin {
    fn open_page(&self, index: u32) -> Result<(), i32> {
        let mut state = self.0.state();
        state.assert_unmapped(index);
        state.copies.opened += 1;
        state.copies.covered.remove(&index);
        Ok(())
    }

    fn drop_page(&self, index: u32) -> Result<(), i32> {
        let copies = &mut self.0.state().copies;
        copies.blocks.retain(|place, _| place.0 != index);
        copies.puts.retain(|place, _| place.0 != index);
        Ok(())
    }

    unsafe fn copy(&self, index: u32, block: u32, from: *const u8) -> bool {
        let most = self.0.settings().copies_max;
        let (mut state, place) = (self.0.state(), (index, block));
        let is_mapped = state.maps_part_of(index, block);
        let copies = &mut state.copies;
        if is_mapped || copies.covered.contains(&index) || copies.puts.contains_key(&place) {
            return false;
        }
        // SAFETY: by the contract of the function.
        copies.blocks.insert(place, unsafe { slice::from_raw_parts(from, BLOCK_BYTES) }.into());
        copies.order.push_back(place);
        if copies.order.len() > most {
            let oldest = copies.order.pop_front().expect("there are some");
            copies.blocks.remove(&oldest);
        }
        true
    }

    fn close(&self, index: u32, block: u32) -> Result<(), i32> {
        let copies = &mut self.0.state().copies;
        copies.blocks.remove(&(index, block));
        *copies.puts.entry((index, block)).or_default() += 1;
        Ok(())
    }

    fn reopen(&self, index: u32, block: u32) {
        let puts = &mut self.0.state().copies.puts;
        let left = puts.get(&(index, block)).map(|puts| puts - 1);
        puts.remove(&(index, block));
        puts.extend(left.filter(|left| *left > 0).map(|left| ((index, block), left)));
    }
}

impl Job {
    /// A copy exists only while no rank holds its page, and has the newest bytes.
    pub fn check_copied_blocks(&self, rank: usize) {
        let node = &self.nodes[rank];
        for ((index, block), bytes) in &node.mapper.state().copies.blocks {
            let page = PageId::of_segment(node.space.rank, *index);
            assert!(!node.engine.protocol().home.has_entry(page), "a rank has {page:?}, and block {block} is copied");
            let newest = &self.model.page(page)[*block as usize * BLOCK_BYTES..][..BLOCK_BYTES];
            assert!(**bytes == *newest, "the copy of block {block} of {page:?} is old");
        }
    }
}
