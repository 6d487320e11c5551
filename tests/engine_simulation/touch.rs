//! Threads that load from and store to their rank's segment, one step at a time, as the processor and `local::fault` do it.

use crate::client::{Range, contents};
use crate::job::{Job, Node};
use fastrand::Rng;
use vgasnet::memory::Piece;
use vgasnet::memory::{PageAccess, SegmentView};
use vgasnet::request::Copy;
use vgasnet::request::{Fault, Part};
use vgasnet_protocol::coherence::{Access, PageId};

/// Steps that a thread waits for the turn at most.
const TURN_PATIENCE: u32 = 40;

/// One instruction: it does all of this, or it faults and does nothing.
#[derive(Clone, Debug)]
pub struct Instruction {
    load: Option<Range>,
    /// What is loaded, or if nothing is, something else.
    store: Option<Range>,
}

/// A thread with instructions left.
pub struct Thread {
    name: u64,
    instructions: Vec<Instruction>,
    stage: Stage,
    /// It does a single step; these pages are pinned until that is through.
    is_stepping: bool,
    kept: Vec<u32>,
    /// Pages whose visit ends before anything else is done.
    leaving: Vec<u32>,
    /// The present instruction has faulted.
    has_faulted: bool,
}

enum Stage {
    Run,
    /// The handler begins.
    Faulted(u32, Access),
    /// Before a page is fetched.
    Turn(u32, Access, u32),
    /// The thread sleeps until it is served. The engine points to the fault.
    Waits(Box<Fault>),
}

