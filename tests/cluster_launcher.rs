//! `vgasnetrun --conduit mpi`, or gasnet, as its users see it: how jobs end, and that nothing stays behind. The library
//! was built for this MPI or GASNet.

#![cfg(any(feature = "mpi", feature = "gasnet"))]

#[allow(dead_code)]
#[path = "c_interface/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::compile::{Language, Linking, build, source_dir};
use support::run::{IN_CONTAINERS, entries, finish, fresh_dir, say_not_run, shared_memory};
use support::tools::{MemoryLimit, tool, with_default_signals};

/// Far longer than a job takes to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// The conduit of the ranks.
const CONDUIT: &str = if cfg!(feature = "gasnet") { "gasnet" } else { "mpi" };

/// Whether each rank finds its number in its environment.
fn is_numbered() -> bool {
    #[cfg(feature = "gasnet")]
    return vgasnet_gasnet::conduit_name() == "gasnet-mpi";
    #[cfg(not(feature = "gasnet"))]
    true
}

/// A job and the places of its files.
struct Job {
    child: Child,
    storage: PathBuf,
    shared_before: BTreeSet<OsString>,
}

/// An ended job.
#[derive(Debug)]
struct Ended {
    status: Option<i32>,
    stdout: String,
    stderr: String,
    took: Duration,
}

fn start(ranks: u32, program: &[&str]) -> Job {
    start_reading(ranks, program, Stdio::null())
}

