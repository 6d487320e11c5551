//! Active Messages of the client: requests, replies, and the threads that run their handlers.
//!
//! What arrives is put together by whoever drives the engine and waits in the [`Inbox`]. Handlers run only in client
//! threads that called in ([`Runtime::poll`], [`Runtime::wait_until`]), outside of every lock of the library.
//!
//! Source: GASNet-1 (specification 1.8), Active Messages.

mod caller;
mod flow;
mod handlers;
mod inbox;
mod lock;
mod run;
mod send;
mod wire;

pub use caller::is_in_handler;
pub use flow::{WINDOW_COST, WINDOW_REQUESTS};
pub use handlers::{BadEntry, CLIENT_FIRST, Entry, Handlers};
pub use inbox::{Inbox, PAYLOAD_BYTES_MAX, Payload, Waiting};
pub use lock::HandlerSafeLock;
pub use run::Token;
pub use send::{Destination, LONG_BYTES_MAX, Outgoing};
pub use wire::{ARGS_MAX, Args, Category, TAG_CREDIT, TAG_MESSAGE};

use crate::local::Undisturbed;
use flow::{Amount, Flow};
use inbox::Incoming;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vgasnet_conduit::Rank;
use wire::Message;

/// The Active Messages of a rank.
#[derive(Debug)]
pub struct Messages {
    handlers: Handlers,
    flow: Flow,
    inbox: Mutex<Inbox>,
    /// Messages in the inbox that are complete.
    pending: AtomicUsize,
    /// Handlers that have run, or begun to.
    runs: AtomicU64,
    next_id: AtomicU32,
}

/// What came of bytes that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Something that a waiting thread may wait for.
    News,
    /// Nothing to do yet.
    Noted,
    /// They make no sense.
    Malformed,
}

impl Messages {
    /// No handlers, nothing sent, among `ranks` ranks.
    pub fn new(ranks: u32) -> Messages {
        Messages {
            handlers: Handlers::default(),
            flow: Flow::new(ranks),
            inbox: Mutex::default(),
            pending: AtomicUsize::new(0),
            runs: AtomicU64::new(0),
            next_id: AtomicU32::new(0),
        }
    }

    /// The handler table.
    pub fn handlers(&self) -> &Handlers {
        &self.handlers
    }

    /// Takes what arrived from a rank.
    pub fn on_arrival(&self, from: Rank, bytes: &[u8]) -> Taken {
        let complete = match wire::decode(bytes) {
            Some(Message::First(head, payload)) => {
                if head.is_reply && !self.flow.give_back(from, Amount { requests: 1, cost: head.cost }) {
                    return Taken::Malformed;
                }
                self.inbox().add_first(from, head, payload)
            }
            Some(Message::Fragment { id, offset_bytes, bytes }) => {
                self.inbox().add_fragment(from, id, offset_bytes as usize, bytes)
            }
            Some(Message::Credit { requests, cost }) => {
                let was_taken = self.flow.give_back(from, Amount { requests, cost });
                return if was_taken { Taken::News } else { Taken::Malformed };
            }
            None => None,
        };
        match complete {
            Some(true) => {
                self.pending.fetch_add(1, Ordering::SeqCst);
                Taken::News
            }
            Some(false) => Taken::Noted,
            None => Taken::Malformed,
        }
    }

    /// Whether there is a handler to run.
    pub fn has_pending(&self) -> bool {
        self.pending.load(Ordering::SeqCst) > 0
    }

    /// How many handlers have run, or begun to; it wraps.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    /// How often credit for requests has come back.
    pub fn credit_returns(&self) -> u64 {
        self.flow.returns()
    }

    /// What is complete and waits for its handler to run.
    pub fn waiting(&self) -> Waiting {
        self.inbox().waiting()
    }

    fn take(&self) -> Option<Incoming> {
        let incoming = self.inbox().take()?;
        self.pending.fetch_sub(1, Ordering::SeqCst);
        Some(incoming)
    }

    fn inbox(&self) -> Undisturbed<MutexGuard<'_, Inbox>> {
        Undisturbed::take(|| self.inbox.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}
