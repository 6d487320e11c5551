//! Blocks copied into the segment, for loads: which pages may have copies.
//!
//! At first all may. A page that a rank may hold is closed, and opened again for the next load of a block.

use crate::work::Copier;
use std::ops::Range;

/// The pages of the own segment that may have copies.
pub(super) struct Copies {
    copier: Copier,
    /// A bit for each page that may have none; pages behind are open.
    closed: Vec<u64>,
}

impl Copies {
    /// All pages are open.
    pub(super) fn new(copier: Copier) -> Copies {
        Copies { copier, closed: Vec::new() }
    }

    pub(super) fn copier(&self) -> Copier {
        self.copier.clone()
    }

    pub(super) fn is_open(&self, index: u32) -> bool {
        self.closed.get(index as usize / 64).is_none_or(|bits| bits >> (index % 64) & 1 == 0)
    }

    /// Opens a page without mapped blocks that no rank holds. Returns whether it is open now.
    pub(super) fn open(&mut self, index: u32) -> bool {
        if !self.is_open(index) && self.copier.0.open_page(index).is_ok() {
            self.closed[index as usize / 64] &= !(1 << (index % 64));
        }
        self.is_open(index)
    }

    /// Removes a page's copies, before a rank may hold it.
    ///
    /// # Errors
    /// The system refuses to.
    pub(super) fn drop_page(&mut self, index: u32) -> Result<(), i32> {
        if !self.is_open(index) {
            return Ok(());
        }
        let at = index as usize / 64;
        self.closed.resize(self.closed.len().max(at + 1), 0);
        self.closed[at] |= 1 << (index % 64);
        self.copier.0.drop_page(index)
    }

    /// A put to blocks of a page begins.
    ///
    /// # Errors
    /// The system refuses to remove copies.
    pub(super) fn close(&self, index: u32, mut blocks: Range<u32>) -> Result<(), i32> {
        if !self.is_open(index) {
            return Ok(());
        }
        blocks.try_for_each(|block| self.copier.0.close(index, block))
    }

    /// The put has ended.
    pub(super) fn reopen(&self, index: u32, blocks: Range<u32>) {
        blocks.filter(|_| self.is_open(index)).for_each(|block| self.copier.0.reopen(index, block));
    }
}
