//! One run: a job drawn from a seed, and random events.

use crate::client::{Range, What, random_range};
use crate::job::{Job, PAGE_BYTES, Phase};
use crate::mapper;
use crate::shape::Shape;
use crate::summary::Summary;
use crate::touch::Instruction;
use fastrand::Rng;
use vgasnet_memory::{self as memory, FRAMES_MIN};
use vgasnet_protocol::barrier::Name;
use vgasnet_protocol::byte_message::{AtomicOp, Operands};
use vgasnet_protocol::coherence::Access;
use vgasnet_protocol::replacement::PolicyKind;
use vgasnet_settings::UserError;
use vgasnet_sim_conduit::Settings;
use vgasnet_storage::BLOCK_BYTES;

/// More steps than any run needs: a run that takes more does not end.
const STEPS_MAX: usize = 400_000;

/// Instructions of a thread.
const INSTRUCTIONS_MAX: usize = 12;

/// Random draws before a step looks for anything that can happen.
const TRIES: usize = 64;

/// Draws the next event.
struct Fate {
    random: Rng,
    operations_left: usize,
    /// The most unfinished operations of a rank.
    operations_at_once: usize,
    /// The most unfinished tasks of a rank's threads.
    tasks_at_once: usize,
    /// The most threads of a rank that load and store, and the most that pin. None in some runs.
    threads_at_once: usize,
    /// Most operations use pages of the ranks below this one.
    hot: usize,
    /// Ranks ask homes for the pages written.
    asks: bool,
    /// Most operations are of a few bytes, in one block more than a home has slots for.
    is_small: bool,
    barriers: u32,
    /// Each rank's position in its scan of rank 0's pages.
    scans: Vec<u32>,
    /// Engines are also driven without a reason, as by threads that wait for something else.
    drives_idly: bool,
    /// No operation is left to start.
    settling: bool,
}

pub fn random_shape(random: &mut Rng) -> Shape {
    let ranks = random.usize(2..=8);
    let host_count = random.usize(1..=ranks.min(3));
    let mut hosts: Vec<u32> =
        (0..ranks).map(|rank| if rank < host_count { rank } else { random.usize(0..host_count) } as u32).collect();
    random.shuffle(&mut hosts);
    let (pages_max, frames_min, frames_max) = match random.u32(0..4) {
        0 => (12, 1, 9),
        // A few frames more than loads and stores need.
        1 | 2 => (random.u32(2..=10), FRAMES_MIN, random.u32(FRAMES_MIN..=8)),
        _ => (random.u32(1..=4), 1, random.u32(1..=4)),
    };
    let shape = |random: &mut Rng| memory::Shape {
        pages: if random.u32(0..12) == 0 { 0 } else { random.u32(1..=pages_max) },
        frames: random.u32(frames_min..=frames_max),
    };
    let mut shapes: Vec<_> = (0..ranks).map(|_| shape(random)).collect();
    shapes[0].pages = pages_max;
    let network = Settings {
        hosts,
        peer_memory: random.bool(),
        seed: random.u64(..),
        delay_percent: [0, 20, 50, 90][random.usize(0..4)],
        delay_polls_max: random.u32(1..=30),
        busy_percent: [0, 10, 50][random.usize(0..3)],
    };
    let steps = random.u32(0..4) > 0;
    // Without single steps, an instruction gets all its pages only if all of them may be mapped.
    let mappings = random.u32(if steps { 1 } else { FRAMES_MIN }..=FRAMES_MIN + 1);
    let mapper = mapper::Settings {
        areas_max: if random.bool() { u32::MAX } else { 2 * mappings },
        room: if random.u32(0..4) == 0 { mappings as usize } else { usize::MAX },
        blocks_max: [0, 1, 2, u32::MAX][random.usize(0..4)],
        copies_max: [0, 1, 3, usize::MAX][network.seed as usize % 4],
        steps,
        tells: steps || random.bool(),
    };
    let (cooperative, disk_depth) = (random.u32(0..4) > 0, random.usize(1..=4));
    let policy = if random.u32(0..4) > 0 { PolicyKind::ClockPro } else { PolicyKind::Clock };
    let gap_bytes = [0, 2 * BLOCK_BYTES, usize::MAX][random.usize(0..3)];
    let ships = if random.u32(0..4) > 0 { Some([64, 1024, 8192, 1 << 20][random.usize(0..4)]) } else { None };
    let block_slots = random.usize(2..=4);
    let told_itself_max = 16;
    Shape {
        ranks: shapes,
        network,
        cooperative,
        stripe_pages: None,
        disk_depth,
        gap_bytes,
        mapper,
        policy,
        ships,
        offers_max: random.u32(0..=2),
        block_slots,
        told_itself_max,
    }
}

