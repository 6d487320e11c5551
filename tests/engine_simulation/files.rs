//! Whole engines with a shared file besides the segments.
//!
//! Ranks open the file together, get and put its bytes beside those of segments, flush it, and close it together. In some runs the
//! file fails: reads and writes with EIO, writes for lack of space. Two models look on. The one of copies knows the newest bytes of
//! every page, as for segments. The [`History`] of calls knows which bytes a read may return that was begun when it was.
//!
//! What must hold, besides what holds for segments: a call whose completion has no cause is done. After a flush that no rank refuses
//! the file has what was written. After the file was closed nothing of it is left.
//!
//! A failure prints the command that replays it. `FILE_SIM_SEEDS` sets how many seeds a run tries, `FILE_SIM_FIRST` where it begins,
//! `FILE_SIM_SEED` runs one.

mod history;
mod run;
mod team;

use crate::client::{Operation, What};
use crate::job::{Job, PAGE_BYTES};
use crate::seeds::Seeds;
use crate::seen::counters;
use fastrand::Rng;
use history::History;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use team::Member;
use vgasnet::engine::FileState;
use vgasnet::memory::Piece;
use vgasnet::request::{Completion, Part};
use vgasnet::storage::{MemoryFile, NamedFile, NamedOptions};
use vgasnet_protocol::coherence::{Cause, PageId};
use vgasnet_protocol::{Space, Stripes};

counters! {
    /// How often the rarer paths about files were taken.
    FileSeen {
        /// Parts that failed, with EIO.
        failed_io,
        /// Parts that failed for lack of space.
        failed_space,
        /// Pieces of other ranks' requests that failed.
        failed_served,
        /// Reads that failed.
        failed_reads,
        /// Writes that failed.
        failed_writes,
        /// Writes that were refused because something before could not be written.
        refused,
        /// Parts that were carried out elsewhere.
        shipped,
        /// Parts in blocks.
        in_blocks,
        /// Pages that were overwritten whole without being read.
        overwritten,
        /// Drives after which parts waited until fewer pages were dirty.
        held,
        /// Writes to the file while no rank flushed it.
        behind,
        /// Flushes by single ranks, without the others.
        flushes,
        /// Those of which a rank was told that something could not be written.
        failed_flushes,
        /// What a rank had written that its flush left to the rank that had the page.
        elsewhere,
        /// Flushes by all that had to be repeated.
        repeated,
        /// Times that the file was closed though something could not be written.
        lost,
        /// Times that it was closed with all of it written.
        closed,
        /// Messages that were on their way when the first rank closed the file.
        overtaken,
    }
}

/// A file that the ranks of a job have open together.
pub struct SharedFile {
    pub space: Space,
    pub memory: MemoryFile,
    pub seen: FileSeen,
    /// As many pages as operations use.
    pages: u32,
    stripes: Stripes,
    named: Arc<NamedFile>,
    states: Vec<Arc<FileState>>,
    history: History,
    members: Vec<Member>,
    /// Something goes wrong with it.
    is_faulty: bool,
}

/// A read or write of the file under way.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    is_put: bool,
    start_bytes: usize,
    /// The moment when it began; of a write its number.
    begun: u64,
}

impl SharedFile {
    pub fn has_block(&self, index: u32, block: usize, bytes: &[u8]) -> bool {
        let blocks = PAGE_BYTES / vgasnet::storage::BLOCK_BYTES;
        let bytes = bytes.try_into().expect("a block");
        self.memory.has_block(u64::from(index) * blocks as u64 + block as u64, bytes)
    }

    pub fn note_blocks(&mut self, part: &Part) {
        self.seen.in_blocks += u64::from(part.piece.page.space == self.space);
    }

    pub fn note_shipped(&mut self, part: &Part) {
        self.seen.shipped += u64::from(part.piece.page.space == self.space);
    }

    pub fn note_overwritten(&mut self, page: PageId) {
        self.seen.overwritten += u64::from(page.space == self.space);
    }

    fn size_bytes(&self) -> usize {
        self.pages as usize * PAGE_BYTES
    }
}

impl Job {
    /// All ranks open a file of which they use so many pages.
    fn open_file(&mut self, space: Space, memory: MemoryFile, stripes: Stripes, pages: u32) {
        let options = NamedOptions { read: true, write: true, ..NamedOptions::default() };
        let named = Arc::new(NamedFile::in_memory(&memory, &options).expect("the options make sense"));
        let bytes = memory.bytes();
        let states: Vec<Arc<FileState>> = self.nodes.iter().map(|_| Arc::default()).collect();
        for (node, state) in self.nodes.iter_mut().zip(&states) {
            let pages = bytes.len().div_ceil(PAGE_BYTES) as u32;
            node.engine.open_file(space, stripes.clone(), pages, Some(Arc::clone(&named)), Arc::clone(state));
        }
        self.model.add_file(space, stripes.clone(), &bytes, pages);
        let history = History::new(self.model.bytes(space));
        let members = self.nodes.iter().map(|_| Member::new(bytes.len() as u64)).collect();
        let seen = self.file.as_ref().map_or_else(FileSeen::default, |file| file.seen);
        self.file =
            Some(SharedFile { space, memory, seen, pages, stripes, named, states, history, members, is_faulty: false });
    }

