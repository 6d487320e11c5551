//! The conduit itself.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use vgasnet_conduit::{
    Arrival, Busy, Capabilities, Conduit, ConduitError, Rank, Region, RegionSizes, SLOW, Sleeper, Transfer, Urgency,
    agree, of_other_version, wait_readable,
};

use crate::arena::{POOL_ALIGN_BYTES, Placement, RankBlock, set_len};
use crate::completions::Completions;
use crate::job::JobMember;
use crate::joining::entrust;
use crate::mapping::Mapping;
use crate::ring::MESSAGE_BYTES_MAX;
use vgasnet_protocol::RankState;

/// Maximum number of arrivals per poll, so that a flood does not keep the caller from other work.
const POLL_ARRIVALS_MAX: usize = 64;

/// The shared-memory conduit of one rank.
pub struct SmpConduit {
    rank: u32,
    ranks: u32,
    job: JobMember,
    completions: Completions,
    attached: OnceLock<Attached>,
    /// Held through a collective call: this rank's bulletin has one writer.
    collective: Mutex<()>,
    /// Called when an exchange takes long.
    tell_slow: OnceLock<fn(&[Rank], Duration)>,
}

/// All ranks' regions. By contract they stay mapped until the process ends.
struct Attached {
    pools: Vec<Region>,
    tables: Vec<Region>,
}

impl SmpConduit {
    /// Makes this process a rank of the job it was launched by, or, started by hand, the only rank of its own job.
    pub fn start() -> Result<Self, ConduitError> {
        JobMember::join().map(Self::member)
    }

    /// Makes this process the only rank of its own job, regardless of the environment.
    pub fn alone() -> Result<Self, ConduitError> {
        JobMember::alone().map(Self::member)
    }

    /// The process that started the ranks, if any and if its number is known here.
    pub fn launcher_process(&self) -> Option<u32> {
        self.job.launcher.as_ref().and(self.job.objects.maker)
    }

    /// The conduit of a rank of `job`.
    pub(crate) fn member(job: JobMember) -> Self {
        let (rank, ranks) = (job.rank, job.ranks);
        let (completions, attached, collective, tell_slow) = Default::default();
        SmpConduit { rank, ranks, job, completions, attached, collective, tell_slow }
    }

    /// Waits until all ranks are here.
    fn meet(&self) {
        self.note_step();
        self.job.control.header().barrier.wait(self.ranks, || {
            let missing = self.awaited().unwrap_or_default();
            if let Some(tell) = self.tell_slow.get().filter(|_| !missing.is_empty()) {
                tell(&missing, SLOW);
            }
        });
    }

    fn own_block(&self) -> &RankBlock {
        self.job.control.block(self.rank)
    }

    /// Wakes the sleeper at `rank` responsible for the preceding post.
    fn ring(&self, rank: u32) {
        if let Some(sleeper) = self.job.control.block(rank).bell.take_sleeper() {
            self.ring_sleeper(rank, sleeper);
        }
    }

    /// As `ring`, for a message that can wait for a call, ending at `end` in the inbox.
    fn ring_caller(&self, rank: u32, end: u64) {
        let inbox = self.job.control.inbox(rank);
        if let Some(sleeper) = self.job.control.block(rank).bell.take_caller(|| !inbox.is_last(end)) {
            self.ring_sleeper(rank, sleeper);
        }
    }

    fn ring_sleeper(&self, rank: u32, sleeper: Sleeper) {
        let doorbell = self.job.objects.doorbell(rank, sleeper).as_raw_fd();
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the kernel reads `one`, and the descriptor is open. Fails only if the eventfd's count is at its
        // maximum, and then it is readable anyway. Unlike `write`, `syscall` is no cancellation point of this thread.
        unsafe { libc::syscall(libc::SYS_write, doorbell, one.as_ptr(), one.len()) };
    }

    fn attached(&self) -> &Attached {
        self.attached.get().expect("attach comes before any use of pools")
    }

    /// The addresses of a transfer's two ends: this rank's, then the peer's.
    fn ends(&self, transfer: &Transfer) -> (*mut u8, *mut u8) {
        let attached = self.attached();
        let end = |rank: u32, offset_bytes: usize| attached.pools[rank as usize].part(offset_bytes, transfer.len_bytes);
        (end(self.rank, transfer.own_offset_bytes), end(transfer.peer.0, transfer.peer_offset_bytes))
    }

    /// Copies the bytes of a transfer between its ends.
    ///
    /// # Safety
    /// Both addresses come from `ends`.
    unsafe fn copy(&self, transfer: &Transfer, from: *mut u8, to: *mut u8) -> Result<(), Busy> {
        self.completions.check_room()?;
        // SAFETY: `ends` checked both ranges against the mapped pools. They may overlap if the peer is this rank. By
        // the contract of put and get nobody else accesses them until completion.
        unsafe { to.copy_from(from, transfer.len_bytes) };
        // The copy is complete. Another thread may be sleeping until it is reported.
        self.completions.push(transfer.token);
        self.ring(self.rank);
        Ok(())
    }

