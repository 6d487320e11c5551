//! A rank's barriers outside the engine.

use super::host_barriers::HostBarriers;
use std::sync::atomic::{AtomicBool, Ordering};

/// A rank's barriers outside the engine, and its part in the end of the job.
pub(super) struct Barriers {
    /// Present if all ranks share memory.
    of_host: Option<HostBarriers<'static>>,
    /// Without cooperative caching, barriers write dirty pages back.
    flush: bool,
    /// This rank's program has ended.
    has_left: AtomicBool,
}

impl Barriers {
    /// `of_host`: the barriers of ranks that all share memory. `flush`: barriers write dirty pages back.
    pub(super) fn new(of_host: Option<HostBarriers<'static>>, flush: bool) -> Barriers {
        Barriers { of_host, flush, has_left: AtomicBool::new(false) }
    }

    /// The barriers of ranks that all share memory. Without them the engine's barrier serves.
    #[inline]
    pub(super) fn of_host(&self) -> Option<&HostBarriers<'static>> {
        self.of_host.as_ref()
    }

    /// Whether a barrier writes this rank's dirty pages back first.
    pub(super) fn flush(&self) -> bool {
        self.flush
    }

    /// Whether a barrier of ranks that share memory is complete and no thread of this rank has taken note yet.
    #[inline]
    pub(super) fn is_released(&self) -> bool {
        self.of_host.as_ref().is_some_and(HostBarriers::is_released)
    }

    /// Notes the end of this rank's program. Returns whether this was the first call.
    pub(super) fn begin_leaving(&self) -> bool {
        !self.has_left.swap(true, Ordering::SeqCst)
    }
}