    /// The pages of the file, while it is open on all ranks.
    pub fn pages_of_file(&self) -> impl Iterator<Item = PageId> + use<> {
        let open = self.file.as_ref().filter(|file| file.is_open());
        let (space, pages) = open.map_or((Space::of_file(0), 0), |file| (file.space, file.pages));
        (0..pages).map(move |index| PageId { space, index })
    }

    /// Whether the page is of a file that some rank has closed, or cut.
    pub fn is_closing(&self, page: PageId) -> bool {
        page.space.segment().is_none() && !self.file.as_ref().is_some_and(SharedFile::is_open)
    }

    /// A client thread of `rank` starts to read or write bytes of the file, unless it is refused.
    fn call(&mut self, rank: usize, is_put: bool, start_bytes: usize, len_bytes: usize, random: &mut Rng) {
        let file = self.file.as_mut().expect("it is open");
        if is_put && file.states[rank].refusal.load(Ordering::Relaxed) != 0 {
            file.seen.refused += 1;
            return;
        }
        let memory: Vec<u8> = (0..len_bytes).map(|_| random.u8(..)).collect();
        let begun = if is_put {
            let end_bytes = (start_bytes + len_bytes) as u64;
            file.states[rank].written_end.fetch_max(end_bytes, Ordering::Relaxed);
            file.history.begin_write(rank, start_bytes, memory.clone())
        } else {
            file.history.begin_read()
        };
        let call = Call { is_put, start_bytes, begun };
        let pieces = pieces(file.space, start_bytes, len_bytes);
        self.begin(rank, if is_put { What::Put } else { What::Get }, pieces, memory, Some(call));
    }

    /// An operation is complete: for a file, compares the bytes that it has read.
    pub fn on_called(&mut self, rank: usize, operation: Operation, cause: u32) {
        let Some(call) = operation.call else { return assert_eq!(cause, 0, "an operation on a segment has failed") };
        let file = self.file.as_mut().expect("it is open");
        let has_failed = cause != 0;
        file.seen.failed_reads += u64::from(has_failed && !call.is_put);
        file.seen.failed_writes += u64::from(has_failed && call.is_put);
        assert!(!has_failed || file.states[rank].first_error.load(Ordering::Relaxed) != 0, "an error is not noted");
        if call.is_put {
            file.history.end_write(call.begun, has_failed);
        } else if !has_failed {
            file.history.check_read(call.begun, call.start_bytes, operation.memory());
        }
    }

    /// As the driver does, tells that a part has failed.
    pub fn fail_part(&mut self, rank: usize, part: Part, cause: Cause) {
        let (node, page) = (&mut self.nodes[rank], part.piece.page);
        let file = self.file.as_mut().filter(|file| file.space == page.space).expect("only parts of files fail");
        assert!(file.is_faulty, "{page:?} has failed: {cause:?}");
        match cause {
            Cause(errno) if errno == libc::EIO as u32 => file.seen.failed_io += 1,
            Cause(errno) if errno == libc::ENOSPC as u32 => file.seen.failed_space += 1,
            other => panic!("{page:?} has failed: {other:?}"),
        }
        match part.completion {
            Completion::Counted(completion) => {
                node.engine.note_file_error(page.space, cause);
                node.completions.fail(completion, cause.0);
                node.completions.finish(completion);
            }
            Completion::Served(id) => {
                file.seen.failed_served += 1;
                node.engine.on_served_failed(id, cause);
            }
            Completion::Then(..) | Completion::Fault(_) => unreachable!("nobody asks so for bytes of files"),
        }
    }
}

/// The pieces of pages that a range of a file has.
fn pieces(space: Space, start_bytes: usize, len_bytes: usize) -> VecDeque<Piece> {
    let end = start_bytes + len_bytes;
    let next = |at: &usize| Some((at + 1).next_multiple_of(PAGE_BYTES));
    let starts = std::iter::successors(Some(start_bytes), next).take_while(|at| *at < end);
    let piece = |at: usize| Piece {
        page: PageId { space, index: (at / PAGE_BYTES) as u32 },
        offset_bytes: at % PAGE_BYTES,
        len_bytes: (at + 1).next_multiple_of(PAGE_BYTES).min(end) - at,
        start_bytes: at - start_bytes,
    };
    starts.map(piece).collect()
}

#[test]
fn random_jobs_with_a_shared_file_keep_every_invariant() {
    const SEEDS: Seeds = Seeds { variable: "FILE_SIM", filter: "shared_file_keep", default: run::SEEDS };
    if let Some((total, seeds)) = SEEDS.run(run::run) {
        total.assert_covers(seeds);
    }
}

#[test]
fn a_seed_with_a_shared_file_is_one_run() {
    for seed in [3, 4, 5] {
        assert_eq!(run::run(seed), run::run(seed));
    }
}
