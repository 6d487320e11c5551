//! Large pages for the pool, as its frames come into use.
//!
//! Frames in large pages take fewer entries in page tables and TLBs, and fewer segments in disk requests. Systems
//! rarely use large pages for shared memory by themselves (`shmem_enabled` is `never` by default). From Linux 6.1 on
//! they do on request: madvise(2), `MADV_COLLAPSE`. A separate thread asks, a little ahead of the frames in use. A
//! frame not yet reached is prepared at its first use, because later the disk may have it pinned. The cost is that of
//! the first touch.

use super::Pool;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use vgasnet_protocol::coherence::FrameId;

/// Bytes prepared at a time: a large page of x86-64, and of AArch64 with base pages of 4 KiB.
const BLOCK_BYTES: usize = 2 << 20;

/// Maximum distance of preparation ahead of the frames in use, in bytes.
const AHEAD_BYTES_MAX: usize = 16 << 20;

/// From the kernel's headers; not all C libraries have it.
const MADV_COLLAPSE: libc::c_int = 25;

/// The state of preparing a pool.
#[derive(Debug)]
pub struct LargePages {
    pool: Pool,
    pool_bytes: usize,
    /// End of the used frames, in bytes from the pool's start.
    used_bytes: AtomicUsize,
    /// End of the prepared blocks, or of the pool once the system refuses.
    prepared_bytes: AtomicUsize,
    /// Locked while a block is prepared.
    turn: Mutex<()>,
    /// The preparing thread. It sleeps while it is far enough ahead.
    thread: OnceLock<Thread>,
}

impl LargePages {
    /// Nothing used or prepared, in a pool of `frames` frames.
    pub fn new(pool: Pool, frames: u32) -> LargePages {
        let pool_bytes = frames as usize * pool.page_bytes() / BLOCK_BYTES * BLOCK_BYTES;
        let none = || AtomicUsize::new(0);
        let (used_bytes, prepared_bytes) = (none(), none());
        LargePages { pool, pool_bytes, used_bytes, prepared_bytes, turn: Mutex::new(()), thread: OnceLock::new() }
    }

    /// Prepares the memory of a frame that comes into use. Frames come into use in order at first.
    pub fn on_use(&self, frame: FrameId) {
        let end = (frame.0 as usize + 1) * self.pool.page_bytes();
        if self.used_bytes.load(Ordering::Relaxed) >= end {
            return;
        }
        self.used_bytes.fetch_max(end, Ordering::Relaxed);
        while self.prepared_bytes.load(Ordering::Acquire) < end.min(self.pool_bytes) {
            self.prepare_next();
        }
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Prepares the pool a little ahead of its use, until all of it is prepared. Called by one thread.
    pub fn prepare_ahead(&self) {
        let _ = self.thread.set(std::thread::current());
        while self.prepared_bytes.load(Ordering::Acquire) < self.pool_bytes {
            let used_bytes = self.used_bytes.load(Ordering::Relaxed);
            if self.prepared_bytes.load(Ordering::Acquire) < end_ahead_of(used_bytes) {
                self.prepare_next();
            } else {
                std::thread::park();
            }
        }
    }

    fn prepare_next(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let offset_bytes = self.prepared_bytes.load(Ordering::Relaxed);
        if offset_bytes < self.pool_bytes {
            let is_possible = self.prepare(offset_bytes);
            let prepared_bytes = if is_possible { offset_bytes + BLOCK_BYTES } else { self.pool_bytes };
            self.prepared_bytes.store(prepared_bytes, Ordering::Release);
        }
    }

    /// Prepares one block. Returns false if the system lacks the feature.
    fn prepare(&self, offset_bytes: usize) -> bool {
        let block = self.pool.frame(FrameId(0)).wrapping_add(offset_bytes);
        // SAFETY: the block is inside the pool, which stays mapped. Any byte will do: the read makes the system give
        // the block memory, without which there is nothing to collapse.
        unsafe { block.read_volatile() };
        // SAFETY: the block is inside the pool, and collapsing moves its bytes without changing them.
        let collapsed = unsafe { libc::madvise(block.cast(), BLOCK_BYTES, MADV_COLLAPSE) } == 0;
        // A block without memory now stays as it is.
        collapsed || std::io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL)
    }
}

/// End of the memory to be prepared: half as much again as is used, so that small programs have little prepared.
fn end_ahead_of(used_bytes: usize) -> usize {
    if used_bytes == 0 { 0 } else { used_bytes + (used_bytes / 2).clamp(BLOCK_BYTES, AHEAD_BYTES_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_conduit::Region;

    #[test]
    fn memory_is_prepared_as_it_is_used_and_keeps_its_bytes() {
        const FRAMES: u32 = 16;
        let memory = vec![0u128; (FRAMES as usize + 1) * BLOCK_BYTES / size_of::<u128>()].leak();
        let address = memory.as_mut_ptr().expose_provenance().next_multiple_of(BLOCK_BYTES);
        let region = Region { address, len_bytes: FRAMES as usize * BLOCK_BYTES };
        let pool = Pool::new(region, Region { address: 4096, len_bytes: 4096 }, BLOCK_BYTES);
        let pages = LargePages::new(pool, FRAMES);
        // SAFETY: the frame is in memory that this test has leaked.
        unsafe { pool.frame(FrameId(1)).write(7) };
        pages.on_use(FrameId(1));
        let prepared_bytes = pages.prepared_bytes.load(Ordering::Relaxed);
        assert!(prepared_bytes == 2 * BLOCK_BYTES || prepared_bytes == region.len_bytes, "{prepared_bytes}");
        std::thread::scope(|scope| {
            scope.spawn(|| pages.prepare_ahead());
            (0..FRAMES).for_each(|frame| pages.on_use(FrameId(frame)));
        });
        assert_eq!(pages.prepared_bytes.load(Ordering::Relaxed), region.len_bytes);
        // SAFETY: the frame is in memory that this test has leaked.
        assert_eq!(unsafe { pool.frame(FrameId(1)).read() }, 7);
    }
}
