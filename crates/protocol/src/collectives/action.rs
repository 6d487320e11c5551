//! The driver's share of a collective: actions, and the data they carry.

use super::message::{CollectiveBody, CollectiveKey, CollectiveMessage, Source};
use super::plan::{BufferOffset, LocalStep, Transfer};
use alloc::vec::Vec;

/// Minimum bytes of an announced transfer.
pub const ANNOUNCED_BYTES_MIN: usize = 64 << 10;

/// An action for the driver.
#[derive(Debug)]
pub enum Action<T> {
    /// Send a message without payload.
    Tell {
        /// The receiver's rank in the job.
        to: u32,
        /// The message.
        message: CollectiveMessage,
    },
    /// Send a message with its payload, then call [`Machine::on_sent`].
    Send(Sending),
    /// Call [`Machine::on_announcing`], then send [`Announcing::message`] with the location of these bytes.
    Announce(Announcing),
    /// Read these bytes, then call [`Machine::on_read`].
    Read(Reading),
    /// Execute these steps in order, then call [`Machine::on_done`].
    Do {
        /// The collective, for [`Machine::client`].
        operation: usize,
        /// The steps; at least one.
        local_steps: Vec<LocalStep>,
    },
    /// The collective is complete on this rank. Call [`Machine::on_finished`], then tell the client.
    Finish {
        /// Its team.
        team: u64,
        /// The driver's data of the collective.
        client: T,
    },
}

/// A message of a collective to be sent, with its payload.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// The collective, for [`Machine::client`].
    pub operation: usize,
    /// The index among the sends of its round.
    pub(super) transfer: usize,
    /// The receiver's rank in the job.
    pub to: u32,
    /// The message.
    pub message: CollectiveMessage,
    /// Location of the payload.
    pub place: BufferOffset,
    /// Length of the payload; a signal has none.
    pub len_bytes: usize,
}

/// A message without a matching collective on this rank: the ranks have started different collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit;

/// An announcement to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Announcing {
    /// The collective, for [`Machine::client`].
    pub operation: usize,
    /// The index among the sends of its round.
    pub(super) transfer: usize,
    /// The receiver's rank in the job.
    pub to: u32,
    /// Location of the bytes.
    pub place: BufferOffset,
    /// Number of bytes.
    pub len_bytes: usize,
    pub(super) key: CollectiveKey,
    pub(super) from: u32,
    pub(super) tag: u32,
}

impl Announcing {
    /// The message announcing the bytes at `source`.
    pub fn message(&self, source: Source) -> CollectiveMessage {
        let Announcing { key, from, tag, .. } = *self;
        CollectiveMessage { key, from, body: CollectiveBody::Announce { tag, source } }
    }
}

/// Bytes of a peer to be read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The collective, for [`Machine::client`].
    pub operation: usize,
    /// The index among the receives of its round.
    pub(super) transfer: usize,
    /// The peer's rank in the job.
    pub from: u32,
    /// Location of all bytes of the transfer, as announced.
    pub source: Source,
    /// Offset of the first byte to read.
    pub offset_bytes: usize,
    /// Destination of the bytes.
    pub place: BufferOffset,
    /// Number of bytes; at most [`READ_BYTES_MAX`].
    pub len_bytes: usize,
}

/// Whether a transfer is announced.
pub(super) fn is_announced(transfer: &Transfer) -> bool {
    transfer.len_bytes >= ANNOUNCED_BYTES_MIN
}
