//! The inbox for messages from GASNet's handlers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vgasnet_conduit::Rank;

/// Maximum messages waiting before this rank stops polling GASNet and sending, so that GASNet throttles fast senders.
/// The messages of one call of GASNet may exceed it.
const HELD_MAX: usize = 4096;

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum MessageKind {
    /// For the client.
    Client = 0,
    /// Part of an exchange.
    Exchange = 1,
    /// A peer starts a remote transfer from or to this rank's pool, and needs polls.
    RemoteTransfer = 2,
    /// A remote transfer has ended.
    RemoteTransferEnd = 3,
}

/// Unconsumed messages.
pub(crate) struct Inbox {
    queues: Mutex<Queues>,
    /// Number of messages for the client.
    held: AtomicUsize,
    /// Remote transfers in flight. Temporarily negative if the end's message arrives before the start's.
    remote_transfers: AtomicI64,
}

struct Queues {
    client: VecDeque<(Rank, Vec<u8>)>,
    exchange: VecDeque<(Rank, Vec<u8>)>,
    /// The sender of a message of unknown kind.
    violation: Option<Rank>,
}

impl Inbox {
    pub(crate) const fn new() -> Inbox {
        let queues = Queues { client: VecDeque::new(), exchange: VecDeque::new(), violation: None };
        Inbox { queues: Mutex::new(queues), held: AtomicUsize::new(0), remote_transfers: AtomicI64::new(0) }
    }

    /// No thread calls GASNet while holding this, so a handler never waits for long.
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs in GASNet's handlers: it must neither panic nor call GASNet.
    pub(crate) fn deliver(&self, from: Rank, kind: u32, bytes: &[u8]) {
        const CLIENT: u32 = MessageKind::Client as u32;
        const EXCHANGE: u32 = MessageKind::Exchange as u32;
        const REMOTE_TRANSFER: u32 = MessageKind::RemoteTransfer as u32;
        const REMOTE_TRANSFER_END: u32 = MessageKind::RemoteTransferEnd as u32;
        match kind {
            CLIENT => {
                self.queues().client.push_back((from, bytes.to_vec()));
                self.held.fetch_add(1, Ordering::Release);
            }
            EXCHANGE => self.queues().exchange.push_back((from, bytes.to_vec())),
            REMOTE_TRANSFER => drop(self.remote_transfers.fetch_add(1, Ordering::Relaxed)),
            REMOTE_TRANSFER_END => drop(self.remote_transfers.fetch_sub(1, Ordering::Relaxed)),
            _ => {
                self.queues().violation.get_or_insert(from);
                // Makes the poller look.
                self.held.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// The oldest messages for the client, at most `most`.
    pub(crate) fn take(&self, most: usize) -> VecDeque<(Rank, Vec<u8>)> {
        if self.is_empty() {
            return VecDeque::new();
        }
        let mut queues = self.queues();
        let count = most.min(queues.client.len());
        let tail = queues.client.split_off(count);
        let taken = std::mem::replace(&mut queues.client, tail);
        self.held.fetch_sub(taken.len(), Ordering::Release);
        taken
    }

    /// The arrived parts of exchanges.
    pub(crate) fn take_exchange(&self) -> VecDeque<(Rank, Vec<u8>)> {
        std::mem::take(&mut self.queues().exchange)
    }

    /// The sender of a message of unknown kind, if any.
    pub(crate) fn sender_of_nonsense(&self) -> Option<Rank> {
        if self.is_empty() { None } else { self.queues().violation }
    }

    /// Whether there is nothing for the client.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.load(Ordering::Acquire) == 0
    }

    /// Whether it accepts more.
    pub(crate) fn has_room(&self) -> bool {
        self.held.load(Ordering::Acquire) < HELD_MAX
    }

    /// Whether a peer needs this rank to poll.
    pub(crate) fn has_remote_transfers(&self) -> bool {
        self.remote_transfers.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_in_order_and_by_kind() {
        let inbox = Inbox::new();
        for n in 0..5_u8 {
            inbox.deliver(Rank(1), MessageKind::Client as u32, &[n]);
        }
        inbox.deliver(Rank(2), MessageKind::Exchange as u32, b"part");
        let first: Vec<_> = inbox.take(3).into_iter().map(|(_, bytes)| bytes[0]).collect();
        let tail: Vec<_> = inbox.take(3).into_iter().map(|(_, bytes)| bytes[0]).collect();
        assert_eq!((first, tail), (vec![0, 1, 2], vec![3, 4]));
        assert_eq!(inbox.take_exchange(), [(Rank(2), b"part".to_vec())]);
        assert_eq!(inbox.sender_of_nonsense(), None);
        inbox.deliver(Rank(3), 4, b"");
        assert_eq!(inbox.sender_of_nonsense(), Some(Rank(3)));
    }

    #[test]
    fn a_flood_is_stopped() {
        let inbox = Inbox::new();
        for _ in 0..HELD_MAX {
            assert!(inbox.has_room());
            inbox.deliver(Rank(0), MessageKind::Client as u32, b"");
        }
        assert!(!inbox.has_room());
        inbox.take(1);
        assert!(inbox.has_room());
    }

    #[test]
    fn a_remote_transfer_may_end_before_it_begins() {
        let inbox = Inbox::new();
        inbox.deliver(Rank(0), MessageKind::RemoteTransferEnd as u32, b"");
        assert!(!inbox.has_remote_transfers());
        inbox.deliver(Rank(1), MessageKind::RemoteTransfer as u32, b"");
        inbox.deliver(Rank(0), MessageKind::RemoteTransfer as u32, b"");
        assert!(inbox.has_remote_transfers());
        inbox.deliver(Rank(1), MessageKind::RemoteTransferEnd as u32, b"");
        assert!(!inbox.has_remote_transfers());
    }
}
