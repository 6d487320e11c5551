//! Files that an MPI program caches for writing (`mpi/io/`), counted at the first rank of each. If processes that may
//! lack the library come to the job, caching is barred on all ranks for good.
//!
//! A rank counts a file before it caches it, under the lock by which it is barred. So once all ranks are barred and
//! have counts of 0, none caches a file for writing.

use super::{Driver, Engine};
use vgasnet_protocol::file_message::FileAsk;
use vgasnet_protocol::{Rank, Space};

/// One rank's part.
#[derive(Debug, Default)]
pub(super) struct CachingBar {
    is_barred: bool,
    cached: u64,
}

impl CachingBar {
    /// Counts one more file. Returns false if caching is barred.
    fn begin(&mut self) -> bool {
        self.cached += u64::from(!self.is_barred);
        !self.is_barred
    }

    fn end(&mut self) {
        self.cached = self.cached.checked_sub(1).expect("it was counted");
    }

    /// Bars further files. Returns the number of files that are still cached.
    pub(super) fn bar(&mut self) -> u64 {
        self.is_barred = true;
        self.cached
    }
}

impl Engine {
    /// Whether one more file may be cached for writing. If so, it is counted.
    pub fn begin_caching(&mut self) -> bool {
        self.files.caching_mut().begin()
    }

    /// A counted file is cached no more.
    pub fn end_caching(&mut self) {
        self.files.caching_mut().end();
    }

    /// Bars caching on this rank.
    pub fn bar_caching(&mut self) {
        self.files.caching_mut().bar();
    }

    /// Whether caching is barred: the files that are still cached have to be handed over.
    pub fn is_caching_barred(&self) -> bool {
        self.files.caching().is_barred
    }
}

impl Driver {
    /// Bars caching on all ranks. Returns the number of files that are still cached.
    pub fn bar_caching(&self) -> u64 {
        let ranks = self.engine().conduit.ranks();
        let answers = self.ask_of_file((0..ranks).map(Rank), Space::of_file(0), FileAsk::BarCaching, 0);
        answers.into_iter().map(|answer| answer.value).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barred_rank_caches_no_further_file() {
        let mut bar = CachingBar::default();
        assert!(bar.begin() && bar.begin());
        assert_eq!(bar.bar(), 2);
        assert!(!bar.begin());
        bar.end();
        assert_eq!(bar.bar(), 1);
        bar.end();
        assert_eq!(bar.bar(), 0);
    }
}
