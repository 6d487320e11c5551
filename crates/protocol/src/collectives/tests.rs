//! The machines of a whole team, over a network delivering in any order and with flow control randomly out of credit.

use super::action::{Action, Announcing, Misfit, Reading, Sending};
use super::machine::{Client, Machine, WINDOW};
use super::message::{CollectiveMessage, Source};
use super::plan::{Buffer, BufferOffset, CollectiveKind, LocalStep, Plan, Shape};
use super::reading::READ_BYTES_MAX;
use super::team::Team;
use crate::Rank;
use crate::barrier::Name;
use fastrand::Rng;
use std::vec;
use std::vec::Vec;

pub(super) const TEAM: u64 = 7;

/// The memory of one collective at one rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    number: usize,
    source: Vec<u8>,
    destination: Vec<u8>,
    scratch: Vec<u8>,
}

impl Client for std::cell::RefCell<Memory> {
    fn begin(&mut self, scratch_bytes: usize) {
        self.get_mut().scratch = vec![0xee; scratch_bytes];
    }
}

type Cell = std::cell::RefCell<Memory>;

impl Memory {
    fn buffer(&mut self, place: BufferOffset, len_bytes: usize) -> &mut [u8] {
        let buffer = match place.buffer {
            Buffer::Source => &mut self.source,
            Buffer::Destination => &mut self.destination,
            Buffer::Scratch => &mut self.scratch,
        };
        &mut buffer[place.offset_bytes..place.offset_bytes + len_bytes]
    }

