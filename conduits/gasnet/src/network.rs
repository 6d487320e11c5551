//! GASNet as a network between hosts.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use vgasnet_conduit::{
    Arrival, Busy, ConduitError, EXCHANGE_BYTES_MAX, Rank, Region, Transfer, Urgency, agree, check_versions, greet,
    of_other_version, page_bytes,
};
use vgasnet_hybrid::{Gather, Network, Next, Patience, PoolMemory};
use zerocopy::IntoBytes;

use crate::arguments::Arguments;
use crate::exit_hooks;
use crate::ffi::{self, Ends, INBOX};
use crate::inbox::MessageKind;
use crate::pools::{Pools, Told};
use crate::transfers::Direction;
use crate::transfers::{PageCopy, Transfers};

/// Maximum message size, unless GASNet's own limit is lower.
const MESSAGE_BYTES_MAX: usize = (32 << 10) + 256;

/// Maximum messages per poll, so that a flood does not keep the caller from other work.
const POLL_MESSAGES_MAX: usize = 64;

/// Maximum polls of GASNet per poll while bytes move and nothing is complete.
const LOOKS_MAX: u32 = 16;

/// Consecutive refusals after which a send waits for room: GASNet does not guarantee acceptance of a message at once.
const REFUSALS_MAX: u32 = 16;

/// Minimum bytes of a copy to announce to a peer that must poll for it.
const ANNOUNCED_BYTES_MIN: usize = 64 << 10;

/// Parts of an exchange that fit each other without forming a valid exchange.
const NO_EXCHANGE: &str =
    "the parts of an exchange make no sense together; do all ranks run the same version of vgasnet?";

/// Alignment of a pool in GASNet's memory, as of pools in ours.
const POOL_ALIGN_BYTES: usize = 4 << 20;

/// Time-out for the other ranks at the end of the job.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// One rank's end of GASNet.
pub struct GasnetNetwork {
    name: String,
    rank: Rank,
    ranks: u32,
    message_bytes_max: usize,
    segment_bytes_max: usize,
    /// The pool may be our memory, on every rank.
    takes_memory: bool,
    /// A rank must poll for others to reach its pool.
    needs_polls: bool,
    gather: Mutex<Gather>,
    transfers: Transfers,
    /// Start of GASNet's memory, if the pool lies in it.
    segment: OnceLock<usize>,
    pools: OnceLock<Pools>,
    /// Refused sends since the last accepted one.
    refusals: AtomicU32,
    is_closed: AtomicBool,
}

impl GasnetNetwork {
    /// Starts GASNet. Collective. A GASNet-1 creates its segment now, as large as possible, and the pool must fit.
    ///
    /// # Errors
    /// GASNet does not start.
    pub fn start(arguments: &Arguments) -> Result<GasnetNetwork, ConduitError> {
        // On this conduit the first rank forks the others, and there are no agents.
        if ffi::conduit() != "SMP" {
            vgasnet_hybrid::open_agent_link();
        }
        let started = ffi::start(arguments)?;
        exit_hooks::guard_exit();
        exit_hooks::leave_out_launcher();
        let rank = Rank(started.rank);
        let mut network = GasnetNetwork {
            name: crate::conduit_name(),
            rank,
            ranks: started.ranks,
            message_bytes_max: started.message_bytes_max.min(MESSAGE_BYTES_MAX),
            segment_bytes_max: started.segment_bytes_max,
            takes_memory: false,
            needs_polls: started.transfers_need_polls != 0,
            gather: Mutex::new(Gather::new(rank, started.ranks)),
            transfers: Transfers::new(started.transfers_are_threads_own != 0)?,
            segment: OnceLock::new(),
            pools: OnceLock::new(),
            refusals: AtomicU32::new(0),
            is_closed: AtomicBool::new(false),
        };
        let all = check_versions(network.exchange(&greet(&[u8::from(started.takes_memory != 0)]), &mut || {})?)?;
        network.takes_memory = all.iter().all(|told| told == &[1]);
        Ok(network)
    }

    /// Unwraps the result of a GASNet call. An error ends the job, since the transfers in flight are lost.
    fn insist<T>(&self, done: Result<T, ConduitError>) -> T {
        done.unwrap_or_else(|ConduitError(text)| vgasnet_hybrid::break_down(self, &text))
    }

