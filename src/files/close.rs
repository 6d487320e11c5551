//! What a team does together with a file that is open: writing all of it, and closing it.

use super::error::Otherwise;
use super::together::Collective;
use super::unwritten::{Told, named, of_all};
use super::{Call, FileError, Files, SharedFile};
use crate::engine::Unwritten;
use crate::storage::{NamedFile, errno_of};
use crate::sys::Signalproof;
use std::io;
use std::sync::atomic::Ordering;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_message::PageFilter;

impl SharedFile {
    pub(super) fn check_writable(&self) -> Result<(), FileError> {
        if self.access.write {
            return Ok(());
        }
        let path = self.path.display();
        Err(FileError::argument(format!("{path}: it is not open to be written; open it with VGASNET_FILE_WRITE")))
    }

    pub(super) fn check_readable(&self) -> Result<(), FileError> {
        if self.access.read {
            return Ok(());
        }
        let path = self.path.display();
        Err(FileError::argument(format!("{path}: it is not open to be read; open it with VGASNET_FILE_READ")))
    }

    pub(super) fn is_home(&self) -> bool {
        self.stripes.homes.contains(&Rank(self.members[self.me as usize]))
    }
}

impl Files {
    /// All that was written is on the disk, and the file is as long as was written. Collective over the file's team. Other threads may
    /// write meanwhile. A file that is only read is what the file system has from now on.
    ///
    /// # Errors
    /// Something could not be written. It stays in the pools, and the next sync or close tries again. Or other ranks call something else.
    pub fn sync(&self, file: &Call<'_>) -> Result<(), FileError> {
        self.come_together(file, Collective::Sync)?;
        if !file.access.write {
            return self.refresh(file);
        }
        // What is written later may not be among what reaches the disk now.
        let again = file.take_written_again(|handle| self.ops.is_under_way(handle));
        let written = self.hand_on(file);
        if written.is_err() {
            file.state.again.give_back(again);
            return written;
        }
        self.reach_disk(file, &again)
    }

    /// The file system has all that was written, and then the file's size.
    fn hand_on(&self, file: &Call<'_>) -> Result<(), FileError> {
        self.write_all(file, Otherwise::Kept)?;
        self.write_moved(file)?;
        // All have come, so none of them waits for a call that is barred.
        let alone = file.bar();
        self.give_end(&alone)
    }

    /// Closes a file. Collective over its team. Other programs see what was written.
    ///
    /// # Errors
    /// Something could not be written, and is lost; the file is closed. Or other ranks call something else, and it stays open.
    pub fn close(&self, number: u32) -> Result<(), FileError> {
        self.come_together(&*self.get_beside(number)?, Collective::Close)?;
        let file = self.open.claim(self.driver(), number)?;
        self.unlock_all(&file);
        self.wait_for_begun(&file, Collective::Close);
        // What was handed over was written before.
        let is_written = file.access.write && !file.is_handed_over.load(Ordering::Relaxed);
        let written = if is_written { self.write_last(&file) } else { Ok(()) };
        self.driver().settle_file(file.space);
        // Nothing is written any more. Who knows from any rank that the file is closed finds it free.
        drop(Signalproof::lock(&file.claim).take());
        self.coll.gather_all(file.team, 0_u32)?;
        self.driver().close_file(file.space);
        self.coll.free_team(file.team)?;
        written
    }

    /// What this rank has written has reached the file system, whichever pool it was in, and so has the length that it has given the file.
    ///
    /// # Errors
    /// Some of it could not be written.
    pub fn flush(&self, file: &SharedFile) -> Result<(), FileError> {
        if !file.access.write {
            return Ok(());
        }
        file.state.settle_begun(|handle| self.ops.is_under_way(handle));
        self.flush_written(file)?;
        self.extend_named(file)
    }

    pub(super) fn flush_written(&self, file: &SharedFile) -> Result<(), FileError> {
        match self.driver().flush_file_alone(file.space, &file.stripes.homes) {
            None => Ok(()),
            Some(Unwritten { cause, ranges }) => {
                Err(FileError::unwritten(&file.path, cause, &named(&ranges, 0), Otherwise::Kept))
            }
        }
    }

    /// Writes what all ranks have of the file.
    pub(super) fn write_all(&self, file: &SharedFile, otherwise: Otherwise) -> Result<(), FileError> {
        // Until all have come, some may still ship bytes to the blocks of a home. What never spilled has nothing to drain.
        let all = self.coll.gather_all(file.team, [file.known_bytes(), u64::from(self.driver().spills())])?;
        let mut unwritten = self.driver().flush_file(file.space);
        if all.iter().any(|[_, spills]| *spills != 0) {
            // All have given their homes what they had, as far as those have taken it.
            self.coll.gather_all(file.team, 0_u32)?;
            unwritten = self.driver().drain_file(file.space);
        }
        let size = all.into_iter().map(|[end, _]| end).fold(0, u64::max);
        self.agree_written(file, unwritten.as_ref(), size, otherwise)
    }

