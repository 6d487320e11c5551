//! Frames lent to the ranks whose segments contain their pages: recalling and returning them.
//!
//! A message tells the borrower, so its helper handles it while the program computes. The frame is returned like a pin:
//! by the borrower's table entry and a notice. Until then its page stays open or closing; nothing else waits.

use super::{Engine, Work};
use vgasnet_protocol::LoanMessage;
use vgasnet_protocol::coherence::PageId;

impl Engine {
    /// Asks the borrower for the frame of a page, if it is lent and has not been asked for.
    pub(super) fn ask_back_lent(&mut self, page: PageId) {
        let table = &self.space.own.table;
        if table.find(page).is_some_and(|frame| table.ask_back(frame)) {
            self.send_asking(page);
        }
    }

    /// Sends the request for a lent frame to the rank of the page's segment.
    pub(super) fn send_asking(&mut self, page: PageId) {
        let message = LoanMessage::AskedBack { index: page.index };
        let borrower = page.space.segment().expect("frames of files are not lent");
        self.outbox.send(borrower, &message.encode());
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
