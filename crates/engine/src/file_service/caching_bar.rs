//! Files that an MPI program caches for writing (`mpi/io/`), counted at the first rank of each. If processes that may
//! lack the library come to the job, caching is barred on all ranks for good.
//!
//! A rank counts a file before it caches it, under the lock by which it is barred. So once all ranks are barred and
//! have counts of 0, none caches a file for writing.

/// One rank's part.
#[derive(Debug, Default)]
pub struct CachingBar {
    is_barred: bool,
    cached: u64,
}

impl CachingBar {
    /// Counts one more file. Returns false if caching is barred.
    pub fn begin(&mut self) -> bool {
        self.cached += u64::from(!self.is_barred);
        !self.is_barred
    }

    pub fn end(&mut self) {
        self.cached = self.cached.checked_sub(1).expect("it was counted");
    }

    pub fn is_barred(&self) -> bool {
        self.is_barred
    }

    /// Bars further files. Returns the number of files that are still cached.
    pub fn bar(&mut self) -> u64 {
        self.is_barred = true;
        self.cached
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
