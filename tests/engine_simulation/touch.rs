//! Threads that load from and store to their rank's segment, one step at a time, as the processor and `src/fault` do.

use crate::client::{Range, contents};
use crate::job::{Job, Node, Task};
use crate::mapper;
use fastrand::Rng;
use vgasnet_engine::request::{Copy, Fault, Part};
use vgasnet_memory::{MAPPED_BLOCK_BYTES, PageAccess, Piece, SegmentView};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, FrameId, PageId};

/// Loans and blocks mapped for an instruction before it waits for pages that stay.
const ADDRESSES: u32 = 4;

/// The most steps a thread waits for the turn.
const TURN_PATIENCE: u32 = 40;

/// An instruction. It does its load and store, or faults and does neither.
#[derive(Clone, Debug)]
pub struct Instruction {
    load: Option<Range>,
    /// Stores the loaded bytes, or other bytes without a load.
    store: Option<Range>,
}

/// A thread with instructions left.
pub struct Thread {
    name: u64,
    instructions: Vec<Instruction>,
    stage: Stage,
    /// It is in a single step.
    is_stepping: bool,
    /// Pages that stay pinned until the step has finished.
    kept: Vec<u32>,
    /// Pages to unpin before anything else.
    unpinning: Vec<u32>,
    /// The current instruction has faulted.
    has_faulted: bool,
    /// How often a neighbour's frame or a block was mapped for it.
    fleeting: u32,
}

/// Bytes needed by an instruction, from one byte of a page to the end of its block.
#[derive(Clone, Copy, Debug)]
struct Need {
    index: u32,
    offset_bytes: usize,
    access: Access,
}

enum Stage {
    Run,
    /// The handler begins.
    Faulted(Need),
    /// Before a page is fetched.
    Turn(Need, u32),
    /// The thread sleeps until it is served. The engine points to the fault.
    Waits(Box<Fault>),
}

impl Instruction {
    /// A load or store of `range`, or a copy from there to `other` if the processor has such instructions. Processors
    /// without single steps have none.
    pub fn random(random: &mut Rng, range: Range, other: Range, copies: bool) -> Instruction {
        let (load, store) = match random.u32(0..if copies { 8 } else { 6 }) {
            0..3 => (Some(range), None),
            3..5 => (None, Some(range)),
            5 => (Some(range), Some(range)),
            _ => (Some(range), Some(Range { len_bytes: other.len_bytes.min(range.len_bytes), ..other })),
        };
        Instruction { load, store }
    }

    pub fn load(range: Range) -> Instruction {
        Instruction { load: Some(range), store: None }
    }

    pub fn store(range: Range) -> Instruction {
        Instruction { load: None, store: Some(range) }
    }

    /// The needs of the instruction, in the order of the processor.
    fn needs(&self, node: &Node) -> Vec<Need> {
        let of = |range: &Option<Range>, access| {
            let pieces = range.map(|range| pieces(node, range)).unwrap_or_default();
            pieces.into_iter().map(move |piece| Need {
                index: piece.page.index,
                offset_bytes: piece.offset_bytes,
                access,
            })
        };
        of(&self.load, Access::Read).chain(of(&self.store, Access::Write)).collect()
    }
}

impl Thread {
    /// Pages pinned for this thread.
    pub fn pins(&self) -> impl Iterator<Item = u32> + '_ {
        let served = match &self.stage {
            Stage::Waits(fault) if fault.is_served() => Some(fault.wants().0),
            _ => None,
        };
        self.kept.iter().chain(&self.unpinning).copied().chain(served)
    }

    /// Whether the engine may have its request.
    pub fn waits(&self) -> bool {
        matches!(&self.stage, Stage::Waits(fault) if !fault.is_over())
    }
}

/// The parts of a range, one per block.
fn pieces(node: &Node, range: Range) -> Vec<Piece> {
    let address = node.space.segments.of(Rank(range.home as u32)).base + range.start_bytes;
    let pieces = node.space.pieces(range.home as u32, address, range.len_bytes).expect("inside the segment");
    pieces.flat_map(blocks_of).collect()
}

fn blocks_of(piece: Piece) -> impl Iterator<Item = Piece> {
    let end_bytes = piece.offset_bytes + piece.len_bytes;
    let next = |at: usize| (at + 1).next_multiple_of(MAPPED_BLOCK_BYTES);
    let starts = std::iter::successors(Some(piece.offset_bytes), move |at| Some(next(*at)));
    starts.take_while(move |at| *at < end_bytes).map(move |at| Piece {
        offset_bytes: at,
        len_bytes: next(at).min(end_bytes) - at,
        start_bytes: piece.start_bytes + at - piece.offset_bytes,
        ..piece
    })
}

impl Node {
    /// The rank's own segment as memory.
    pub fn view(&self) -> &SegmentView {
        self.space.view.as_deref().expect("every simulated rank has its segment as memory")
    }