    fn map_regions(&self, sizes: &[RegionSizes]) -> Result<Attached, ConduitError> {
        let total = || sizes.iter().map(|s| s.pool_bytes as u128 + s.table_bytes as u128).sum::<u128>();
        let placement = Placement::of(sizes).ok_or_else(|| {
            ConduitError(format!("pools and tables of all ranks, {} bytes, are more than can be mapped", total()))
        })?;
        let arena = &self.job.objects.arena;
        // Every rank sets the same length, so nobody shrinks the file.
        set_len(arena.as_fd(), placement.end_bytes).map_err(|error| {
            let hint = if error == Errno::EFBIG { "; raise `ulimit -f`" } else { "" };
            ConduitError(format!("shared memory of {} bytes: {error}{hint}", placement.end_bytes))
        })?;
        let len_bytes = placement.end_bytes - placement.start_bytes;
        let mapping = Mapping::new(arena.as_fd(), placement.start_bytes as u64, len_bytes, POOL_ALIGN_BYTES).map_err(
            |error| {
                let hint = if error == Errno::ENOMEM { "; raise `ulimit -v`, or lower VGASNET_POOL_SIZE" } else { "" };
                ConduitError(format!("mapping {len_bytes} bytes of shared memory: {error}{hint}"))
            },
        )?;
        let region = |offset_bytes: &usize, len_bytes: usize| Region {
            address: mapping.at(offset_bytes - placement.start_bytes).expose_provenance(),
            len_bytes,
        };
        for (at, sizes) in placement.pools.iter().zip(sizes) {
            mapping.request_large_pages(at - placement.start_bytes, sizes.pool_bytes);
        }
        let attached = Attached {
            pools: placement.pools.iter().zip(sizes).map(|(at, s)| region(at, s.pool_bytes)).collect(),
            tables: placement.tables.iter().zip(sizes).map(|(at, s)| region(at, s.table_bytes)).collect(),
        };
        // Regions are handed out without a lifetime.
        std::mem::forget(mapping);
        Ok(attached)
    }
}

impl Conduit for SmpConduit {
    fn name(&self) -> &str {
        "smp"
    }

    fn rank(&self) -> Rank {
        Rank(self.rank)
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn host_of(&self, rank: Rank) -> u32 {
        assert!(rank.0 < self.ranks, "rank {rank} of {}", self.ranks);
        0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { peer_memory: true, wakes_on_arrival: true, second_mapping: true, signal_safe: true }
    }

    fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, ConduitError> {
        let _one_at_a_time = self.collective.lock().unwrap_or_else(PoisonError::into_inner);
        let control = &self.job.control;
        // SAFETY: the lock excludes other threads of this rank; the barriers of this exchange and of the previous one
        // separate this write from every read.
        unsafe { self.own_block().post_bulletin(mine) };
        self.meet();
        // SAFETY: every bulletin was posted before the barrier above, and is not posted again before the one below.
        let all: Vec<_> = (0..self.ranks).map(|rank| unsafe { control.block(rank).bulletin() }).collect();
        self.meet();
        let told = |(rank, told): (usize, Option<_>)| {
            told.ok_or_else(|| of_other_version(rank, "its contribution to an exchange"))
        };
        all.into_iter().enumerate().map(told).collect()
    }

    fn call_when_slow(&self, tell: fn(&[Rank], Duration)) {
        self.tell_slow.get_or_init(|| tell);
    }

    fn entrust(&self, file: BorrowedFd<'_>) {
        if let Some(launcher) = &self.job.launcher {
            // Without a launcher the job is about to end.
            let _ = entrust(launcher, self.rank, self.ranks, file);
        }
    }

    fn note_step(&self) {
        self.own_block().note_step();
    }

    fn awaited(&self) -> Option<Vec<Rank>> {
        let steps = |rank: u32| self.job.control.block(rank).steps();
        let own = steps(self.rank);
        let is_told_by_another = (0..self.rank).any(|rank| steps(rank) >= own);
        let behind = (0..self.ranks).filter(|&rank| steps(rank) < own && !is_told_by_another);
        Some(behind.map(Rank).collect())
    }

    fn have_all_stepped(&self) -> bool {
        let own = self.own_block().steps();
        (0..self.ranks).all(|rank| self.job.control.block(rank).steps() >= own)
    }

    fn attach(&self, sizes: RegionSizes) -> Result<(), ConduitError> {
        assert!(self.attached.get().is_none(), "attach was called before");
        let attached = self.map_regions(&sizes.of_all(self)?);
        agree(|told| self.exchange(told), &attached, &[])?;
        assert!(self.attached.set(attached?).is_ok(), "attach was called twice at once");
        self.own_block().set_state(RankState::Attached);
        Ok(())
    }

    fn pool(&self, rank: Rank) -> Option<Region> {
        self.attached.get()?.pools.get(rank.index()).copied()
    }

    fn table(&self, rank: Rank) -> Option<Region> {
        self.attached.get()?.tables.get(rank.index()).copied()
    }

    fn message_bytes_max(&self) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn send(&self, to: Rank, head: &[u8], body: &[u8], urgency: Urgency) -> Result<(), Busy> {
        match (self.job.control.inbox(to.0).push(self.rank, head, body, urgency), urgency) {
            (Ok(end), Urgency::WhenCalled) => self.ring_caller(to.0, end),
            (Ok(_), Urgency::Now) => self.ring(to.0),
            // The inbox may be full of messages that have woken nobody.
            (Err(Busy), _) => {
                self.ring(to.0);
                return Err(Busy);
            }
        }
        Ok(())
    }

    fn put(&self, transfer: &Transfer) -> Result<(), Busy> {
        let (own, peer) = self.ends(transfer);
        // SAFETY: both are the ends of the transfer.
        unsafe { self.copy(transfer, own, peer) }
    }

    fn get(&self, transfer: &Transfer) -> Result<(), Busy> {
        let (own, peer) = self.ends(transfer);
        // SAFETY: both are the ends of the transfer.
        unsafe { self.copy(transfer, peer, own) }
    }

    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        let inbox = self.job.control.inbox(self.rank);
        for arrivals in 0..POLL_ARRIVALS_MAX {
            if let Some(token) = self.completions.pop() {
                sink(Arrival::Complete(token));
                continue;
            }
            match inbox.pop(|from, bytes| sink(self.arrival(from, bytes))) {
                Ok(true) => {}
                Ok(false) => return arrivals > 0,
                Err(what) => {
                    sink(corrupt(&what));
                    return true;
                }
            }
        }
        true
    }