    /// Elements have 16 bytes: first and last rank covered, and a sum. Only adjacent operands in the right order may
    /// combine.
    fn combine(&mut self, into: BufferOffset, with: BufferOffset, len_bytes: usize) {
        let right = self.buffer(with, len_bytes).to_vec();
        for (left, right) in self.buffer(into, len_bytes).chunks_exact_mut(16).zip(right.chunks_exact(16)) {
            assert_eq!(left[4..8].to_vec(), (number(right, 0) - 1).to_le_bytes(), "operands in the order of ranks");
            left[4..8].copy_from_slice(&right[4..8]);
            let sum = number(left, 8).wrapping_add(number(right, 8));
            left[8..12].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// The address of a place in the memory of a collective.
fn address_of(operation: usize, place: BufferOffset) -> u64 {
    (operation as u64) << 32 | (place.buffer as u64) << 30 | place.offset_bytes as u64
}

/// The collective and the place at an address.
fn place_at(address: u64) -> (usize, BufferOffset) {
    let buffer = [Buffer::Source, Buffer::Destination, Buffer::Scratch, Buffer::Scratch][(address >> 30) as usize % 4];
    ((address >> 32) as usize, BufferOffset { buffer, offset_bytes: address as usize % (1 << 30) })
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) struct World {
    pub(super) ranks: Vec<Machine<Cell>>,
    /// Sender, receiver, message and payload.
    pub(super) mail: Vec<(Rank, u32, CollectiveMessage, Vec<u8>)>,
    finished: Vec<Vec<Memory>>,
    pub(super) random: Rng,
    /// Some message was forged: memory may hold any bytes, and a rank may refuse a message.
    pub(super) is_tainted: bool,
}

impl World {
    pub(super) fn new(ranks: u32, seed: u64) -> World {
        let machine = |me| {
            let mut machine = Machine::default();
            machine.add_team(TEAM, Team::new((0..ranks).collect(), me)).expect("nothing has come");
            machine
        };
        let finished = (0..ranks).map(|_| Vec::new()).collect();
        let ranks = (0..ranks).map(machine).collect();
        World { ranks, mail: Vec::new(), finished, random: Rng::with_seed(seed), is_tainted: false }
    }

    /// Delivers a message to rank `to`.
    pub(super) fn deliver(
        &mut self,
        from: Rank,
        to: u32,
        message: &CollectiveMessage,
        bytes: &[u8],
    ) -> Result<(), Misfit> {
        let rank = &mut self.ranks[to as usize];
        if let Some(arrived) = rank.on_message(from, message, bytes.len())? {
            let memory = rank.client(arrived.operation);
            memory.borrow_mut().buffer(arrived.place, bytes.len()).copy_from_slice(bytes);
            rank.on_written(arrived);
        }
        Ok(())
    }

    /// Executes a random step. Returns whether there was one.
    pub(super) fn step(&mut self) -> bool {
        if !self.mail.is_empty() && self.random.bool() {
            let (from, to, message, bytes) = self.mail.swap_remove(self.random.usize(0..self.mail.len()));
            let message = CollectiveMessage::decode(&message.encode()).expect("a message survives encoding");
            let taken = self.deliver(from, to, &message, &bytes);
            assert!(self.is_tainted || taken.is_ok(), "it makes sense");
            return true;
        }
        let rank = self.random.usize(0..self.ranks.len());
        self.ranks[rank].retry();
        let Some(action) = self.ranks[rank].next_action() else { return !self.mail.is_empty() };
        self.carry_out(rank, action);
        true
    }

    fn carry_out(&mut self, rank: usize, action: Action<Cell>) {
        let machine = &mut self.ranks[rank];
        let needs_credit = matches!(action, Action::Tell { .. } | Action::Send(_) | Action::Announce(_));
        if needs_credit && self.random.u8(0..4) == 0 {
            return machine.stall(action);
        }
        match action {
            Action::Tell { to, message } => self.mail.push((Rank(rank as u32), to, message, Vec::new())),
            Action::Send(sending) => {
                let Sending { operation, to, message, place, len_bytes, .. } = sending;
                let bytes = machine.client(operation).borrow_mut().buffer(place, len_bytes).to_vec();
                self.mail.push((Rank(rank as u32), to, message, bytes));
                machine.on_sent(sending);
            }
            Action::Announce(announcing) => {
                machine.on_announcing(&announcing);
                let Announcing { operation, to, place, .. } = announcing;
                let address = address_of(operation, place);
                let source = match self.random.u8(0..4) {
                    0 => Source::Unreadable,
                    1 => Source::Segment { address },
                    _ => Source::Process { address, process: 1, proof_address: 2, proof: 3 },
                };
                self.mail.push((Rank(rank as u32), to, announcing.message(source), Vec::new()));
            }
            Action::Read(reading) => {
                // Reads that have begun may fail too.
                let is_read = self.random.u8(0..6) > 0 && self.read(rank, &reading);
                self.ranks[rank].on_read(reading, is_read);
            }
            Action::Do { operation, local_steps } => {
                let is_tainted = self.is_tainted;
                let mut memory = machine.client(operation).borrow_mut();
                for local in local_steps {
                    match local {
                        LocalStep::Copy { from, to, len_bytes } => {
                            let bytes = memory.buffer(from, len_bytes).to_vec();
                            memory.buffer(to, len_bytes).copy_from_slice(&bytes);
                        }
                        LocalStep::Combine { .. } if is_tainted => {}
                        LocalStep::Combine { into, with, len_bytes } => memory.combine(into, with, len_bytes),
                        LocalStep::Collect | LocalStep::Deliver => unreachable!("a rank is one image"),
                    }
                }
                drop(memory);
                machine.on_done(operation);
            }
            Action::Finish { team, client } => {
                machine.on_finished(team);
                self.finished[rank].push(client.into_inner());
            }
        }
    }

    /// Reads bytes of a peer. Returns whether they were readable.
    fn read(&mut self, rank: usize, reading: &Reading) -> bool {
        let Reading { operation, from, source, offset_bytes, place, len_bytes, .. } = *reading;
        assert!(len_bytes <= READ_BYTES_MAX);
        let (Source::Segment { address } | Source::Process { address, .. }) = source else {
            panic!("{source:?} is read")
        };
        let (theirs, their_place) = place_at(address);
        let peer = self.ranks[from as usize].operations.get(theirs);
        let bytes = peer.and_then(|peer| {
            let Memory { source, destination, scratch, .. } = &*peer.client.borrow();
            let buffer = match their_place.buffer {
                Buffer::Source => source,
                Buffer::Destination => destination,
                Buffer::Scratch => scratch,
            };
            let start = their_place.offset_bytes + offset_bytes;
            buffer.get(start..start + len_bytes).map(<[u8]>::to_vec)
        });
        assert!(self.is_tainted || bytes.is_some(), "what is announced stays until it is taken");
        let Some(bytes) = bytes else { return false };
        let memory = self.ranks[rank].client(operation);
        memory.borrow_mut().buffer(place, len_bytes).copy_from_slice(&bytes);
        true
    }

    fn run(&mut self) {
        let mut idle = 0;
        while idle < 64 * self.ranks.len() {
            idle = if self.step() { 0 } else { idle + 1 };
            let notes_max = WINDOW * 2 * (self.ranks.len() - 1);
            assert!(self.ranks.iter().all(|rank| rank.notes() <= notes_max), "notes have a bound");
        }
        assert!(self.ranks.iter().all(Machine::is_quiet));
    }
}

/// The memory of a rank in collective `number`, and its expected destination. Every pair of ranks has a block of its
/// own.
pub(super) fn memory(shape: &Shape, number: usize) -> (Memory, Vec<u8>) {
    let Shape { kind, me, ranks, root, block_bytes, .. } = *shape;
    let block = |from: u32, to: u32| {
        let mut random = Rng::with_seed(u64::from(from) << 40 | u64::from(to) << 20 | number as u64);
        let mut bytes = vec![0; block_bytes];
        random.fill(&mut bytes);
        if matches!(kind, CollectiveKind::Reduce | CollectiveKind::ReduceToAll) {
            for element in bytes.chunks_exact_mut(16) {
                element[..8].copy_from_slice(&[from.to_le_bytes(), from.to_le_bytes()].concat());
                element[12..].fill(9);
            }
        }
        bytes
    };
    let to_all = |from| (0..ranks).flat_map(|to| block(from, to)).collect::<Vec<u8>>();
    let from_all = |to| (0..ranks).flat_map(|from| block(from, to)).collect::<Vec<u8>>();
    let source = match kind {
        CollectiveKind::Scatter | CollectiveKind::Exchange => to_all(me),
        _ => block(me, 0),
    };
    let expected = match kind {
        CollectiveKind::Broadcast => block(root, 0),
        CollectiveKind::Scatter => block(root, me),
        CollectiveKind::Gather | CollectiveKind::GatherAll => from_all(0),
        CollectiveKind::Exchange => from_all(me),
        CollectiveKind::Reduce | CollectiveKind::ReduceToAll => {
            let mut all = Memory { source: block(0, 0), ..Memory::default() };
            for from in 1..ranks {
                all.scratch = block(from, 0);
                let start = |buffer| BufferOffset { buffer, offset_bytes: 0 };
                all.combine(start(Buffer::Source), start(Buffer::Scratch), block_bytes);
            }
            all.source
        }
    };
    let source = if kind.reads(me, root) { source } else { Vec::new() };
    let expected = if kind.writes(me, root) { expected } else { Vec::new() };
    (Memory { number, source, destination: vec![0xdd; expected.len()], scratch: Vec::new() }, expected)
}

/// Every rank starts the same collectives at its own pace.
fn check(ranks: u32, collectives: usize, seed: u64, largest: usize) {
    let mut world = World::new(ranks, seed);
    let mut choice = Rng::with_seed(seed);
    let kinds = [
        CollectiveKind::Broadcast,
        CollectiveKind::Scatter,
        CollectiveKind::Gather,
        CollectiveKind::GatherAll,
        CollectiveKind::Exchange,
        CollectiveKind::Reduce,
        CollectiveKind::ReduceToAll,
    ];
    let plans: Vec<Plan> = (0..collectives)
        .map(|_| {
            let kind = kinds[choice.usize(0..kinds.len())];
            let most_bytes = if choice.u8(0..4) == 0 { largest } else { 64 };
            let block_bytes = choice.usize(0..=most_bytes) / 16 * 16;
            let root = choice.u32(0..ranks);
            let shape = Shape { kind, me: 0, ranks, root, block_bytes, element_bytes: 16 };
            Plan { shape, all_in: choice.bool(), all_out: choice.bool(), for_images: false }
        })
        .collect();
    let mut expected = vec![Vec::new(); ranks as usize];
    while expected.iter().any(|done| done.len() < collectives) {
        let rank = world.random.usize(0..ranks as usize);
        if expected[rank].len() < collectives {
            let number = expected[rank].len();
            let shape = Shape { me: rank as u32, ..plans[number].shape };
            let (memory, result) = memory(&shape, number);
            expected[rank].push(result);
            world.ranks[rank].start(TEAM, Plan { shape, ..plans[number] }, memory.into());
        }
        for _ in 0..world.random.usize(0..40) {
            world.step();
        }
    }
    world.run();
    for (rank, finished) in world.finished.iter_mut().enumerate() {
        finished.sort_by_key(|memory| memory.number);
        for (is, should) in finished.iter().zip(&expected[rank]) {
            let plan = &plans[is.number];
            assert!(is.destination == *should, "{plan:?} at rank {rank} of {ranks}, seed {seed}");
        }
        assert_eq!(finished.len(), collectives);
    }
}

#[test]
fn collectives_in_any_order_of_events() {
    if cfg!(miri) {
        return check(3, 2, 0, 40);
    }
    for ranks in 1..=9 {
        for seed in 0..12 {
            check(ranks, 30, seed, 20_000);
        }
    }
    check(40, 40, 1, 4000);
}

#[test]
#[cfg_attr(miri, ignore = "an interpreter takes minutes to copy the bytes")]
fn payloads_of_several_segments() {
    for ranks in [1, 2, 3, 5, 8] {
        for seed in 0..4 {
            check(ranks, 8, 100 + seed, 2_300_000 / ranks as usize);
        }
    }
}

#[test]
fn no_rank_touches_memory_before_all_are_in_or_finishes_before_all_is_moved() {
    let (ranks_end, seeds) = if cfg!(miri) { (3, 1) } else { (8, 5) };
    for (ranks, seed) in (2..ranks_end).flat_map(|ranks| (0..seeds).map(move |seed| (ranks, seed))) {
        for last in 0..ranks {
            let mut world = World::new(ranks, seed);
            let shape =
                |me| Shape { kind: CollectiveKind::Broadcast, me, ranks, root: 0, block_bytes: 16, element_bytes: 1 };
            let start = |world: &mut World, me| {
                let plan = Plan { shape: shape(me), all_in: true, all_out: true, for_images: false };
                world.ranks[me as usize].start(TEAM, plan, memory(&shape(me), 0).0.into());
            };
            (0..ranks).filter(|me| *me != last).for_each(|me| start(&mut world, me));
            (0..if cfg!(miri) { 100 } else { 2000 }).for_each(|_| _ = world.step());
            let untouched = |me: &u32| {
                let memory = world.ranks[*me as usize].client(0).borrow();
                memory.destination.iter().all(|byte| *byte == 0xdd)
            };
            assert!((0..ranks).filter(|me| *me != last).all(|me| untouched(&me)));
            start(&mut world, last);
            world.run();
        }
    }
}

#[test]
fn barrier_messages_may_come_before_the_team() {
    let mut late: Machine<Cell> = Machine::default();
    let mut early: Machine<Cell> = Machine::default();
    early.add_team(TEAM, Team::new([0, 1].into(), 1)).expect("nothing has come");
    early.notify(TEAM, Name::Id(5)).expect("once");
    let Some(Action::Tell { to: 0, message }) = early.next_action() else { panic!("the parent is told") };
    assert!(late.on_message(Rank(1), &message, 0).expect("it makes sense").is_none());
    late.add_team(TEAM, Team::new([0, 1].into(), 0)).expect("it makes sense");
    late.notify(TEAM, Name::Id(5)).expect("once");
    let Some(Action::Tell { to: 1, message }) = late.next_action() else { panic!("the child is told") };
    assert!(early.on_message(Rank(0), &message, 0).expect("it makes sense").is_none());
    for machine in [&mut late, &mut early] {
        let team = machine.teams.get_mut(&TEAM).expect("it was added");
        assert_eq!(team.barrier.finish(Name::Id(5)), Ok(Some(true)));
        assert!(team.is_idle());
    }
    assert!(late.is_quiet() && early.is_quiet());
}

#[test]
fn bytes_that_no_transfer_waits_for_are_a_misfit() {
    let mut world = World::new(2, 1);
    let shape = Shape { kind: CollectiveKind::Broadcast, me: 0, ranks: 2, root: 0, block_bytes: 16, element_bytes: 1 };
    let plan = Plan { shape, all_in: false, all_out: false, for_images: false };
    let message = CollectiveMessage {
        key: super::message::CollectiveKey { team: TEAM, number: 0 },
        from: 1,
        body: super::message::CollectiveBody::Bytes { tag: 0, offset_bytes: 0 },
    };
    assert!(world.ranks[0].on_message(Rank(1), &message, 16).is_err());
    world.ranks[0].start(TEAM, plan, memory(&shape, 0).0.into());
    assert!(world.ranks[0].on_message(Rank(1), &message, 16).is_err());
}

#[test]
fn bytes_that_come_twice_or_from_another_rank_are_a_misfit() {
    let mut world = World::new(3, 1);
    let shape = Shape { kind: CollectiveKind::Broadcast, me: 1, ranks: 3, root: 0, block_bytes: 16, element_bytes: 1 };
    let key = super::message::CollectiveKey { team: TEAM, number: 0 };
    let bytes = |from, offset_bytes| CollectiveMessage {
        key,
        from,
        body: super::message::CollectiveBody::Bytes { tag: 0, offset_bytes },
    };
    let rank = &mut world.ranks[1];
    rank.start(TEAM, Plan { shape, all_in: false, all_out: false, for_images: false }, memory(&shape, 0).0.into());
    assert!(rank.on_message(Rank(2), &bytes(0, 0), 8).is_err(), "rank 2 says that it is rank 0");
    assert!(rank.on_message(Rank(2), &bytes(7, 0), 8).is_err(), "there is no rank 7");
    assert!(rank.on_message(Rank(0), &bytes(0, 0), 0).is_err(), "a signal where bytes are due");
    assert!(rank.on_message(Rank(0), &bytes(0, 9), 8).is_err(), "beyond the end");
    // Two threads may write concurrently: both halves arrive before either is written.
    let first = rank.on_message(Rank(0), &bytes(0, 0), 8).expect("it makes sense").expect("bytes");
    let second = rank.on_message(Rank(0), &bytes(0, 8), 8).expect("it makes sense").expect("bytes");
    assert!(rank.on_message(Rank(0), &bytes(0, 0), 8).is_err(), "a third half");
    rank.on_written(second);
    rank.on_written(first);
    assert!(rank.on_message(Rank(0), &bytes(0, 0), 8).is_err(), "the transfer is through");
}

#[test]
fn what_no_large_transfer_waits_for_is_a_misfit() {
    use super::action::ANNOUNCED_BYTES_MIN;
    use super::message::{CollectiveBody, CollectiveKey};
    let message = |from, body| CollectiveMessage { key: CollectiveKey { team: TEAM, number: 0 }, from, body };
    for (block_bytes, is_large) in [(ANNOUNCED_BYTES_MIN, true), (ANNOUNCED_BYTES_MIN - 16, false)] {
        let mut world = World::new(2, 1);
        let shape =
            |me| Shape { kind: CollectiveKind::Broadcast, me, ranks: 2, root: 0, block_bytes, element_bytes: 1 };
        let taken = message(1, CollectiveBody::Taken { tag: 0 });
        assert!(world.ranks[0].on_message(Rank(1), &taken, 0).is_err(), "nothing has begun");
        for me in 0..2 {
            let plan = Plan { shape: shape(me), all_in: false, all_out: false, for_images: false };
            world.ranks[me as usize].start(TEAM, plan, memory(&shape(me), 0).0.into());
        }
        assert!(world.ranks[0].on_message(Rank(1), &taken, 0).is_err(), "the receiver was not told");
        let bytes = message(0, CollectiveBody::Bytes { tag: 0, offset_bytes: 0 });
        assert_eq!(world.ranks[1].on_message(Rank(0), &bytes, 16).is_err(), is_large, "bytes that were not asked for");
        if let Some(Action::Announce(announcing)) = world.ranks[0].next_action() {
            world.ranks[0].on_announcing(&announcing);
        }
        assert_eq!(world.ranks[0].on_message(Rank(1), &taken, 0).is_ok(), is_large);
        assert!(world.ranks[0].on_message(Rank(1), &taken, 0).is_err(), "twice");
    }
}
