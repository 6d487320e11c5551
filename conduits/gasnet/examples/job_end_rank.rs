//! A rank ending in the way of its argument. `tests/jobs.rs` checks the end of the job.

use std::time::Duration;

use vgasnet_conduit::{Conduit, Rank};
use vgasnet_gasnet::{Arguments, GasnetNetwork};
use vgasnet_hybrid::HybridConduit;

fn main() {
    let network = GasnetNetwork::start(&Arguments::of_process()).expect("GASNet");
    let conduit = HybridConduit::start(network, true).expect("start");
    let act = std::env::args().next_back().expect("an argument");
    let is_first = conduit.rank() == Rank(0);
    match act.as_str() {
        // All ranks finish, one later than the others, and the process ends normally.
        "return" => {
            if !is_first {
                std::thread::sleep(Duration::from_millis(300));
            }
            (0..100).for_each(|line| println!("line {line} of rank {}", conduit.rank()));
            conduit.close();
        }
        "exit" if !is_first => conduit.exit(7),
        // The exchange of the others never completes.
        "exit" => drop(conduit.exchange(&[])),
        _ => panic!("no act {act}"),
    }
}
