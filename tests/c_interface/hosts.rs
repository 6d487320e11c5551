//! Jobs over MPI on two hosts: network namespaces of this machine, joined by a cable that the test can shape and cut.
//! Each test makes its hosts and removes them. Without the right to do so, the test prints a line and passes.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::support::compile::{self, Language, Linking, program_text, source_dir};
use crate::support::run::{IN_CONTAINERS, Setup, conduit, entries, finish, fresh_dir, place_executable, say_not_run};
use crate::support::tools::tool;
use vgasnet_hosts::{ADDRESSES, OVER_THE_CABLE, is_hydra, run};

/// The longest time of a job to end after a host is cut off.
const CUT_LIMIT: Duration = Duration::from_secs(30);

/// Far longer than the start of a job takes.
const START_LIMIT: Duration = Duration::from_secs(60);

/// MPI polls, so several jobs at once on two processors take very long.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Tests without need of hosts, or about this machine or its C library.
const ELSEWHERE: [&str; 12] = [
    "abi::",
    "declarations::",
    "hosts::",
    "header::",
    "install::",
    "mpi::",
    "tools::",
    "sanitizers::",
    "disk::",
    "dlopened::",
    "scripts::",
    "local::input_and_output",
];

/// Tests of behaviour within a host. They run on one host, mostly over the same MPI, and across hosts with `CHECK_ALL`.
const OF_ONE_HOST: [&str; 37] = [
    "compat::",
    "documents::",
    "ex_tools::",
    "examples::",
    "file_systems::",
    // The home of a page and its disk, and threads of one rank.
    "files::a_failed_sync",
    "files::threads_",
    "files::what_is_spilled",
    "files::who_syncs",
    "fortran::",
    "install_cmake::",
    "install_ex::",
    "install_libraries::",
    "install_pages::",
    // A rank's own signals, mappings, threads and children.
    "local::a_",
    "local::blocked",
    "local::children",
    "local::forked",
    "local::handlers",
    "local::hints",
    "local::input",
    "local::instructions",
    "local::misses",
    "local::pinned",
    "local::programs",
    "local::signal_handlers_store",
    "local::signal_handlers_that_store",
    "local::single",
    "local::small",
    "local::the",
    "local::threads",
    "programs::a_rank_that_computes",
    "python::",
    "refused::",
    "settings::",
    "stats::",
    "wrapped::",
];

/// What differs between hosts, by MPICH's launcher. `CHECK_ALL` runs the others, too.
const OF_HYDRA: [&str; 19] = [
    "bad_input::a_rank_killed",
    "ex::collectives",
    "ex::gets",
    "ex::messages",
    "exits::",
    "files::in_mode",
    "files::locks",
    "files::ranks_write",
    "files::teams",
    "files::who_reads",
    "idle_pools::",
    "local::loads",
    "local::stores",
    "programs::active",
    "programs::barriers",
    "programs::blocking",
    "programs::implicit",
    "programs::several",
    "vis_coll::transfers",
];

/// The tests to run across hosts, if not all do, by a launcher other than MPICH's: its jobs start and end in other
/// ways.
const OF_OTHER_LAUNCHERS: [&str; 7] = [
    "bad_input::a_rank_killed",
    "ex::messages",
    "exits::",
    "files::ranks_write",
    "local::loads",
    "programs::blocking",
    "programs::barriers",
];

/// Two hosts with a disk each.
struct Hosts {
    hosts: vgasnet_hosts::Hosts,
    /// Scripts, and a storage directory for each host, named after it.
    dir: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

const SMALL: Setup = Setup { ranks: 2, page_bytes: 64 << 10, pool_pages: 4, peer_memory: true, cooperative: true };

/// An ended job, with its output for the report of a failure.
#[derive(Debug)]
#[allow(dead_code)]
struct Ended {
    status: Option<i32>,
    stdout: String,
    stderr: String,
    took: Duration,
}

impl Hosts {
    /// Makes the hosts, or prints loudly why there are none.
    fn new() -> Option<Hosts> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if conduit() != "mpi" {
            say_not_run("hosts", "CHECK_CONDUIT is not mpi");
            return None;
        }
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = fresh_dir();
        match vgasnet_hosts::Hosts::new(&format!("{}-{number}", std::process::id()), &dir) {
            Ok(hosts) => Some(Hosts::with_disks(hosts, dir, alone)),
            Err(why) => {
                std::fs::remove_dir_all(&dir).expect("a directory of ours");
                say_not_run("hosts", &why);
                None
            }
        }
    }

