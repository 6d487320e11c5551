//! Lent frames: frames mapped by the homes of their pages.
//!
//! Loads and stores reach a rank's own segment only, so a page has one borrower: its home. A loan counts as a pin that
//! the engine can ask back. At most half of a pool's frames are lent, and together with the client's pins they leave at
//! least a quarter and four frames, or half of a very small pool: even a stopped borrower leaves these.

use super::{Ordering, PageTable};
use vgasnet_protocol::coherence::{FrameId, PageId};

/// Minimum number of frames neither lent nor pinned: as many as one instruction may need.
const SPARE_MIN: u32 = 4;

impl PageTable {
    /// Lends the page in the frame to its home, if it is open there and not asked back. A loan is ended by one
    /// [`PageTable::give_back`].
    pub fn lend(&self, frame: FrameId, page: PageId) -> bool {
        let Some(entry) = self.entries.get(frame.0 as usize) else { return false };
        // Either this sees new pins, or the pinning thread sees this loan.
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

    /// Asks a frame back, which is not lent again before [`PageTable::allow_loans`]. Returns whether its borrower has
    /// to be told. For the engine only.
    #[must_use]
    pub fn ask_back(&self, frame: FrameId) -> bool {
        self.entry(frame).ask_back()
    }

    /// Allows a returned frame to be lent again. For the engine only.
    pub fn allow_loans(&self, frame: FrameId) {
        self.entry(frame).allow_loans();
    }

    /// Sets the number of frames pinned by the client or about to be, which lowers the limit of loans. For the engine
    /// only.
    pub fn set_client_pins(&self, count: u32) {
        self.client_pins.store(count, Ordering::SeqCst);
    }

    /// Number of lent frames beyond the limit, given the client's pins.
    pub fn lent_too_many(&self) -> u32 {
        let frames = self.entries.len() as u32;
        let spare = (frames / 4).max(SPARE_MIN.min(frames / 2));
        let taken = self.lent.load(Ordering::SeqCst) + self.client_pins.load(Ordering::SeqCst);
        taken.saturating_sub(frames - spare)
    }

    /// Number of lent frames.
    pub fn lent(&self) -> u32 {
        self.lent.load(Ordering::Relaxed)
    }
}
