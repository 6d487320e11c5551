//! Crashes with disk caches: a crash at any step may lose any unsynced sectors. All writes before the start of a
//! successful sync must survive later crashes, while the ranks go on reading and writing.

use crate::simulation::{run_until_quiet, step};
use crate::world::disk::{Moment, SECTOR_BYTES};
use crate::world::{Shape, World, home_of};
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Event, PageId};

const SEEDS: u64 = if cfg!(miri) { 1 } else { 120 };

const STEPS: usize = if cfg!(miri) { 200 } else { 3000 };

/// An injected fault of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// Disks are not synced.
    NoSync,
    /// Disks are synced before the pages are written back.
    SyncFirst,
    /// Dirty pages that moved to a rank already flushed are not recalled.
    NoRecall,
    /// The next sync ignores an earlier failure.
    Forgetful,
    /// Failed write-backs count as successful.
    Unwritten,
}

/// The state of a sync.
#[derive(Default)]
struct Sync {
    moment: Moment,
    homes: Vec<Rank>,
    has_failed: bool,
}

enum Stage {
    Idle,
    Writing(Sync),
    Recalling(Sync),
    Reaching(Sync),
}

/// Counts of events in runs.
#[derive(Debug, Default)]
struct Seen {
    promised: u32,
    failed: u32,
    recovered: u32,
    recalled: u32,
}

/// A job that syncs repeatedly.
struct Syncing {
    world: World,
    random: Rng,
    fault: Fault,
    was_failed: bool,
    seen: Seen,
}

impl Syncing {
    /// Advances the stage, or waits for its precondition.
    fn go_on(&mut self, stage: Stage) -> Stage {
        let world = &mut self.world;
        let ranks = (0..world.shape.ranks).map(Rank);
        match stage {
            Stage::Idle if self.random.u32(0..50) > 0 => Stage::Idle,
            Stage::Idle => {
                let disks = world.disks.as_mut().expect("disks lose");
                disks.is_unwritten = false;
                let sync = Sync { moment: disks.moment(), homes: ranks.clone().collect(), has_failed: false };
                ranks.for_each(|rank| world.event(rank, Event::Flush));
                if self.fault == Fault::SyncFirst { Stage::Reaching(sync) } else { Stage::Writing(sync) }
            }
            Stage::Writing(sync) if world.nodes.iter().any(|node| !node.protocol.cache.flushed()) => {
                Stage::Writing(sync)
            }
            Stage::Writing(sync) => {
                let is_dirty = |page: &PageId| {
                    let home = &world.nodes[home_of(*page).index()].protocol.home;
                    home.dirty_owner(*page).is_some() || home.is_writing(*page)
                };
                let moved = world.pages().filter(|page| self.fault != Fault::NoRecall && is_dirty(page));
                let moved: Vec<PageId> = moved.collect();
                self.seen.recalled += moved.len() as u32;
                moved.into_iter().for_each(|page| world.recall(page));
                Stage::Recalling(sync)
            }
            Stage::Recalling(sync) if !world.recalls.is_empty() => Stage::Recalling(sync),
            Stage::Recalling(mut sync) => {
                let is_unwritten = world.disks.as_ref().expect("disks lose").is_unwritten;
                sync.has_failed |= is_unwritten && self.fault != Fault::Unwritten;
                Stage::Reaching(sync)
            }
            Stage::Reaching(sync) => self.reach(sync),
        }
    }

    /// Syncs one disk; the sync may fail. The last disk completes the sync.
    fn reach(&mut self, mut sync: Sync) -> Stage {
        let world = &mut self.world;
        let Some(home) = sync.homes.pop() else {
            if self.fault == Fault::SyncFirst && world.nodes.iter().any(|node| !node.protocol.cache.flushed()) {
                return Stage::Reaching(sync);
            }
            if !sync.has_failed {
                world.disks.as_mut().expect("disks lose").promise(sync.moment);
                self.seen.promised += 1;
                self.seen.recovered += u32::from(self.was_failed);
            } else {
                self.seen.failed += 1;
            }
            self.was_failed = sync.has_failed;
            return Stage::Idle;
        };
        if self.random.u32(0..8 * world.shape.ranks) == 0 {
            world.fail_sync(home, &mut self.random);
            sync.has_failed = true;
        } else if self.fault != Fault::NoSync {
            let is_there = world.sync_disk(home);
            sync.has_failed |= !is_there && self.fault != Fault::Forgetful;
        }
        Stage::Reaching(sync)
    }
}

fn run(seed: u64, fault: Fault) -> Seen {
    let mut random = Rng::with_seed(seed);
    let shape = Shape {
        ranks: random.u32(1..=4),
        pages: random.u32(1..=2),
        frames: random.u32(1..=3),
        page_bytes: 2 * SECTOR_BYTES,
        cooperative: random.u32(0..4) > 0,
    };
    let world = World::new(shape).losing_unsynced();
    let hot = random.u32(1..=shape.ranks);
    let mut syncing = Syncing { world, random, fault, was_failed: false, seen: Seen::default() };
    let (mut stage, mut ops_left) = (Stage::Idle, usize::MAX);
    for _ in 0..STEPS {
        step(&mut syncing.world, &mut syncing.random, &mut ops_left, hot, 4);
        stage = syncing.go_on(stage);
        syncing.world.check_crash(&mut syncing.random);
    }
    run_until_quiet(&mut syncing.world, &mut syncing.random);
    syncing.world.check_quiet();
    syncing.seen
}

fn replay(seed: u64) -> Seen {
    catch_unwind(|| run(seed, Fault::Nothing)).unwrap_or_else(|cause| {
        eprintln!(
            "replay: SIM_SEED={seed} cargo test --profile quick -p vgasnet-protocol --test coherence crashes::synced"
        );
        std::panic::resume_unwind(cause)
    })
}

#[test]
fn synced_bytes_survive_a_crash_in_any_step() {
    if let Some(seed) = crate::simulation::number("SIM_SEED") {
        replay(seed);
        return;
    }
    let mut total = Seen::default();
    for seed in 0..SEEDS {
        let seen = replay(seed);
        total.promised += seen.promised;
        total.failed += seen.failed;
        total.recovered += seen.recovered;
        total.recalled += seen.recalled;
    }
    println!("{total:?}");
    let Seen { promised, failed, recovered, recalled } = total;
    let are_many = [promised, failed, recovered, recalled].iter().all(|count| u64::from(*count) > SEEDS);
    assert!(cfg!(miri) || are_many, "too tame: {total:?}");
}

/// Verifies that the test above detects faults.
#[test]
#[cfg_attr(miri, ignore = "it takes too long")]
fn a_sync_that_does_too_little_loses_bytes() {
    for fault in [Fault::NoSync, Fault::SyncFirst, Fault::NoRecall, Fault::Forgetful, Fault::Unwritten] {
        let found = (0..SEEDS).find(|seed| catch_unwind(AssertUnwindSafe(|| run(*seed, fault))).is_err());
        println!("{fault:?}: seed {found:?}");
        assert!(found.is_some(), "{fault:?} passes");
    }
}
