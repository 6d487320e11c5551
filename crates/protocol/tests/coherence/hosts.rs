//! A page requested by many ranks of a small number of hosts at once.

use crate::world::{Flight, Op, Shape, World};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, PageId};

const RANKS_A_HOST: u32 = 8;

/// All ranks but the home request its page, in a seeded order. Returns the number of transfers between hosts, and the
/// number of steps, each landing all flights.
fn spread(ranks: u32, seed: u64) -> (u32, u32) {
    let shape = Shape { ranks, pages: 1, frames: 1, page_bytes: 2, cooperative: true };
    let mut world = World::new(shape).on_hosts_of(RANKS_A_HOST);
    let page = PageId::of_segment(Rank(0), 0);
    let read = Op { access: Access::Read, whole: false, offset: 0, value: 0 };
    let mut readers: Vec<u32> = (1..ranks).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut readers);
    readers.insert(0, 0);
    readers.into_iter().for_each(|rank| world.start(Rank(rank), page, read));
    let (mut across, mut page_times) = (0, 0);
    while !world.flights.is_empty() {
        let mut transfers = 0;
        for _ in 0..world.flights.len() {
            if let Flight::Transfer { source, outgoing, second_half: false } = &world.flights[0] {
                across += u32::from(source.0 / RANKS_A_HOST != outgoing.forward.to.0 / RANKS_A_HOST);
                transfers += 1;
            }
            world.land(0);
        }
        page_times += u32::from(transfers > 0);
        world.check();
    }
    world.check_quiet();
    (across, page_times)
}

#[test]
fn a_page_goes_to_each_host_once_and_in_a_tree() {
    for (hosts, page_times_max) in [(2, 6), (4, 8), (16, 12), (64, 16)] {
        for seed in 0..4 {
            let (across, page_times) = spread(hosts * RANKS_A_HOST, seed);
            assert_eq!(across, hosts - 1, "{hosts} hosts, seed {seed}");
            assert!(page_times <= page_times_max, "{hosts} hosts, seed {seed}: {page_times} page times");
        }
    }
}
