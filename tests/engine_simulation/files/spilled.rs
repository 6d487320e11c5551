//! Files with homes that spill evicted pages to a disk of their own. Each read returns the written bytes, wherever they
//! are, and a complete drain brings them all to the file.

use super::FileOptions;
use super::steps::Run;
use crate::directed::{settle_with, shape_far_apart};
use crate::job::{Job, PAGE_BYTES};
use crate::seeds::Seeds;
use crate::shape::Shape;
use fastrand::Rng;
use std::sync::Arc;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_message::{FileAsk, PageFilter};
use vgasnet_protocol::{Rank, Space, Stripes};
use vgasnet_storage::{MemoryFile, NamedFile, NamedOptions, Spill, Storage};

const SPACE: Space = Space::of_file(0);

const PAGES: u32 = 10;

/// Counts of the runs.
#[derive(Debug, Default)]
struct Seen {
    /// The most pages spilled at once.
    spilled: usize,
    /// Failed and repeated drains.
    failed: usize,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Seen) {
        self.spilled += other.spilled;
        self.failed += other.failed;
    }
}

/// Runs one operation after the other. Small pools evict pages, and drains go on meanwhile.
fn run(seed: u64) -> Seen {
    let mut random = Rng::with_seed(seed);
    let (ranks, frames) = (random.u32(1..=3), random.u32(2..=5));
    let ships = random.bool().then_some(0);
    let most = random.u32(1..=PAGES);
    let buffers = std::cell::RefCell::new(Vec::new());
    let storage = |disk| -> Box<dyn Storage> {
        let buffer = MemoryFile::new(9 + buffers.borrow().len() as u64, seed);
        buffers.borrow_mut().push(buffer.clone());
        let options = NamedOptions { read: true, write: true, ..NamedOptions::default() };
        let file = Arc::new(NamedFile::in_memory(&buffer, &options).expect("the options make sense"));
        Box::new(Spill::new(Box::new(disk), file, PAGE_BYTES, most, Arc::new(|_: &str| ())))
    };
    let mut job = Job::with_storage(shape_far_apart(ranks, 3, frames, ships), &mut random, &storage);
    let memory = MemoryFile::new(1, seed);
    let homes: Vec<Rank> = (0..random.u32(1..=ranks)).map(Rank).collect();
    let team: Vec<usize> = (0..ranks as usize).collect();
    let stripes = Stripes { homes: Arc::from(homes), pages: random.u32(1..=2) };
    let options = FileOptions { is_atomic: false, heals: false, heals_early: false };
    assert_eq!(job.open_file(&memory, &team, stripes, PAGES, options), SPACE);
    let mut seen = Seen::default();
    let is_faulty = random.bool();
    job.files.get(SPACE).is_faulty = is_faulty;
    for _ in 0..150 {
        if is_faulty && random.u32(0..12) == 0 {
            // The buffers fail, unnoticed by the ranks.
            let at = random.usize(0..ranks as usize);
            buffers.borrow()[at].limit_space(random.usize(0..20));
        }
        let rank = random.usize(0..ranks as usize);
        let len_bytes = if random.bool() { random.usize(1..100) } else { random.usize(1..2 * PAGE_BYTES) };
        let start_bytes = random.usize(0..PAGES as usize * PAGE_BYTES - len_bytes);
        let is_put = random.u32(0..3) > 0;
        job.call(rank, SPACE, is_put, vec![Run { start_bytes, len_bytes }], &mut random);
        settle_with(&mut job, |job| seen.spilled = seen.spilled.max(spilled(job))).expect("no segment fails");
        if is_faulty && random.u32(0..20) == 0 {
            memory.limit_space(random.usize(0..30));
            seen.failed += usize::from(!flush(&mut job));
            memory.limit_space(usize::MAX);
            // Otherwise the file refuses writes.
            assert!(flush(&mut job), "seed {seed}: there is room");
        }
    }
    assert!(flush(&mut job), "seed {seed}: nothing fails any more");
    assert_eq!(spilled(&job), 0, "seed {seed}: all was drained");
    let file = job.files.get(SPACE);
    let (begun, mut bytes) = (file.history.timestamp(), memory.bytes());
    bytes.resize(PAGES as usize * PAGE_BYTES, 0);
    file.history.check_read(begun, &[Run { start_bytes: 0, len_bytes: bytes.len() }], &bytes);
    seen
}

