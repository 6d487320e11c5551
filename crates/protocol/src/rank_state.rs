//! Progress of a rank through its job.

use crate::messages;
use crate::wire::{self, Layout};

messages! {
    /// The state of a rank, as reported to others.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RankState {
        /// It has not called init, and may never do so.
        0 => Fresh,
        /// It has joined the job.
        1 => Initialised,
        /// It has its pool and table.
        2 => Attached,
        /// It called exit with this status.
        3 => Exiting(status: i32),
        /// Its network has failed. It ends soon unless ended first.
        4 => Broken,
    }
}

impl RankState {
    /// The state as one word; 0 for `Fresh`.
    pub fn encode(self) -> u64 {
        const { assert!(RankState::BYTES_MAX <= size_of::<u64>(), "a state is one word") }
        let mut word = [0; size_of::<u64>()];
        let bytes = wire::encode(&self);
        word[..bytes.len()].copy_from_slice(&bytes);
        debug_assert_eq!(RankState::decode(u64::from_le_bytes(word)), self, "a word is read as it was written");
        u64::from_le_bytes(word)
    }

    /// The state of a word. An unknown word counts as `Fresh`: a launcher must survive anything a rank writes.
    pub fn decode(word: u64) -> RankState {
        RankState::read(&mut &word.to_le_bytes()[..]).unwrap_or(RankState::Fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_survives_its_encoding() {
        use RankState::{Attached, Broken, Exiting, Fresh, Initialised};
        for state in [Fresh, Initialised, Attached, Exiting(0), Exiting(-1), Broken] {
            assert_eq!(RankState::decode(state.encode()), state);
        }
        assert_eq!(RankState::decode(u64::MAX), Fresh);
    }
}