/// The length of a number, and an operation on it.
fn random_atomic(random: &mut Rng) -> (usize, (AtomicOp, Operands)) {
    use AtomicOp::{Add, And, CompareSwap, Get, Max, MaxSigned, Min, MinSigned, Multiply, Or, Swap, Xor};
    const OPS: [AtomicOp; 12] = [Add, And, Or, Xor, Swap, CompareSwap, Min, Max, MinSigned, MaxSigned, Get, Multiply];
    let operands = Operands { operand: random.u64(..), compare: if random.bool() { 0 } else { random.u64(..) } };
    (if random.bool() { 4 } else { 8 }, (OPS[random.usize(0..OPS.len())], operands))
}

/// Runs a seed. Panics when an invariant is broken.
pub fn run(seed: u64) -> Summary {
    run_as(seed, |shape| shape)
}

/// The same, with a changed shape.
pub fn run_as(seed: u64, change: impl Fn(Shape) -> Shape) -> Summary {
    let mut random = Rng::with_seed(seed);
    let shape = change(random_shape(&mut random));
    let staged = !shape.network.peer_memory || shape.network.hosts.iter().any(|host| *host > 0);
    let mut summary =
        Summary { uncooperative: u64::from(!shape.cooperative), staged: u64::from(staged), ..Summary::default() };
    let mut job = Job::new(shape, &mut random);
    let faulty = random.u32(0..6) == 0;
    if faulty {
        break_a_disk(&job, &mut random);
    }
    let ranks = job.nodes.len();
    if random.u32(0..4) == 0 {
        job.nodes.iter().for_each(|node| node.disk.configure(|storage| storage.slow_down(64)));
    }
    let mut fate = Fate {
        operations_left: random.usize(40..=160),
        operations_at_once: random.usize(1..=4),
        tasks_at_once: random.usize(1..=3),
        threads_at_once: if random.u32(0..4) == 0 { 0 } else { random.usize(1..=4) },
        hot: random.usize(1..=ranks),
        asks: random.u32(0..3) == 0,
        is_small: random.u32(0..3) == 0,
        barriers: random.u32(0..=3),
        scans: vec![0; ranks],
        drives_idly: random.bool(),
        settling: false,
        random,
    };
    match fate.play(&mut job, &mut summary) {
        Ok(()) => {}
        Err((rank, error)) => {
            assert!(faulty, "r{rank}: {error}");
            check_error(&job, rank, &error);
            summary.io_errors += 1;
        }
    }
    let traffic = job.hub.traffic();
    summary.seen = job.seen;
    for node in &job.nodes {
        summary.seen.refusals += node.mapper.refusals();
        summary.seen.unmapped += node.mapper.unmapped();
        let (protected, emptied) = node.mapper.blocks_taken();
        summary.seen.protected += protected;
        summary.seen.emptied += emptied;
        summary.seen.opened += node.mapper.opened();
        summary.seen.partial += node.disk.partial();
        summary.forgotten += node.engine.storage().forgotten();
        summary.cleaned_ahead += node.engine.cleaned_ahead();
        summary.guests += node.engine.guests_came();
    }
    (summary.messages, summary.transfers) = (traffic.messages, traffic.transfers);
    summary
}

fn break_a_disk(job: &Job, random: &mut Rng) {
    let disk = &job.nodes[random.usize(0..job.nodes.len())].disk;
    let (which, count) = (random.u32(0..4), random.u64(0..12));
    disk.configure(|storage| match which {
        0 => storage.fail_reads_after(count),
        1 => storage.fail_writes_after(count),
        2 => storage.fail_at(0..PAGE_BYTES as u64),
        _ => storage.fail_one_in(count + 2),
    });
}

