//! The frames of a pool and the order in which they were used last.
//!
//! Each frame has a stamp in shared memory, taken from a clock that ticks when another frame is used than before. Using a
//! frame again costs one load of each. [`Lru`] is the engine's view: it learns of new stamps when it looks for a victim.

use crate::coherence::FrameId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_conduit::Region;

/// Bytes before the first stamp: the clock, in a cache line of its own.
const HEADER_BYTES: usize = 64;

/// A rank's frames and their stamps: this rank's own or a neighbour's.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    memory: Region,
    stamps: Region,
    page_bytes: usize,
}

impl Pool {
    /// Memory that the stamps of `frames` frames need, in bytes; a multiple of 64.
    pub fn stamp_bytes(frames: u32) -> usize {
        (HEADER_BYTES + frames as usize * size_of::<AtomicU64>()).next_multiple_of(64)
    }

    /// A pool of frames of `page_bytes` in `memory`, with its stamps in `stamps`, which is zero at first.
    pub fn new(memory: Region, stamps: Region, page_bytes: usize) -> Pool {
        assert!(stamps.address % HEADER_BYTES == 0 && page_bytes.is_power_of_two());
        Pool { memory, stamps, page_bytes }
    }

    /// Where in the pool a frame starts, in bytes.
    pub fn offset_bytes(&self, frame: FrameId) -> usize {
        frame.0 as usize * self.page_bytes
    }

    /// The first byte of a frame.
    #[inline]
    pub fn frame(&self, frame: FrameId) -> *mut u8 {
        let offset_bytes = self.offset_bytes(frame);
        debug_assert!(offset_bytes + self.page_bytes <= self.memory.len_bytes);
        std::ptr::with_exposed_provenance_mut(self.memory.address + offset_bytes)
    }

    /// The size of a frame in bytes.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Notes that the frame is being used.
    #[inline]
    pub fn touch(&self, frame: FrameId) {
        let (clock, stamp) = (self.clock(), self.stamp(frame));
        let seen = stamp.load(Ordering::Relaxed);
        // The clock starts at 0 too, which is the stamp of a frame that was never used.
        if seen == 0 || seen != clock.load(Ordering::Relaxed) {
            stamp.store(clock.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    fn clock(&self) -> &AtomicU64 {
        // SAFETY: the header is inside the region, aligned, mapped until the process ends, and only used as this atomic.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(self.stamps.address)) }
    }

    fn stamp(&self, frame: FrameId) -> &AtomicU64 {
        let offset_bytes = HEADER_BYTES + frame.0 as usize * size_of::<AtomicU64>();
        debug_assert!(offset_bytes < self.stamps.len_bytes);
        // SAFETY: frames of this pool have a stamp inside the region (stamp_bytes); the region is 64-byte aligned, mapped
        // until the process ends, and this part of it is only used as these atomics.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(self.stamps.address + offset_bytes)) }
    }
}

/// The frames of a pool, the least recently used first.
///
/// A frame is filed under the stamp it had when last looked at. Stamps only grow, so a frame that comes up with the stamp
/// it is filed under is the least recently used of all.
#[derive(Debug)]
pub struct Lru {
    filed: BinaryHeap<Reverse<(u64, FrameId)>>,
    passed_over: Vec<Reverse<(u64, FrameId)>>,
}

impl Lru {
    /// The order of `frames` frames, none of them used yet.
    pub fn new(frames: u32) -> Lru {
        Lru { filed: (0..frames).map(|frame| Reverse((0, FrameId(frame)))).collect(), passed_over: Vec::new() }
    }

    /// The least recently used frame that `suits`.
    pub fn find(&mut self, pool: &Pool, mut suits: impl FnMut(FrameId) -> bool) -> Option<FrameId> {
        let mut found = None;
        while let Some(Reverse((filed, frame))) = self.filed.pop() {
            let stamp = pool.stamp(frame).load(Ordering::Relaxed);
            if stamp > filed {
                self.filed.push(Reverse((stamp, frame)));
                continue;
            }
            self.passed_over.push(Reverse((filed, frame)));
            if suits(frame) {
                found = Some(frame);
                break;
            }
        }
        self.filed.extend(self.passed_over.drain(..));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(frames: u32) -> Pool {
        let stamp_bytes = Pool::stamp_bytes(frames);
        let stamps = vec![0u64; stamp_bytes / 8 + 8].leak();
        let address = stamps.as_mut_ptr().expose_provenance().next_multiple_of(HEADER_BYTES);
        let memory = Region { address: 4096, len_bytes: frames as usize * 4096 };
        Pool::new(memory, Region { address, len_bytes: stamp_bytes }, 4096)
    }

    #[test]
    fn the_least_recently_used_frame_comes_first() {
        let (pool, mut lru) = (pool(5), Lru::new(5));
        for frame in [0, 1, 2, 3, 4, 2, 0, 2, 4].map(FrameId) {
            pool.touch(frame);
        }
        let mut gone = Vec::new();
        while let Some(frame) = lru.find(&pool, |frame| !gone.contains(&frame)) {
            gone.push(frame);
        }
        assert_eq!(gone, [1, 3, 0, 2, 4].map(FrameId));
        pool.touch(FrameId(1));
        assert_eq!(lru.find(&pool, |_| true), Some(FrameId(3)));
        assert_eq!(lru.find(&pool, |_| false), None);
    }
}