    /// The memory at an offset in the pool.
    pub fn pool_memory(&self, offset_bytes: usize) -> *mut u8 {
        self.space.own.pool.frame(FrameId(0)).wrapping_add(offset_bytes)
    }
}

impl Job {
    /// Starts a thread of `rank` that runs these instructions in order.
    pub fn spawn(&mut self, rank: usize, mut instructions: Vec<Instruction>) {
        instructions.reverse();
        let node = &mut self.nodes[rank];
        node.threads_started += 1;
        node.threads.push(Thread {
            name: node.threads_started,
            instructions,
            stage: Stage::Run,
            is_stepping: false,
            kept: Vec::new(),
            unpinning: Vec::new(),
            has_faulted: false,
            fleeting: 0,
        });
    }

    /// Does the next step of a thread. Returns `false` if it has to wait.
    pub fn advance_thread(&mut self, rank: usize, at: usize, random: &mut Rng) -> bool {
        let node = &mut self.nodes[rank];
        let thread = &mut node.threads[at];
        if let Some(index) = thread.unpinning.pop() {
            self.unpin_page(rank, index);
            return true;
        }
        match std::mem::replace(&mut thread.stage, Stage::Run) {
            Stage::Run => match thread.instructions.last().cloned() {
                Some(instruction) => self.run(rank, at, &instruction, random),
                None => drop(node.threads.swap_remove(at)),
            },
            Stage::Faulted(need) => self.on_fault(rank, at, need, random),
            Stage::Turn(need, patience) => self.take_turn(rank, at, need, patience),
            Stage::Waits(fault) if !fault.is_over() => {
                thread.stage = Stage::Waits(fault);
                return false;
            }
            Stage::Waits(fault) if fault.is_served() => self.keep(rank, at, fault.wants().0),
            Stage::Waits(_) => {
                self.seen.blocks_mapped += 1;
                thread.fleeting += 1;
            }
        }
        true
    }

    /// Runs an instruction, which may fault.
    fn run(&mut self, rank: usize, at: usize, instruction: &Instruction, random: &mut Rng) {
        let node = &mut self.nodes[rank];
        let is_missing = |need: &Need| !node.mapper.reaches(need.index, need.offset_bytes, need.access);
        let missing = instruction.needs(node).into_iter().find(is_missing);
        let thread = &mut node.threads[at];
        if let Some(need) = missing {
            thread.has_faulted = true;
            thread.stage = Stage::Faulted(need);
            return;
        }
        thread.instructions.pop();
        thread.fleeting = 0;
        self.seen.silent += u64::from(!std::mem::take(&mut thread.has_faulted));
        // The single step raises SIGTRAP.
        if std::mem::take(&mut thread.is_stepping) {
            thread.unpinning.append(&mut thread.kept);
            node.turn = node.turn.filter(|owner| *owner != thread.name);
        }
        let mut bytes = match instruction.store {
            Some(range) => contents(range, random),
            None => Vec::new(),
        };
        if let Some(range) = instruction.load {
            bytes = vec![0xEE; range.len_bytes];
            self.access(rank, range, &mut bytes, Access::Read);
        }
        if let Some(range) = instruction.store {
            self.access(rank, range, &mut bytes, Access::Write);
        }
    }

    /// Loads or stores bytes of the own segment through the mappings.
    pub fn access(&mut self, rank: usize, range: Range, bytes: &mut [u8], access: Access) {
        for piece in pieces(&self.nodes[rank], range) {
            let memory = bytes[piece.start_bytes..][..piece.len_bytes].as_mut_ptr();
            let copy = if access == Access::Read { Copy::Get(memory) } else { Copy::Put(memory) };
            let place = self.place_of(rank, &piece, access);
            let (from, to) = if access == Access::Read { (place, memory) } else { (memory, place) };
            // SAFETY: the place belongs to the page and is mapped for this access. `bytes` is as long as the piece, and
            // no other thread runs. A store marks no blocks.
            unsafe {
                std::ptr::copy_nonoverlapping(from, to, piece.len_bytes);
                self.model.note(&copy, &piece);
            }
        }
    }

    /// The bytes for a load or store of a piece. The piece lies in one block.
    fn place_of(&mut self, rank: usize, piece: &Piece, access: Access) -> *mut u8 {
        let (index, node) = (piece.page.index, &self.nodes[rank]);
        if let Some(block) = node.mapper.block_at(index, piece.offset_bytes).filter(|block| block.access >= access) {
            self.seen.in_mapped_blocks += 1;
            return node.pool_memory(block.offset_bytes).wrapping_add(piece.offset_bytes % MAPPED_BLOCK_BYTES);
        }
        if let Some(copy) = node.mapper.copy_at(index, piece.offset_bytes).filter(|_| access == Access::Read) {
            self.seen.in_copies += 1;
            return copy;
        }
        let own = node.mapper.at(index).filter(|mapped| mapped.access >= access).map(|mapped| (rank, mapped.frame));
        let lent = node.mapper.lent_at(index).filter(|_| access == Access::Read);
        let mapped = own.or(lent.map(|(lender, frame)| (lender.index(), frame)));
        let (holder, frame) = mapped.unwrap_or_else(|| panic!("{piece:?} is not mapped for {access:?} at r{rank}"));
        self.seen.lent_loads += u64::from(lent.is_some());
        self.check_use(holder, piece.page, frame, access);
        self.nodes[holder].space.own.pool.frame(frame).wrapping_add(piece.offset_bytes)
    }