fn spilled(job: &Job) -> usize {
    let of = |node: &crate::job::Node| node.engine.storage().storage().spill().map_or(0, Spill::pages);
    job.nodes.iter().map(of).sum()
}

/// All ranks flush, then all drain, as sync does. Returns whether all bytes are in the file.
fn flush(job: &mut Job) -> bool {
    let ranks = job.nodes.len();
    for rank in 0..ranks {
        job.nodes[rank].engine.flush_file(SPACE);
        job.rouse(rank);
    }
    settle_with(job, |_| ()).expect("no segment fails");
    assert!(job.nodes.iter().all(|node| node.engine.is_flushed_file(SPACE)), "a flush does not end");
    for rank in 0..ranks {
        job.nodes[rank].engine.drain_file(SPACE);
        job.rouse(rank);
    }
    settle_with(job, |_| ()).expect("no segment fails");
    let drained: Vec<Result<(), Cause>> =
        job.nodes.iter().map(|node| node.engine.is_drained_file(SPACE).expect("a drain ends")).collect();
    let is_written = job.nodes.iter().all(|node| node.engine.unwritten(SPACE).is_none());
    assert!(!is_written || drained.iter().all(Result::is_ok), "what is stuck is named");
    if is_written {
        job.files.get(SPACE).members.values().for_each(|member| member.state.accept());
    }
    is_written
}

/// Writes after a failed flush are spilled again.
#[test]
fn a_flush_that_fails_turns_no_buffer_off() {
    let mut random = Rng::with_seed(1);
    let storage = |disk| -> Box<dyn Storage> {
        let options = NamedOptions { read: true, write: true, ..NamedOptions::default() };
        let file = Arc::new(NamedFile::in_memory(&MemoryFile::new(9, 1), &options).expect("the options make sense"));
        Box::new(Spill::new(Box::new(disk), file, PAGE_BYTES, PAGES, Arc::new(|_: &str| ())))
    };
    // A few bytes of a page without holders are used in blocks at its home.
    let shape = Shape { block_slots: 4, ..shape_far_apart(2, 3, 8, Some(4096)) };
    let mut job = Job::with_storage(shape, &mut random, &storage);
    let memory = MemoryFile::new(1, 1);
    let stripes = Stripes { homes: Arc::from([Rank(0)]), pages: 1 };
    let options = FileOptions { is_atomic: false, heals: false, heals_early: false };
    job.open_file(&memory, &[0, 1], stripes, PAGES, options);
    job.files.get(SPACE).is_faulty = true;
    let mut most = 0;
    let mut put = |job: &mut Job, page: usize, len_bytes: usize| {
        let run = Run { start_bytes: page * PAGE_BYTES, len_bytes };
        job.call(1, SPACE, true, vec![run], &mut random);
        settle_with(job, |job| most = most.max(spilled(job))).expect("no segment fails");
    };
    put(&mut job, 0, 8);
    memory.limit_space(0);
    let id = job.nodes[0].engine.ask_of_file(Rank(0), SPACE, FileAsk::Flush, PageFilter::ALL.0);
    job.rouse(0);
    settle_with(&mut job, |_| ()).expect("no segment fails");
    let answers = job.nodes[0].engine.take_answers_of_file(&[id]).expect("the flush ends");
    assert_ne!(answers[0].cause, 0, "there is room");
    memory.limit_space(usize::MAX);
    (1..PAGES as usize).for_each(|page| put(&mut job, page, PAGE_BYTES));
    assert!(most > 0, "all pass the buffer by");
}

#[test]
fn random_jobs_that_spill_keep_what_was_written() {
    const SEEDS: Seeds = Seeds { variable: "SPILL_SIM", filter: "jobs_that_spill_keep", default: 150 };
    if let Some((total, seeds)) = SEEDS.run(run) {
        assert!(
            seeds < SEEDS.default || total.spilled as u64 > seeds && total.failed > 20,
            "too tame: {}",
            total.failed
        );
    }
}
