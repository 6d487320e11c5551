//! One run: a job drawn from a seed, the files its ranks open once or several times, and random events.

use super::steps::Run;
use super::team::{Errand, Step};
use super::{FileOptions, FileSeen};
use crate::client::{What, random_range};
use crate::job::{Job, PAGE_BYTES};
use crate::run::random_shape;
use fastrand::Rng;
use std::ops::AddAssign;
use std::sync::Arc;
use vgasnet_protocol::{Rank, Space, Stripes};
use vgasnet_storage::{BLOCK_BYTES, MemoryFile};

/// Seeds of a run by default: enough to make the rarest events certain.
pub const SEEDS: u64 = 300;

/// More steps than any run needs: a run that takes more does not end.
const STEPS_MAX: usize = 400_000;

/// Random draws before a step looks for anything that can happen.
const TRIES: usize = 64;

/// Steps between two checks of a crash.
const CRASH_EVERY: usize = 50;

/// Kinds of things that happen; see [`Fate::try_kind`].
const KINDS: u32 = 29;

/// Files of a job.
const FILES_MAX: usize = 3;

/// Ranges of a call.
const RUNS_MAX: usize = 4;

/// Counts of the events of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    steps: u64,
    operations: u64,
    messages: u64,
    transfers: u64,
    /// Runs with faulty files.
    faulty: u64,
    seen: FileSeen,
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Summary) {
        self.steps += other.steps;
        self.operations += other.operations;
        self.messages += other.messages;
        self.transfers += other.transfers;
        self.faulty += other.faulty;
        self.seen += other.seen;
    }
}

impl Summary {
    /// Fails if `seeds` runs have missed one of the rare paths.
    pub fn assert_covers(&self, seeds: u64) {
        let rare = [self.faulty].into_iter().chain(self.seen.counts());
        assert!(seeds < SEEDS || { rare }.all(|count| count >= seeds / 100), "{self:?}");
    }
}

/// Draws the next event.
struct Fate {
    random: Rng,
    operations_left: usize,
    /// The most unfinished operations of a rank.
    operations_at_once: usize,
    /// The most unfinished tasks of a rank's threads.
    tasks_at_once: usize,
    /// Most operations are of a few bytes.
    is_small: bool,
    /// Most operations are puts.
    writes: bool,
    /// Files may fail.
    is_faulty: bool,
    drives_idly: bool,
    /// Where the next sequential read of each rank begins.
    scans: Vec<u32>,
    /// The files, and the last team of each.
    memories: Vec<(MemoryFile, Vec<usize>)>,
    /// How many times a file is still to be opened.
    opens_left: usize,
}

