//! One run: a job drawn from a seed, the file that its ranks open once or twice, and what happens meanwhile.

use super::FileSeen;
use super::team::Step;
use crate::client::{What, random_range};
use crate::job::{Job, PAGE_BYTES};
use crate::run::random_shape;
use fastrand::Rng;
use std::ops::AddAssign;
use std::sync::Arc;
use vgasnet::storage::{BLOCK_BYTES, MemoryFile};
use vgasnet_protocol::{Rank, Space, Stripes};

/// Seeds of a run by default. With so many the rarest events are no matter of luck.
pub const SEEDS: u64 = 300;

/// More steps than any run needs: a run that takes more does not end.
const STEPS_MAX: usize = 400_000;

/// Random draws before a step looks for anything that can happen.
const TRIES: usize = 64;

/// Kinds of things that happen; see [`Fate::try_kind`].
const KINDS: u32 = 24;

/// Counts of what happened in runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    steps: u64,
    operations: u64,
    messages: u64,
    transfers: u64,
    /// Runs in which something goes wrong with the file.
    faulty: u64,
    /// Runs in which the file is opened twice.
    reopened: u64,
    seen: FileSeen,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Summary) {
        self.steps += other.steps;
        self.operations += other.operations;
        self.messages += other.messages;
        self.transfers += other.transfers;
        self.faulty += other.faulty;
        self.reopened += other.reopened;
        self.seen += other.seen;
    }
}

impl Summary {
    /// Fails if `seeds` runs were too tame to say anything.
    pub fn assert_covers(&self, seeds: u64) {
        let rare = [self.faulty, self.reopened].into_iter().chain(self.seen.counts());
        assert!(seeds < SEEDS || { rare }.all(|count| count >= seeds / 100), "{self:?}");
    }
}

/// Draws what happens next.
struct Fate {
    random: Rng,
    operations_left: usize,
    /// The operations that a rank has under way at once.
    operations_at_once: usize,
    /// The work that a rank's threads have taken at once.
    tasks_at_once: usize,
    /// Most operations are of a few bytes.
    is_small: bool,
    /// Most operations are puts.
    writes: bool,
    /// Something may go wrong with the file.
    is_faulty: bool,
    /// The file is whole when it is closed.
    heals: bool,
    /// It is so before it is flushed by all.
    heals_early: bool,
    drives_idly: bool,
    /// Where the next read in order begins, of each rank.
    scans: Vec<u32>,
}

/// Runs a seed. Panics when something is wrong.
pub fn run(seed: u64) -> Summary {
    let mut random = Rng::with_seed(seed);
    let shape = loop {
        let shape = random_shape(&mut random);
        // No pool of a job has a single frame, which a page that cannot be written would keep.
        if shape.ranks.len() <= 5 && shape.ranks.iter().all(|rank| rank.frames > 1) {
            break shape;
        }
    };
    let mut job = Job::new(shape, &mut random);
    let is_faulty = random.u32(0..3) > 0;
    if random.u32(0..4) == 0 {
        job.nodes.iter().for_each(|node| node.disk.configure(|storage| storage.slow_down(64)));
    }
    if random.bool() {
        let one_in = if is_faulty { random.u64(1..20) } else { u64::MAX };
        job.nodes.iter().for_each(|node| node.disk.let_threads_read(one_in));
    }
    let sessions = random.u32(1..=2);
    let mut fate = Fate {
        operations_left: 0,
        operations_at_once: random.usize(1..=4),
        tasks_at_once: random.usize(1..=3),
        is_small: random.bool(),
        writes: random.bool(),
        is_faulty,
        heals: true,
        heals_early: true,
        drives_idly: random.bool(),
        scans: vec![0; job.nodes.len()],
        random,
    };
    let mut summary = Summary { faulty: u64::from(is_faulty), reopened: u64::from(sessions > 1), ..Summary::default() };
    let memory = MemoryFile::new(1, fate.random.u64(..));
    for session in 1..=sessions {
        fate.heals = session == sessions || fate.random.bool();
        fate.heals_early = fate.heals && fate.random.bool();
        fate.use_file(&mut job, Space::of_file(session), &memory, &mut summary);
    }
    fate.end(&mut job, &mut summary);
    let traffic = job.hub.traffic();
    (summary.messages, summary.transfers) = (traffic.messages, traffic.transfers);
    summary.seen = job.file.map(|file| file.seen).unwrap_or_default();
    summary
}

