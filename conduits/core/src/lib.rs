//! The contract between vgasnet and its transports.
//!
//! A *conduit* starts the ranks of a job, carries their Active Messages, moves pages between their pools by one-sided
//! puts and gets, and lets a rank sleep until something arrives. Everything above it is the same on every conduit;
//! where conduits differ, [`Capabilities`] says so.
//!
//! # Rules
//! - Messages are reliable and unordered. [`Conduit::send`] may refuse with [`Busy`]; then nothing was sent and the
//!   caller tries again after a [`Conduit::poll`].
//! - A sink given to `poll` notes the arrival and returns: it calls nothing of the conduit.
//! - One thread at a time calls `poll`; any thread may call anything else at any time.
//! - Start-up ([`Conduit::exchange`], [`Conduit::attach`]) is collective and blocks: every rank makes the same calls in
//!   the same order.

#![deny(unsafe_code)]

mod agreement;
pub mod conformance;
pub mod environment;
mod give_way;
pub mod launchers;
mod readable;
mod region;
mod say;
mod signals;
pub mod whole_file;

use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::Duration;

pub use vgasnet_protocol::Rank;
use zerocopy::{FromBytes, Immutable, IntoBytes};

pub use agreement::{agree, check_versions, greet, hear_all, of_other_version};
pub use give_way::give_way;
pub use readable::wait_readable;
pub use region::{Region, map_again, page_bytes};
pub use say::say;
pub use signals::{NAMED, action_of, blocking_signals, keeping_handlers};

/// Abilities of a conduit beyond the least that the contract asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The regions of ranks on the same host are mapped in this process: [`Conduit::pool`] and [`Conduit::table`]
    /// answer for them too.
    pub peer_memory: bool,
    /// [`Conduit::sleep`] returns as soon as a message arrives. Without it, `sleep` backs off and looks again.
    pub wakes_on_arrival: bool,
    /// The pool, which is mapped in any case, can be mapped a second time: it is a shared mapping. Known after attach.
    pub second_mapping: bool,
    /// It may be used in a signal handler that has interrupted any code but its own: it takes no lock and no memory that
    /// other code in the process may hold.
    pub signal_safe: bool,
}

/// Messages up to this size every conduit takes, in bytes; [`Conduit::message_bytes_max`] may be more.
pub const MESSAGE_BYTES_MIN: usize = 256;

/// The largest number of ranks in a job.
pub const RANKS_MAX: u32 = 1 << 20;

/// The largest contribution to [`Conduit::exchange`], in bytes.
pub const EXCHANGE_BYTES_MAX: usize = 512;

/// A wait at the start or the end of a job that takes longer is told of.
pub const SLOW: Duration = Duration::from_secs(5);

/// The sizes that a rank asks [`Conduit::attach`] for. They may differ from rank to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RegionSizes {
    /// The pool: page frames, the source and target of [`Conduit::put`] and [`Conduit::get`].
    pub pool_bytes: usize,
    /// The page table and other memory that the ranks of a host share. Zero at first; only touched parts cost memory.
    pub table_bytes: usize,
}

impl RegionSizes {
    /// The sizes that all ranks ask for, in rank order. Collective.
    ///
    /// # Errors
    /// The exchange fails.
    pub fn of_all(self, conduit: &dyn Conduit) -> Result<Vec<RegionSizes>, ConduitError> {
        let all = conduit.exchange(self.as_bytes())?;
        let size = |(rank, bytes): (usize, &Vec<u8>)| {
            RegionSizes::read_from_bytes(bytes).map_err(|_| of_other_version(rank, "the sizes of its memory"))
        };
        all.iter().enumerate().map(size).collect()
    }
}

/// The starter's name for an operation; the conduit hands it back in [`Arrival::Complete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// One page on its way between the own pool and a peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The peer. It may be the own rank.
    pub peer: Rank,
    /// Where in the peer's pool.
    pub peer_offset_bytes: usize,
    /// Where in the own pool.
    pub own_offset_bytes: usize,
    /// How much.
    pub len_bytes: usize,
    /// Comes back when the bytes are at their target, visible to every rank that hears of it by a message.
    pub token: Token,
}

