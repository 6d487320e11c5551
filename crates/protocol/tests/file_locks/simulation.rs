//! Seeded random simulation of locks: more ranks, threads and ranges than an exploration, and asks split into several
//! messages.
//!
//! A failure prints the command to replay it. `SIM_SEEDS` is the number of seeds in a run, from `SIM_FIRST` on.
//! `SIM_SEED` runs one seed, and prints its whole trace on failure.

use crate::model::Model;
use crate::world::{PAGE_BYTES, World, page};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use vgasnet_protocol::file_locks::{LockMode, LockPurpose, LockRange};
use vgasnet_protocol::{Rank, Space};

/// Requests between the opening and the closing of the files.
const REQUESTS: usize = if cfg!(miri) { 10 } else { 150 };

/// Upper bound of the steps of any run: a run still busy then never ends.
const STEPS_MAX: usize = 100_000;

/// Number of times the files are opened and closed.
const OPENINGS: usize = 3;

/// A world checked against a model, with at least one home.
pub fn world(random: &mut fastrand::Rng) -> World {
    let ranks = random.u32(2..=8);
    let homes: Vec<Rank> = (0..random.u32(1..=ranks)).map(|_| Rank(random.u32(0..ranks))).collect();
    let mut world = World::new(ranks, &homes, random.usize(48..256));
    world.model = Some(Model::new(ranks));
    world
}

/// Some ranges of a file of `pages` pages, possibly open-ended.
fn ranges(random: &mut fastrand::Rng, pages: u64) -> Vec<LockRange> {
    let all = if random.bool() { LockMode::Shared } else { LockMode::Exclusive };
    let mut one = || {
        let mode = if random.u32(0..4) > 0 { all } else { LockMode::Shared };
        let start = random.u64(0..pages * PAGE_BYTES);
        let len_bytes = [0, 1, random.u64(0..PAGE_BYTES), random.u64(0..5 * PAGE_BYTES), u64::MAX - start];
        let most = if start == 0 { 5 } else { 4 };
        LockRange { start, end: start + len_bytes[random.usize(0..most)], mode }
    };
    let first = one();
    let others: Vec<LockRange> = (0..4).map(|_| one()).collect();
    let count = [0, 0, 1, 4][random.usize(0..4)];
    [first].into_iter().chain(others.into_iter().take(count)).collect()
}

/// Starts a request of any rank.
pub fn lock(world: &mut World, random: &mut fastrand::Rng, pages: u64) {
    let rank = Rank(random.u32(0..world.nodes.len() as u32));
    let purpose = if random.bool() { LockPurpose::Program } else { LockPurpose::Atomicity };
    let ranges = ranges(random, pages);
    world.lock(rank, Space::of_file(random.u32(0..2)), purpose, &ranges);
}

/// Delivers a message, or unlocks something. Returns whether it did.
pub fn step(world: &mut World, random: &mut fastrand::Rng) -> bool {
    let granted = |at: &usize| world.requests[*at].is_granted;
    let granted = (0..world.requests.len()).filter(granted).collect::<Vec<_>>();
    if let Some(at) = random.choice(&granted).filter(|_| world.flights.is_empty() || random.u32(0..4) == 0) {
        world.unlock(*at);
    } else if !world.flights.is_empty() {
        // Sometimes the newest message overtakes all others.
        let newest = world.flights.len() - 1;
        let at = if random.u32(0..16) == 0 { newest } else { random.usize(0..=newest) };
        world.land(at);
    }
    !world.flights.is_empty() || !world.requests.is_empty()
}

/// Opens files, locks, and closes them when everything is unlocked. Unlocks may arrive later.
fn open_and_close(world: &mut World, random: &mut fastrand::Rng) {
    let (pages, at_once) = (random.u64(1..=12), random.usize(1..=12));
    let mut requests_left = REQUESTS;
    for _ in 0..STEPS_MAX {
        if requests_left > 0 && world.requests.len() < at_once && random.u32(0..4) == 0 {
            lock(world, random, pages);
            requests_left -= 1;
        } else {
            step(world, random);
        }
        world.check();
        if requests_left == 0 && world.requests.is_empty() {
            for file in [0, 1].map(Space::of_file) {
                world.forget_file(file);
            }
            return;
        }
    }
    panic!("still busy after {STEPS_MAX} steps: {:?}", world.requests);
}

fn run(seed: u64, trace: bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut world = world(&mut random);
    if trace {
        world.trace = Some(vec![format!("{:?}", world.stripes)]);
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        (0..OPENINGS).for_each(|_| open_and_close(&mut world, &mut random));
        while step(&mut world, &mut random) {}
        world.check_quiet();
    }));
    if let Err(cause) = outcome {
        for line in world.trace.iter().flatten() {
            eprintln!("{line}");
        }
        eprintln!(
            "replay: SIM_SEED={seed} cargo test --profile quick -p vgasnet-protocol --test file_locks simulation -- --nocapture"
        );
        resume_unwind(cause);
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

#[test]
fn random_interleavings_grant_what_a_plain_list_would() {
    if let Some(seed) = number("SIM_SEED") {
        run(seed, true);
        return;
    }
    let first = number("SIM_FIRST").unwrap_or(0);
    for seed in first..first + number("SIM_SEEDS").unwrap_or(if cfg!(miri) { 4 } else { 300 }) {
        run(seed, false);
    }
}

/// Other ranks lock single pages without a pause, and one rank requests all of them.
#[test]
fn nobody_starves() {
    for seed in 0..if cfg!(miri) { 2 } else { 200 } {
        let mut random = fastrand::Rng::with_seed(seed);
        let (ranks, pages) = (random.u32(2..=6), random.u64(2..=5));
        let homes: Vec<Rank> = (0..ranks).map(Rank).collect();
        let mut world = World::new(ranks, &homes, 256);
        let lock = |world: &mut World, random: &mut fastrand::Rng| {
            let one = page(random.u64(0..pages), LockMode::Exclusive);
            world.lock(Rank(random.u32(1..ranks)), Space::of_file(0), LockPurpose::Program, &[one]);
        };
        (0..3 * pages).for_each(|_| lock(&mut world, &mut random));
        let all = LockRange { end: pages * PAGE_BYTES, ..page(0, LockMode::Exclusive) };
        world.lock(Rank(0), Space::of_file(0), LockPurpose::Program, &[all]);
        let is_there =
            |world: &World| world.requests.iter().any(|request| request.rank == Rank(0) && !request.is_granted);
        let mut steps = 0;
        while is_there(&world) {
            step(&mut world, &mut random);
            while world.requests.len() < 3 * pages as usize {
                lock(&mut world, &mut random);
            }
            steps += 1;
            assert!(steps < 20_000, "seed {seed}: rank 0 starves");
        }
    }
}
