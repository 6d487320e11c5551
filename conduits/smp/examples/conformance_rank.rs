//! A rank running the conformance suite; `tests/conformance.rs` starts it. Started by hand it is a job of one rank.

use vgasnet_smp::SmpConduit;

fn main() {
    let conduit = SmpConduit::start().expect("start");
    if let Err(what) = vgasnet_conduit::conformance::run(&conduit) {
        eprintln!("{what}");
        std::process::exit(1);
    }
}
