//! A rank running the conformance suite; `tests/jobs.rs` has GASNet's launchers start it.

use vgasnet_conduit::Conduit;
use vgasnet_gasnet::{Arguments, GasnetNetwork};
use vgasnet_hybrid::HybridConduit;

fn main() {
    let share_hosts = std::env::args().any(|argument| argument == "share");
    let network = GasnetNetwork::start(&Arguments::of_process()).expect("GASNet");
    let conduit = HybridConduit::start(network, share_hosts).expect("start");
    if let Err(what) = vgasnet_conduit::conformance::run(&conduit) {
        eprintln!("{what}");
        conduit.exit(1);
    }
    let (rank, ranks, name) = (conduit.rank(), conduit.ranks(), conduit.name());
    println!(
        "rank {rank} of {ranks}, on host {}, conforms over {name}: {:?}",
        conduit.host_of(rank),
        conduit.capabilities()
    );
    conduit.close();
    conduit.exit(0)
}
