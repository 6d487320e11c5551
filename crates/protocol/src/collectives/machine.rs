//! The collectives of one rank as a state machine.
//!
//! ```text
//!          its turn          all transfers through              local steps done
//! (queued) ────────▶ round ───────────────────────▶ local steps ────────────────▶ next round … finished
//!
//! a send:     AwaitingReady ──Ready came──▶ Moving ──all bytes sent──▶ Through
//! a receive:                 (says Ready)   Moving ──all bytes written──▶ Through
//! ```
//!
//! A receiver sends Ready on reaching the round of the transfer, and the sender waits for it. Bytes therefore never
//! arrive early and go straight to their destination. Only small messages may arrive early: Ready, signals, and barrier
//! messages. They are kept as notes.
//!
//! A rank runs at most [`WINDOW`] collectives of a team at once and queues further ones where they were started. A peer
//! finishes no collective before this rank has answered its messages, which bounds the notes to `WINDOW` × 2 per peer
//! and team.
//!
//! Large transfers are read by the receiver: see `reading.rs`.

use super::action::{Action, Misfit, Sending, is_announced};
use super::in_flight::{EarlyBarrier, Note, NoteKind, Operation, TransferSide, TransferState, find, tell_barrier};
use super::message::{CollectiveBody, CollectiveKey, CollectiveMessage};
use super::plan::{BufferOffset, Plan, Transfer};
use super::team::Team;
use crate::Rank;
use crate::barrier::{Misuse, Name};
use alloc::collections::BTreeMap;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;
use slab::Slab;

/// Maximum number of collectives of a team in flight at a rank.
pub const WINDOW: usize = 16;

/// Maximum payload of a message: two such messages fill half of a rank's credit at another rank.
pub const PAYLOAD_BYTES_MAX: usize = 32 << 10;

const TEAM_STAYS: &str = "a team stays while its collectives are under way";

/// The arrived payload of a message of a collective.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// The collective, for [`Machine::client`].
    pub operation: usize,
    /// The index among the receives of its round.
    transfer: usize,
    /// Destination of the payload.
    pub place: BufferOffset,
    len_bytes: usize,
}

/// The driver's data of a collective.
pub trait Client {
    /// The collective's turn has come; it needs `scratch_bytes` bytes of memory besides the client's.
    fn begin(&mut self, scratch_bytes: usize);
}

/// The collectives of one rank. `T` is the driver's data of each.
#[derive(Debug)]
pub struct Machine<T> {
    /// The teams this rank belongs to, by name.
    pub teams: BTreeMap<u64, Team<T>>,
    /// The collectives in flight.
    pub(super) operations: Slab<Operation<T>>,
    pub(super) by_key: BTreeMap<CollectiveKey, usize>,
    /// Messages of collectives not started here yet.
    early: BTreeMap<CollectiveKey, Vec<Note>>,
    /// Messages of barriers of teams not known to this rank yet.
    early_barriers: BTreeMap<u64, Vec<EarlyBarrier>>,
    pub(super) actions: VecDeque<Action<T>>,
    /// Actions deferred for lack of credit.
    stalled: Vec<Action<T>>,
}

impl<T> Default for Machine<T> {
    fn default() -> Machine<T> {
        Machine {
            teams: BTreeMap::new(),
            operations: Slab::new(),
            by_key: BTreeMap::new(),
            early: BTreeMap::new(),
            early_barriers: BTreeMap::new(),
            actions: VecDeque::new(),
            stalled: Vec::new(),
        }
    }
}

impl<T: Client> Machine<T> {
    /// Adds a team this rank belongs to. Messages of its barrier may have arrived already.
    ///
    /// # Errors
    /// One of them makes no sense.
    pub fn add_team(&mut self, id: u64, team: Team<T>) -> Result<(), Misfit> {
        self.teams.insert(id, team);
        let early = self.early_barriers.remove(&id).unwrap_or_default();
        early.into_iter().try_for_each(|EarlyBarrier { sender, from, message }| {
            self.check_sender(id, sender, from)?;
            self.on_barrier(id, EarlyBarrier { sender, from, message })
        })
    }

    /// Starts a collective of an added team. It takes its turn after earlier ones.
    pub fn start(&mut self, team: u64, plan: Plan, client: T) {
        let its = self.teams.get_mut(&team).expect("the caller looked the team up");
        let key = CollectiveKey { team, number: its.next_number };
        its.next_number = its.next_number.wrapping_add(1);
        its.queued.push_back((key, plan, client));
        self.fill_window(team);
    }

