//! The invariants between the components of an engine after a drive, checked in builds with debug assertions.

use super::Engine;

/// Most directory entries that are walked after each drive.
const ENTRIES_MAX: usize = 256;

impl Engine {
    /// The components agree. After an error that ends the job they need not.
    pub(super) fn check(&self) {
        if !cfg!(debug_assertions) || self.status.is_broken() {
            return;
        }
        let cache = &self.protocol.cache;
        debug_assert!(!self.queue.has_events(), "a drive handles all events");
        debug_assert!(!self.outbox.has_bundle(), "a drive sends all its messages");
        debug_assert!(
            self.bytes.deferred().all(|page| self.storage.has_jobs(page)),
            "messages wait for jobs on blocks"
        );
        debug_assert!(self.storage.frames_for_blocks() < cache.frames(), "some frames are for pages");
        debug_assert!(cache.notices() <= cache.notices_max(), "at most so many homes have yet to be told");
        let mut unwritten = cache.unflushed().filter(|page| page.space.segment().is_none());
        debug_assert!(unwritten.all(|page| self.is_open_file(page.space)), "pages of open files are written back");
        self.paging.check(cache);
        let home = &self.protocol.home;
        let mut held = home.known_pages().filter(|_| home.entries() <= ENTRIES_MAX);
        debug_assert!(held.all(|page| !self.storage.is_shown(page)), "neighbours read no page that a rank holds");
    }
}
