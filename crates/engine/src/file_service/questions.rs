//! Questions of this rank to others, each with a thread that waits for the answer.

use std::collections::BTreeMap;

/// The questions, by number. Number 0 is none of theirs.
#[derive(Debug)]
pub(super) struct Questions<A> {
    last: u32,
    /// `None` until the answer arrives.
    answers: BTreeMap<u32, Option<A>>,
}

impl<A> Default for Questions<A> {
    fn default() -> Questions<A> {
        Questions { last: 0, answers: BTreeMap::new() }
    }
}

impl<A> Questions<A> {
    /// Adds a question. Returns its number.
    pub(super) fn ask(&mut self) -> u32 {
        self.last = self.last.checked_add(1).unwrap_or(1);
        let before = self.answers.insert(self.last, None);
        debug_assert!(before.is_none(), "question {} has its own number", self.last);
        self.last
    }

    /// An answer has arrived. Returns whether it was awaited.
    pub(super) fn on_answer(&mut self, question: u32, answer: A) -> bool {
        let awaited = self.answers.get_mut(&question).filter(|awaited| awaited.is_none());
        awaited.is_some_and(|awaited| awaited.replace(answer).is_none())
    }

    /// Whether the answer has arrived.
    pub(super) fn is_answered(&self, question: u32) -> bool {
        self.answers.get(&question).is_some_and(Option::is_some)
    }

    /// Takes the answer, if it has arrived.
    pub(super) fn take(&mut self, question: u32) -> Option<A> {
        if self.is_answered(question) { self.answers.remove(&question).flatten() } else { None }
    }

    /// Takes the answers to all of these questions once they have arrived.
    pub(super) fn take_all(&mut self, questions: &[u32]) -> Option<Vec<A>> {
        let are_there = questions.iter().all(|question| self.is_answered(*question));
        are_there.then(|| questions.iter().filter_map(|question| self.take(*question)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_once_and_only_if_awaited() {
        let mut questions = Questions::default();
        let (first, second) = (questions.ask(), questions.ask());
        assert!(!questions.on_answer(second + 1, 'x') && questions.on_answer(second, 'b'));
        assert!(!questions.on_answer(second, 'c'), "it has its answer");
        assert_eq!((questions.take_all(&[first, second]), questions.take(first)), (None, None));
        assert!(questions.on_answer(first, 'a'));
        assert_eq!(questions.take_all(&[first, second]), Some(vec!['a', 'b']));
        assert!(!questions.is_answered(first) && !questions.on_answer(first, 'd'), "nobody waits any more");
    }

    #[test]
    fn numbers_begin_again_after_the_last() {
        let mut questions = Questions::<()> { last: u32::MAX - 1, answers: BTreeMap::new() };
        assert_eq!([questions.ask(), questions.ask()], [u32::MAX, 1]);
    }
}
