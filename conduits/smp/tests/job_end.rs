//! How jobs of real ranks start and end. The test binary runs itself again as ranks; `JOB_END_ACT` says what they play.

use std::process::Command;
use std::time::{Duration, Instant};

use vgasnet_conduit::{Conduit, Rank, RegionSizes};
use vgasnet_smp::launch::{End, Launch, Outcome};
use vgasnet_smp::{JOB_VARIABLE, SmpConduit};

const ACT: &str = "JOB_END_ACT";

fn play(ranks: u32, act: &str) -> Outcome {
    let program = std::env::current_exe().expect("the test has a path");
    let launch = Launch::new(ranks, program).args(["--exact", "rank_body", "--ignored", "--nocapture"]);
    launch.env(ACT, act).time_limit(Duration::from_secs(60)).run()
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// What each rank runs.
#[test]
#[ignore = "run by the other tests, as ranks"]
fn rank_body() {
    let act = std::env::var(ACT).unwrap_or_default();
    let is_rank = |rank: u32| std::env::var(JOB_VARIABLE).is_ok_and(|job| job.starts_with(&format!("rank={rank},")));
    if act == "skip init" && is_rank(0) {
        std::process::exit(0);
    }
    let conduit = SmpConduit::start().expect("start");
    let own = conduit.rank();
    conduit.exchange(&[]).expect("exchange");
    match act.as_str() {
        "exit 0" if own == Rank(0) => conduit.exit(0),
        "exit 7" if own == Rank(1) => conduit.exit(7),
        "abort" if own == Rank(1) => std::process::abort(),
        "leave in turn" => {
            std::thread::sleep(Duration::from_millis(300 * u64::from(own.0)));
            conduit.exit(0);
        }
        "refused pool" => {
            let pool_bytes = if own == Rank(1) { 1 << 47 } else { 4096 };
            let error = conduit.attach(RegionSizes { pool_bytes, table_bytes: 4096 }).expect_err("too large");
            assert!(error.to_string().contains("more than can be mapped"), "{error}");
        }
        "start twice" => {
            let error = SmpConduit::start().err().expect("once a process");
            assert!(error.to_string().contains("a rank already"), "{error}");
        }
        "exec" => {
            let output = Command::new("ls").args(["-l", "/proc/self/fd"]).output().expect("ls");
            let list = String::from_utf8_lossy(&output.stdout);
            assert!(!list.contains("memfd") && !list.contains("eventfd"), "{list}");
            let status = Command::new(std::env::current_exe().expect("path"))
                .args(["--exact", "stale_variable", "--ignored"])
                .status();
            assert!(status.expect("the test runs").success());
        }
        _ => hang(),
    }
}

/// What a rank's child sees: the variable, but not the descriptors.
#[test]
#[ignore = "run by a rank"]
fn stale_variable() {
    let error = SmpConduit::start().err().expect("no descriptors");
    assert!(error.to_string().contains("was not inherited") && !error.to_string().contains('\n'), "{error}");
}

#[test]
fn an_exit_with_0_ends_the_whole_job_after_a_while() {
    let begin = Instant::now();
    assert_eq!(play(3, "exit 0"), Outcome { status: 0, failure: None });
    assert!(begin.elapsed() > Duration::from_secs(9), "{:?}", begin.elapsed());
}

#[test]
fn ranks_may_leave_one_after_another() {
    assert_eq!(play(4, "leave in turn"), Outcome { status: 0, failure: None });
}

#[test]
fn an_exit_with_a_status_ends_the_job_with_it() {
    let outcome = play(3, "exit 7");
    let failure = outcome.failure.expect("rank 1");
    assert_eq!((outcome.status, failure.rank, failure.end), (7, 1, End::Status(7)));
}

#[test]
fn a_signal_ends_the_job_with_128_and_its_number() {
    let outcome = play(3, "abort");
    let failure = outcome.failure.expect("rank 1");
    assert_eq!((outcome.status, failure.rank, failure.end), (134, 1, End::Signal(libc::SIGABRT)));
}

#[test]
fn a_rank_that_skips_init_ends_the_job() {
    let outcome = play(3, "skip init");
    assert_eq!((outcome.status, outcome.failure.expect("rank 0").rank), (1, 0));
}

#[test]
fn a_pool_that_is_too_large_is_everybodys_error() {
    assert_eq!(play(3, "refused pool").status, 0);
}

#[test]
fn a_process_is_one_rank() {
    assert_eq!(play(1, "start twice").status, 0);
}

#[test]
fn programs_that_a_rank_starts_inherit_nothing() {
    assert_eq!(play(2, "exec").status, 0);
}

#[test]
fn the_time_limit_ends_a_hanging_job() {
    let program = std::env::current_exe().expect("the test has a path");
    let launch = Launch::new(2, program).args(["--exact", "rank_body", "--ignored", "--nocapture"]);
    let outcome = launch.env(ACT, "hang").time_limit(Duration::from_millis(300)).run();
    assert_eq!(outcome, Outcome { status: 124, failure: None });
}
