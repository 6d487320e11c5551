//! A home's record of writes to its pages: recent writes with their ranks, and pages writable without the home's
//! knowledge.
//!
//! A rank asks the home once to own a page before writing it, and writes without messages until it loses the page. A
//! page some rank may write therefore counts as written at any time, and once more when write access ends. Writes
//! carried out by the home are recorded individually.

use crate::Rank;
use crate::layout_as_in_memory;
use crate::wire::take;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::{Bound, Range};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First byte of a question and of an answer.
pub const TAG_WRITES: u8 = 39;

/// One more range is being checked: while any is, the home remembers all written pages, however many.
pub const WATCH: u8 = 1;

/// One range fewer is being checked, once the answer has reached the end of the pages.
pub const UNWATCH: u8 = 2;

/// Maximum number of written pages remembered by a home while no range is checked.
pub const WRITTEN_PAGES_MAX: usize = 4096;

/// A time after which nothing was written: a question with it is only about current write access.
pub const NEVER: u64 = u64::MAX;

/// A question to a home: the pages of a range written, or possibly written, since a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Question {
    /// [`TAG_WRITES`].
    pub tag: u8,
    /// 0.
    pub is_answer: u8,
    /// [`WATCH`], [`UNWATCH`], or 0.
    pub watch: u8,
    /// 1: pages the home may write silently are to be written back, so that it asks before the next write.
    pub writes_back: u8,
    /// Identifies the question at its sender.
    pub id: u32,
    /// Since this time, as named by an answer; 0: unknown; or [`NEVER`].
    pub since: u64,
    /// The first page.
    pub first: u32,
    /// The page after the last one.
    pub end: u32,
}

/// The first bytes of an answer. Its pages follow, in order, as [`WrittenPage`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AnswerHead {
    /// [`TAG_WRITES`].
    pub tag: u8,
    /// 1.
    pub is_answer: u8,
    /// 1: there may be others whose time of writing the home has forgotten.
    pub has_forgotten: u8,
    /// Zero.
    pub padding: u8,
    /// The question.
    pub id: u32,
    /// The current time.
    pub now: u64,
    /// Pages from here on are not in this answer.
    pub next: u32,
    /// Number of pages following.
    pub pages: u32,
}

/// A page written, or possibly written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WrittenPage {
    /// Its number in the segment.
    pub index: u32,
    /// The rank that has written it, or may have.
    pub rank: u32,
    /// Flags [`WrittenPage::ASKED`] and [`WrittenPage::MAY_WRITE`].
    pub what: u32,
}

layout_as_in_memory!(Question, AnswerHead, WrittenPage);

impl WrittenPage {
    /// The rank has asked to write the page since the given time.
    pub const ASKED: u32 = 1;
    /// The rank may write the page now.
    pub const MAY_WRITE: u32 = 2;

    /// Whether all of these flags are set.
    pub fn is(&self, what: u32) -> bool {
        self.what & what == what
    }
}

/// The last write of a page.
#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    by: Rank,
    /// Time and rank of the last request to write.
    asked: Option<(u64, Rank)>,
}

/// The writes of a home's pages, recorded from the first question on. Times are sequence numbers.
#[derive(Debug, Default)]
pub struct Writes {
    /// A question was asked, and all writes are recorded.
    is_on: bool,
    /// Number of ranges being checked.
    watches: u32,
    now: u64,
    /// Some pages written at this time or before are forgotten.
    forgotten: u64,
    last: BTreeMap<u32, Last>,
    order: BTreeMap<u64, u32>,
    /// Pages a rank may write without messages.
    writers: BTreeMap<u32, Rank>,
}

impl Writes {
    /// Whether recording is on.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Starts recording. These ranks may write these pages.
    pub fn turn_on(&mut self, writers: impl Iterator<Item = (u32, Rank)>) {
        assert!(!self.is_on, "recording starts once");
        self.is_on = true;
        (self.now, self.forgotten) = (1, 1);
        self.writers = writers.collect();
    }

    /// A rank asks to write a page, or writes bytes of it.
    pub fn on_asked(&mut self, index: u32, by: Rank) {
        self.note(index, by, true);
    }

    /// Sets the rank with write access to a page, or none.
    pub fn set_writer(&mut self, index: u32, writer: Option<Rank>) {
        let before = self.writers.get(&index).copied();
        if before == writer {
            return;
        }
        match writer {
            Some(writer) => self.writers.insert(index, writer),
            None => self.writers.remove(&index),
        };
        debug_assert_eq!(self.writers.get(&index).copied(), writer, "page {index} has its new writer");
        before.into_iter().for_each(|before| self.note(index, before, false));
    }

    fn note(&mut self, index: u32, by: Rank, asks: bool) {
        self.now += 1;
        let number = self.now;
        let known = self.last.insert(index, Last { number, by, asked: asks.then_some((number, by)) });
        if let Some(known) = known {
            self.order.remove(&known.number);
            if !asks {
                self.last.entry(index).and_modify(|last| last.asked = known.asked);
            }
        }
        self.order.insert(number, index);
        debug_assert_eq!(self.order.len(), self.last.len(), "each written page has one time");
        self.forget_oldest();
    }

