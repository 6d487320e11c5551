//! The contract between vgasnet and its transports.
//!
//! A *conduit* starts the ranks of a job, carries their Active Messages, moves pages between their pools by one-sided
//! puts and gets, and lets a rank sleep until something arrives. All layers above are the same on every conduit;
//! [`Capabilities`] describes the differences.
//!
//! # Rules
//! - Messages are reliable and unordered. [`Conduit::send`] may refuse with [`Busy`]; then nothing was sent and the
//!   caller tries again after a [`Conduit::poll`].
//! - A sink given to `poll` records the arrival and returns: it makes no calls to the conduit.
//! - One thread at a time calls `poll`; any thread may make any other call at any time.
//! - Start-up ([`Conduit::exchange`], [`Conduit::attach`]) is collective and blocks: every rank makes the same calls in
//!   the same order.

#![deny(unsafe_code)]

mod agreement;
pub mod conformance;
pub mod environment;
pub mod forked;
mod give_way;
mod launcher_watch;
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
pub use launcher_watch::end_with_launcher;
pub use readable::wait_readable;
pub use region::{Region, map_again, page_bytes};
pub use say::say;
pub use signals::{NAMED, action_of, blocking_signals, keeping_handlers};

/// Abilities of a conduit beyond the minimum of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The regions of ranks on the same host are mapped in this process: [`Conduit::pool`] and [`Conduit::table`]
    /// answer for them too.
    pub peer_memory: bool,
    /// [`Conduit::sleep`] returns as soon as a message arrives. Without it, `sleep` backs off and looks again.
    pub wakes_on_arrival: bool,
    /// The pool can be mapped a second time: it is a shared mapping. Known after attach.
    pub second_mapping: bool,
    /// Usable in a signal handler interrupting any code but the conduit's own: it uses no lock and no memory other code
    /// of the process may hold.
    pub signal_safe: bool,
}

/// Message size supported by every conduit, in bytes; [`Conduit::message_bytes_max`] may be larger.
pub const MESSAGE_BYTES_MIN: usize = 256;

/// Maximum number of ranks in a job.
pub const RANKS_MAX: u32 = 1 << 20;

/// Maximum contribution to [`Conduit::exchange`], in bytes.
pub const EXCHANGE_BYTES_MAX: usize = 512;

/// A longer wait at the start or the end of a job is reported to the user.
pub const SLOW: Duration = Duration::from_secs(5);

/// A rank's sizes for [`Conduit::attach`]. They may differ between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct RegionSizes {
    /// The pool: page frames, the source and target of [`Conduit::put`] and [`Conduit::get`].
    pub pool_bytes: usize,
    /// The page table and other memory shared by the ranks of a host. Initially zeros; only touched parts cost memory.
    pub table_bytes: usize,
}

impl RegionSizes {
    /// The sizes of all ranks, in rank order. Collective.
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

/// The starter's name for an operation, returned in [`Arrival::Complete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A page transfer between this rank's pool and a peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The peer. It may be this rank itself.
    pub peer: Rank,
    /// Offset in the peer's pool.
    pub peer_offset_bytes: usize,
    /// Offset in this rank's pool.
    pub own_offset_bytes: usize,
    /// Number of bytes.
    pub len_bytes: usize,
    /// Returned when the bytes are at their target, visible to every rank that learns of it by a message.
    pub token: Token,
}

/// An arrival found by [`Conduit::poll`].
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
    /// Bytes no rank of this version sends: a line for the user. The job cannot go on.
    Corrupt(String),
}

/// The conduit cannot accept more now. The call had no effect; try again after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// The kind of a sleeper. A rank has one of each kind.
///
/// A wake-up goes to the caller if one sleeps, otherwise to the helper, so that a miss costs no thread switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleeper {
    /// A client thread waiting in a call, driving the engine itself.
    Caller,
    /// The helper thread. It drives when no client thread does.
    Helper,
}

/// The urgency of a message: the sleepers it wakes, and the room it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Wakes any sleeper, as described by [`Sleeper`].
    Now,
    /// Wakes a sleeping caller, but not the helper: the message waits until a client thread calls in, or until another
    /// event wakes the helper. On a conduit with limited room, these messages leave a part of it to urgent ones.
    WhenCalled,
}

