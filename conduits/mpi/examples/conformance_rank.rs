//! A rank that runs the conformance suite; `tests/conformance.rs` has an MPI launcher start it.

use vgasnet_conduit::Conduit;
use vgasnet_hybrid::HybridConduit;
use vgasnet_mpi::MpiNetwork;

fn main() {
    let share_hosts = std::env::args().nth(1).as_deref() == Some("share");
    let network = MpiNetwork::start().expect("MPI");
    let conduit = HybridConduit::start(network, share_hosts).expect("start");
    if let Err(what) = vgasnet_conduit::conformance::run(&conduit) {
        eprintln!("{what}");
        conduit.exit(1);
    }
    conduit.close();
    conduit.exit(0)
}
