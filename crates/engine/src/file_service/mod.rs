//! Shared files in the engine: the pages of each are a space. A failed read or write is reported to its caller, and the
//! job goes on.
//!
//! [`FileService`] has the state and decides. What it decides about pages and blocks, the engine carries out.

mod aging;
mod byte_locks;
mod cached_for_mpi;
mod file_state;
mod home_flushes;
mod known_writes;
mod open_files;
mod own_flushes;
mod questions;
mod size_rounds;
mod unwritten;
mod write_behind;
mod written_again;

pub(super) use aging::Aged;
pub use file_state::FileState;
pub use known_writes::{Purpose, WritesSince};
pub use own_flushes::OwnFlush;
pub use unwritten::{Unwritten, joined};
pub(super) use write_behind::Resumed;

use crate::request::Part;
use aging::Aging;
use byte_locks::ByteLocks;
use cached_for_mpi::CachedForMpi;
use home_flushes::HomeFlushes;
use known_writes::KnownWrites;
use open_files::OpenFiles;
use questions::Questions;
use size_rounds::{OF_ROUND, SizeRounds};
use std::sync::atomic::Ordering;
use std::time::Duration;
use vgasnet_memory::PageTable;
use vgasnet_protocol::coherence::{Cache, PageId};
use vgasnet_protocol::file_message::{FileAsk, FileMessage, TAG_FILE};
use vgasnet_protocol::{Rank, Space};
use write_behind::WriteBehind;

/// The shared files of one rank.
pub(super) struct FileService {
    open: OpenFiles,
    /// This rank's questions about files.
    questions: Questions<FileMessage>,
    sizes: SizeRounds,
    /// Flushes by single ranks, at this home.
    flushes: HomeFlushes,
    behind: WriteBehind,
    aging: Aging,
    locks: ByteLocks,
    writes: KnownWrites,
    cached_for_mpi: CachedForMpi,
    /// Threads waiting for a file event without notification.
    waiting: u32,
}

/// What a message about a file calls for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Handled {
    /// A thread may have waited for it.
    Answered,
    /// The answer to the sender.
    Answer(FileMessage),
    /// This home flushes the file for the sender.
    Flush(FileMessage),
    /// Messages to other ranks, which may be this one, in order.
    Messages(Vec<(Rank, FileMessage)>),
}

impl FileService {
    /// The service of a rank in a job of `ranks`, with messages of at most `message_bytes_max`.
    pub(super) fn new(rank: Rank, ranks: u32, message_bytes_max: usize) -> FileService {
        FileService {
            open: OpenFiles::default(),
            questions: Questions::default(),
            sizes: SizeRounds::default(),
            flushes: HomeFlushes::default(),
            behind: WriteBehind::default(),
            aging: Aging::default(),
            locks: ByteLocks::new(rank, ranks, message_bytes_max),
            writes: KnownWrites::default(),
            cached_for_mpi: CachedForMpi::default(),
            waiting: 0,
        }
    }

    /// The open files.
    pub(super) fn open(&self) -> &OpenFiles {
        &self.open
    }

    /// The open files, to be changed.
    pub(super) fn open_mut(&mut self) -> &mut OpenFiles {
        &mut self.open
    }

    /// This rank's part in the locks of bytes.
    pub(super) fn locks(&self) -> &ByteLocks {
        &self.locks
    }

    /// The same, to be changed.
    pub(super) fn locks_mut(&mut self) -> &mut ByteLocks {
        &mut self.locks
    }

    /// The writes known to this home and asked of others.
    pub(super) fn writes(&self) -> &KnownWrites {
        &self.writes
    }

    /// The same, to be changed.
    pub(super) fn writes_mut(&mut self) -> &mut KnownWrites {
        &mut self.writes
    }

    /// This rank's part in barring caches of MPI programs' files.
    pub(super) fn cached_for_mpi(&self) -> &CachedForMpi {
        &self.cached_for_mpi
    }

