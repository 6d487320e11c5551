//! The conformance suite on this conduit, each rank a thread.

use vgasnet_conduit::{Rank, conformance};
use vgasnet_sim_conduit::{Hub, Settings};

fn run_ranks(ranks: u32) {
    for peer_memory in [true, false] {
        for (seed, delay_percent, busy_percent) in [(1, 0, 0), (2, 50, 20), (3, 90, 40)] {
            let hosts = (0..ranks).map(|rank| rank % ranks.min(3)).collect();
            let delay_polls_max = 5 * seed as u32;
            run(Settings { hosts, peer_memory, seed, delay_percent, delay_polls_max, busy_percent });
        }
    }
}

fn run(settings: Settings) {
    let hub = Hub::new(settings.clone());
    let broken: Vec<String> = std::thread::scope(|scope| {
        let rank = |rank| {
            let conduit = hub.conduit(Rank(rank));
            scope.spawn(move || conformance::run(&conduit))
        };
        let threads: Vec<_> = (0..settings.hosts.len() as u32).map(rank).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("the suite does not panic").err()).collect()
    });
    assert!(broken.is_empty(), "{settings:?}: {broken:#?}");
    assert_eq!(hub.in_flight(), 0);
}

#[test]
fn one_rank() {
    run_ranks(1);
}

#[test]
fn two_ranks() {
    run_ranks(2);
}

#[test]
fn four_ranks() {
    run_ranks(4);
}

#[test]
fn seven_ranks() {
    run_ranks(7);
}
