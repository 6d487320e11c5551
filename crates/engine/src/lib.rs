//! Runs the protocol of one rank: takes its actions to the conduit and the storage, and brings their completions back.
//!
//! The [`Engine`] is single-threaded state behind a lock. The thread that has the lock calls [`Engine::drive`]. It then
//! carries out the resulting [`Work`] without the lock: nothing touches the client's memory or copies a page under the
//! lock. The [`Driver`] decides which thread drives and which sleep.

mod arrivals;
mod bundle;
mod bytes;
mod driver;
mod engine;
mod file_service;
mod meetings;
mod neighbour_reads;
mod outbox;
mod page_statistics;
mod paging;
mod queue;
pub mod request;
mod status;
mod storage_server;
#[cfg(test)]
mod test_space;
mod tuning;
mod waiting;
mod work;

pub use arrivals::{Received, Receiver, TAG_ABOVE};
pub use bundle::messages_in;
pub use driver::{CallerWork, Driver, Fail, Locked, WaitMode};
pub use engine::{Engine, EngineOptions, Optimisations, Pending, ThreadRead};
pub use file_service::{FileState, OwnFlush, Purpose, Unwritten, WritesSince, joined};
pub use neighbour_reads::{EndedNeighbourRead, NeighbourRead};
pub use paging::TooManyPins;
pub use storage_server::{EndedRead, PageRead, StorageServer};
pub use tuning::protocol;
pub use work::{BlockCopies, BlockPlace, Delivery, OverlaidBlocks, Shipment, Work};
