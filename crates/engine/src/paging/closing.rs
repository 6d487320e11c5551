//! Pages that close: they take no new pins, and are closed once unpinned and given back.

use super::Paging;
use vgasnet_memory::{Closing, Frames};
use vgasnet_protocol::coherence::{FrameId, PageId};

/// A page that is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedPage {
    /// The page.
    pub page: PageId,
    /// Its frame.
    pub frame: FrameId,
    /// The page may be mapped in the segment: it is to be unmapped before the protocol is told.
    pub is_mapped: bool,
}

/// The result of closing a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseStep {
    /// It is closed.
    Closed(ClosedPage),
    /// It is still pinned.
    Pinned {
        /// A neighbour has borrowed its frame and is to be asked for it.
        asks_back: bool,
    },
}

impl Paging {
    /// Defers the closing of a page pinned by the client until it is unpinned. Returns whether it is.
    pub fn defer_close(&mut self, page: PageId) -> bool {
        self.space.is_own(page) && self.pins.defer_close(page.index)
    }

    /// Closes a page, now or once it is unpinned and given back.
    pub fn close(&mut self, page: PageId) -> CloseStep {
        match self.space.close(page) {
            Closing::Done(frame) => CloseStep::Closed(closed(&self.frames, page, frame)),
            Closing::Pinned => {
                let table = &self.space.own.table;
                let asks_back = table.find(page).is_some_and(|frame| table.ask_back(frame));
                debug_assert!(!self.closing.contains(&page), "{page:?} closes once");
                self.closing.push(page);
                CloseStep::Pinned { asks_back }
            }
        }
    }

    /// Calls `on_closed` for each closing page that is closed by now. Returns whether there was one.
    pub fn poll_closing(&mut self, mut on_closed: impl FnMut(ClosedPage)) -> bool {
        let (space, frames, before) = (&self.space, &self.frames, self.closing.len());
        self.closing.retain(|page| match space.poll_closed(*page) {
            Some(frame) => {
                on_closed(closed(frames, *page, frame));
                false
            }
            None => true,
        });
        before != self.closing.len()
    }

    /// Number of closing pages that are still pinned.
    pub fn closing(&self) -> usize {
        self.closing.len()
    }
}

fn closed(frames: &Frames, page: PageId, frame: FrameId) -> ClosedPage {
    ClosedPage { page, frame, is_mapped: frames.is_mapped(page, frame) }
}
