//! Messages to this home about pages with jobs on their blocks, deferred until the jobs end.

use std::collections::BTreeMap;
use vgasnet_protocol::coherence::{Event, PageId};

/// The deferred messages by page, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct DeferredMessages(BTreeMap<PageId, Vec<Event>>);

impl DeferredMessages {
    pub(super) fn defer(&mut self, page: PageId, message: Event) {
        self.0.entry(page).or_default().push(message);
    }

    pub(super) fn has(&self, page: PageId) -> bool {
        self.0.contains_key(&page)
    }

    pub(super) fn release(&mut self, page: PageId) -> Option<Vec<Event>> {
        self.0.remove(&page)
    }

    /// The pages with deferred messages.
    pub(super) fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.0.keys().copied()
    }

    /// Number of pages with deferred messages.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