/// The error names the failed operation and its place.
fn check_error(job: &Job, rank: usize, error: &UserError) {
    let (text, failed) = (error.to_string(), job.nodes[rank].disk.failed());
    let is_it = |(verb, place): &(&str, u64)| {
        let page = job.model.page_at(rank, (*place / PAGE_BYTES as u64) as u32);
        let offset = page.index as usize * PAGE_BYTES;
        let whose = match page.space.segment() {
            Some(owner) if owner.index() != rank => format!("rank {owner}'s"),
            _ => "this rank's".to_owned(),
        };
        text.contains(&format!("cannot {verb} the page at offset {offset} of {whose} segment"))
    };
    assert!(failed.iter().any(is_it) && text.contains("Input/output error"), "{text}; {failed:?}");
}

type Outcome = Result<(), (usize, UserError)>;

impl Fate {
    /// The whole run: operations, then quiet, then a flush, then a read of everything by every rank, then the end of
    /// the job.
    fn play(&mut self, job: &mut Job, summary: &mut Summary) -> Outcome {
        summary.operations = self.operations_left as u64;
        self.go_on(job, summary)?;
        summary.barriers = u64::from(self.barriers);
        assert!(job.nodes.iter().all(|node| node.passed == self.barriers), "a rank waits in a barrier");
        job.check_quiet();
        for rank in 0..job.nodes.len() {
            job.nodes[rank].engine.flush();
            job.rouse(rank);
        }
        self.go_on(job, summary)?;
        job.check_quiet();
        job.check_disks();
        for page in job.pages() {
            let rank = self.random.usize(0..job.nodes.len());
            let start_bytes = page.index as usize * PAGE_BYTES;
            let owner = page.space.segment().expect("these jobs have no files").index();
            let range = Range { home: owner, start_bytes, len_bytes: PAGE_BYTES };
            if self.random.bool() && loads_and_stores(job, range.home) {
                job.spawn(range.home, vec![Instruction::load(range)]);
            } else {
                job.start(rank, What::Get, range, &mut self.random);
            }
        }
        self.go_on(job, summary)?;
        job.check_quiet();
        self.leave(job, summary)
    }

    /// Ends every rank's program. No rank learns too early that all have ended.
    fn leave(&mut self, job: &mut Job, summary: &mut Summary) -> Outcome {
        let mut order: Vec<usize> = (0..job.nodes.len()).collect();
        self.random.shuffle(&mut order);
        for rank in order {
            assert!(job.nodes.iter().all(|node| !node.engine.everyone_left()));
            job.nodes[rank].engine.leave();
            job.rouse(rank);
            self.go_on(job, summary)?;
        }
        assert!(job.nodes.iter().all(|node| node.engine.everyone_left()), "a rank waits for others to leave");
        Ok(())
    }

    /// Lets things happen until nothing can.
    fn go_on(&mut self, job: &mut Job, summary: &mut Summary) -> Outcome {
        let check_every = self.random.usize(1..=12);
        for step in 0..STEPS_MAX {
            summary.steps += 1;
            self.settling = self.operations_left == 0;
            if !self.happen(job)? {
                return Ok(());
            }
            if step % check_every == 0 {
                job.check();
            }
        }
        panic!("still busy after {STEPS_MAX} steps");
    }

    /// One thing happens. Returns `false` when nothing can.
    fn happen(&mut self, job: &mut Job) -> Result<bool, (usize, UserError)> {
        let ranks = job.nodes.len();
        for _ in 0..TRIES {
            let (rank, kind) = (self.random.usize(0..ranks), self.random.u32(0..KINDS));
            if self.try_kind(job, rank, kind)? {
                return Ok(true);
            }
        }
        for rank in 0..ranks {
            for kind in 0..KINDS {
                if self.try_kind(job, rank, kind)? {
                    return Ok(true);
                }
            }
        }
        // The remaining operations may start another time.
        Ok(!self.settling)
    }

