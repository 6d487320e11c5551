//! What an engine does for many ranks that want the same, and how to switch that off: the model of a cluster compares.

use super::Engine;
use vgasnet_protocol::replacement::Reserve;

/// Bytes of a page that a holder sends while the home hears of the end of another such page, and answers.
const SENT_MEANWHILE_BYTES: usize = 64 << 10;

/// How many readers of a page of so many bytes a holder best serves at a time: one by one, so that those who have it pass it on, but
/// as many as hide the messages in between.
pub fn readers_at_once(page_bytes: usize) -> usize {
    (SENT_MEANWHILE_BYTES / page_bytes).clamp(1, 16)
}

impl Engine {
    /// The same engine, which fetches and evicts pages only when it must, and sends each message alone. Nothing has happened yet.
    pub fn not_ahead(mut self) -> Engine {
        self.prefetch.is_on = false;
        self.outbox.bundle_nothing();
        self.reserve = Reserve::new(0, self.space.page_bytes());
        self
    }

    /// The same engine, which gives pages up whether or not other ranks have them. Nothing has happened yet.
    pub fn sparing_nothing(mut self) -> Engine {
        self.spares_only_copies = false;
        self
    }
}
