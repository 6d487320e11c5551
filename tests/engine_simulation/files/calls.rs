//! Reads and writes of shared files by client threads.

use super::locks::{Lock, Wanted};
use super::steps::{OneStep, Run};
use super::team::Step;
use crate::client::{Operation, What};
use crate::job::{Job, PAGE_BYTES};
use fastrand::Rng;
use std::collections::VecDeque;
use std::ops::Range;
use vgasnet_engine::request::{Completion, Handle, Part};
use vgasnet_memory::Piece;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::{Cause, PageId};
use vgasnet_protocol::file_locks::{LockId, LockMode, LockPurpose, LockRange};
use vgasnet_protocol::file_message::PageFilter;

/// A read or write in progress.
#[derive(Clone, Debug)]
pub struct Call {
    pub space: Space,
    pub is_put: bool,
    pub runs: Vec<Run>,
    /// When it began.
    begun: u64,
    /// The numbers of its writes in the history, one per run.
    writes: Range<usize>,
    /// The write was announced when it began: a flush of the file checks whether it has ended.
    pub is_noted: bool,
    /// The lock of an atomic call.
    pub lock: Option<LockId>,
}

impl Call {
    /// Whether the handle belongs to this call.
    pub fn has(&self, handle: Handle) -> bool {
        self.is_noted && handle_of(&self.writes) == handle
    }
}

/// A handle for a call with these writes.
fn handle_of(writes: &Range<usize>) -> Handle {
    Handle::from_bits(writes.start as u64 + 1).expect("it is not 0")
}

impl Job {
    /// A client thread of `rank` begins a read or write of a file, unless a write is refused.
    pub fn call(&mut self, rank: usize, space: Space, is_put: bool, runs: Vec<Run>, random: &mut Rng) {
        let file = self.files.open.get_mut(&space).expect("it is open");
        let state = &file.members[&rank].state;
        if is_put && state.refusal().is_some() {
            self.files.seen.refused += 1;
            return;
        }
        let len_bytes = runs.iter().map(|run| run.len_bytes).sum();
        let memory: Vec<u8> = (0..len_bytes).map(|_| random.u8(..)).collect();
        self.files.seen.lists += u64::from(runs.len() > 1);
        self.files.seen.during_sync += u64::from(file.members[&rank].step > Step::Using);
        let mut is_noted = false;
        if is_put {
            let end_bytes = end_of(&runs);
            file.most_bytes = file.most_bytes.max(end_bytes);
            // As a nonblocking write does.
            if !file.options.is_atomic && random.bool() {
                state.note_written_end(end_bytes);
                is_noted = true;
            }
        }
        let begun = file.history.timestamp();
        let writes = if is_put { file.history.begin_writes(rank, &runs, &memory) } else { 0..0 };
        if is_noted {
            runs.iter().for_each(|run| state.note_begun(handle_of(&writes), pages_of(run), |_| true));
        }
        let call = Call { space, is_put, runs, begun, writes, is_noted, lock: None };
        if !file.options.is_atomic {
            return self.begin_call(rank, call, memory);
        }
        self.files.seen.in_one_step += 1;
        let mode = if is_put { LockMode::Exclusive } else { LockMode::Shared };
        let range = |run: &Run| LockRange { start: run.start_bytes as u64, end: run.end_bytes() as u64, mode };
        let ranges: Vec<LockRange> = call.runs.iter().map(range).collect();
        let id = self.ask_for_lock(rank, space, LockPurpose::Atomicity, &ranges);
        let call = Call { lock: Some(id), ..call };
        let lock = Lock { id, purpose: LockPurpose::Atomicity, ranges, wanted: Some(Wanted { call, memory }) };
        self.files.get(space).members.get_mut(&rank).expect("it is a member").locks.push(lock);
    }

