//! A rank ending in the way named by its argument; `tests/job_end.rs` starts it.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use vgasnet_conduit::{Conduit, Rank, RegionSizes};
use vgasnet_launch::Launch;
use vgasnet_smp::{JOB_VARIABLE, SmpConduit};

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Tells the test that this rank is there.
fn hang_after_a_line() -> ! {
    println!("{}", std::process::id());
    hang()
}

/// The launcher of two ranks within scripts within scripts.
fn launch(act: &str) -> ! {
    let own = std::env::current_exe().expect("this program has a path");
    let script = r#"sh -c '"$0" "$1"; exit $?' "$0" "$1"; exit $?"#;
    let launch = Launch::new(2, "sh").args(["-c", script]).arg(own).arg(act);
    std::process::exit(launch.time_limit(Duration::from_secs(60)).run().status)
}

fn main() {
    let act = std::env::args().nth(1).unwrap_or_default();
    if act == "launch" {
        launch(&std::env::args().nth(2).expect("what ranks do"));
    }
    if act == "block SIGTERM" {
        SigSet::from(Signal::SIGTERM).thread_block().expect("a valid mask");
    }
    let is_rank = |rank: u32| std::env::var(JOB_VARIABLE).is_ok_and(|job| job.starts_with(&format!("rank={rank},")));
    if act == "skip init" && is_rank(0) {
        std::process::exit(0);
    }
    if act == "stale variable" {
        // The variable of another process, or of a finished job.
        let why = std::env::args().nth(2).expect("the reason");
        let error = SmpConduit::start().err().expect("it is no rank").to_string();
        assert!(error.contains(&why) && error.contains("must unset it") && !error.contains('\n'), "{error}");
        return;
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
            let why = format!("process {} is rank {own} already", std::process::id());
            let status = Command::new(std::env::current_exe().expect("path")).args(["stale variable", &why]).status();
            assert!(status.expect("this program runs").success());
        }
        "tell" | "block SIGTERM" => hang_after_a_line(),
        _ => hang(),
    }
}
