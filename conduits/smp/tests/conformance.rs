//! The conformance suite on this conduit. The test binary runs itself again as ranks.

use std::time::Duration;

use vgasnet_smp::SmpConduit;
use vgasnet_smp::launch::{Launch, Outcome};

/// Far more than a run takes. It ends this job's own processes only.
const TIME_LIMIT: Duration = Duration::from_secs(120);

fn run_ranks(ranks: u32) {
    let program = std::env::current_exe().expect("the test has a path");
    let launch = Launch::new(ranks, program).args(["--exact", "rank_body", "--ignored", "--nocapture"]);
    assert_eq!(launch.time_limit(TIME_LIMIT).run(), Outcome { status: 0, failure: None });
}

/// What each rank runs. By itself it is a job of one rank.
#[test]
#[ignore = "run by the other tests, as ranks"]
fn rank_body() {
    let conduit = SmpConduit::start().expect("start");
    if let Err(what) = vgasnet_conduit::conformance::run(&conduit) {
        panic!("{what}");
    }
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
