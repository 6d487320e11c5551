//! MPI as a network between hosts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use vgasnet_conduit::{
    Arrival, Busy, ConduitError, EXCHANGE_BYTES_MAX, Rank, Region, Token, Transfer, Urgency, of_other_version,
};
use vgasnet_hybrid::{Gather, Network, Next, Patience};

use crate::ffi::{self, Mpi};
use crate::hydra::Hydra;
use crate::state::{InFlight, MESSAGE_BYTES_MAX};

/// Maximum messages per poll, so that a flood does not keep the caller from other work.
const POLL_MESSAGES_MAX: usize = 64;

/// Time-out for departing messages at the end of the job.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Time without polls before a rank ends MPI, if the launcher has no barrier: by then the other ranks are quiet too,
/// unless starved of processor time.
const QUIET: Duration = Duration::from_millis(10);

/// Time-out of MPI's end, after the end of all ranks' programs.
const FINALIZE_PATIENCE: Duration = Duration::from_millis(500);

/// Parts of an exchange that fit each other without forming a valid exchange.
const NO_EXCHANGE: &str =
    "the parts of an exchange make no sense together; do all ranks run the same version of vgasnet?";

/// One rank's end of MPI.
pub struct MpiNetwork {
    rank: Rank,
    ranks: u32,
    state: Mutex<InFlight>,
    gather: Mutex<Gather>,
    /// Arrivals during start-up, when nobody polls.
    kept: Mutex<Vec<Kept>>,
    is_active: AtomicBool,
    /// Counts entries into MPI and exits from it; changed under the lock of the state.
    entered_and_left: AtomicU64,
    is_closed: AtomicBool,
}

/// Called when MPI is about to end.
static LEAVE: OnceLock<fn()> = OnceLock::new();

/// MPI is ending, so this crate must not end it.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The process ends without MPI's end, and this crate leaves MPI alone.
static IS_ABANDONED: AtomicBool = AtomicBool::new(false);

pub(crate) fn abandon() {
    IS_ABANDONED.store(true, Ordering::Release);
}

/// The program ends MPI. MPI reports this even if the program does not call the library's function.
pub(crate) extern "C" fn on_end() {
    if IS_ENDING.swap(true, Ordering::AcqRel) {
        return;
    }
    if let Some(leave) = LEAVE.get() {
        leave();
    }
}

/// An arrival not passed on yet.
enum Kept {
    Message(Rank, Vec<u8>),
    Complete(Token),
    Corrupt(String),
}

impl Kept {
    fn as_arrival(&self) -> Arrival<'_> {
        match self {
            Kept::Message(from, bytes) => Arrival::Message { from: *from, bytes },
            Kept::Complete(token) => Arrival::Complete(*token),
            Kept::Corrupt(what) => Arrival::Corrupt(what.clone()),
        }
    }
}

impl From<Arrival<'_>> for Kept {
    fn from(arrival: Arrival<'_>) -> Kept {
        match arrival {
            Arrival::Message { from, bytes } => Kept::Message(from, bytes.to_vec()),
            Arrival::Complete(token) => Kept::Complete(token),
            Arrival::Corrupt(what) => Kept::Corrupt(what),
        }
    }
}

impl MpiNetwork {
    /// Starts MPI, or uses the program's. Collective.
    ///
    /// # Errors
    /// MPI does not allow calls from several threads.
    pub fn start() -> Result<MpiNetwork, ConduitError> {
        vgasnet_hybrid::open_agent_link();
        let (mut mpi, started) = Mpi::start()?;
        let is_ours = started.was_there == 0;
        check_threads(started.threads, is_ours)?;
        mpi.make_communicators()?;
        Ok(MpiNetwork {
            rank: Rank(started.rank as u32),
            ranks: started.ranks as u32,
            state: Mutex::new(InFlight::new(mpi)?),
            gather: Mutex::new(Gather::new(Rank(started.rank as u32), started.ranks as u32)),
            kept: Mutex::default(),
            is_active: AtomicBool::new(false),
            entered_and_left: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        })
    }

