//! Sync brings all written data to the disk. The next sync remembers a failed one.
//!
//! Each home records the data written since the last successful sync, and the data not written again since a failed one
//! (`crates/storage/src/unsynced.rs`). Each rank records the data it has written again since (`FileState::again`).

use super::unwritten::{Told, of_all};
use super::{FileError, Files, SharedFile};
use std::ops::Range;
use vgasnet_engine::request::Handle;
use vgasnet_engine::{Unwritten, joined};
use vgasnet_protocol::coherence::Cause;
#[cfg(feature = "mpi")]
use vgasnet_protocol::{Rank, file_message::FileAsk};
use vgasnet_storage::{Doubt, NamedFile, errno_of};

/// Ranges of a rank in one exchange.
const TOLD: usize = 32;

impl SharedFile {
    /// Takes the ranges this rank has written again so far.
    pub(super) fn take_written_again(&self, is_in_flight: impl Fn(Handle) -> bool) -> Vec<Range<u64>> {
        if !self.state().again().is_doubted() {
            return Vec::new();
        }
        let begun = self.state().settle_begun(is_in_flight);
        self.state().again().take(begun > 0, self.errors())
    }

    /// Whether a sync has failed, as far as this rank knows.
    fn has_doubt(&self) -> bool {
        self.state().again().is_doubted() || self.named_at_home().is_some_and(|named| named.doubt().is_some())
    }
}

/// The error number of a failed sync of the name of a file that MPI has created, if it has failed.
#[cfg(feature = "mpi")]
fn failed_name(file: &SharedFile) -> Option<i32> {
    let synced = file.named().map_or(Ok(()), |named| named.sync_name());
    synced.err().map(|error| errno_of(&error))
}

impl Files {
    /// Brings the file system's data of a file to the disk. `again` are the ranges this rank had written again before
    /// all ranks reached this point.
    ///
    /// # Errors
    /// The sync failed. Or an earlier one failed, and its data have not all been written again since.
    pub(super) fn reach_disk(&self, file: &SharedFile, again: &[Range<u64>]) -> Result<(), FileError> {
        let home = file.named_at_home();
        let synced = home.map_or(Ok(()), NamedFile::sync);
        let errno = synced.err().map_or(0, |error| errno_of(&error));
        // A rank that has synced alone may have told some ranks of its failure, and the others not yet.
        let all = file.members().gather([errno, i32::from(file.has_doubt())])?;
        let failed = all.iter().map(|[errno, _]| *errno).find(|errno| *errno != 0);
        let is_doubted = all.iter().any(|[_, is_doubted]| *is_doubted != 0);
        if failed.is_none() && !is_doubted {
            home.into_iter().for_each(|named| _ = named.end_sync(None, &[]));
            return Ok(());
        }
        let again = if failed.is_none() { self.all_ranges(file, again)? } else { Vec::new() };
        home.into_iter().for_each(|named| _ = named.end_sync(failed, &again));
        if failed.is_some() || !file.state().again().is_doubted() {
            file.state().again().doubt();
        }
        let left = self.check_doubt(file);
        if left.is_ok() {
            file.state().again().trust();
        }
        left
    }

    /// Fails on all ranks if a home has data in doubt after a failed sync.
    pub(super) fn check_not_doubted(&self, file: &SharedFile) -> Result<(), FileError> {
        let all = file.members().gather(u32::from(file.has_doubt()))?;
        if all.iter().all(|is_doubted| *is_doubted == 0) { Ok(()) } else { self.check_doubt(file) }
    }

    /// A rank has synced the file's bytes alone; `failed` is the error number if this has failed. Then all bytes that it may
    /// have lost are doubtful. Not collective.
    ///
    /// # Errors
    /// Bytes of this sync or an earlier one have not been written again and synced by all ranks since.
    #[cfg(feature = "mpi")]
    pub fn end_sync_alone(&self, file: &SharedFile, failed: Option<i32>) -> Result<(), FileError> {
        let ask = |ranks: &mut dyn Iterator<Item = Rank>| {
            let errno = failed.unwrap_or(0) as u64;
            let answers = self.driver().ask_of_file(ranks, file.space(), FileAsk::Doubt, errno);
            answers.into_iter().map(|answer| answer.value as i32).find(|errno| *errno != 0)
        };
        let doubt = match failed {
            Some(_) => ask(&mut file.members().ranks()),
            None => ask(&mut file.stripes().homes.iter().copied()),
        };
        let Some(errno) = failed.or(doubt).or_else(|| failed_name(file)) else { return Ok(()) };
        file.state().note_error(Cause(errno as u32));
        Err(FileError::synced_alone(file.path(), errno))
    }

    fn check_doubt(&self, file: &SharedFile) -> Result<(), FileError> {
        let doubt = file.named_at_home().and_then(NamedFile::doubt);
        let doubt = doubt.map(|Doubt { errno, ranges }| Unwritten { cause: Cause(errno as u32), ranges });
        let all = file.members().gather(Told::new(doubt.as_ref()))?;
        let Some((cause, bytes)) = of_all(&all, file.known_bytes()) else { return Ok(()) };
        file.state().note_error(cause);
        Err(FileError::doubtful(file.path(), cause, &bytes))
    }

    /// Gathers the ranges of all ranks.
    fn all_ranges(&self, file: &SharedFile, own: &[Range<u64>]) -> Result<Vec<Range<u64>>, FileError> {
        let (mut ranges, mut left) = (Vec::new(), own);
        loop {
            let (now, later) = left.split_at(left.len().min(TOLD));
            left = later;
            let mut told = [[0_u64; 2]; TOLD];
            told.iter_mut().zip(now).for_each(|(told, range)| *told = [range.start, range.end]);
            let all = file.members().gather(told)?;
            ranges.extend(all.iter().flatten().map(|[start, end]| *start..*end).filter(|range| !range.is_empty()));
            // A rank with more ranges than fit has filled all entries.
            if all.iter().all(|told| told[TOLD - 1] == [0, 0]) {
                return Ok(joined(ranges));
            }
        }
    }
}