    fn with_disks(hosts: vgasnet_hosts::Hosts, dir: PathBuf, alone: MutexGuard<'static, ()>) -> Hosts {
        let hosts = Hosts { hosts, dir, _alone: alone };
        hosts.names().iter().for_each(|name| std::fs::create_dir(hosts.storage(name)).expect("a new directory"));
        // The wrapper of a rank's program.
        let dir = hosts.dir.display();
        let settle =
            format!("#!/bin/sh\nexport VGASNET_STORAGE_DIR={dir}/storage-$(ip netns identify $$)\nexec \"$@\"\n");
        hosts.script("settle", &settle);
        hosts
    }

    /// The namespaces. vgasnetrun runs in the first.
    fn names(&self) -> &[String; 2] {
        &self.hosts.names
    }

    fn script(&self, name: &str, text: &str) {
        place_executable(&self.dir.join(name), text.as_bytes());
    }

    fn storage(&self, name: &str) -> PathBuf {
        self.dir.join(format!("storage-{name}"))
    }

    fn launcher(&self) -> String {
        self.hosts.launcher(vgasnet_mpi::MPIEXEC, is_hydra(vgasnet_mpi::MPIEXEC))
    }

    /// Starts a job on both hosts, from the first.
    fn start(&self, program: &Path, args: &[&str], setup: Setup) -> Child {
        let Setup { ranks, page_bytes, pool_pages, .. } = setup;
        let pool_bytes = page_bytes * pool_pages;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names()[0]]);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("VGASNET_")) {
            command.env_remove(name);
        }
        command.env("VGASNET_MPIEXEC", self.launcher()).env("VGASNET_HOST_TIMEOUT", "5");
        command.env("VGASNET_PAGE_SIZE", page_bytes.to_string()).env("VGASNET_POOL_SIZE", pool_bytes.to_string());
        command.envs(OVER_THE_CABLE);
        command.envs(IN_CONTAINERS);
        command.arg(tool("vgasnetrun")).args(["--conduit", "mpi", "--hosts", &ADDRESSES.join(",")]);
        command.args(["-n", &ranks.to_string(), "env", "CHECK_SEED=2017", &format!("CHECK_RANKS={ranks}")]);
        command.args([format!("CHECK_PAGE_BYTES={page_bytes}"), format!("CHECK_POOL_BYTES={pool_bytes}")]);
        command.arg(self.dir.join("settle")).arg(program).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it was there before")
    }

    /// Runs a job to its end and checks that it leaves nothing behind.
    fn run(&self, program: &str, setup: Setup) -> Ended {
        let begin = Instant::now();
        let path = compile::program(program, Language::C99, Linking::Shared);
        let (status, stdout, stderr) = finish(self.start(&path, &[], setup));
        let ended = Ended { status, stdout, stderr, took: begin.elapsed() };
        assert_eq!(ended.status, Some(0), "{program}, {setup:?}: {ended:?}");
        println!("{} ms: {program}, {setup:?}", ended.took.as_millis());
        self.assert_clean(&ended, Duration::from_secs(5));
        ended
    }

    /// Limits the rate of the cable in each direction. Returns whether this machine can.
    fn shape(&self, rate: &str) -> bool {
        let shape = |name| format!("tc -n {name} qdisc add dev v0 root tbf rate {rate} burst 256kb latency 100ms");
        let shaped = self.names().iter().try_for_each(|name| run(&shape(name)).map(drop));
        shaped.as_ref().inspect_err(|why| say_not_run("hosts: bandwidth", why)).is_ok()
    }

    /// A script that runs its arguments across the hosts. The first one is `vgasnetrun`.
    fn launcher_across(&self) -> PathBuf {
        let [a, _] = self.names();
        let text = format!(
            "#!/bin/sh\nvgasnetrun=$1 ranks=$3\nshift 3\nexport VGASNET_MPIEXEC='{}' VGASNET_HOST_TIMEOUT=60\n\
             export UCX_TLS=tcp,self UCX_NET_DEVICES=v0\n\
             exec ip netns exec {a} \"$vgasnetrun\" --conduit mpi --hosts {} -n \"$ranks\" env \
             CHECK_HOSTS=2 $(env | grep '^CHECK_') \"$@\"\n",
            self.launcher(),
            ADDRESSES.join(",")
        );
        self.script("across", &text);
        self.dir.join("across")
    }

    /// The processes on a host.
    fn processes(&self, name: &str) -> Vec<i32> {
        let pids = run(&format!("ip netns pids {name}")).unwrap_or_default();
        pids.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| is_alive(*pid)).collect()
    }

    fn assert_clean(&self, ended: &Ended, patience: Duration) {
        let begin = Instant::now();
        for name in self.names() {
            while !self.processes(name).is_empty() {
                let left = run(&format!("ps -o pid,args -p {}", join(&self.processes(name)))).unwrap_or_default();
                assert!(begin.elapsed() < patience, "{ended:?}\nleft on {name}: {left}");
                std::thread::sleep(Duration::from_millis(20));
            }
            let left = entries(&self.storage(name));
            assert!(left.is_empty(), "{ended:?}\nleft in the storage directory of {name}: {left:?}");
        }
    }
}

