//! Pins and hints for pages of the own segment. Pins are for system calls and devices, which cannot fault.

use super::Ops;
use std::ops::RangeInclusive;
use vgasnet_engine::TooManyPins;
use vgasnet_engine::request::Copy;
use vgasnet_memory::Piece;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::Access;
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};

/// A hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The range will be used soon.
    WillNeed,
    /// The range will not be used soon.
    DontNeed,
    /// The range will be used in order.
    Sequential,
    /// The range will be read much more often than written.
    ReadMostly,
}

/// Reasons to refuse a pin.
#[derive(Clone, Debug)]
pub enum PinError {
    /// The range is not inside the own segment.
    BadArgument(UserError),
    /// The pool has no room, or cannot be mapped.
    Resource(UserError),
}

impl Ops {
    /// Pins a range of the own segment: its pages stay in the pool and mapped, so that system calls and devices can use
    /// the addresses. An empty range needs no pin.
    ///
    /// # Errors
    /// The range is not inside the own segment, or the pool does not allow as many pins; nothing is pinned then.
    pub fn pin(&self, address: usize, len_bytes: usize, access: Access) -> Result<(), PinError> {
        let Some(pages) = self.own_pages(address, len_bytes).map_err(PinError::BadArgument)? else { return Ok(()) };
        if self.space.view.is_none() {
            let line = "this conduit's pool cannot be mapped into the segment; use gets and puts";
            return Err(PinError::Resource(UserError::new(line)));
        }
        let added = self.driver.engine().add_pins(pages.clone());
        let added = added.and_then(|()| self.driver.await_loans(pages.clone()));
        added.map_err(|error| PinError::Resource(self.too_many(error)))?;
        self.driver.engine().fetch(Space::of_segment(self.space.rank), pages.clone());
        // Ascending order keeps threads with overlapping ranges from waiting for each other.
        for index in pages {
            if self.driver.engine().pin_now(index, access) {
                stats::count(Row::HitPins);
                continue;
            }
            let completion = self.completions().begin();
            self.submit_one(Piece::of_page(self.space.own_page(index)), Copy::Pin(access), completion);
            self.driver.finish(completion);
        }
        Ok(())
    }

    /// Undoes one [`Ops::pin`] of the same range.
    ///
    /// # Errors
    /// The range is not inside the own segment, or some of it is not pinned; nothing is undone then.
    pub fn unpin(&self, address: usize, len_bytes: usize) -> Result<(), UserError> {
        let Some(pages) = self.own_pages(address, len_bytes)? else { return Ok(()) };
        let was_pinned = self.driver.engine().remove_pins(pages.clone());
        let Some(view) = self.space.view.as_ref().filter(|_| was_pinned) else {
            return Err(UserError::new(format!(
                "{len_bytes} bytes at {address:#x} are not pinned, or not all of them; undo each vgasnet_pin once, with the same \
                 range"
            )));
        };
        // The engine is notified once, after the last page.
        let closing = pages.fold(false, |closing, index| view.unpin(index) | closing);
        if closing {
            self.driver.notify_unpinned();
        }
        Ok(())
    }

    /// Applies a hint about a range of the own segment.
    ///
    /// # Errors
    /// The range is not inside the own segment.
    pub fn advise(&self, address: usize, len_bytes: usize, advice: Advice) -> Result<(), UserError> {
        let Some(pages) = self.own_pages(address, len_bytes)? else { return Ok(()) };
        self.advise_pages(Space::of_segment(self.space.rank), &pages, advice);
        Ok(())
    }

    /// Applies a hint about pages of the own segment or of a file.
    pub fn advise_pages(&self, space: Space, pages: &RangeInclusive<u32>, advice: Advice) {
        let mut engine = self.driver.engine();
        match advice {
            Advice::WillNeed => engine.fetch(space, pages.clone()),
            Advice::DontNeed => engine.discard(space, pages),
            Advice::Sequential => engine.expect_in_order(space, pages),
            Advice::ReadMostly => engine.clean(space, pages),
        }
        drop(engine);
        self.driver.step();
    }

    /// The pages of a range of the own segment; `None` if it is empty.
    fn own_pages(&self, address: usize, len_bytes: usize) -> Result<Option<RangeInclusive<u32>>, UserError> {
        let mut pieces = self.space.pieces(self.space.rank.0, address, len_bytes)?;
        let Some(first) = pieces.next() else { return Ok(None) };
        let last = (first.offset_bytes + len_bytes - 1) / self.space.page_bytes();
        Ok(Some(first.page.index..=first.page.index + last as u32))
    }

    fn too_many(&self, error: TooManyPins) -> UserError {
        let page_bytes = self.space.page_bytes();
        UserError::new(match error {
            TooManyPins::Pages { wanted, most } => format!(
                "{wanted} pages of {page_bytes} bytes would be pinned at a time, and at most {most} may be, with this pool; \
                 pin less, or raise VGASNET_POOL_SIZE"
            ),
            TooManyPins::Lent(missing) => format!(
                "{missing} pages of {page_bytes} bytes more would be needed than other ranks of this host give back, which have \
                 them mapped and do not answer; let those ranks run, pin less, or raise VGASNET_POOL_SIZE"
            ),
            TooManyPins::OfPage(most) => {
                format!("a page of the range is pinned {most} times, and no more is possible; undo each vgasnet_pin")
            }
        })
    }
}