    /// Begins a call that has its lock, or needs none.
    pub fn begin_call(&mut self, rank: usize, call: Call, memory: Vec<u8>) {
        let pieces = pieces(call.space, &call.runs);
        self.begin(rank, if call.is_put { What::Put } else { What::Get }, pieces, memory, Some(call));
    }

    /// Ends a complete operation. For a file, compares the bytes it has read.
    pub fn on_called(&mut self, rank: usize, operation: Operation, cause: u32) {
        let Some(call) = operation.call.clone() else {
            return assert_eq!(cause, 0, "an operation on a segment has failed");
        };
        let (file, seen) = (self.files.open.get_mut(&call.space).expect("it is open"), &mut self.files.seen);
        let has_failed = cause != 0;
        seen.failed_reads += u64::from(has_failed && !call.is_put);
        seen.failed_writes += u64::from(has_failed && call.is_put);
        let state = &file.members[&rank].state;
        assert!(!has_failed || state.first_error().is_some(), "an error is not noted");
        if call.is_put {
            file.history.end_writes(call.writes, has_failed);
            let end_bytes = end_of(&call.runs);
            if !call.is_noted {
                state.note_written_end(end_bytes);
                call.runs.iter().for_each(|run| state.note_written_pages(pages_of(run)));
            }
            file.least_bytes = file.least_bytes.max(end_bytes);
        } else if !has_failed {
            file.history.check_read(call.begun, &call.runs, operation.memory());
        }
        if let Some(steps) = &mut file.steps {
            let (begun, ended) = (call.begun, file.history.timestamp());
            let Call { is_put, runs, .. } = call;
            steps.push(OneStep { rank, is_put, has_failed, begun, ended, runs, bytes: operation.memory().to_vec() });
        }
        if let Some(id) = call.lock {
            self.unlock(rank, call.space, id);
        }
    }

    /// Reports a failed part, as the driver does.
    pub fn fail_part(&mut self, rank: usize, part: Part, cause: Cause) {
        let (node, page) = (&mut self.nodes[rank], part.piece.page);
        let file = self.files.open.get(&page.space).expect("only parts of open files fail");
        let seen = &mut self.files.seen;
        assert!(file.is_faulty, "{page:?} has failed: {cause:?}");
        match cause {
            Cause(errno) if errno == libc::EIO as u32 => seen.failed_io += 1,
            Cause(errno) if errno == libc::ENOSPC as u32 => seen.failed_space += 1,
            other => panic!("{page:?} has failed: {other:?}"),
        }
        match part.completion {
            Completion::Counted(completion) => {
                node.engine.note_file_error(page.space, cause);
                node.completions.fail(completion, cause.0);
                node.completions.finish(completion);
            }
            Completion::Served(id) => {
                seen.failed_served += 1;
                node.engine.on_served_failed(id, cause);
            }
            Completion::Then(..) | Completion::Fault(_) | Completion::Nobody => {
                unreachable!("nobody asks so for bytes of files")
            }
        }
    }
}

fn pages_of(run: &Run) -> PageFilter {
    PageFilter::of((run.start_bytes / PAGE_BYTES) as u32, ((run.end_bytes() - 1) / PAGE_BYTES) as u32)
}

fn end_of(runs: &[Run]) -> u64 {
    runs.iter().map(Run::end_bytes).max().unwrap_or_default() as u64
}

/// The pieces of pages covered by runs of a file.
fn pieces(space: Space, runs: &[Run]) -> VecDeque<Piece> {
    let (mut pieces, mut start_bytes) = (VecDeque::new(), 0);
    for run in runs {
        let mut at = run.start_bytes;
        while at < run.end_bytes() {
            let next = (at + 1).next_multiple_of(PAGE_BYTES).min(run.end_bytes());
            let page = PageId { space, index: (at / PAGE_BYTES) as u32 };
            pieces.push_back(Piece { page, offset_bytes: at % PAGE_BYTES, len_bytes: next - at, start_bytes });
            start_bytes += next - at;
            at = next;
        }
    }
    pieces
}
