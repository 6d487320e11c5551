//! Where GASNet's handlers leave what they are given.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vgasnet_conduit::Rank;

/// Messages that may wait here before we stop to ask GASNet for more and to send, so that a peer that sends faster than
/// this rank takes in is held up by GASNet. What one call of GASNet brings comes on top.
const HELD_MAX: usize = 4096;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// For the client.
    Client = 0,
    /// Part of an exchange.
    Exchange = 1,
    /// A peer begins to copy from or to this rank's pool, and needs polls.
    Guest = 2,
    /// It is through.
    GuestLeft = 3,
}

/// What has arrived and nobody has taken.
pub(crate) struct Inbox {
    queues: Mutex<Queues>,
    /// How many there are for the client.
    held: AtomicUsize,
    /// Peers that are copying. Word of an end may come before that of its beginning.
    guests: AtomicI64,
}

struct Queues {
    client: VecDeque<(Rank, Vec<u8>)>,
    exchange: VecDeque<Vec<u8>>,
}

impl Inbox {
    pub(crate) const fn new() -> Inbox {
        let queues = Queues { client: VecDeque::new(), exchange: VecDeque::new() };
        Inbox { queues: Mutex::new(queues), held: AtomicUsize::new(0), guests: AtomicI64::new(0) }
    }

    /// Nobody calls GASNet while it holds this, so a handler never waits for long.
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs in GASNet's handlers: it must not panic, nor call GASNet.
    pub(crate) fn deliver(&self, from: Rank, kind: u32, bytes: &[u8]) {
        const CLIENT: u32 = Kind::Client as u32;
        const EXCHANGE: u32 = Kind::Exchange as u32;
        const GUEST: u32 = Kind::Guest as u32;
        match kind {
            CLIENT => {
                self.queues().client.push_back((from, bytes.to_vec()));
                self.held.fetch_add(1, Ordering::Release);
            }
            EXCHANGE => self.queues().exchange.push_back(bytes.to_vec()),
            GUEST => drop(self.guests.fetch_add(1, Ordering::Relaxed)),
            _ => drop(self.guests.fetch_sub(1, Ordering::Relaxed)),
        }
    }

    /// The oldest messages for the client, at most so many.
    pub(crate) fn take(&self, most: usize) -> VecDeque<(Rank, Vec<u8>)> {
        if self.is_empty() {
            return VecDeque::new();
        }
        let mut queues = self.queues();
        let count = most.min(queues.client.len());
        let rest = queues.client.split_off(count);
        let taken = std::mem::replace(&mut queues.client, rest);
        self.held.fetch_sub(taken.len(), Ordering::Release);
        taken
    }

    /// The parts of exchanges that have come.
    pub(crate) fn take_exchange(&self) -> VecDeque<Vec<u8>> {
        std::mem::take(&mut self.queues().exchange)
    }

    /// Whether there is nothing for the client.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.load(Ordering::Acquire) == 0
    }

    /// Whether it takes more.
    pub(crate) fn has_room(&self) -> bool {
        self.held.load(Ordering::Acquire) < HELD_MAX
    }

    /// Whether a peer needs this rank to poll.
    pub(crate) fn has_guests(&self) -> bool {
        self.guests.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_in_order_and_by_kind() {
        let inbox = Inbox::new();
        for n in 0..5_u8 {
            inbox.deliver(Rank(1), Kind::Client as u32, &[n]);
        }
        inbox.deliver(Rank(2), Kind::Exchange as u32, b"part");
        let first: Vec<_> = inbox.take(3).into_iter().map(|(_, bytes)| bytes[0]).collect();
        let rest: Vec<_> = inbox.take(3).into_iter().map(|(_, bytes)| bytes[0]).collect();
        assert_eq!((first, rest), (vec![0, 1, 2], vec![3, 4]));
        assert_eq!(inbox.take_exchange(), [b"part".to_vec()]);
    }

    #[test]
    fn a_flood_is_stopped() {
        let inbox = Inbox::new();
        for _ in 0..HELD_MAX {
            assert!(inbox.has_room());
            inbox.deliver(Rank(0), Kind::Client as u32, b"");
        }
        assert!(!inbox.has_room());
        inbox.take(1);
        assert!(inbox.has_room());
    }

    #[test]
    fn a_guest_may_leave_before_it_came() {
        let inbox = Inbox::new();
        inbox.deliver(Rank(0), Kind::GuestLeft as u32, b"");
        assert!(!inbox.has_guests());
        inbox.deliver(Rank(1), Kind::Guest as u32, b"");
        inbox.deliver(Rank(0), Kind::Guest as u32, b"");
        assert!(inbox.has_guests());
        inbox.deliver(Rank(1), Kind::GuestLeft as u32, b"");
        assert!(!inbox.has_guests());
    }
}
