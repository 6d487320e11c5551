//! Frames that are lent: their pages' homes have them mapped.
//!
//! Loads and stores reach a rank's own segment only, so a page has one borrower: its home. A loan counts as a pin, which
//! the engine can ask back. No more than half of a pool's frames are lent, and with those that the client pins no more than
//! leave a quarter and four, or half of a very small pool: a borrower that is stopped leaves those.

use super::{Ordering, PageTable};
use vgasnet_protocol::coherence::{FrameId, PageId};

/// Frames that stay when others are lent and pinned: those that one instruction may need.
const SPARE_MIN: u32 = 4;

impl PageTable {
    /// Lends the page in the frame to its home, if it is open there and not asked back. A loan is ended by one
    /// [`PageTable::give_back`].
    pub fn lend(&self, frame: FrameId, page: PageId) -> bool {
        let Some(entry) = self.entries.get(frame.0 as usize) else { return false };
        // Either this sees new pins or who pins sees this loan.
        let lent = self.lent.fetch_add(1, Ordering::SeqCst) as usize;
        let has_room = lent < self.entries.len() / 2 && self.lent_too_many() == 0;
        let is_lent = has_room && entry.lend(page.into());
        if !is_lent {
            self.lent.fetch_sub(1, Ordering::Relaxed);
        }
        is_lent
    }

    /// Ends a loan, after the frame was unmapped. Returns whether the engine waits for it: then the caller calls
    /// [`PageTable::notify_unpinned`] and wakes the engine's rank.
    #[must_use]
    pub fn give_back(&self, frame: FrameId) -> bool {
        let is_awaited = self.entry(frame).give_back();
        self.lent.fetch_sub(1, Ordering::Relaxed);
        is_awaited
    }

    /// Whether the frame is lent.
    pub fn is_lent(&self, frame: FrameId) -> bool {
        self.entry(frame).is_lent()
    }

    /// Notes that a frame is asked back, which is not lent again before [`PageTable::allow_loans`]. Returns whether its
    /// borrower has to be told. The engine's.
    #[must_use]
    pub fn ask_back(&self, frame: FrameId) -> bool {
        self.entry(frame).ask_back()
    }

    /// Allows a frame that came back to be lent again. The engine's.
    pub fn allow_loans(&self, frame: FrameId) {
        self.entry(frame).allow_loans();
    }

    /// Sets how many frames the client has pinned or is about to, of which fewer can be lent. The engine's.
    pub fn set_client_pins(&self, count: u32) {
        self.client_pins.store(count, Ordering::SeqCst);
    }

    /// How many frames too many are lent, beside those that the client pins.
    pub fn lent_too_many(&self) -> u32 {
        let frames = self.entries.len() as u32;
        let spare = (frames / 4).max(SPARE_MIN.min(frames / 2));
        let taken = self.lent.load(Ordering::SeqCst) + self.client_pins.load(Ordering::SeqCst);
        taken.saturating_sub(frames - spare)
    }

    /// How many frames are lent.
    pub fn lent(&self) -> u32 {
        self.lent.load(Ordering::Relaxed)
    }
}
