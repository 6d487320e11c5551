//! What a rank notes of the transfers and messages of its collectives.

use super::message::Source;
use super::plan::Transfer;
use crate::Rank;
use crate::barrier::BarrierMessage;

/// One transfer of the round under way.
#[derive(Debug)]
pub(super) struct TransferSide {
    pub transfer: Transfer,
    pub state: TransferState,
    /// Of a receive: bytes that have come, and perhaps are not where they belong yet.
    pub arrived_bytes: usize,
    /// Bytes that are sent, or read, or are where they belong.
    pub moved_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferState {
    /// A large send that the receiver has not been told of.
    Announcing,
    /// A send whose receiver is not ready, or reads.
    AwaitingReady,
    /// A large receive whose sender has not said where its bytes lie.
    AwaitingAnnouncement,
    /// A large receive whose bytes this rank reads.
    Reading,
    /// Bytes may be sent or arrive.
    Moving,
    /// All bytes are sent, or are where they belong.
    Through,
}

/// A message that came before its round.
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

/// A message of the barrier of a team that this rank does not know yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct EarlyBarrier {
    /// The sender, as the job counts ranks.
    pub sender: Rank,
    /// The sender as it says that the team counts it.
    pub from: u32,
    pub message: BarrierMessage,
}

/// The place of a transfer with a peer that is in this state.
pub(super) fn find(sides: &[TransferSide], peer: u32, tag: u32, state: TransferState) -> Option<usize> {
    let is_it = |side: &TransferSide| side.transfer.peer == peer && side.transfer.tag == tag && side.state == state;
    sides.iter().position(is_it)
}
