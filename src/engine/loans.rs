//! Frames that are lent to the homes of their pages: asking them back, and giving them back.
//!
//! A borrower is told by a message, so its helper hears of it while its program computes. The frame comes back as a pin
//! does: the borrower's table entry and a notice. Until then its page stays open, or closing; nothing else waits.

use super::{Engine, Work};
use vgasnet_protocol::coherence::PageId;

/// First byte of a message that asks a frame back; the number of the page in the segment of who gets it follows.
pub(super) const TAG_ASKED_BACK: u8 = 34;

/// The page that a message asks back.
pub(super) fn decode(bytes: &[u8]) -> Option<u32> {
    let (tag, index) = bytes.split_first()?;
    (*tag == TAG_ASKED_BACK).then_some(u32::from_le_bytes(index.try_into().ok()?))
}

impl Engine {
    /// Asks a page's home for its frame, if that is lent and was not asked back.
    pub(super) fn ask_back_lent(&mut self, page: PageId) {
        let table = &self.space.own.table;
        if table.find(page).is_some_and(|frame| table.ask_back(frame)) {
            self.send_asking(page);
        }
    }

    /// Asks the home of a page for the frame that it has borrowed.
    pub(super) fn send_asking(&mut self, page: PageId) {
        let [a, b, c, d] = page.index.to_le_bytes();
        self.outbox.send(self.space.spaces.home(page), &[TAG_ASKED_BACK, a, b, c, d]);
    }

    /// A neighbour wants the frame back that is mapped as page `index` here.
    pub(super) fn on_asked_back(&mut self, index: u32) -> Result<(), &'static str> {
        if index >= self.space.spaces.pages(self.space.own_page(index).space) {
            return Err("a wish for a frame of a page that does not exist");
        }
        // It may have been given back already.
        self.work.push_back(Work::GiveBack { index });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_wishes_are_understood() {
        assert_eq!(decode(&[TAG_ASKED_BACK, 1, 2, 0, 0]), Some(513));
        assert_eq!(
            [&[TAG_ASKED_BACK, 1, 2, 0][..], &[TAG_ASKED_BACK; 6], &[1, 0, 0, 0, 0], &[]].map(decode),
            [None; 4]
        );
    }
}
