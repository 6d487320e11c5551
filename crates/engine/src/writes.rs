//! Homes' knowledge of writes to their pages: this rank's questions to homes, and other ranks' questions to this one.

use super::{Driver, Engine};
use crate::request::{Completion, Part};
use std::ops::Range;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{CoherenceBody, Event, PageId, ToHome};
use vgasnet_protocol::ordered::OrderedMap;
use vgasnet_protocol::writes::{
    AnswerHead, Question, TAG_WRITES, UNWATCH, WATCH, Writes, WrittenPage, read_answer, read_question,
};
use zerocopy::IntoBytes;

/// Writes to this home's pages, and the questions that this rank has asked.
#[derive(Default)]
pub(super) struct KnownWrites {
    of_own: Writes,
    /// Ranks on whose behalf this one is about to write an own page.
    acting_for: OrderedMap<u32, Rank>,
    last_id: u32,
    /// Answers by question; `None` until they arrive.
    answers: OrderedMap<u32, Option<Answer>>,
}

type Answer = (AnswerHead, Vec<WrittenPage>);

/// Purpose of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The asker keeps copies of unwritten data: the home writes back its own pages of the range.
    Keep,
    /// Begins a range with a later [`Purpose::Check`]: until then the home forgets no write.
    Watch,
    /// Changes nothing at the home.
    Look,
    /// Ends a range begun with [`Purpose::Watch`].
    Check,
}

/// Writes to a range of pages since an earlier time, as known to a home.
#[derive(Debug)]
pub struct WritesSince {
    /// Logical time of the answer.
    pub now: u64,
    /// Further pages may have been written.
    pub has_forgotten: bool,
    /// Pages that were or may have been written.
    pub pages: Vec<WrittenPage>,
}

impl KnownWrites {
    /// Whether writes to this home's pages are noted.
    pub(super) fn are_noted(&self) -> bool {
        self.of_own.is_on()
    }
}

impl Engine {
    /// Asks a home as [`Driver::writes_since`] does, about a non-empty range. Returns the question's id.
    pub fn ask_of_writes(&mut self, home: Rank, since: u64, pages: &Range<u32>, purpose: Purpose) -> u32 {
        self.writes.last_id = self.writes.last_id.wrapping_add(1);
        let (id, first, end) = (self.writes.last_id, pages.start, pages.end);
        let (watch, writes_back) = match purpose {
            Purpose::Keep => (0, 1),
            Purpose::Watch => (WATCH, 0),
            Purpose::Look => (0, 0),
            Purpose::Check => (UNWATCH, 0),
        };
        let question = Question { tag: TAG_WRITES, is_answer: 0, watch, writes_back, id, since, first, end };
        self.writes.answers.insert(id, None);
        if home == self.space.rank {
            let answer = self.answer_of_writes(&question);
            self.writes.answers.insert(id, Some(answer));
        } else {
            self.outbox.send(home, question.as_bytes());
        }
        id
    }

    fn has_answer_of_writes(&self, id: u32) -> bool {
        matches!(self.writes.answers.get(&id), Some(Some(_)))
    }

    /// The answer to a question, if it has arrived. It may cover only the first of the pages.
    pub fn take_answer_of_writes(&mut self, id: u32) -> Option<(AnswerHead, Vec<WrittenPage>)> {
        if self.has_answer_of_writes(id) { self.writes.answers.remove(&id).flatten() } else { None }
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
        match self.writes.answers.get_mut(&answer.0.id) {
            Some(awaited @ None) => *awaited = Some(answer),
            _ => return Err("an answer about writes that nobody has asked for"),
        }
        self.status.note_event();
        Ok(())
    }

    fn answer_of_writes(&mut self, question: &Question) -> Answer {
        if self.protocol.spaces().are_homes_cyclic() {
            // Other homes know of writes to this segment.
            return self.writes.of_own.answer_knowing_nothing(question);
        }
        if !self.writes.are_noted() {
            let home = &self.protocol.home;
            let own = home.known_pages().filter(|page| self.space.is_own(*page));
            let writers = own.filter_map(|page| home.writer(page).map(|rank| (page.index, rank)));
            self.writes.of_own.turn_on(writers);
            self.storage.watch_blocks();
        }
        self.note_opened_blocks();
        // Stores to mapped blocks are not noticed.
        if let Err(refused) = self.storage.unmap_blocks_of(question.first..question.end) {
            self.status.break_by(refused);
        }
        if question.writes_back == 1 {
            let own = self.space.rank;
            let writable: Vec<u32> = self.writes.of_own.writable_by(own, question.first..question.end).collect();
            writable.into_iter().for_each(|index| self.handle(Event::WriteBack(self.space.own_page(index))));
        }
        let room = self.conduit.message_bytes_max() - size_of::<AnswerHead>();
        self.writes.of_own.answer(question, room / size_of::<WrittenPage>())
    }

    /// Notes pages with blocks mapped for stores.
    fn note_opened_blocks(&mut self) {
        let own = self.space.rank;
        self.storage.take_opened().into_iter().for_each(|index| self.writes.of_own.on_asked(index, own));
    }

    /// Called before a part is performed on blocks of an own page.
    pub(super) fn note_job(&mut self, part: &Part) {
        self.note_opened_blocks();
        if part.copy.is_put() {
            let by = self.asked_by(part).unwrap_or(self.space.rank);
            self.writes.of_own.on_asked(part.piece.page.index, by);
        }
    }

    /// Called before this rank requests a page for a part.
    pub(super) fn note_wanted(&mut self, part: &Part) {
        let page = part.piece.page;
        let must_ask = self.space.is_own(page) && self.protocol.home.writer(page) != Some(self.space.rank);
        if let Some(by) = self.asked_by(part).filter(|_| part.copy.is_put() && must_ask) {
            self.writes.acting_for.insert(page.index, by);
        }
    }

    /// The other rank that requested a part, if one did.
    fn asked_by(&self, part: &Part) -> Option<Rank> {
        match part.completion {
            Completion::Served(id) => Some(self.bytes.sender_of(id)),
            _ => None,
        }
    }

    /// The own page of an event at its home, while writes are noted. Notes requests to write the page.
    pub(super) fn note_event(&mut self, event: &Event) -> Option<PageId> {
        if !self.writes.are_noted() {
            return None;
        }
        match event {
            Event::Message { from, message } => {
                let CoherenceBody::Home(body) = message.body else { return None };
                if !self.space.is_own(message.page) {
                    return None;
                }
                let index = message.page.index;
                if matches!(body, ToHome::Write { .. } | ToHome::Overwrite { .. }) {
                    let acts = if *from == self.space.rank { self.writes.acting_for.remove(&index) } else { None };
                    self.writes.of_own.on_asked(index, acts.unwrap_or(*from));
                }
                Some(message.page)
            }
            Event::Loaded(page) | Event::LoadFailed { page, .. } | Event::Stored(page) if self.space.is_own(*page) => {
                Some(*page)
            }
            _ => None,
        }
    }

    /// Called after an event about an own page.
    pub(super) fn note_writer(&mut self, page: PageId) {
        let writer = self.protocol.home.writer(page);
        self.writes.of_own.set_writer(page.index, writer);
    }
}

impl Driver {
    /// Asks a home which of its pages were written since a logical time from an earlier answer; 0 is earlier than every write.
    /// Waits for the answer.
    pub fn writes_since(&self, home: Rank, since: u64, pages: Range<u32>, purpose: Purpose) -> WritesSince {
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
}
