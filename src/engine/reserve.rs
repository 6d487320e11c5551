//! Evictions ahead of need, so that a miss finds a free frame and dirty pages are written back several at a time.
//!
//! A page that finds no free frame shows that the pool is too small for what is being used. From then on, for as many pages
//! as twice the reserve, each page that takes a frame starts evictions until so many frames are free or on their way to be.
//! A working set that fits the pool has no such page, and a burst that did not fit costs it few pages.

/// The most frames, and their most bytes, that are kept free.
const FRAMES_MAX: u32 = 32;
const BYTES_MAX: usize = 32 << 20;

/// How many frames are to be free.
#[derive(Debug)]
pub struct Reserve {
    frames: u32,
    /// Pages that may still start evictions.
    pages_left: u32,
}

impl Reserve {
    /// For a pool of `frames` frames: an eighth of it at most.
    pub fn new(frames: u32, page_bytes: usize) -> Reserve {
        let frames = (frames / 8).min((BYTES_MAX / page_bytes) as u32).min(FRAMES_MAX);
        Reserve { frames, pages_left: 0 }
    }

    /// A page found no free frame.
    pub fn on_starved(&mut self) {
        self.pages_left = 2 * self.frames;
    }

    /// A page took a frame.
    pub fn on_taken(&mut self) {
        self.pages_left = self.pages_left.saturating_sub(1);
    }

    /// Whether another eviction is to be started, where so many frames are free or on their way to be.
    pub fn wants_more(&self, free: u32) -> bool {
        self.pages_left > 0 && free < self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_left_alone_and_what_does_not_is_made_room_for() {
        let mut reserve = Reserve::new(64, 4 << 20);
        assert!(!reserve.wants_more(0), "nothing was too much yet");
        reserve.on_starved();
        assert!(reserve.wants_more(7) && !reserve.wants_more(8));
        (0..15).for_each(|_| reserve.on_taken());
        assert!(reserve.wants_more(0));
        reserve.on_taken();
        assert!(!reserve.wants_more(0), "it may fit by now");
        let mut small = Reserve::new(7, 4 << 20);
        small.on_starved();
        assert!(!small.wants_more(0), "a small pool needs all its frames");
        assert_eq!(Reserve::new(1 << 20, 64 << 10).frames, FRAMES_MAX);
    }
}