    /// Runs the handler of SIGSEGV until it finishes or has to wait.
    fn on_fault(&mut self, rank: usize, at: usize, need: Need, random: &mut Rng) {
        let Need { index, access, .. } = need;
        let (mapper::Settings { steps, tells, .. }, node) = (self.shape.mapper, &mut self.nodes[rank]);
        let view = node.view();
        let access = if tells { access } else { view.more_than_mapped(index) };
        let accessed = view.access(index, access);
        if let PageAccess::Pinned { first_use: true, .. } = accessed {
            node.mailbox.hint(index);
        }
        let thread = &mut node.threads[at];
        match accessed {
            PageAccess::Pinned { crowded: false, .. } if !thread.is_stepping => {
                self.seen.accesses += 1;
                thread.unpinning.push(index);
            }
            PageAccess::Pinned { crowded, .. } => {
                self.seen.crowded += u64::from(crowded);
                self.keep(rank, at, index);
            }
            PageAccess::Missed if access == Access::Read && thread.fleeting < ADDRESSES && node.space.borrow(index) => {
                self.seen.borrowed += 1;
                thread.fleeting += 1;
            }
            PageAccess::Missed => {
                let view = node.space.view.as_ref().expect("every simulated rank has its segment as memory");
                view.give_back(index).expect("there is room to unmap");
                self.seen.faults += 1;
                thread.unpinning.append(&mut thread.kept);
                let patience = if steps { random.u32(1..=TURN_PATIENCE) } else { 0 };
                thread.stage = Stage::Turn(Need { access, ..need }, patience);
            }
            PageAccess::Refused(errno) => panic!("r{rank} has no room for a mapping of page {index}: {errno}"),
        }
    }

    /// A thread without pinned pages waits while another one has the turn, up to a limit. Then it posts its request.
    fn take_turn(&mut self, rank: usize, at: usize, need: Need, patience: u32) {
        let node = &mut self.nodes[rank];
        let thread = &mut node.threads[at];
        match node.turn {
            Some(owner) if owner != thread.name && patience > 0 => {
                self.seen.turns_waited += u64::from(patience == 1);
                thread.stage = Stage::Turn(need, patience - 1);
                return;
            }
            None if thread.is_stepping => node.turn = Some(thread.name),
            _ => {}
        }
        let fault = Box::new(Fault::new());
        assert!(fault.begin(need.index, need.access, false));
        if self.shape.mapper.tells && thread.fleeting < ADDRESSES && !thread.is_stepping {
            fault.accept_block((need.offset_bytes / MAPPED_BLOCK_BYTES * MAPPED_BLOCK_BYTES) as u32);
        }
        node.mailbox.post(&fault);
        thread.stage = Stage::Waits(fault);
    }

    /// The handler returns. With single steps the page stays pinned until the instruction has finished.
    fn keep(&mut self, rank: usize, at: usize, index: u32) {
        let thread = &mut self.nodes[rank].threads[at];
        if self.shape.mapper.steps {
            thread.is_stepping = true;
            thread.kept.push(index);
        } else {
            thread.unpinning.push(index);
        }
    }

    /// Undoes a pin of a page of the own segment.
    pub fn unpin_page(&mut self, rank: usize, index: u32) {
        let node = &self.nodes[rank];
        if node.view().unpin(index) {
            self.seen.notices += 1;
            node.space.own.table.notify_unpinned();
        }
    }

    /// The helper thread takes requests and hints from the mailbox. Returns whether there were any.
    pub fn take_mail(&mut self, rank: usize) -> bool {
        let node = &mut self.nodes[rank];
        if !node.mailbox.has_any() {
            return false;
        }
        let page = |index| PageId::of_segment(node.space.rank, index);
        for fault in node.mailbox.take() {
            let (index, part) = (fault.wants().0, Part::of_fault(page(fault.wants().0), fault));
            // The thread may read the page itself.
            if index % 2 == 0 {
                node.tasks.extend(node.engine.submit_or_read(part).map(Task::of_read));
            } else {
                node.engine.submit(part);
            }
        }
        for index in node.mailbox.take_hints() {
            self.seen.hints += 1;
            node.engine.prefetch_after_use(page(index));
        }
        self.rouse(rank);
        true
    }

    /// The pages of the rank's own segment that its threads have pinned to load and store.
    pub fn access_pins(&self, rank: usize) -> impl Iterator<Item = PageId> + '_ {
        let node = &self.nodes[rank];
        let of = move |index| PageId::of_segment(node.space.rank, index);
        node.threads.iter().flat_map(|thread| thread.pins()).map(of)
    }
}
