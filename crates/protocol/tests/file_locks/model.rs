//! The expected answers of homes, derived from all earlier asks.

use vgasnet_protocol::file_locks::{Action, AskName, AskPart, LockMessage, LockRange};
use vgasnet_protocol::{Rank, Space};

#[derive(Clone, Hash)]
struct Ask {
    from: Rank,
    part: AskPart,
    ranges: Vec<LockRange>,
    is_granted: bool,
}

impl Ask {
    fn conflicts_with(&self, other: &Ask) -> bool {
        let same = (self.part.file, self.part.purpose) == (other.part.file, other.part.purpose);
        same && self.ranges.iter().any(|range| other.ranges.iter().any(|of_other| range.conflicts_with(of_other)))
    }

    fn is(&self, from: Rank, name: AskName) -> bool {
        self.from == from && self.part.name == name
    }
}

/// All homes of a job: for each the asks in the order of their completion.
#[derive(Clone, Hash)]
pub struct Model {
    asks: Vec<Vec<Ask>>,
    incomplete: Vec<Vec<Ask>>,
}

impl Model {
    pub fn new(ranks: u32) -> Model {
        let none = vec![Vec::new(); ranks as usize];
        Model { asks: none.clone(), incomplete: none }
    }

    /// All ranks have closed the file.
    pub fn forget_file(&mut self, file: Space) {
        self.asks.iter_mut().for_each(|asks| asks.retain(|ask| ask.part.file != file));
    }

    /// A rank reacted to a message with these actions.
    pub fn on_message(&mut self, from: Rank, to: Rank, bytes: &[u8], actions: &[Action]) {
        let (message, ranges) = LockMessage::decode(bytes).expect("ranks send such");
        let mut expected = match message {
            LockMessage::Granted(_) | LockMessage::Refused(_) => return,
            LockMessage::Ask(part) => self.on_ask(from, to, part, ranges),
            LockMessage::Unlock(name) => self.on_unlock(from, to, name),
        };
        let answer = |action: &Action| match action {
            Action::Send { to, bytes } => (*to, LockMessage::decode(bytes).expect("ranks send such").0),
            Action::Granted(id) => panic!("a home has granted {id:?} to its own rank"),
        };
        let mut answers: Vec<_> = actions.iter().map(answer).collect();
        answers.sort_unstable();
        expected.sort_unstable();
        assert_eq!(answers, expected, "{message:?} at {to:?}");
    }

    fn on_ask(&mut self, from: Rank, to: Rank, part: AskPart, ranges: Vec<LockRange>) -> Vec<(Rank, LockMessage)> {
        let incomplete = &mut self.incomplete[to.index()];
        let at = incomplete.iter().position(|ask| ask.is(from, part.name)).unwrap_or_else(|| {
            incomplete.push(Ask { from, part, ranges: Vec::new(), is_granted: false });
            incomplete.len() - 1
        });
        incomplete[at].ranges.extend(ranges);
        if incomplete[at].ranges.len() < part.ranges as usize {
            return Vec::new();
        }
        let mut ask = incomplete.swap_remove(at);
        let asks = &mut self.asks[to.index()];
        let name = part.name;
        ask.is_granted = !asks.iter().any(|before| before.conflicts_with(&ask));
        let answer = if ask.is_granted { LockMessage::Granted(name) } else { LockMessage::Refused(name) };
        let answers = if name.waits && !ask.is_granted { Vec::new() } else { vec![(from, answer)] };
        if ask.is_granted || name.waits {
            asks.push(ask);
        }
        answers
    }

    fn on_unlock(&mut self, from: Rank, to: Rank, name: AskName) -> Vec<(Rank, LockMessage)> {
        let asks = &mut self.asks[to.index()];
        asks.retain(|ask| !ask.is(from, name));
        let mut answers = Vec::new();
        for at in 0..asks.len() {
            let (before, later) = asks.split_at_mut(at);
            let ask = &mut later[0];
            if !ask.is_granted && !before.iter().any(|before| before.conflicts_with(ask)) {
                ask.is_granted = true;
                answers.push((ask.from, LockMessage::Granted(ask.part.name)));
            }
        }
        answers
    }
}
