//! Shared files in the engine: the pages of each are a space. A failed read or write is reported to its caller, and the
//! job goes on.

use super::file_flushes::FlushesAtHome;
use super::file_sizes::{OF_ROUND, SizeRounds};
use super::file_state::FileState;
use super::{Driver, Engine, Work};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vgasnet_memory::{Closing, Extent};
use vgasnet_protocol::coherence::{Cause, FrameId, PageId, Waiter};
use vgasnet_protocol::file_message::{FileAsk, FileMessage, PageFilter, TAG_FILE};
use vgasnet_protocol::ordered::{OrderedMap, OrderedSet};
use vgasnet_protocol::{Rank, Space, Stripes};
use vgasnet_settings::UserError;
use vgasnet_storage::NamedFile;
use zerocopy::IntoBytes;

/// The part of a file that could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The cause.
    pub cause: Cause,
    /// The bytes: sorted ranges that do not touch.
    pub ranges: Vec<Range<u64>>,
}

/// The open files, and this rank's questions to others about them.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    pub(super) open: OrderedMap<Space, OpenFile>,
    last_id: u32,
    /// Answers to questions with a waiting thread; `None` until they arrive.
    answers: OrderedMap<u32, Option<FileMessage>>,
    /// Threads waiting for a file event without notification.
    pub(super) waiting: u32,
    /// Flushes in progress at this home.
    pub(super) flushing: FlushesAtHome,
    pub(super) sizes: SizeRounds,
}

#[derive(Debug)]
pub(super) struct OpenFile {
    /// First page behind the end, as far as this rank knows.
    end: u32,
    pub(super) state: Arc<FileState>,
    /// Dirty pages that could not be written. They stay until the next flush of the file.
    pub(super) unwritten: OrderedSet<PageId>,
    /// Pages to be dropped that are still pinned.
    leaving: OrderedSet<PageId>,
    /// The pages of this rank's flushes in progress.
    pub(super) flushes: Vec<PageFilter>,
}

impl OpenFiles {
    /// End of the data that this rank has written to a file, in bytes.
    pub(super) fn written_end(&self, space: Space) -> u64 {
        self.open.get(&space).map_or(0, |file| file.state.written_end.load(Ordering::Relaxed))
    }

    /// Whether a page can be neither written nor evicted: its last write-back failed, or it is about to be dropped.
    pub(super) fn stays(&self, page: PageId) -> bool {
        self.open.get(&page.space).is_some_and(|file| file.unwritten.contains(&page) || file.leaving.contains(&page))
    }

    /// Removes a page that is written or gone.
    pub(super) fn forget_unwritten(&mut self, page: PageId) {
        self.open.get_mut(&page.space).into_iter().for_each(|file| _ = file.unwritten.remove(&page));
    }

    /// Why a page could not be written, if it could not.
    pub(super) fn unwritten_because(&self, page: PageId) -> Option<Cause> {
        let file = self.open.get(&page.space).filter(|file| file.unwritten.contains(&page))?;
        Some(Cause(file.state.refusal.load(Ordering::Relaxed)))
    }

    /// Number of unwritten pages of the selected files.
    pub(super) fn unwritten_pages(&self, is_meant: impl Fn(Space) -> bool) -> u32 {
        let files = self.open.iter().filter(|(space, _)| is_meant(**space));
        files.map(|(_, file)| file.unwritten.len() as u32).sum()
    }

    /// Why pages of a file could not be written, if some could not.
    pub(super) fn refusal(&self, space: Space) -> Option<Cause> {
        let refusal = self.open.get(&space)?.state.refusal.load(Ordering::Relaxed);
        (refusal != 0).then_some(Cause(refusal))
    }
}

impl Engine {
    /// Opens a file with data in its first `pages` pages. A home of some of them gives the `file` for I/O.
    pub fn open_file(
        &mut self,
        space: Space,
        stripes: Stripes,
        pages: u32,
        file: Option<Arc<NamedFile>>,
        state: Arc<FileState>,
    ) {
        if let Some(file) = file.filter(|_| stripes.homes.contains(&self.space.rank)) {
            self.storage.add_file(space, file);
        }
        self.protocol.add_file(space, stripes, pages);
        let (unwritten, leaving) = Default::default();
        self.files.open.insert(space, OpenFile { end: pages, state, unwritten, leaving, flushes: Vec::new() });
    }

    /// Whether a file of this space is open here.
    pub fn is_open_file(&self, space: Space) -> bool {
        self.files.open.contains_key(&space)
    }

    /// Whether two ranks run on the same host.
    pub fn are_of_one_host(&self, one: Rank, other: Rank) -> bool {
        self.conduit.host_of(one) == self.conduit.host_of(other)
    }

    /// Whether nothing is in progress for the file here, so that it may be closed.
    pub fn is_quiet_about(&self, space: Space) -> bool {
        self.protocol.cache.is_quiet_about(space) && self.storage.is_quiet_about(space)
    }

