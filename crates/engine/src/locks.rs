//! Byte-range locks of shared files: carries their state machine's messages between ranks.

use super::{Driver, Engine};
use std::collections::VecDeque;
use vgasnet_protocol::file_locks::{Action, FileLocks, LockId, LockRequest};
use vgasnet_protocol::{Rank, Violation};
use vgasnet_settings::UserError;

impl Engine {
    /// This rank's part in the file locks.
    pub fn locks(&self) -> &FileLocks {
        &self.locks
    }

    /// Requests a lock.
    pub fn lock(&mut self, request: LockRequest<'_>) -> LockId {
        let mut actions = Vec::new();
        let id = self.locks.lock(request, &mut actions);
        self.act_on_locks(actions);
        id
    }

    /// Whether a lock is granted.
    pub fn is_locked(&self, id: LockId) -> bool {
        self.locks.is_granted(id)
    }

    /// Releases a granted lock.
    pub fn unlock(&mut self, id: LockId) {
        let mut actions = Vec::new();
        self.locks.unlock(id, &mut actions);
        self.act_on_locks(actions);
    }

    /// Handles a message about locks.
    pub(super) fn on_lock_message(&mut self, from: Rank, bytes: &[u8]) -> Result<(), Violation> {
        let mut actions = Vec::new();
        self.locks.on_message(from, bytes, &mut actions)?;
        self.act_on_locks(actions);
        Ok(())
    }

    fn act_on_locks(&mut self, actions: Vec<Action>) {
        let mut actions: VecDeque<Action> = actions.into();
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Send { to, bytes } if to == self.space.rank => {
                    let mut more = Vec::new();
                    if let Err(violation) = self.locks.on_message(to, &bytes, &mut more) {
                        self.status.break_by(UserError::new(violation.to_string()));
                        return;
                    }
                    actions.extend(more);
                }
                Action::Send { to, bytes } => self.outbox.send(to, &bytes),
                Action::Granted(_) => self.status.note_event(),
            }
        }
    }
}

impl Driver {
    /// Requests a lock, and waits until it is granted.
    pub fn lock_bytes(&self, request: LockRequest<'_>) -> LockId {
        let id = self.engine().lock(request);
        self.step();
        self.wait_until(&|| self.engine().is_locked(id));
        id
    }

    /// Releases a lock.
    pub fn unlock_bytes(&self, id: LockId) {
        self.engine().unlock(id);
        self.step();
    }
}