    /// The client notifies at the barrier of an added team.
    ///
    /// # Errors
    /// [`Misuse::NotifiedTwice`] if the client has not ended the previous phase.
    pub fn notify(&mut self, team: u64, name: Name) -> Result<(), Misuse> {
        let its = self.teams.get_mut(&team).expect("the caller looked the team up");
        let Team { barrier, members, me, .. } = its;
        barrier.notify(name, &mut tell_barrier(team, *me, members, &mut self.actions))
    }

    /// A message arrived from a rank of the job, with `len_bytes` bytes of payload. Returns the payload's destination,
    /// if there is a payload; call [`Machine::on_written`] after writing it.
    ///
    /// # Errors
    /// The sender is not the team's rank named in the message, no transfer of this rank waits for the payload, or the
    /// payload exceeds the transfer.
    pub fn on_message(
        &mut self,
        sender: Rank,
        message: &CollectiveMessage,
        len_bytes: usize,
    ) -> Result<Option<Arrived>, Misfit> {
        let CollectiveMessage { key, from, body } = *message;
        self.check_sender(key.team, sender, from)?;
        match body {
            CollectiveBody::Bytes { tag, offset_bytes } if len_bytes > 0 => {
                let operation = *self.by_key.get(&key).ok_or(Misfit)?;
                let receives = &mut self.operations[operation].receives;
                let transfer = find(receives, from, tag, TransferState::Moving).ok_or(Misfit)?;
                let receive = &mut receives[transfer];
                let Transfer { place, len_bytes: expected, .. } = receive.transfer;
                let ends_by = |start: usize| start.checked_add(len_bytes).is_some_and(|end| end <= expected);
                let offset_bytes = usize::try_from(offset_bytes).map_err(|_| Misfit)?;
                // Duplicate bytes would end the transfer while others are still being written.
                if !ends_by(offset_bytes) || !ends_by(receive.arrived_bytes) {
                    return Err(Misfit);
                }
                receive.arrived_bytes += len_bytes;
                Ok(Some(Arrived { operation, transfer, place: place.after(offset_bytes), len_bytes }))
            }
            _ if len_bytes > 0 => Err(Misfit),
            CollectiveBody::Bytes { tag, .. } => self.on_note(key, Note { from, tag, kind: NoteKind::Signal }),
            CollectiveBody::Ready { tag } => self.on_note(key, Note { from, tag, kind: NoteKind::Ready }),
            CollectiveBody::Announce { tag, source } => {
                self.on_note(key, Note { from, tag, kind: NoteKind::Announced(source) })
            }
            CollectiveBody::Taken { tag } => self.on_taken(key, from, tag).map(|()| None),
            CollectiveBody::Barrier(message) => {
                self.on_barrier(key.team, EarlyBarrier { sender, from, message }).map(|()| None)
            }
        }
    }

    /// An arrived payload has been written to its destination.
    pub fn on_written(&mut self, arrived: Arrived) {
        let operation = &mut self.operations[arrived.operation];
        let receive = &mut operation.receives[arrived.transfer];
        receive.moved_bytes += arrived.len_bytes;
        assert!(receive.moved_bytes <= receive.arrived_bytes, "bytes have arrived before they are written");
        if receive.moved_bytes == receive.transfer.len_bytes {
            receive.state = TransferState::Through;
            self.on_through(arrived.operation);
        }
    }

    /// An [`Action::Send`] is done.
    pub fn on_sent(&mut self, sent: Sending) {
        let is_moving = self.operations[sent.operation].sends[sent.transfer].state == TransferState::Moving;
        assert!(is_moving, "the bytes of a transfer are sent once its receiver is ready");
        let operation = &mut self.operations[sent.operation];
        let send = &mut operation.sends[sent.transfer];
        send.moved_bytes += sent.len_bytes;
        assert!(send.moved_bytes <= send.transfer.len_bytes, "each byte of a transfer is sent once");
        if send.moved_bytes == send.transfer.len_bytes {
            send.state = TransferState::Through;
            self.on_through(sent.operation);
        } else {
            self.send(sent.operation, sent.transfer);
        }
    }

    /// An [`Action::Do`] is done.
    pub fn on_done(&mut self, operation: usize) {
        self.next_round(operation);
    }

    /// An [`Action::Finish`] of this team was taken, so a queued collective may begin.
    pub fn on_finished(&mut self, team: u64) {
        let its = self.teams.get_mut(&team).expect(TEAM_STAYS);
        assert!(its.active > 0, "the collective that has finished was under way");
        its.active -= 1;
        self.fill_window(team);
    }

