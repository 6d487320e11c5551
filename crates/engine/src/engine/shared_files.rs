//! Joins the shared files with protocol and storage: their life, flushes, failures, messages and locks.

use super::Engine;
use crate::Work;
use crate::file_service::{FileState, Handled, OwnFlush, Unwritten, joined};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use vgasnet_memory::{Closing, Extent};
use vgasnet_protocol::coherence::{Cause, Event, FrameId, PageId, Waiter};
use vgasnet_protocol::file_locks::{Action, FileLocks, LockId, LockRequest};
use vgasnet_protocol::file_message::{FileAsk, FileMessage, PageFilter};
use vgasnet_protocol::{Rank, Space, Stripes, Violation};
use vgasnet_settings::UserError;
use vgasnet_storage::NamedFile;
use zerocopy::IntoBytes;

impl Engine {
    /// Stops draining to a file that is about to be closed or cut.
    pub(crate) fn stop_draining(&mut self, space: Space) {
        self.storage.stop_draining(space);
    }

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
        self.files.open_mut().open(space, pages, state);
    }

    /// Whether a file of this space is open here.
    pub fn is_open_file(&self, space: Space) -> bool {
        self.files.open().state(space).is_some()
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
        if let Err(violation) = self.files.locks_mut().forget_file(space) {
            self.status.break_by(UserError::new(violation.to_string()));
        }
        self.files.open_mut().close(space);
        debug_assert!(!self.is_open_file(space) && self.protocol.spaces().is_closed(space), "{space:?} is closed");
    }

    /// Drops the pages of a file from `first` on without write-back, except pinned ones. Returns whether none is left.
    /// Call again until it does: a thread that looks for another page may pin one briefly, or for longer if it is
    /// descheduled.
    pub fn forget_pages(&mut self, space: Space, first: u32) -> bool {
        let pages: Vec<PageId> = self.protocol.cache.pages_of(space).filter(|page| page.index >= first).collect();
        let (mut actions, mut leaving) = (self.queue.take_actions(), BTreeSet::new());
        let before = self.files.open_mut().take_leaving(space);
        for page in pages {
            let is_closed = if before.contains(&page) {
                self.space.poll_closed(page).is_some()
            } else {
                self.space.close(page) != Closing::Pinned
            };
            if is_closed {
                self.files.forget_unwritten(page);
                let frame = self.protocol.cache.forget_page(page, &mut actions);
                debug_assert!(self.protocol.cache.page_in(frame) != Some(page), "{page:?} has left its frame");
                self.paging.on_dropped(frame);
            } else {
                leaving.insert(page);
            }
        }
        let is_over = leaving.is_empty();
        self.files.open_mut().set_leaving(space, leaving);
        self.queue.return_actions(actions);
        self.carry_out();
        self.handle_events();
        debug_assert!(!self.outbox.has_bundle(), "all messages of the pages are sent");
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
        self.files.open_mut().set_end(space, pages);
    }

    /// End of the pages that may be read ahead.
    pub fn end_of(&self, space: Space) -> u32 {
        let end = self.files.open().end_of(space, self.space.page_bytes());
        end.unwrap_or_else(|| self.protocol.spaces().pages(space))
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
        if !self.is_open_file(space) {
            return None;
        }
        let cause = self.refusal(space)?;
        let blocks = &self.space.own.blocks;
        let page_bytes = self.space.page_bytes();
        let of_page = |page: PageId| {
            let start = u64::from(page.index) * page_bytes as u64;
            let extents = self.protocol.cache.dirty_frame(page).map(|frame| match blocks.extents(frame, 0) {
                none if none.is_empty() => vec![Extent { start_bytes: 0, end_bytes: page_bytes }],
                extents => extents,
            });
            let extents = extents.unwrap_or_default().into_iter();
            extents.map(move |extent| start + extent.start_bytes as u64..start + extent.end_bytes as u64)
        };
        let mut ranges: Vec<Range<u64>> = self.files.open().unwritten_of(space).flat_map(of_page).collect();
        ranges.extend(self.storage.unwritten_bytes(space));
        (!ranges.is_empty()).then(|| Unwritten { cause, ranges: joined(ranges) })
    }

    /// The unwritten data of a file after a flush. If there are none, writes are accepted again.
    pub(crate) fn unwritten_after_flush(&mut self, space: Space) -> Option<Unwritten> {
        let unwritten = self.unwritten(space);
        if unwritten.is_none() {
            self.files.open().accept(space);
        }
        unwritten
    }

    /// Why data of the file could not be written, in this rank's pool or as a home.
    pub fn refusal(&self, space: Space) -> Option<Cause> {
        self.files.open().refusal(space).or_else(|| self.storage.is_flushed(space)?.err())
    }

    /// Refuses further writes to a file by this rank.
    fn refuse(&mut self, space: Space, cause: Cause) {
        self.status.note_news_if(self.files.open().refuse(space, cause));
    }

    /// Notes a failed operation of this rank.
    pub fn note_file_error(&self, space: Space, cause: Cause) {
        self.files.open().state(space).into_iter().for_each(|state| state.note_error(cause));
    }

    /// A page could not be read: fails the operations waiting for it.
    pub(super) fn fail(&mut self, frame: FrameId, waiters: &[Waiter], cause: Cause) {
        self.paging.mark_filled(frame);
        let parts = self.waiting.take_all(waiters);
        self.queue.add(Work::Fail { parts, cause });
    }

    /// A dirty page of this rank could not be written.
    pub(super) fn on_unwritten(&mut self, page: PageId, cause: Cause) {
        self.refuse(page.space, cause);
        self.files.open_mut().note_unwritten(page);
    }

    /// Starts writing this rank's data of a file, in its pool or as a home. [`Engine::is_flushed_file`] reports
    /// completion.
    pub fn flush_file(&mut self, space: Space) {
        if self.files.open_mut().retry(space) {
            self.storage.flush_file(space);
            self.handle(Event::FlushSpace(space));
        }
    }

    /// Whether the flush has ended: all data are written or have failed. A page forwarded to another rank belongs to
    /// the other rank's flush.
    pub fn is_flushed_file(&self, space: Space) -> bool {
        self.protocol.cache.is_flushed_of(space) && self.storage.is_flushed(space).is_some()
    }

    /// Begins a flush by this rank alone: it writes its own data as [`Engine::flush_file`]. The homes write the other
    /// dirty pages.
    pub fn begin_flush(&mut self, space: Space) -> OwnFlush {
        self.flush_file(space);
        self.files.open_mut().begin_flush(space)
    }

    /// Ends a flush. After a failure the next flush asks for all of its pages again.
    pub fn end_flush(&mut self, space: Space, flush: OwnFlush, is_refused: bool) {
        self.files.open_mut().end_flush(space, flush, is_refused);
    }

    /// A rank flushes a file: this home writes its blocks and recalls pages that are dirty in some pool.
    fn flush_at_home(&mut self, from: Rank, message: FileMessage) {
        self.storage.flush_file(message.space);
        let filter = PageFilter(message.value);
        let dirty = self.protocol.home.dirty_pages_of(message.space).filter(|page| filter.has(page.index));
        let recalled = self.files.flushes_mut().begin(from, message, dirty.collect());
        debug_assert!(recalled.iter().all(|page| page.space == message.space), "a flush is of one file");
        recalled.into_iter().for_each(|page| self.handle(Event::Recall(page)));
    }

    /// A page that a flush asked for is written back, or has failed.
    pub(super) fn on_recalled(&mut self, page: PageId, cause: Option<Cause>) {
        if self.files.flushes_mut().on_recalled(page, cause) {
            self.queue.raise(Event::Recall(page));
        }
    }

    /// Answers flushes that have ended, and notes failures to write or to drain.
    pub(super) fn answer_flushes(&mut self) {
        for (space, cause) in self.storage.take_undrained() {
            self.refuse(space, cause);
        }
        for (space, cause) in self.storage.take_block_failures() {
            self.note_file_error(space, cause);
        }
        if self.files.flushes().is_idle() {
            return;
        }
        for space in self.files.flushes().recalled() {
            let Some(written) = self.storage.is_flushed(space) else { continue };
            // Even after a failure, since otherwise all later writes would bypass the buffer.
            self.storage.drain_file(space);
            if written.is_err() || !self.storage.spills() {
                let answers = self.files.flushes_mut().end_recalled(space, written);
                self.send_all_about_file(answers);
            } else {
                self.files.flushes_mut().drain(space);
            }
        }
        // This includes flushes that began to drain just above: without spilled data no other drive may follow.
        for space in self.files.flushes().draining() {
            if let Some(drained) = self.storage.is_drained(space) {
                let answers = self.files.flushes_mut().end_draining(space, drained);
                self.send_all_about_file(answers);
            }
        }
    }

    /// Asks a rank about a file. Returns the question's id.
    pub fn ask_of_file(&mut self, to: Rank, space: Space, ask: FileAsk, value: u64) -> u32 {
        let question = self.files.ask(space, ask, value);
        self.send_about_file(to, question);
        question.id
    }

    /// Takes the answers to questions once all have arrived.
    pub fn take_answers_of_file(&mut self, ids: &[u32]) -> Option<Vec<FileMessage>> {
        self.files.take_answers(ids)
    }

    fn send_about_file(&mut self, to: Rank, message: FileMessage) {
        if to != self.space.rank {
            return self.outbox.send(to, message.as_bytes());
        }
        if let Err(what) = self.on_file_message(to, message.as_bytes()) {
            self.status.break_by(UserError::new(what));
        }
    }

    fn send_all_about_file(&mut self, messages: Vec<(Rank, FileMessage)>) {
        messages.into_iter().for_each(|(to, message)| self.send_about_file(to, message));
    }

    /// Handles a question or an answer.
    pub(super) fn on_file_message(&mut self, from: Rank, bytes: &[u8]) -> Result<(), &'static str> {
        match self.files.on_message(from, bytes)? {
            Handled::Answered => self.status.note_news(),
            Handled::Answer(answer) => self.send_about_file(from, answer),
            Handled::Flush(message) => self.flush_at_home(from, message),
            Handled::Messages(messages) => self.send_all_about_file(messages),
        }
        Ok(())
    }

    /// This rank's part in the file locks.
    pub fn locks(&self) -> &FileLocks {
        self.files.locks().machine()
    }

    /// Requests a lock.
    pub fn lock(&mut self, request: LockRequest<'_>) -> LockId {
        let id = self.files.locks_mut().lock(request);
        self.act_on_locks();
        id
    }

    /// Whether a lock is granted.
    pub fn is_locked(&self, id: LockId) -> bool {
        self.locks().is_granted(id)
    }

    /// Releases a granted lock.
    pub fn unlock(&mut self, id: LockId) {
        self.files.locks_mut().unlock(id);
        self.act_on_locks();
    }

    /// Handles a message about locks.
    pub(super) fn on_lock_message(&mut self, from: Rank, bytes: &[u8]) -> Result<(), Violation> {
        self.files.locks_mut().on_message(from, bytes)?;
        self.act_on_locks();
        Ok(())
    }

    fn act_on_locks(&mut self) {
        loop {
            match self.files.locks_mut().next_action() {
                Ok(Some(Action::Send { to, bytes })) => self.outbox.send(to, &bytes),
                Ok(Some(Action::Granted(_))) => self.status.note_news(),
                Ok(None) => return,
                Err(violation) => {
                    self.status.break_by(UserError::new(violation.to_string()));
                    return;
                }
            }
        }
    }

    /// Whether one more file may be cached for writing. If so, it is counted.
    pub fn begin_caching(&mut self) -> bool {
        self.files.cached_for_mpi_mut().begin()
    }

    /// A counted file is cached no more.
    pub fn end_caching(&mut self) {
        self.files.cached_for_mpi_mut().end();
    }

    /// Bars caching on this rank.
    pub fn bar_caching(&mut self) {
        self.files.cached_for_mpi_mut().bar();
    }

    /// Whether caching is barred: the files that are still cached have to be handed over.
    pub fn is_caching_barred(&self) -> bool {
        self.files.cached_for_mpi().is_barred()
    }

    /// Whether a rank is about to end the job: the files of this one are to be rescued.
    pub fn is_job_ending(&self) -> bool {
        self.files.cached_for_mpi().is_job_ending()
    }

    /// All files that this rank caches are rescued.
    pub fn note_rescue(&mut self) {
        self.files.cached_for_mpi_mut().note_rescue();
    }
}
