//! Number of pool frames serving blocks of pages without holders.

/// Minimum price of a frame, in credits, however small its number of blocks.
const CREDITS_MIN: u32 = 16;

/// A page miss costs one part in this many of a frame's price.
const PAGE_PART: u32 = 2;

/// One frame in this many is kept for pages.
const PAGES_PART: u32 = 8;

/// Whether blocks have earned a frame of the pool: they do while blocks are read and pages are not.
///
/// Each block read, or written for lack of other blocks, earns a credit; each page miss costs credits. A frame's price
/// is its number of blocks.
#[derive(Debug)]
pub struct BlockFrames {
    credits: u32,
    /// Price of a frame, in credits.
    each: u32,
    /// Maximum number of frames serving blocks.
    most: u32,
    /// A frame is wanted, and will be taken when free.
    is_wanted: bool,
}

impl BlockFrames {
    /// No frame serves blocks yet. A frame holds `blocks` blocks, and at least `for_pages` frames are kept for pages.
    pub fn new(frames: u32, blocks: usize, for_pages: u32) -> BlockFrames {
        let each = u32::try_from(blocks).unwrap_or(u32::MAX).max(CREDITS_MIN);
        let most = frames.saturating_sub(for_pages.max(frames / PAGES_PART));
        BlockFrames { credits: 0, each, most, is_wanted: false }
    }

    /// `blocks` blocks must be read, or written for lack of others.
    pub fn on_blocks_missed(&mut self, blocks: u32) {
        self.credits = self.credits.saturating_add(blocks).min(self.each);
    }

    /// A page was requested.
    pub fn on_page_missed(&mut self) {
        self.credits = self.credits.saturating_sub(self.each / PAGE_PART);
    }

    /// Records the number of frames serving blocks. Returns whether another one is wanted.
    pub fn wants_more(&mut self, serving: u32) -> bool {
        debug_assert!(self.credits <= self.each, "credits end at the price of a frame");
        self.is_wanted |= self.credits >= self.each && serving < self.most;
        self.is_wanted
    }

    /// Whether a page is to be evicted for a frame to serve blocks.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Blocks got a frame.
    pub fn on_taken(&mut self) {
        (self.is_wanted, self.credits) = (false, 0);
    }

    /// Pages need frames.
    pub fn on_shortage(&mut self) {
        self.is_wanted = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_deserve_a_frame_by_as_many_misses_as_it_has_room_for() {
        let mut frames = BlockFrames::new(16, 1024, 4);
        frames.on_blocks_missed(1023);
        assert!(!frames.wants_more(0) && !frames.is_wanted());
        frames.on_blocks_missed(1);
        assert!(!frames.wants_more(12), "four stay for pages");
        assert!(frames.wants_more(11) && frames.is_wanted());
        frames.on_taken();
        assert!(!frames.is_wanted() && !frames.wants_more(1));
    }

    #[test]
    fn pages_that_are_asked_for_take_what_blocks_deserve() {
        let mut frames = BlockFrames::new(64, 1024, 4);
        for _ in 0..100 {
            frames.on_blocks_missed(512);
            frames.on_page_missed();
        }
        assert!(!frames.wants_more(0));
        frames.on_blocks_missed(10_000);
        assert!(!frames.wants_more(56), "an eighth stays for pages");
        assert!(frames.wants_more(0));
        frames.on_shortage();
        assert!(!frames.is_wanted());
        assert!(!BlockFrames::new(4, 1024, 4).wants_more(0));
    }
}
