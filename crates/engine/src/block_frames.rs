//! Moves pool frames between pages and blocks of the file. [`BlockFrames`] decides when blocks get one.

use super::Engine;
use vgasnet_protocol::coherence::Event;
#[cfg(doc)]
use vgasnet_protocol::replacement::BlockFrames;
use vgasnet_stats::{self as stats, Row};

impl Engine {
    /// Number of pool frames in use for blocks.
    pub fn frames_for_blocks(&self) -> u32 {
        self.storage.frames_for_blocks()
    }

    /// Gives blocks a free frame if they are due one, and gives returned frames to pages.
    #[inline(never)]
    pub(super) fn balance_frames(&mut self) {
        self.block_frames.on_blocks_missed(self.storage.take_cleaned_blocks());
        if self.block_frames.wants_more(self.storage.frames_for_blocks()) {
            self.give_frame_to_blocks();
        }
        let has_come =
            if self.protocol.cache.starving() > 0 { self.take_frame_from_blocks() } else { self.take_returned_frame() };
        if has_come {
            self.handle_events();
        }
    }

    /// Pages need a frame: asks for one back from blocks. Returns whether one has been returned.
    pub(super) fn take_frame_from_blocks(&mut self) -> bool {
        self.block_frames.on_shortage();
        self.storage.release_frame();
        self.take_returned_frame()
    }

    fn take_returned_frame(&mut self) -> bool {
        let returned = self.storage.take_returned_frame();
        self.queue.raise_all(returned.map(Event::Freed));
        returned.is_some()
    }

    fn give_frame_to_blocks(&mut self) {
        let Some(frame) = self.protocol.cache.take_free_frame() else { return };
        self.frames.use_otherwise(frame);
        self.storage.give_to_blocks(frame);
        self.block_frames.on_taken();
        stats::count(Row::BlockFrames);
    }
}
