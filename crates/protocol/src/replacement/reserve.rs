//! Number of frames kept free, and the duration.

/// Maximum number of frames kept free.
const RESERVE_FRAMES_MAX: u32 = 32;

/// Maximum bytes of frames kept free.
const RESERVE_BYTES_MAX: usize = 32 << 20;

/// If other ranks keep more than one page for this many arriving pages, evictions run ahead.
const PAGES_A_KEPT: u32 = 2;

/// The frames to keep free: evictions run ahead of need, so that a miss finds a free frame and dirty pages are written
/// back several at a time.
///
/// A page without a free frame shows that the pool is smaller than the working set. Evictions then run ahead for twice
/// as many pages as the reserve has frames: each page taking a frame starts evictions until the whole reserve is free
/// or being evicted. A working set that fits never triggers this, and a single burst costs only a small number of
/// pages.
#[derive(Debug)]
pub struct Reserve {
    /// Number of frames in the reserve.
    frames: u32,
    /// Number of pages that may still start evictions.
    pages_left: u32,
    /// Grows while other ranks keep more than one page for [`PAGES_A_KEPT`] arriving ones. Evictions run ahead while it
    /// exceeds `frames`.
    kept: u32,
}

impl Reserve {
    /// The reserve of a pool of `frames` frames: at most an eighth of them.
    pub fn new(frames: u32, page_bytes: usize) -> Reserve {
        let frames = (frames / 8).min((RESERVE_BYTES_MAX / page_bytes) as u32).min(RESERVE_FRAMES_MAX);
        Reserve { frames, pages_left: 0, kept: 0 }
    }

    /// A page found no free frame.
    pub fn on_shortage(&mut self) {
        self.pages_left = 2 * self.frames;
    }

    /// Another rank keeps an evicted page. If many are kept, evictions run ahead, since each waits for an answer.
    /// Otherwise they do not: a frame kept free is one page fewer to hit.
    pub fn on_kept(&mut self) {
        self.kept = (self.kept + PAGES_A_KEPT).min(2 * self.frames);
    }

    /// A page took a frame.
    pub fn on_taken(&mut self) {
        let most = 2 * self.frames;
        debug_assert!(self.pages_left <= most && self.kept <= most, "evictions run ahead for so many pages only");
        self.pages_left = self.pages_left.saturating_sub(1);
        self.kept = self.kept.saturating_sub(1);
    }

    /// Whether to start another eviction, with `free` frames free or being evicted.
    pub fn wants_more(&self, free: u32) -> bool {
        (self.pages_left > 0 || self.kept > self.frames) && free < self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evictions_run_ahead_where_many_pages_are_kept_elsewhere() {
        // Number of runs ahead, with one kept page in `part` arriving ones.
        let ahead = |part: u32| {
            let mut reserve = Reserve::new(64, 4 << 20);
            let runs_ahead = |taken: u32| {
                if taken % part == 0 {
                    reserve.on_kept();
                }
                reserve.on_taken();
                reserve.wants_more(7)
            };
            (0..1200).map(runs_ahead).filter(|runs| *runs).count()
        };
        assert_eq!([3, 12].map(ahead), [0, 0]);
        assert!(ahead(1) > 1150, "{} of 1200", ahead(1));
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
