//! The size of a shared file in a large team. A rank asks the first member of its team, which asks all others once for
//! all pending requests.

use super::Engine;
use vgasnet_protocol::file_message::{FileAsk, FileMessage, TAG_FILE};
use vgasnet_protocol::ordered::OrderedMap;
use vgasnet_protocol::{Rank, Space};

/// Id of the questions of a round: no thread waits for a single answer.
pub(super) const OF_ROUND: u32 = 0;

/// Rounds in progress at a first member.
#[derive(Debug, Default)]
pub(super) struct SizeRounds(OrderedMap<Space, Round>);

/// A member may answer before a write that a later request has to see. So requests that arrive during a round wait for
/// the next one.
#[derive(Debug)]
struct Round {
    /// Requests that this round answers.
    now: Vec<(Rank, FileMessage)>,
    next: Vec<(Rank, FileMessage)>,
    /// Outstanding answers.
    left: usize,
    /// The largest end so far.
    end_bytes: u64,
}

impl SizeRounds {
    /// Adds a request. Returns whether a round begins.
    fn ask(&mut self, from: Rank, message: FileMessage, others: usize) -> bool {
        let asked = (from, message);
        if let Some(round) = self.0.get_mut(&message.space) {
            round.next.push(asked);
            return false;
        }
        self.0.insert(message.space, Round { now: vec![asked], next: Vec::new(), left: others, end_bytes: 0 });
        true
    }

    /// Adds a member's answer. Returns the outcome, if this was the last answer. `None` if no round is in progress.
    fn answered(&mut self, space: Space, end_bytes: u64, others: usize) -> Option<Ended> {
        let round = self.0.get_mut(&space)?;
        round.left -= 1;
        round.end_bytes = round.end_bytes.max(end_bytes);
        if round.left > 0 {
            return Some(Ended::default());
        }
        let Round { now, next, end_bytes, .. } = self.0.remove(&space)?;
        let is_again = !next.is_empty();
        if is_again {
            self.0.insert(space, Round { now: next, next: Vec::new(), left: others, end_bytes: 0 });
        }
        Some(Ended { told: now, end_bytes, is_again })
    }
}

/// The outcome of a round.
#[derive(Debug, Default)]
struct Ended {
    /// Requests to answer.
    told: Vec<(Rank, FileMessage)>,
    /// The end of the data that the asked members have written.
    end_bytes: u64,
    /// Whether another round begins.
    is_again: bool,
}

impl Engine {
    /// A rank asks this one, the first member of a file's team, for the end of the data written by any member.
    pub(super) fn ask_for_size(&mut self, from: Rank, message: FileMessage) {
        let others = self.others_of(message.space);
        if self.files.sizes.ask(from, message, others.len()) {
            self.begin_round(message.space, &others);
        }
    }

    fn begin_round(&mut self, space: Space, others: &[Rank]) {
        let (ask, id) = (FileAsk::End, OF_ROUND);
        for other in others {
            let question =
                FileMessage { tag: TAG_FILE, is_answer: false, ask, cause: 0, id, space, padding: 0, value: 0 };
            self.send_about_file(*other, question);
        }
    }

    /// A member reports the end of its written data.
    pub(super) fn on_answer_of_round(&mut self, space: Space, end_bytes: u64) -> Result<(), &'static str> {
        let others = self.files.open.get(&space).map_or(0, |file| file.state.others.len());
        let answered = self.files.sizes.answered(space, end_bytes, others);
        let Ended { told, end_bytes, is_again } =
            answered.ok_or("an answer about a file's size that nobody has asked for")?;
        let value = end_bytes.max(self.files.written_end(space));
        for (to, question) in told {
            self.send_about_file(to, FileMessage { is_answer: true, value, ..question });
        }
        if is_again {
            self.begin_round(space, &self.others_of(space));
        }
        Ok(())
    }

    fn others_of(&self, space: Space) -> Vec<Rank> {
        self.files.open.get(&space).map(|file| file.state.others.to_vec()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_during_a_round_are_answered_after_the_next() {
        let (mut rounds, space) = (SizeRounds::default(), Space::of_file(3));
        let (tag, ask) = (TAG_FILE, FileAsk::Size);
        let question = |id| FileMessage { tag, is_answer: false, ask, cause: 0, id, space, padding: 0, value: 0 };
        let ended = |ended: Option<Ended>| {
            let Ended { told, end_bytes, is_again } = ended.expect("a round is under way");
            (told.iter().map(|(rank, message)| (rank.0, message.id)).collect::<Vec<_>>(), end_bytes, is_again)
        };
        assert!(rounds.answered(space, 0, 2).is_none());
        assert_eq!(
            [(1, 7), (2, 8), (1, 9)].map(|(rank, id)| rounds.ask(Rank(rank), question(id), 2)),
            [true, false, false]
        );
        assert_eq!(ended(rounds.answered(space, 100, 2)), (vec![], 0, false));
        assert_eq!(ended(rounds.answered(space, 50, 2)), (vec![(1, 7)], 100, true));
        assert_eq!(ended(rounds.answered(space, 20, 2)), (vec![], 0, false));
        let last = (vec![(2, 8), (1, 9)], 30, false);
        assert_eq!(ended(rounds.answered(space, 30, 2)), last, "a file may have been cut since");
        assert!(rounds.answered(space, 0, 2).is_none());
    }
}
