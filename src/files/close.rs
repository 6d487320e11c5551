//! Collective operations of a team on an open file: writing it back and closing it.

use super::error::Otherwise;
use super::together::Collective;
use super::unwritten::{Told, named, of_all};
use super::{Call, FileError, Files, SharedFile};
use std::io;
use vgasnet_engine::Unwritten;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_message::PageFilter;
use vgasnet_storage::{NamedFile, errno_of};

impl Files {
    /// Brings all written data to the disk and gives the file its written length. Collective over the file's team.
    /// Other threads may write meanwhile. A file open only for reading takes on the file system's present content.
    ///
    /// # Errors
    /// Some data could not be written. They stay in the pools, and the next sync or close tries again. Or other ranks
    /// make another call.
    pub fn sync(&self, file: &Call<'_>) -> Result<(), FileError> {
        self.come_together(file, Collective::Sync)?;
        if !file.access().write {
            return self.refresh(file);
        }
        // Taken first: data written later may miss this sync.
        let again = file.take_written_again(|handle| self.ops.is_in_flight(handle));
        let written = self.hand_on(file);
        if written.is_err() {
            file.state().again().give_back(again);
            return written;
        }
        self.reach_disk(file, &again)
    }

    /// Writes all data to the file system, then sets the file's size.
    fn hand_on(&self, file: &Call<'_>) -> Result<(), FileError> {
        self.write_all(file, Otherwise::Kept)?;
        self.write_moved(file)?;
        // All ranks are in this call, so none of them waits for a barred call.
        let alone = file.bar();
        self.give_end(&alone)
    }

    /// Closes a file. Collective over its team. Other programs see the written data afterwards.
    ///
    /// # Errors
    /// Some data could not be written and are lost; the file is closed. Or other ranks make another call; the file
    /// stays open.
    pub fn close(&self, number: u32) -> Result<(), FileError> {
        self.come_together(&*self.get_beside(number)?, Collective::Close)?;
        let file = self.open.claim(self.driver(), number)?;
        self.unlock_all(&file);
        self.wait_for_begun(&file, Collective::Close);
        // A handed-over file has been written before.
        let is_written = file.access().write && !file.is_handed_over();
        let written = if is_written { self.write_last(&file) } else { Ok(()) };
        self.driver().settle_file(file.space());
        // All writes are done. The claim ends before any rank reports the file closed, so the file is free by then.
        file.end_claim();
        file.members().meet()?;
        self.driver().close_file(file.space());
        file.members().disband()?;
        written
    }

    /// Writes this rank's data to the file system, from any pool, and the length this rank has given the file.
    ///
    /// # Errors
    /// Some data could not be written.
    pub fn flush(&self, file: &SharedFile) -> Result<(), FileError> {
        if !file.access().write {
            return Ok(());
        }
        file.state().settle_begun(|handle| self.ops.is_in_flight(handle));
        self.flush_written(file)?;
        self.extend_named(file)
    }

    pub(super) fn flush_written(&self, file: &SharedFile) -> Result<(), FileError> {
        match self.driver().flush_file_alone(file.space(), &file.stripes().homes) {
            None => Ok(()),
            Some(Unwritten { cause, ranges }) => {
                Err(FileError::unwritten(file.path(), cause, &named(&ranges, 0), Otherwise::Kept))
            }
        }
    }

    /// Writes all ranks' data of the file.
    pub(super) fn write_all(&self, file: &SharedFile, otherwise: Otherwise) -> Result<(), FileError> {
        // Before this gather, ranks may still ship bytes to the blocks of a home. Without spilling there is nothing to
        // drain.
        let all = file.members().gather([file.known_bytes(), u64::from(self.driver().spills())])?;
        let mut unwritten = self.driver().flush_file(file.space());
        if all.iter().any(|[_, spills]| *spills != 0) {
            // By now all ranks have passed their data to the homes, as far as the homes have accepted them.
            file.members().meet()?;
            unwritten = self.driver().drain_file(file.space());
        }
        let size = all.into_iter().map(|[end, _]| end).fold(0, u64::max);
        self.agree_written(file, unwritten.as_ref(), size, otherwise)
    }

