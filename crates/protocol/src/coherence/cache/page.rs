//! The cache's state of one page.

use super::super::{Access, Cause, CopyVersion, Forward, FrameId, Priority, ToHome, Waiter};
use super::invalidations::Invalidation;
use alloc::vec::Vec;

/// A page with a frame, being fetched, or awaiting a frame. The default awaits a frame without waiting operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CachedPage {
    pub frame: Option<FrameId>,
    pub phase: Phase,
    pub access_state: AccessState,
    /// The copy's version, in phases with a copy.
    pub copy: CopyVersion,
    /// This rank accounts for bytes missing from the backing file.
    pub dirty: bool,
    /// A copy-keeping Evict is in flight.
    pub flushing: bool,
    /// Transfers to readers in flight out of the frame.
    pub outgoing: u32,
    /// The home recalls the page, and may have done so after the write-back in flight failed.
    pub is_recalled: bool,
    pub deferred: DeferredActions,
    /// Set while the page is being fetched or awaits a frame without waiting operations: the read-ahead's priority.
    pub ahead: Option<Priority>,
    /// Operations waiting to read the page.
    pub readers: Vec<Waiter>,
    /// Operations waiting to write the page.
    pub writers: Vec<Waiter>,
    /// The operation overwriting the whole page before all others, until it may start.
    pub overwriter: Option<Waiter>,
}

/// Phase of a page; the diagram in [`super`] has the transitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Phase {
    /// Awaits a frame.
    #[default]
    AwaitingFrame,
    /// Has a frame and has asked its home; no copy yet.
    Fetching { access: Access, data: FetchedData, granted: bool },
    /// Has a readable copy.
    Shared,
    /// Has a readable copy, and has asked its home for write access.
    Upgrading,
    /// Has the only copy, readable and writable.
    Owned,
    /// Has a dirty copy; the frame is freed after the home has written it back.
    Evicting,
    /// Its copy is in flight to a writer. `upgrade`: this rank's own write request is at the home.
    Leaving { upgrade: bool },
}

/// Whether the data of a page being fetched is in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FetchedData {
    Missing,
    /// The read failed, and the grant of the same transaction is still to arrive.
    Failed(Cause),
    /// The frame is being zero-filled, or filled by the overwriting operation.
    Clearing,
    There,
}

/// Whether operations of this rank use the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum AccessState {
    /// New operations may use it.
    Open(Access),
    /// No new operation may use it, but some may still be using it.
    Closing,
    /// No operation uses it.
    #[default]
    Closed,
}

/// Actions deferred until the page is closed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DeferredActions {
    /// Give up the copy and acknowledge.
    pub invalidate: Option<Invalidation>,
    /// Send the page to a writer, ending this rank's copy.
    pub serve_writer: Option<Forward>,
    /// Send the page to readers, ending this rank's write access.
    pub serve_readers: Vec<Forward>,
    /// Write the page back, with this priority.
    pub flush: Option<Priority>,
    /// Free the frame, with this priority.
    pub evict: Option<Priority>,
}

impl Phase {
    pub fn has_copy(self) -> bool {
        matches!(self, Phase::Shared | Phase::Upgrading | Phase::Owned | Phase::Evicting)
    }
}

impl CachedPage {
    pub fn frame(&self) -> FrameId {
        self.frame.expect("every phase but AwaitingFrame has a frame")
    }

    /// The maximum access operations have to the copy.
    pub fn access(&self) -> Access {
        if self.phase == Phase::Owned { Access::Write } else { Access::Read }
    }

    /// Gets a frame and starts to fetch the access the waiters need. Returns the request to the home.
    pub fn fetch(&mut self, frame: FrameId) -> ToHome {
        debug_assert!(
            !self.phase.has_copy() && !self.dirty && self.outgoing == 0,
            "a page is fetched without a copy here"
        );
        debug_assert!(self.frame.is_none_or(|known| known == frame), "a page is fetched again into its own frame");
        debug_assert!(
            self.ahead.is_none() || self.writers.is_empty(),
            "no operation waits for a page that is read ahead"
        );
        self.frame = Some(frame);
        let access = if self.writers.is_empty() && self.overwriter.is_none() { Access::Read } else { Access::Write };
        self.phase = Phase::Fetching { access, data: FetchedData::Missing, granted: false };
        match access {
            Access::Read => ToHome::Read { frame, priority: self.ahead.unwrap_or(Priority::Now) },
            Access::Write if self.overwriter.is_some() => ToHome::Overwrite { frame },
            Access::Write => ToHome::Write { frame, copy: None },
        }
    }

    /// Whether the copy is being given up, to a writer or because of one.
    pub fn is_leaving(&self) -> bool {
        self.deferred.invalidate.is_some() || self.deferred.serve_writer.is_some()
    }

    /// Whether readers are being served, or will be once the page is closed.
    pub fn is_serving_readers(&self) -> bool {
        self.outgoing > 0 || !self.deferred.serve_readers.is_empty()
    }

    /// Whether this rank accounts for bytes missing from the file, or is about to.
    pub fn will_be_dirty(&self) -> bool {
        // An overwriting operation leaves `overwriter` before the page becomes dirty, so the phase is checked too.
        let is_fetched_to_write = matches!(self.phase, Phase::Fetching { access: Access::Write, .. });
        self.dirty || is_fetched_to_write || !self.writers.is_empty() || self.overwriter.is_some()
    }

    pub fn is_evictable(&self) -> bool {
        matches!(self.phase, Phase::Shared | Phase::Owned)
            && matches!(self.access_state, AccessState::Open(_))
            && self.outgoing == 0
    }
}
