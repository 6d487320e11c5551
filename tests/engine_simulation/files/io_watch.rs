//! Checks which rank does which I/O on a shared file.

use crate::job::PAGE_BYTES;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use vgasnet_protocol::{Rank, Stripes};
use vgasnet_storage::{BLOCK_BYTES, IoDirection};

/// The blocks of a file with I/O in flight, by any rank. Clones share the blocks.
#[derive(Clone, Default)]
pub struct IoWatch(Arc<Mutex<BTreeMap<u64, (Rank, IoDirection)>>>);

/// One rank's I/O on a file.
#[derive(Clone)]
pub struct RankIo {
    pub rank: Rank,
    pub stripes: Stripes,
    pub watch: IoWatch,
}

impl RankIo {
    /// An operation begins. This rank must be the home of its page, and no other operation on its bytes may be in
    /// flight.
    pub fn begin(&self, direction: IoDirection, offset_bytes: u64, len_bytes: usize) {
        let home = self.stripes.home((offset_bytes / PAGE_BYTES as u64) as u32);
        assert_eq!(home, self.rank, "not the home does I/O: {direction:?} of {len_bytes} bytes at {offset_bytes}");
        let mut in_flight = self.in_flight();
        for block in blocks(offset_bytes, len_bytes) {
            let other = in_flight.insert(block, (self.rank, direction));
            assert_eq!(other, None, "{direction:?} of block {block} by {} while another is under way", self.rank);
        }
    }

    /// An operation ends.
    pub fn end(&self, offset_bytes: u64, len_bytes: usize) {
        let mut in_flight = self.in_flight();
        blocks(offset_bytes, len_bytes).for_each(|block| _ = in_flight.remove(&block));
    }

    fn in_flight(&self) -> MutexGuard<'_, BTreeMap<u64, (Rank, IoDirection)>> {
        let IoWatch(in_flight) = &self.watch;
        // After a failed check the run has failed, and dropped values may still end operations.
        in_flight.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn blocks(offset_bytes: u64, len_bytes: usize) -> Range<u64> {
    let block = BLOCK_BYTES as u64;
    offset_bytes / block..(offset_bytes + len_bytes as u64).div_ceil(block)
}