fn start_reading(ranks: u32, program: &[&str], stdin: Stdio) -> Job {
    let storage = fresh_dir();
    let mut command = Command::new(tool("vgasnetrun"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("VGASNET_")) {
        command.env_remove(name);
    }
    with_default_signals(&mut command).envs(IN_CONTAINERS);
    command.env("VGASNET_STORAGE_DIR", &storage).env("VGASNET_PAGE_SIZE", "64K").env("VGASNET_POOL_SIZE", "1M");
    command.env("CHECK_PAGE_BYTES", "65536");
    command.args(["--conduit", CONDUIT, "-n", &ranks.to_string()]).args(program);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let shared_before = shared_memory();
    Job { child: command.spawn().expect("vgasnetrun starts"), storage, shared_before }
}

impl Job {
    /// Waits for the end of the job. Fails if files stay behind.
    fn end(self) -> Ended {
        let begin = Instant::now();
        let (status, stdout, stderr) = finish(self.child);
        let ended = Ended { status, stdout, stderr, took: begin.elapsed() };
        let left = entries(&self.storage);
        assert!(left.is_empty(), "{ended:?}\nleft in the storage directory: {left:?}");
        std::fs::remove_dir(&self.storage).expect("an empty directory of ours");
        wait_until(&format!("{ended:?}\nleft in /dev/shm"), || {
            // Other jobs may run at the same time, with files of their own MPI.
            shared_memory().difference(&self.shared_before).all(is_of_others)
        });
        ended
    }

    /// The processes of the ranks. Each prints its number when it is ready.
    fn pids(&mut self, ranks: usize) -> Vec<i32> {
        let mut out = BufReader::with_capacity(1, self.child.stdout.take().expect("piped"));
        let mut line = String::new();
        let pids = (0..ranks).map(|_| {
            line.clear();
            out.read_line(&mut line).expect("a pipe");
            line.trim_end().strip_prefix("pid ").and_then(|pid| pid.parse().ok()).unwrap_or_else(|| panic!("{line}"))
        });
        let pids = pids.collect();
        self.child.stdout = Some(out.into_inner());
        pids
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the call takes numbers only, and the child's number is its own until it is reaped.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

/// vgasnet's files have no names. All others belong to MPI, and MPI's jobs clean up.
fn is_of_others(name: &OsString) -> bool {
    let path = Path::new("/dev/shm").join(name);
    let processes = std::fs::read_dir("/proc").expect("it exists").flatten();
    let holds = |dir: PathBuf| {
        let maps = std::fs::read_to_string(dir.join("maps")).unwrap_or_default();
        maps.lines().any(|line| line.ends_with(&*path.to_string_lossy()))
    };
    !path.exists() || processes.map(|process| process.path()).any(holds)
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process with this number exists and is not a zombie.
fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The processes below this one.
fn descendants(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.flat_map(|child| std::iter::once(child).chain(descendants(child))).collect()
}

fn rank_program() -> String {
    let program = build(&source_dir().join("tests/cluster/ways.c"), Language::C99, Linking::Shared);
    program.to_str().expect("a path in UTF-8").to_owned()
}

/// Runs ranks that live and end in one of the ways of `ways.c`.
fn live(ranks: u32, way: &str) -> Ended {
    start(ranks, &[&rank_program(), way]).end()
}

/// Fails unless the job ended with this status and one line with this begin and end.
fn expect(ended: &Ended, status: i32, line: (&str, &str)) {
    assert_eq!(ended.status, Some(status), "{ended:?}");
    let (begin, end) = line;
    // MPI's start may wait for the failed rank, whatever signal it gets.
    let is_cut_off = |line: &&str| line.ends_with("did not end within 3 s of being told to; killed");
    let lines: Vec<_> = ended.stderr.lines().filter(|line| !is_cut_off(line)).collect();
    assert!(lines.len() == 1 && lines[0].starts_with(begin) && lines[0].ends_with(end), "{ended:?}");
}

#[test]
fn a_status_is_that_of_the_first_rank_that_fails() {
    let line = ("vgasnetrun: rank 1 (pid ", ") ended with exit status 7; the other ranks were ended");
    expect(&live(3, "exits"), 7, line);
    let ended = live(3, "returns");
    assert_eq!(ended.status, Some(7), "{ended:?}");
    let line = ("vgasnetrun: rank 1 (pid ", ") was killed by signal 6 (SIGABRT); the other ranks were ended");
    expect(&live(3, "aborts"), 134, line);
}

#[test]
fn the_other_ranks_are_told_by_sigquit() {
    let ended = live(3, "told");
    assert_eq!((ended.status, &*ended.stdout), (Some(134), "told to quit\ntold to quit\n"), "{ended:?}");
}

#[test]
fn copies_of_ranks_end_alone() {
    let ended = live(2, "copies");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let mut lines: Vec<_> = ended.stderr.lines().collect();
    lines.sort_unstable();
    let line =
        |rank| format!("vgasnet: vgasnet_exit: this process was forked from rank {rank}, and only the rank itself");
    assert!(lines.len() == 2 && (0..2).all(|rank| lines[rank].starts_with(&line(rank))), "{ended:?}");
}

#[test]
fn a_rank_that_never_initialises_ends_the_job() {
    if !is_numbered() {
        return say_not_run(
            "a_rank_that_never_initialises_ends_the_job",
            "nothing tells a process which rank it is before vgasnet_init",
        );
    }
    let line = "before vgasnet_init, which other ranks have called; all ranks must call it";
    expect(&live(3, "skips"), 1, ("vgasnetrun: rank 1 (pid ", line));
}

#[test]
fn programs_that_are_no_ranks_simply_run() {
    let ended = start(3, &["sh", "-c", "echo out; echo err >&2"]).end();
    assert_eq!((ended.status, ended.stdout), (Some(0), "out\n".repeat(3)));
    assert_eq!(ended.stderr, "err\n".repeat(3));
}

/// A stand-in for the launcher prints the line of Open MPI's launcher on a loaded machine.
#[cfg(feature = "mpi")]
#[test]
fn a_line_of_open_mpi_that_means_nothing_is_left_out() {
    let (dir, mpiexec) = (fresh_dir(), vgasnet_mpi::MPIEXEC);
    let noise = "[node:7] plm:rsh: Warning: setpgid(9,9) failed in parent with errno=Permission denied(13)";
    let script = dir.join("mpiexec");
    let say = format!("[ \"$1\" = --version ] || printf '%s\\n' '{noise}' 'a warning' >&2");
    support::run::place_executable(&script, format!("#!/bin/sh\n{say}\nexec {mpiexec} \"$@\"\n").as_bytes());

    let version = Command::new(mpiexec).arg("--version").output().expect("a launcher");
    let is_open_mpi = !String::from_utf8_lossy(&version.stdout).to_lowercase().contains("hydra");
    let mut command = Command::new(tool("vgasnetrun"));
    command.envs(IN_CONTAINERS).env("VGASNET_MPIEXEC", &script);
    command.args(["--conduit", "mpi", "-n", "2", "sh", "-c", "echo err >&2"]);
    let said = String::from_utf8(command.output().expect("vgasnetrun starts").stderr).expect("words");
    let mut lines: Vec<_> = said.lines().collect();
    lines.sort_unstable();
    let others = if is_open_mpi { &[][..] } else { &[noise] };
    assert_eq!(lines, [others, &["a warning", "err", "err"]].concat(), "{said}");
    std::fs::remove_dir_all(&dir).expect("our directory");
}

#[test]
fn what_is_typed_reaches_the_first_rank() {
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    let mut master = std::fs::File::from(terminal.master);
    // The second character ends the input, as from a user at a terminal.
    master.write_all(b"typed\n\x04").expect("room");
    let job = start_reading(1, &["sh", "-c", "cat; echo read"], terminal.slave.into());
    let ended = job.end();
    assert_eq!((ended.status, &*ended.stdout), (Some(0), "typed\nread\n"), "{ended:?}");
}

#[test]
fn a_program_that_cannot_be_run_is_one_line_and_127_or_126() {
    let nowhere = "/nowhere/to/be/found";
    let ended = start(2, &[nowhere]).end();
    expect(&ended, 127, ("vgasnetrun: cannot start ", "No such file or directory (os error 2)"));
    assert!(ended.stderr.contains(nowhere), "{ended:?}");
    let ended = start(2, &[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]).end();
    expect(&ended, 126, ("vgasnetrun: cannot start ", "Permission denied (os error 13)"));
}

#[test]
fn a_signal_to_the_launcher_ends_the_job() {
    for (signal, status) in [(libc::SIGTERM, 143), (libc::SIGINT, 130)] {
        let mut job = start(2, &[&rank_program(), "waits"]);
        let pids = job.pids(2);
        job.signal(signal);
        let ended = job.end();
        assert_eq!((ended.status, &*ended.stderr), (Some(status), ""), "{ended:?}");
        assert!(ended.took < Duration::from_secs(10), "{ended:?}");
        assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    }
}

#[test]
fn a_killed_launcher_takes_everything_along() {
    let mut job = start(3, &[&rank_program(), "waits"]);
    let mut pids = job.pids(3);
    pids.extend(descendants(job.child.id() as i32));
    assert!(pids.len() > 3 + 3 && pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    job.signal(libc::SIGKILL);
    let ended = job.end();
    assert_eq!(ended.status, None, "{ended:?}");
    wait_until(&format!("still there of {pids:?}"), || !pids.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn ranks_in_scripts_end_with_the_job() {
    let script = |way: &str| format!("{} {way}; exit $?", rank_program());
    let mut job = start(3, &["sh", "-c", &script("waits")]);
    let pids = job.pids(3);
    job.signal(libc::SIGKILL);
    assert_eq!(job.end().status, None);
    wait_until(&format!("still there of {pids:?}"), || !pids.iter().any(|pid| is_alive(*pid)));
    let mut job = start(3, &["sh", "-c", &script("waits and exits")]);
    let pids = job.pids(3);
    let ended = job.end();
    assert!(ended.status == Some(7) && ended.stderr.contains("ended with exit status 7"), "{ended:?}");
    wait_until(&format!("still there of {pids:?}"), || !pids.iter().any(|pid| is_alive(*pid)));
}

/// A host reports its own events.
#[test]
fn a_host_says_that_a_rank_was_killed_for_want_of_memory() {
    let Some(limit) = MemoryLimit::new(64 << 20) else {
        return say_not_run("ranks without memory", "this user may not make cgroups here");
    };
    // tail keeps its input until a line ends.
    let script = format!("echo $$ >{} && exec tail /dev/zero", limit.processes().display());
    let ended = start(2, &["sh", "-c", &script]).end();
    let lines = ended.stderr.lines().filter(|line| line.contains("the system has ended processes for want of memory"));
    assert!(ended.status == Some(137) && (1..=2).contains(&lines.count()), "{ended:?}");
}

#[test]
fn a_killed_agent_ends_the_job() {
    let mut job = start(3, &[&rank_program(), "waits"]);
    let pids = job.pids(3);
    kill_agent(parent(pids[0]));
    let ended = job.end();
    assert!(ended.status.is_some_and(|status| status != 0) && ended.stderr.contains("vgasnetrun: "), "{ended:?}");
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

/// The system ends the children of a killed agent. A rank in a script is no such child.
#[test]
fn ranks_in_scripts_end_with_a_killed_agent() {
    let mut job = start(3, &["sh", "-c", &format!("{} waits; exit $?", rank_program())]);
    let pids = job.pids(3);
    let begin = Instant::now();
    kill_agent(parent(parent(pids[0])));
    wait_until(&format!("still there: {}", pids[0]), || !is_alive(pids[0]));
    println!("the rank of the killed agent ended after {} ms", begin.elapsed().as_millis());
    let ended = job.end();
    assert!(ended.status.is_some_and(|status| status != 0) && ended.stderr.contains("vgasnetrun: "), "{ended:?}");
    wait_until(&format!("still there of {pids:?}"), || !pids.iter().any(|pid| is_alive(*pid)));
}

fn parent(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a rank");
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok()).expect("a parent")
}

fn kill_agent(agent: i32) {
    // SAFETY: the call takes numbers only, and the number is the agent's of a running rank.
    assert_eq!(unsafe { libc::kill(agent, libc::SIGKILL) }, 0);
}

/// Whether these tests of MPICH's end can run.
#[cfg(feature = "mpi")]
fn has_hydra(test: &str) -> bool {
    let mpiexec = Command::new(vgasnet_mpi::MPIEXEC).arg("--version").output().expect("MPI's launcher starts");
    let has_hydra = String::from_utf8_lossy(&mpiexec.stdout).to_lowercase().contains("hydra");
    if !has_hydra {
        say_not_run(test, "the launcher of this MPI is not MPICH's");
    }
    has_hydra
}

#[cfg(feature = "mpi")]
fn tell(pid: i32, signal: i32) {
    // SAFETY: the call takes numbers only, and the number is a process's of a running job.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// The ranks continue without MPI's launcher after half a second. Hydra then opens the barrier of MPI's end for ended
/// ranks.
#[cfg(feature = "mpi")]
#[test]
fn a_launcher_of_mpi_that_stands_still_finds_the_ranks_in_good_order() {
    if !has_hydra("a_launcher_of_mpi_that_stands_still_finds_the_ranks_in_good_order") {
        return;
    }
    let mut job = start(2, &[&rank_program(), "leaves"]);
    let pids = job.pids(2);
    let hydra = descendants(job.child.id() as i32)[0];
    tell(hydra, libc::SIGSTOP);
    job.signal(libc::SIGUSR1);
    wait_until("the ranks end", || !pids.iter().any(|pid| is_alive(*pid)));
    std::thread::sleep(Duration::from_millis(200));
    tell(hydra, libc::SIGCONT);
    let ended = job.end();
    assert_eq!((ended.status, &*ended.stderr), (Some(0), ""), "{ended:?}");
}

/// Starts ranks with TCP as their only transport.
#[cfg(feature = "mpi")]
fn start_over_tcp(ranks: u32, way: &str) -> Job {
    start(ranks, &["env", "VGASNET_PEER_MEMORY=0", "UCX_TLS=tcp,self", &rank_program(), way])
}

#[cfg(feature = "mpi")]
#[test]
fn a_network_that_breaks_is_told_once_and_by_one_rank() {
    if !has_hydra("a_network_that_breaks_is_told_once_and_by_one_rank") {
        return;
    }
    let ended = start_over_tcp(3, "breaks").end();
    expect(&ended, 1, ("vgasnetrun: rank ", "; the other ranks were ended"));
    assert!(ended.stderr.contains(") broke down: mpi: MPI_"), "{ended:?}");
}

/// The other ranks see the network break before the launcher knows the cause.
#[cfg(feature = "mpi")]
#[test]
fn a_network_that_breaks_where_a_rank_ends_is_not_told() {
    if !has_hydra("a_network_that_breaks_where_a_rank_ends_is_not_told") {
        return;
    }
    let mut job = start_over_tcp(3, "asks");
    let pids = job.pids(3);
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pids[1])).expect("a rank");
    let agent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok()).expect("a parent");
    tell(agent, libc::SIGSTOP);
    tell(pids[1], libc::SIGKILL);
    wait_until("the rank ends", || !is_alive(pids[1]));
    std::thread::sleep(Duration::from_millis(200));
    job.signal(libc::SIGUSR1);
    std::thread::sleep(Duration::from_secs(1));
    tell(agent, libc::SIGCONT);
    let line = format!("(pid {}) was killed by signal 9 (SIGKILL); the other ranks were ended", pids[1]);
    expect(&job.end(), 137, ("vgasnetrun: rank ", &line));
}

#[test]
fn a_time_out_that_makes_no_sense_is_refused() {
    for value in ["4", "3601", "soon", ""] {
        let mut command = Command::new(tool("vgasnetrun"));
        let output = command.env("VGASNET_HOST_TIMEOUT", value).args(["--conduit", CONDUIT, "true"]).output();
        let output = output.expect("vgasnetrun starts");
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("allowed: a number from 5 to 3600") && stderr.lines().count() == 1, "{stderr}");
    }
}