/// An arrival that [`Conduit::poll`] found.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// An Active Message.
    Message {
        /// The sender.
        from: Rank,
        /// The bytes given to `send`; valid until the sink returns.
        bytes: &'a [u8],
    },
    /// A put or get is complete at its target.
    Complete(Token),
    /// What came is nothing that a rank of this version sends: a line for the user. The job cannot go on.
    Corrupt(String),
}

/// The conduit cannot take more now. Nothing was done; try again after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// Who sleeps. A rank has one sleeper of each kind.
///
/// A wake-up goes to the caller when one sleeps, else to the helper, so that a miss costs no thread switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleeper {
    /// A client thread that waits in a call and drives the engine itself.
    Caller,
    /// The helper thread, which drives when no client thread does.
    Helper,
}

/// Whom a message wakes, and which messages keep room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Whoever sleeps, as [`Sleeper`] says.
    Now,
    /// A caller that sleeps. The helper is not woken: the message waits until a client thread calls in, or something else
    /// wakes the helper. Where the conduit has a limited place for messages, these leave a part of it to those for now.
    WhenCalled,
}

/// Why a conduit could not start or attach: one line that says what failed, with the system's reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConduitError(pub String);

impl fmt::Display for ConduitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConduitError {}

/// A transport.
pub trait Conduit: Send + Sync {
    /// The conduit's name as users write it: `smp`, `mpi`, `gasnet-udp`.
    fn name(&self) -> &str;

    /// This process.
    fn rank(&self) -> Rank;

    /// How many ranks the job has; at least 1.
    fn ranks(&self) -> u32;

    /// The host a rank runs on: equal numbers share memory and disks. Hosts are numbered from 0 without gaps.
    fn host_of(&self, rank: Rank) -> u32;

    /// The abilities of this conduit.
    fn capabilities(&self) -> Capabilities;

    /// Gives every rank the contribution of every rank, in rank order. At most [`EXCHANGE_BYTES_MAX`] each.
    fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, ConduitError>;

    /// Has `tell` called, once, when an exchange takes so long that this rank is to tell of it, with what
    /// [`Conduit::to_tell`] says, and how long it has taken. Conduits that do not know do nothing.
    fn call_when_slow(&self, _tell: fn(&[Rank], Duration)) {}