    /// Forgets the oldest writes beyond the limit.
    fn forget_oldest(&mut self) {
        while self.order.len() > WRITTEN_PAGES_MAX && self.watches == 0 {
            let Some((number, index)) = self.order.pop_first() else { return };
            self.forgotten = number;
            debug_assert!(number <= self.now, "writes have happened");
            self.last.remove(&index);
        }
    }

    /// The answer to a question, with at most `most` pages.
    pub fn answer(&mut self, question: &Question, most: usize) -> (AnswerHead, Vec<WrittenPage>) {
        assert!(most > 0, "an answer has room for a page");
        self.watches = self.watches.saturating_add(u32::from(question.watch == WATCH));
        let mut pages = Vec::new();
        let mut from = question.first;
        while pages.len() < most {
            let Some(index) = self.next_page(from..question.end) else {
                from = question.end;
                break;
            };
            pages.extend(self.written(index, question.since));
            from = index + 1;
        }
        let has_forgotten = u8::from(self.forgotten > question.since);
        let (count, id, now) = (pages.len() as u32, question.id, self.now);
        debug_assert!(pages.len() <= most, "the answer fits its message");
        debug_assert!(from <= question.end, "the answer ends with the range");
        let head =
            AnswerHead { tag: TAG_WRITES, is_answer: 1, has_forgotten, padding: 0, id, now, next: from, pages: count };
        if question.watch == UNWATCH && from >= question.end {
            self.watches = self.watches.saturating_sub(1);
            self.forget_oldest();
        }
        (head, pages)
    }

    /// The answer of a rank without a record: any page may have been written.
    pub fn answer_knowing_nothing(&self, question: &Question) -> (AnswerHead, Vec<WrittenPage>) {
        let Question { id, end, .. } = *question;
        debug_assert!(question.first <= end, "a question about a range is read only if it has one");
        let head = AnswerHead {
            tag: TAG_WRITES,
            is_answer: 1,
            has_forgotten: 1,
            padding: 0,
            id,
            now: self.now,
            next: end,
            pages: 0,
        };
        (head, Vec::new())
    }

    /// Pages of a range a rank may write without messages.
    pub fn writable_by(&self, rank: Rank, pages: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let bounds = (Bound::Included(pages.start), Bound::Excluded(pages.end.max(pages.start)));
        let within = self.writers.range(bounds);
        within.filter(move |(_, writer)| **writer == rank).map(|(index, _)| *index)
    }

    /// The first recorded page of a range.
    fn next_page(&self, range: Range<u32>) -> Option<u32> {
        if range.is_empty() {
            return None;
        }
        let bounds = (Bound::Included(range.start), Bound::Excluded(range.end));
        let written = self.last.range(bounds).next().map(|(index, _)| *index);
        let writable = self.writers.range(bounds).next().map(|(index, _)| *index);
        let next = written.into_iter().chain(writable).min();
        debug_assert!(next.is_none_or(|index| range.contains(&index)), "{next:?} is in {range:?}");
        next
    }

    fn written(&self, index: u32, since: u64) -> Option<WrittenPage> {
        let last = self.last.get(&index).filter(|last| last.number > since);
        let writer = self.writers.get(&index);
        let asked = last.and_then(|last| last.asked).filter(|(number, _)| *number > since).map(|(_, rank)| rank);
        let rank = asked.or(writer.copied()).or(last.map(|last| last.by))?;
        debug_assert!(last.is_none_or(|last| last.number <= self.now), "page {index} has been written");
        let what =
            u32::from(asked.is_some()) * WrittenPage::ASKED + u32::from(writer.is_some()) * WrittenPage::MAY_WRITE;
        Some(WrittenPage { index, rank: rank.0, what })
    }
}

/// Reads a question; `None` if the bytes are not one.
pub fn read_question(bytes: &[u8]) -> Option<Question> {
    let question = Question::read_from_bytes(bytes).ok()?;
    (question.tag == TAG_WRITES
        && question.is_answer == 0
        && question.watch <= UNWATCH
        && question.writes_back <= 1
        && question.first <= question.end)
        .then_some(question)
}

