//! The collectives of one rank as a state machine without I/O: messages in, actions out.
//!
//! A rank that is to receive bytes says that it is ready when it has reached the round for them; the sender waits for
//! that. So bytes never arrive early, and memory for them is where they belong. What may arrive early is small: that a
//! peer is ready, signals, and barrier messages. It is kept as a note. A rank has at most [`WINDOW`] collectives of a team
//! under way; the next ones wait where they were started. It cannot be through with a collective before this rank has
//! answered what it said, so there are at most `WINDOW` × 2 notes of each peer for each team.
//!
//! ```text
//!            start          all transfers through           locals done
//! (waiting) ───────▶ round ─────────────────────▶ locals ───────────────▶ next round … finished
//! ```

use super::message::{Body, CollectiveMessage, Key};
use super::plan::{LocalStep, Place, Plan, Transfer};
use super::team::Team;
use crate::Rank;
use crate::barrier::{BarrierMessage, Misuse, Name};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::mem;
use slab::Slab;

/// Collectives of a team that a rank takes part in at the same time.
pub const WINDOW: usize = 16;

/// The most bytes in a message: two such fill half of a rank's window at another one.
pub const MESSAGE_BYTES_MAX: usize = 32 << 10;

const TEAM_STAYS: &str = "a team stays while its collectives are under way";

/// Something for the driver to do.
#[derive(Debug)]
pub enum Action<T> {
    /// Send a message without bytes.
    Tell {
        /// To this rank of the job.
        to: u32,
        /// The message.
        message: CollectiveMessage,
    },
    /// Send a message with bytes, then call [`Machine::on_sent`].
    Send(Sending),
    /// Do these in order, then call [`Machine::on_done`].
    Do {
        /// Of this collective.
        operation: usize,
        /// What.
        locals: Vec<LocalStep>,
    },
    /// The collective is over for this rank. Call [`Machine::on_finished`], then tell the client.
    Finish {
        /// Its team.
        team: u64,
        /// What the driver kept with it.
        client: T,
    },
}

/// Bytes of a collective that are to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Of this collective.
    pub operation: usize,
    /// Of this transfer in its round.
    transfer: usize,
    /// To this rank of the job.
    pub to: u32,
    /// The message.
    pub message: CollectiveMessage,
    /// Where the bytes are.
    pub place: Place,
    /// How many; none if it is a signal.
    pub len_bytes: usize,
}

/// Bytes of a collective that have arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Of this collective.
    pub operation: usize,
    /// Of this transfer in its round.
    transfer: usize,
    /// Where they belong.
    pub place: Place,
    len_bytes: usize,
}

/// A message that fits no collective of this rank: ranks have not started the same ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit;

#[derive(Debug)]
struct Operation<T> {
    key: Key,
    plan: Plan,
    /// The next round.
    round: u32,
    sends: Vec<Side>,
    receives: Vec<Side>,
    /// Transfers of this round that are not through.
    left: usize,
    locals: Vec<LocalStep>,
    notes: Vec<Note>,
    client: T,
}

/// One transfer of the round under way.
#[derive(Debug)]
struct Side {
    transfer: Transfer,
    state: State,
    moved_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A send whose receiver is not ready.
    Waiting,
    Moving,
    Through,
}

/// What came before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Note {
    from: u32,
    tag: u32,
    kind: NoteKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoteKind {
    Ready,
    Signal,
}

/// What the driver keeps with a collective.
pub trait Client {
    /// The collective's turn has come; it needs so much memory of its own.
    fn begin(&mut self, scratch_bytes: usize);
}

