//! The pages of a rank's pool: which to evict, which to read ahead, which to offer to other ranks or keep for them, and
//! which to keep because of pins and loans.
//!
//! [`Paging`] decides and keeps the state of frames. The engine turns its answers into events, work and messages.

mod closing;
mod eviction;
mod guests;
mod pins;
mod prefetch;
#[cfg(test)]
mod tests;

pub use closing::{CloseStep, ClosedPage};
pub use guests::OfferAnswer;
pub use pins::TooManyPins;

use super::{EngineOptions, Optimisations};
use guests::{Dismissals, Guests};
use pins::PinSet;
use prefetch::Prefetch;
use std::sync::Arc;
use vgasnet_memory::{AddressSpace, FRAMES_MIN, Frames};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{
    Access, Cache, CoherenceBody, CoherenceMessage, Event, FrameId, PageId, Protocol, ToCache, ToHome,
};
use vgasnet_protocol::replacement::{BlockFrames, FillKind, Reserve};
use vgasnet_stats::{self as stats, Row};
use vgasnet_storage::BLOCK_BYTES;

/// The frames of a rank's pool and the decisions about them.
pub(super) struct Paging {
    space: Arc<AddressSpace>,
    frames: Frames,
    prefetch: Prefetch,
    guests: Guests,
    dismissals: Dismissals,
    reserve: Reserve,
    block_frames: BlockFrames,
    pins: PinSet,
    /// More frames are lent than the pins allow, and have been asked back.
    awaits_loans: bool,
    /// Closing pages that are still pinned.
    closing: Vec<PageId>,
    /// Number of early write-backs of pages that were due for eviction.
    cleaned_ahead: u64,
    /// Pages with a copy in another pool are evicted first.
    spares_only_copies: bool,
}

/// A page that has been opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedPage {
    /// The page had been read ahead.
    pub is_ahead: bool,
    /// The rank that offered the page, if it has come as a guest.
    pub kept_for: Option<Rank>,
}

impl Paging {
    /// The pool of a rank of `ranks`, with `frames` unused frames.
    pub fn new(space: Arc<AddressSpace>, ranks: u32, frames: u32, options: &EngineOptions) -> Paging {
        let EngineOptions { policy, cooperative, offers_max, optimisations, .. } = *options;
        let Optimisations { works_ahead, spares_only_copies, .. } = optimisations;
        let page_bytes = space.page_bytes();
        Paging {
            frames: Frames::new(Arc::clone(&space), frames, policy),
            prefetch: Prefetch::new(page_bytes, frames, works_ahead),
            guests: Guests::new(space.rank, ranks, frames, if cooperative { offers_max } else { 0 }),
            dismissals: Dismissals::default(),
            reserve: Reserve::new(if works_ahead { frames } else { 0 }, page_bytes),
            block_frames: BlockFrames::new(frames, page_bytes / BLOCK_BYTES, FRAMES_MIN),
            pins: PinSet::new(frames),
            awaits_loans: false,
            closing: Vec::new(),
            cleaned_ahead: 0,
            spares_only_copies,
            space,
        }
    }

    /// The frames.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Number of early write-backs of pages that were due for eviction.
    pub fn cleaned_ahead(&self) -> u64 {
        self.cleaned_ahead
    }

    /// Whether no page is closing, no loan awaited, and no part can go on.
    pub fn is_idle(&self) -> bool {
        self.closing.is_empty() && !self.awaits_loans && !self.dismissals.has_done()
    }

    /// Checks that the pages in flight, and closing, are known to the cache, in builds with debug assertions.
    pub fn check(&self, cache: &Cache) {
        debug_assert!(
            self.prefetch.pages().all(|page| cache.contains(page)),
            "pages being read ahead are on their way"
        );
        debug_assert!(self.guests.pages().all(|page| cache.contains(page)), "guests that come are on their way");
        debug_assert!(self.closing.iter().all(|page| cache.frame_of(*page).is_some()), "closing pages have frames");
    }

    /// An operation of this rank has missed a page.
    pub fn on_missed(&mut self) {
        self.guests.on_missed();
    }

    /// Notes the effect of an outgoing message on a frame of this rank.
    pub fn on_sent(&mut self, message: &CoherenceMessage, cache: &Cache) {
        if let Some(frame) = message.frame() {
            self.frames.prepare(frame);
            self.reserve.on_taken();
            self.block_frames.on_page_missed();
        }
        if let CoherenceBody::Home(ToHome::Acknowledge { .. }) | CoherenceBody::Cache(ToCache::Acknowledge { .. }) =
            message.body
        {
            // This rank's copy is gone. If its frame is reserved for a new copy of the page, nothing is known about the
            // new one's blocks.
            let kept = cache.frame_of(message.page);
            kept.into_iter().for_each(|frame| self.space.own.blocks.mark_all(frame));
        }
    }

