//! Finds the frame of a page: buckets, each with a chain of frames.
//!
//! Only the engine of the pool's rank changes the chains. All threads read them without a lock. A reader of a changing
//! chain may find nothing, or a frame of another page. It always terminates, and checks the entry that it finds.

use super::word::{Entry, Key};
#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_protocol::coherence::FrameId;

/// The chains of a page table. Frames are stored with 1 added; 0 ends a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Index {
    /// Their number is a power of two.
    pub buckets: &'static [AtomicU32],
    /// The next frame of each frame's chain.
    pub next: &'static [AtomicU32],
}

/// Number of buckets for `frames` frames.
pub(super) fn buckets(frames: u32) -> usize {
    (frames as usize).next_power_of_two()
}

impl Index {
    fn bucket(&self, key: Key) -> &'static AtomicU32 {
        &self.buckets[key.scattered() as usize & (self.buckets.len() - 1)]
    }

    /// The frame with this page in its entry, as far as can be seen. The engine, the only writer, sees all.
    #[inline]
    pub(super) fn find(&self, entries: &[Entry], key: Key) -> Option<FrameId> {
        let mut at = self.bucket(key).load(Ordering::Acquire);
        for _ in 0..entries.len() {
            let frame = at.checked_sub(1)?;
            if entries.get(frame as usize)?.is_of(key) {
                return Some(FrameId(frame));
            }
            at = self.next[frame as usize].load(Ordering::Acquire);
        }
        None
    }

    /// Inserts a frame at the front of its page's chain.
    pub(super) fn insert(&self, key: Key, frame: FrameId) {
        let bucket = self.bucket(key);
        self.next[frame.0 as usize].store(bucket.load(Ordering::Relaxed), Ordering::Relaxed);
        bucket.store(frame.0 + 1, Ordering::Release);
    }

    /// Removes a frame from its page's chain.
    pub(super) fn remove(&self, key: Key, frame: FrameId) {
        let mut link = self.bucket(key);
        loop {
            let at = link.load(Ordering::Relaxed);
            assert!(at != 0, "{frame:?} is not in the index");
            let next = &self.next[at as usize - 1];
            if at == frame.0 + 1 {
                link.store(next.load(Ordering::Relaxed), Ordering::Release);
                return;
            }
            link = next;
        }
    }
}

impl Key {
    /// The number scattered over 64 bits. The upper ones depend on all.
    #[inline]
    pub(super) fn scattered(self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
    }
}