    /// Writes dirty pages missed by [`Files::write_all`]: on request, a page may have moved to a rank that had already
    /// written its own. The homes have it written.
    fn write_moved(&self, file: &SharedFile) -> Result<(), FileError> {
        let home = file.is_home().then_some(file.members().own());
        let cause = self.driver().recall_file(file.space(), home.as_slice(), PageFilter::ALL);
        let unwritten = self.driver().engine().unwritten(file.space());
        let unwritten = unwritten.or_else(|| cause.map(|cause| Unwritten { cause, ranges: Vec::new() }));
        self.agree_written(file, unwritten.as_ref(), u64::MAX, Otherwise::Kept)
    }

    /// [`Files::write_all`] for a file being closed. The file gets its size even if data are lost.
    fn write_last(&self, file: &SharedFile) -> Result<(), FileError> {
        let written = self.write_all(file, Otherwise::Lost);
        let cut = self.give_end(file);
        written.and(cut).and_then(|()| self.check_not_doubted(file))
    }

    /// Fails on all ranks if a write has failed on one. Only then do ranks exchange the byte ranges.
    fn agree_written(
        &self,
        file: &SharedFile,
        unwritten: Option<&Unwritten>,
        size: u64,
        otherwise: Otherwise,
    ) -> Result<(), FileError> {
        let causes = file.members().gather(unwritten.map_or(0, |unwritten| unwritten.cause.0))?;
        if causes.iter().all(|cause| *cause == 0) {
            return Ok(());
        }
        let all = file.members().gather(Told::new(unwritten))?;
        let Some((cause, bytes)) = of_all(&all, size) else { return Ok(()) };
        // Also on ranks with nothing to write.
        file.state().note_error(cause);
        Err(FileError::unwritten(file.path(), cause, &bytes, otherwise))
    }

    /// Waits for operations in progress: the program should have synced them before this call, which would miss their
    /// bytes.
    pub(super) fn wait_for_begun(&self, file: &SharedFile, call: Collective) {
        let begun = file.state().settle_begun(|handle| self.ops.is_in_flight(handle));
        if begun == 0 {
            return;
        }
        if file.state().must_tell_unsynced() {
            let (rank, path, call) = (self.ops.space().rank.0, file.path().display(), call.name());
            (self.tell)(&format!(
                "rank {rank}: {call}: {path}: waits for operations that were not synced ({begun} of them); sync each before"
            ));
        }
        self.driver().wait_until(&|| file.state().settle_begun(|handle| self.ops.is_in_flight(handle)) == 0);
    }

    /// Gives the file exactly the written length: blocks are written whole, so it may be longer. The calling thread
    /// needs exclusive use of the bytes, on each rank of the team, or the cut could hit a write that begins. Operations
    /// in progress without a call have noted their ends.
    pub(super) fn give_end(&self, file: &SharedFile) -> Result<(), FileError> {
        let ends = file.members().gather(file.known_bytes())?;
        let size = ends.into_iter().fold(0, u64::max);
        self.note_size(file, size);
        self.by_first(
            file,
            "get its size",
            // A failed sync may have lost an earlier size.
            |named| if named.size_bytes()? == size && named.doubt().is_none() { Ok(()) } else { named.set_size(size) },
        )
    }

    /// Has the first rank that sees the file do something with it. Fails on all ranks if it fails.
    pub(super) fn by_first(
        &self,
        file: &SharedFile,
        what: &str,
        work: impl FnOnce(&NamedFile) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let is_first = file.stripes().homes[0] == file.members().own();
        let done = file.named().filter(|_| is_first).map_or(Ok(()), |named| work(named));
        self.agree(file, what, done.err().map(|error| errno_of(&error)))
    }

    /// Fails on all ranks if one has an error number.
    fn agree(&self, file: &SharedFile, what: &str, errno: Option<i32>) -> Result<(), FileError> {
        let all = file.members().gather(errno.unwrap_or(0))?;
        let failed = all.into_iter().find(|errno| *errno != 0);
        failed.map_or(Ok(()), |errno| {
            file.state().note_error(Cause(errno as u32));
            Err(FileError::io(file.path(), what, errno))
        })
    }
}
