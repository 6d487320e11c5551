//! Places of blocks that were mapped, in pages whose other blocks may have copies.
//!
//! A block that is unmapped is a hole, without access. It is opened to copies with the holes beside it, once one of them is
//! beside an open block: apart from those it would stay a mapping of its own.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// The mapped blocks and the holes, by number in the segment. `true` for a hole.
#[derive(Default)]
pub(super) struct BlockPlaces(BTreeMap<u64, bool>);

/// What to open after a block was unmapped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opens {
    Nothing,
    /// These holes.
    Blocks(RangeInclusive<u64>),
    /// The whole page: it has holes only.
    Page,
}

impl BlockPlaces {
    pub(super) fn on_mapped(&mut self, block: u64) {
        self.0.insert(block, false);
    }

    /// A block of a page with these blocks was unmapped. What is to be opened is open from now on.
    pub(super) fn on_unmapped(&mut self, block: u64, page: Range<u64>) -> Opens {
        debug_assert!(page.contains(&block), "block {block} is of its page");
        self.0.insert(block, true);
        let is_hole = |at: &u64| self.0.get(at) == Some(&true);
        let first = (page.start..block).rev().take_while(is_hole).last().unwrap_or(block);
        let last = (block + 1..page.end).take_while(is_hole).last().unwrap_or(block);
        let is_open = |at: u64| page.contains(&at) && !self.0.contains_key(&at);
        let is_whole = first == page.start && last + 1 == page.end;
        let is_beside_open = first.checked_sub(1).is_some_and(is_open) || is_open(last + 1);
        if !is_whole && !is_beside_open {
            return Opens::Nothing;
        }
        self.forget(first..last + 1);
        if is_whole { Opens::Page } else { Opens::Blocks(first..=last) }
    }

    /// These blocks were unmapped together.
    pub(super) fn forget(&mut self, blocks: Range<u64>) {
        while let Some((block, _)) = self.0.range(blocks.clone()).next() {
            let block = *block;
            self.0.remove(&block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_opened_once_they_are_beside_open_blocks() {
        let (mut places, page) = (BlockPlaces::default(), 8..16);
        [9, 10, 11].into_iter().for_each(|block| places.on_mapped(block));
        assert_eq!(places.on_unmapped(10, page.clone()), Opens::Nothing);
        assert_eq!(places.on_unmapped(11, page.clone()), Opens::Blocks(10..=11));
        assert_eq!(places.on_unmapped(9, page.clone()), Opens::Blocks(9..=9));
        page.clone().for_each(|block| places.on_mapped(block));
        let opens: Vec<Opens> = page.clone().map(|block| places.on_unmapped(block, page.clone())).collect();
        assert!(opens[..7].iter().all(|opens| *opens == Opens::Nothing) && opens[7] == Opens::Page, "{opens:?}");
        places.on_mapped(8);
        places.forget(page.clone());
        assert!(places.0.is_empty());
    }
}