    fn poll_network(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        self.with(|state| {
            let mut messages = 0;
            while messages < POLL_MESSAGES_MAX && state.receive(sink)? {
                messages += 1;
            }
            Ok(state.advance(sink)? || messages > 0)
        })
    }

    /// Sends a part of an exchange, keeping arrivals while there is no room.
    fn send_part(&self, to: Rank, part: &[u8]) {
        while self.with(|state| state.send_part(to, part)).is_err() {
            self.keep_arrivals();
        }
    }

    /// Polls for the exchange and for peers' transfers, and keeps arrivals without a receiver yet.
    fn keep_arrivals(&self) {
        self.poll_network(&mut |arrival| self.kept().push(Kept::from(arrival)));
    }

    /// Waits until no rank polls, so that `MPI_Finalize` begins everywhere before any rank is answered in it.
    ///
    /// Over UCX and TCP, MPICH 4.0's `MPI_Finalize` asks each peer whether all bytes have arrived, polls for the
    /// answers, and then waits in a barrier of the launcher's without polling. A rank asking after it has answered all
    /// others would never be answered itself.
    fn be_quiet_together(&self) {
        if self.ranks == 1 {
            return;
        }
        // An error means a rank has already ended; then there is nothing to wait for.
        let Ok(mut barrier) = self.state().mpi.barrier() else { return };
        let mut patience = Patience::default();
        let have_all_come = loop {
            match barrier.test(&mut self.state().mpi) {
                Ok(false) => patience.pause(),
                tested => break tested.is_ok(),
            }
        };
        if !have_all_come || !self.meet_at_launcher() {
            std::thread::sleep(QUIET);
        }
    }

    /// Waits until no rank polls, by a barrier independent of MPI, if there is one: a rank starved of processor time
    /// may poll at any later time. Other ranks wait for nothing more from this rank once they have its messages.
    /// Returns whether it has waited.
    fn meet_at_launcher(&self) -> bool {
        if !self.state().mpi.talks_pmi1() {
            return false;
        }
        let Some(hydra) = Hydra::of_this_rank() else { return false };
        // Until all have entered, some may lack messages MPI has kept here.
        let have_all = hydra.barrier(|| self.state().mpi.poll());
        have_all.and_then(|()| hydra.barrier(|| ())).is_ok()
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, InFlight> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs code on MPI. An error ends the job, since the transfers in flight are lost.
    fn with<T>(&self, what: impl FnOnce(&mut InFlight) -> Result<T, ConduitError>) -> T {
        let mut state = self.state();
        self.entered_and_left.fetch_add(1, Ordering::Relaxed);
        let done = what(&mut state);
        self.entered_and_left.fetch_add(1, Ordering::Relaxed);
        self.is_active.store(state.is_active(), Ordering::Relaxed);
        drop(state);
        done.unwrap_or_else(|ConduitError(text)| vgasnet_hybrid::break_down(self, &text))
    }
}

/// A helper thread drives the network, so MPI must accept calls from a thread other than the first, and concurrent ones
/// if the program calls MPI too.
fn check_threads(threads: i32, is_ours: bool) -> Result<(), ConduitError> {
    const NAMES: [&str; 4] =
        ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"];
    const SERIALIZED: i32 = 2;
    const MULTIPLE: i32 = 3;
    let name = NAMES.get(threads as usize).copied().unwrap_or("no thread level");
    if is_ours && threads < SERIALIZED {
        return Err(ConduitError(format!(
            "this MPI offers {name}; vgasnet needs MPI_THREAD_SERIALIZED at least: use another MPI"
        )));
    }
    if !is_ours && threads < MULTIPLE {
        return Err(ConduitError(format!(
            "the program initialised MPI with {name}, and a thread of vgasnet calls MPI too; ask MPI_Init_thread for \
             MPI_THREAD_MULTIPLE, call vgasnet_init first, link -lvgasnet before MPI, or, if the program calls MPI_Init, \
             set OMPI_MPI_THREAD_LEVEL=3 for Open MPI, MPIR_CVAR_DEFAULT_THREAD_LEVEL=MPI_THREAD_MULTIPLE for MPICH"
        )));
    }
    Ok(())
}

impl Network for MpiNetwork {
    fn name(&self) -> &str {
        "mpi"
    }

