//! Jobs over the GASNet conduit of this build, by its own launchers: the conformance suite, and ends of jobs.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Far more than a run takes.
const TIME_LIMIT: Duration = Duration::from_secs(180);

/// The command to start `ranks` ranks of a program on this conduit, or `None` if it depends on the site.
fn launch(program: PathBuf, ranks: u32) -> Option<Command> {
    let ranks = ranks.to_string();
    let mut command = match vgasnet_gasnet::conduit_name().as_str() {
        "gasnet-smp" => {
            let mut command = Command::new(program);
            command.env("GASNET_PSHM_NODES", ranks);
            command
        }
        "gasnet-udp" => {
            let mut command = Command::new(program);
            command.arg(ranks).env("GASNET_SPAWNFN", "L");
            command
        }
        "gasnet-mpi" => {
            let mut command = Command::new(vgasnet_gasnet::MPIEXEC);
            command.arg("-n").arg(ranks).arg(program);
            command
        }
        _ => return None,
    };
    // Killed as a whole if it takes too long.
    command.process_group(0);
    Some(command)
}

/// The end of a job, and the output of its ranks.
struct End {
    status: ExitStatus,
    said: String,
}

/// Runs an example as `ranks` ranks, if this test knows how.
fn run(example: &str, ranks: u32, arguments: &[&str], environment: &[(&str, &str)]) -> Option<End> {
    let test = std::env::current_exe().expect("the test has a path");
    let profile = test.ancestors().nth(2).expect("tests are two below their profile");
    let Some(mut command) = launch(profile.join("examples").join(example), ranks) else {
        // Not through the test harness, which hides output of passing tests.
        let line = format!("NOT RUN: this test does not know how to launch {}\n", vgasnet_gasnet::conduit_name());
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    };
    command.args(arguments).envs(environment.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut launched = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut output = launched.stdout.take().expect("it is a pipe");
    let reader = std::thread::spawn(move || {
        let mut said = String::new();
        output.read_to_string(&mut said).map(|_| said)
    });
    let late = Instant::now() + TIME_LIMIT;
    let status = loop {
        if let Some(status) = launched.try_wait().expect("the launcher is a child") {
            break status;
        }
        if Instant::now() >= late {
            // SAFETY: the group is the launcher's, which has not been waited for.
            unsafe { libc::kill(-(launched.id() as i32), libc::SIGKILL) };
            panic!("{command:?} took longer than {TIME_LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = reader.join().expect("the reader does not panic").expect("ranks write text");
    Some(End { status, said })
}

fn run_suite(ranks: u32, arguments: &[&str], environment: &[(&str, &str)]) {
    if let Some(End { status, said }) = run("gasnet_conformance_rank", ranks, arguments, environment) {
        assert!(status.success(), "{status}: {said}");
        assert_eq!(said.lines().count(), ranks as usize, "{said}");
    }
}

#[test]
fn one_rank() {
    run_suite(1, &[], &[]);
}

#[test]
fn two_ranks_that_share_their_host() {
    run_suite(2, &["share"], &[]);
}

#[test]
fn two_ranks_over_the_network() {
    run_suite(2, &[], &[]);
}

#[test]
fn three_ranks_that_share_their_host() {
    run_suite(3, &["share"], &[]);
}

#[test]
fn three_ranks_over_the_network() {
    run_suite(3, &[], &[]);
}

/// If GASNet-EX shares segments among ranks, they must be its own.
#[test]
fn pools_in_memory_of_gasnet() {
    if vgasnet_gasnet::conduit_name() != "gasnet-smp" {
        run_suite(2, &[], &[("GASNET_SUPERNODE_MAXSIZE", "0")]);
    }
}

#[test]
fn nothing_that_was_said_is_lost_when_all_are_through() {
    if let Some(End { status, said }) = run("gasnet_job_end_rank", 3, &["return"], &[]) {
        assert!(status.success(), "{status}");
        assert_eq!(said.lines().count(), 300, "{said}");
    }
}

#[test]
fn an_exit_ends_the_job_with_its_status() {
    if let Some(End { status, .. }) = run("gasnet_job_end_rank", 2, &["exit"], &[]) {
        assert_eq!(status.code(), Some(7));
    }
}