impl Fate {
    /// From the opening of the file to its end.
    fn use_file(&mut self, job: &mut Job, space: Space, memory: &MemoryFile, summary: &mut Summary) {
        let random = &mut self.random;
        let mut homes: Vec<Rank> = (0..job.nodes.len() as u32).map(Rank).collect();
        random.shuffle(&mut homes);
        homes.truncate(random.usize(1..=homes.len()));
        let stripes = Stripes { homes: Arc::from(homes), pages: random.u32(1..=3) };
        let pages = random.u32(1..=10).max(memory.bytes().len().div_ceil(PAGE_BYTES) as u32);
        job.open_file(space, memory.clone(), stripes, pages);
        self.operations_left = random.usize(20..=120);
        summary.operations += self.operations_left as u64;
        if self.is_faulty {
            self.change_faults(job);
        }
        self.go_on(job, summary);
        job.check_closed();
        job.check_quiet();
        if let Some(file) = job.file.as_mut() {
            file.heal();
        }
    }

    /// Nothing is left when all that was written is on the disks: no frame is lost.
    fn end(&mut self, job: &mut Job, summary: &mut Summary) {
        for rank in 0..job.nodes.len() {
            job.nodes[rank].engine.flush();
            job.rouse(rank);
        }
        self.go_on(job, summary);
        job.check_quiet();
        job.check_disks();
        for rank in 0..job.nodes.len() {
            while !job.nodes[rank].engine.discard_all() {
                job.rouse(rank);
                self.go_on(job, summary);
            }
            let frames = job.nodes[rank].engine.protocol().cache.frames_coming_free();
            let serving = job.nodes[rank].engine.frames_for_blocks();
            assert_eq!(frames + serving, job.shape.ranks[rank].frames, "r{rank} has lost frames");
        }
    }

    /// Lets things happen until nothing can.
    fn go_on(&mut self, job: &mut Job, summary: &mut Summary) {
        let check_every = self.random.usize(1..=12);
        for step in 0..STEPS_MAX {
            summary.steps += 1;
            if !self.happen(job) {
                return;
            }
            if step % check_every == 0 {
                job.check();
            }
        }
        panic!("still busy after {STEPS_MAX} steps");
    }

    /// One thing happens. Returns `false` when nothing can.
    fn happen(&mut self, job: &mut Job) -> bool {
        let ranks = job.nodes.len();
        for _ in 0..TRIES {
            let (rank, kind) = (self.random.usize(0..ranks), self.random.u32(0..KINDS));
            if self.try_kind(job, rank, kind) {
                return true;
            }
        }
        let mut all = (0..ranks).flat_map(|rank| (0..KINDS).map(move |kind| (rank, kind)));
        // Operations that are left may start another time.
        all.any(|(rank, kind)| self.try_kind(job, rank, kind)) || self.operations_left > 0
    }

    /// Makes something of this kind happen at a rank, if it can. Returns whether it did.
    fn try_kind(&mut self, job: &mut Job, rank: usize, kind: u32) -> bool {
        let (tasks, is_over) = (job.nodes[rank].tasks.len(), self.operations_left == 0);
        match kind {
            0..5 if job.is_awake(rank) || (self.drives_idly && !is_over) => {
                drive(job, rank);
                true
            }
            5..8 => tasks < self.tasks_at_once && job.take(rank),
            8..12 if tasks > 0 => {
                job.go_on(rank, self.random.usize(0..tasks));
                true
            }
            12..16 => {
                let count = job.nodes[rank].operations.len();
                let first = if count == 0 { 0 } else { self.random.usize(0..count) };
                (0..count).any(|at| job.advance(rank, (first + at) % count))
            }
            16..20 => self.start_some(job, rank),
            20 | 21 => self.close_some(job, rank, is_over),
            22 => !is_over && self.random.u32(0..20) == 0 && job.flush_or_ask(rank, &mut self.random),
            23 if self.is_faulty && !is_over && self.random.u32(0..200) == 0 => {
                self.change_faults(job);
                true
            }
            _ => false,
        }
    }

