//! Virtual time: the events on links, disks and processors.

use crate::hints::{Hints, Known};
use crate::machine::Machine;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vgasnet_conduit::{Rank, Token, Transfer};
use vgasnet_engine::messages_in;
use vgasnet_protocol::coherence::{CoherenceBody, CoherenceMessage, ToCache, ToHome};

/// Nanoseconds since the start of the job.
pub type Nanos = u64;

/// A result of polling.
#[derive(Debug)]
pub enum Arrived {
    /// A message.
    Message { from: Rank, bytes: Box<[u8]> },
    /// A put or get is complete.
    Complete(Token),
}

/// An event.
#[derive(Debug)]
pub enum Happening {
    /// Bytes start to arrive at a node.
    Incoming { node: usize, bytes: u64, to: Rank, arrived: Arrived, after: Nanos },
    /// All bytes have arrived at a rank.
    Arrival { to: Rank, arrived: Arrived },
    /// A get reaches the rank that has the bytes.
    Asked { by: Rank, transfer: Transfer },
    /// A disk operation of a rank completes.
    Disk { rank: Rank, token: u64 },
    /// A rank's engine is to be driven.
    Drive(Rank),
    /// A rank's client continues.
    Client(Rank),
}

/// Counters of the job's traffic.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    pub messages: u64,
    /// Pages received by ranks, counted by messages.
    pub pages: u64,
    /// Orders to serve a page sent to ranks that no longer had a copy.
    pub bounces: u64,
    /// Messages containing only notices of clean evictions.
    pub notices: u64,
    pub transfers: u64,
    pub transferred_bytes: u64,
    pub disk_reads: u64,
    pub disk_writes: u64,
}

/// The virtual machine of a job.
pub struct World {
    machine: Machine,
    state: Mutex<WorldState>,
}

#[derive(Default)]
struct WorldState {
    now: Nanos,
    agenda: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    happenings: Vec<Option<Happening>>,
    free: Vec<usize>,
    begun: u64,
    /// The time until which each rank's driving thread is busy.
    drivers: Vec<Nanos>,
    /// Ranks with a pending [`Happening::Drive`].
    called: Vec<bool>,
    sending: Vec<Nanos>,
    receiving: Vec<Nanos>,
    disks: Vec<Nanos>,
    inboxes: Vec<VecDeque<Arrived>>,
    finished: Vec<VecDeque<u64>>,
    traffic: Traffic,
    known: Known,
}

impl World {
    pub fn new(machine: Machine, ranks: u32, hints: Hints) -> World {
        let nodes = ranks.div_ceil(machine.node.ranks) as usize;
        let each = ranks as usize;
        let state = WorldState {
            drivers: vec![0; each],
            called: vec![false; each],
            sending: vec![0; nodes],
            receiving: vec![0; nodes],
            disks: vec![0; nodes],
            inboxes: (0..each).map(|_| VecDeque::new()).collect(),
            finished: (0..each).map(|_| VecDeque::new()).collect(),
            known: Known::new(hints, ranks, (machine.node.pool / machine.node.page) as u32),
            ..WorldState::default()
        };
        World { machine, state: Mutex::new(state) }
    }

    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    pub fn node_of(&self, rank: Rank) -> u32 {
        rank.0 / self.machine.node.ranks
    }