    fn has_arrivals(&self) -> bool {
        self.completions.has_any() || self.job.control.inbox(self.rank).has_record()
    }

    fn set_driving(&self, driving: bool) -> bool {
        let bell = &self.own_block().bell;
        if driving {
            bell.begin_driving();
        } else {
            bell.hand_over();
        }
        self.has_arrivals()
    }

    fn sleep(
        &self,
        sleeper: Sleeper,
        also: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
        stay_awake: &dyn Fn() -> bool,
    ) {
        let bell = &self.own_block().bell;
        let arrivals_matter = bell.begin_sleep(sleeper);
        // In this order: by contract `stay_awake` is called even when something has arrived.
        let stay = stay_awake() || (arrivals_matter && self.has_arrivals());
        let doorbell = self.job.objects.doorbell(self.rank, sleeper);
        let rung = !stay && wait_readable(doorbell.as_fd(), also, timeout);
        bell.end_sleep(sleeper);
        if rung {
            // Empty if another thread was faster; then there is nothing to read.
            let _ = nix::unistd::read(doorbell, &mut [0; 8]);
        }
    }

    fn wake(&self, rank: Rank) {
        self.ring(rank.0);
    }

    fn wake_caller(&self, rank: Rank) {
        if let Some(sleeper) = self.job.control.block(rank.0).bell.take_caller(|| false) {
            self.ring_sleeper(rank.0, sleeper);
        }
    }

    fn wake_helper(&self) {
        if self.own_block().bell.take_helper() {
            self.ring_sleeper(self.rank, Sleeper::Helper);
        }
    }

    fn close(&self) {
        self.own_block().set_state(RankState::Exiting(0));
    }

    fn note_exit(&self, status: i32) -> bool {
        self.own_block().set_state(RankState::Exiting(status));
        true
    }

    fn exit(&self, status: i32) -> ! {
        self.note_exit(status);
        // SAFETY: ends the process at once; no destructor or exit handler runs.
        unsafe { libc::_exit(status) }
    }
}

impl SmpConduit {
    /// A record of the inbox.
    fn arrival<'a>(&self, from: u32, bytes: &'a [u8]) -> Arrival<'a> {
        if from < self.ranks {
            return Arrival::Message { from: Rank(from), bytes };
        }
        corrupt(&format!("a message from rank {from}, and there are {}", self.ranks))
    }
}

/// The inbox's contents come from no rank of this version.
fn corrupt(what: &str) -> Arrival<'static> {
    Arrival::Corrupt(format!("the inbox has {what}; do all ranks run the same version of vgasnet?"))
}