    /// Makes something of this kind happen at a rank, if it can. Returns whether it did.
    fn try_kind(&mut self, job: &mut Job, rank: usize, kind: u32) -> Result<bool, (usize, UserError)> {
        let tasks = job.nodes[rank].tasks.len();
        Ok(match kind {
            0..5 if job.is_awake(rank) || (self.drives_idly && !self.settling) => {
                job.drive(rank).map_err(|error| (rank, error))?;
                true
            }
            5..8 => tasks < self.tasks_at_once && job.take(rank),
            8..12 if tasks > 0 => {
                job.go_on(rank, self.random.usize(0..tasks));
                true
            }
            12..16 => self.advance_some(job, rank),
            16 => self.start_some(job, rank),
            17 => self.barrier(job, rank),
            18 if !self.settling && self.random.u32(0..100) == 0 => {
                job.nodes[rank].engine.flush();
                job.rouse(rank);
                true
            }
            19..24 => self.touch_some(job, rank),
            24 => job.take_mail(rank),
            25 => self.spawn_some(job, rank),
            26 => self.pin_or_advise_some(job, rank),
            27..29 => self.advance_some_pinner(job, rank),
            29 => job.hear(rank) || self.ask_some(job, rank),
            _ => false,
        })
    }

    /// Does a step of some operation of `rank`, if one need not wait.
    fn advance_some(&mut self, job: &mut Job, rank: usize) -> bool {
        let count = job.nodes[rank].operations.len();
        let first = if count == 0 { 0 } else { self.random.usize(0..count) };
        (0..count).any(|at| job.advance(rank, (first + at) % count))
    }

    fn start_some(&mut self, job: &mut Job, rank: usize) -> bool {
        if self.operations_left == 0 || job.nodes[rank].operations.len() >= self.operations_at_once {
            return false;
        }
        let random = &mut self.random;
        let home = if random.u32(0..4) == 0 { random.usize(0..job.nodes.len()) } else { random.usize(0..self.hot) };
        let pages = job.shape.ranks[home].pages;
        if pages == 0 {
            return false;
        }
        self.operations_left -= 1;
        if random.u32(0..4) == 0 {
            // A scan page by page, for the stream detection.
            let index = self.scans[rank];
            self.scans[rank] = (index + 1) % job.shape.ranks[0].pages;
            let range = Range { home: 0, start_bytes: index as usize * PAGE_BYTES, len_bytes: 64 };
            job.start(rank, What::Get, range, random);
            return true;
        }
        let index = random.u32(0..pages);
        let range = if self.is_small && random.u32(0..8) > 0 {
            let blocks = (job.shape.block_slots as u32 + 1).min(pages);
            let start_bytes = random.u32(0..blocks) as usize * PAGE_BYTES + random.usize(0..BLOCK_BYTES - 16);
            Range { home, start_bytes, len_bytes: random.usize(1..=16) }
        } else {
            random_range(random, home, index, pages)
        };
        if random.u32(0..8) == 0 {
            let (len_bytes, operation) = random_atomic(random);
            let start_bytes = range.start_bytes / 8 * 8;
            job.start(rank, What::Atomic(operation), Range { start_bytes, len_bytes, ..range }, random);
            return true;
        }
        let what = match random.u32(0..8) {
            0..4 => What::Get,
            4..6 => What::Put,
            6 => What::PutNow,
            _ => What::Set(random.u8(..)),
        };
        job.start(rank, what, range, random);
        true
    }

    /// Does a step of some thread of `rank` that loads and stores, if one need not wait.
    fn touch_some(&mut self, job: &mut Job, rank: usize) -> bool {
        let count = job.nodes[rank].threads.len();
        let first = if count == 0 { 0 } else { self.random.usize(0..count) };
        (0..count).any(|at| job.advance_thread(rank, (first + at) % count, &mut self.random))
    }

