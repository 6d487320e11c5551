//! The memory of a pool's frames, and a stamp of the last use of each.
//!
//! Stamps are in shared memory. They come from a clock that ticks when another frame is used than before, so using the
//! same frame again costs a load of the clock and one of the stamp.

use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_conduit::Region;
use vgasnet_protocol::coherence::FrameId;

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
    pub(super) fn stamp_bytes(frames: u32) -> usize {
        (HEADER_BYTES + frames as usize * size_of::<AtomicU64>()).next_multiple_of(64)
    }

    /// A pool of frames of `page_bytes` in `memory`, with its stamps in `stamps`, which is zero at first.
    pub fn new(memory: Region, stamps: Region, page_bytes: usize) -> Pool {
        assert!(stamps.address % HEADER_BYTES == 0 && page_bytes.is_power_of_two());
        Pool { memory, stamps, page_bytes }
    }

    /// The offset of a frame in the pool.
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

    /// The stamp of the frame's last use; it only grows.
    pub(super) fn last_use(&self, frame: FrameId) -> u64 {
        self.stamp(frame).load(Ordering::Relaxed)
    }

    fn clock(&self) -> &AtomicU64 {
        // SAFETY: the header is inside the region, aligned, mapped until the process ends, and only used as this
        // atomic.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(self.stamps.address)) }
    }

    fn stamp(&self, frame: FrameId) -> &AtomicU64 {
        let offset_bytes = HEADER_BYTES + frame.0 as usize * size_of::<AtomicU64>();
        debug_assert!(offset_bytes < self.stamps.len_bytes);
        // SAFETY: frames of this pool have a stamp inside the region (`stamp_bytes`). It is 64-byte aligned, mapped
        // until the process ends, and from the header on only used as these atomics.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(self.stamps.address + offset_bytes)) }
    }
}
