//! Seeded random simulation: the network delays and reorders.
//!
//! A failure prints the command to replay it. `SIM_SEEDS` is the number of seeds in a run, from `SIM_FIRST` on.
//! `SIM_SEED` runs one seed, and prints its whole trace on failure.

use crate::world::{Op, Shape, World, home_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, Event, PageId};

/// Operations in one run.
const OPS: usize = if cfg!(miri) { 10 } else { 400 };

const RANKS_MAX: u32 = if cfg!(miri) { 4 } else { 16 };

/// Upper bound of the steps of any run: a run still busy then never ends.
const STEPS_MAX: usize = 400_000;

fn shape(random: &mut fastrand::Rng) -> Shape {
    let ranks = random.u32(2..=RANKS_MAX);
    Shape {
        ranks,
        pages: random.u32(1..=3),
        frames: random.u32(1..=4),
        page_bytes: 8,
        cooperative: random.u32(0..4) > 0,
    }
}

fn random_op(random: &mut fastrand::Rng, shape: Shape, hot: u32) -> (Rank, PageId, Op) {
    let rank = Rank(random.u32(0..shape.ranks));
    let home = Rank(random.u32(0..hot));
    let page = PageId::of_segment(home, random.u32(0..shape.pages));
    let access = if random.u32(0..3) == 0 { Access::Write } else { Access::Read };
    let whole = access == Access::Write && random.u32(0..3) == 0;
    (rank, page, Op { access, whole, offset: random.usize(0..shape.page_bytes), value: random.u8(1..) })
}

/// Whether `rank` must be told if it has no evictable frame.
pub fn lacks_victim(world: &World, rank: Rank) -> bool {
    let cache = &world.nodes[rank.index()].protocol.cache;
    cache.wants_frame() && cache.fetches_for_others()
}

/// Executes a random step. Returns whether there was one.
pub fn step(world: &mut World, random: &mut fastrand::Rng, ops_left: &mut usize, hot: u32, ops_at_once: usize) -> bool {
    let rank = Rank(random.u32(0..world.shape.ranks));
    if *ops_left > 0 && random.u32(0..8) == 0 && world.busy_ops(rank) < ops_at_once {
        let (_, page, op) = random_op(random, world.shape, hot);
        world.start(rank, page, op);
        *ops_left -= 1;
        return true;
    }
    for rank in (0..world.shape.ranks).map(Rank) {
        let frames = world.evictable(rank);
        // Sometimes the client has pinned them all.
        if lacks_victim(world, rank) && (frames.is_empty() || random.u32(0..8) == 0) {
            world.event(rank, Event::NoVictim);
            return true;
        }
        if let Some(frame) = random.choice(frames) {
            world.event(rank, Event::Evict(frame));
            return true;
        }
    }
    match random.u32(0..200) {
        0 => world.event(rank, Event::Tell(random_op(random, world.shape, hot).1)),
        1 => world.event(rank, Event::Flush),
        2..5 if *ops_left > 0 => world.event(rank, Event::Prefetch(random_op(random, world.shape, hot).1)),
        5 if *ops_left > 0 => world.event(rank, Event::WriteBack(random_op(random, world.shape, hot).1)),
        6 if *ops_left > 0 => {
            let page = random_op(random, world.shape, hot).1;
            world.recall(page);
        }
        7..12 if *ops_left > 0 => {
            let (_, page, op) = random_op(random, world.shape, hot);
            world.ship(page, op);
        }
        12..15 if *ops_left > 0 => world.event(rank, Event::Adopt(random_op(random, world.shape, hot).1)),
        15 if *ops_left > 0 => {
            let page = random_op(random, world.shape, hot).1;
            world.event(home_of(page), Event::Dismiss(page));
        }
        _ if world.flights.is_empty() => return *ops_left > 0,
        // The network is mostly fair. Sometimes the newest flight overtakes all others.
        16..25 => world.land(world.flights.len() - 1),
        _ => {
            let at = random.usize(0..world.flights.len());
            // The disk recovers when no more operations start, so that finally everything is written.
            let is_failing = world.is_io(at) && ops_at_once > 0;
            let fails = if world.is_load_ahead(at) { 4 } else { is_failing.into() };
            if fails > 0 && random.u32(0..16) < fails { world.fail(at) } else { world.land(at) }
        }
    }
    true
}

pub fn run_until_quiet(world: &mut World, random: &mut fastrand::Rng) {
    for _ in 0..STEPS_MAX {
        if !step(world, random, &mut 0, 1, 0) {
            return;
        }
        world.check();
    }
    panic!("still busy after {STEPS_MAX} steps: {:?}", world.flights);
}

/// `tells_itself`: maximum holders invalidated by the home's own messages, instead of the default.
fn run(seed: u64, trace: bool, tells_itself: Option<usize>) -> World {
    let mut random = fastrand::Rng::with_seed(seed);
    let shape = shape(&mut random);
    let mut world = World::new(shape);
    world = world.on_hosts_of(1 + (seed % 4) as u32);
    if seed % 3 == 0 {
        world = world.keeping_at_home();
    }
    if let Some(holders) = tells_itself {
        world = world.telling_itself(holders);
    }
    if trace {
        world.trace = Some(vec![format!("{shape:?}")]);
    }
    let hot = random.u32(1..=shape.ranks);
    let ops_at_once = random.usize(1..=6);
    let mut ops_left = OPS;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..STEPS_MAX {
            if ops_left == 0 || !step(&mut world, &mut random, &mut ops_left, hot, ops_at_once) {
                break;
            }
            world.check();
        }
        run_until_quiet(&mut world, &mut random);
        world.check_quiet();
        for rank in 0..shape.ranks {
            world.event(Rank(rank), Event::Flush);
        }
        run_until_quiet(&mut world, &mut random);
        world.check_quiet();
        world.check_files();
    }));
    if let Err(cause) = outcome {
        let test = if tells_itself.is_some() { "holders" } else { "random" };
        for line in world.trace.iter().flatten() {
            eprintln!("{line}");
        }
        if let Some(why) = cause.downcast_ref::<String>() {
            eprintln!("{why}");
        }
        eprintln!(
            "replay: SIM_SEED={seed} cargo test --profile quick -p vgasnet-protocol --test coherence simulation::{test} -- --nocapture"
        );
        std::panic::resume_unwind(cause);
    }
    world
}

pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

#[test]
fn random_interleavings_keep_every_invariant() {
    if let Some(seed) = number("SIM_SEED") {
        run(seed, true, None);
        return;
    }
    let first = number("SIM_FIRST").unwrap_or(0);
    for seed in first..first + number("SIM_SEEDS").unwrap_or(if cfg!(miri) { 6 } else { 500 }) {
        run(seed, false, None);
    }
}

/// As above, with homes leaving most invalidations to relays.
#[test]
fn holders_that_tell_each_other_keep_every_invariant() {
    const FIRST: u64 = 1 << 32;
    if let Some(seed) = number("SIM_SEED") {
        run(seed, true, Some((seed % 3) as usize));
        return;
    }
    let first = number("SIM_FIRST").unwrap_or(FIRST);
    for seed in first..first + number("SIM_SEEDS").unwrap_or(if cfg!(miri) { 3 } else { 250 }) {
        run(seed, false, Some((seed % 3) as usize));
    }
}