    /// Whether nothing is in progress for the file at this home. All ranks' pools have finished, but their messages may
    /// still be in flight.
    pub fn is_quiet_at_home(&self, space: Space) -> bool {
        self.protocol.home.is_quiet_about(space)
    }

    /// Closes a file. No rank may use it any more, and its pages must have been dropped. Unwritten data are lost.
    pub fn close_file(&mut self, space: Space) {
        assert!(self.protocol.cache.pages_of(space).next().is_none(), "a page of the file is left");
        self.protocol.remove_file(space);
        self.storage.remove_file(space);
        if let Err(violation) = self.locks.forget_file(space) {
            self.status.break_by(UserError::new(violation.to_string()));
        }
        self.files.open.remove(&space);
    }

    /// Drops the pages of a file from `first` on without write-back, except pinned ones. Returns whether none is left.
    /// Call again until it does: a thread that looks for another page may pin one briefly, or for longer if it is
    /// descheduled.
    pub fn forget_pages(&mut self, space: Space, first: u32) -> bool {
        let pages: Vec<PageId> = self.protocol.cache.pages_of(space).filter(|page| page.index >= first).collect();
        let (mut actions, mut leaving) = (Vec::new(), OrderedSet::new());
        let before = self.files.open.get_mut(&space).map(|file| std::mem::take(&mut file.leaving)).unwrap_or_default();
        for page in pages {
            let is_closed = if before.contains(&page) {
                self.space.poll_closed(page).is_some()
            } else {
                self.space.close(page) != Closing::Pinned
            };
            if is_closed {
                self.files.forget_unwritten(page);
                let frame = self.protocol.cache.forget_page(page, &mut actions);
                self.frames.use_otherwise(frame);
            } else {
                leaving.insert(page);
            }
        }
        let is_over = leaving.is_empty();
        self.files.open.get_mut(&space).into_iter().for_each(|file| file.leaving = std::mem::take(&mut leaving));
        actions.into_iter().for_each(|action| self.act(action));
        self.handle_events();
        is_over
    }

    /// Sets the file to `pages` pages with data. The first `kept` are unchanged, and the others have been dropped. All
    /// data must be written, and nothing in progress in any rank's pool or at any home.
    pub fn cut_file(&mut self, space: Space, kept: u32, pages: u32) {
        let is_left = self.protocol.cache.pages_of(space).any(|page| page.index >= kept);
        assert!(!is_left, "a page that is cut off is left");
        self.storage.cut_file(space, kept);
        self.protocol.cut_file(space, kept, pages);
        self.note_end(space, pages);
    }

    /// Notes the file's number of pages, as far as this rank knows.
    pub fn note_end(&mut self, space: Space, pages: u32) {
        self.files.open.get_mut(&space).into_iter().for_each(|file| file.end = pages);
    }

    /// End of the pages that may be read ahead.
    pub fn end_of(&self, space: Space) -> u32 {
        let Some(file) = self.files.open.get(&space) else { return self.protocol.spaces().pages(space) };
        let written_bytes = file.state.written_end.load(Ordering::Relaxed);
        file.end.max(written_bytes.div_ceil(self.space.page_bytes() as u64) as u32)
    }

    /// Starts to drain the file's spilled data at this home. [`Engine::is_drained_file`] reports completion.
    pub fn drain_file(&mut self, space: Space) {
        self.storage.drain_file(space);
    }

    /// The outcome of draining, or `None` while it is in progress.
    pub fn is_drained_file(&self, space: Space) -> Option<Result<(), Cause>> {
        self.storage.is_drained(space)
    }

    /// The data of a file in this rank's pool or blocks that it could not write, if any.
    pub fn unwritten(&self, space: Space) -> Option<Unwritten> {
        let (file, cause) = (self.files.open.get(&space)?, self.refusal(space)?);
        let blocks = &self.space.own.blocks;
        let page_bytes = self.space.page_bytes();
        let of_page = |page: &PageId| {
            let start = u64::from(page.index) * page_bytes as u64;
            let extents = self.protocol.cache.dirty_frame(*page).map(|frame| match blocks.extents(frame, 0) {
                none if none.is_empty() => vec![Extent { start_bytes: 0, end_bytes: page_bytes }],
                extents => extents,
            });
            let extents = extents.unwrap_or_default().into_iter();
            extents.map(move |extent| start + extent.start_bytes as u64..start + extent.end_bytes as u64)
        };
        let mut ranges: Vec<Range<u64>> = file.unwritten.iter().flat_map(of_page).collect();
        ranges.extend(self.storage.unwritten_bytes(space));
        (!ranges.is_empty()).then(|| Unwritten { cause, ranges: joined(ranges) })
    }

