//! Read-ahead of blocks for small operations at equal distances ([`Strides`]).
//!
//! Such blocks are read together, into the block cache of their home. A neighbour's home is asked for a byte of each, if
//! no rank holds its page. Homes on other hosts are not asked: there a held page might move for it. A faulting thread may
//! have a small stack, so this is out of line.

#[cfg(doc)]
use vgasnet_protocol::strides::Strides;

use super::Engine;
use crate::request::{Completion, Copy, Part};
use vgasnet_memory::Piece;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::PageId;
use vgasnet_stats::{self as stats, Row};
use vgasnet_storage::BLOCK_BYTES;

/// Maximum blocks of a place that are read ahead. The first ones hide the time of the others.
const BLOCKS_MAX: u64 = 4;

/// With as many small operations at other ranks in flight no block is asked for ahead of others.
const SHIPPED_MAX: usize = 32;

/// A stream with more places in a page reads none ahead: soon its pages move, and are then read ahead as a whole.
const PLACES_OF_PAGE_MAX: u64 = 48;

impl Engine {
    /// A small operation is carried out in blocks. Reads ahead of it if it belongs to a strided stream.
    #[inline(never)]
    pub(super) fn read_ahead_of(&mut self, piece: &Piece) {
        let (space, page_bytes) = (piece.page.space, self.space.page_bytes() as u64);
        if space.segment().is_none() || piece.len_bytes == 0 {
            return;
        }
        let start = u64::from(piece.page.index) * page_bytes + piece.offset_bytes as u64;
        let places = self.strides.as_mut().and_then(|strides| strides.on_access(space, start));
        let Some(places) = places else { return };
        if places.stride_bytes() * PLACES_OF_PAGE_MAX < page_bytes {
            return;
        }
        for start in places.starts() {
            let (first, last) = (start / BLOCK_BYTES as u64, (start + piece.len_bytes as u64 - 1) / BLOCK_BYTES as u64);
            (first..=last).take(BLOCKS_MAX as usize).for_each(|block| self.read_block_ahead(space, block));
        }
    }

    /// Reads a block of a space, by its number there, unless it is in memory or its page is in use.
    fn read_block_ahead(&mut self, space: Space, block: u64) {
        let each = (self.space.page_bytes() / BLOCK_BYTES) as u64;
        let Ok(index) = u32::try_from(block / each) else { return };
        let page = PageId { space, index };
        if !self.protocol.spaces().has(page) || self.protocol.cache.contains(page) {
            return;
        }
        let piece = Piece { page, offset_bytes: (block % each) as usize * BLOCK_BYTES, len_bytes: 1, start_bytes: 0 };
        let part = Part { piece, copy: Copy::ReadAhead, completion: Completion::Nobody };
        let home = self.protocol.spaces().home(page);
        if home != self.space.rank {
            if self.bytes.shipped() < SHIPPED_MAX && self.neighbour_reads.lacks_block(&piece, home) {
                stats::count(Row::BlockAhead);
                self.bytes.ship(home, part);
            }
            return;
        }
        let is_plain = !self.protocol.home.has_entry(page) && self.protocol.home.is_written(page);
        let may_read = is_plain && !self.bytes.has_deferred(page) && self.storage.has_room_ahead();
        if may_read && !self.storage.has_blocks(&part) {
            stats::count(Row::BlockAhead);
            self.paging.on_blocks_missed(1);
            self.storage.start_on_blocks(part, true, self.queue.todo());
        }
    }
}
