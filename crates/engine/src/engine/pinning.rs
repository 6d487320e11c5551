//! Pins pages for the client, and recalls frames lent to the ranks whose segments contain their pages.
//!
//! A message asks the borrower for a frame, so its helper handles it while the program computes. The frame is returned
//! like a pin: by the borrower's table entry and a notice. Until then its page stays open or closing; nothing else
//! waits.

use super::Engine;
use crate::Work;
use crate::outbox::Outbox;
use crate::paging::TooManyPins;
use std::ops::RangeInclusive;
use vgasnet_memory::PageAccess;
use vgasnet_protocol::LoanMessage;
use vgasnet_protocol::coherence::{Access, PageId};

/// Sends the request for a lent frame to the rank of the page's segment.
pub(super) fn ask_back(outbox: &mut Outbox, page: PageId) {
    let message = LoanMessage::AskedBack { index: page.index };
    let borrower = page.space.segment().expect("frames of files are not lent");
    outbox.send(borrower, &message.encode());
}

impl Engine {
    /// Undoes one [`Engine::add_pins`] of pages that were not pinned in the page table.
    pub(crate) fn take_back_pins(&mut self, pages: RangeInclusive<u32>) {
        self.paging.take_back_pins(pages);
    }

    /// Adds pages of the own segment to the pin set. The caller then waits for loans ([`Driver::await_loans`](crate::Driver::await_loans)) and pins
    /// each page in the page table.
    ///
    /// # Errors
    /// There are too many pages or pins; none is added.
    pub fn add_pins(&mut self, pages: RangeInclusive<u32>) -> Result<(), TooManyPins> {
        self.paging.add_pins(pages)?;
        let lent = self.paging.lent_beyond_limit(&self.protocol.cache);
        lent.for_each(|page| ask_back(&mut self.outbox, page));
        Ok(())
    }

    /// Pins and maps a page of the pin set, if it is open. Returns whether it did. The engine's lock keeps the page
    /// from being closed meanwhile.
    pub fn pin_now(&mut self, index: u32, access: Access) -> bool {
        let Some(view) = self.space.view.clone() else { return false };
        match view.access(index, access) {
            PageAccess::Pinned { first_use, .. } => {
                self.paging.on_pinned(index);
                if first_use {
                    self.prefetch_after_use(self.space.own_page(index));
                }
                true
            }
            PageAccess::Missed => false,
            PageAccess::Refused(_) => {
                // Nothing closes under the engine's lock, so no thread waits for the unpin.
                let _ = view.unpin(index);
                false
            }
        }
    }

    /// Undoes one [`Engine::add_pins`] of these pages. Returns whether all were pinned; if not, nothing changes. The
    /// caller then undoes the pins in the page table.
    pub fn remove_pins(&mut self, pages: RangeInclusive<u32>) -> bool {
        let Some(closing) = self.paging.remove_pins(pages.clone()) else { return false };
        for index in closing {
            self.close(self.space.own_page(index));
        }
        // A page may be waiting for one of these frames.
        for index in pages {
            let frame = self.protocol.cache.frame_of(self.space.own_page(index));
            frame.into_iter().for_each(|frame| self.paging.release(frame));
        }
        self.handle_events();
        true
    }

    /// A neighbour wants its frame back, which is mapped as page `index` here.
    pub(super) fn on_asked_back(&mut self, index: u32) -> Result<(), &'static str> {
        if index >= self.protocol.spaces().pages(self.space.own_page(index).space) {
            return Err("a request for a frame of a page that does not exist");
        }
        // The frame may already be on its way back.
        self.queue.add(Work::GiveBack { index });
        Ok(())
    }
}
