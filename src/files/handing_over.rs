//! Operations of `libvgasnet-mpi-io` on a file, each by one rank.
//!
//! Once others write a file as well, the library has all ranks stop their calls, syncs the file, and has the program
//! read and write it without pages. The file stays open for its shared pointer. When the job is about to end, one rank
//! has all ranks' data written.

use super::{FileError, Files, SharedFile};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vgasnet_protocol::file_message::{FileAsk, PageFilter};
use vgasnet_storage::errno_of;

/// Excludes this rank's rescue of a file and its handover: a rescue never cuts what others have written.
#[derive(Debug, Default)]
pub(super) struct Ending(Mutex<()>);

impl Ending {
    fn begin(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// The file's descriptor, open as long as the file.
    ///
    /// # Errors
    /// This rank does not see the file.
    pub fn descriptor(&self, file: &SharedFile) -> Result<RawFd, FileError> {
        let descriptor = file.named().and_then(|named| named.as_fd()).map(|file| file.as_raw_fd());
        descriptor.ok_or_else(|| FileError::io(file.path(), "be handed over", libc::EOPNOTSUPP))
    }

    /// Notes that the file is synced and no longer cached by its team, so closing it writes and cuts nothing. Each rank
    /// calls this before the first one closes the file, or lets others write it. Waits for a rescue by this rank.
    pub fn hand_over(&self, file: &SharedFile) {
        let _no_rescue = file.ending().begin();
        file.note_handed_over();
    }

    /// Has the file's team hand the file over. Not collective.
    pub fn want_handed_over(&self, file: &SharedFile) {
        self.driver().ask_of_file(std::iter::once(file.members().first()), file.space(), FileAsk::HandOver, 0);
    }

    /// At the first rank: whether a rank wants the file handed over.
    pub fn is_wanted(&self, file: &SharedFile) -> bool {
        file.state().is_wanted()
    }

    /// Has further writes of all ranks wait for the end of the job, since they would be lost with it. Writes that had
    /// begun before are not waited for. Not collective.
    pub fn hold_writes(&self, file: &SharedFile) {
        self.driver().ask_of_file(file.members().ranks(), file.space(), FileAsk::HoldWrites, 0);
    }

    /// Writes all ranks' data to the file system and cuts the file at their end. The other ranks' helpers do their
    /// part.
    ///
    /// # Errors
    /// Some data could not be written. The other data was tried as well.
    pub fn rescue(&self, file: &SharedFile) -> Result<(), FileError> {
        // Nobody else writes the file before this rank, too, has handed it over.
        let _not_handed_over = file.ending().begin();
        if !file.access().write || file.is_handed_over() {
            return Ok(());
        }
        let own = self.flush(file);
        let cause = self.driver().recall_file(file.space(), &file.stripes().homes, PageFilter::ALL);
        own?;
        if let Some(cause) = cause {
            return Err(file.failed("be written", cause));
        }
        // Blocks are written whole, so the file may be too long.
        let cut = self.cut_to_end(file);
        cut.map_err(|error| FileError::io(file.path(), "get its size", errno_of(&error)))
    }

    /// Whether this rank's MPI program may cache one more file for writing. If so, it is counted.
    pub fn begin_caching(&self) -> bool {
        self.driver().engine().begin_caching()
    }

    /// A counted file is cached no more.
    pub fn end_caching(&self) {
        self.driver().engine().end_caching();
    }

    /// Bars caching on this rank only.
    pub fn bar_own_caching(&self) {
        self.driver().engine().bar_caching();
    }

    /// Bars caching on all ranks. Returns the number of files that are still cached.
    pub fn bar_caching(&self) -> u64 {
        self.driver().bar_caching()
    }

    /// Whether caching is barred here.
    pub fn is_caching_barred(&self) -> bool {
        self.driver().engine().is_caching_barred()
    }

    /// Has all ranks rescue the files that their MPI program caches: this rank is about to end the job. Returns the
    /// number of files that are not rescued.
    pub fn end_job(&self) -> u64 {
        self.driver().end_job()
    }

    /// This rank has not ended the job after all.
    pub fn go_on(&self) {
        self.driver().go_on();
    }

    /// Whether a rank is about to end the job.
    pub fn is_job_ending(&self) -> bool {
        self.driver().engine().is_job_ending()
    }

    /// All files of this rank's MPI program are rescued.
    pub fn note_rescue(&self) {
        self.driver().engine().note_rescue();
    }
}