    /// As [`Network::exchange`]; `None` on a time-out.
    fn exchange_until(&self, mine: &[u8], late: Option<Instant>, look: &mut dyn FnMut()) -> Option<Vec<Vec<u8>>> {
        let mut gather = self.gather.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut exchange, mut step) = gather.begin(mine, self.message_bytes_max);
        let mut patience = Patience::default();
        loop {
            match step {
                Next::Done(all) => return Some(all),
                Next::Send(to, parts) => {
                    parts.iter().for_each(|part| self.insist(ffi::send_patiently(to, MessageKind::Exchange, part)));
                    patience = Patience::default();
                }
                Next::Wait => {
                    // Peers' transfers may need this rank to poll.
                    self.insist(ffi::poll());
                    look();
                    patience.pause();
                    if late.is_some_and(|late| Instant::now() >= late) {
                        return None;
                    }
                }
            }
            for (from, part) in INBOX.take_exchange() {
                let what = || of_other_version(from.index(), "a part of an exchange");
                self.insist(gather.receive(&part).then_some(()).ok_or_else(what));
            }
            let what = || ConduitError(NO_EXCHANGE.to_owned());
            step = self.insist(gather.advance(&mut exchange, self.message_bytes_max).ok_or_else(what));
        }
    }

    /// Makes the pool GASNet's segment, unless it already lies in it.
    fn place(&self, pool: Region) -> Result<Told, ConduitError> {
        let mut place = Told {
            address: (pool.address as u64).into(),
            len_bytes: (pool.len_bytes as u64).into(),
            segment_offset_bytes: (self.segment.get().map_or(0, |segment| pool.address - segment) as u64).into(),
        };
        if self.segment.get().is_none() && self.takes_memory {
            let len_bytes = pool.len_bytes.next_multiple_of(page_bytes());
            // SAFETY: by contract the pool stays mapped, and it is shared memory. Mappings have whole pages.
            let bound = exit_hooks::with_launcher(|| unsafe { ffi::bind(Region { len_bytes, ..pool }) });
            place.address = (bound.map_err(|ConduitError(text)| self.no_room(len_bytes, &text))? as u64).into();
        }
        Ok(place)
    }

    fn no_room(&self, len_bytes: usize, why: &str) -> ConduitError {
        ConduitError(format!(
            "a pool of {len_bytes} bytes does not fit GASNet's segment of at most {} bytes: {why}; set GASNET_MAX_SEGSIZE to \
             more or VGASNET_POOL_SIZE to less",
            self.segment_bytes_max
        ))
    }

    /// Lets GASNet process arrivals, several times while bytes move, since they come in many parts.
    fn look(&self) -> Vec<PageCopy> {
        let mut complete = Vec::new();
        for _ in 0..LOOKS_MAX {
            if INBOX.has_room() {
                self.insist(ffi::poll());
            }
            complete = self.transfers.collect();
            if !complete.is_empty() || !INBOX.is_empty() || !self.is_moving() {
                break;
            }
        }
        complete
    }

    /// Whether bytes move only while this rank polls.
    fn is_moving(&self) -> bool {
        self.needs_polls && (self.transfers.count() > 0 || INBOX.has_remote_transfers())
    }

    fn start_copy(&self, direction: Direction, transfer: &Transfer) -> Result<(), Busy> {
        let ends = self.insist(self.ends(transfer));
        self.transfers.admit()?;
        let is_announced = self.needs_polls && ends.len_bytes >= ANNOUNCED_BYTES_MIN && ends.peer != self.rank;
        if is_announced {
            self.insist(ffi::send_patiently(ends.peer, MessageKind::RemoteTransfer, &[]));
        }
        let copy = PageCopy { direction, ends, token: transfer.token, is_announced };
        // SAFETY: `ends` has checked both against the pools, which stay mapped. By contract the bytes are untouched
        // until completion.
        unsafe { self.transfers.start(copy) };
        Ok(())
    }

    /// # Errors
    /// The peer has announced a smaller pool than its frames need.
    fn ends(&self, transfer: &Transfer) -> Result<Ends, ConduitError> {
        let pools = self.pools.get().expect("attach comes before any transfer");
        let end = |rank: Rank, offset_bytes: usize| {
            pools
                .of(rank)
                .get(offset_bytes, transfer.len_bytes)
                .ok_or_else(|| of_other_version(rank.index(), "the size of its pool"))
        };
        Ok(Ends {
            here: end(self.rank, transfer.own_offset_bytes)?,
            peer: transfer.peer,
            there: end(transfer.peer, transfer.peer_offset_bytes)?,
            len_bytes: transfer.len_bytes,
        })
    }
}

