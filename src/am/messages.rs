//! The arrived Active Messages, and the state of sending.

use super::flow::{Amount, Flow};
use super::handler_queue::{Backlog, HandlerQueue, Incoming};
use super::handlers::{Handlers, LIBRARY};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use vgasnet_conduit::Conduit;
use vgasnet_engine::{Received, Receiver};
use vgasnet_protocol::Rank;
use vgasnet_protocol::active_message::{self, AmMessage, Args, Category, Credit, Head};
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::Signalproof;

/// The library's own handler: gets the sender, the arguments, the payload and its length. It sends nothing.
pub(super) type LibraryHandler = Box<dyn Fn(Rank, &Args, *mut c_void, usize) + Send + Sync>;

/// The Active Messages received by a rank, with their handlers and flow control.
pub struct Messages {
    handlers: Arc<Handlers>,
    /// The handler of messages with the index [`super::LIBRARY`].
    library: OnceLock<LibraryHandler>,
    pub(super) flow: Flow,
    queue: Mutex<HandlerQueue>,
    /// Complete messages in the queue; changed under its lock.
    pending: AtomicUsize,
    /// Number of handlers that have ended.
    pub(super) runs: AtomicU64,
    /// The client's handlers no longer run.
    have_ended: AtomicBool,
    next_id: AtomicU32,
}

impl Messages {
    /// Nothing sent yet, among the ranks of the job, for these handlers.
    pub fn new(conduit: &dyn Conduit, handlers: Arc<Handlers>) -> Messages {
        Messages::among(conduit.ranks(), handlers)
    }

    fn among(ranks: u32, handlers: Arc<Handlers>) -> Messages {
        Messages {
            handlers,
            library: OnceLock::new(),
            flow: Flow::new(ranks),
            queue: Mutex::default(),
            pending: AtomicUsize::new(0),
            runs: AtomicU64::new(0),
            have_ended: AtomicBool::new(false),
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

    /// Number of handlers that have ended, wrapping.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    /// From now on messages for the client's handlers count as handled on arrival.
    pub fn end_handlers(&self) {
        self.have_ended.store(true, Ordering::SeqCst);
    }

    /// Whether the client's handlers no longer run.
    pub(super) fn have_ended(&self) -> bool {
        self.have_ended.load(Ordering::SeqCst)
    }

    /// Number of returns of credit for requests.
    pub(crate) fn credit_returns(&self) -> u64 {
        self.flow.returns()
    }

    /// Complete messages waiting for their handlers.
    pub fn backlog(&self) -> Backlog {
        self.queue().backlog()
    }

    pub(super) fn take(&self) -> Option<Incoming> {
        let mut queue = self.queue();
        let incoming = queue.take();
        self.note_pending(&queue);
        incoming
    }

    /// The caller notifies after adding a message.
    fn note_pending(&self, queue: &HandlerQueue) {
        self.pending.store(queue.ready(), Ordering::Release);
    }

    pub(super) fn queue(&self) -> Signalproof<MutexGuard<'_, HandlerQueue>> {
        Signalproof::lock_briefly(&self.queue)
    }

    /// Queues a message of this rank to itself.
    pub(super) fn add_own(&self, own: Rank, head: Head, args: Args, payload: &[u8]) {
        let mut queue = self.queue();
        let is_whole = queue.add_first(own, head, args, payload);
        assert!(is_whole == Some(true), "the whole payload is given");
        self.note_pending(&queue);
    }

    pub(super) fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

impl Receiver for Messages {
    fn on_message(&self, from: Rank, bytes: &[u8]) -> Result<Received, &'static str> {
        // The owner of the engine's lock has signals deferred.
        let lock = || self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut queue;
        let complete = match active_message::decode(bytes).ok_or("an Active Message that is none")? {
            AmMessage::First(head, args, payload) => {
                check_head(&head)?;
                count_received(&head);
                if head.is_reply && !self.flow.give_back(from, Amount { requests: 1, cost: head.cost }) {
                    return Err("a reply to a request that was not sent");
                }
                queue = lock();
                queue.add_first(from, head, args, payload)
            }
            AmMessage::Fragment(head, bytes) => {
                queue = lock();
                queue.add_fragment(from, head.id, head.offset_bytes as usize, bytes)
            }
            AmMessage::Credit(Credit { requests, cost, .. }) => {
                let was_taken = self.flow.give_back(from, Amount { requests, cost });
                return was_taken.then_some(Received::Event).ok_or("credit for requests that were not sent");
            }
        };
        if !complete.ok_or("an Active Message whose parts do not fit each other")? {
            return Ok(Received::Noted);
        }
        self.note_pending(&queue);
        Ok(Received::Event)
    }
}

/// Counts a message to another rank.
pub(super) fn count_sent(handler: u8, payload_bytes: usize) {
    let is_of_library = handler == LIBRARY;
    stats::count(if is_of_library { Row::CollectiveSent } else { Row::ActiveSent });
    stats::add(if is_of_library { Row::CollectiveSentBytes } else { Row::ActiveSentBytes }, payload_bytes as u64);
}

fn count_received(head: &Head) {
    let (is_of_library, bytes) = (head.handler == LIBRARY, u64::from(head.payload_bytes));
    stats::count(if is_of_library { Row::CollectiveReceived } else { Row::ActiveReceived });
    stats::add(if is_of_library { Row::CollectiveReceivedBytes } else { Row::ActiveReceivedBytes }, bytes);
}

/// Checks the parts of a head that do not depend on the segment. The rest is checked when the handler runs.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::am::PAYLOAD_BYTES_MAX;
    use vgasnet_fuzzing::{Rng, bytes, mutate, odd_number};
    use vgasnet_protocol::active_message::{
        ARGS_MAX, FragmentHead, HEAD_BYTES_MAX, TAG_CREDIT, TAG_FRAGMENT, TAG_MESSAGE,
    };
    use zerocopy::IntoBytes;