    fn spawn_some(&mut self, job: &mut Job, rank: usize) -> bool {
        // Without single steps nothing keeps the pages of a thread together: the pool must have room for all.
        let most = if job.shape.mapper.steps { usize::MAX } else { job.shape.ranks[rank].frames as usize / 2 };
        let has_room = job.nodes[rank].threads.len() < self.threads_at_once.min(most);
        if self.operations_left == 0 || !has_room || !loads_and_stores(job, rank) {
            return false;
        }
        self.operations_left -= 1;
        let (random, pages, copies) = (&mut self.random, job.shape.ranks[rank].pages, job.shape.mapper.steps);
        let (index, other, count) = (random.u32(0..pages), random.u32(0..pages), random.usize(1..=INSTRUCTIONS_MAX));
        // Most threads use the same pages again, and find them mapped.
        let stays = random.u32(0..4) > 0;
        let instruction = |_| {
            let mut range = |index| {
                let index = if stays { index } else { random.u32(0..pages) };
                random_range(random, rank, index, pages)
            };
            let (from, to) = (range(index), range(other));
            Instruction::random(random, from, to, copies)
        };
        let instructions = (0..count).map(instruction).collect();
        job.spawn(rank, instructions);
        true
    }

    /// The client of `rank` pins a few pages of its segment, or gives a hint.
    fn pin_or_advise_some(&mut self, job: &mut Job, rank: usize) -> bool {
        let (random, pages) = (&mut self.random, job.shape.ranks[rank].pages);
        let has_room = job.nodes[rank].pinners.len() < self.threads_at_once;
        if self.operations_left == 0 || !has_room || pages == 0 || random.u32(0..2) == 0 {
            return false;
        }
        self.operations_left -= 1;
        let first = random.u32(0..pages);
        let range = first..=random.u32(first..pages.min(first + 3));
        // Pools as small as this may refuse all pins.
        let none = job.shape.ranks[rank].frames <= FRAMES_MIN && random.u32(0..8) > 0;
        if none || random.bool() {
            job.advise(rank, &range, random);
        } else {
            job.pin(rank, range, if random.bool() { Access::Read } else { Access::Write });
        }
        true
    }

    fn advance_some_pinner(&mut self, job: &mut Job, rank: usize) -> bool {
        let count = job.nodes[rank].pinners.len();
        let first = if count == 0 { 0 } else { self.random.usize(0..count) };
        (0..count).any(|at| job.advance_pinner(rank, (first + at) % count, &mut self.random))
    }

    /// The client of `rank` asks for the pages written.
    fn ask_some(&mut self, job: &mut Job, rank: usize) -> bool {
        let has_begun = self.asks && self.operations_left > 0 && self.random.u32(0..8) == 0;
        if has_begun {
            job.ask(rank, &mut self.random);
        }
        has_begun
    }

    /// Lets the client of `rank` come to a barrier, or continue after it.
    fn barrier(&mut self, job: &mut Job, rank: usize) -> bool {
        let cooperative = job.shape.cooperative;
        let node = &mut job.nodes[rank];
        match node.barrier {
            // Ranks come at different times, and the last ones when everything else is done.
            Phase::Away if node.notified < self.barriers && (self.settling || self.random.u32(0..20) == 0) => {
                if !cooperative {
                    node.engine.flush();
                }
                node.barrier = Phase::Flushing;
            }
            Phase::Flushing if cooperative || node.engine.is_flushed() => {
                let name = Name::Id(node.notified as i32);
                node.engine.notify_barrier(name).expect("notify follows wait");
                node.notified += 1;
                node.barrier = Phase::Notified;
            }
            Phase::Notified => {
                let name = Name::Id(node.passed as i32);
                let Some(matched) = node.engine.barrier().finish(name).expect("it notified") else { return false };
                node.passed += 1;
                node.barrier = Phase::Away;
                let passed = node.passed;
                assert!(matched, "everybody gave the same name");
                assert!(job.nodes.iter().all(|node| node.notified >= passed), "r{rank} passed a barrier alone");
            }
            _ => return false,
        }
        job.rouse(rank);
        true
    }
}

/// Whether a rank has a segment to load from and store to, and a pool large enough for that.
fn loads_and_stores(job: &Job, rank: usize) -> bool {
    let shape = job.shape.ranks[rank];
    shape.pages > 0 && shape.frames >= FRAMES_MIN
}

/// Kinds of things that happen; see [`Fate::try_kind`].
const KINDS: u32 = 30;
