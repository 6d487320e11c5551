//! A rank's bookkeeping of transfers and messages of its collectives.

use super::action::Action;
use super::message::{CollectiveBody, CollectiveKey, CollectiveMessage, Source};
use super::plan::{LocalStep, Plan, Transfer};
use crate::Rank;
use crate::barrier::BarrierMessage;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A collective in flight.
#[derive(Debug)]
pub(super) struct Operation<T> {
    pub(super) key: CollectiveKey,
    pub(super) plan: Plan,
    /// The next round.
    pub(super) round: u32,
    pub(super) sends: Vec<TransferSide>,
    pub(super) receives: Vec<TransferSide>,
    /// Unfinished transfers of this round.
    pub(super) left: usize,
    /// The steps to run when `left` reaches 0.
    pub(super) local_steps: Vec<LocalStep>,
    /// Messages for later rounds.
    pub(super) notes: Vec<Note>,
    pub(super) client: T,
}

/// One transfer of the current round.
#[derive(Debug)]
pub(super) struct TransferSide {
    pub transfer: Transfer,
    pub state: TransferState,
    /// Receive: bytes arrived, possibly not yet written to their destination.
    pub arrived_bytes: usize,
    /// Bytes sent, read, or written to their destination.
    pub moved_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferState {
    /// A large send not yet announced to the receiver.
    Announcing,
    /// A send whose receiver is not ready, or is reading.
    AwaitingReady,
    /// A large receive not yet announced by the sender.
    AwaitingAnnouncement,
    /// A large receive being read by this rank.
    Reading,
    /// Bytes may be sent or arrive.
    Moving,
    /// All bytes are sent, or written to their destination.
    Through,
}

/// A message that arrived before its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub from: u32,
    pub tag: u32,
    pub kind: NoteKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoteKind {
    Ready,
    Signal,
    Announced(Source),
}

/// A message of the barrier of a team this rank does not know yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyBarrier {
    /// The sender's rank in the job.
    pub sender: Rank,
    /// The sender's rank in the team, as it claims.
    pub from: u32,
    pub message: BarrierMessage,
}

/// The position of a transfer with a peer in this state.
pub(super) fn find(sides: &[TransferSide], peer: u32, tag: u32, state: TransferState) -> Option<usize> {
    let is_it = |side: &TransferSide| side.transfer.peer == peer && side.transfer.tag == tag && side.state == state;
    sides.iter().position(is_it)
}

impl<T> Operation<T> {
    pub(super) fn message(&self, body: CollectiveBody) -> CollectiveMessage {
        CollectiveMessage { key: self.key, from: self.plan.shape.me, body }
    }

    /// Removes a note. Returns whether it was kept.
    pub(super) fn take_note(&mut self, note: Note) -> bool {
        let at = self.notes.iter().position(|noted| *noted == note);
        at.map(|at| self.notes.swap_remove(at)).is_some()
    }
}

/// Queues messages of a team's barrier.
pub(super) fn tell_barrier<T>(
    team: u64,
    me: u32,
    members: &[u32],
    actions: &mut VecDeque<Action<T>>,
) -> impl FnMut(Rank, BarrierMessage) {
    move |to, message| {
        let message = CollectiveMessage {
            key: CollectiveKey { team, number: 0 },
            from: me,
            body: CollectiveBody::Barrier(message),
        };
        actions.push_back(Action::Tell { to: members[to.index()], message });
    }
}
