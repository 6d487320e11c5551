//! The Active Messages that have arrived, and the state of sending.

use super::flow::{Amount, Flow};
use super::handler_queue::{Backlog, HandlerQueue, Incoming};
use super::handlers::{Handlers, LIBRARY};
use crate::engine::{Received, Receiver};
use crate::sys::Signalproof;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use vgasnet_conduit::Conduit;
use vgasnet_protocol::Rank;
use vgasnet_protocol::active_message::{self, AmMessage, Args, Category, Credit, Head};

/// The library's own handler: gets the sender, the arguments, the payload and its length. It sends nothing.
pub(super) type LibraryHandler = Box<dyn Fn(Rank, &Args, *mut c_void, usize) + Send + Sync>;

/// The Active Messages that a rank has received, with their handlers and flow control.
pub struct Messages {
    handlers: Handlers,
    /// The handler of messages with the index [`super::LIBRARY`].
    library: OnceLock<LibraryHandler>,
    pub(super) flow: Flow,
    queue: Mutex<HandlerQueue>,
    /// Messages in the queue that are complete.
    pending: AtomicUsize,
    /// Counts the starts and the ends of handlers.
    pub(super) runs: AtomicU64,
    next_id: AtomicU32,
}

impl Messages {
    /// No handlers, nothing sent, among the ranks of the job.
    pub fn new(conduit: &dyn Conduit) -> Messages {
        Messages {
            handlers: Handlers::default(),
            library: OnceLock::new(),
            flow: Flow::new(conduit.ranks()),
            queue: Mutex::default(),
            pending: AtomicUsize::new(0),
            runs: AtomicU64::new(0),
            next_id: AtomicU32::new(0),
        }
    }

    /// The handler table.
    pub fn handlers(&self) -> &Handlers {
        &self.handlers
    }

    /// Sets the library's own handler. Called once.
    pub(crate) fn set_library_handler(&self, handler: LibraryHandler) {
        assert!(self.library.set(handler).is_ok(), "the library has one handler");
    }

    pub(super) fn library_handler(&self) -> Option<&LibraryHandler> {
        self.library.get()
    }

    /// Whether there is a handler to run.
    pub fn has_pending(&self) -> bool {
        self.pending.load(Ordering::SeqCst) > 0
    }

    /// Counts the starts and the ends of handlers; it wraps.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    /// How often credit for requests has come back.
    pub(crate) fn credit_returns(&self) -> u64 {
        self.flow.returns()
    }

    /// The messages that are complete and wait for their handlers.
    pub fn backlog(&self) -> Backlog {
        self.queue().backlog()
    }

    pub(super) fn take(&self) -> Option<Incoming> {
        let incoming = self.queue().take()?;
        self.pending.fetch_sub(1, Ordering::SeqCst);
        Some(incoming)
    }

    pub(super) fn queue(&self) -> Signalproof<MutexGuard<'_, HandlerQueue>> {
        Signalproof::lock(&self.queue)
    }

    pub(super) fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

impl Receiver for Messages {
    fn on_message(&self, from: Rank, bytes: &[u8]) -> Result<Received, &'static str> {
        let complete = match active_message::decode(bytes).ok_or("an Active Message that is none")? {
            AmMessage::First(head, args, payload) => {
                check_head(&head)?;
                if head.is_reply && !self.flow.give_back(from, Amount { requests: 1, cost: head.cost }) {
                    return Err("a reply to a request that was not sent");
                }
                self.queue().add_first(from, head, args, payload)
            }
            AmMessage::Fragment(head, bytes) => {
                self.queue().add_fragment(from, head.id, head.offset_bytes as usize, bytes)
            }
            AmMessage::Credit(Credit { requests, cost, .. }) => {
                let was_taken = self.flow.give_back(from, Amount { requests, cost });
                return was_taken.then_some(Received::Event).ok_or("credit for requests that were not sent");
            }
        };
        if !complete.ok_or("an Active Message whose parts do not fit each other")? {
            return Ok(Received::Noted);
        }
        self.pending.fetch_add(1, Ordering::SeqCst);
        Ok(Received::Event)
    }
}

/// Checks what needs no look at the segment: that is known when the handler runs.
fn check_head(head: &Head) -> Result<(), &'static str> {
    let is_of_library = head.handler == LIBRARY;
    match head.category {
        Category::Short if head.payload_bytes > 0 || head.is_placed => Err("a Short message with a payload"),
        Category::Medium if head.is_placed => Err("a Medium message with a payload that is in the segment"),
        Category::Long if is_of_library => Err("a message of a collective with a payload in the segment"),
        _ if is_of_library && head.is_reply => Err("a reply to the library itself"),
        _ => Ok(()),
    }
}
