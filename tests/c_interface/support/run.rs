//! Runs a program as a job, with a time limit, and checks that it leaves nothing behind.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::tools::{tool, with_default_signals};

/// Far longer than a run takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// Far longer than the processes of a job outlive their launcher.
const LEFT_PATIENCE: Duration = Duration::from_secs(60);

const SEED_DEFAULT: u64 = 2017;

/// For Open MPI: tests in containers run as root, and with more ranks than processors.
pub const IN_CONTAINERS: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    // GASNet warns of machines without a number.
    ("GASNET_HOST_DETECT", "hostname"),
];

/// The settings of a job.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub ranks: u32,
    pub page_bytes: u64,
    pub pool_pages: u64,
    pub peer_memory: bool,
    pub cooperative: bool,
}

/// An ended job.
#[derive(Debug)]
pub struct Ended {
    /// The launcher's exit status, or `None` if it took too long.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// The command to repeat it.
    pub again: String,
}

impl Ended {
    /// Fails unless the job ended with this status.
    pub fn expect(&self, status: i32) -> &Ended {
        assert!(self.status == Some(status), "{self}\nexpected status {status}");
        self
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.status.map_or(format!("none within {PATIENCE:?}"), |status| status.to_string());
        write!(formatter, "{}\nstatus {status}\n{}{}", self.again, self.stdout, self.stderr)
    }
}

/// Runs a program as a job. Fails if files stay behind.
pub fn run(program: &Path, args: &[&str], setup: Setup) -> Ended {
    run_with(program, args, setup, &[])
}

