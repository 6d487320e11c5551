//! The contract of a transport between hosts.

use vgasnet_conduit::{Arrival, Busy, ConduitError, Rank, Region, Transfer, Urgency};

/// A transport between hosts. The rules of [`vgasnet_conduit`] hold: messages are reliable and unordered, one thread at
/// a time polls, any thread may make other calls at any time, and start-up is collective.
///
/// Progress requires polling: a transfer advances when both ends poll.
pub trait Network: Send + Sync {
    /// The conduit's user-visible name: `mpi`, `gasnet-udp`.
    fn name(&self) -> &str;

    /// This process.
    fn rank(&self) -> Rank;

    /// Number of ranks in the job; at least 1.
    fn ranks(&self) -> u32;

    /// As [`vgasnet_conduit::Conduit::exchange`]. Calls `look` before each check for completeness.
    fn exchange(&self, mine: &[u8], look: &mut dyn FnMut()) -> Result<Vec<Vec<u8>>, ConduitError>;

    /// The source of pools, if they must lie in the network's own memory. Alike on every rank.
    fn pool_memory(&self) -> Option<&dyn PoolMemory> {
        None
    }

    /// Makes this rank's pool, which stays mapped, the source and target of transfers. Once a job; returns when every
    /// rank has done so. With [`Network::pool_memory`], the pool comes from there, or no transfer will be requested.
    fn attach(&self, pool: Region) -> Result<(), ConduitError>;

    /// Maximum size of a message for [`Network::send`], in bytes.
    fn message_bytes_max(&self) -> usize;

    /// As [`vgasnet_conduit::Conduit::send`]; nobody is woken.
    fn send(&self, to: Rank, head: &[u8], body: &[u8], urgency: Urgency) -> Result<(), Busy>;

    /// As [`vgasnet_conduit::Conduit::put`].
    fn put(&self, transfer: &Transfer) -> Result<(), Busy>;

    /// As [`vgasnet_conduit::Conduit::get`].
    fn get(&self, transfer: &Transfer) -> Result<(), Busy>;

    /// As [`vgasnet_conduit::Conduit::poll`].
    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool;

    /// Whether a transfer of this rank or a peer is in flight and needs polls.
    fn is_active(&self) -> bool;

    /// As [`vgasnet_conduit::Conduit::call_under_way`].
    fn call_under_way(&self) -> Option<u64> {
        None
    }

    /// As [`vgasnet_conduit::Conduit::call_before_end`].
    fn call_before_end(&self, _leave: fn()) {}

    /// As [`vgasnet_conduit::Conduit::is_abandoned`].
    fn is_abandoned(&self) -> bool {
        false
    }

    /// As [`vgasnet_conduit::Conduit::close`].
    fn close(&self);

    /// Whether [`Network::exit`] with this status ends all ranks in good order, with the caller's status.
    fn ends_jobs(&self, _status: i32) -> bool {
        false
    }

    /// As [`vgasnet_conduit::Conduit::exit`], for jobs without a launcher of ours; called by [`crate::HybridConduit`]
    /// and [`crate::break_down`].
    fn exit(&self, status: i32) -> !;
}

/// A network able to reach only its own memory.
pub trait PoolMemory {
    /// Memory for this rank's pool. Once a job, collective; all ranks get some, or none.
    fn allocate(&self, len_bytes: usize) -> Result<Region, ConduitError>;

    /// Whether the pool of `rank` is mapped in this process too, once it exists.
    fn is_mapped(&self, rank: Rank) -> bool;

    /// The pool of `rank` as mapped here, after [`Network::attach`].
    fn of(&self, rank: Rank) -> Option<Region>;
}