/// The collectives of one rank. `T` is what the driver keeps with each.
#[derive(Debug)]
pub struct Machine<T> {
    /// The teams that this rank belongs to, by name.
    pub teams: BTreeMap<u64, Team<T>>,
    operations: Slab<Operation<T>>,
    by_key: BTreeMap<Key, usize>,
    early: BTreeMap<Key, Vec<Note>>,
    early_barriers: BTreeMap<u64, Vec<BarrierMessage>>,
    actions: VecDeque<Action<T>>,
    /// Actions that had no credit.
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
    /// A team that this rank belongs to. Messages of its barrier may have come already.
    pub fn add_team(&mut self, id: u64, team: Team<T>) {
        self.teams.insert(id, team);
        for message in self.early_barriers.remove(&id).unwrap_or_default() {
            self.on_barrier(id, message);
        }
    }

    /// Starts a collective of a team, which exists. It takes its turn after those that were started before.
    pub fn start(&mut self, team: u64, plan: Plan, client: T) {
        let its = self.teams.get_mut(&team).expect("the caller looked the team up");
        let key = Key { team, number: its.next_number };
        its.next_number = its.next_number.wrapping_add(1);
        its.waiting.push_back((key, plan, client));
        self.fill_window(team);
    }

    /// Arrives at a team's barrier.
    ///
    /// # Errors
    /// The client has notified already.
    pub fn notify(&mut self, team: u64, name: Name) -> Result<(), Misuse> {
        let its = self.teams.get_mut(&team).expect("the caller looked the team up");
        let Team { barrier, members, me, .. } = its;
        barrier.notify(name, &mut tell_barrier(team, *me, members, &mut self.actions))
    }

