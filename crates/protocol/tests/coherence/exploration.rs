//! Exhaustive exploration of small jobs: every state reachable by any order of events.
//!
//! The search is depth first over canonical states (`World::canonical`). Each rank runs one operation at a time. It may
//! start any operation on any page at any time, up to the number allowed by the scenario. A run prints the number of
//! states. `EXPLORE_OPS=222` allows each rank two operations, too many for a normal test run.

use crate::simulation::lacks_victim;
use crate::world::{Op, Shape, World, home_of};
use std::collections::HashSet;
use std::hash::Hash;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, Event, FrameId, PageId};

#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    shape: Shape,
    /// The pages of this many ranks are used, from the first rank on.
    homes: u32,
    /// Maximum operations started by each rank.
    ops: [u8; 3],
    /// Maximum flushes requested by the first rank.
    flushes: u8,
    /// Maximum pages read ahead by the first rank.
    prefetches: u8,
    /// Maximum pages kept by any rank for another.
    adoptions: u8,
    /// Maximum operations executed at their page's location.
    ships: u8,
    /// Maximum failures of loads and stores while an operation waits.
    failures: u8,
    /// Operations may overwrite whole pages.
    overwrites: bool,
    /// Initially all bytes are in the files, and no rank holds a page.
    written: bool,
    /// Maximum holders invalidated by the home's own messages, if not the default.
    told_itself_max: Option<usize>,
    /// Ranks per host, if known to homes.
    ranks_a_host: Option<u32>,
    /// Homes keep pages read for others.
    keeps: bool,
}

/// A world with its remaining operations, flushes, prefetches, adoptions, shipped operations and failures.
#[derive(Clone, Hash)]
struct State {
    world: World,
    ops: Vec<u8>,
    flushes: Vec<u8>,
    prefetches: u8,
    adoptions: u8,
    ships: u8,
    failures: u8,
}

impl State {
    /// Among 10^8 states two share a fingerprint with a probability below 10^-22.
    fn fingerprint(&self) -> u128 {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        self.hash(&mut hasher);
        hasher.digest128()
    }

    fn is_final(&self) -> bool {
        let world = &self.world;
        let may_free = |rank| !world.evictable(rank).is_empty() || lacks_victim(world, rank);
        world.flights.is_empty() && !(0..world.shape.ranks).map(Rank).any(may_free)
    }
}

/// The operations of a rank: a read, a write and an overwrite of each page.
fn ops(scenario: Scenario) -> Vec<(PageId, Op)> {
    let pages = scenario.shape.pages;
    let pages = (0..scenario.homes).flat_map(|home| (0..pages).map(move |index| PageId::of_segment(Rank(home), index)));
    // Canonical pages never have this value, so the checks find a copy without the write.
    let op = |access, whole| Op { access, whole, offset: 0, value: 3 };
    let all = [op(Access::Read, false), op(Access::Write, false), op(Access::Write, true)];
    let kinds = if scenario.overwrites { 3 } else { 2 };
    pages.flat_map(|page| all.map(|op| (page, op)).into_iter().take(kinds)).collect()
}

#[derive(Default)]
struct Exploration {
    seen: HashSet<u128>,
    frontier: Vec<State>,
}

impl Exploration {
    fn visit(&mut self, mut state: State) {
        state.world.check();
        if state.is_final() {
            state.world.check_quiet();
        }
        state.world = state.world.canonical();
        if self.seen.insert(state.fingerprint()) {
            self.frontier.push(state);
        }
    }

    fn branch(&mut self, from: &State, act: impl FnOnce(&mut State)) {
        let mut next = from.clone();
        act(&mut next);
        self.visit(next);
    }
}