/// Parses an answer; `None` if the bytes are not one.
pub fn read_answer(bytes: &[u8]) -> Option<(AnswerHead, Vec<WrittenPage>)> {
    let mut tail = bytes;
    let head: AnswerHead = take(&mut tail)?;
    let pages: Option<Vec<WrittenPage>> = (0..head.pages).map(|_| take(&mut tail)).collect();
    (head.tag == TAG_WRITES && head.is_answer == 1 && tail.is_empty()).then_some((head, pages?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Rank = Rank(3);
    const B: Rank = Rank(5);

    fn question(since: u64, first: u32, end: u32) -> Question {
        Question { tag: TAG_WRITES, is_answer: 0, watch: 0, writes_back: 0, id: 7, since, first, end }
    }

    fn on() -> Writes {
        let mut writes = Writes::default();
        assert!(!writes.is_on());
        writes.turn_on([(9, A)].into_iter());
        writes
    }

    fn pages(writes: &mut Writes, since: u64) -> Vec<(u32, Rank, u32)> {
        let (_, pages) = writes.answer(&question(since, 0, 100), 1000);
        pages.iter().map(|page| (page.index, Rank(page.rank), page.what)).collect()
    }

    #[test]
    fn a_page_that_may_be_written_counts_until_it_was_lost_and_once_more() {
        let mut writes = on();
        let now = writes.answer(&question(0, 0, 100), 9).0.now;
        assert_eq!(pages(&mut writes, now), [(9, A, WrittenPage::MAY_WRITE)]);
        writes.set_writer(9, None);
        assert_eq!(pages(&mut writes, now), [(9, A, 0)]);
        let later = writes.answer(&question(0, 0, 100), 9).0.now;
        assert_eq!(pages(&mut writes, later), []);
        writes.on_asked(9, B);
        writes.set_writer(9, Some(B));
        writes.set_writer(9, None);
        assert_eq!(pages(&mut writes, later), [(9, B, WrittenPage::ASKED)]);
    }

    #[test]
    fn before_the_first_question_nothing_is_known() {
        let mut writes = on();
        assert_eq!(writes.answer(&question(0, 0, 100), 9).0.has_forgotten, 1);
        let now = writes.answer(&question(0, 0, 100), 9).0.now;
        assert_eq!(writes.answer(&question(now, 0, 100), 9).0.has_forgotten, 0);
    }

    #[test]
    fn the_oldest_are_forgotten_unless_a_range_is_checked() {
        for is_watched in [false, true] {
            let mut writes = on();
            let asked = Question { watch: u8::from(is_watched) * WATCH, ..question(0, 0, 1) };
            let now = writes.answer(&asked, 9).0.now;
            (0..WRITTEN_PAGES_MAX as u32 + 1).for_each(|index| writes.on_asked(index + 50, B));
            let (head, found) = writes.answer(&question(now, 50, 52), 9);
            assert_eq!((head.has_forgotten == 1, found.len()), (!is_watched, 1 + usize::from(is_watched)));
        }
    }

    #[test]
    fn no_more_is_remembered_when_the_last_checked_range_has_ended() {
        let (mut writes, many) = (on(), WRITTEN_PAGES_MAX as u32 + 100);
        let watch = |watch| Question { watch, ..question(0, 0, many) };
        (0..2).for_each(|_| drop(writes.answer(&watch(WATCH), 9)));
        let now = writes.answer(&question(0, 0, 1), 9).0.now;
        (0..many).for_each(|index| writes.on_asked(index, B));
        drop(writes.answer(&watch(UNWATCH), many as usize + 1));
        // Another range is still being checked, and an incomplete answer ends no check.
        drop(writes.answer(&watch(UNWATCH), 9));
        assert_eq!((writes.last.len(), writes.order.len()), (many as usize, many as usize));
        let (head, found) = writes.answer(&Question { since: now, ..watch(UNWATCH) }, many as usize + 1);
        assert_eq!((head.has_forgotten, found.len()), (0, many as usize));
        assert_eq!((writes.last.len(), writes.order.len()), (WRITTEN_PAGES_MAX, WRITTEN_PAGES_MAX));
        assert_eq!(writes.answer(&question(now, 0, 1), 9).0.has_forgotten, 1);
        // More ends than begins, as from a misbehaving peer.
        drop(writes.answer(&watch(UNWATCH), many as usize));
        assert_eq!(writes.watches, 0);
    }

    #[test]
    fn long_answers_come_in_parts() {
        let mut writes = on();
        (0..20).for_each(|index| writes.on_asked(2 * index, A));
        let (mut from, mut all) = (0, Vec::new());
        while from < 100 {
            let (head, found) = writes.answer(&question(0, from, 100), 3);
            assert!(found.len() <= 3 && head.next > from);
            all.extend(found.iter().map(|page| page.index));
            from = head.next;
        }
        let expected: Vec<u32> = (0..40).filter(|index| index % 2 == 0 || *index == 9).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn messages_are_read_as_they_were_written_and_no_others() {
        let asked = question(4, 5, 6);
        assert_eq!(read_question(asked.as_bytes()), Some(asked));
        assert_eq!(read_question(&asked.as_bytes()[1..]), None);
        assert_eq!(read_question(question(4, 6, 5).as_bytes()), None);
        let mut writes = on();
        let (head, found) = writes.answer(&question(0, 0, 100), 9);
        let bytes = [head.as_bytes(), found.as_bytes()].concat();
        assert_eq!(read_answer(&bytes), Some((head, found)));
        assert!(
            read_answer(&bytes[..bytes.len() - 1]).is_none() && read_answer(&[&bytes[..], &[0]].concat()).is_none()
        );
    }
}