/// The reason a conduit could not start or attach: one line naming the failed step, with the system's reason.
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
    /// The conduit's user-visible name: `smp`, `mpi`, `gasnet-udp`.
    fn name(&self) -> &str;

    /// This process.
    fn rank(&self) -> Rank;

    /// Number of ranks in the job; at least 1.
    fn ranks(&self) -> u32;

    /// The host of a rank: equal numbers share memory and disks. Hosts are numbered from 0 without gaps.
    fn host_of(&self, rank: Rank) -> u32;

    /// The abilities of this conduit.
    fn capabilities(&self) -> Capabilities;

    /// Gives every rank the contribution of every rank, in rank order. At most [`EXCHANGE_BYTES_MAX`] each.
    fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, ConduitError>;

    /// Registers `tell` for one call when an exchange takes long and it is this rank's turn to report, with the result
    /// of [`Conduit::to_tell`] and the time so far. Conduits without this knowledge ignore it.
    fn call_when_slow(&self, _tell: fn(&[Rank], Duration)) {}

    /// Passes a file of this rank to the launcher, which truncates it after the job: by then others may hold the file
    /// open, such as children of the rank and requests of killed processes. No effect without such a launcher.
    fn entrust(&self, _file: BorrowedFd<'_>) {}

    /// Counts a step taken by all ranks; each exchange is one as well.
    fn note_step(&self) {}

    /// The ranks with fewer steps than this one; empty if a lower rank has taken as many steps, so that one rank
    /// reports them. `None` if the conduit knows of no missing rank, and of no lower rank that does.
    fn awaited(&self) -> Option<Vec<Rank>> {
        None
    }

    /// Whether every rank has taken as many steps as this one; false if the conduit does not know.
    fn have_all_stepped(&self) -> bool {
        false
    }

    /// Whether this rank must report the ranks awaited for `times` times [`SLOW`]. Returns them, or an empty list if
    /// the conduit does not know them. In that case the first ranks of all hosts report in turn, because the awaited
    /// ranks may be on the first host.
    fn to_tell(&self, times: u32) -> Option<Vec<Rank>> {
        let shares_host = self.capabilities().peer_memory;
        let before = if shares_host { self.host_of(self.rank()) } else { self.rank().0 };
        match self.awaited() {
            Some(awaited) => Some(awaited).filter(|awaited| !awaited.is_empty()),
            None => (times > before).then(Vec::new),
        }
    }

    /// Creates the pool and the table. Once a job, before any message or transfer; returns when every rank's exist.
    fn attach(&self, sizes: RegionSizes) -> Result<(), ConduitError>;

    /// The pool of `rank`, after attach: this rank's always, a peer's if [`Capabilities::peer_memory`] and the host
    /// allow.
    fn pool(&self, rank: Rank) -> Option<Region>;

    /// The table of `rank`, under the same conditions.
    fn table(&self, rank: Rank) -> Option<Region>;

    /// Maximum size of a message for [`Conduit::send`], in bytes; at least [`MESSAGE_BYTES_MIN`].
    fn message_bytes_max(&self) -> usize;

    /// Sends `head` and `body` as one Active Message of at most [`Conduit::message_bytes_max`] bytes; `to` may be this
    /// rank. Both buffers may be reused on return. A full receiver is woken, whatever the urgency.
    fn send(&self, to: Rank, head: &[u8], body: &[u8], urgency: Urgency) -> Result<(), Busy>;

    /// Copies from this rank's pool into the peer's. The source bytes must not change until completion.
    fn put(&self, transfer: &Transfer) -> Result<(), Busy>;

    /// Copies from the peer's pool into this rank's. The target bytes are undefined until completion.
    fn get(&self, transfer: &Transfer) -> Result<(), Busy>;

    /// Passes arrivals to `sink`, a bounded number at a time. Returns whether there were any.
    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool;

    /// Whether [`Conduit::poll`] may find something. Costs a small number of loads, for use in spin loops. Without
    /// [`Capabilities::wakes_on_arrival`], only a poll finds everything.
    fn has_arrivals(&self) -> bool;

    /// Sets whether a client thread drives the engine, so that arrivals wake nobody. Returns whether something has
    /// arrived without waking anybody.
    fn set_driving(&self, driving: bool) -> bool;

    /// Sleeps in the kernel until something arrives, [`Conduit::wake`] is called for this rank, `also` becomes
    /// readable, or `timeout` is over. `stay_awake` is called once, after arrivals have started to wake this sleeper;
    /// if it returns `true` the call returns at once, so a condition set before a `wake` is never slept through. A
    /// caller counts as driving before and after the call, not during it. May return early.
    fn sleep(
        &self,
        sleeper: Sleeper,
        also: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
        stay_awake: &dyn Fn() -> bool,
    );

    /// Wakes a sleeper at `rank`, as an arrival there would. Works for other ranks only with
    /// [`Capabilities::peer_memory`]. May be called from any thread, also in a signal handler; makes no system call if
    /// nobody sleeps.
    fn wake(&self, rank: Rank);

    /// As [`Conduit::wake`], but leaves the helper asleep: for events only client threads wait for.
    fn wake_caller(&self, rank: Rank) {
        self.wake(rank);
    }

    /// Wakes this rank's helper, whether or not another thread drives. May be called from any thread, also in a signal
    /// handler.
    fn wake_helper(&self);

    /// Identifies the call of an underlying library in progress in a thread of this rank; different for each call,
    /// `None` if there is none. Such calls return at once, unless the library waits for a lock. May be called in a
    /// signal handler.
    fn call_under_way(&self) -> Option<u64> {
        None
    }

    /// Registers `leave` for at most one call when the program is about to end the transport outside this contract, as
    /// by `MPI_Finalize`. It returns when all ranks are through.
    fn call_before_end(&self, _leave: fn()) {}

    /// Whether the process ends without it, although the program owns the transport's end: its exit waits for no other
    /// rank.
    fn is_abandoned(&self) -> bool {
        false
    }

    /// Declares that all ranks are through: nothing is in flight, and nothing will be sent. Called at most once; only
    /// [`Conduit::exit`] may follow.
    fn close(&self);

    /// The process is about to fail without [`Conduit::exit`]: peers must learn it from the launcher first.
    fn expect_failure(&self) {}

    /// Announces that this process is about to end, and the job with it, as by [`Conduit::exit`]. Returns whether it
    /// may end by itself; otherwise it must call that function.
    fn note_exit(&self, status: i32) -> bool;

    /// Ends this process as part of the job's end: the launcher ends the others and reports `status`; of several racing
    /// statuses, the lowest non-zero one. Does not flush the client's streams. Does not return.
    fn exit(&self, status: i32) -> !;
}