fn start(scenario: Scenario) -> World {
    let mut world = World::new(scenario.shape);
    if let Some(holders) = scenario.told_itself_max {
        world = world.telling_itself(holders);
    }
    if scenario.keeps {
        world = world.keeping_at_home();
    }
    if let Some(ranks) = scenario.ranks_a_host {
        world = world.on_hosts_of(ranks);
    }
    for (page, op) in ops(scenario).into_iter().filter(|(_, op)| op.access == Access::Write && scenario.written) {
        let home = page.space.segment().expect("it is a segment's");
        world.start(home, page, op);
        land_all(&mut world);
        world.event(home, Event::Evict(FrameId(0)));
        land_all(&mut world);
    }
    world
}

fn land_all(world: &mut World) {
    while !world.flights.is_empty() {
        world.land(0);
    }
}

/// Starts fetches without waiting operations.
fn branch_ahead(all: &mut Exploration, state: &State, scenario: Scenario) {
    let pages: Vec<PageId> =
        ops(scenario).into_iter().filter(|(_, op)| op.access == Access::Read).map(|(page, _)| page).collect();
    for page in pages {
        if state.prefetches > 0 {
            all.branch(state, |next| {
                next.prefetches -= 1;
                next.world.event(Rank(0), Event::Prefetch(page));
            });
        }
        let is_kept = state.world.nodes[home_of(page).index()].protocol.home.has_only_guests(page);
        if scenario.adoptions > 0 && is_kept {
            all.branch(state, |next| next.world.event(home_of(page), Event::Dismiss(page)));
        }
        for rank in (0..scenario.shape.ranks).map(Rank).filter(|_| state.adoptions > 0) {
            all.branch(state, |next| {
                next.adoptions -= 1;
                next.world.event(rank, Event::Adopt(page));
            });
        }
    }
}

/// What a rank may do on its own: evict, flush, begin an operation.
fn branch_rank(all: &mut Exploration, state: &State, scenario: Scenario, rank: Rank) {
    let at = rank.index();
    for frame in state.world.evictable(rank) {
        all.branch(state, |next| next.world.event(rank, Event::Evict(frame)));
    }
    // Even if a frame is evictable: the client may have pinned it.
    if lacks_victim(&state.world, rank) {
        all.branch(state, |next| next.world.event(rank, Event::NoVictim));
    }
    if state.flushes[at] > 0 {
        all.branch(state, |next| {
            next.flushes[at] -= 1;
            next.world.event(rank, Event::Flush);
        });
    }
    if state.ops[at] > 0 && state.world.busy_ops(rank) == 0 {
        for (page, op) in ops(scenario) {
            all.branch(state, |next| {
                next.ops[at] -= 1;
                next.world.start(rank, page, op);
            });
        }
    }
}

fn explore(scenario: Scenario) {
    let ranks = scenario.shape.ranks as usize;
    let mut all = Exploration::default();
    let given = |text: String| {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        digits.try_into().unwrap_or_else(|_| panic!("EXPLORE_OPS={text}: three digits are allowed, one for each rank"))
    };
    // As many as Miri has time for.
    let ops_default = if cfg!(miri) { [1, 0, 0] } else { scenario.ops };
    let ops_each = std::env::var("EXPLORE_OPS").map_or(ops_default, given);
    all.visit(State {
        world: start(scenario),
        ops: ops_each.to_vec(),
        flushes: vec![scenario.flushes, 0, 0],
        prefetches: scenario.prefetches,
        adoptions: scenario.adoptions,
        ships: scenario.ships,
        failures: scenario.failures,
    });
    while let Some(state) = all.frontier.pop() {
        for flight in 0..state.world.flights.len() {
            all.branch(&state, |next| next.world.land(flight));
            if state.world.is_load_ahead(flight) {
                all.branch(&state, |next| next.world.fail(flight));
            } else if state.failures > 0 && state.world.is_io(flight) {
                all.branch(&state, |next| {
                    next.failures -= 1;
                    next.world.fail(flight);
                });
            }
        }
        branch_ahead(&mut all, &state, scenario);
        if state.ships > 0 {
            for (page, op) in ops(scenario).into_iter().filter(|(_, op)| !op.whole) {
                all.branch(&state, |next| next.ships -= u8::from(next.world.ship(page, op)));
            }
        }
        (0..ranks).for_each(|rank| branch_rank(&mut all, &state, scenario, Rank(rank as u32)));
    }
    println!("{}: {ops_each:?} operations, {} states, all visited", scenario.name, all.seen.len());
}

