//! Shared files as the engine has them: the pages of each are a space. What of a file could not be read or written is an answer to
//! who asked, and the job goes on.

use super::file_flushes::FlushesAtHome;
use super::file_sizes::{OF_ROUND, SizeRounds};
use super::file_state::FileState;
use super::{Driver, Engine, Work};
use crate::error::UserError;
use crate::memory::{Closing, Extent};
use crate::storage::NamedFile;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vgasnet_protocol::coherence::{Cause, FrameId, PageId, Waiter};
use vgasnet_protocol::file_message::{FileAsk, FileMessage, PageFilter, TAG_FILE};
use vgasnet_protocol::ordered::{OrderedMap, OrderedSet};
use vgasnet_protocol::{Rank, Space, Stripes};
use zerocopy::IntoBytes;

/// What of a file could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Why.
    pub cause: Cause,
    /// The bytes: ranges in order, none of which touch.
    pub ranges: Vec<Range<u64>>,
}

/// The files that are open, and what this rank has asked others about them.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    pub(super) open: OrderedMap<Space, OpenFile>,
    last_id: u32,
    /// Answers that have come, of questions that somebody waits for.
    answers: OrderedMap<u32, Option<FileMessage>>,
    /// Threads that wait for something about files to end that tells nobody when it does.
    pub(super) waiting: u32,
    /// Flushes at this home that are under way.
    pub(super) flushing: FlushesAtHome,
    pub(super) sizes: SizeRounds,
}

#[derive(Debug)]
pub(super) struct OpenFile {
    /// Pages from here on are behind the end, as far as this rank knows.
    end: u32,
    pub(super) state: Arc<FileState>,
    /// Dirty pages that could not be written. They stay until the file is flushed again.
    pub(super) unwritten: OrderedSet<PageId>,
    /// Pages that are to be forgotten and that somebody still has pinned.
    leaving: OrderedSet<PageId>,
    /// The pages of this rank's flushes under way.
    pub(super) flushes: Vec<PageFilter>,
}

impl OpenFiles {
    /// The end of what this rank has written of a file, in bytes.
    pub(super) fn written_end(&self, space: Space) -> u64 {
        self.open.get(&space).map_or(0, |file| file.state.written_end.load(Ordering::Relaxed))
    }

    /// Whether a page is neither written nor evicted: it could not be written when that was tried last, or is about to be forgotten.
    pub(super) fn stays(&self, page: PageId) -> bool {
        self.open.get(&page.space).is_some_and(|file| file.unwritten.contains(&page) || file.leaving.contains(&page))
    }

    /// A page is written, or gone.
    pub(super) fn forget_unwritten(&mut self, page: PageId) {
        self.open.get_mut(&page.space).into_iter().for_each(|file| _ = file.unwritten.remove(&page));
    }

    /// Why a page could not be written, if it could not.
    pub(super) fn unwritten_because(&self, page: PageId) -> Option<Cause> {
        let file = self.open.get(&page.space).filter(|file| file.unwritten.contains(&page))?;
        Some(Cause(file.state.refusal.load(Ordering::Relaxed)))
    }

    /// How many pages of some files could not be written.
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
    /// A file is open now, with bytes in its first `pages` pages. A rank that is a home of some gives the `file` to do I/O on.
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

    /// Whether two ranks have the same host.
    pub fn are_of_one_host(&self, one: Rank, other: Rank) -> bool {
        self.conduit.host_of(one) == self.conduit.host_of(other)
    }

    /// Whether nothing is under way about the file here, so that it may be closed.
    pub fn is_quiet_about(&self, space: Space) -> bool {
        self.protocol.cache.is_quiet_about(space) && self.storage.is_quiet_about(space)
    }

    /// Whether nothing is under way about the file at this home, where that has ended in all ranks' pools: word of that may still be on
    /// its way.
    pub fn is_quiet_at_home(&self, space: Space) -> bool {
        self.protocol.home.is_quiet_about(space)
    }

    /// Forgets a file, which nobody uses any more on any rank, nor its pages, which were forgotten. What was not written is lost.
    pub fn close_file(&mut self, space: Space) {
        assert!(self.protocol.cache.pages_of(space).next().is_none(), "a page of the file is left");
        self.protocol.remove_file(space);
        self.storage.remove_file(space);
        if let Err(nonsense) = self.locks.forget_file(space) {
            self.broken = Some(UserError::new(nonsense.to_string()));
        }
        self.files.open.remove(&space);
    }

    /// Forgets the pages of a file from one on, without a word, as far as nobody has them pinned. Returns whether none is left. Until then
    /// it is to be asked again: whoever looks for another page may have one pinned for a moment, or for longer if it loses its processor.
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