    const RANKS: u32 = 3;

    fn head(random: &mut Rng) -> Head {
        let odd = |random: &mut Rng| if random.bool() { odd_number(random) } else { random.u64(0..100) };
        Head {
            tag: TAG_MESSAGE,
            handler: [LIBRARY, 128, 200][random.usize(0..3)],
            category: [Category::Short, Category::Medium, Category::Long][random.usize(0..3)],
            is_reply: random.u32(0..4) == 0,
            is_placed: random.u32(0..4) == 0,
            args: 0,
            id: random.u32(0..4),
            payload_bytes: odd(random) as u32,
            cost: odd(random) as u32,
            address: odd_number(random),
        }
    }

    /// A message, most often a valid one.
    fn forge(random: &mut Rng) -> Vec<u8> {
        let payload = bytes(random, 60);
        let mut message = match random.u32(0..4) {
            0 => {
                let offset_bytes = if random.bool() { odd_number(random) as u32 } else { random.u32(0..60) };
                let head = FragmentHead { tag: TAG_FRAGMENT, id: random.u32(0..4), offset_bytes };
                [head.as_bytes(), &payload].concat()
            }
            1 => {
                let amount = |random: &mut Rng| if random.bool() { 0 } else { odd_number(random) as u32 };
                Credit { tag: TAG_CREDIT, requests: amount(random), cost: amount(random) }.as_bytes().to_vec()
            }
            _ => {
                let args = Args::new(&vec![7; random.usize(0..=ARGS_MAX)]).expect("not too many");
                let mut buffer = [0; HEAD_BYTES_MAX];
                let head_bytes = head(random).encode(&args, &mut buffer);
                [&buffer[..head_bytes], &payload].concat()
            }
        };
        if random.u32(0..4) == 0 {
            mutate(random, &mut message);
        }
        message
    }

    #[test]
    fn messages_may_be_anything() {
        vgasnet_fuzzing::run("-p vgasnet --lib messages_may_be", 100_000, |random| {
            let messages = Messages::among(RANKS, Arc::default());
            const TRIES: u64 = 50;
            for _ in 0..TRIES {
                let from = Rank(random.u32(0..RANKS));
                let _ = messages.flow.take(from, random.u32(0..100));
                if messages.on_message(from, &forge(random)).is_err() || random.u32(0..4) > 0 {
                    continue;
                }
                while let Some(incoming) = messages.take() {
                    let (head, len_bytes) = (incoming.head, incoming.payload.len_bytes());
                    assert_eq!(len_bytes, if head.is_placed { 0 } else { head.payload_bytes as usize });
                    assert!(len_bytes <= PAYLOAD_BYTES_MAX && (len_bytes == 0 || head.category != Category::Short));
                    let _ = messages.flow.on_handled(incoming.from, len_bytes as u32);
                    messages.queue().recycle(incoming.payload);
                }
                assert!(!messages.has_pending());
            }
            TRIES
        });
    }

    #[test]
    fn malformed_messages_are_refused() {
        let messages = Messages::among(RANKS, Arc::default());
        let head = Head {
            tag: TAG_MESSAGE,
            handler: 200,
            category: Category::Short,
            is_reply: false,
            is_placed: false,
            args: 0,
            id: 1,
            payload_bytes: 0,
            cost: 0,
            address: 0,
        };
        let tell = |head: Head, payload: &[u8]| {
            let mut buffer = [0; HEAD_BYTES_MAX];
            let head_bytes = head.encode(&Args::new(&[1]).expect("one"), &mut buffer);
            messages.on_message(Rank(1), &[&buffer[..head_bytes], payload].concat())
        };
        assert_eq!(tell(head, b""), Ok(Received::Event));
        // The library's own handler would read the payload at a null pointer.
        assert!(tell(Head { handler: LIBRARY, payload_bytes: 2, ..head }, b"no").is_err());
        assert!(tell(Head { category: Category::Medium, is_placed: true, payload_bytes: 9, ..head }, b"").is_err());
        assert!(tell(Head { category: Category::Long, handler: LIBRARY, ..head }, b"").is_err());
        assert!(tell(Head { is_reply: true, ..head }, b"").is_err(), "no request was sent");
        assert!(messages.on_message(Rank(1), &[TAG_MESSAGE, 1]).is_err());
    }
}