    /// The unwritten data of a file after a flush. If there are none, writes are accepted again.
    pub(super) fn unwritten_after_flush(&mut self, space: Space) -> Option<Unwritten> {
        let unwritten = self.unwritten(space);
        if let Some(file) = self.files.open.get_mut(&space).filter(|_| unwritten.is_none()) {
            file.state.refusal.store(0, Ordering::Relaxed);
        }
        unwritten
    }

    /// Notes a failed operation of this rank.
    pub fn note_file_error(&self, space: Space, cause: Cause) {
        self.files.open.get(&space).into_iter().for_each(|file| file.state.note_error(cause));
    }

    /// A page could not be read: fails the operations waiting for it.
    pub(super) fn fail(&mut self, page: PageId, frame: FrameId, waiters: &[Waiter], cause: Cause) {
        self.frames.mark_filled(frame);
        self.prefetch.on_opened(page);
        let parts = self.waiting.take_all(waiters);
        self.queue.add(Work::Fail { parts, cause });
    }

    /// A dirty page of this rank could not be written.
    pub(super) fn on_unwritten(&mut self, page: PageId, cause: Cause) {
        self.refuse(page.space, cause);
        if let Some(file) = self.files.open.get_mut(&page.space) {
            file.unwritten.insert(page);
        }
    }

    /// Asks a rank about a file. Returns the question's id.
    pub fn ask_of_file(&mut self, to: Rank, space: Space, ask: FileAsk, value: u64) -> u32 {
        self.files.last_id = self.files.last_id.checked_add(1).unwrap_or(OF_ROUND + 1);
        let id = self.files.last_id;
        self.files.answers.insert(id, None);
        self.send_about_file(
            to,
            FileMessage { tag: TAG_FILE, is_answer: false, ask, cause: 0, id, space, padding: 0, value },
        );
        id
    }

    /// Takes the answers to questions once all have arrived.
    pub fn take_answers_of_file(&mut self, ids: &[u32]) -> Option<Vec<FileMessage>> {
        let answers = &mut self.files.answers;
        let is_there = |id: &u32| matches!(answers.get(id), Some(Some(_)));
        ids.iter().all(is_there).then(|| ids.iter().filter_map(|id| answers.remove(id).flatten()).collect())
    }

    pub(super) fn send_about_file(&mut self, to: Rank, message: FileMessage) {
        if to != self.space.rank {
            return self.outbox.send(to, message.as_bytes());
        }
        if let Err(what) = self.on_file_message(to, message.as_bytes()) {
            self.status.break_by(UserError::new(what));
        }
    }

    /// Handles a question or an answer.
    pub(super) fn on_file_message(&mut self, from: Rank, bytes: &[u8]) -> Result<(), &'static str> {
        let message = FileMessage::read(bytes).ok_or("a message about a file that is none")?;
        if message.is_answer && message.id == OF_ROUND {
            return self.on_answer_of_round(message.space, message.value);
        }
        if message.is_answer {
            match self.files.answers.get_mut(&message.id) {
                Some(awaited @ None) => *awaited = Some(message),
                _ => return Err("an answer about a file that nobody has asked for"),
            }
            self.status.note_event();
            return Ok(());
        }
        let Some(file) = self.files.open.get(&message.space) else {
            return Err("a question about a file that is not open");
        };
        match message.ask {
            FileAsk::End => {
                let value = self.files.written_end(message.space);
                self.send_about_file(from, FileMessage { is_answer: true, value, ..message });
            }
            FileAsk::Take => {
                let pointer = file.state.pointer.ok_or("a question about a pointer that this rank has not")?;
                let value = pointer.fetch_add(message.value, Ordering::Relaxed);
                self.send_about_file(from, FileMessage { is_answer: true, value, ..message });
            }
            FileAsk::Flush => self.flush_at_home(from, message),
            FileAsk::Size => self.ask_for_size(from, message),
            FileAsk::HoldEnd => {
                let value = file.state.hold_end().max(self.files.written_end(message.space));
                self.send_about_file(from, FileMessage { is_answer: true, value, ..message });
            }
            FileAsk::ReleaseEnd => {
                file.state.release_end();
                self.send_about_file(from, FileMessage { is_answer: true, ..message });
            }
        }
        Ok(())
    }

    /// Refuses further writes to a file by this rank.
    pub(super) fn refuse(&mut self, space: Space, cause: Cause) {
        let Some(file) = self.files.open.get_mut(&space) else { return };
        file.state.refusal.store(cause.0, Ordering::Relaxed);
        file.state.note_error(cause);
        self.status.note_event();
    }
}

/// Sorts ranges and merges touching ones.
pub fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

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
        self.engine().storage.spills()
    }

    /// Waits until nothing is in progress for a file here. Its spilled data stay.
    pub fn settle_file(&self, space: Space) {
        self.engine().storage.stop_draining(space);
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
        self.engine().files.waiting += 1;
        self.wait_until(done);
        self.engine().files.waiting -= 1;
    }
}
