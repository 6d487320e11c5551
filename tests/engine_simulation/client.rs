//! Operations of client threads, one step at a time, in the way of `Ops::resolve` and `Ops::start_missing`: each piece is
//! a hit here or at a neighbour, or goes to the engine.

use crate::files::Call;
use crate::job::{Job, PAGE_BYTES, Task};
use fastrand::Rng;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use vgasnet_engine::request::{Atomic, Completion, CompletionId, Copy, Part};
use vgasnet_memory::{AddressSpace, Piece, Pinned};
use vgasnet_protocol::Rank;
use vgasnet_protocol::byte_message::{AtomicOp, Operands};
use vgasnet_protocol::coherence::{Access, FrameId};

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Get,
    Put,
    /// A put that has read the client's memory by the time `start` returns.
    PutNow,
    Set(u8),
    /// An atomic operation on a number. The old value goes to the client's memory.
    Atomic((AtomicOp, Operands)),
}

/// A range of a rank's segment.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub home: usize,
    pub start_bytes: usize,
    pub len_bytes: usize,
}

/// An incomplete operation.
pub struct Operation {
    what: What,
    /// The client's memory. Copies point into it, so it neither moves nor grows.
    memory: Vec<u8>,
    /// Pieces not looked at yet.
    pieces: VecDeque<Piece>,
    missing: Vec<Piece>,
    stage: Stage,
    completion: CompletionId,
    /// For a call about a shared file.
    pub call: Option<Call>,
}

#[derive(Clone, Debug)]
enum Stage {
    /// Between pieces.
    Next,
    /// Looks for the page in the tables of these ranks.
    Look(Piece, VecDeque<usize>),
    Pinned(Use),
    Copied(Use),
    /// The engine has the pieces that missed.
    Waits,
}

/// A page in use by an operation.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// The rank with the page in its pool.
    pub rank: usize,
    pub frame: FrameId,
    pub piece: Piece,
    pub access: Access,
    ahead: bool,
}

impl Operation {
    /// The page it has pinned.
    pub fn in_use(&self) -> Option<Use> {
        match &self.stage {
            Stage::Pinned(using) | Stage::Copied(using) => Some(*using),
            _ => None,
        }
    }

    pub fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// The most parts of it in the engine.
    pub fn submitted(&self) -> usize {
        if matches!(self.stage, Stage::Waits) { self.missing.len() } else { 0 }
    }

    fn access(&self) -> Access {
        match self.what {
            What::Get => Access::Read,
            What::Atomic((op, _)) if op.is_read() => Access::Read,
            _ => Access::Write,
        }
    }

    fn copy(&mut self, piece: &Piece) -> Copy {
        let memory = self.memory.as_mut_ptr().wrapping_add(piece.start_bytes);
        match self.what {
            What::Get => Copy::Get(memory),
            What::Put | What::PutNow => Copy::Put(memory),
            What::Set(byte) => Copy::Set(byte),
            What::Atomic((op, operands)) => Copy::Atomic(Atomic { op, operands, old: memory }),
        }
    }
}

impl Job {
    /// A client thread of `rank` starts an operation.
    pub fn start(&mut self, rank: usize, what: What, range: Range, random: &mut Rng) {
        self.seen.atomic += u64::from(matches!(what, What::Atomic(_)));
        let node = &mut self.nodes[rank];
        let address = node.space.segments.of(Rank(range.home as u32)).base + range.start_bytes;
        let pieces = node.space.pieces(range.home as u32, address, range.len_bytes).expect("inside the segment");
        let pieces: VecDeque<Piece> = pieces.collect();
        check_pieces(range, &pieces);
        let memory = contents(range, random);
        self.begin(rank, what, pieces, memory, None);
    }

    /// A client thread of `rank` starts an operation on these pieces.
    pub fn begin(&mut self, rank: usize, what: What, pieces: VecDeque<Piece>, memory: Vec<u8>, call: Option<Call>) {
        let node = &mut self.nodes[rank];
        let completion = node.completions.begin();
        node.completions.fail(completion, 0);
        let (missing, stage) = (Vec::new(), Stage::Next);
        node.operations.push(Operation { what, memory, pieces, missing, stage, completion, call });
    }

    /// Does the next step of an operation's thread. Returns `false` if it has to wait.
    pub fn advance(&mut self, rank: usize, at: usize) -> bool {
        let node = &mut self.nodes[rank];
        let operation = &mut node.operations[at];
        let access = operation.access();
        match operation.stage.clone() {
            Stage::Next => match operation.pieces.pop_front() {
                Some(piece) => {
                    let home = self.model.home_of(piece.page);
                    let all = self.shape.cooperative || piece.page.space.segment().is_none();
                    operation.stage = Stage::Look(piece, candidates(&node.space, all, home, &piece));
                }
                None => self.submit(rank, at),
            },
            Stage::Look(piece, mut candidates) => match candidates.pop_front() {
                Some(candidate) => {
                    let memory = *node.space.memories.get(candidate).expect("candidates have their memory mapped");
                    let pinned = memory.table.pin(piece.page, access);
                    let using = |Pinned { frame, ahead }| Use { rank: candidate, frame, piece, access, ahead };
                    operation.stage = pinned.map_or(Stage::Look(piece, candidates), |p| Stage::Pinned(using(p)));
                }
                None => {
                    operation.missing.push(piece);
                    operation.stage = Stage::Next;
                }
            },
            Stage::Pinned(using) => {
                let copy = operation.copy(&using.piece);
                operation.stage = Stage::Copied(using);
                self.use_page(rank, using, &copy);
            }
            Stage::Copied(using) => {
                operation.stage = Stage::Next;
                self.unpin(using.rank, using.piece.page);
            }
            Stage::Waits => {
                let completion = operation.completion;
                if !node.completions.is_done(completion) {
                    return false;
                }
                let cause = node.completions.value(completion).load(Ordering::Relaxed) as u32;
                node.completions.end(completion);
                let operation = node.operations.swap_remove(at);
                self.on_called(rank, operation, cause);
            }
        }
        true
    }