    fn state(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Nanos {
        self.state().now
    }

    pub fn traffic(&self) -> Traffic {
        self.state().traffic
    }

    /// Advances the time to the next event, and returns it.
    pub fn next(&self) -> Option<Happening> {
        let mut state = self.state();
        let Reverse((time, _, place)) = state.agenda.pop()?;
        state.now = time;
        state.free.push(place);
        let happening = state.happenings[place].take();
        if let Some(Happening::Drive(rank)) = &happening {
            state.called[rank.index()] = false;
        }
        happening
    }

    /// Whether no event is left.
    pub fn is_quiet(&self) -> bool {
        self.state().agenda.is_empty()
    }

    /// Advances the time until no driving thread is busy. No event may be left.
    pub fn settle_drivers(&self) {
        let mut state = self.state();
        debug_assert!(state.agenda.is_empty());
        state.now = state.drivers.iter().copied().fold(state.now, Nanos::max);
    }

    /// Schedules an event after a delay.
    pub fn after(&self, delay: Nanos, happening: Happening) {
        let mut state = self.state();
        let time = state.now + delay;
        state.at(time, happening);
    }

    /// Keeps a rank's driving thread busy for a duration. Returns the end time.
    pub fn spend(&self, rank: Rank, nanos: Nanos) -> Nanos {
        self.state().spend(rank, nanos)
    }

    /// Schedules a rank's engine to be driven as soon as its thread is free.
    pub fn call(&self, rank: Rank) {
        self.state().call(rank);
    }

    /// The time of a thread for copying this number of bytes.
    pub fn copying(&self, bytes: u64) -> Nanos {
        during(bytes, self.machine.node.copy)
    }

    /// Sends a message.
    pub fn send(&self, from: Rank, to: Rank, bytes: Box<[u8]>) {
        let len = bytes.len() as u64 + MESSAGE_HEAD_BYTES;
        let sending = nanos(self.machine.node.message_us * SENDERS_PART);
        let mut state = self.state();
        let is_known = state.note(from, to, &bytes);
        let ready = state.spend(from, sending);
        if is_known {
            return state.at(ready, Happening::Arrival { to, arrived: Arrived::Message { from, bytes } });
        }
        self.carry(&mut state, ready, from, to, len, to, Arrived::Message { from, bytes }, 0);
    }

    /// Starts a put. It ends when the acknowledgement has come back.
    pub fn put(&self, rank: Rank, transfer: &Transfer) {
        let mut state = self.state();
        let ready = state.spend(rank, 0);
        state.traffic.note_transfer(transfer);
        let back = nanos(self.machine.link.latency_us);
        let done = Arrived::Complete(transfer.token);
        self.carry(&mut state, ready, rank, transfer.peer, transfer.len_bytes as u64, rank, done, back);
    }

    /// Starts a get.
    pub fn get(&self, rank: Rank, transfer: &Transfer) {
        let mut state = self.state();
        let ready = state.spend(rank, 0);
        state.traffic.note_transfer(transfer);
        let time = ready + nanos(self.machine.link.latency_us);
        state.at(time, Happening::Asked { by: rank, transfer: *transfer });
    }

    /// Sends the bytes requested from a rank, without its help.
    pub fn answer(&self, by: Rank, transfer: &Transfer) {
        let mut state = self.state();
        let (now, done) = (state.now, Arrived::Complete(transfer.token));
        self.carry(&mut state, now, transfer.peer, by, transfer.len_bytes as u64, by, done, 0);
    }

    /// Carries bytes from one rank to another, starting at `ready`. `whom` is told this `after` their arrival.
    #[expect(clippy::too_many_arguments, reason = "each is one thing about the same bytes")]
    fn carry(
        &self,
        state: &mut WorldState,
        ready: Nanos,
        from: Rank,
        to: Rank,
        bytes: u64,
        whom: Rank,
        arrived: Arrived,
        after: Nanos,
    ) {
        let (source, target) = (self.node_of(from) as usize, self.node_of(to) as usize);
        if source == target {
            let time = ready + self.copying(bytes) + LOCAL_NANOS + after.min(LOCAL_NANOS);
            return state.at(time, Happening::Arrival { to: whom, arrived });
        }
        let begun = ready.max(state.sending[source]);
        state.sending[source] = begun + during(bytes, self.machine.link.bandwidth);
        let time = begun + nanos(self.machine.link.latency_us);
        state.at(time, Happening::Incoming { node: target, bytes, to: whom, arrived, after });
    }

    /// Receives bytes at a node, after the bytes already coming in.
    pub fn receive(&self, node: usize, bytes: u64, to: Rank, arrived: Arrived, after: Nanos) {
        let mut state = self.state();
        let begun = state.now.max(state.receiving[node]);
        let ended = begun + during(bytes, self.machine.link.bandwidth);
        state.receiving[node] = ended;
        state.at(ended + after, Happening::Arrival { to, arrived });
    }

    /// Delivers something for a rank's next poll.
    pub fn deliver(&self, to: Rank, arrived: Arrived) {
        let mut state = self.state();
        state.inboxes[to.index()].push_back(arrived);
        state.call(to);
    }

    /// The next thing found by a polling rank. Handling it takes time.
    pub fn take_arrival(&self, rank: Rank) -> Option<Arrived> {
        let mut state = self.state();
        let arrived = state.inboxes[rank.index()].pop_front()?;
        state.spend(rank, nanos(self.machine.node.message_us));
        Some(arrived)
    }

    pub fn has_arrivals(&self, rank: Rank) -> bool {
        !self.state().inboxes[rank.index()].is_empty()
    }

    /// Starts a disk operation of a rank.
    pub fn start_disk(&self, rank: Rank, bytes: u64, is_write: bool, token: u64) {
        let disk = &self.machine.disk;
        let node = self.node_of(rank) as usize;
        let mut state = self.state();
        let ready = state.spend(rank, 0);
        let (bandwidth, count) = if is_write {
            (disk.write, &mut state.traffic.disk_writes)
        } else {
            (disk.read, &mut state.traffic.disk_reads)
        };
        *count += 1;
        let ended = ready.max(state.disks[node]) + during(bytes, bandwidth);
        state.disks[node] = ended;
        state.at(ended + nanos(disk.latency_us), Happening::Disk { rank, token });
    }

    /// Completes a disk operation.
    pub fn end_disk(&self, rank: Rank, token: u64) {
        let mut state = self.state();
        state.finished[rank.index()].push_back(token);
        state.call(rank);
    }

    /// The next completed disk operation of a rank.
    pub fn take_finished(&self, rank: Rank) -> Option<u64> {
        self.state().finished[rank.index()].pop_front()
    }
}

/// Overhead of a message on the wire.
pub const MESSAGE_HEAD_BYTES: u64 = 64;

/// Latency between two ranks of a node, in microseconds.
pub const LOCAL_US: f64 = 0.3;
const LOCAL_NANOS: Nanos = (LOCAL_US * 1e3) as Nanos;

/// The sender's cost of a message, as a fraction of the receiver's.
const SENDERS_PART: f64 = 0.5;
/// The cost of a message at both ends.
pub const HANDLINGS: f64 = 1.0 + SENDERS_PART;

impl WorldState {
    fn at(&mut self, time: Nanos, happening: Happening) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.happenings.push(None);
            self.happenings.len() - 1
        });
        self.happenings[place] = Some(happening);
        self.begun += 1;
        self.agenda.push(Reverse((time, self.begun, place)));
    }

    fn spend(&mut self, rank: Rank, nanos: Nanos) -> Nanos {
        let busy = &mut self.drivers[rank.index()];
        *busy = self.now.max(*busy) + nanos;
        *busy
    }

    /// Takes note of a message. Returns whether the sender already knows the answer of the home: a holder of the
    /// requested page.
    fn note(&mut self, from: Rank, to: Rank, bytes: &[u8]) -> bool {
        let (mut is_known, mut has_notices_alone) = (false, true);
        for message in messages_in(bytes) {
            let message = CoherenceMessage::decode(message).ok();
            let body = message.map(|message| message.body);
            has_notices_alone &= matches!(body, Some(CoherenceBody::Home(ToHome::Forget { .. })));
            if let Some(message) = message {
                self.traffic.note(&message);
                is_known |= self.known.note(from, to, &message);
            }
        }
        self.traffic.messages += 1;
        self.traffic.notices += u64::from(has_notices_alone);
        is_known
    }

    fn call(&mut self, rank: Rank) {
        if !std::mem::replace(&mut self.called[rank.index()], true) {
            let time = self.now.max(self.drivers[rank.index()]);
            self.at(time, Happening::Drive(rank));
        }
    }
}

impl Traffic {
    /// Counts a message of the protocol.
    fn note(&mut self, message: &CoherenceMessage) {
        match message.body {
            CoherenceBody::Home(ToHome::Nack { .. }) => self.bounces += 1,
            CoherenceBody::Cache(ToCache::Data { .. }) => self.pages += 1,
            _ => {}
        }
    }

    fn note_transfer(&mut self, transfer: &Transfer) {
        self.transfers += 1;
        self.transferred_bytes += transfer.len_bytes as u64;
    }
}

/// Microseconds as nanoseconds.
pub fn nanos(us: f64) -> Nanos {
    (us * 1e3).round() as Nanos
}

/// The time for this number of bytes at a bandwidth.
fn during(bytes: u64, bandwidth: u64) -> Nanos {
    (u128::from(bytes) * 1_000_000_000 / u128::from(bandwidth)) as Nanos
}