    fn close_some(&mut self, job: &mut Job, rank: usize, is_over: bool) -> bool {
        let has_gone_on = job.go_on_with_file(rank, is_over, self.heals);
        if let Some(file) = job.file.as_mut().filter(|file| has_gone_on && self.heals_early && file.all_are(Step::Came))
        {
            file.heal();
        }
        has_gone_on
    }

    /// Starts an operation on the file, or on a segment.
    fn start_some(&mut self, job: &mut Job, rank: usize) -> bool {
        if self.operations_left == 0 || job.nodes[rank].operations.len() >= self.operations_at_once {
            return false;
        }
        self.operations_left -= 1;
        let random = &mut self.random;
        let home = random.usize(0..job.nodes.len());
        let pages = job.shape.ranks[home].pages;
        if random.u32(0..4) == 0 && pages > 0 {
            let index = random.u32(0..pages);
            let range = random_range(random, home, index, pages);
            job.start(rank, if random.bool() { What::Get } else { What::PutNow }, range, random);
            return true;
        }
        let file = job.file.as_ref().expect("it is open");
        let (all_bytes, pages) = (file.size_bytes(), file.pages);
        if random.u32(0..8) == 0 {
            let index = self.scans[rank] % pages;
            self.scans[rank] = index + 1;
            job.call(rank, false, index as usize * PAGE_BYTES, 64, random);
            return true;
        }
        let page = random.usize(0..pages as usize) * PAGE_BYTES;
        let (offset_bytes, len_bytes) = match random.u32(0..8) {
            0..4 => (random.usize(0..PAGE_BYTES - 16), random.usize(1..=16)),
            _ if self.is_small => (random.usize(0..4) * BLOCK_BYTES, random.usize(1..=BLOCK_BYTES)),
            4 => (random.usize(0..PAGE_BYTES), random.usize(1..=PAGE_BYTES)),
            5 => (random.usize(0..4) * BLOCK_BYTES, BLOCK_BYTES),
            _ => (0, PAGE_BYTES * random.usize(1..=2)),
        };
        let start_bytes = page + offset_bytes;
        let is_put = random.u32(0..8) < if self.writes { 7 } else { 3 };
        job.call(rank, is_put, start_bytes, len_bytes.min(all_bytes - start_bytes), random);
        true
    }

    /// Draws what goes wrong with the file from now on, or that nothing does.
    fn change_faults(&mut self, job: &mut Job) {
        let (random, file) = (&mut self.random, job.file.as_mut().expect("it is open"));
        file.is_faulty = true;
        file.heal();
        let (count, page) = (random.u64(0..12), random.u64(0..u64::from(file.pages)) * PAGE_BYTES as u64);
        match random.u32(0..7) {
            0 => {}
            1 => file.memory.configure(|faults| faults.fail_one_in(count + 2)),
            2 => file.memory.configure(|faults| faults.fail_writes_after(count)),
            3 => file.memory.configure(|faults| faults.fail_reads_after(count)),
            4 => file.memory.configure(|faults| faults.fail_at(page..page + PAGE_BYTES as u64)),
            _ => file.memory.limit_space(count as usize),
        }
        file.memory.shorten_one_in(random.u64(1..10));
    }
}

fn drive(job: &mut Job, rank: usize) {
    let before = job.nodes[rank].disk.file_writes();
    job.drive(rank).unwrap_or_else(|error| panic!("r{rank}: {error}"));
    let after = job.nodes[rank].disk.file_writes();
    let held = job.nodes[rank].engine.held_parts() > 0;
    if let Some(file) = job.file.as_mut() {
        file.seen.held += u64::from(held);
        file.seen.behind += if file.is_flushing() { 0 } else { after - before };
    }
}
