//! Frames that are lent to the ranks in whose segments their pages lie: asking them back, and giving them back.
//!
//! A borrower is told by a message, so its helper hears of it while its program computes. The frame comes back as a pin
//! does: the borrower's table entry and a notice. Until then its page stays open, or closing; nothing else waits.

use super::{Engine, Work};
use vgasnet_protocol::LoanMessage;
use vgasnet_protocol::coherence::PageId;

impl Engine {
    /// Asks the rank of a page's segment for its frame, if that is lent and was not asked back.
    pub(super) fn ask_back_lent(&mut self, page: PageId) {
        let table = &self.space.own.table;
        if table.find(page).is_some_and(|frame| table.ask_back(frame)) {
            self.send_asking(page);
        }
    }

    /// Asks the rank of a page's segment for the frame that it has borrowed.
    pub(super) fn send_asking(&mut self, page: PageId) {
        let message = LoanMessage::AskedBack { index: page.index };
        let borrower = page.space.segment().expect("frames of files are not lent");
        self.outbox.send(borrower, &message.encode());
    }

    /// A neighbour wants the frame back that is mapped as page `index` here.
    pub(super) fn on_asked_back(&mut self, index: u32) -> Result<(), &'static str> {
        if index >= self.protocol.spaces().pages(self.space.own_page(index).space) {
            return Err("a wish for a frame of a page that does not exist");
        }
        // It may have been given back already.
        self.work.push_back(Work::GiveBack { index });
        Ok(())
    }
}
