//! Numbers of blocks: those of consecutive pages of a file are consecutive.

use super::super::home_page::HomePage;
use std::ops::Range;
use vgasnet_memory::Piece;
use vgasnet_storage::BLOCK_BYTES;

/// A block number, as [`HomePage::first_block`] counts.
pub(super) type Block = u64;

/// The numbers of blocks, for one size of pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    /// Blocks per page, as a power of two.
    shift: u32,
}

impl Numbering {
    /// For pages of this size, a power of two of blocks.
    pub(super) fn new(page_bytes: usize) -> Numbering {
        let blocks = page_bytes / BLOCK_BYTES;
        assert!(
            blocks.is_power_of_two() && page_bytes % BLOCK_BYTES == 0,
            "pages of {page_bytes} bytes have no whole blocks"
        );
        Numbering { shift: (page_bytes / BLOCK_BYTES).trailing_zeros() }
    }

    /// Number of blocks per page.
    pub(super) fn per_page(self) -> u64 {
        1 << self.shift
    }

    /// The page of a block.
    pub(super) fn page_of(self, block: Block) -> HomePage {
        HomePage::of_block(block, self.shift)
    }

    /// Index of a block in its page.
    pub(super) fn place_in_page(self, block: Block) -> u64 {
        block & (self.per_page() - 1)
    }

    /// The blocks of a page.
    pub(super) fn of_page(self, page: HomePage) -> Range<Block> {
        let first = page.first_block(self.shift);
        first..first + self.per_page()
    }

    /// The blocks of a piece of a page.
    pub(super) fn of_piece(self, page: HomePage, piece: &Piece) -> Range<Block> {
        let end_bytes = piece.offset_bytes + piece.len_bytes;
        debug_assert!(end_bytes.div_ceil(BLOCK_BYTES) as u64 <= self.per_page(), "{piece:?} lies in its page");
        self.at(page, piece.offset_bytes / BLOCK_BYTES)..self.at(page, end_bytes.div_ceil(BLOCK_BYTES))
    }

    fn at(self, page: HomePage, index: usize) -> Block {
        page.first_block(self.shift) + index as u64
    }

    /// The blocks of a file, by its slot in the storage.
    pub(super) fn of_file(self, file: u32) -> Range<Block> {
        let first = |file| HomePage::of_file(file, 0).first_block(self.shift);
        first(file)..first(file + 1)
    }

    /// The blocks of a file from a page on.
    pub(super) fn rest_of_file(self, first: HomePage) -> Range<Block> {
        first.first_block(self.shift)..self.of_file(first.slot()).end
    }

    /// Position of a block in its file, in blocks.
    pub(super) fn place_in_file(self, block: Block) -> u64 {
        block - self.of_file(self.page_of(block).slot()).start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::coherence::PageId;
    use vgasnet_protocol::{Rank, Space};

    #[test]
    fn blocks_are_numbered_in_file_order() {
        let numbering = Numbering::new(4 * BLOCK_BYTES);
        let (page, next) = (HomePage::of_file(2, 7), HomePage::of_file(2, 8));
        let blocks = numbering.of_page(page);
        assert_eq!((blocks.end, blocks.end - blocks.start), (numbering.of_page(next).start, numbering.per_page()));
        assert_eq!(blocks.clone().map(|block| numbering.place_in_page(block)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(numbering.place_in_file(blocks.start + 1), 29);
        assert!(blocks.clone().all(|block| numbering.page_of(block) == page));
        assert_eq!(numbering.rest_of_file(next), blocks.end..numbering.of_file(2).end);
        assert_eq!(numbering.of_file(2).end, numbering.of_page(HomePage::of_file(3, 0)).start);
    }

    #[test]
    fn a_piece_touches_the_blocks_of_its_first_and_last_byte() {
        let (numbering, page) = (Numbering::new(4 * BLOCK_BYTES), HomePage::of_segment(3));
        let touched = |offset_bytes, len_bytes| {
            let page_id = PageId { space: Space::of_segment(Rank(0)), index: 3 };
            let blocks = numbering.of_piece(page, &Piece { page: page_id, offset_bytes, len_bytes, start_bytes: 0 });
            (blocks.start - 12, blocks.end - 12)
        };
        assert_eq!(
            [touched(0, 1), touched(BLOCK_BYTES - 1, 2), touched(BLOCK_BYTES, BLOCK_BYTES)],
            [(0, 1), (0, 2), (1, 2)]
        );
    }
}