    fn use_page(&mut self, rank: usize, using: Use, copy: &Copy) {
        let space = &self.nodes[rank].space;
        let memory = *space.memories.get(using.rank).expect("it was looked at");
        memory.pool.touch(using.frame);
        // SAFETY: the page is pinned in this frame for the access of the copy. The address space cut the piece, and the
        // operation's memory is as long as its range.
        unsafe { self.model.copy(copy, &memory, using.frame, &using.piece) };
        self.seen.at_neighbours += u64::from(using.rank != rank);
        if using.ahead && memory.table.take_ahead(using.frame) {
            self.seen.ahead += 1;
            self.nodes[rank].engine.prefetch_after_use(using.piece.page);
            self.rouse(rank);
        }
    }

    /// Leaves the pieces that missed to the engine.
    fn submit(&mut self, rank: usize, at: usize) {
        let node = &mut self.nodes[rank];
        let operation = &mut node.operations[at];
        operation.stage = Stage::Waits;
        if operation.missing.is_empty() {
            // A hit tells the engine nothing.
            return;
        }
        for piece in operation.missing.clone() {
            let mut copy = operation.copy(&piece);
            let range = piece.start_bytes..piece.start_bytes + piece.len_bytes;
            let room = node.copies.take(piece.len_bytes).filter(|_| operation.what == What::PutNow);
            if let Some(room) = room {
                copy = Copy::PutOwned(operation.memory[range].into(), room);
            }
            let completion = operation.completion;
            node.completions.add(completion);
            let part = Part { piece, copy, completion: Completion::Counted(completion) };
            if operation.call.is_some() && operation.missing.len() == 1 {
                // The thread waits for this part only, and may have to read the page itself.
                node.tasks.extend(node.engine.submit_or_read(part).map(Task::of_read));
            } else {
                node.engine.submit(part);
            }
        }
        self.rouse(rank);
    }
}

/// The ranks that may have a page open in their pools: this one, its home, any other neighbour.
fn candidates(space: &AddressSpace, cooperative: bool, home: usize, piece: &Piece) -> VecDeque<usize> {
    let neighbours = space.elsewhere(piece.page).map(|(pool, _)| space.pool(pool).0);
    [space.rank.index()].into_iter().chain(neighbours.filter(|rank| cooperative || *rank == home)).collect()
}

/// Checks that the pieces cover the range in order, and that none crosses a page's end.
fn check_pieces(range: Range, pieces: &VecDeque<Piece>) {
    let mut next = 0;
    for piece in pieces {
        let start_bytes = piece.page.index as usize * PAGE_BYTES + piece.offset_bytes;
        assert_eq!((piece.start_bytes, start_bytes), (next, range.start_bytes + next), "{piece:?} of {range:?}");
        assert!(piece.offset_bytes + piece.len_bytes <= PAGE_BYTES, "{piece:?} leaves its page");
        next += piece.len_bytes;
    }
    assert_eq!(next, range.len_bytes);
}

/// The initial bytes of an operation's memory: random, except in a range of whole cache lines. There each line has one
/// value, so that a line torn between two writes is noticed.
pub fn contents(range: Range, random: &mut Rng) -> Vec<u8> {
    if range.start_bytes % 64 == 0 && range.len_bytes % 64 == 0 {
        let first = random.u8(..);
        return (0..range.len_bytes).map(|at| first.wrapping_add((at / 64) as u8)).collect();
    }
    (0..range.len_bytes).map(|_| random.u8(..)).collect()
}

/// Cache lines of a page.
const LINES: usize = PAGE_BYTES / 64;

/// A range for an operation: a few bytes, some cache lines, a whole page, or across a page's end.
pub fn random_range(random: &mut Rng, home: usize, index: u32, pages: u32) -> Range {
    let page = index as usize * PAGE_BYTES;
    let (offset_bytes, len_bytes) = match random.u32(0..8) {
        0..4 => (random.usize(0..PAGE_BYTES - 16), random.usize(1..=16)),
        4..6 => {
            let line = random.usize(0..LINES);
            (line * 64, random.usize(1..=LINES - line) * 64)
        }
        6 => (0, PAGE_BYTES),
        _ => (PAGE_BYTES - random.usize(1..=64) * 4, PAGE_BYTES),
    };
    let segment_bytes = pages as usize * PAGE_BYTES;
    let start_bytes = page + offset_bytes;
    Range { home, start_bytes, len_bytes: len_bytes.min(segment_bytes - start_bytes) }
}
