//! Calls of client threads about shared files and writes that wait for the engine.

use super::Driver;
use crate::Engine;
use crate::file_service::{Purpose, Unwritten, WritesSince};
use std::cell::RefCell;
use std::ops::Range;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_locks::{LockId, LockRequest};
use vgasnet_protocol::file_message::{FileAsk, FileMessage, PageFilter};
use vgasnet_protocol::{Rank, Space};

impl Driver {
    /// Asks other ranks about a file, and waits for their answers.
    pub fn ask_of_file(
        &self,
        ranks: impl Iterator<Item = Rank>,
        space: Space,
        ask: FileAsk,
        value: u64,
    ) -> Vec<FileMessage> {
        let ids: Vec<u32> = {
            let mut engine = self.engine();
            ranks.map(|rank| engine.ask_of_file(rank, space, ask, value)).collect()
        };
        self.step();
        let answers = RefCell::new(None);
        self.wait_until(&|| {
            let mut answers = answers.borrow_mut();
            if answers.is_none() {
                *answers = self.engine().take_answers_of_file(&ids);
            }
            answers.is_some()
        });
        answers.into_inner().expect("they have come")
    }

    /// Whether writes to files may stay spilled on this node's disk.
    pub fn spills(&self) -> bool {
        self.engine().storage().spills()
    }

    /// Waits until nothing is in progress for a file here. Its spilled data stay.
    pub fn settle_file(&self, space: Space) {
        self.engine().stop_draining(space);
        self.wait_for_files(&|| self.engine().is_quiet_about(space));
    }

    /// Waits until nothing is in progress at this home, once all ranks have settled the file.
    pub fn settle_file_at_home(&self, space: Space) {
        self.wait_for_files(&|| self.engine().is_quiet_at_home(space));
    }

    /// Drops the file's pages and closes it, as [`Engine::close_file`].
    pub fn close_file(&self, space: Space) {
        self.wait_for_files(&|| self.engine().forget_pages(space, 0));
        self.engine().close_file(space);
    }

    /// Drops the pages from `kept` on and cuts the file, as [`Engine::cut_file`].
    pub fn cut_file(&self, space: Space, kept: u32, pages: u32) {
        self.wait_for_files(&|| self.engine().forget_pages(space, kept));
        self.engine().cut_file(space, kept, pages);
    }

    /// Waits for a file event. Another thread may be the driver, so this one checks after each drive.
    pub(super) fn wait_for_files(&self, done: &dyn Fn() -> bool) {
        self.engine().await_files(true);
        self.wait_until(done);
        self.engine().await_files(false);
    }

    /// Writes this rank's data of a file, in its pool or as a home, as far as possible. Returns the unwritten part, if
    /// any.
    pub fn flush_file(&self, space: Space) -> Option<Unwritten> {
        self.engine().flush_file(space);
        self.step();
        self.unwritten_when(space, &|engine| engine.is_flushed_file(space))
    }

    /// Drains spilled data to a file of which this rank is a home, as far as possible. Returns the file's data that
    /// this rank could not write, now or earlier, if any.
    pub fn drain_file(&self, space: Space) -> Option<Unwritten> {
        self.engine().drain_file(space);
        self.step();
        self.unwritten_when(space, &|engine| engine.is_drained_file(space).is_some())
    }

    /// Writes all data of a file that this rank has written, as far as possible. Returns the unwritten part, if any,
    /// without the ranges that other ranks hold.
    pub fn flush_file_alone(&self, space: Space, homes: &[Rank]) -> Option<Unwritten> {
        let flush = self.engine().begin_flush(space);
        self.step();
        let own = self.unwritten_when(space, &|engine| engine.is_flushed_file(space));
        let of_homes = self.recall_file(space, homes, flush.filter());
        let unwritten = own.or_else(|| of_homes.map(|cause| Unwritten { cause, ranges: Vec::new() }));
        self.engine().end_flush(space, flush, unwritten.is_some());
        unwritten
    }

    /// Has homes write their blocks of a file and its pages that are dirty in any pool. Returns why a write has failed,
    /// if one has.
    pub fn recall_file(&self, space: Space, homes: &[Rank], pages: PageFilter) -> Option<Cause> {
        let answers = self.ask_of_file(homes.iter().copied(), space, FileAsk::Flush, pages.0);
        answers.iter().find_map(|answer| Cause::of_byte(answer.cause))
    }

    /// Waits until `is_done`. Returns the unwritten part of the file at that time, if any.
    fn unwritten_when(&self, space: Space, is_done: &dyn Fn(&Engine) -> bool) -> Option<Unwritten> {
        let unwritten = RefCell::new(None);
        self.wait_for_files(&|| {
            // Another rank's flush may soon clear the failure here and retry.
            let mut engine = self.engine();
            let is_done = is_done(&engine);
            if is_done {
                *unwritten.borrow_mut() = engine.unwritten_after_flush(space);
            }
            is_done
        });
        unwritten.into_inner()
    }

    /// Requests a lock, and waits until it is granted.
    pub fn lock_bytes(&self, request: LockRequest<'_>) -> LockId {
        let id = self.engine().lock(request);
        self.step();
        self.wait_until(&|| self.engine().is_locked(id));
        id
    }

    /// Releases a lock.
    pub fn unlock_bytes(&self, id: LockId) {
        self.engine().unlock(id);
        self.step();
    }

    /// Asks a home which of its pages were written since a logical time from an earlier answer; 0 is earlier than every write.
    /// Waits for the answer.
    pub fn writes_since(&self, home: Rank, since: u64, pages: Range<u32>, purpose: Purpose) -> WritesSince {
        debug_assert!(!pages.is_empty(), "a question is about pages");
        let mut all: Option<WritesSince> = None;
        let (mut left, mut purpose) = (pages, purpose);
        loop {
            let id = self.engine().ask_of_writes(home, since, &left, purpose);
            self.step();
            self.wait_until(&|| self.engine().has_answer_of_writes(id));
            let (head, pages) = self.engine().take_answer_of_writes(id).expect("it has come");
            let known = all.get_or_insert(WritesSince { now: head.now, has_forgotten: false, pages: Vec::new() });
            known.has_forgotten |= head.has_forgotten == 1;
            known.pages.extend(pages);
            left.start = head.next.max(left.start);
            // Further questions continue the same range.
            purpose = if purpose == Purpose::Watch { Purpose::Look } else { purpose };
            if left.is_empty() || head.pages == 0 {
                return all.expect("it has an answer");
            }
        }
    }

    /// Bars caching on all ranks. Returns the number of files that are still cached.
    pub fn bar_caching(&self) -> u64 {
        self.ask_of_all_files(FileAsk::BarCaching)
    }

    /// Has all ranks rescue their files, since this one is about to end the job. Returns the number of files that are not rescued.
    pub fn end_job(&self) -> u64 {
        self.ask_of_all_files(FileAsk::EndJob)
    }

    /// This rank has not ended the job after all.
    pub fn go_on(&self) {
        self.ask_of_all_files(FileAsk::GoOn);
    }

    /// Asks all ranks about the files of an MPI program. Returns the sum of their answers.
    fn ask_of_all_files(&self, ask: FileAsk) -> u64 {
        let ranks = self.conduit.ranks();
        let answers = self.ask_of_file((0..ranks).map(Rank), Space::of_file(0), ask, 0);
        answers.into_iter().map(|answer| answer.value).sum()
    }
}
