//! Exhaustive exploration of small jobs: a small number of threads of three ranks, with three pages and homes, under
//! any order of messages.
//!
//! A thread takes the locks in its list, and releases each at any later time. It requests the next one at once: message
//! delays are arbitrary, so a pause would add no states. The search is depth first. A run prints the number of states.

use crate::world::{World, page};
use std::collections::HashSet;
use std::hash::Hash;
use vgasnet_protocol::file_locks::{LockMode, LockPurpose, LockRange};
use vgasnet_protocol::{Rank, Space};

/// A thread's lock: pages, as bits, and the mode.
type Lock = (u8, LockMode);

const E: LockMode = LockMode::Exclusive;
const S: LockMode = LockMode::Shared;

/// Some pages: each alone, two adjacent ones, two with one between them, all.
const SETS: [u8; 7] = [0b001, 0b010, 0b100, 0b011, 0b110, 0b101, 0b111];

const FILE: Space = Space::of_file(1);

/// A world, and the locks each thread has yet to take.
#[derive(Clone, Hash)]
struct State {
    world: World,
    /// By request, its thread.
    threads: Vec<usize>,
    lists: Vec<Vec<Lock>>,
}

impl State {
    /// Among 10^8 states two share a fingerprint with a probability below 10^-22.
    fn fingerprint(&self) -> u128 {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        self.hash(&mut hasher);
        hasher.digest128()
    }

    fn start_next(&mut self, thread: usize, rank: Rank) {
        if let Some((pages, mode)) = self.lists[thread].pop() {
            let ranges: Vec<LockRange> =
                (0..3).filter(|index| pages & 1 << index != 0).map(|index| page(index, mode)).collect();
            self.threads.push(thread);
            self.world.lock(rank, FILE, LockPurpose::Program, &ranges);
        }
    }

    fn unlock(&mut self, at: usize) {
        let (thread, rank) = (self.threads.remove(at), self.world.requests[at].rank);
        self.world.unlock(at);
        self.start_next(thread, rank);
    }
}

#[derive(Default)]
struct Exploration {
    seen: HashSet<u128>,
    frontier: Vec<State>,
    states: usize,
}

impl Exploration {
    fn visit(&mut self, mut state: State) {
        state.world.flights.sort_unstable();
        state.world.sent = 0;
        if self.seen.insert(state.fingerprint()) {
            state.world.check();
            if state.world.flights.is_empty() && !state.world.requests.iter().any(|request| request.is_granted) {
                state.world.check_quiet();
            }
            self.frontier.push(state);
        }
    }

    /// Explores threads of these ranks with their locks, last lock first.
    fn explore(&mut self, threads: &[(u32, &[Lock])]) {
        self.seen.clear();
        let world = World::new(3, &[0, 1, 2].map(Rank), 256);
        let lists = threads.iter().map(|(_, locks)| locks.to_vec()).collect();
        let mut state = State { world, threads: Vec::new(), lists };
        threads.iter().enumerate().for_each(|(thread, (rank, _))| state.start_next(thread, Rank(*rank)));
        self.visit(state);
        while let Some(state) = self.frontier.pop() {
            for flight in 0..state.world.flights.len() {
                // Flights are sorted, so equal ones are adjacent.
                let mut next = state.clone();
                next.world.land(flight);
                self.visit(next);
            }
            for at in (0..state.world.requests.len()).filter(|at| state.world.requests[*at].is_granted) {
                let mut next = state.clone();
                next.unlock(at);
                self.visit(next);
            }
        }
        self.states += self.seen.len();
    }
}

/// Requests for more pages in total have too many states for a normal test run. `EXPLORE_PAGES=9` tries all.
fn pages_max() -> u32 {
    let default = if cfg!(miri) { 3 } else { 5 };
    std::env::var("EXPLORE_PAGES").map_or(default, |text| text.parse().expect("EXPLORE_PAGES is a number"))
}

#[test]
fn one_request_of_each_rank() {
    let kinds: Vec<Lock> = SETS.iter().flat_map(|set| [(*set, E), (*set, S)]).collect();
    let mut all = Exploration::default();
    // Homes treat all ranks alike, so only the combination of requests matters.
    for (at, first) in kinds.iter().enumerate() {
        for (to_second, second) in kinds[at..].iter().enumerate() {
            for third in &kinds[at + to_second..] {
                let locks = [*first, *second, *third];
                if locks.iter().map(|(pages, _)| pages.count_ones()).sum::<u32>() <= pages_max() {
                    all.explore(&[(0, &locks[..1]), (1, &locks[1..2]), (2, &locks[2..])]);
                }
            }
        }
    }
    println!("one request of each rank, {} pages at most: {} states, all visited", pages_max(), all.states);
}

#[test]
fn two_ranks_lock_all_pages_and_one_locks_two() {
    let mut all = Exploration::default();
    for third in [(0b001, S), (0b011, E)].into_iter().take(if cfg!(miri) { 0 } else { 2 }) {
        all.explore(&[(0, &[(0b111, E)]), (1, &[(0b111, E)]), (2, &[third])]);
    }
    println!("two ranks lock all pages, one locks one or two: {} states, all visited", all.states);
}

#[test]
fn requests_that_follow_each_other() {
    let mut all = Exploration::default();
    let lists: [[&[Lock]; 2]; 3] = [
        [&[(0b011, E), (0b111, E)], &[(0b110, E), (0b010, E)]],
        [&[(0b001, E), (0b001, E), (0b001, S)], &[(0b011, S), (0b001, E)]],
        [&[(0b011, S), (0b110, E)], &[(0b110, S), (0b011, E)]],
    ];
    for [one, other] in lists.into_iter().take(if cfg!(miri) { 0 } else { 3 }) {
        // By two ranks, and by two threads of one.
        all.explore(&[(0, one), (1, other)]);
        all.explore(&[(2, one), (2, other)]);
        // The second list by two concurrent ranks.
        all.explore(&[(0, one), (1, &other[..1]), (2, &other[1..])]);
    }
    println!("requests that follow each other: {} states, all visited", all.states);
}
