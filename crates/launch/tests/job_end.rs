//! Starts and ends of jobs of real ranks. The ranks run `examples/job_end_rank.rs`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vgasnet_conduit::conformance::example;
use vgasnet_launch::{End, Launch, Outcome};

fn play(ranks: u32, act: &str) -> Outcome {
    Launch::new(ranks, example("job_end_rank")).arg(act).time_limit(Duration::from_secs(60)).run()
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
fn the_variable_of_a_job_that_is_over_is_one_line() {
    let mut command = Command::new(example("job_end_rank"));
    let value = format!("rank=0,ranks=2,socket=vgasnet-{0:032x}-{0:032x}", 0);
    command.env("VGASNET_SMP_JOB", value).args(["stale variable", "nobody answers"]);
    assert!(command.status().expect("the example runs").success());
}

#[test]
fn ranks_within_scripts_end_with_the_job() {
    let mark = format!("JOB_END_MARK=scripts-{}", std::process::id());
    let (name, value) = mark.split_once('=').expect("a variable");
    let script = format!("{} 'exit 7'; exit $?", example("job_end_rank").display());
    let launch = Launch::new(3, "sh").args(["-c", &script]).env(name, value);
    assert_eq!(launch.time_limit(Duration::from_secs(60)).run().status, 7);
    assert_soon_gone(&mark);
}

#[test]
fn ranks_within_scripts_end_with_a_killed_launcher() {
    end_with_killed_launcher("tell");
}

#[test]
fn ranks_within_scripts_that_block_sigterm_end_with_a_killed_launcher() {
    end_with_killed_launcher("block SIGTERM");
}

fn end_with_killed_launcher(act: &str) {
    let mark = format!("JOB_END_MARK=killed-{}-{}", act.len(), std::process::id());
    let (name, value) = mark.split_once('=').expect("a variable");
    let mut command = Command::new(example("job_end_rank"));
    command.args(["launch", act]).env(name, value).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut launcher = command.spawn().expect("the example runs");
    let lines = BufReader::new(launcher.stdout.take().expect("piped")).lines();
    let ranks: Vec<_> = lines.take(2).map(|line| Rank(line.expect("a line").parse().expect("a number"))).collect();
    launcher.kill().expect("our child");
    launcher.wait().expect("our child");
    assert_soon_gone(&mark);
    ranks.into_iter().for_each(std::mem::forget);
}

/// A rank that a failing test must not leave behind.
struct Rank(i32);

impl Drop for Rank {
    fn drop(&mut self) {
        // It is there: it hangs until somebody ends it.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.0), nix::sys::signal::Signal::SIGKILL);
    }
}

fn assert_soon_gone(mark: &str) {
    let begin = Instant::now();
    while is_anybody_marked(mark) {
        assert!(begin.elapsed() < Duration::from_secs(5), "ranks are still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("gone after {} ms", begin.elapsed().as_millis());
}

/// Whether some process has this variable in its environment. An ended process has none.
fn is_anybody_marked(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("it exists").flatten();
    let environments = processes.filter_map(|process| std::fs::read(process.path().join("environ")).ok());
    environments.into_iter().any(|variables| variables.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()))
}

#[test]
fn the_time_limit_ends_a_hanging_job() {
    let launch = Launch::new(2, example("job_end_rank")).arg("hang");
    let outcome = launch.time_limit(Duration::from_millis(300)).run();
    assert_eq!(outcome, Outcome { status: 124, failure: None });
}