impl Instruction {
    /// Something that is done to `range`, or from there to `other`.
    pub fn random(random: &mut Rng, range: Range, other: Range) -> Instruction {
        let (load, store) = match random.u32(0..8) {
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

    /// Pages and rights that it needs, in the order in which the processor looks for them.
    fn needs(&self, node: &Node) -> Vec<(u32, Access)> {
        let of = |range: &Option<Range>, access| {
            let pieces = range.map(|range| pieces(node, range)).unwrap_or_default();
            pieces.into_iter().map(move |piece| (piece.page.index, access))
        };
        of(&self.load, Access::Read).chain(of(&self.store, Access::Write)).collect()
    }
}

impl Thread {
    /// Pages that are pinned for this thread.
    pub fn pins(&self) -> impl Iterator<Item = u32> + '_ {
        let served = match &self.stage {
            Stage::Waits(fault) if fault.is_served() => Some(fault.index),
            _ => None,
        };
        self.kept.iter().chain(&self.leaving).copied().chain(served)
    }

    /// Whether the engine may have it down as waiting.
    pub fn waits(&self) -> bool {
        matches!(&self.stage, Stage::Waits(fault) if !fault.is_served())
    }
}

fn pieces(node: &Node, range: Range) -> Vec<Piece> {
    let address = node.space.segments[range.home].base + range.start_bytes;
    node.space.pieces(range.home as u32, address, range.len_bytes).expect("inside the segment").collect()
}

impl Node {
    /// The own segment as memory.
    pub fn view(&self) -> &SegmentView {
        self.space.view.as_deref().expect("every simulated rank has its segment as memory")
    }
}

impl Job {
    /// A thread of `rank` starts, whose instructions are done one after another.
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
            leaving: Vec::new(),
            has_faulted: false,
        });
    }

    /// A thread goes on. Returns `false` where it has to wait.
    pub fn advance_thread(&mut self, rank: usize, at: usize, random: &mut Rng) -> bool {
        let node = &mut self.nodes[rank];
        let thread = &mut node.threads[at];
        if let Some(index) = thread.leaving.pop() {
            self.leave_page(rank, index);
            return true;
        }
        match std::mem::replace(&mut thread.stage, Stage::Run) {
            Stage::Run => match thread.instructions.last().cloned() {
                Some(instruction) => self.run(rank, at, &instruction, random),
                None => drop(node.threads.swap_remove(at)),
            },
            Stage::Faulted(index, access) => self.on_fault(rank, at, index, access, random),
            Stage::Turn(index, access, patience) => self.take_turn(rank, at, (index, access), patience),
            Stage::Waits(fault) => {
                if !fault.is_served() {
                    thread.stage = Stage::Waits(fault);
                    return false;
                }
                self.keep(rank, at, fault.index);
            }
        }
        true
    }

    /// The processor tries an instruction.
    fn run(&mut self, rank: usize, at: usize, instruction: &Instruction, random: &mut Rng) {
        let node = &mut self.nodes[rank];
        let missing = instruction.needs(node).into_iter().find(|(index, access)| !node.mapper.allows(*index, *access));
        let thread = &mut node.threads[at];
        if let Some((index, access)) = missing {
            thread.has_faulted = true;
            thread.stage = Stage::Faulted(index, access);
            return;
        }
        thread.instructions.pop();
        self.seen.silent += u64::from(!std::mem::take(&mut thread.has_faulted));
        // The single step raises SIGTRAP.
        if std::mem::take(&mut thread.is_stepping) {
            thread.leaving.append(&mut thread.kept);
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

    /// Loads or stores bytes of the own segment through what the mapper maps.
    pub fn access(&mut self, rank: usize, range: Range, bytes: &mut [u8], access: Access) {
        for piece in pieces(&self.nodes[rank], range) {
            let mapped = self.nodes[rank].mapper.at(piece.page.index).filter(|mapped| mapped.access >= access);
            let frame = mapped.unwrap_or_else(|| panic!("{piece:?} is not mapped for {access:?} at r{rank}")).frame;
            self.check_use(rank, piece.page, frame, access);
            let memory = bytes[piece.start_bytes..][..piece.len_bytes].as_mut_ptr();
            let copy = if access == Access::Read { Copy::Get(memory) } else { Copy::Put(memory) };
            let frame = self.nodes[rank].space.own.pool.frame(frame);
            // SAFETY: the frame lies in the pool, and `bytes` has as many as the piece; one thread does everything here.
            unsafe { self.model.copy(&copy, frame, &piece) };
        }
    }

    /// The handler of SIGSEGV, until it is through or has to wait.
    fn on_fault(&mut self, rank: usize, at: usize, index: u32, access: Access, random: &mut Rng) {
        let (steps, node) = (self.shape.mapper.steps, &mut self.nodes[rank]);
        let view = node.view();
        // Processors that do not run single steps do not tell what the instruction did either.
        let access = if steps { access } else { view.more_than_mapped(index) };
        let accessed = view.access(index, access);
        if let PageAccess::Pinned { first_use: true, .. } = accessed {
            node.mailbox.hint(index);
        }
        let thread = &mut node.threads[at];
        match accessed {
            PageAccess::Pinned { crowded: false, .. } if !thread.is_stepping => {
                self.seen.accesses += 1;
                thread.leaving.push(index);
            }
            PageAccess::Pinned { crowded, .. } => {
                self.seen.crowded += u64::from(crowded);
                self.keep(rank, at, index);
            }
            PageAccess::Missed => {
                self.seen.faults += 1;
                thread.leaving.append(&mut thread.kept);
                let patience = if steps { random.u32(1..=TURN_PATIENCE) } else { 0 };
                thread.stage = Stage::Turn(index, access, patience);
            }
            PageAccess::Refused(errno) => panic!("r{rank} has no room for a mapping of page {index}: {errno}"),
        }
    }

    /// A thread that has no page pinned waits while another one has the turn, but not for ever, and then for the engine.
    fn take_turn(&mut self, rank: usize, at: usize, wants: (u32, Access), patience: u32) {
        let node = &mut self.nodes[rank];
        let thread = &mut node.threads[at];
        match node.turn {
            Some(owner) if owner != thread.name && patience > 0 => {
                self.seen.turns_waited += u64::from(patience == 1);
                thread.stage = Stage::Turn(wants.0, wants.1, patience - 1);
                return;
            }
            None if thread.is_stepping => node.turn = Some(thread.name),
            _ => {}
        }
        let fault = Box::new(Fault::new(wants.0, wants.1, false));
        node.mailbox.post(&fault);
        thread.stage = Stage::Waits(fault);
    }

    /// The handler returns, with the page pinned until the instruction is through where the processor can do that.
    fn keep(&mut self, rank: usize, at: usize, index: u32) {
        let thread = &mut self.nodes[rank].threads[at];
        if self.shape.mapper.steps {
            thread.is_stepping = true;
            thread.kept.push(index);
        } else {
            thread.leaving.push(index);
        }
    }

    /// Ends a visit of a page of the own segment.
    pub fn leave_page(&mut self, rank: usize, index: u32) {
        let node = &self.nodes[rank];
        if node.view().unpin(index) {
            self.seen.notices += 1;
            node.space.own.table.notify_unpinned();
        }
    }

    /// The helper thread looks into the mailbox. Returns whether there was anything.
    pub fn take_mail(&mut self, rank: usize) -> bool {
        let node = &mut self.nodes[rank];
        if !node.mailbox.has_any() {
            return false;
        }
        let page = |index| PageId { home: node.space.rank, index };
        for fault in node.mailbox.take() {
            node.engine.submit(Part::of_fault(page(fault.wants().0), fault));
        }
        for index in node.mailbox.take_hints() {
            self.seen.hints += 1;
            node.engine.prefetch_after_use(page(index));
        }
        self.rouse(rank);
        true
    }

    /// Pages of the own segment that are pinned at `rank` by threads that load and store.
    pub fn kept_pages(&self, rank: usize) -> impl Iterator<Item = PageId> + '_ {
        let node = &self.nodes[rank];
        let of = move |index| PageId { home: node.space.rank, index };
        node.threads.iter().flat_map(|thread| thread.pins()).map(of)
    }
}
