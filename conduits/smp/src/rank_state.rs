//! How far a rank has come in its job.

/// The state of a rank, as it tells others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankState {
    /// It has not called init, and perhaps never will.
    Fresh,
    /// It is a rank of the job.
    Initialised,
    /// It has its pool and table.
    Attached,
    /// It called exit with this status.
    Exiting(i32),
}

impl RankState {
    /// The state as one word.
    pub fn encode(self) -> u64 {
        let (state, status) = match self {
            RankState::Fresh => (0, 0),
            RankState::Initialised => (1, 0),
            RankState::Attached => (2, 0),
            RankState::Exiting(status) => (3, status),
        };
        (state << 32) | u64::from(status as u32)
    }

    /// The state of a word. An unknown word counts as `Fresh`: a launcher must survive anything that a rank writes.
    pub fn decode(word: u64) -> Self {
        match word >> 32 {
            1 => RankState::Initialised,
            2 => RankState::Attached,
            3 => RankState::Exiting(word as u32 as i32),
            _ => RankState::Fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_survives_its_encoding() {
        use RankState::{Attached, Exiting, Fresh, Initialised};
        for state in [Fresh, Initialised, Attached, Exiting(0), Exiting(-1)] {
            assert_eq!(RankState::decode(state.encode()), state);
        }
        assert_eq!(RankState::decode(u64::MAX), Fresh);
    }
}