    /// A message came, with so many bytes. `Some`: the bytes are to be written, then [`Machine::on_written`] is to be called.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn on_message(&mut self, message: &CollectiveMessage, len_bytes: usize) -> Result<Option<Arrived>, Misfit> {
        let CollectiveMessage { key, from, body } = *message;
        match body {
            Body::Barrier(message) => {
                self.on_barrier(key.team, message);
                Ok(None)
            }
            Body::Ready { tag } => {
                self.on_note(key, Note { from, tag, kind: NoteKind::Ready });
                Ok(None)
            }
            Body::Bytes { tag, .. } if len_bytes == 0 => {
                self.on_note(key, Note { from, tag, kind: NoteKind::Signal });
                Ok(None)
            }
            Body::Bytes { tag, offset_bytes } => {
                let operation = *self.by_key.get(&key).ok_or(Misfit)?;
                let receives = &self.operations[operation].receives;
                let transfer = find(receives, from, tag, State::Moving).ok_or(Misfit)?;
                let Transfer { place, len_bytes: expected, .. } = receives[transfer].transfer;
                let end = usize::try_from(offset_bytes).ok().and_then(|offset| offset.checked_add(len_bytes));
                if end.is_none_or(|end| end > expected) {
                    return Err(Misfit);
                }
                Ok(Some(Arrived { operation, transfer, place: place.after(offset_bytes as usize), len_bytes }))
            }
        }
    }

    /// Bytes that arrived are where they belong.
    pub fn on_written(&mut self, arrived: Arrived) {
        let operation = &mut self.operations[arrived.operation];
        let receive = &mut operation.receives[arrived.transfer];
        receive.moved_bytes += arrived.len_bytes;
        if receive.moved_bytes == receive.transfer.len_bytes {
            receive.state = State::Through;
            self.on_through(arrived.operation);
        }
    }

    /// The bytes of a [`Action::Send`] are sent.
    pub fn on_sent(&mut self, sent: Sending) {
        let operation = &mut self.operations[sent.operation];
        let send = &mut operation.sends[sent.transfer];
        send.moved_bytes += sent.len_bytes;
        if send.moved_bytes == send.transfer.len_bytes {
            send.state = State::Through;
            self.on_through(sent.operation);
        } else {
            self.send(sent.operation, sent.transfer);
        }
    }

    /// A [`Action::Do`] is done.
    pub fn on_done(&mut self, operation: usize) {
        self.next_round(operation);
    }

    /// A collective of this team is over.
    pub fn on_finished(&mut self, team: u64) {
        self.teams.get_mut(&team).expect(TEAM_STAYS).active -= 1;
        self.fill_window(team);
    }

    /// What is to be done next.
    pub fn next_action(&mut self) -> Option<Action<T>> {
        self.actions.pop_front()
    }

    /// An action that needs credit which is not there now.
    pub fn stall(&mut self, action: Action<T>) {
        self.stalled.push(action);
    }

    /// There may be credit again.
    pub fn retry(&mut self) {
        self.actions.extend(self.stalled.drain(..));
    }

    /// Whether there are actions.
    pub fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Whether there are actions that had no credit.
    pub fn is_stalled(&self) -> bool {
        !self.stalled.is_empty()
    }

    /// What the driver keeps with a collective.
    pub fn client(&self, operation: usize) -> &T {
        &self.operations[operation].client
    }

    /// Whether nothing is under way or noted.
    #[cfg(test)]
    pub fn is_quiet(&self) -> bool {
        let idle = self.operations.is_empty() && self.by_key.is_empty() && self.actions.is_empty();
        idle && self.stalled.is_empty() && self.early.is_empty() && self.early_barriers.is_empty()
    }

    /// Notes about collectives that this rank has entered or not.
    #[cfg(test)]
    pub fn notes(&self) -> usize {
        let entered = self.operations.iter().map(|(_, operation)| operation.notes.len());
        entered.chain(self.early.values().map(Vec::len)).sum()
    }

    fn on_barrier(&mut self, id: u64, message: BarrierMessage) {
        match self.teams.get_mut(&id) {
            Some(Team { barrier, members, me, .. }) => {
                barrier.on_message(message, &mut tell_barrier(id, *me, members, &mut self.actions));
            }
            None => self.early_barriers.entry(id).or_default().push(message),
        }
    }

    fn on_note(&mut self, key: Key, note: Note) {
        let Some(&at) = self.by_key.get(&key) else {
            self.early.entry(key).or_default().push(note);
            return;
        };
        let operation = &mut self.operations[at];
        let (sides, state) = match note.kind {
            NoteKind::Ready => (&mut operation.sends, State::Waiting),
            NoteKind::Signal => (&mut operation.receives, State::Moving),
        };
        match (find(sides, note.from, note.tag, state), note.kind) {
            (None, _) => operation.notes.push(note),
            (Some(transfer), NoteKind::Ready) => {
                sides[transfer].state = State::Moving;
                self.send(at, transfer);
            }
            (Some(transfer), NoteKind::Signal) => {
                sides[transfer].state = State::Through;
                self.on_through(at);
            }
        }
    }

    fn fill_window(&mut self, id: u64) {
        loop {
            let team = self.teams.get_mut(&id).expect(TEAM_STAYS);
            if team.active == WINDOW {
                return;
            }
            let Some((key, plan, client)) = team.waiting.pop_front() else { return };
            team.active += 1;
            self.activate(key, plan, client);
        }
    }

    fn activate(&mut self, key: Key, plan: Plan, mut client: T) {
        client.begin(plan.scratch_bytes());
        let notes = self.early.remove(&key).unwrap_or_default();
        let (sends, receives, locals) = (Vec::new(), Vec::new(), Vec::new());
        let operation = Operation { key, plan, round: 0, sends, receives, left: 0, locals, notes, client };
        let at = self.operations.insert(operation);
        self.by_key.insert(key, at);
        self.next_round(at);
    }

    /// Begins rounds until one has something to wait for.
    fn next_round(&mut self, at: usize) {
        let operation = &mut self.operations[at];
        let Some(round) = operation.plan.round(operation.round) else { return self.finish(at) };
        operation.round += 1;
        let side = |state| move |transfer| Side { transfer, state, moved_bytes: 0 };
        operation.sends = round.sends.into_iter().map(side(State::Waiting)).collect();
        operation.receives = round.receives.into_iter().map(side(State::Moving)).collect();
        operation.left = operation.sends.len() + operation.receives.len();
        operation.locals = round.locals;
        if operation.left == 0 {
            return self.do_locals(at);
        }
        for transfer in 0..self.operations[at].receives.len() {
            self.begin_receive(at, transfer);
        }
        for transfer in 0..self.operations[at].sends.len() {
            self.begin_send(at, transfer);
        }
        if self.operations[at].left == 0 {
            self.do_locals(at);
        }
    }

    fn begin_receive(&mut self, at: usize, transfer: usize) {
        let operation = &mut self.operations[at];
        let Transfer { peer, tag, len_bytes, .. } = operation.receives[transfer].transfer;
        if len_bytes > 0 {
            let message =
                CollectiveMessage { key: operation.key, from: operation.plan.shape.me, body: Body::Ready { tag } };
            let to = self.teams[&operation.key.team].members[peer as usize];
            self.actions.push_back(Action::Tell { to, message });
        } else if operation.take_note(Note { from: peer, tag, kind: NoteKind::Signal }) {
            operation.receives[transfer].state = State::Through;
            operation.left -= 1;
        }
    }

    fn begin_send(&mut self, at: usize, transfer: usize) {
        let operation = &mut self.operations[at];
        let Transfer { peer, tag, len_bytes, .. } = operation.sends[transfer].transfer;
        if len_bytes == 0 || operation.take_note(Note { from: peer, tag, kind: NoteKind::Ready }) {
            operation.sends[transfer].state = State::Moving;
            self.send(at, transfer);
        }
    }

    /// The next message of a send is to be sent.
    fn send(&mut self, at: usize, transfer: usize) {
        let Operation { key, plan, sends, .. } = &self.operations[at];
        let Side { transfer: whole, moved_bytes, .. } = &sends[transfer];
        let body = Body::Bytes { tag: whole.tag, offset_bytes: *moved_bytes as u64 };
        self.actions.push_back(Action::Send(Sending {
            operation: at,
            transfer,
            to: self.teams[&key.team].members[whole.peer as usize],
            message: CollectiveMessage { key: *key, from: plan.shape.me, body },
            place: whole.place.after(*moved_bytes),
            len_bytes: MESSAGE_BYTES_MAX.min(whole.len_bytes - moved_bytes),
        }));
    }

    fn on_through(&mut self, at: usize) {
        let operation = &mut self.operations[at];
        operation.left -= 1;
        if operation.left == 0 {
            self.do_locals(at);
        }
    }

    fn do_locals(&mut self, operation: usize) {
        let locals = mem::take(&mut self.operations[operation].locals);
        if locals.is_empty() {
            return self.next_round(operation);
        }
        self.actions.push_back(Action::Do { operation, locals });
    }

    fn finish(&mut self, at: usize) {
        let Operation { key, client, .. } = self.operations.remove(at);
        self.by_key.remove(&key);
        self.actions.push_back(Action::Finish { team: key.team, client });
    }
}

impl<T> Operation<T> {
    fn take_note(&mut self, note: Note) -> bool {
        let at = self.notes.iter().position(|noted| *noted == note);
        at.map(|at| self.notes.swap_remove(at)).is_some()
    }
}

fn find(sides: &[Side], peer: u32, tag: u32, state: State) -> Option<usize> {
    let is_it = |side: &Side| side.transfer.peer == peer && side.transfer.tag == tag && side.state == state;
    sides.iter().position(is_it)
}

/// Sends messages of a team's barrier.
fn tell_barrier<T>(
    team: u64,
    me: u32,
    members: &[u32],
    actions: &mut VecDeque<Action<T>>,
) -> impl FnMut(Rank, BarrierMessage) {
    move |to, message| {
        let message = CollectiveMessage { key: Key { team, number: 0 }, from: me, body: Body::Barrier(message) };
        actions.push_back(Action::Tell { to: members[to.index()], message });
    }
}