    /// A page that a rank wanted while all was written may have gone, dirty, to where that had been done already. Homes have it written.
    fn write_moved(&self, file: &SharedFile) -> Result<(), FileError> {
        let home = file.is_home().then_some(Rank(file.members[file.me as usize]));
        let cause = self.driver().recall_file(file.space, home.as_slice(), PageFilter::ALL);
        let unwritten = self.driver().engine().unwritten(file.space);
        let unwritten = unwritten.or_else(|| cause.map(|cause| Unwritten { cause, ranges: Vec::new() }));
        self.agree_written(file, unwritten.as_ref(), u64::MAX, Otherwise::Kept)
    }

    /// The same for a file that is closed. It has its size also where some of it is lost.
    fn write_last(&self, file: &SharedFile) -> Result<(), FileError> {
        let written = self.write_all(file, Otherwise::Lost);
        let cut = self.give_end(file);
        written.and(cut).and_then(|()| self.check_not_doubted(file))
    }

    /// Fails on all ranks if something could not be written on one. Only then do they tell each other the bytes.
    fn agree_written(
        &self,
        file: &SharedFile,
        unwritten: Option<&Unwritten>,
        size: u64,
        otherwise: Otherwise,
    ) -> Result<(), FileError> {
        let causes = self.coll.gather_all(file.team, unwritten.map_or(0, |unwritten| unwritten.cause.0))?;
        if causes.iter().all(|cause| *cause == 0) {
            return Ok(());
        }
        let all = self.coll.gather_all(file.team, Told::new(unwritten))?;
        let Some((cause, bytes)) = of_all(&all, size) else { return Ok(()) };
        // Also of ranks that had nothing to write.
        file.state.note_error(cause);
        Err(FileError::unwritten(&file.path, cause, &bytes, otherwise))
    }

    /// Operations should have been synced before some calls. Where they were not, their bytes would be missed.
    pub(super) fn wait_for_begun(&self, file: &SharedFile, call: Collective) {
        let begun = file.state.settle_begun(|handle| self.ops.is_under_way(handle));
        if begun == 0 {
            return;
        }
        if !file.state.told_unsynced.swap(true, Ordering::Relaxed) {
            let (rank, path, call) = (self.ops.space().rank.0, file.path.display(), call.name());
            (self.tell)(&format!(
                "rank {rank}: {call}: {path}: waits for operations that were not synced ({begun} of them); sync each before"
            ));
        }
        self.driver().wait_until(&|| file.state.settle_begun(|handle| self.ops.is_under_way(handle)) == 0);
    }

    /// Makes the file as long as was written: whole blocks are, so it may be longer. The calling thread has the bytes alone, on each rank of
    /// the team, or a write that begins would be cut off. Those under way without a call have noted their ends.
    pub(super) fn give_end(&self, file: &SharedFile) -> Result<(), FileError> {
        let ends = self.coll.gather_all(file.team, file.known_bytes())?;
        let size = ends.into_iter().fold(0, u64::max);
        self.note_size(file, size);
        self.by_first(
            file,
            "get its size",
            // A sync that failed may have lost a size that was given before.
            |named| if named.size_bytes()? == size && named.doubt().is_none() { Ok(()) } else { named.set_size(size) },
        )
    }

    /// Has the first rank that sees the file do something with it.
    pub(super) fn by_first(
        &self,
        file: &SharedFile,
        what: &str,
        work: impl FnOnce(&NamedFile) -> io::Result<()>,
    ) -> Result<(), FileError> {
        let is_first = file.stripes.homes[0].0 == file.members[file.me as usize];
        let done = file.file.as_ref().filter(|_| is_first).map_or(Ok(()), |named| work(named));
        self.agree(file, what, done.err().map(|error| errno_of(&error)))
    }

    /// Fails on all ranks if something has failed on one.
    fn agree(&self, file: &SharedFile, what: &str, errno: Option<i32>) -> Result<(), FileError> {
        let all = self.coll.gather_all(file.team, errno.unwrap_or(0))?;
        let failed = all.into_iter().find(|errno| *errno != 0);
        failed.map_or(Ok(()), |errno| {
            file.state.note_error(Cause(errno as u32));
            Err(FileError::io(&file.path, what, errno))
        })
    }
}
