//! The engine's pending work in numbers, and whether there is none.

use super::Engine;

/// Amount of each kind of pending work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Messages that the conduit has not taken yet.
    pub messages: usize,
    /// Parts of operations waiting for a page.
    pub parts: usize,
    /// Page transfers to other ranks' frames.
    pub transfers: usize,
    /// Pages in flight between the file and a frame.
    pub storage_operations: usize,
    /// Closing pages that are still pinned.
    pub closing: usize,
    /// Pages being read ahead.
    pub ahead: usize,
    /// Work items that no thread has taken.
    pub work: usize,
    /// Parts shipped to other ranks.
    pub shipped: usize,
    /// Requests of other ranks for bytes of pages.
    pub served: usize,
    /// Pages with deferred messages.
    pub deferred: usize,
}

impl Engine {
    /// Whether a drive has nothing to do until a message or a request arrives.
    pub(super) fn has_nothing_in_flight(&self) -> bool {
        let is_quiet =
            !self.queue.has_events() && !self.queue.has_work() && !self.is_held_up() && !self.status.is_broken();
        let is_stored = !self.storage.is_busy() && self.files.is_idle();
        let has_frames = self.paging.is_idle() && self.protocol.cache.starving() == 0;
        is_quiet && is_stored && has_frames && !self.bytes.is_waiting()
    }

    /// The pending work. It is bounded by the job's frames and the client's operations.
    pub fn pending(&self) -> Pending {
        Pending {
            messages: self.outbox.len(),
            parts: self.waiting.parts() + self.held_parts() + self.paging.waiting_parts(),
            transfers: self.waiting.transfers(),
            storage_operations: self.storage.operations(),
            closing: self.paging.closing(),
            ahead: self.paging.pages_ahead(),
            work: self.queue.work_items(),
            shipped: self.bytes.shipped(),
            served: self.bytes.served(),
            deferred: self.bytes.pages_deferred(),
        }
    }
}