    /// Notes the source of a page. If it came from another holder's pool to be read, the holder keeps a copy, and this
    /// one is the second.
    pub fn on_data(&mut self, from: Rank, page: PageId, protocol: &Protocol) {
        let spaces = protocol.spaces();
        let is_second = self.spares_only_copies && spaces.has(page) && spaces.home(page) != from;
        if let Some(frame) = protocol.cache.frame_of(page) {
            self.frames.set_second_copy(frame, is_second);
        }
        if is_second {
            self.guests.on_came_back();
        }
    }

    /// Prepares the frame of a page that has never been written. Returns whether its memory is zeros already.
    pub fn clear(&mut self, frame: FrameId) -> bool {
        debug_assert!(!self.space.own.table.is_pinned(frame), "nobody uses {frame:?} before its page is open");
        // A page never written is zeros in the file, too.
        self.space.own.blocks.clear(frame);
        self.frames.is_zeros(frame)
    }

    /// Opens a page to other threads. If it `is_wanted`, it is pinned for the parts that wait for it.
    pub fn open(&mut self, page: PageId, frame: FrameId, access: Access, is_wanted: bool) -> OpenedPage {
        debug_assert!(!self.closing.contains(&page), "{page:?} is closed before it is opened again");
        let table = &self.space.own.table;
        if is_wanted {
            table.take_ahead(frame);
        }
        self.space.open(page, frame, access, is_wanted);
        debug_assert!(!is_wanted || table.is_pinned(frame), "{page:?} is pinned for the parts that wait for it");
        // Operations that joined the fetch are its first use.
        let is_ahead = self.prefetch.on_ended(page);
        let kept_for = self.guests.on_came(page);
        if access == Access::Write || kept_for.is_some() {
            self.frames.set_second_copy(frame, false);
        }
        let kind = match (is_wanted, is_ahead, kept_for) {
            (false, true, _) => FillKind::Ahead,
            (false, false, Some(_)) => FillKind::AsGuest,
            _ => FillKind::ForUse,
        };
        self.frames.fill(frame, page, is_wanted, kind);
        if is_ahead && !is_wanted {
            table.mark_ahead(frame);
        }
        OpenedPage { is_ahead, kept_for }
    }

    /// A fetch has ended without its page. Returns the rank that offered the page, if it was to be a guest.
    pub fn on_given_up(&mut self, page: PageId) -> Option<Rank> {
        self.prefetch.on_ended(page);
        self.guests.on_not_come(page)
    }

    /// The frame may contain arbitrary bytes, as after a failed read.
    pub fn mark_filled(&mut self, frame: FrameId) {
        self.frames.mark_filled(frame);
    }

    /// The frame's page was dropped without an eviction.
    pub fn on_dropped(&mut self, frame: FrameId) {
        debug_assert!(!self.space.own.table.is_pinned(frame), "nobody uses the page in {frame:?}");
        self.frames.use_otherwise(frame);
    }

    /// The frame may be evictable again: its page was pinned by the client, or in flight.
    pub fn release(&mut self, frame: FrameId) {
        self.frames.release(frame);
    }

    /// Frames of [`Paging::passed_mapped`] are about to be unmapped.
    pub fn on_unmapping(&mut self, pages: &[(u32, FrameId)]) {
        self.frames.on_unmapping(pages);
    }

    /// Reconsiders frames that were not evictable. Returns whether pages were unpinned since the last call.
    pub fn retry_victims(&mut self) -> bool {
        self.frames.retry_victims()
    }

    /// Whether the client has pinned the page.
    pub fn is_pinned(&self, page: PageId) -> bool {
        self.space.is_own(page) && self.pins.has(page.index)
    }

    /// Whether a thread or the client uses the page in this frame.
    fn is_in_use(&self, page: PageId, frame: FrameId) -> bool {
        self.is_pinned(page) || self.space.own.table.is_pinned(frame)
    }

    /// `blocks` blocks of the file had to be read, or written for lack of others.
    pub fn on_blocks_missed(&mut self, blocks: u32) {
        self.block_frames.on_blocks_missed(blocks);
    }

    /// Whether blocks, which have `serving` frames, are due another one.
    pub fn owes_blocks_a_frame(&mut self, serving: u32) -> bool {
        self.block_frames.wants_more(serving)
    }

    /// A free frame serves for blocks from now on.
    pub fn give_to_blocks(&mut self, frame: FrameId) {
        debug_assert!(!self.space.own.table.is_pinned(frame), "{frame:?} was free");
        self.frames.use_otherwise(frame);
        self.block_frames.on_taken();
        stats::count(Row::BlockFrames);
    }

    /// Pages need frames, so blocks get no more of them.
    pub fn refuse_blocks(&mut self) {
        self.block_frames.on_shortage();
    }
}

/// A page that this event makes evictable: its transfer or its write-back has ended.
pub(super) fn page_released_by(event: &Event) -> Option<PageId> {
    match event {
        Event::Transferred(outgoing) => Some(outgoing.page),
        Event::Message { message, .. } => {
            matches!(message.body, CoherenceBody::Cache(ToCache::Evicted { .. })).then_some(message.page)
        }
        _ => None,
    }
}
