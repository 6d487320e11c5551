//! What a cache knows of one page.

use super::super::{Access, Cause, CopyVersion, Forward, FrameId, Priority, ToHome, Waiter};
use super::invalidations::Invalidation;
use alloc::vec::Vec;

/// A page that is in a frame, on its way to one, or waits for one. The default waits for a frame, and no operation
/// waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CachedPage {
    pub frame: Option<FrameId>,
    pub phase: Phase,
    pub access_state: AccessState,
    /// The copy, in the phases that have one.
    pub copy: CopyVersion,
    /// This rank accounts for bytes that the backing file lacks.
    pub dirty: bool,
    /// An Evict that keeps the copy is on its way.
    pub flushing: bool,
    /// Transfers to readers under way out of the frame.
    pub outgoing: u32,
    /// The home wants it written back, and may have said so after the write-back under way has failed.
    pub is_recalled: bool,
    pub deferred: DeferredActions,
    /// It is being fetched, or waits for a frame, and no operation waits for it: how soon one may.
    pub ahead: Option<Priority>,
    /// Operations here that wait to read the page.
    pub readers: Vec<Waiter>,
    /// Operations here that wait to write it.
    pub writers: Vec<Waiter>,
    /// The operation that overwrites the whole page before all others, until it may.
    pub overwriter: Option<Waiter>,
}

/// How far a page has come; the diagram in [`super`] has the transitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Phase {
    /// Waits for a frame.
    #[default]
    AwaitingFrame,
    /// Has a frame and has asked its home; no copy yet.
    Fetching { access: Access, data: FetchedData, granted: bool },
    /// Has a copy to read.
    Shared,
    /// Has a copy to read, and has asked its home to write.
    Upgrading,
    /// Has the only copy, to read and write.
    Owned,
    /// Has a dirty copy; the frame is free when the home has written it back.
    Evicting,
    /// Its copy is on the way to a writer. `upgrade`: this rank's own request to write is at the home.
    Leaving { upgrade: bool },
}

/// Whether the page that is being fetched is in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FetchedData {
    Missing,
    /// It could not be read, and the grant of the same transaction is still to come.
    Failed(Cause),
    /// The frame is being filled with zeros, or by the operation that overwrites the page.
    Clearing,
    There,
}

/// Whether operations of this rank use the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum AccessState {
    /// Operations may begin to use it.
    Open(Access),
    /// No operation may begin to use it, but some may still do so.
    Closing,
    /// No operation uses it.
    #[default]
    Closed,
}

/// What is to be done once the page is closed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DeferredActions {
    /// Give up the copy, and acknowledge that.
    pub invalidate: Option<Invalidation>,
    /// Send the page to a writer, which ends the copy here.
    pub serve_writer: Option<Forward>,
    /// Send the page to readers, which ends the right to write here.
    pub serve_readers: Vec<Forward>,
    /// Write the page back, this urgently.
    pub flush: Option<Priority>,
    /// Free the frame, this urgently.
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

    /// The most that operations may do to the copy.
    pub fn access(&self) -> Access {
        if self.phase == Phase::Owned { Access::Write } else { Access::Read }
    }

    /// Gets a frame and begins to fetch what the waiters need. Returns the request to the home.
    pub fn fetch(&mut self, frame: FrameId) -> ToHome {
        self.frame = Some(frame);
        let access = if self.writers.is_empty() && self.overwriter.is_none() { Access::Read } else { Access::Write };
        self.phase = Phase::Fetching { access, data: FetchedData::Missing, granted: false };
        match access {
            Access::Read => ToHome::Read { frame, priority: self.ahead.unwrap_or(Priority::Now) },
            Access::Write if self.overwriter.is_some() => ToHome::Overwrite { frame },
            Access::Write => ToHome::Write { frame, copy: None },
        }
    }

    /// Whether the copy is being given up: to a writer, or because one is about to write.
    pub fn is_leaving(&self) -> bool {
        self.deferred.invalidate.is_some() || self.deferred.serve_writer.is_some()
    }

    /// Whether readers are being served, or will be once the page is closed.
    pub fn is_serving_readers(&self) -> bool {
        self.outgoing > 0 || !self.deferred.serve_readers.is_empty()
    }

    /// Whether this rank accounts for bytes that the file lacks, or is to.
    pub fn will_be_dirty(&self) -> bool {
        // Who overwrites a page has been told to, and waits no more, before it is dirty.
        let is_fetched_to_write = matches!(self.phase, Phase::Fetching { access: Access::Write, .. });
        self.dirty || is_fetched_to_write || !self.writers.is_empty() || self.overwriter.is_some()
    }

    pub fn is_evictable(&self) -> bool {
        matches!(self.phase, Phase::Shared | Phase::Owned)
            && matches!(self.access_state, AccessState::Open(_))
            && self.outgoing == 0
    }
}