    /// Takes the next action.
    pub fn next_action(&mut self) -> Option<Action<T>> {
        self.actions.pop_front()
    }

    /// Puts back an action without credit.
    pub fn stall(&mut self, action: Action<T>) {
        self.stalled.push(action);
    }

    /// Queues the actions put back: there may be credit again.
    pub fn retry(&mut self) {
        self.actions.extend(self.stalled.drain(..));
    }

    /// Whether there are actions.
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Whether actions were put back for lack of credit.
    pub fn is_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// The driver's data of a collective, available from its first action to [`Action::Finish`].
    pub fn client(&self, operation: usize) -> &T {
        &self.operations[operation].client
    }

    /// Whether nothing is in flight or noted.
    #[cfg(test)]
    pub fn is_quiet(&self) -> bool {
        let idle = self.operations.is_empty() && self.by_key.is_empty() && self.actions.is_empty();
        idle && self.stalled.is_empty() && self.early.is_empty() && self.early_barriers.is_empty()
    }

    /// Number of notes kept.
    #[cfg(test)]
    pub fn notes(&self) -> usize {
        let entered = self.operations.iter().map(|(_, operation)| operation.notes.len());
        entered.chain(self.early.values().map(Vec::len)).sum()
    }

    /// Checks the sender against the team's rank named in the message. Impossible if this rank does not know the team
    /// yet.
    fn check_sender(&self, team: u64, sender: Rank, from: u32) -> Result<(), Misfit> {
        let Some(team) = self.teams.get(&team) else { return Ok(()) };
        if team.members.get(from as usize) == Some(&sender.0) { Ok(()) } else { Err(Misfit) }
    }

    fn on_barrier(&mut self, id: u64, early: EarlyBarrier) -> Result<(), Misfit> {
        match self.teams.get_mut(&id) {
            Some(Team { barrier, members, me, .. }) => {
                let mut send = tell_barrier(id, *me, members, &mut self.actions);
                barrier.on_message(Rank(early.from), early.message, &mut send).map_err(|_| Misfit)
            }
            None => {
                self.early_barriers.entry(id).or_default().push(early);
                Ok(())
            }
        }
    }

    fn on_note(&mut self, key: CollectiveKey, note: Note) -> Result<Option<Arrived>, Misfit> {
        let Some(&at) = self.by_key.get(&key) else {
            self.early.entry(key).or_default().push(note);
            return Ok(None);
        };
        let operation = &mut self.operations[at];
        let (sides, state) = match note.kind {
            NoteKind::Ready => (&mut operation.sends, TransferState::AwaitingReady),
            NoteKind::Signal => (&mut operation.receives, TransferState::Moving),
            NoteKind::Announced(_) => (&mut operation.receives, TransferState::AwaitingAnnouncement),
        };
        match (find(sides, note.from, note.tag, state), note.kind) {
            (None, _) => operation.notes.push(note),
            (Some(transfer), NoteKind::Ready) => {
                debug_assert_eq!(sides[transfer].moved_bytes, 0, "a sender starts once its receiver is ready");
                sides[transfer].state = TransferState::Moving;
                self.send(at, transfer);
            }
            (Some(transfer), NoteKind::Announced(source)) => self.on_announced(at, transfer, source),
            // It waits for bytes; an empty message has none.
            (Some(transfer), NoteKind::Signal) if sides[transfer].transfer.len_bytes > 0 => return Err(Misfit),
            (Some(transfer), NoteKind::Signal) => {
                sides[transfer].state = TransferState::Through;
                self.on_through(at);
            }
        }
        Ok(None)
    }

    fn fill_window(&mut self, id: u64) {
        loop {
            let team = self.teams.get_mut(&id).expect(TEAM_STAYS);
            assert!(team.active <= WINDOW, "a team has at most {WINDOW} collectives under way");
            if team.active == WINDOW {
                return;
            }
            let Some((key, plan, client)) = team.queued.pop_front() else { return };
            team.active += 1;
            self.activate(key, plan, client);
        }
    }

    fn activate(&mut self, key: CollectiveKey, plan: Plan, mut client: T) {
        client.begin(plan.scratch_bytes());
        let notes = self.early.remove(&key).unwrap_or_default();
        let (sends, receives, local_steps) = (Vec::new(), Vec::new(), Vec::new());
        let operation = Operation { key, plan, round: 0, sends, receives, left: 0, local_steps, notes, client };
        let at = self.operations.insert(operation);
        let before = self.by_key.insert(key, at);
        assert!(before.is_none(), "a team's collectives have numbers of their own");
        self.next_round(at);
    }

