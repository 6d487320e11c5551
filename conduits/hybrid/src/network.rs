//! The contract of a transport between hosts.

use vgasnet_conduit::{Arrival, Busy, ConduitError, Rank, Region, Transfer, Urgency};

/// A transport between hosts. The rules of [`vgasnet_conduit`] hold: messages are reliable and unordered, one thread at
/// a time polls, any thread may call the rest at any time, and start-up is collective.
///
/// Nothing moves on its own: a transfer goes on when somebody polls, here and at the other end.
pub trait Network: Send + Sync {
    /// The conduit's name as users write it: `mpi`, `gasnet-udp`.
    fn name(&self) -> &str;

    /// This process.
    fn rank(&self) -> Rank;

    /// How many ranks the job has; at least 1.
    fn ranks(&self) -> u32;

    /// As [`vgasnet_conduit::Conduit::exchange`]. Calls `look` each time before it looks again whether all have come.
    fn exchange(&self, mine: &[u8], look: &mut dyn FnMut()) -> Result<Vec<Vec<u8>>, ConduitError>;

    /// The source of pools that have to lie in the network's own memory. The same at every rank.
    fn pool_memory(&self) -> Option<&dyn PoolMemory> {
        None
    }

    /// Makes the own pool, which stays mapped, the source and target of transfers. Once a job; returns when every rank
    /// has done so. Where there is [`Network::pool_memory`], the pool comes from there, or no transfer will be asked for.
    fn attach(&self, pool: Region) -> Result<(), ConduitError>;

    /// The largest message that [`Network::send`] takes, in bytes.
    fn message_bytes_max(&self) -> usize;

    /// As [`vgasnet_conduit::Conduit::send`]; nobody is woken.
    fn send(&self, to: Rank, head: &[u8], body: &[u8], urgency: Urgency) -> Result<(), Busy>;

    /// As [`vgasnet_conduit::Conduit::put`].
    fn put(&self, transfer: &Transfer) -> Result<(), Busy>;

    /// As [`vgasnet_conduit::Conduit::get`].
    fn get(&self, transfer: &Transfer) -> Result<(), Busy>;

    /// As [`vgasnet_conduit::Conduit::poll`].
    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool;

    /// Whether something is under way that needs polls to go on, be it this rank's or a peer's.
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

    /// Whether [`Network::exit`] with this status ends all ranks in good order, with the status of the one that called it.
    fn ends_jobs(&self, _status: i32) -> bool {
        false
    }

    /// As [`vgasnet_conduit::Conduit::exit`], where no launcher of ours looks after the job; [`crate::HybridConduit`] and
    /// [`crate::break_down`] know.
    fn exit(&self, status: i32) -> !;
}

/// A network that can reach its own memory only.
pub trait PoolMemory {
    /// Memory for the own pool. Once a job, collective; all ranks get some, or none.
    fn allocate(&self, len_bytes: usize) -> Result<Region, ConduitError>;

    /// Whether the pool of `rank` is mapped in this process too, once it is there.
    fn is_mapped(&self, rank: Rank) -> bool;

    /// The pool of `rank` as it is mapped here, after [`Network::attach`].
    fn of(&self, rank: Rank) -> Option<Region>;
}
