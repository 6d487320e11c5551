//! Joins writes to shared files and own pages with protocol and storage: write-behind, by number and by age, and what
//! homes know of writes.

use super::Engine;
use crate::Work;
use crate::file_service::{Purpose, Resumed};
use crate::request::{Completion, Part};
use std::ops::Range;
use std::time::Duration;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Event, PageId};
use vgasnet_protocol::writes::{AnswerHead, Question, WrittenPage, read_answer, read_question};
use vgasnet_stats::{self as stats, Row};
use zerocopy::IntoBytes;

impl Engine {
    /// Returns a part unless it would dirty a page beyond the limit. Then it is held until fewer pages are dirty.
    #[inline]
    pub(super) fn pass_or_hold(&mut self, part: Part) -> Option<Part> {
        if part.piece.page.space.segment().is_some() || !part.copy.is_put() {
            return Some(part);
        }
        self.pass_or_hold_of_file(part)
    }

    #[inline(never)]
    fn pass_or_hold_of_file(&mut self, part: Part) -> Option<Part> {
        let (passed, behind) = self.files.pass_or_hold(part, &self.protocol.cache, &self.space.own.table);
        self.queue.raise_all(behind.map(Event::WriteBack));
        passed
    }

    /// A file page may be dirty from now on: starts the write-back of another one if many are dirty.
    pub(super) fn on_dirtied(&mut self, page: PageId) {
        if page.space.segment().is_some() {
            return;
        }
        let (cache, table) = (&self.protocol.cache, &self.space.own.table);
        if let Some(time) = self.files.note_age(page, cache) {
            self.storage.ring_in(Some(time));
        }
        self.queue.raise_all(self.files.next_behind_after(page, cache, table).map(Event::WriteBack));
    }

    /// Starts the write-back of the next dirty page.
    fn write_one_behind(&mut self, is_awaited: bool) {
        let next = self.files.next_behind(is_awaited, &self.protocol.cache, &self.space.own.table);
        self.queue.raise_all(next.map(Event::WriteBack));
    }

    /// Resumes parts held until fewer pages are dirty. If no page can be written, they fail.
    pub(super) fn retry_held(&mut self) {
        while let Some(resumed) = self.files.resume(&self.protocol.cache) {
            match resumed {
                Resumed::Passes(part) => self.fetch_for(part),
                Resumed::Fails(part, cause) => self.queue.add(Work::Fail { parts: vec![part], cause }),
            }
        }
        for nth in 0..self.files.writes_due() {
            self.write_one_behind(nth == 0);
        }
        // The write-backs must reach the storage in this drive, since no other may follow.
        if self.queue.has_events() {
            self.handle_events();
        }
    }

    /// Number of parts waiting until fewer pages are dirty.
    pub fn held_parts(&self) -> usize {
        self.files.held()
    }

    /// Replaces the clock of file data's age, for simulations. It returns the time since an arbitrary origin.
    pub fn set_clock(&mut self, clock: impl Fn() -> Duration + Send + 'static) {
        self.files.set_clock(clock);
    }

    /// Whether a check is scheduled, for which the storage's doorbell rings.
    pub fn rings_later(&self) -> bool {
        self.files.rings_later()
    }

    /// Notes file blocks that have become dirty.
    pub(super) fn note_age_of_blocks(&mut self) {
        if self.storage.take_newly_dirty() {
            if let Some(time) = self.files.note_age_of_blocks() {
                self.storage.ring_in(Some(time));
            }
        }
    }

    /// Starts the write-back of pages and blocks that have been dirty for long, if a check is due.
    pub(super) fn write_aged(&mut self) {
        let Some(aged) = self.files.take_aged(&self.protocol.cache, &self.space.own.table) else { return };
        if aged.has_blocks() {
            self.storage.flush_blocks_of_files();
        }
        debug_assert!(aged.pages().iter().all(|page| page.space.segment().is_none()), "pages of files age");
        stats::add(Row::FileAged, aged.pages().len() as u64);
        self.queue.raise_all(aged.pages().iter().map(|page| Event::WriteBack(*page)));
        self.storage.ring_in(aged.next_in());
        self.handle_events();
    }

    /// Asks a home as [`super::Driver::writes_since`] does, about a non-empty range. Returns the question's id.
    pub fn ask_of_writes(&mut self, home: Rank, since: u64, pages: &Range<u32>, purpose: Purpose) -> u32 {
        debug_assert!(!pages.is_empty(), "a question is about pages");
        let question = self.files.writes_mut().ask(since, pages, purpose);
        if home == self.space.rank {
            let answer = self.answer_of_writes(&question);
            self.files.writes_mut().on_answer(answer);
        } else {
            self.outbox.send(home, question.as_bytes());
        }
        question.id
    }