    fn rank(&self) -> Rank {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn exchange(&self, mine: &[u8], look: &mut dyn FnMut()) -> Result<Vec<Vec<u8>>, ConduitError> {
        assert!(mine.len() <= EXCHANGE_BYTES_MAX, "{} bytes are too many to exchange", mine.len());
        let mut gather = self.gather.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut exchange, mut step) = gather.begin(mine, MESSAGE_BYTES_MAX);
        let mut patience = Patience::default();
        loop {
            match step {
                Next::Done(all) => {
                    // Nobody may poll for a long time, and others wait for the departing messages.
                    while self.with(InFlight::is_sending) {
                        self.keep_arrivals();
                    }
                    return Ok(all);
                }
                Next::Send(to, parts) => {
                    parts.iter().for_each(|part| self.send_part(to, part));
                    patience = Patience::default();
                }
                Next::Wait => {
                    self.keep_arrivals();
                    look();
                    patience.pause();
                }
            }
            for (from, part) in self.with(|state| Ok(state.take_parts())) {
                if !gather.receive(&part) {
                    return Err(of_other_version(from.index(), "a part of an exchange"));
                }
            }
            step =
                gather.advance(&mut exchange, MESSAGE_BYTES_MAX).ok_or_else(|| ConduitError(NO_EXCHANGE.to_owned()))?;
        }
    }

    fn attach(&self, pool: Region) -> Result<(), ConduitError> {
        self.state().set_pool(pool);
        self.exchange(&[], &mut || {}).map(drop)
    }

    fn message_bytes_max(&self) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn send(&self, to: Rank, head: &[u8], body: &[u8], urgency: Urgency) -> Result<(), Busy> {
        self.with(|state| state.send(to, head, body, urgency))
    }

    fn put(&self, transfer: &Transfer) -> Result<(), Busy> {
        self.with(|state| state.put(transfer))
    }

    fn get(&self, transfer: &Transfer) -> Result<(), Busy> {
        self.with(|state| state.get(transfer))
    }

    fn poll(&self, sink: &mut dyn FnMut(Arrival<'_>)) -> bool {
        if self.is_closed.load(Ordering::Acquire) {
            return false;
        }
        let kept = std::mem::take(&mut *self.kept());
        for arrival in &kept {
            sink(arrival.as_arrival());
        }
        self.poll_network(sink) || !kept.is_empty()
    }

    fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    fn call_under_way(&self) -> Option<u64> {
        let times = self.entered_and_left.load(Ordering::Relaxed);
        (times % 2 == 1).then_some(times)
    }

    fn call_before_end(&self, leave: fn()) {
        if LEAVE.set(leave).is_ok() {
            self.with(|state| state.mpi.call_before_end(on_end));
        }
    }

    fn is_abandoned(&self) -> bool {
        IS_ABANDONED.load(Ordering::Acquire)
    }

    fn close(&self) {
        if self.is_closed.swap(true, Ordering::AcqRel) || self.state().mpi.is_finalized() {
            return;
        }
        let late = Instant::now() + CLOSE_PATIENCE;
        while !self.with(InFlight::close) && Instant::now() < late {
            std::thread::yield_now();
        }
        // The process is ending, whoever started MPI.
        if IS_ENDING.load(Ordering::Acquire) {
            return self.be_quiet_together();
        }
        vgasnet_hybrid::finish(FINALIZE_PATIENCE, || {
            self.be_quiet_together();
            self.with(|state| state.mpi.finalize());
        });
    }

    fn exit(&self, status: i32) -> ! {
        if !self.is_closed.load(Ordering::Acquire) {
            ffi::abort(status);
        }
        std::process::exit(status)
    }
}
