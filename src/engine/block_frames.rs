//! How much of the pool serves for blocks: frames go there while blocks are read and pages are not, and come back when pages are.
//!
//! Each block that is read, or written for lack of others, is a credit, and each page that is asked for takes credits away. For a
//! frame's worth of credits the pool gives up a page. A page that finds no free frame has one come back.

use super::Engine;
use crate::memory::FRAMES_MIN;
use crate::stats::{self, Row};
use vgasnet_protocol::coherence::Event;

/// Credits that a frame takes at least, however few blocks it has.
const CREDITS_MIN: u32 = 16;

/// A page costs this part of the credits of a frame.
const PAGE_PART: u32 = 2;

/// One frame in so many stays for pages.
const PAGES_PART: u32 = 8;

/// What decides about it.
#[derive(Debug)]
pub(super) struct BlockFrames {
    credits: u32,
    /// What a frame costs.
    each: u32,
    /// The most frames that serve for blocks.
    most: u32,
    /// A frame is wanted, and is to be taken when it is free.
    is_wanted: bool,
}

impl BlockFrames {
    /// None of a pool's `frames` serves for blocks, each of which has room for so many.
    pub(super) fn new(frames: u32, blocks: usize) -> BlockFrames {
        let each = u32::try_from(blocks).unwrap_or(u32::MAX).max(CREDITS_MIN);
        let most = frames.saturating_sub(FRAMES_MIN.max(frames / PAGES_PART));
        BlockFrames { credits: 0, each, most, is_wanted: false }
    }

    /// So many blocks have to be read, or written for lack of others.
    pub(super) fn on_blocks_missed(&mut self, blocks: u32) {
        self.credits = self.credits.saturating_add(blocks).min(self.each);
    }

    /// A page is asked for.
    pub(super) fn on_page_missed(&mut self) {
        self.credits = self.credits.saturating_sub(self.each / PAGE_PART);
    }

    /// Whether a page is to be evicted for a frame that will serve for blocks.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }
}

impl Engine {
    /// How many frames of the pool serve for blocks.
    pub fn frames_for_blocks(&self) -> u32 {
        self.storage.frames_for_blocks()
    }

    /// Gives blocks a frame, if they have deserved one and it is free, and pages those that have come back.
    #[inline(never)]
    pub(super) fn balance_frames(&mut self) {
        let blocks = &mut self.block_frames;
        blocks.on_blocks_missed(self.storage.take_cleaned_blocks());
        if blocks.credits >= blocks.each && self.storage.frames_for_blocks() < blocks.most {
            blocks.is_wanted = true;
        }
        if self.block_frames.is_wanted {
            self.take_frame_for_blocks();
        }
        if self.protocol.cache.starving() > 0 && self.take_frame_from_blocks() {
            self.handle_events();
        }
        if let Some(frame) = self.storage.take_returned_frame() {
            self.handle(Event::Freed(frame));
        }
    }

    /// Pages need a frame: one that serves for blocks is to come back, if any does. Returns whether it has.
    pub(super) fn take_frame_from_blocks(&mut self) -> bool {
        self.block_frames.is_wanted = false;
        self.storage.release_frame();
        let returned = self.storage.take_returned_frame();
        self.events.extend(returned.map(Event::Freed));
        returned.is_some()
    }

    fn take_frame_for_blocks(&mut self) {
        let Some(frame) = self.protocol.cache.take_free_frame() else { return };
        self.frames.use_otherwise(frame);
        self.storage.give_to_blocks(frame);
        (self.block_frames.is_wanted, self.block_frames.credits) = (false, 0);
        stats::count(Row::BlockFrames);
    }
}