    /// Starts rounds until one has something to wait for.
    fn next_round(&mut self, at: usize) {
        let operation = &mut self.operations[at];
        assert!(operation.left == 0 && operation.local_steps.is_empty(), "a round begins after the one before");
        let Some(round) = operation.plan.round(operation.round) else { return self.finish(at) };
        operation.round += 1;
        let side = |state| move |transfer| TransferSide { transfer, state, arrived_bytes: 0, moved_bytes: 0 };
        operation.sends = round.sends.into_iter().map(side(TransferState::AwaitingReady)).collect();
        operation.receives = round.receives.into_iter().map(side(TransferState::Moving)).collect();
        operation.left = operation.sends.len() + operation.receives.len();
        operation.local_steps = round.local_steps;
        for transfer in 0..self.operations[at].receives.len() {
            self.begin_receive(at, transfer);
        }
        for transfer in 0..self.operations[at].sends.len() {
            self.begin_send(at, transfer);
        }
        if self.operations[at].left == 0 {
            self.do_local_steps(at);
        }
    }

    fn begin_receive(&mut self, at: usize, transfer: usize) {
        let operation = &mut self.operations[at];
        let Transfer { peer, tag, len_bytes, .. } = operation.receives[transfer].transfer;
        debug_assert_ne!(peer, operation.plan.shape.me, "a rank receives from others");
        if is_announced(&operation.receives[transfer].transfer) {
            operation.receives[transfer].state = TransferState::AwaitingAnnouncement;
            if let Some(source) = operation.take_announcement(peer, tag) {
                self.on_announced(at, transfer, source);
            }
        } else if len_bytes > 0 {
            self.ask_for_bytes(at, transfer);
        } else if operation.take_note(Note { from: peer, tag, kind: NoteKind::Signal }) {
            operation.receives[transfer].state = TransferState::Through;
            operation.left -= 1;
        }
    }

    fn begin_send(&mut self, at: usize, transfer: usize) {
        let operation = &mut self.operations[at];
        let Transfer { peer, tag, len_bytes, .. } = operation.sends[transfer].transfer;
        debug_assert_ne!(peer, operation.plan.shape.me, "a rank sends to others");
        if is_announced(&operation.sends[transfer].transfer) {
            self.announce(at, transfer);
        } else if len_bytes == 0 || operation.take_note(Note { from: peer, tag, kind: NoteKind::Ready }) {
            operation.sends[transfer].state = TransferState::Moving;
            self.send(at, transfer);
        }
    }

    /// Sends the next message of a transfer.
    fn send(&mut self, at: usize, transfer: usize) {
        let operation = &self.operations[at];
        let TransferSide { transfer: whole, moved_bytes, .. } = &operation.sends[transfer];
        debug_assert!(*moved_bytes < whole.len_bytes.max(1), "bytes of the transfer are left to be sent");
        let body = CollectiveBody::Bytes { tag: whole.tag, offset_bytes: *moved_bytes as u64 };
        self.actions.push_back(Action::Send(Sending {
            operation: at,
            transfer,
            to: self.teams[&operation.key.team].members[whole.peer as usize],
            message: operation.message(body),
            place: whole.place.after(*moved_bytes),
            len_bytes: PAYLOAD_BYTES_MAX.min(whole.len_bytes - moved_bytes),
        }));
    }

    pub(super) fn on_through(&mut self, at: usize) {
        let operation = &mut self.operations[at];
        assert!(operation.left > 0, "each transfer of a round ends once");
        operation.left -= 1;
        if operation.left == 0 {
            self.do_local_steps(at);
        }
    }

    fn do_local_steps(&mut self, operation: usize) {
        debug_assert_eq!(self.operations[operation].left, 0, "the steps run after all transfers of the round");
        let local_steps = mem::take(&mut self.operations[operation].local_steps);
        if local_steps.is_empty() {
            return self.next_round(operation);
        }
        self.actions.push_back(Action::Do { operation, local_steps });
    }

    fn finish(&mut self, at: usize) {
        let Operation { key, client, .. } = self.operations.remove(at);
        let known = self.by_key.remove(&key);
        assert_eq!(known, Some(at), "a collective is found by its key until it ends");
        self.actions.push_back(Action::Finish { team: key.team, client });
    }
}
