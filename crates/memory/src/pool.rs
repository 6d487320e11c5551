//! The memory of a pool's frames, and a mark of each used one.
//!
//! Marks are in shared memory, one byte per frame. A use sets the mark only if it is clear, so using the same frame
//! again costs a load, and writes nothing that others share.

use std::sync::atomic::{AtomicU8, Ordering};
use vgasnet_conduit::Region;
use vgasnet_protocol::coherence::FrameId;

/// Alignment of the marks' address and size, so that their cache lines contain nothing else.
const ALIGN_BYTES: usize = 64;

/// A rank's frames and their marks: this rank's own or a neighbour's.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    memory: Region,
    marks: Region,
    page_bytes: usize,
}

impl Pool {
    /// Bytes of memory for the marks of `frames` frames; a multiple of 64.
    pub(super) fn mark_bytes(frames: u32) -> usize {
        (frames as usize * size_of::<AtomicU8>()).next_multiple_of(ALIGN_BYTES)
    }

    /// A pool of frames of `page_bytes` in `memory`, with its marks in `marks`, which is initially zero.
    pub fn new(memory: Region, marks: Region, page_bytes: usize) -> Pool {
        assert!(marks.address % ALIGN_BYTES == 0 && page_bytes.is_power_of_two());
        Pool { memory, marks, page_bytes }
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

    /// Bytes of the pool's memory from a frame on.
    pub fn bytes_from(&self, frame: FrameId) -> usize {
        self.memory.len_bytes.saturating_sub(self.offset_bytes(frame))
    }

    /// The size of a frame in bytes.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Notes a use of the frame.
    #[inline]
    pub fn touch(&self, frame: FrameId) {
        let mark = self.mark(frame);
        if mark.load(Ordering::Relaxed) == 0 {
            mark.store(1, Ordering::Relaxed);
        }
    }

    /// Whether the frame was used since the last call.
    pub(super) fn take_used(&self, frame: FrameId) -> bool {
        let mark = self.mark(frame);
        // A use between the two operations is as good as one before them.
        mark.load(Ordering::Relaxed) != 0 && mark.swap(0, Ordering::Relaxed) != 0
    }

    #[inline]
    fn mark(&self, frame: FrameId) -> &AtomicU8 {
        debug_assert!((frame.0 as usize) < self.marks.len_bytes);
        // SAFETY: frames of this pool have a mark inside the region (`mark_bytes`), which is mapped until the process
        // ends and only used as these atomics.
        unsafe { AtomicU8::from_ptr(std::ptr::with_exposed_provenance_mut(self.marks.address + frame.0 as usize)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_seen_once() {
        let marks = vec![0_u128; 12].leak();
        let address = marks.as_mut_ptr().expose_provenance().next_multiple_of(ALIGN_BYTES);
        let region = Region { address, len_bytes: Pool::mark_bytes(65) };
        assert_eq!(region.len_bytes, 128);
        let pool = Pool::new(region, region, 4096);
        pool.touch(FrameId(64));
        pool.touch(FrameId(64));
        let seen: Vec<bool> = [63, 64, 64].map(|frame| pool.take_used(FrameId(frame))).into();
        assert_eq!(seen, [false, true, false]);
    }
}
