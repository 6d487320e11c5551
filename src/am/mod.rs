//! Active Messages of the client: requests, replies, and the threads that run their handlers.
//!
//! The driver of the engine assembles arriving messages from their fragments in a queue (`handler_queue.rs`). Handlers
//! run only in client threads in calls, outside of every lock of the library: [`Am`] implements a part of the engine's
//! [`CallerWork`].
//!
//! Source: GASNet-1 (specification 1.8), Active Messages.
//!
//! [`CallerWork`]: vgasnet_engine::CallerWork

mod caller;
mod description;
mod flow;
mod handler_queue;
mod handler_safe_lock;
mod handlers;
mod immediate;
mod messages;
mod pauses;
mod peer_completion;
mod run;
mod send;

pub use caller::{is_in_handler, running_handler};
pub use description::Description;
pub use flow::{WINDOW_COST, WINDOW_REQUESTS};
pub use handler_queue::{Backlog, PAYLOAD_BYTES_MAX};
pub use handler_safe_lock::HandlerSafeLock;
pub(crate) use handlers::LIBRARY;
pub use handlers::{BadEntry, CLIENT_FIRST, Entry, Handlers};
pub use immediate::HeldCredit;
pub use messages::Messages;
pub use run::Token;
pub use send::{Destination, Envelope, LONG_BYTES_MAX};

use crate::ops::Ops;
use std::sync::Arc;
use vgasnet_engine::Driver;
use vgasnet_memory::AddressSpace;

/// The Active Messages of an attached rank.
pub struct Am {
    ops: Arc<Ops>,
    messages: Arc<Messages>,
}

impl Am {
    /// Sends messages, and runs the handlers of messages received in `messages`.
    pub fn new(ops: Arc<Ops>, messages: Arc<Messages>) -> Am {
        Am { ops, messages }
    }

    /// The arrived messages, and the handler table.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The operations of this rank.
    pub fn ops(&self) -> &Arc<Ops> {
        &self.ops
    }

    /// The driver of this rank's engine.
    pub fn driver(&self) -> &Arc<Driver> {
        self.ops.driver()
    }

    fn space(&self) -> &AddressSpace {
        self.ops.space()
    }
}
