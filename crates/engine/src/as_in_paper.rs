//! Switches off the engine's optimisations for comparisons with the paper's runtime in the cluster model.

use super::Engine;
use vgasnet_protocol::replacement::Reserve;

impl Engine {
    /// Turns off read-ahead, early eviction and bundling. For an engine that has not run yet.
    pub fn not_ahead(mut self) -> Engine {
        self.prefetch.is_on = false;
        self.reserve = Reserve::new(0, self.space.page_bytes());
        self.bundling_nothing()
    }

    /// Turns off bundling: each message is sent alone. For an engine that has not run yet.
    pub fn bundling_nothing(mut self) -> Engine {
        self.outbox.bundle_nothing();
        self
    }

    /// Evicts pages regardless of other ranks' copies. For an engine that has not run yet.
    pub fn sparing_nothing(mut self) -> Engine {
        self.spares_only_copies = false;
        self
    }
}