fn join(pids: &[i32]) -> String {
    pids.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.names() {
            // Only after a failure.
            for pid in self.processes(name) {
                // SAFETY: the call takes numbers only, and the process is in a namespace of this test.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Whether a process with this number exists and is not a zombie.
fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The bytes sent by a host under this shape.
fn sent_bytes(name: &str) -> u64 {
    let text = run(&format!("tc -n {name} -s qdisc show dev v0")).expect("a host of ours");
    let sent = text.split_whitespace().skip_while(|word| *word != "Sent").nth(1);
    sent.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// This program's arguments to run its other tests across hosts: `CHECK_ACROSS`, if set.
fn tests_across_hosts() -> Vec<&'static str> {
    if let Ok(names) = std::env::var("CHECK_ACROSS") {
        return names.leak().split_whitespace().collect();
    }
    let skipped =
        |names: &[&'static str]| -> Vec<&'static str> { names.iter().flat_map(|name| ["--skip", *name]).collect() };
    let has_all = std::env::var_os("CHECK_ALL").is_some();
    let filters = match is_hydra(vgasnet_mpi::MPIEXEC) {
        _ if has_all => &[][..],
        true => &OF_HYDRA[..],
        false => &OF_OTHER_LAUNCHERS,
    };
    let of_one_host = if has_all { &[][..] } else { &OF_ONE_HOST };
    [filters, &skipped(&ELSEWHERE), &skipped(of_one_host)].concat()
}

/// This program's other tests, on both hosts, in a fifth of their setups.
#[test]
fn programs_run_across_hosts() {
    let Some(hosts) = Hosts::new() else { return };
    if !hosts.shape("1gbit") {
        return;
    }
    let launcher = hosts.launcher_across();
    let mut tests = Command::new(std::env::current_exe().expect("this program has a path"));
    tests
        .env("CHECK_LAUNCHER", launcher)
        // On one host they have run in all the setups `CHECK_ALL` asks for.
        .env_remove("CHECK_ALL")
        .arg("--test-threads=1")
        .args(tests_across_hosts());
    let mut tests = tests.stdout(Stdio::piped()).spawn().expect("this program runs");
    let (said, messages) = pass_on(BufReader::new(tests.stdout.take().expect("piped")));
    let status = tests.wait().expect("our child");
    assert!(status.success(), "across hosts, {status}:\n{messages}");
    assert!(said.contains(" passed; 0 failed;"), "no test ran");
}

/// Copies the output of tests to the real stdout, since they take minutes. Returns the output, and separately the
/// messages of failed tests, which stand between two lines of the same form.
fn pass_on(lines: impl BufRead) -> (String, String) {
    let (mut said, mut messages, mut is_message) = (String::new(), String::new(), false);
    for line in lines.split(b'\n') {
        let line = String::from_utf8_lossy(&line.expect("a pipe")).into_owned() + "\n";
        if line == "failures:\n" {
            is_message = !is_message;
        } else if is_message {
            messages += &line;
        } else {
            // If stdout is closed, the output is lost.
            let _ = std::io::stdout().write_all(line.as_bytes());
            said += &line;
        }
    }
    (said, messages)
}

/// The peers notice the failure before the launcher reports it.
#[test]
fn the_peers_of_a_rank_that_fails_say_nothing() {
    let Some(hosts) = Hosts::new() else { return };
    let begin = Instant::now();
    let program = compile::program("fatal", Language::C99, Linking::Shared);
    let (status, stdout, stderr) = finish(hosts.start(&program, &["slow-parent"], Setup { ranks: 3, ..SMALL }));
    let ended = Ended { status, stdout, stderr, took: begin.elapsed() };
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert!(ended.status == Some(1) && ended.stdout.is_empty() && lines.len() == 2, "{ended:?}");
    assert!(lines[0].starts_with("vgasnet: rank 2: vgasnet_put_val: "), "{ended:?}");
    assert!(lines[1].starts_with("vgasnetrun: rank 2 "), "{ended:?}");
    hosts.assert_clean(&ended, Duration::from_secs(5));
}

#[test]
fn a_slow_network_is_only_slower() {
    const RATE_BYTES_PER_S: u64 = 25_000_000;
    let Some(hosts) = Hosts::new() else { return };
    if !hosts.shape("200mbit") {
        return;
    }
    let ended = hosts.run("larger_than_memory", Setup { pool_pages: 7, ..SMALL });
    let most_bytes = hosts.names().iter().map(|name| sent_bytes(name)).max().expect("two hosts");
    assert!(most_bytes > 1 << 20, "{most_bytes} bytes went over the cable: {ended:?}");
    let least = Duration::from_millis(1000 * (most_bytes - (256 << 10)) / RATE_BYTES_PER_S);
    println!("{most_bytes} bytes, at least {least:?}, took {:?}", ended.took);
    assert!(ended.took >= least, "{most_bytes} bytes over the cable, at least {least:?}: {ended:?}");
}

#[test]
fn a_host_that_is_cut_off_ends_the_job_on_both_sides() {
    let Some(hosts) = Hosts::new() else { return };
    let program = compile::build(&source_dir().join("tests/cluster/ways.c"), Language::C99, Linking::Shared);
    let mut child = hosts.start(&program, &["goes on"], Setup { ranks: 4, ..SMALL });
    let out = child.stdout.take().expect("piped");
    let (sender, read) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut out = BufReader::with_capacity(1, out);
        let mut lines = String::new();
        (0..4).for_each(|_| drop(out.read_line(&mut lines)));
        let _ = sender.send((lines, out.into_inner()));
    });
    let (lines, out) = read.recv_timeout(START_LIMIT).expect("all ranks start in time");
    child.stdout = Some(out);
    let pids: Vec<i32> = lines.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect();
    assert!(pids.len() == 4 && pids.iter().all(|pid| is_alive(*pid)), "{lines}");

    run(&format!("ip -n {} link set v0 down", hosts.names()[1])).expect("a host of ours");
    let begin = Instant::now();
    let (status, stdout, stderr) = finish(child);
    let ended = Ended { status, stdout, stderr, took: begin.elapsed() };
    println!("{ended:?}");
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let line = "vgasnetrun: host 10.77.0.2 (ranks 2, 3) has not answered for 5 s; the other ranks were ended";
    assert!(ended.stderr.lines().any(|its| its == line), "{ended:?}");
    assert!(ended.took < CUT_LIMIT, "{ended:?}");
    hosts.assert_clean(&ended, CUT_LIMIT - ended.took);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    println!("both sides were clean after {:?}", begin.elapsed());
}

/// The tutorial's program prints the tutorial's lines across hosts, and has the rows of statistics that the tutorial names.
#[test]
fn the_program_of_the_tutorial() {
    let Some(hosts) = Hosts::new() else { return };
    let path = "docs/tutorials/two-hosts.md";
    let tutorial = std::fs::read_to_string(source_dir().join(path)).expect("the tutorial");
    let expected: Vec<&str> = tutorial.lines().filter(|line| line.starts_with("rank ")).collect();
    let (_, table) = tutorial.split_once("these rows among others").expect("the statistics");
    let table = table.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the rows");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<_> = table.lines().map(words).collect();
    assert_eq!((expected.len(), rows.len()), (4, 3), "{tutorial}");
    assert_eq!(program_text(path), program_text("README.md"));
    let source = hosts.dir.join("hello.c");
    std::fs::write(&source, program_text(path)).expect("a new file");
    let hello = compile::build(&source, Language::C99, Linking::Shared);
    let setup = Setup { ranks: 4, page_bytes: 1 << 20, pool_pages: 16, ..SMALL };
    let hello = hello.to_str().expect("text");
    let (status, stdout, stderr) = finish(hosts.start(Path::new("env"), &["VGASNET_STATS=1", hello], setup));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let mut lines: Vec<&str> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, expected, "{stderr}");
    let has_row = |row: &Vec<String>| stderr.lines().any(|line| words(line) == *row);
    assert!(rows.iter().all(has_row), "{rows:?}: {stderr}");
}
