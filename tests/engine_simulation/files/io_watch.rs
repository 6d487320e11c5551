//! Who does which I/O on a shared file.

use crate::job::PAGE_BYTES;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use vgasnet::storage::{BLOCK_BYTES, IoDirection};
use vgasnet_protocol::{Rank, Stripes};

/// The blocks of a file with I/O under way, by any rank. A clone is the same.
#[derive(Clone, Default)]
pub struct IoWatch(Arc<Mutex<BTreeMap<u64, (Rank, IoDirection)>>>);

/// One rank's I/O on a file.
#[derive(Clone)]
pub struct IoUnderWay {
    pub rank: Rank,
    pub stripes: Stripes,
    pub watch: IoWatch,
}

impl IoUnderWay {
    /// An operation begins: this rank is the home of its page, and no other operation on its bytes is under way.
    pub fn begin(&self, direction: IoDirection, offset_bytes: u64, len_bytes: usize) {
        let home = self.stripes.home((offset_bytes / PAGE_BYTES as u64) as u32);
        assert_eq!(home, self.rank, "not the home does I/O: {direction:?} of {len_bytes} bytes at {offset_bytes}");
        let mut under_way = self.under_way();
        for block in blocks(offset_bytes, len_bytes) {
            let other = under_way.insert(block, (self.rank, direction));
            assert_eq!(other, None, "{direction:?} of block {block} by {} while another is under way", self.rank);
        }
    }

    /// It has ended.
    pub fn end(&self, offset_bytes: u64, len_bytes: usize) {
        let mut under_way = self.under_way();
        blocks(offset_bytes, len_bytes).for_each(|block| _ = under_way.remove(&block));
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<u64, (Rank, IoDirection)>> {
        let IoWatch(under_way) = &self.watch;
        // After a failed check the run has failed anyway, and what is dropped may still end operations.
        under_way.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn blocks(offset_bytes: u64, len_bytes: usize) -> Range<u64> {
    let block = BLOCK_BYTES as u64;
    offset_bytes / block..(offset_bytes + len_bytes as u64).div_ceil(block)
}
