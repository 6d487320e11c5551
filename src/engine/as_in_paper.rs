//! How to switch off what an engine does ahead, and for ranks that want the same: the model of a cluster compares.

use super::Engine;
use vgasnet_protocol::replacement::Reserve;

impl Engine {
    /// The same engine, which fetches and evicts pages only when it must, and sends each message alone. Nothing has happened yet.
    pub fn not_ahead(mut self) -> Engine {
        self.prefetch.is_on = false;
        self.reserve = Reserve::new(0, self.space.page_bytes());
        self.bundling_nothing()
    }

    /// The same engine, which sends each message alone. Nothing has happened yet.
    pub fn bundling_nothing(mut self) -> Engine {
        self.outbox.bundle_nothing();
        self
    }

    /// The same engine, which gives pages up whether or not other ranks have them. Nothing has happened yet.
    pub fn sparing_nothing(mut self) -> Engine {
        self.spares_only_copies = false;
        self
    }
}