    /// A file has `pages` pages with bytes now, of which the first `kept` are what they were, and the others were forgotten. All is written,
    /// and nothing is under way about it in any rank's pool or at any home.
    pub fn cut_file(&mut self, space: Space, kept: u32, pages: u32) {
        let is_left = self.protocol.cache.pages_of(space).any(|page| page.index >= kept);
        assert!(!is_left, "a page that is cut off is left");
        self.storage.cut_file(space, kept);
        self.protocol.cut_file(space, kept, pages);
        self.note_end(space, pages);
    }

    /// The file has so many pages now, as far as this rank knows.
    pub fn note_end(&mut self, space: Space, pages: u32) {
        self.files.open.get_mut(&space).into_iter().for_each(|file| file.end = pages);
    }

    /// The pages of a space that may be fetched ahead.
    pub fn end_of(&self, space: Space) -> u32 {
        let Some(file) = self.files.open.get(&space) else { return self.protocol.spaces().pages(space) };
        let written_bytes = file.state.written_end.load(Ordering::Relaxed);
        file.end.max(written_bytes.div_ceil(self.space.page_bytes() as u64) as u32)
    }

    /// Asks for what is spilled of a file here to be brought there. Done when [`Engine::is_drained_file`].
    pub fn drain_file(&mut self, space: Space) {
        self.storage.drain_file(space);
    }

    /// Whether that is done, or cannot be; then why.
    pub fn is_drained_file(&self, space: Space) -> Option<Result<(), Cause>> {
        self.storage.is_drained(space)
    }

    /// What of a file this rank has and could not write, in its pool or as a home, if anything.
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

    /// What of a file has not been written after that was tried. If nothing, writes are not refused any more.
    pub(super) fn unwritten_after_flush(&mut self, space: Space) -> Option<Unwritten> {
        let unwritten = self.unwritten(space);
        if let Some(file) = self.files.open.get_mut(&space).filter(|_| unwritten.is_none()) {
            file.state.refusal.store(0, Ordering::Relaxed);
        }
        unwritten
    }

    /// An operation of this rank on a file has failed.
    pub fn note_file_error(&self, space: Space, cause: Cause) {
        self.files.open.get(&space).into_iter().for_each(|file| file.state.note_error(cause));
    }

    /// A page could not be read, for which these waited.
    pub(super) fn fail(&mut self, page: PageId, frame: FrameId, waiters: &[Waiter], cause: Cause) {
        self.frames.spoil(frame);
        self.prefetch.on_opened(page);
        let parts = waiters.iter().map(|waiter| self.parts.remove(waiter.0 as usize)).collect();
        self.work.push_back(Work::Fail { parts, cause });
    }

    /// A dirty page of this rank could not be written.
    pub(super) fn on_unwritten(&mut self, page: PageId, cause: Cause) {
        self.refuse(page.space, cause);
        if let Some(file) = self.files.open.get_mut(&page.space) {
            file.unwritten.insert(page);
        }
    }

    /// Asks a rank about a file. Returns the number of the question.
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

    /// The answers to questions, if all have come.
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
            self.broken = Some(UserError::new(what));
        }
    }

    /// A question, or an answer.
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
            self.has_event = true;
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
        }
        Ok(())
    }

    /// Nothing more is to be written to a file by this rank.
    pub(super) fn refuse(&mut self, space: Space, cause: Cause) {
        let Some(file) = self.files.open.get_mut(&space) else { return };
        file.state.refusal.store(cause.0, Ordering::Relaxed);
        file.state.note_error(cause);
        self.has_event = true;
    }
}

/// Ranges in order, with those that touch made one.
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

    /// Whether what is written to files may stay on this node's disk for a while.
    pub fn spills(&self) -> bool {
        self.engine().storage.spills()
    }

    /// Waits until nothing is under way about a file here. What is spilled of it stays.
    pub fn settle_file(&self, space: Space) {
        self.engine().storage.stop_draining(space);
        self.wait_for_files(&|| self.engine().is_quiet_about(space));
    }

    /// The same at this home, once all ranks have settled the file.
    pub fn settle_file_at_home(&self, space: Space) {
        self.wait_for_files(&|| self.engine().is_quiet_at_home(space));
    }

    /// Forgets a file, as [`Engine::close_file`].
    pub fn close_file(&self, space: Space) {
        self.wait_for_files(&|| self.engine().forget_pages(space, 0));
        self.engine().close_file(space);
    }

    /// Cuts a file, as [`Engine::cut_file`].
    pub fn cut_file(&self, space: Space, kept: u32, pages: u32) {
        self.wait_for_files(&|| self.engine().forget_pages(space, kept));
        self.engine().cut_file(space, kept, pages);
    }

    /// Waits until something about files has ended. Another thread may drive meanwhile, so this one is to look after each drive.
    pub(super) fn wait_for_files(&self, done: &dyn Fn() -> bool) {
        self.engine().files.waiting += 1;
        self.wait_until(done);
        self.engine().files.waiting -= 1;
    }
}