const ONE_PAGE: Scenario = Scenario {
    name: "3 ranks, 1 page, 1 frame",
    shape: Shape { ranks: 3, pages: 1, frames: 1, page_bytes: 1, cooperative: true },
    homes: 1,
    ops: [2, 2, 2],
    flushes: 0,
    prefetches: 0,
    adoptions: 0,
    ships: 0,
    failures: 0,
    overwrites: false,
    written: false,
    told_itself_max: None,
    ranks_a_host: None,
    keeps: false,
};

#[test]
fn three_ranks_one_page() {
    explore(ONE_PAGE);
}

#[test]
fn three_ranks_two_pages_one_frame() {
    let shape = Shape { pages: 2, ..ONE_PAGE.shape };
    explore(Scenario { name: "3 ranks, 2 pages, 1 frame", shape, ops: [2, 1, 1], ..ONE_PAGE });
}

#[test]
fn three_ranks_two_pages_two_frames() {
    let shape = Shape { pages: 2, frames: 2, ..ONE_PAGE.shape };
    explore(Scenario { name: "3 ranks, 2 pages, 2 frames", shape, ops: [2, 1, 1], ..ONE_PAGE });
}

#[test]
fn three_ranks_two_homes_one_frame() {
    explore(Scenario { name: "3 ranks, 2 pages at 2 homes, 1 frame", homes: 2, ops: [2, 1, 1], ..ONE_PAGE });
}

#[test]
fn not_cooperative_with_flushes() {
    let shape = Shape { pages: 2, cooperative: false, ..ONE_PAGE.shape };
    explore(Scenario {
        name: "not cooperative, 3 ranks, 2 pages, 1 frame",
        shape,
        ops: [1, 1, 1],
        flushes: 1,
        ..ONE_PAGE
    });
}

#[test]
fn read_ahead_that_may_fail() {
    let shape = Shape { pages: 2, ..ONE_PAGE.shape };
    explore(Scenario {
        name: "3 ranks, 2 pages, 1 frame, read ahead",
        shape,
        ops: [1, 1, 0],
        prefetches: 1,
        ..ONE_PAGE
    });
}

#[test]
fn pages_that_are_kept_for_others() {
    let (name, ops) = ("3 ranks, 1 page, 1 frame, kept for others", [2, 1, 1]);
    explore(Scenario { name, ops, adoptions: 2, ..ONE_PAGE });
}

#[test]
fn pages_that_are_kept_for_others_beside_a_disk_that_fails() {
    let (name, shape) = ("3 ranks, 2 pages, 1 frame, kept for others, failures", Shape { pages: 2, ..ONE_PAGE.shape });
    explore(Scenario { name, shape, ops: [1, 1, 0], adoptions: 1, failures: 1, written: true, ..ONE_PAGE });
}

/// Two holders lose a page: one is told by the other.
#[test]
fn holders_that_tell_each_other() {
    let name = "3 ranks, 1 page, 1 frame, holders tell each other";
    explore(Scenario { name, ops: [2, 2, 1], overwrites: true, told_itself_max: Some(0), ..ONE_PAGE });
}

#[test]
fn holders_that_tell_each_other_of_two_pages() {
    let (name, shape) = ("3 ranks, 2 pages, 1 frame, holders tell each other", Shape { pages: 2, ..ONE_PAGE.shape });
    explore(Scenario { name, shape, ops: [1, 1, 1], told_itself_max: Some(0), ..ONE_PAGE });
}

