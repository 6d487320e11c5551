//! Byte-range locks of shared files: this rank's part, with its messages to itself delivered.

use std::collections::VecDeque;
use vgasnet_protocol::file_locks::{Action, FileLocks, LockId, LockRequest};
use vgasnet_protocol::{Rank, Space, Violation};

/// This rank's part in the file locks. [`ByteLocks::next_action`] is to be called after each change.
#[derive(Debug)]
pub struct ByteLocks {
    rank: Rank,
    locks: FileLocks,
    actions: VecDeque<Action>,
}

impl ByteLocks {
    /// A rank's part in a job of `ranks`, with messages of at most `message_bytes_max`.
    pub fn new(rank: Rank, ranks: u32, message_bytes_max: usize) -> ByteLocks {
        ByteLocks { rank, locks: FileLocks::new(ranks, message_bytes_max), actions: VecDeque::new() }
    }

    /// The state machine.
    pub fn machine(&self) -> &FileLocks {
        &self.locks
    }

    /// Requests a lock.
    pub fn lock(&mut self, request: LockRequest<'_>) -> LockId {
        self.change(|locks, actions| locks.lock(request, actions))
    }

    /// Releases a granted lock.
    pub fn unlock(&mut self, id: LockId) {
        self.change(|locks, actions| locks.unlock(id, actions));
    }

    /// Handles a message.
    ///
    /// # Errors
    /// The message breaks the protocol.
    pub fn on_message(&mut self, from: Rank, bytes: &[u8]) -> Result<(), Violation> {
        self.change(|locks, actions| locks.on_message(from, bytes, actions))
    }

    /// Forgets a file, which must have no locks.
    ///
    /// # Errors
    /// It has some.
    pub fn forget_file(&mut self, file: Space) -> Result<(), Violation> {
        self.locks.forget_file(file)
    }

    /// The next message to another rank, or granted lock.
    ///
    /// # Errors
    /// A message of this rank to itself breaks the protocol.
    pub fn next_action(&mut self) -> Result<Option<Action>, Violation> {
        while let Some(action) = self.actions.pop_front() {
            match action {
                Action::Send { to, bytes } if to == self.rank => self.on_message(to, &bytes)?,
                action => return Ok(Some(action)),
            }
        }
        Ok(None)
    }

    fn change<R>(&mut self, change: impl FnOnce(&mut FileLocks, &mut Vec<Action>) -> R) -> R {
        let mut actions = Vec::new();
        let result = change(&mut self.locks, &mut actions);
        self.actions.extend(actions);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_protocol::Stripes;
    use vgasnet_protocol::file_locks::{LockMode, LockPurpose, LockRange};

    #[test]
    fn a_home_locks_its_own_bytes_without_a_message() {
        let (rank, file) = (Rank(0), Space::of_file(3));
        let stripes = Stripes { homes: [rank].into(), pages: 1 };
        let mut locks = ByteLocks::new(rank, 1, 4096);
        let request = || LockRequest {
            file,
            purpose: LockPurpose::Program,
            stripes: &stripes,
            page_bytes: 4096,
            ranges: &[LockRange { start: 0, end: 10, mode: LockMode::Exclusive }],
        };
        let (first, second) = (locks.lock(request()), locks.lock(request()));
        assert_eq!(locks.next_action(), Ok(Some(Action::Granted(first))));
        assert_eq!(locks.next_action(), Ok(None), "the other one has to wait");
        locks.unlock(first);
        assert_eq!(locks.next_action(), Ok(Some(Action::Granted(second))));
        assert!(locks.machine().is_granted(second) && !locks.machine().is_granted(first));
    }
}