    /// The same, to be changed.
    pub(super) fn cached_for_mpi_mut(&mut self) -> &mut CachedForMpi {
        &mut self.cached_for_mpi
    }

    /// The flushes at this home.
    pub(super) fn flushes(&self) -> &HomeFlushes {
        &self.flushes
    }

    /// The same, to be changed.
    pub(super) fn flushes_mut(&mut self) -> &mut HomeFlushes {
        &mut self.flushes
    }

    /// Whether a page can be neither written nor evicted: its last write-back failed, or it is about to be dropped.
    pub(super) fn stays(&self, page: PageId) -> bool {
        self.open.stays(page)
    }

    /// Removes a page that is written or gone from those that could not be written.
    pub(super) fn forget_unwritten(&mut self, page: PageId) {
        self.open.forget_unwritten(page);
    }

    /// Whether nothing here needs a drive: no part is held back, no page ages, and no flush is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.behind.held() == 0 && self.aging.is_idle() && self.flushes.is_idle()
    }

    /// A thread begins to wait for a file event, or ends its wait.
    pub(super) fn set_awaited(&mut self, is_awaited: bool) {
        if is_awaited {
            self.waiting += 1;
        } else {
            assert!(self.waiting > 0, "a thread ends the wait that it has begun");
            self.waiting -= 1;
        }
    }

    /// Whether threads wait for a file event without notification.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting > 0
    }

    /// Makes a question about a file, to be sent to another rank.
    pub(super) fn ask(&mut self, space: Space, ask: FileAsk, value: u64) -> FileMessage {
        let id = self.questions.ask();
        FileMessage { tag: TAG_FILE, is_answer: false, ask, cause: 0, id, space, padding: 0, value }
    }

    /// Takes the answers to questions once all have arrived.
    pub(super) fn take_answers(&mut self, ids: &[u32]) -> Option<Vec<FileMessage>> {
        self.questions.take_all(ids)
    }

    /// Handles a question or an answer.
    ///
    /// # Errors
    /// The message is malformed, or makes no sense. The text describes it.
    pub(super) fn on_message(&mut self, from: Rank, bytes: &[u8]) -> Result<Handled, &'static str> {
        let message = FileMessage::read(bytes).ok_or("a message about a file that is none")?;
        let FileMessage { space, value, .. } = message;
        if message.is_answer && message.id == OF_ROUND {
            let (end_bytes, others) = (self.open.written_end(space), self.open.others_of(space));
            let messages = self.sizes.on_answer(space, value, end_bytes, others);
            return messages.map(Handled::Messages).ok_or("an answer about a file's size that nobody has asked for");
        }
        if message.is_answer {
            let is_awaited = self.questions.on_answer(message.id, message);
            return is_awaited.then_some(Handled::Answered).ok_or("an answer about a file that nobody has asked for");
        }
        if let Some(value) = self.answer_about_no_file(message.ask) {
            return Ok(Handled::Answer(FileMessage { is_answer: true, value, ..message }));
        }
        let state = self.open.state(space).ok_or("a question about a file that is not open")?;
        let value = match message.ask {
            FileAsk::BarCaching | FileAsk::EndJob | FileAsk::GoOn => value,
            FileAsk::Flush => return Ok(Handled::Flush(message)),
            FileAsk::Size => {
                return Ok(Handled::Messages(self.sizes.ask(from, message, self.open.others_of(space))));
            }
            FileAsk::End => self.open.written_end(space),
            FileAsk::Take => {
                let pointer = state.pointer().ok_or("a question about a pointer that this rank has not")?;
                pointer.fetch_add(value, Ordering::Relaxed)
            }
            FileAsk::HoldEnd => state.hold_end().max(self.open.written_end(space)),
            FileAsk::ReleaseEnd => {
                state.release_end();
                value
            }
            FileAsk::HoldWrites => {
                state.hold_writes();
                value
            }
            FileAsk::Doubt => state.doubt_after(value as i32) as u64,
            FileAsk::HandOver => {
                state.want();
                value
            }
        };
        Ok(Handled::Answer(FileMessage { is_answer: true, value, ..message }))
    }

    /// The answer to a question about an MPI program's files at large.
    fn answer_about_no_file(&mut self, ask: FileAsk) -> Option<u64> {
        match ask {
            FileAsk::BarCaching => Some(self.cached_for_mpi.bar()),
            FileAsk::EndJob => Some(self.cached_for_mpi.on_job_end()),
            FileAsk::GoOn => {
                self.cached_for_mpi.on_job_goes_on();
                self.open.states().for_each(FileState::go_on_writing);
                Some(0)
            }
            _ => None,
        }
    }

    /// Returns a put to a file unless it would dirty a page beyond the limit. Then it is held until fewer pages are
    /// dirty. The page returned with it, if any, is to be written back.
    pub(super) fn pass_or_hold(
        &mut self,
        part: Part,
        cache: &Cache,
        table: &PageTable,
    ) -> (Option<Part>, Option<PageId>) {
        let page = part.piece.page;
        debug_assert!(part.copy.is_put() && page.space.segment().is_none(), "only puts to files wait");
        if write_behind::may_be_dirtied(page, cache, &self.open) {
            return (Some(part), None);
        }
        let is_first = self.behind.held() == 0;
        let is_refused = write_behind::refusal_to_dirty(page, cache, &self.open).is_some();
        self.behind.hold(part);
        // Each drive continues for the other parts.
        (None, if is_refused { None } else { self.next_behind(is_first, cache, table) })
    }

    /// Resumes the first part held until fewer pages are dirty, if it may pass or has to fail.
    pub(super) fn resume(&mut self, cache: &Cache) -> Option<Resumed> {
        self.behind.resume(cache, &self.open)
    }

    /// Number of parts waiting until fewer pages are dirty.
    pub(super) fn held(&self) -> usize {
        self.behind.held()
    }

    /// Number of write-backs to begin for them.
    pub(super) fn writes_due(&self) -> usize {
        self.behind.writes_due()
    }

    /// The next page to be written behind. `is_awaited`: a part waits for it.
    pub(super) fn next_behind(&mut self, is_awaited: bool, cache: &Cache, table: &PageTable) -> Option<PageId> {
        let page = self.behind.next(is_awaited, cache, table, &self.open)?;
        debug_assert!(page.space.segment().is_none(), "only pages of files are written behind");
        self.aging.on_written(page);
        Some(page)
    }

    /// A file page may be dirty from now on. Returns the page to be written back because many are dirty.
    pub(super) fn next_behind_after(&mut self, page: PageId, cache: &Cache, table: &PageTable) -> Option<PageId> {
        if self.behind.is_due_after(page, cache) { self.next_behind(false, cache, table) } else { None }
    }

    /// Notes the age of a file page that may be dirty from now on. Returns the time until the next check if it was not
    /// set.
    pub(super) fn note_age(&mut self, page: PageId, cache: &Cache) -> Option<Duration> {
        self.aging.note_page(page, cache)
    }

    /// The same for file blocks.
    pub(super) fn note_age_of_blocks(&mut self) -> Option<Duration> {
        self.aging.note_blocks()
    }

    /// Takes the pages and blocks that have been dirty for long, if a check is due.
    pub(super) fn take_aged(&mut self, cache: &Cache, table: &PageTable) -> Option<Aged> {
        self.aging.take_aged(cache, table, &self.open)
    }

    /// Whether a check of ages is scheduled.
    pub(super) fn rings_later(&self) -> bool {
        !self.aging.is_idle()
    }

    /// Replaces the clock of ages. It returns the time since an arbitrary origin.
    pub(super) fn set_clock(&mut self, clock: impl Fn() -> Duration + Send + 'static) {
        self.aging.set_clock(clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use zerocopy::IntoBytes;

    const SPACE: Space = Space::of_file(3);

    /// A service with a file open on this rank, 0, and on rank 1.
    fn service() -> (FileService, Arc<FileState>) {
        let (mut service, state) =
            (FileService::new(Rank(0), 2, 4096), Arc::new(FileState::new([Rank(1)].into(), None, None)));
        service.open_mut().open(SPACE, 9, Arc::clone(&state));
        state.note_written_end(70);
        (service, state)
    }

    fn question(ask: FileAsk) -> FileMessage {
        FileMessage { tag: TAG_FILE, is_answer: false, ask, cause: 0, id: 7, space: SPACE, padding: 0, value: 1 }
    }

    fn handled(service: &mut FileService, message: FileMessage) -> Result<Handled, &'static str> {
        service.on_message(Rank(1), message.as_bytes())
    }

    #[test]
    fn questions_about_ends_are_answered_at_once() {
        let (mut service, state) = service();
        let answer = |ask, value| Ok(Handled::Answer(FileMessage { is_answer: true, value, ..question(ask) }));
        assert_eq!(handled(&mut service, question(FileAsk::End)), answer(FileAsk::End, 70));
        state.intend_end(90);
        assert_eq!(handled(&mut service, question(FileAsk::HoldEnd)), answer(FileAsk::HoldEnd, 90));
        assert!(state.is_end_held());
        assert_eq!(handled(&mut service, question(FileAsk::ReleaseEnd)), answer(FileAsk::ReleaseEnd, 1));
        assert!(!state.is_end_held());
        assert_eq!(handled(&mut service, question(FileAsk::Flush)), Ok(Handled::Flush(question(FileAsk::Flush))));
    }

    #[test]
    fn the_size_is_the_farthest_end_of_the_team() {
        let (mut service, _) = service();
        let Ok(Handled::Messages(asked)) = handled(&mut service, question(FileAsk::Size)) else { panic!("it asks") };
        assert_eq!(asked.iter().map(|(to, message)| (to.0, message.ask)).collect::<Vec<_>>(), [(1, FileAsk::End)]);
        let answer = FileMessage { is_answer: true, value: 40, ..asked[0].1 };
        let told = FileMessage { is_answer: true, value: 70, ..question(FileAsk::Size) };
        assert_eq!(handled(&mut service, answer), Ok(Handled::Messages(vec![(Rank(1), told)])));
        assert!(handled(&mut service, answer).is_err(), "no round is in progress");
    }

    #[test]
    fn senseless_messages_are_refused() {
        let (mut service, _) = service();
        assert!(service.on_message(Rank(1), &[TAG_FILE]).is_err());
        assert!(handled(&mut service, question(FileAsk::Take)).is_err(), "the pointer is another rank's");
        let elsewhere = FileMessage { space: Space::of_file(4), ..question(FileAsk::End) };
        assert!(handled(&mut service, elsewhere).is_err(), "the file is not open");
        let asked = service.ask(SPACE, FileAsk::End, 0);
        let answer = FileMessage { is_answer: true, value: 40, ..asked };
        assert!(service.take_answers(&[asked.id]).is_none());
        assert_eq!(handled(&mut service, answer), Ok(Handled::Answered));
        assert!(handled(&mut service, answer).is_err(), "it has been answered");
        assert_eq!(service.take_answers(&[asked.id]), Some(vec![answer]));
    }

    #[test]
    fn a_service_with_a_flush_needs_another_drive() {
        let (mut service, _) = service();
        assert!(service.is_idle() && !service.is_awaited());
        service.set_awaited(true);
        assert!(service.flushes_mut().begin(Rank(1), question(FileAsk::Flush), Vec::new()).is_empty());
        assert!(!service.is_idle() && service.is_awaited());
        assert_eq!(service.flushes_mut().end_recalled(SPACE, Ok(())).len(), 1);
        service.set_awaited(false);
        assert!(service.is_idle() && !service.is_awaited());
    }
}