#[test]
fn two_ranks_of_a_host_and_one_of_another() {
    let name = "2 ranks of a host and one of another, 1 page, 1 frame";
    explore(Scenario { name, ranks_a_host: Some(2), ..ONE_PAGE });
}

#[test]
fn overwrites_of_one_page() {
    let name = "3 ranks, 1 page, 1 frame, overwrites";
    explore(Scenario { name, ops: [2, 1, 1], overwrites: true, ..ONE_PAGE });
}

#[test]
fn overwrites_that_are_not_cooperative() {
    let (name, shape) = ("not cooperative, overwrites", Shape { cooperative: false, ..ONE_PAGE.shape });
    explore(Scenario { name, shape, ops: [1, 1, 1], flushes: 1, overwrites: true, ..ONE_PAGE });
}

#[test]
fn overwrites_of_two_pages() {
    let (name, shape) = ("3 ranks, 2 pages, 1 frame, overwrites", Shape { pages: 2, ..ONE_PAGE.shape });
    explore(Scenario { name, shape, ops: [1, 1, 1], overwrites: true, ..ONE_PAGE });
}

#[test]
fn operations_that_are_shipped() {
    let name = "3 ranks, 1 page, 1 frame, shipped";
    explore(Scenario { name, ops: [2, 1, 1], ships: 2, ..ONE_PAGE });
}

#[test]
fn operations_that_are_shipped_beside_overwrites() {
    let (name, shape) = ("3 ranks, 2 pages, 1 frame, shipped, overwrites", Shape { pages: 2, ..ONE_PAGE.shape });
    explore(Scenario { name, shape, ops: [1, 1, 0], ships: 2, overwrites: true, ..ONE_PAGE });
}

#[test]
fn homes_that_read_each_others_files() {
    let (name, shape) = ("not cooperative, 2 homes, 1 frame, files", Shape { cooperative: false, ..ONE_PAGE.shape });
    explore(Scenario { name, shape, homes: 2, ops: [1, 1, 1], written: true, ..ONE_PAGE });
}

#[test]
fn one_home_serves_two_ranks_with_its_files() {
    let shape = Shape { pages: 2, cooperative: false, ..ONE_PAGE.shape };
    explore(Scenario { name: "not cooperative, files", shape, ops: [1, 1, 1], written: true, ..ONE_PAGE });
}

#[test]
fn homes_that_keep_what_they_read_for_each_other() {
    let name = "2 homes that keep, 1 frame, files";
    explore(Scenario { name, homes: 2, ops: [1, 1, 1], written: true, keeps: true, ..ONE_PAGE });
}

#[test]
fn homes_that_read_ahead_from_each_other() {
    let shape = Shape { ranks: 2, cooperative: false, ..ONE_PAGE.shape };
    let name = "not cooperative, 2 homes, 1 frame, files, read ahead";
    explore(Scenario { name, shape, homes: 2, ops: [2, 1, 0], prefetches: 1, written: true, ..ONE_PAGE });
}

#[test]
fn a_disk_that_fails() {
    let name = "3 ranks, 1 page, 1 frame, failures";
    explore(Scenario { name, ops: [2, 1, 1], flushes: 1, failures: 2, written: true, ..ONE_PAGE });
}

#[test]
fn a_disk_that_fails_beside_evictions() {
    let (name, shape) = ("3 ranks, 2 pages, 1 frame, failures", Shape { pages: 2, ..ONE_PAGE.shape });
    explore(Scenario { name, shape, ops: [1, 1, 1], failures: 1, written: true, ..ONE_PAGE });
}

#[test]
fn a_disk_that_fails_beside_overwrites() {
    let name = "3 ranks, 1 page, 1 frame, failures, overwrites";
    explore(Scenario { name, ops: [1, 1, 1], flushes: 1, failures: 2, overwrites: true, written: true, ..ONE_PAGE });
}
