//! How fast pages move between the pools of two ranks, by this crate and by GASNet's own blocking calls, turn and turn about.
//!
//! Start it as two ranks with GASNet's launcher. Rank 0 moves pages, rank 1 polls, as its helper thread would.

use std::time::Instant;

use vgasnet_conduit::{Arrival, Conduit, Rank, RegionSizes, Transfer};
use vgasnet_gasnet::{Arguments, Direction, GasnetNetwork};
use vgasnet_hybrid::HybridConduit;

const PAGE_BYTES: usize = 4 << 20;
const ROUNDS: usize = 25;
const PAGES_A_ROUND: usize = 8;

fn main() {
    let network = GasnetNetwork::start(&Arguments::of_process()).expect("GASNet");
    let conduit = HybridConduit::start(network, false).expect("start");
    assert_eq!(conduit.ranks(), 2, "start this as two ranks");
    conduit.attach(RegionSizes { pool_bytes: 2 * PAGE_BYTES, table_bytes: 4096 }).expect("attach");
    touch(&conduit);
    conduit.exchange(&[]).expect("all are ready");
    if conduit.rank() == Rank(0) {
        println!("{}: medians of {ROUNDS} times {PAGES_A_ROUND} pages of 4 MiB", conduit.name());
        for direction in [Direction::Put, Direction::Get] {
            compare(&conduit, direction);
        }
        while conduit.send(Rank(1), b"enough", b"", vgasnet_conduit::Urgency::Now).is_err() {
            conduit.poll(&mut |_| {});
        }
    } else {
        let mut is_over = false;
        while !is_over {
            if !conduit.poll(&mut |arrival| is_over |= matches!(arrival, Arrival::Message { .. })) {
                std::thread::yield_now();
            }
        }
    }
    conduit.close();
    conduit.exit(0)
}

fn touch(conduit: &HybridConduit<GasnetNetwork>) {
    let pool = conduit.pool(conduit.rank()).expect("the own pool");
    for offset_bytes in (0..pool.len_bytes).step_by(4096) {
        // SAFETY: the byte lies in the pool, and nobody else uses it yet.
        unsafe { pool.at(offset_bytes).write_volatile(1) };
    }
}

fn compare(conduit: &HybridConduit<GasnetNetwork>, direction: Direction) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..2 * ROUNDS {
        let begin = Instant::now();
        for page in 0..PAGES_A_ROUND {
            let transfer = transfer(page);
            if round % 2 == 0 {
                move_by_conduit(conduit, direction, &transfer)
            } else {
                conduit.network().copy_blocking(direction, &transfer)
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        let gigabytes = (PAGES_A_ROUND * PAGE_BYTES) as f64 / 1e9;
        if round % 2 == 0 { ours.push(gigabytes / seconds) } else { theirs.push(gigabytes / seconds) }
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!("{direction:?}: {ours:.2} GB/s; GASNet's own {theirs:.2} GB/s; ratio {:.2}", ours / theirs);
}

fn transfer(page: usize) -> Transfer {
    let (own, peer) = (page % 2 * PAGE_BYTES, (page + 1) % 2 * PAGE_BYTES);
    Transfer {
        peer: Rank(1),
        peer_offset_bytes: peer,
        own_offset_bytes: own,
        len_bytes: PAGE_BYTES,
        token: vgasnet_conduit::Token(page as u64),
    }
}

fn move_by_conduit(conduit: &HybridConduit<GasnetNetwork>, direction: Direction, transfer: &Transfer) {
    let started = match direction {
        Direction::Put => conduit.put(transfer),
        Direction::Get => conduit.get(transfer),
    };
    started.expect("nothing else is under way");
    let mut is_complete = false;
    while !is_complete {
        conduit.poll(&mut |arrival| is_complete |= matches!(arrival, Arrival::Complete(_)));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