    /// Whether the answer to a question has arrived.
    pub(crate) fn has_answer_of_writes(&self, id: u32) -> bool {
        self.files.writes().has_answer(id)
    }

    /// The answer to a question, if it has arrived. It may cover only the first of the pages.
    pub fn take_answer_of_writes(&mut self, id: u32) -> Option<(AnswerHead, Vec<WrittenPage>)> {
        self.files.writes_mut().take_answer(id)
    }

    /// Handles a question or an answer.
    #[inline(never)]
    pub(super) fn on_writes_message(&mut self, from: Rank, bytes: &[u8]) -> Result<(), &'static str> {
        if let Some(question) = read_question(bytes) {
            if question.end > self.protocol.home.pages() {
                return Err("a question about pages that do not exist");
            }
            let (head, pages) = self.answer_of_writes(&question);
            self.outbox.send(from, &[head.as_bytes(), pages.as_bytes()].concat());
            return Ok(());
        }
        let Some(answer) = read_answer(bytes) else { return Err("a message about writes that is none") };
        if !self.files.writes_mut().on_answer(answer) {
            return Err("an answer about writes that nobody has asked for");
        }
        self.status.note_news();
        Ok(())
    }

    fn answer_of_writes(&mut self, question: &Question) -> (AnswerHead, Vec<WrittenPage>) {
        if self.protocol.spaces().are_homes_cyclic() {
            // Other homes know of writes to this segment.
            return self.files.writes().answer_knowing_nothing(question);
        }
        if !self.files.writes().are_noted() {
            self.files.writes_mut().turn_on(&self.protocol.home, &self.space);
            self.storage.watch_blocks();
        }
        self.note_opened_blocks();
        // Stores to mapped blocks are not noticed.
        if let Err(refused) = self.storage.unmap_blocks_of(question.first..question.end) {
            self.status.break_by(refused);
        }
        if question.writes_back == 1 {
            let writable = self.files.writes().writable_by(self.space.rank, question);
            writable.into_iter().for_each(|index| self.handle(Event::WriteBack(self.space.own_page(index))));
        }
        let room = self.conduit.message_bytes_max() - size_of::<AnswerHead>();
        assert!(room >= size_of::<WrittenPage>(), "a message has room for a page");
        self.files.writes_mut().answer(question, room / size_of::<WrittenPage>())
    }

    /// Notes pages with blocks mapped for stores.
    fn note_opened_blocks(&mut self) {
        self.files.writes_mut().on_opened(self.storage.take_opened(), self.space.rank);
    }

    /// Called before a part is performed on blocks of an own page.
    pub(super) fn note_job(&mut self, part: &Part) {
        debug_assert!(self.space.is_own(part.piece.page), "writes are noted by the own segment's home");
        self.note_opened_blocks();
        if part.copy.is_put() {
            let by = self.asked_by(part).unwrap_or(self.space.rank);
            self.files.writes_mut().on_put(part.piece.page.index, by);
        }
    }

    /// Called before this rank requests a page for a part.
    pub(super) fn note_wanted(&mut self, part: &Part) {
        let page = part.piece.page;
        let must_ask = self.space.is_own(page) && self.protocol.home.writer(page) != Some(self.space.rank);
        if let Some(by) = self.asked_by(part).filter(|_| part.copy.is_put() && must_ask) {
            self.files.writes_mut().act_for(page.index, by);
        }
    }

    /// The other rank that requested a part, if one did.
    fn asked_by(&self, part: &Part) -> Option<Rank> {
        match part.completion {
            Completion::Served(id) => Some(self.bytes.sender_of(id)),
            _ => None,
        }
    }

    /// Whether writes to this home's pages are noted.
    pub(super) fn notes_writes(&self) -> bool {
        self.files.writes().are_noted()
    }

    /// The own page of an event at its home, while writes are noted. Notes requests to write the page.
    pub(super) fn note_write_request(&mut self, event: &Event) -> Option<PageId> {
        self.files.writes_mut().on_event(event, &self.space)
    }

    /// Called after an event about an own page.
    pub(super) fn note_writer(&mut self, page: PageId) {
        self.files.writes_mut().set_writer(page, &self.protocol.home);
    }
}
