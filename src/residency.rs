//! What a client may say of its own segment: pins, for those that cannot fault, and hints.

use crate::coherence::Access;
use crate::engine::TooMany;
use crate::error::UserError;
use crate::runtime::Runtime;
use std::ops::RangeInclusive;

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

/// Why a range is not pinned.
#[derive(Clone, Debug)]
pub enum PinError {
    /// The arguments make no sense.
    BadArgument(UserError),
    /// There is no room.
    Resource(UserError),
}

impl Runtime {
    /// Keeps a range of the own segment in the pool and mapped, so that system calls and devices can use its addresses.
    /// No bytes are always pinned.
    ///
    /// # Errors
    /// The range is not inside the own segment, or more would be pinned than the pool allows; nothing is pinned then.
    pub fn pin(&self, address: usize, len_bytes: usize, access: Access) -> Result<(), PinError> {
        let Some(pages) = self.own_pages(address, len_bytes).map_err(PinError::BadArgument)? else { return Ok(()) };
        let Some(local) = &self.space().local else { return Err(PinError::Resource(not_mapped())) };
        self.progress().engine().hold(pages.clone()).map_err(|error| PinError::Resource(self.too_many(error)))?;
        self.progress().engine().fetch(pages.clone());
        // In ascending order, so that threads which pin overlapping ranges do not wait for each other.
        for index in pages {
            if self.progress().engine().pin_held(index, access) {
                continue;
            }
            let completion = self.completions().begin();
            self.progress().submit(std::iter::once(local.admission(index, access, None, Some(completion))));
            self.wait(completion);
            self.completions().end(completion);
        }
        Ok(())
    }

    /// Undoes one [`Runtime::pin`] of the same range.
    ///
    /// # Errors
    /// The range is not inside the own segment, or some of it is not pinned; nothing is undone then.
    pub fn unpin(&self, address: usize, len_bytes: usize) -> Result<(), UserError> {
        let Some(pages) = self.own_pages(address, len_bytes)? else { return Ok(()) };
        let was_held = self.progress().engine().release(pages.clone());
        let Some(local) = self.space().local.as_ref().filter(|_| was_held) else {
            let what = format!("{len_bytes} bytes at {address:#x} are not pinned, or not all of them");
            return Err(UserError::new(format!("{what}; undo each vgasnet_pin once, with the same range")));
        };
        // Every page, and only then the engine: it waits for each.
        let closing = pages.fold(false, |closing, index| local.leave(index) | closing);
        if closing {
            self.progress().kick();
        }
        Ok(())
    }

    /// Takes a hint about a range of the own segment.
    ///
    /// # Errors
    /// The range is not inside the own segment.
    pub fn advise(&self, address: usize, len_bytes: usize, advice: Advice) -> Result<(), UserError> {
        let Some(pages) = self.own_pages(address, len_bytes)? else { return Ok(()) };
        let mut engine = self.progress().engine();
        match advice {
            Advice::WillNeed => engine.fetch(pages),
            Advice::DontNeed => engine.discard(&pages),
            Advice::Sequential => engine.expect_in_order(&pages),
            Advice::ReadMostly => engine.clean(&pages),
        }
        drop(engine);
        self.progress().step();
        Ok(())
    }

    /// The pages of a range of the own segment; `None` if it has no bytes.
    fn own_pages(&self, address: usize, len_bytes: usize) -> Result<Option<RangeInclusive<u32>>, UserError> {
        let mut pieces = self.space().pieces(self.space().rank.0, address, len_bytes)?;
        let Some(first) = pieces.next() else { return Ok(None) };
        let last = (first.offset_bytes + len_bytes - 1) / self.space().page_bytes();
        Ok(Some(first.page.index..=first.page.index + last as u32))
    }

    fn too_many(&self, error: TooMany) -> UserError {
        let (page_bytes, TooMany { pages, pages_max }) = (self.space().page_bytes(), error);
        UserError::new(format!(
            "{pages} pages of {page_bytes} bytes would be pinned at a time, and at most {pages_max} may be, with this pool; \
             pin less, or raise VGASNET_POOL_SIZE"
        ))
    }
}

fn not_mapped() -> UserError {
    UserError::new("this conduit's pool cannot be mapped into the segment; use gets and puts")
}