/// As [`run`], with more variables in the environment.
pub fn run_with(program: &Path, args: &[&str], setup: Setup, more: &[(&'static str, &str)]) -> Ended {
    run_job(program, args, setup, more, Stdio::null(), |_| {})
}

/// As [`run_with`], and calls `meanwhile` with the launcher while the job runs. Rank 0 reads the launcher's input.
/// Output read by `meanwhile` is missing from the result.
pub fn run_while(
    program: &Path,
    args: &[&str],
    setup: Setup,
    more: &[(&'static str, &str)],
    meanwhile: impl FnOnce(&mut Child),
) -> Ended {
    run_job(program, args, setup, more, Stdio::piped(), meanwhile)
}

fn run_job(
    program: &Path,
    args: &[&str],
    setup: Setup,
    more: &[(&'static str, &str)],
    stdin: Stdio,
    meanwhile: impl FnOnce(&mut Child),
) -> Ended {
    let storage = fresh_dir();
    let shared_before = shared_memory();
    let mut variables = variables(setup);
    variables.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    let mut command = launcher();
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("VGASNET_")) {
        command.env_remove(name);
    }
    command.env("VGASNET_STORAGE_DIR", &storage).envs(variables.iter().map(|(name, value)| (name, value)));
    with_default_signals(&mut command).envs(IN_CONTAINERS);
    // UCX, below MPI, installs handlers for faults before main begins. Programs check the handlers they find.
    command.env("UCX_HANDLE_ERRORS", "none");
    command.args(["-n", &setup.ranks.to_string()]).arg(program).args(args);
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn().expect("vgasnetrun starts");
    meanwhile(&mut child);
    let (status, stdout, stderr) = finish(child);
    let took_ms = begin.elapsed().as_millis();
    println!("{took_ms} ms: {} {} {setup:?}", program.display(), args.join(" "));
    let settings: String = variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    let again = format!(
        "VGASNET_STORAGE_DIR={} {settings}{} -n {} {} {}",
        env!("CARGO_TARGET_TMPDIR"),
        tool("vgasnetrun").display(),
        setup.ranks,
        program.display(),
        args.join(" ")
    );
    let ended = Ended { status, stdout, stderr, again };
    let left = entries(&storage);
    assert!(left.is_empty(), "{ended}\nleft in the storage directory: {left:?}");
    std::fs::remove_dir(&storage).expect("an empty directory of ours");
    let shared = left_in_memory(&shared_before);
    assert!(shared.is_empty(), "{ended}\nleft in /dev/shm: {shared:?}");
    ended
}

/// Reads lines until `times` of them contain the text, or to the end of the stream. Returns them.
pub fn read_until(stream: &mut impl Read, text: &str, times: usize) -> String {
    let (mut all, mut byte) = (Vec::new(), [0]);
    loop {
        let said = String::from_utf8_lossy(&all);
        let is_whole = all.last().is_none_or(|last| *last == b'\n');
        if is_whole && said.lines().filter(|line| line.contains(text)).count() >= times {
            return said.into_owned();
        }
        if stream.read(&mut byte).expect("a pipe") == 0 {
            return said.into_owned();
        }
        all.push(byte[0]);
    }
}

/// Prints that a test was not run, on the real stderr: the test harness hides the output of passing tests.
pub fn say_not_run(what: &str, why: &str) {
    // If stderr is closed, the line is lost.
    let _ = std::io::stderr().write_all(format!("NOT RUN: {what}: {why}\n").as_bytes());
}

/// The conduit of the ranks: `CHECK_CONDUIT`, else smp. The library must have been built with it.
pub fn conduit() -> String {
    std::env::var("CHECK_CONDUIT").unwrap_or_else(|_| "smp".to_owned())
}

/// `vgasnetrun`, or the command `CHECK_LAUNCHER` with `vgasnetrun` as its first argument, which may run it on other
/// hosts.
fn launcher() -> Command {
    let vgasnetrun = tool("vgasnetrun");
    let Some(other) = std::env::var_os("CHECK_LAUNCHER") else { return Command::new(vgasnetrun) };
    let mut command = Command::new(other);
    command.arg(vgasnetrun);
    command
}

/// Whether the ranks of a job are on several hosts.
pub fn is_across_hosts() -> bool {
    std::env::var_os("CHECK_LAUNCHER").is_some()
}

/// The setups in which to run a program: a fifth of them, or all with `CHECK_ALL`.
pub fn some_of<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let all: Vec<T> = all.into_iter().collect();
    let takes_all = all.len() < 2 || std::env::var_os("CHECK_ALL").is_some();
    all.into_iter().enumerate().filter(move |(at, _)| takes_all || at % 5 == 1).map(|(_, one)| one)
}

/// The environment of the library and the programs: the settings of a job. `CHECK_HOMES` is the value of VGASNET_HOMES
/// for cooperative setups. Other setups cannot have it.
fn variables(setup: Setup) -> Vec<(&'static str, String)> {
    let Setup { ranks, page_bytes, pool_pages, peer_memory, cooperative } = setup;
    let seed = std::env::var("CHECK_SEED").unwrap_or_else(|_| SEED_DEFAULT.to_string());
    let pool_bytes = (page_bytes * pool_pages).to_string();
    let homes = std::env::var("CHECK_HOMES").ok().filter(|_| cooperative);
    let variables = vec![
        ("VGASNET_CONDUIT", conduit()),
        ("VGASNET_PAGE_SIZE", page_bytes.to_string()),
        ("VGASNET_POOL_SIZE", pool_bytes.clone()),
        ("VGASNET_PEER_MEMORY", u32::from(peer_memory).to_string()),
        ("VGASNET_COOPERATIVE", u32::from(cooperative).to_string()),
        ("CHECK_SEED", seed),
        ("CHECK_PAGE_BYTES", page_bytes.to_string()),
        ("CHECK_POOL_BYTES", pool_bytes),
        ("CHECK_RANKS", ranks.to_string()),
    ];
    variables.into_iter().chain(homes.map(|homes| ("VGASNET_HOMES", homes))).collect()
}

/// Waits for the launcher. On a timeout it is killed, and its ranks die with it. Fails if a process with its output
/// open stays behind.
pub fn finish(mut child: Child) -> (Option<i32>, String, String) {
    let stdout = read_all(child.stdout.take().expect("piped"));
    let stderr = read_all(child.stderr.take().expect("piped"));
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("our child") {
            break status.code();
        }
        if begin.elapsed() > PATIENCE {
            child.kill().expect("our child");
            child.wait().expect("our child");
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let said = |stream: Receiver<String>| stream.recv_timeout(LEFT_PATIENCE).expect("no process stays behind");
    (status, said(stdout), without_warning_of_slow_storage(&said(stderr)))
}

/// Containers may refuse io_uring, which adds one line to each job.
fn without_warning_of_slow_storage(stderr: &str) -> String {
    stderr.split_inclusive('\n').filter(|line| !line.contains("the kernel refused io_uring")).collect()
}

/// Reads a stream to its end in a thread of its own.
fn read_all(mut stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, read) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("a pipe");
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    read
}

/// Runs a command that must succeed. Returns its output.
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", said(&output.stdout), said(&output.stderr));
    said(&output.stdout)
}

pub fn fresh_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("storage-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir(&dir).expect("a new directory");
    dir
}

/// Places a script or a copy of a program, `contents`, at `path`, to be run. Another process writes it: no file can be run
/// while a child that some thread of this process has just forked has it open for writing.
pub fn place_executable(path: &Path, contents: &[u8]) {
    let mut install = Command::new("install");
    install.args(["--mode=755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut install = install.spawn().expect("coreutils");
    install.stdin.take().expect("a pipe").write_all(contents).expect("install reads to the end");
    let status = install.wait().expect("our child");
    assert!(status.success(), "{status}");
}

/// Files with one of these extensions: this path, or files below it.
pub fn files_below(path: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("a directory");
        return entries.flat_map(|entry| files_below(&entry.expect("an entry").path(), extensions)).collect();
    }
    let is_wanted = path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted));
    is_wanted.then(|| path.to_owned()).into_iter().collect()
}

pub fn entries(dir: &Path) -> BTreeSet<OsString> {
    std::fs::read_dir(dir).expect("a directory").flatten().map(|entry| entry.file_name()).collect()
}

/// New files in /dev/shm that no process has open. Files of other jobs may come and go.
fn left_in_memory(before: &BTreeSet<OsString>) -> Vec<OsString> {
    let left = |name: &OsString| !before.contains(name) && !is_held(name);
    let mut names: Vec<_> = shared_memory().into_iter().filter(left).collect();
    for _ in 0..100 {
        if names.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        names.retain(left);
    }
    names
}

/// The files in /dev/shm. A container may lack the directory.
pub fn shared_memory() -> BTreeSet<OsString> {
    std::fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

/// Whether a process has it open. The process belongs to another job, since this one has ended.
fn is_held(name: &OsString) -> bool {
    let path = Path::new("/dev/shm").join(name);
    let is_open = |descriptors: std::fs::ReadDir| {
        descriptors.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == path))
    };
    let processes = std::fs::read_dir("/proc").expect("it exists").flatten();
    let mut dirs = processes.map(|process| process.path());
    !path.exists()
        || dirs.any(|dir| {
            let maps = std::fs::read_to_string(dir.join("maps")).unwrap_or_default();
            maps.lines().any(|line| line.ends_with(&*path.to_string_lossy()))
                || std::fs::read_dir(dir.join("fd")).is_ok_and(is_open)
        })
}