/// Runs a seed. Panics when an invariant is broken.
pub fn run(seed: u64) -> Summary {
    let mut random = Rng::with_seed(seed);
    let shape = loop {
        let shape = random_shape(&mut random);
        // Every pool has two frames or more: a page that cannot be written would keep a single frame for ever.
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
    let files = random.usize(1..=FILES_MAX);
    let memories = (0..files).map(|at| (MemoryFile::new(at as u64 + 1, random.u64(..)), Vec::new())).collect();
    let operations = random.usize(40..=160);
    let mut fate = Fate {
        operations_left: operations,
        operations_at_once: random.usize(1..=4),
        tasks_at_once: random.usize(1..=3),
        is_small: random.bool(),
        writes: random.bool(),
        is_faulty,
        drives_idly: random.bool(),
        scans: vec![0; job.nodes.len()],
        memories,
        opens_left: random.usize(files..=2 * files + 1),
        random,
    };
    let mut summary = Summary { faulty: u64::from(is_faulty), operations: operations as u64, ..Summary::default() };
    fate.go_on(&mut job, &mut summary);
    job.check_all_closed();
    job.check_quiet();
    fate.end(&mut job, &mut summary);
    let traffic = job.hub.traffic();
    (summary.messages, summary.transfers) = (traffic.messages, traffic.transfers);
    summary.seen = job.files.seen;
    summary
}

impl Fate {
    /// Ranks open a file that no rank has open.
    fn open_some(&mut self, job: &mut Job) -> bool {
        let random = &mut self.random;
        let at = random.usize(0..self.memories.len());
        let (memory, before) = &mut self.memories[at];
        let is_open = job.files.open.values().any(|file| file.named.identity().1 == at as u64 + 1);
        if is_open || self.opens_left == 0 || self.operations_left == 0 {
            return false;
        }
        self.opens_left -= 1;
        let mut team: Vec<usize> = (0..job.nodes.len()).collect();
        random.shuffle(&mut team);
        team.truncate(if random.bool() { team.len() } else { random.usize(1..=team.len()) });
        let mut homes: Vec<Rank> = team.iter().map(|rank| Rank(*rank as u32)).collect();
        homes.truncate(random.usize(1..=homes.len()));
        team.sort_unstable();
        job.files.seen.other_team += u64::from(!before.is_empty() && *before != team);
        let stripes = Stripes { homes: Arc::from(homes), pages: random.u32(1..=3) };
        let pages = random.u32(1..=10).max(memory.bytes().len().div_ceil(PAGE_BYTES) as u32);
        let heals = random.bool();
        let options = FileOptions { is_atomic: random.u32(0..3) == 0, heals, heals_early: heals && random.bool() };
        let space = job.open_file(memory, &team, stripes, pages, options);
        *before = team;
        if self.is_faulty {
            self.change_faults(job, space);
        }
        true
    }

    /// Nothing is left once all written bytes are on the disks: no frame is lost.
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
            let frames = job.nodes[rank].engine.protocol().cache.surplus_frames();
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
            if step % CRASH_EVERY == 0 {
                job.check_crash(step as u64);
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
        if job.files.open.is_empty() && self.opens_left == 0 {
            self.operations_left = 0;
        }
        let mut all = (0..ranks).flat_map(|rank| (0..KINDS).map(move |kind| (rank, kind)));
        // The remaining operations may start another time.
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
            20..23 => self.for_some_file(job, rank, |job, space| job.go_on_with_file(rank, space)),
            23 | 24 => self.for_some_file(job, rank, |job, space| job.go_on_with_lock(rank, space)),
            25 => self.random.u32(0..4) == 0 && self.open_some(job),
            26 => self.begin_errand(job, is_over),
            27 if !is_over && self.random.u32(0..20) == 0 => self.do_alone(job, rank),
            28 if self.is_faulty && !is_over && self.random.u32(0..200) == 0 => {
                let space = self.file_in_use(job, rank);
                space.into_iter().for_each(|space| self.change_faults(job, space));
                space.is_some()
            }
            _ => false,
        }
    }

    /// Tries the files in some order, until `work` succeeds with one.
    fn for_some_file(&mut self, job: &mut Job, rank: usize, mut work: impl FnMut(&mut Job, Space) -> bool) -> bool {
        let mut its: Vec<Space> = job
            .files
            .open
            .iter()
            .filter(|(_, file)| file.members.contains_key(&rank))
            .map(|(space, _)| *space)
            .collect();
        self.random.shuffle(&mut its);
        its.into_iter().any(|space| work(job, space))
    }

    /// A file in use by a rank, if any.
    fn file_in_use(&mut self, job: &Job, rank: usize) -> Option<Space> {
        let is_in_use =
            |space: &Space| job.files.open[space].members.get(&rank).is_some_and(|member| member.step == Step::Using);
        let its: Vec<Space> = job.files.open.keys().copied().filter(is_in_use).collect();
        self.random.choice(its)
    }

    /// A file about which a rank may begin a call, if any.
    fn file_to_call(&mut self, job: &Job, rank: usize) -> Option<Space> {
        let may_begin = |space: &Space| {
            let file = &job.files.open[space];
            file.members.get(&rank).is_some_and(|member| member.may_begin(file.errand))
        };
        let its: Vec<Space> = job.files.open.keys().copied().filter(may_begin).collect();
        self.random.choice(its)
    }

    /// A rank does something with a file other than reading and writing.
    fn do_alone(&mut self, job: &mut Job, rank: usize) -> bool {
        let Some(space) = self.file_to_call(job, rank) else { return false };
        if self.random.u32(0..4) == 0 {
            return job.lock_some(rank, space, &mut self.random);
        }
        job.flush_or_ask(rank, space, &mut self.random)
    }

    /// Begins a joint operation on a file.
    fn begin_errand(&mut self, job: &mut Job, is_over: bool) -> bool {
        if !is_over && self.random.u32(0..60) > 0 {
            return false;
        }
        let Some(file) = job.files.open.values_mut().find(|file| file.errand.is_none()) else { return false };
        let bytes = self.random.u64(0..=file.size_bytes() as u64);
        file.errand = Some(match self.random.u32(0..5) {
            _ if is_over => Errand::Close,
            0 | 1 => Errand::Sync,
            2 => Errand::SetSize(bytes),
            _ => Errand::Close,
        });
        true
    }

    /// Starts an operation on a file, or on a segment.
    fn start_some(&mut self, job: &mut Job, rank: usize) -> bool {
        let locks = job.files.open.values().filter_map(|file| file.members.get(&rank)).map(|member| member.locks.len());
        let unfinished = job.nodes[rank].operations.len() + locks.sum::<usize>();
        if self.operations_left == 0 || unfinished >= self.operations_at_once {
            return false;
        }
        let space = self.file_to_call(job, rank);
        let random = &mut self.random;
        let home = random.usize(0..job.nodes.len());
        let pages = job.shape.ranks[home].pages;
        if (space.is_none() || random.u32(0..4) == 0) && pages > 0 {
            self.operations_left -= 1;
            let index = random.u32(0..pages);
            let range = random_range(random, home, index, pages);
            job.start(rank, if random.bool() { What::Get } else { What::PutNow }, range, random);
            return true;
        }
        let Some(space) = space else { return false };
        self.operations_left -= 1;
        let (all_bytes, pages) = (job.files.open[&space].size_bytes(), job.files.open[&space].pages);
        if random.u32(0..8) == 0 {
            let index = self.scans[rank] % pages;
            self.scans[rank] = index + 1;
            let run = Run { start_bytes: index as usize * PAGE_BYTES, len_bytes: 64 };
            job.call(rank, space, false, vec![run], random);
            return true;
        }
        let count = if random.u32(0..4) == 0 { random.usize(2..=RUNS_MAX) } else { 1 };
        let runs = random_runs(random, all_bytes, count, self.is_small);
        let is_put = random.u32(0..8) < if self.writes { 7 } else { 3 };
        job.call(rank, space, is_put, runs, random);
        true
    }

    /// Draws the faults of a file from now on, or none.
    fn change_faults(&mut self, job: &mut Job, space: Space) {
        let (random, file) = (&mut self.random, job.files.open.get_mut(&space).expect("it is open"));
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

/// Disjoint runs, in any order.
fn random_runs(random: &mut Rng, all_bytes: usize, count: usize, is_small: bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for _ in 0..count {
        let page = random.usize(0..all_bytes / PAGE_BYTES) * PAGE_BYTES;
        let (offset_bytes, len_bytes) = match random.u32(0..8) {
            0..4 => (random.usize(0..PAGE_BYTES - 16), random.usize(1..=16)),
            _ if is_small => (random.usize(0..4) * BLOCK_BYTES, random.usize(1..=BLOCK_BYTES)),
            4 => (random.usize(0..PAGE_BYTES), random.usize(1..=PAGE_BYTES)),
            5 => (random.usize(0..4) * BLOCK_BYTES, BLOCK_BYTES),
            _ => (0, PAGE_BYTES * random.usize(1..=2)),
        };
        let start_bytes = page + offset_bytes;
        let run = Run { start_bytes, len_bytes: len_bytes.min(all_bytes - start_bytes) };
        if runs.iter().all(|other| other.end_bytes() <= run.start_bytes || run.end_bytes() <= other.start_bytes) {
            runs.push(run);
        }
    }
    runs
}

fn drive(job: &mut Job, rank: usize) {
    let before = job.nodes[rank].disk.file_writes();
    job.drive(rank).unwrap_or_else(|error| panic!("r{rank}: {error}"));
    let after = job.nodes[rank].disk.file_writes();
    let is_flushing = job.files.open.values().any(|file| file.is_flushing());
    job.files.seen.held += u64::from(job.nodes[rank].engine.held_parts() > 0);
    job.files.seen.behind += if is_flushing { 0 } else { after - before };
}
