//! The conformance suite on this conduit. The ranks run `examples/conformance_rank.rs`.

use std::time::Duration;

use vgasnet_conduit::conformance::example;
use vgasnet_launch::{Launch, Outcome};

/// Far more than a run takes. It ends this job's own processes only.
const TIME_LIMIT: Duration = Duration::from_secs(120);

fn run_ranks(ranks: u32) {
    let launch = Launch::new(ranks, example("conformance_rank"));
    assert_eq!(launch.time_limit(TIME_LIMIT).run(), Outcome { status: 0, failure: None });
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
