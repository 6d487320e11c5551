//! The size of a shared file in a large team. A rank asks the first member of its team, which asks all others once for
//! all pending requests.

use std::collections::BTreeMap;
use vgasnet_protocol::file_message::{FileAsk, FileMessage, TAG_FILE};
use vgasnet_protocol::{Rank, Space};

/// Id of the questions of a round: no thread waits for a single answer.
pub(super) const OF_ROUND: u32 = 0;

/// Messages and their receivers, in order.
type Messages = Vec<(Rank, FileMessage)>;

/// Rounds in progress at a first member.
#[derive(Debug, Default)]
pub(super) struct SizeRounds(BTreeMap<Space, Round>);

/// A member may answer before a write that a later request has to see. So requests that arrive during a round wait for
/// the next one.
#[derive(Debug)]
struct Round {
    /// Requests that this round answers.
    now: Messages,
    next: Messages,
    /// Outstanding answers.
    left: usize,
    /// The largest end so far.
    end_bytes: u64,
}

impl SizeRounds {
    /// A rank asks for the end of the data written by any member of a file's team, of which `others` are the other
    /// members. Returns the questions to them, if a round begins.
    pub(super) fn ask(&mut self, from: Rank, message: FileMessage, others: &[Rank]) -> Messages {
        debug_assert!(!message.is_answer, "a size is asked for");
        let space = message.space;
        if let Some(round) = self.0.get_mut(&space) {
            round.next.push((from, message));
            return Vec::new();
        }
        self.begin(space, vec![(from, message)], others)
    }

    fn begin(&mut self, space: Space, now: Messages, others: &[Rank]) -> Messages {
        debug_assert!(!now.is_empty(), "a round answers some request");
        let before = self.0.insert(space, Round { now, next: Vec::new(), left: others.len(), end_bytes: 0 });
        assert!(before.is_none(), "{space:?} has one round at a time");
        let (ask, id) = (FileAsk::End, OF_ROUND);
        let question = FileMessage { tag: TAG_FILE, is_answer: false, ask, cause: 0, id, space, padding: 0, value: 0 };
        others.iter().map(|other| (*other, question)).collect()
    }

    /// A member reports the end of its written data. Returns the resulting messages, or `None` if no round expects an
    /// answer. The last answer ends the round with answers to its requests, and may begin another. `own_end_bytes`
    /// is the end of the data written here.
    pub(super) fn on_answer(
        &mut self,
        space: Space,
        end_bytes: u64,
        own_end_bytes: u64,
        others: &[Rank],
    ) -> Option<Messages> {
        let round = self.0.get_mut(&space)?;
        round.left = round.left.checked_sub(1)?;
        round.end_bytes = round.end_bytes.max(end_bytes);
        if round.left > 0 {
            return Some(Vec::new());
        }
        let Round { now: mut messages, next, end_bytes, .. } = self.0.remove(&space)?;
        let value = end_bytes.max(own_end_bytes);
        for (_, message) in &mut messages {
            *message = FileMessage { is_answer: true, value, ..*message };
        }
        if !next.is_empty() {
            messages.extend(self.begin(space, next, others));
        }
        Some(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_during_a_round_are_answered_after_the_next() {
        let (mut rounds, space, others) = (SizeRounds::default(), Space::of_file(3), [Rank(1), Rank(2)]);
        let (tag, ask) = (TAG_FILE, FileAsk::Size);
        let request = |id| FileMessage { tag, is_answer: false, ask, cause: 0, id, space, padding: 0, value: 0 };
        let seen = |messages: Messages| -> Vec<(u32, u32, u64)> {
            messages.iter().map(|(to, message)| (to.0, message.id, message.value)).collect()
        };
        let questions = [(1, OF_ROUND, 0), (2, OF_ROUND, 0)];
        assert!(rounds.on_answer(space, 0, 0, &others).is_none());
        assert_eq!(seen(rounds.ask(Rank(1), request(7), &others)), questions);
        assert!(rounds.ask(Rank(2), request(8), &others).is_empty());
        assert!(rounds.ask(Rank(1), request(9), &others).is_empty());
        let mut answered = |end, own| seen(rounds.on_answer(space, end, own, &others).expect("a round is in progress"));
        assert_eq!(answered(100, 0), []);
        assert_eq!(answered(50, 70), [&[(1, 7, 100)], &questions[..]].concat());
        assert_eq!(answered(20, 0), []);
        assert_eq!(answered(30, 40), [(2, 8, 40), (1, 9, 40)], "the file may have been cut since");
        assert!(rounds.on_answer(space, 0, 0, &others).is_none());
    }

    #[test]
    fn an_answer_that_no_one_was_asked_for_is_refused() {
        let (mut rounds, space, tag) = (SizeRounds::default(), Space::of_file(3), TAG_FILE);
        let ask = FileAsk::Size;
        let request = FileMessage { tag, is_answer: false, ask, cause: 0, id: 7, space, padding: 0, value: 0 };
        assert!(rounds.ask(Rank(1), request, &[]).is_empty());
        assert!(rounds.on_answer(space, 0, 0, &[]).is_none());
    }
}
