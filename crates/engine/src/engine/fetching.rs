//! Fetches pages ahead of need, and pages that other ranks offer before they evict them.

use super::Engine;
use crate::paging::OfferAnswer;
use std::ops::RangeInclusive;
use vgasnet_protocol::coherence::{Event, PageId};
use vgasnet_protocol::guests::GuestMessage;
use vgasnet_protocol::{Rank, Space};

impl Engine {
    /// Reads ahead after a page that an access missed.
    pub(super) fn prefetch_after_miss(&mut self, page: PageId) {
        let range = self.paging.ahead_of_miss(page, self.end_of(page.space));
        self.prefetch(page.space, range);
    }

    /// Reads ahead after the first use of a prefetched page.
    pub fn prefetch_after_use(&mut self, page: PageId) {
        let range = self.paging.ahead_of_use(page, self.end_of(page.space));
        self.prefetch(page.space, range);
    }

    /// Fetches the first of these pages of the own segment or of a file, up to half of the pool, because they will be
    /// needed.
    pub fn fetch(&mut self, space: Space, pages: RangeInclusive<u32>) {
        let most = (self.protocol.cache.frames() / 2).max(1);
        let last = (*pages.end()).min(pages.start().saturating_add(most - 1));
        self.prefetch(space, Some(*pages.start()..=last));
    }

    /// Expects a stream through these pages of the own segment or of a file.
    pub fn expect_in_order(&mut self, space: Space, pages: &RangeInclusive<u32>) {
        self.paging.expect_stream(PageId { space, index: *pages.start() });
    }

    fn prefetch(&mut self, space: Space, range: Option<RangeInclusive<u32>>) {
        let Some(mut range) = range else { return };
        // One waiting page may be the page that triggered this read-ahead. Further demand misses must not wait for
        // evictions on its behalf.
        if self.protocol.cache.starving() > 1 {
            return;
        }
        while let Some(page) = self.paging.next_ahead(space, &mut range, &self.protocol.cache) {
            self.handle(Event::Prefetch(page));
        }
    }

    /// Number of guest pages that have arrived in idle frames of this rank.
    pub fn guests_came(&self) -> u64 {
        self.paging.guests_came()
    }

    pub(super) fn on_guest_message(&mut self, from: Rank, message: GuestMessage) -> Result<(), &'static str> {
        if let GuestMessage::Offer { page } = message {
            return self.on_offer(from, page);
        }
        if let Some(frame) = self.paging.on_offer_answered(from, message, &self.protocol.cache)? {
            self.handle(Event::Evict(frame));
        }
        Ok(())
    }

    /// Another rank will evict this page soon.
    fn on_offer(&mut self, from: Rank, page: PageId) -> Result<(), &'static str> {
        let answer = self.paging.answer_offer(from, page, &self.protocol, |page| self.files.stays(page))?;
        match answer {
            OfferAnswer::Fetch => self.handle(Event::Adopt(page)),
            OfferAnswer::Needless => self.decline(from, page),
            OfferAnswer::Refuse(frame) => {
                frame.into_iter().for_each(|frame| self.handle(Event::Evict(frame)));
                self.outbox.send(from, &GuestMessage::Refused { page }.encode());
            }
        }
        Ok(())
    }

    /// Tells the rank that offered a page that this rank needs no copy.
    pub(super) fn decline(&mut self, from: Rank, page: PageId) {
        self.outbox.send(from, &GuestMessage::Needless { page }.encode());
    }

    /// Resumes the parts whose guests have left.
    pub(super) fn retry_dismissed(&mut self) {
        while let Some(parts) = self.paging.take_dismissed() {
            for (part, tries) in parts {
                self.do_at_home_or_fetch(part, tries + 1);
            }
            self.handle_events();
        }
    }
}
