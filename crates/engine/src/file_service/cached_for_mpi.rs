//! Files that an MPI program caches for writing (`mpi/io/`), counted at the first rank of each.
//!
//! If processes that may lack the library come to the job, caching is barred on all ranks for good. A rank counts a file
//! before it caches it, under the lock by which it is barred. So once all ranks are barred and have counts of 0, none
//! caches a file for writing.
//!
//! If a rank ends the job, all ranks are asked to rescue their files. The rank waits until none is left.

/// One rank's part.
#[derive(Debug, Default)]
pub struct CachedForMpi {
    is_barred: bool,
    cached: u64,
    is_job_ending: bool,
    /// Of the cached ones, those that are rescued.
    rescued: u64,
}

impl CachedForMpi {
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

    /// A rank is about to end the job. Returns the number of files that are not rescued.
    pub fn on_job_end(&mut self) -> u64 {
        self.is_job_ending = true;
        self.cached.saturating_sub(self.rescued)
    }

    /// That rank has not ended the job.
    pub fn on_job_goes_on(&mut self) {
        (self.is_job_ending, self.rescued) = (false, 0);
    }

    pub fn is_job_ending(&self) -> bool {
        self.is_job_ending
    }

    /// All files of this rank are rescued.
    pub fn note_rescue(&mut self) {
        self.rescued = self.cached;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barred_rank_caches_no_further_file() {
        let mut files = CachedForMpi::default();
        assert!(files.begin() && files.begin());
        assert_eq!(files.bar(), 2);
        assert!(!files.begin());
        files.end();
        assert_eq!(files.bar(), 1);
        files.end();
        assert_eq!(files.bar(), 0);
    }

    #[test]
    fn a_job_ends_when_its_files_are_rescued() {
        let mut files = CachedForMpi::default();
        assert!(files.begin() && files.begin() && !files.is_job_ending());
        assert!(files.on_job_end() == 2 && files.is_job_ending() && !files.is_barred());
        files.note_rescue();
        assert_eq!(files.on_job_end(), 0);
        files.end();
        assert_eq!(files.on_job_end(), 0, "a file that is closed after its rescue");
        files.on_job_goes_on();
        assert!(!files.is_job_ending());
        assert_eq!(files.on_job_end(), 1);
    }
}
