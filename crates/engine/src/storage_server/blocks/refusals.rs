//! Files with blocks that could not be written. Files are named by their slots in the storage.

use super::super::home_page::HomePage;
use std::collections::BTreeMap;
use vgasnet_protocol::coherence::Cause;

/// The files with failed writes, and the causes.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// A flush of the file retries them.
    of_files: BTreeMap<u32, Cause>,
    /// Files with a failed write since the last query.
    failures: BTreeMap<u32, Cause>,
}

impl Refusals {
    /// A block of a file could not be written.
    pub(super) fn on_failed(&mut self, file: u32, cause: Cause) {
        self.of_files.insert(file, cause);
        self.failures.insert(file, cause);
    }

    /// Writes to a file are tried again, or the file is closed.
    pub(super) fn forget(&mut self, file: u32) {
        self.of_files.remove(&file);
    }

    /// Why blocks of a file cannot be written, if they cannot.
    pub(super) fn of_file(&self, file: u32) -> Option<Cause> {
        self.of_files.get(&file).copied()
    }

    /// The same for the file of a page.
    pub(super) fn of_page(&self, page: HomePage) -> Option<Cause> {
        self.of_file(page.slot())
    }

    /// One of the causes.
    pub(super) fn first(&self) -> Option<Cause> {
        self.of_files.values().next().copied()
    }

    /// The files.
    pub(super) fn files(&self) -> impl Iterator<Item = u32> + '_ {
        self.of_files.keys().copied()
    }

    /// Files with a failed write since the last call, and the causes.
    pub(super) fn take_failures(&mut self) -> BTreeMap<u32, Cause> {
        std::mem::take(&mut self.failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_once_and_refuses_until_the_next_try() {
        let mut refusals = Refusals::default();
        assert!(refusals.first().is_none());
        refusals.on_failed(3, Cause(28));
        assert_eq!(refusals.take_failures().into_iter().collect::<Vec<_>>(), [(3, Cause(28))]);
        assert!(refusals.take_failures().is_empty());
        assert_eq!([refusals.of_page(HomePage::of_file(3, 9)), refusals.of_file(4)], [Some(Cause(28)), None]);
        assert_eq!((refusals.files().collect::<Vec<_>>(), refusals.first()), (vec![3], Some(Cause(28))));
        refusals.forget(3);
        assert!(refusals.of_file(3).is_none());
    }
}
