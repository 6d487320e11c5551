//! Work of the rooms above for client threads in calls.

use std::sync::{Arc, OnceLock};

/// Work of the rooms above for client threads in calls: running handlers, driving collectives.
pub trait CallerWork: Send + Sync {
    /// Whether this thread may do such work. A thread in a handler may not.
    fn may_work(&self) -> bool;

    /// Whether there is any work.
    fn is_pending(&self) -> bool;

    /// Does one item of work. Returns whether there was any.
    fn work(&self) -> bool;
}

/// The rooms above, once they are put together.
#[derive(Default)]
pub(super) struct Callers(OnceLock<Arc<dyn CallerWork>>);

impl Callers {
    pub(super) fn set(&self, work: Arc<dyn CallerWork>) {
        assert!(self.0.set(work).is_ok(), "the rooms above are put together once");
    }

    /// Their work, if this thread may do it.
    pub(super) fn for_this_thread(&self) -> Option<&Arc<dyn CallerWork>> {
        self.0.get().filter(|callers| callers.may_work())
    }
}
