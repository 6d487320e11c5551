//! Homes' knowledge of writes to their pages: this rank's questions to homes, and other ranks' questions to this one.

use super::questions::Questions;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use vgasnet_memory::AddressSpace;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{CoherenceBody, Event, Home, PageId, ToHome};
use vgasnet_protocol::writes::{AnswerHead, Question, TAG_WRITES, UNWATCH, WATCH, Writes, WrittenPage};

/// Writes to this home's pages, and the questions that this rank has asked.
#[derive(Default)]
pub struct KnownWrites {
    of_own: Writes,
    /// Ranks on whose behalf this one is about to write an own page.
    acting_for: BTreeMap<u32, Rank>,
    questions: Questions<Answer>,
}

/// The answer to a question. It may cover only the first of the pages.
pub type Answer = (AnswerHead, Vec<WrittenPage>);

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
    pub fn are_noted(&self) -> bool {
        self.of_own.is_on()
    }

    /// Starts noting writes to the pages of `home`.
    pub fn turn_on(&mut self, home: &Home, space: &AddressSpace) {
        debug_assert!(!self.are_noted(), "writes are noted from one time on");
        let own = home.known_pages().filter(|page| space.is_own(*page));
        self.of_own.turn_on(own.filter_map(|page| home.writer(page).map(|rank| (page.index, rank))));
    }

    /// Makes a question to a home about the writes to non-empty `pages` after a logical time.
    pub fn ask(&mut self, since: u64, pages: &Range<u32>, purpose: Purpose) -> Question {
        debug_assert!(!pages.is_empty(), "a question is about pages");
        let (watch, writes_back) = match purpose {
            Purpose::Keep => (0, 1),
            Purpose::Watch => (WATCH, 0),
            Purpose::Look => (0, 0),
            Purpose::Check => (UNWATCH, 0),
        };
        let (id, first, end) = (self.questions.ask(), pages.start, pages.end);
        Question { tag: TAG_WRITES, is_answer: 0, watch, writes_back, id, since, first, end }
    }

    /// An answer has arrived. Returns whether it was awaited.
    pub fn on_answer(&mut self, answer: Answer) -> bool {
        self.questions.on_answer(answer.0.id, answer)
    }

    /// Whether the answer to a question has arrived.
    pub fn has_answer(&self, id: u32) -> bool {
        self.questions.is_answered(id)
    }

    /// Takes the answer to a question, if it has arrived.
    pub fn take_answer(&mut self, id: u32) -> Option<Answer> {
        self.questions.take(id)
    }

    /// The pages of a question that `rank` may be writing.
    pub fn writable_by(&self, rank: Rank, question: &Question) -> Vec<u32> {
        self.of_own.writable_by(rank, question.first..question.end).collect()
    }

    /// Answers a question with at most `most` pages.
    pub fn answer(&mut self, question: &Question, most: usize) -> Answer {
        self.of_own.answer(question, most)
    }

    /// Answers a question about pages of which other homes know.
    pub fn answer_knowing_nothing(&self, question: &Question) -> Answer {
        self.of_own.answer_knowing_nothing(question)
    }

    /// `by` is about to write bytes of a page.
    pub fn on_put(&mut self, index: u32, by: Rank) {
        self.of_own.on_asked(index, by);
    }

    /// `own` may store to blocks of these pages.
    pub fn on_opened(&mut self, pages: BTreeSet<u32>, own: Rank) {
        pages.into_iter().for_each(|index| self.of_own.on_asked(index, own));
    }

    /// This rank is about to request an own page to write it on behalf of another.
    pub fn act_for(&mut self, index: u32, by: Rank) {
        debug_assert!(self.are_noted(), "a rank acts for another only while writes are noted");
        self.acting_for.insert(index, by);
    }

    /// The own page of an event at its home, while writes are noted. Notes requests to write the page.
    pub fn on_event(&mut self, event: &Event, space: &AddressSpace) -> Option<PageId> {
        if !self.are_noted() {
            return None;
        }
        match event {
            Event::Message { from, message } => {
                let CoherenceBody::Home(body) = message.body else { return None };
                if !space.is_own(message.page) {
                    return None;
                }
                let index = message.page.index;
                if matches!(body, ToHome::Write { .. } | ToHome::Overwrite { .. }) {
                    let acts = if *from == space.rank { self.acting_for.remove(&index) } else { None };
                    self.of_own.on_asked(index, acts.unwrap_or(*from));
                }
                Some(message.page)
            }
            Event::Loaded(page) | Event::LoadFailed { page, .. } | Event::Stored(page) if space.is_own(*page) => {
                Some(*page)
            }
            _ => None,
        }
    }

    /// Notes the present writer of an own page.
    pub fn set_writer(&mut self, page: PageId, home: &Home) {
        debug_assert!(self.are_noted(), "a writer is known while writes are noted");
        self.of_own.set_writer(page.index, home.writer(page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question_of(known: &mut KnownWrites, purpose: Purpose) -> (u32, u8, u8) {
        let question = known.ask(0, &(0..4), purpose);
        (question.id, question.watch, question.writes_back)
    }

    #[test]
    fn a_question_says_what_the_home_has_to_do() {
        let mut known = KnownWrites::default();
        assert_eq!(question_of(&mut known, Purpose::Keep), (1, 0, 1));
        assert_eq!(question_of(&mut known, Purpose::Watch), (2, WATCH, 0));
        assert_eq!(question_of(&mut known, Purpose::Look), (3, 0, 0));
        assert_eq!(question_of(&mut known, Purpose::Check), (4, UNWATCH, 0));
    }

    #[test]
    fn an_answer_names_the_pages_written_since() {
        let mut known = KnownWrites::default();
        assert!(!known.are_noted());
        known.of_own.turn_on([].into_iter());
        let before = known.ask(0, &(0..4), Purpose::Look);
        let (head, _) = known.answer(&before, 9);
        known.on_put(2, Rank(5));
        known.on_opened([3].into_iter().collect(), Rank(1));
        let question = known.ask(head.now, &(0..4), Purpose::Look);
        let answer = known.answer(&question, 9);
        assert_eq!(answer.1.iter().map(|page| page.index).collect::<Vec<_>>(), [2, 3]);
        assert!(!known.has_answer(question.id) && known.take_answer(question.id).is_none());
        assert!(known.on_answer(answer.clone()) && !known.on_answer(answer), "it is awaited once");
        assert!(known.has_answer(question.id) && known.take_answer(question.id).is_some());
    }
}