    /// Gives the launcher a file of this rank's to hold, which it empties when the job is over: others may have the file
    /// open by then, as children of the rank and requests of killed processes do. Nothing happens without such a launcher.
    fn entrust(&self, _file: BorrowedFd<'_>) {}

    /// Counts a step that all ranks take, as each exchange is one.
    fn note_step(&self) {}

    /// The ranks that have taken fewer steps than this one; none where a lower rank has taken as many, so that one rank
    /// tells of them. `None` where the conduit does not know of any, and of no lower rank that does.
    fn awaited(&self) -> Option<Vec<Rank>> {
        None
    }

    /// Whether every rank has taken as many steps as this one, where the conduit knows that; else false.
    fn have_all_stepped(&self) -> bool {
        false
    }

    /// Whether this rank is to tell of the ranks for which it has waited `times` times [`SLOW`]: those ranks, or none
    /// where the conduit does not know them. Then the first ranks of all hosts tell in turn: the ranks that are waited
    /// for may be those of the first host.
    fn to_tell(&self, times: u32) -> Option<Vec<Rank>> {
        let shares_host = self.capabilities().peer_memory;
        let before = if shares_host { self.host_of(self.rank()) } else { self.rank().0 };
        match self.awaited() {
            Some(awaited) => Some(awaited).filter(|awaited| !awaited.is_empty()),
            None => (times > before).then(Vec::new),
        }
    }

    /// Makes the pool and the table. Once a job, before any message or transfer; returns when every rank's exist.
    fn attach(&self, sizes: RegionSizes) -> Result<(), ConduitError>;

    /// The pool of `rank`, after attach: the own always, a peer's where [`Capabilities::peer_memory`] and the host allow.
    fn pool(&self, rank: Rank) -> Option<Region>;

    /// The table of `rank`, likewise.
    fn table(&self, rank: Rank) -> Option<Region>;

    /// The largest message that [`Conduit::send`] takes, in bytes; at least [`MESSAGE_BYTES_MIN`].
    fn message_bytes_max(&self) -> usize;

    /// Sends `head` and `body` as one Active Message of at most [`Conduit::message_bytes_max`] bytes; `to` may be the own
    /// rank. Both are free for reuse on return. A receiver that is full is woken, whatever the urgency.
    fn send(&self, to: Rank, head: &[u8], body: &[u8], urgency: Urgency) -> Result<(), Busy>;

    /// Copies from the own pool into the peer's. The own bytes must stay as they are until completion.
    fn put(&self, transfer: &Transfer) -> Result<(), Busy>;

    /// Copies from the peer's pool into the own. The target bytes are undefined until completion.
    fn get(&self, transfer: &Transfer) -> Result<(), Busy>;

    /// Hands arrivals to `sink`, a bounded number at a time. Returns whether there were any.
    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool;

    /// Whether [`Conduit::poll`] may find something. It costs a few loads: a thread that spins asks it again and again.
    /// Without [`Capabilities::wakes_on_arrival`] only a poll knows of everything.
    fn has_arrivals(&self) -> bool;

    /// Says that a client thread drives the engine from now on (`true`), so that arrivals wake nobody, or no longer does
    /// (`false`). Returns whether something has arrived that nobody was woken for.
    fn set_driving(&self, driving: bool) -> bool;

    /// Sleeps in the kernel until something arrives, [`Conduit::wake`] is called for this rank, `also` becomes readable,
    /// or `timeout` is over. `stay_awake` is asked once after arrivals have begun to wake this sleeper; `true` returns at
    /// once, so a condition set before a `wake` is never slept through. A caller counts as driving before and
    /// after the call, not during it. May return early.
    fn sleep(
        &self,
        sleeper: Sleeper,
        also: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
        stay_awake: &dyn Fn() -> bool,
    );

    /// Wakes a sleeper at `rank`, as an arrival there would. Works for other ranks than the own only with
    /// [`Capabilities::peer_memory`]. May be called from any thread, also in a signal handler, and costs no system
    /// call if nobody sleeps.
    fn wake(&self, rank: Rank);

    /// As [`Conduit::wake`], but leaves the helper asleep: for what only client threads wait for.
    fn wake_caller(&self, rank: Rank) {
        self.wake(rank);
    }

    /// Wakes the own helper, whoever drives. May be called from any thread, also in a signal handler.
    fn wake_helper(&self);

    /// A number for the call of a library below in which a thread of this rank is now: another one for each call, `None` if
    /// there is none. Such calls return at once, unless that library waits for a lock. May be called in a signal handler.
    fn call_under_way(&self) -> Option<u64> {
        None
    }

    /// Has `leave` called, at most once, when the program is about to end the transport by other ways than this contract's, as
    /// `MPI_Finalize` does. It returns when all ranks are through.
    fn call_before_end(&self, _leave: fn()) {}

    /// Whether the process ends without that, though it is the program's to end the transport: its exit waits for no other rank.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// Says that all ranks are through: nothing is under way, and nothing will be sent. Called at most once; afterwards
    /// only [`Conduit::exit`] is.
    fn close(&self);

    /// The process is about to end without [`Conduit::exit`], and not well: peers are to learn of that from the launcher first.
    fn expect_failure(&self) {}

    /// Says that this process is about to end, and the job with it, as by [`Conduit::exit`]. Returns whether it may do so
    /// by itself; if not, it calls that.
    fn note_exit(&self, status: i32) -> bool;

    /// Ends this process as part of the job's end: the launcher ends the others and reports `status`, the lowest non-zero
    /// one winning where several race. Does not flush the client's streams. Does not return.
    fn exit(&self, status: i32) -> !;
}
