//! Costs of locks in messages.

use crate::world::{PAGE_BYTES, World, page};
use vgasnet_protocol::file_locks::LockMode::{Exclusive, Shared};
use vgasnet_protocol::file_locks::{LockPurpose, LockRange};
use vgasnet_protocol::{Rank, Space};

const FILE: Space = Space::of_file(0);

const HOMES: [Rank; 3] = [Rank(0), Rank(1), Rank(2)];

fn lock(world: &mut World, rank: u32, ranges: &[LockRange]) -> u64 {
    let before = world.sent;
    world.lock(Rank(rank), FILE, LockPurpose::Program, ranges);
    world.sent - before
}

fn land_all(world: &mut World) {
    while !world.flights.is_empty() {
        world.land(0);
        world.check();
    }
}

#[test]
fn without_conflicts_each_home_gets_two_messages_and_sends_one() {
    let mut world = World::new(3, &HOMES, 256);
    let whole_file = LockRange { start: 0, end: u64::MAX, mode: Shared };
    assert_eq!(lock(&mut world, 0, &[whole_file]), 3);
    assert_eq!(lock(&mut world, 1, &[page(1, Shared), page(4, Shared)]), 1);
    land_all(&mut world);
    assert!(world.requests.iter().all(|request| request.is_granted));
    (0..2).for_each(|_| world.unlock(0));
    land_all(&mut world);
    assert_eq!(world.sent, 3 * 4);
    world.check_quiet();
}

#[test]
fn ten_thousand_runs_are_one_message_for_each_home_if_they_fit() {
    let runs: Vec<LockRange> = (0..10_000)
        .map(|run| LockRange { start: run * PAGE_BYTES, end: run * PAGE_BYTES + 1, mode: Exclusive })
        .collect();
    for (message_bytes_max, expected) in [(1 << 20, 3), (4096, 3 * 14)] {
        let mut world = World::new(3, &HOMES, message_bytes_max);
        assert_eq!(lock(&mut world, 0, &runs), expected);
        assert!(world.flights.iter().all(|flight| flight.bytes.len() <= message_bytes_max));
        // Parts arrive in any order.
        world.flights.reverse();
        lock(&mut world, 1, &runs[9_999..]);
        land_all(&mut world);
        let granted = |world: &World| world.requests.iter().map(|request| request.is_granted).collect::<Vec<_>>();
        assert_eq!(granted(&world), [true, false]);
        world.unlock(0);
        land_all(&mut world);
        assert_eq!(granted(&world), [true]);
        world.unlock(0);
        land_all(&mut world);
        world.check_quiet();
    }
}

#[test]
fn a_refusal_costs_one_round_trip_for_each_home_from_there_on() {
    let mut world = World::new(3, &HOMES, 256);
    lock(&mut world, 1, &[page(1, Exclusive)]);
    land_all(&mut world);
    let before = world.sent;
    lock(&mut world, 0, &[0, 1, 2].map(|index| page(index, Exclusive)));
    land_all(&mut world);
    // Three tries and answers; the last home's grant is returned, and the request waits at the second.
    assert_eq!(world.sent - before, 3 + 3 + 1 + 1);
    let before = world.sent;
    world.unlock(0);
    land_all(&mut world);
    // The unlock and the grant; then the last home is asked again.
    assert_eq!((world.sent - before, world.requests[0].is_granted), (1 + 1 + 2, true));
}

#[test]
fn nothing_to_lock_is_locked_at_once() {
    let mut world = World::new(3, &HOMES, 256);
    assert_eq!(lock(&mut world, 2, &[LockRange { start: 5, end: 5, mode: Exclusive }]), 0);
    assert!(world.requests[0].is_granted);
    world.unlock(0);
    world.check_quiet();
}

#[test]
fn purposes_and_files_do_not_conflict() {
    let mut world = World::new(3, &HOMES, 256);
    let all = [LockRange { start: 0, end: u64::MAX, mode: Exclusive }];
    for file in [FILE, Space::of_file(1)] {
        for purpose in [LockPurpose::Program, LockPurpose::Atomicity] {
            world.lock(Rank(1), file, purpose, &all);
        }
    }
    land_all(&mut world);
    assert!(world.requests.iter().all(|request| request.is_granted));
}
