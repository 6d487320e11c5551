//! Crashes of a shared file's disk with a write cache: unsynced sectors may vanish, one by one. After a crash in any
//! step the file has all bytes promised by a successful sync, whichever syncs have failed before.

use super::steps::Run;
use super::{FileOptions, SharedFile};
use crate::directed::{settle_with, shape_far_apart};
use crate::job::{Job, PAGE_BYTES};
use crate::seeds::Seeds;
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use vgasnet_protocol::{Rank, Space, Stripes};
use vgasnet_storage::{Doubt, MemoryFile};

const PAGES: u32 = 6;

/// The bug of a sync, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// The disk is not asked to sync.
    NoSync,
    /// The file gets its size after the sync of the disk.
    SizeLast,
    /// A sync forgets that an earlier one has failed.
    Forgetful,
}

/// Counts of the runs.
#[derive(Debug, Default)]
struct Seen {
    promised: u64,
    failed: u64,
    /// Syncs that succeeded only after all doubtful bytes were written again.
    recovered: u64,
    crashes: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Seen) {
        self.promised += other.promised;
        self.failed += other.failed;
        self.recovered += other.recovered;
        self.crashes += other.crashes;
    }
}

impl SharedFile {
    /// Syncs the disk, as `Files::reach_disk` does. Every third sync of a faulty file fails. Returns whether a sync may
    /// promise its bytes.
    pub fn reach_disk(&mut self) -> bool {
        self.syncs += 1;
        let fails = self.is_faulty && self.syncs % 3 == 1;
        self.sync(fails.then_some(libc::EIO), Fault::Nothing).is_none()
    }

    fn sync(&self, errno: Option<i32>, fault: Fault) -> Option<Doubt> {
        self.memory.fail_syncs(errno);
        let failed = self.named.sync().err().and_then(|error| error.raw_os_error());
        assert_eq!(failed, errno);
        let doubt = self.named.end_sync(failed, &[]);
        if fault == Fault::Forgetful && failed.is_none() { None } else { doubt }
    }
}

impl Job {
    /// Checks the bytes of each file after a crash now.
    pub fn check_crash(&mut self, seed: u64) {
        for file in self.files.open.values().filter(|file| !file.is_cutting) {
            let promised = || file.members.iter().filter_map(|(rank, member)| Some((*rank, member.promised?)));
            if promised().next().is_some() {
                let bytes = file.memory.after_crash(seed);
                promised().for_each(|(rank, time)| file.history.check_flushed(rank, time, &bytes));
                self.files.seen.survived += 1;
            }
        }
    }
}

/// All ranks write their dirty pages, then the file gets its size and is synced. Returns whether this succeeds.
fn sync(job: &mut Job, space: Space, errno: Option<i32>, fault: Fault) -> bool {
    for rank in 0..job.nodes.len() {
        job.nodes[rank].engine.flush_file(space);
        job.rouse(rank);
    }
    let came = job.files.get(space).history.timestamp();
    settle_with(job, |_| ()).expect("nothing fails but syncs");
    let file = job.files.get(space);
    let end = file.members.values().map(|member| member.state.written_end()).max();
    let end = end.expect("there are ranks");
    if fault != Fault::SizeLast {
        file.named.set_size(end).expect("it may be as long");
    }
    let is_done = file.sync(errno, fault).is_none();
    if fault == Fault::SizeLast {
        // Until now the file on the disk may end with a whole block.
        file.named.set_size(end).expect("it may be as long");
    }
    if is_done {
        let sizes = (0..8).map(|seed| file.memory.after_crash(seed).len() as u64);
        sizes.for_each(|size| assert_eq!(size, end, "a crash leaves another size than was synced"));
        file.members.values_mut().for_each(|member| member.promised = Some(came));
    }
    is_done
}

fn put(job: &mut Job, space: Space, rank: usize, run: Run, random: &mut Rng, seen: &mut Seen) {
    job.call(rank, space, true, vec![run], random);
    let mut seed = random.u64(..);
    settle_with(job, |job| {
        seed += 1;
        seen.crashes += 1;
        job.check_crash(seed);
    })
    .expect("nothing fails but syncs");
}

fn run(seed: u64, fault: Fault) -> Seen {
    let mut random = Rng::with_seed(seed);
    let ranks = random.u32(1..=3);
    let mut job = Job::new(shape_far_apart(ranks, 3, random.u32(2..=5), random.bool().then_some(0)), &mut random);
    let memory = MemoryFile::new(1, seed);
    if fault == Fault::NoSync {
        memory.lose_syncs();
    }
    let homes: Vec<Rank> = (0..random.u32(1..=ranks)).map(Rank).collect();
    let team: Vec<usize> = (0..ranks as usize).collect();
    let stripes = Stripes { homes: Arc::from(homes), pages: random.u32(1..=2) };
    let options = FileOptions { is_atomic: false, heals: false, heals_early: false };
    let space = job.open_file(&memory, &team, stripes, PAGES, options);
    let mut seen = Seen::default();
    let mut was_failed = false;
    for _ in 0..20 {
        for _ in 0..random.u32(1..4) {
            let len_bytes = random.usize(1..2 * PAGE_BYTES);
            let start_bytes = random.usize(0..PAGES as usize * PAGE_BYTES - len_bytes);
            put(
                &mut job,
                space,
                random.usize(0..ranks as usize),
                Run { start_bytes, len_bytes },
                &mut random,
                &mut seen,
            );
        }
        let errno = (random.u32(0..3) == 0).then_some(libc::EIO);
        if was_failed && random.bool() {
            // Pages put whole are written from memory.
            let rank = random.usize(0..ranks as usize);
            for page in 0..PAGES as usize {
                let run = Run { start_bytes: page * PAGE_BYTES, len_bytes: PAGE_BYTES };
                put(&mut job, space, rank, run, &mut random, &mut seen);
            }
        }
        let is_done = sync(&mut job, space, errno, fault);
        seen.failed += u64::from(!is_done);
        seen.promised += u64::from(is_done);
        seen.recovered += u64::from(was_failed && is_done);
        was_failed = !is_done;
        (0..8).for_each(|_| job.check_crash(random.u64(..)));
    }
    seen
}

#[test]
fn what_a_sync_has_promised_survives_crashes() {
    const SEEDS: Seeds = Seeds { variable: "CRASH_SIM", filter: "survives_crashes", default: 60 };
    if let Some((total, seeds)) = SEEDS.run(|seed| run(seed, Fault::Nothing)) {
        let Seen { promised, failed, recovered, crashes } = total;
        let are_many = [promised, failed, 4 * recovered, crashes].iter().all(|count| *count > seeds);
        assert!(seeds < SEEDS.default || are_many, "too tame");
    }
}

/// Proves that the test above can fail.
#[test]
fn a_sync_that_does_too_little_is_found_out() {
    for fault in [Fault::NoSync, Fault::SizeLast, Fault::Forgetful] {
        let found = |seed| catch_unwind(AssertUnwindSafe(|| run(seed, fault))).is_err();
        assert!((0..40).any(found), "{fault:?} passes");
    }
}
