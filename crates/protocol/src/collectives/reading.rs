//! Large transfers: the sender announces the location of its bytes, and the receiver reads them itself.
//!
//! ```text
//!   a send:     Announcing ──announced──▶ AwaitingReady ──Taken came──▶ Through
//!                                                       ──Ready came──▶ Moving, as a small one
//!   a receive:  AwaitingAnnouncement ──Announce came──▶ Reading ──all bytes read, says Taken──▶ Through
//!                                                               ──cannot read, says Ready──▶ Moving, as a small one
//! ```
//!
//! A driver unable to read says so, and the bytes come in messages. Both sides derive from the length whether a
//! transfer is large.

use super::action::{ANNOUNCED_BYTES_MIN, Action, Announcing, Misfit, Reading, is_announced};
use super::in_flight::{Note, NoteKind, Operation, TransferState, find};
use super::machine::{Client, Machine};
use super::message::{CollectiveBody, CollectiveKey, Source};
use super::plan::Transfer;

/// Maximum bytes a receiver reads before it looks for other work.
pub const READ_BYTES_MAX: usize = 1 << 20;

impl<T: Client> Machine<T> {
    /// An [`Action::Announce`] is about to be carried out with the credit for it. Answers may arrive from now on.
    pub fn on_announcing(&mut self, announcing: &Announcing) {
        let send = &mut self.operations[announcing.operation].sends[announcing.transfer];
        debug_assert_eq!(send.state, TransferState::Announcing, "a transfer is announced once");
        send.state = TransferState::AwaitingReady;
    }

    /// An [`Action::Read`] is done, or the bytes cannot be read here.
    pub fn on_read(&mut self, reading: Reading, is_read: bool) {
        let Reading { operation, transfer, source, len_bytes, .. } = reading;
        let receive = &mut self.operations[operation].receives[transfer];
        assert_eq!(receive.state, TransferState::Reading, "bytes are read once they are announced");
        if !is_read {
            receive.moved_bytes = 0;
            return self.ask_for_bytes(operation, transfer);
        }
        receive.moved_bytes += len_bytes;
        assert!(receive.moved_bytes <= receive.transfer.len_bytes, "each byte of a transfer is read once");
        if receive.moved_bytes < receive.transfer.len_bytes {
            return self.read_on(operation, transfer, source);
        }
        receive.state = TransferState::Through;
        let tag = receive.transfer.tag;
        self.tell_sender(operation, transfer, CollectiveBody::Taken { tag });
        self.on_through(operation);
    }

    pub(super) fn announce(&mut self, at: usize, transfer: usize) {
        let operation = &mut self.operations[at];
        operation.sends[transfer].state = TransferState::Announcing;
        let Transfer { peer, tag, place, len_bytes } = operation.sends[transfer].transfer;
        debug_assert!(len_bytes >= ANNOUNCED_BYTES_MIN, "only large transfers are announced");
        let (key, from) = (operation.key, operation.plan.shape.me);
        let to = self.teams[&key.team].members[peer as usize];
        let announcing = Announcing { operation: at, transfer, to, place, len_bytes, key, from, tag };
        self.actions.push_back(Action::Announce(announcing));
    }

    /// The sender of a receive has announced its bytes.
    pub(super) fn on_announced(&mut self, at: usize, transfer: usize, source: Source) {
        let state = self.operations[at].receives[transfer].state;
        debug_assert_eq!(state, TransferState::AwaitingAnnouncement, "a transfer is announced once");
        if source == Source::Unreadable {
            return self.ask_for_bytes(at, transfer);
        }
        self.operations[at].receives[transfer].state = TransferState::Reading;
        self.read_on(at, transfer, source);
    }

    /// The receiver of a send has read all bytes.
    pub(super) fn on_taken(&mut self, key: CollectiveKey, from: u32, tag: u32) -> Result<(), Misfit> {
        let at = *self.by_key.get(&key).ok_or(Misfit)?;
        let sends = &mut self.operations[at].sends;
        let transfer = find(sends, from, tag, TransferState::AwaitingReady).ok_or(Misfit)?;
        if !is_announced(&sends[transfer].transfer) {
            return Err(Misfit);
        }
        debug_assert_eq!(sends[transfer].moved_bytes, 0, "the bytes of a transfer are read, or sent");
        sends[transfer].state = TransferState::Through;
        self.on_through(at);
        Ok(())
    }

    fn read_on(&mut self, at: usize, transfer: usize, source: Source) {
        let operation = &self.operations[at];
        let receive = &operation.receives[transfer];
        let Transfer { peer, place, len_bytes, .. } = receive.transfer;
        let offset_bytes = receive.moved_bytes;
        debug_assert!(offset_bytes < len_bytes, "bytes are left to be read");
        self.actions.push_back(Action::Read(Reading {
            operation: at,
            transfer,
            from: self.teams[&operation.key.team].members[peer as usize],
            source,
            offset_bytes,
            place: place.after(offset_bytes),
            len_bytes: READ_BYTES_MAX.min(len_bytes - offset_bytes),
        }));
    }

    /// Requests the bytes of a receive in messages.
    pub(super) fn ask_for_bytes(&mut self, at: usize, transfer: usize) {
        let receive = &mut self.operations[at].receives[transfer];
        debug_assert_eq!(receive.moved_bytes, 0, "all bytes of a transfer come in messages, or none");
        receive.state = TransferState::Moving;
        let tag = receive.transfer.tag;
        self.tell_sender(at, transfer, CollectiveBody::Ready { tag });
    }

    fn tell_sender(&mut self, at: usize, transfer: usize, body: CollectiveBody) {
        let operation = &self.operations[at];
        let message = operation.message(body);
        let to = self.teams[&operation.key.team].members[operation.receives[transfer].transfer.peer as usize];
        self.actions.push_back(Action::Tell { to, message });
    }
}

impl<T> Operation<T> {
    /// Removes an announcement from the notes.
    pub(super) fn take_announcement(&mut self, from: u32, tag: u32) -> Option<Source> {
        let is_it = |note: &Note| (note.from, note.tag) == (from, tag) && matches!(note.kind, NoteKind::Announced(_));
        let at = self.notes.iter().position(is_it)?;
        if let NoteKind::Announced(source) = self.notes.swap_remove(at).kind { Some(source) } else { None }
    }
}