impl Network for GasnetNetwork {
    fn name(&self) -> &str {
        &self.name
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn exchange(&self, mine: &[u8], look: &mut dyn FnMut()) -> Result<Vec<Vec<u8>>, ConduitError> {
        assert!(mine.len() <= EXCHANGE_BYTES_MAX, "{} bytes are too many to exchange", mine.len());
        Ok(self.exchange_until(mine, None, look).expect("there is no time limit"))
    }

    fn pool_memory(&self) -> Option<&dyn PoolMemory> {
        (!self.takes_memory).then_some(self)
    }

    fn attach(&self, pool: Region) -> Result<(), ConduitError> {
        let placed = self.place(pool);
        let told = placed.as_ref().map_or(&[][..], IntoBytes::as_bytes);
        let all = agree(|told| self.exchange(told, &mut || {}), &placed, told)?;
        let pools = Pools::new(&all, ffi::is_neighbour)?;
        self.pools.get_or_init(|| pools);
        Ok(())
    }

    fn message_bytes_max(&self) -> usize {
        self.message_bytes_max
    }

    fn send(&self, to: Rank, head: &[u8], body: &[u8], _urgency: Urgency) -> Result<(), Busy> {
        if self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        if !INBOX.has_room() {
            return Err(Busy);
        }
        let message = [head, body].concat();
        if self.refusals.load(Ordering::Relaxed) >= REFUSALS_MAX {
            self.insist(ffi::send_patiently(to, MessageKind::Client, &message));
        } else if self.insist(ffi::send(to, MessageKind::Client, &message)).is_err() {
            self.refusals.fetch_add(1, Ordering::Relaxed);
            return Err(Busy);
        }
        self.refusals.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn put(&self, transfer: &Transfer) -> Result<(), Busy> {
        self.start_copy(Direction::Put, transfer)
    }

    fn get(&self, transfer: &Transfer) -> Result<(), Busy> {
        self.start_copy(Direction::Get, transfer)
    }

    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        if self.is_closed.load(Ordering::Acquire) {
            return false;
        }
        let complete = self.look();
        if let Some(from) = INBOX.sender_of_nonsense() {
            self.insist(Err(of_other_version(from.index(), "a message")))
        }
        let messages = INBOX.take(POLL_MESSAGES_MAX);
        for (from, bytes) in &messages {
            sink(Arrival::Message { from: *from, bytes });
        }
        for copy in &complete {
            sink(Arrival::Complete(copy.token));
            if copy.is_announced {
                self.insist(ffi::send_patiently(copy.ends.peer, MessageKind::RemoteTransferEnd, &[]));
            }
        }
        if !messages.is_empty() || !complete.is_empty() {
            return true;
        }
        let is_moving = self.is_moving();
        if is_moving {
            // The moving thread may need the processor, but nobody here should sleep for long.
            self.transfers.give_way();
        }
        is_moving
    }

    fn is_active(&self) -> bool {
        self.transfers.count() > 0 || INBOX.has_remote_transfers() || !INBOX.is_empty()
    }

    fn close(&self) {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return;
        }
        // The first process to end makes GASNet end the others, so their output must be complete.
        ffi::flush();
        exit_hooks::expect_exit();
        let _missing = self.exchange_until(&[], Some(Instant::now() + CLOSE_PATIENCE), &mut || {});
    }

    fn ends_jobs(&self, status: i32) -> bool {
        // Earlier, others are still running, and GASNet would end them by signals.
        status == 0 && self.is_closed.load(Ordering::Acquire)
    }

    fn exit(&self, status: i32) -> ! {
        exit_hooks::expect_exit();
        ffi::exit(status)
    }
}

impl PoolMemory for GasnetNetwork {
    fn allocate(&self, len_bytes: usize) -> Result<Region, ConduitError> {
        let wanted_bytes = len_bytes.saturating_add(POOL_ALIGN_BYTES).next_multiple_of(page_bytes());
        let fits = (wanted_bytes <= self.segment_bytes_max).then_some(());
        let fits = fits.ok_or_else(|| self.no_room(len_bytes, "it is too large"));
        // All of them or none: GASNet creates segments together.
        agree(|told| self.exchange(told, &mut || {}), &fits, &[])?;
        let allocated = exit_hooks::with_launcher(|| ffi::allocate(wanted_bytes));
        let (segment, own) = allocated.map_err(|ConduitError(text)| self.no_room(len_bytes, &text))?;
        let _first = self.segment.set(segment);
        Ok(Region { address: own.address.next_multiple_of(POOL_ALIGN_BYTES), len_bytes })
    }

    fn is_mapped(&self, rank: Rank) -> bool {
        ffi::is_neighbour(rank)
    }

    fn of(&self, rank: Rank) -> Option<Region> {
        let pools = self.pools.get()?;
        let address = ffi::mapped(rank)? + pools.offset_bytes(rank)?;
        Some(Region { address, ..pools.of(rank) })
    }
}
