//! The frame to give up, and the time to do so.

use crate::coherence::FrameId;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The frames of a pool, the least recently used first.
///
/// Each frame has a stamp, which grows when the frame is used. A frame is filed under the stamp that it had when it was
/// looked at last. So the least recently used frame is the first one in the heap that still has the stamp it is filed
/// under.
#[derive(Debug)]
pub struct Lru {
    filed: BinaryHeap<Reverse<(u64, FrameId)>>,
    /// Frames that [`Lru::find`] has looked at; empty between calls.
    passed_over: Vec<Reverse<(u64, FrameId)>>,
}

impl Lru {
    /// The order of `frames` frames, none of them used yet.
    pub fn new(frames: u32) -> Lru {
        Lru { filed: (0..frames).map(|frame| Reverse((0, FrameId(frame)))).collect(), passed_over: Vec::new() }
    }

    /// The least recently used frame that `suits`; `None` if no frame does. `stamp_of` gives the stamps of now.
    pub fn find(
        &mut self,
        stamp_of: impl Fn(FrameId) -> u64,
        mut suits: impl FnMut(FrameId) -> bool,
    ) -> Option<FrameId> {
        let mut found = None;
        while let Some(Reverse((filed, frame))) = self.filed.pop() {
            let stamp = stamp_of(frame);
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

/// The most frames that are kept free.
const RESERVE_FRAMES_MAX: u32 = 32;
/// The most bytes of such frames.
const RESERVE_BYTES_MAX: usize = 32 << 20;

/// The frames to keep free: evictions run ahead of need, so that a miss finds a free frame and dirty pages are written
/// back several at a time.
///
/// A page that finds no free frame shows that the pool is smaller than the working set. Then evictions run ahead for
/// twice as many pages as the reserve has frames: each page that takes a frame starts evictions until the whole reserve
/// is free or being evicted. A working set that fits the pool has no such page, and one burst beyond the pool costs few
/// pages.
#[derive(Debug)]
pub struct Reserve {
    /// How large it is.
    frames: u32,
    /// Pages that may still start evictions.
    pages_left: u32,
}

impl Reserve {
    /// The reserve of a pool of `frames` frames: an eighth of them at most.
    pub fn new(frames: u32, page_bytes: usize) -> Reserve {
        let frames = (frames / 8).min((RESERVE_BYTES_MAX / page_bytes) as u32).min(RESERVE_FRAMES_MAX);
        Reserve { frames, pages_left: 0 }
    }

    /// A page found no free frame.
    pub fn on_shortage(&mut self) {
        self.pages_left = 2 * self.frames;
    }

    /// A page took a frame.
    pub fn on_taken(&mut self) {
        self.pages_left = self.pages_left.saturating_sub(1);
    }

    /// Whether another eviction is to be started, where `free` frames are free or being evicted.
    pub fn wants_more(&self, free: u32) -> bool {
        self.pages_left > 0 && free < self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn the_least_recently_used_frame_comes_first() {
        let stamps = RefCell::new([0_u64; 5]);
        let touch = |frame: usize| {
            let mut stamps = stamps.borrow_mut();
            stamps[frame] = stamps.iter().max().expect("five") + 1;
        };
        let stamp_of = |frame: FrameId| stamps.borrow()[frame.0 as usize];
        let mut lru = Lru::new(5);
        [0, 1, 2, 3, 4, 2, 0, 2, 4].into_iter().for_each(touch);
        let mut gone = Vec::new();
        while let Some(frame) = lru.find(stamp_of, |frame| !gone.contains(&frame)) {
            gone.push(frame);
        }
        assert_eq!(gone, [1, 3, 0, 2, 4].map(FrameId));
        touch(1);
        assert_eq!(lru.find(stamp_of, |_| true), Some(FrameId(3)));
        assert_eq!(lru.find(stamp_of, |_| false), None);
    }

    #[test]
    fn evictions_run_ahead_only_after_a_shortage() {
        let mut reserve = Reserve::new(64, 4 << 20);
        assert!(!reserve.wants_more(0), "there was no shortage yet");
        reserve.on_shortage();
        assert!(reserve.wants_more(7) && !reserve.wants_more(8));
        (0..15).for_each(|_| reserve.on_taken());
        assert!(reserve.wants_more(0));
        reserve.on_taken();
        assert!(!reserve.wants_more(0), "it may fit by now");
        let mut small = Reserve::new(7, 4 << 20);
        small.on_shortage();
        assert!(!small.wants_more(0), "a small pool needs all its frames");
        assert_eq!(Reserve::new(1 << 20, 64 << 10).frames, RESERVE_FRAMES_MAX);
    }
}
