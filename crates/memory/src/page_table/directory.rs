//! Hints to the pools that contain a page, shared by all ranks of a host.
//!
//! A rank's engine notes the pages that it opens and removes those that it closes. Hints lie in sets of eight. In a
//! full set a hint replaces another, so hints may be lost, but only there. They may also be stale, or of another page
//! with equal hash bits: a reader checks the entry of the frame. Each rank gives memory for twice as many hints as its
//! pool has frames.

use super::word::Key;
#[cfg(all(loom, test))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(loom, test)))]
use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_conduit::Region;
use vgasnet_protocol::coherence::{FrameId, PageId};

/// Hints per set: a cache line. With two, the model checker has fewer interleavings.
pub(super) const WAYS: usize = if cfg!(all(loom, test)) { 2 } else { 8 };

/// The hints of a host. A hint has 16 bits of the page's scattered key, 16 for the pool with 1 added, and the frame.
#[derive(Debug)]
pub struct Directory {
    /// The memory of each rank, with a multiple of [`WAYS`] hints.
    parts: Box<[&'static [AtomicU64]]>,
}

/// Bytes given by a rank with this many frames; a multiple of 64.
pub(crate) fn part_bytes(frames: u32) -> usize {
    (frames as usize * 2).next_multiple_of(WAYS).max(WAYS) * size_of::<AtomicU64>()
}

impl Directory {
    /// The hints in these parts, one per pool, in the same order on all ranks of the host.
    pub fn new(parts: impl Iterator<Item = Region>) -> Directory {
        let hints = |part: Region| {
            assert!(part.address % 64 == 0);
            // SAFETY: the region stays mapped until the process ends, is aligned, and is only used as these atomics.
            unsafe {
                let first = std::ptr::with_exposed_provenance(part.address);
                std::slice::from_raw_parts(first, part.len_bytes / size_of::<AtomicU64>())
            }
        };
        Directory { parts: parts.map(hints).collect() }
    }

    #[cfg(all(loom, test))]
    pub(super) fn of_parts(parts: impl Iterator<Item = &'static [AtomicU64]>) -> Directory {
        Directory { parts: parts.collect() }
    }

    /// Notes that a page is in a frame of the pool with this index on the host.
    pub fn note(&self, page: PageId, pool: usize, frame: FrameId) {
        let (set, hint) = self.place(page, pool, frame);
        let load = |way: &AtomicU64| way.load(Ordering::Relaxed);
        if set.iter().any(|way| load(way) == hint) {
            return;
        }
        // Another rank may take the same free way.
        let take = |way: &AtomicU64| way.compare_exchange(0, hint, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !set.iter().any(|way| load(way) == 0 && take(way)) {
            // A store would do, but the model checker orders no store after another thread's exchange.
            set[frame.0 as usize % WAYS].swap(hint, Ordering::Relaxed);
        }
    }

    /// Removes the hint noted by [`Directory::note`], if it is still there.
    pub fn forget(&self, page: PageId, pool: usize, frame: FrameId) {
        let (set, hint) = self.place(page, pool, frame);
        for way in set {
            if way.load(Ordering::Relaxed) == hint {
                let _ = way.compare_exchange(hint, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }

    /// The pools and frames that may have the page.
    pub fn find(&self, page: PageId) -> impl Iterator<Item = (usize, FrameId)> + use<'_> {
        let (set, tag) = self.set(page);
        let hints = set.iter().map(|way| way.load(Ordering::Relaxed));
        hints.filter(move |hint| hint >> 48 == tag).filter_map(|hint| {
            let pool = (hint as usize >> 32 & 0xffff).checked_sub(1)?;
            Some((pool, FrameId(hint as u32)))
        })
    }

    fn place(&self, page: PageId, pool: usize, frame: FrameId) -> (&'static [AtomicU64], u64) {
        let (set, tag) = self.set(page);
        (set, tag << 48 | ((pool as u64 + 1) & 0xffff) << 32 | u64::from(frame.0))
    }

    fn set(&self, page: PageId) -> (&'static [AtomicU64], u64) {
        let scattered = Key::from(page).scattered();
        let below = |part: u64, count: usize| (((part & 0xffff_ffff) * count as u64) >> 32) as usize;
        let part = self.parts[below(scattered, self.parts.len())];
        let set = below(scattered.wrapping_mul(0xd134_2543_de82_ef95) >> 20, part.len() / WAYS);
        (&part[set * WAYS..][..WAYS], scattered >> 7 & 0xffff)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use vgasnet_protocol::Rank;

    fn directory(frames: &[u32]) -> Directory {
        Directory::new(frames.iter().map(|frames| {
            let len_bytes = part_bytes(*frames);
            let memory = vec![0u64; len_bytes / 8 + 8].leak();
            let address = memory.as_mut_ptr().expose_provenance().next_multiple_of(64);
            Region { address, len_bytes }
        }))
    }

    #[test]
    fn most_pages_of_full_pools_are_found() {
        let directory = directory(&[256, 256, 128]);
        let pages: Vec<_> = [256, 256, 128].into_iter().enumerate().collect();
        let each = |of: &mut dyn FnMut(PageId, usize, FrameId)| {
            for (pool, frames) in &pages {
                (0..*frames)
                    .for_each(|at| of(PageId::of_segment(Rank(7), at * 3 + *pool as u32 * 1000), *pool, FrameId(at)));
            }
        };
        each(&mut |page, pool, frame| directory.note(page, pool, frame));
        let mut found = 0;
        each(&mut |page, pool, frame| found += u32::from(directory.find(page).any(|one| one == (pool, frame))));
        assert!(found >= 640 * 9 / 10, "{found} of 640");
        each(&mut |page, pool, frame| directory.forget(page, pool, frame));
        each(&mut |page, _, _| assert_eq!(directory.find(page).count(), 0));
    }
}
