//! `vgasnetrun` as its users see it. The ranks are small shell scripts without vgasnet.

mod tools;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Far longer than a test takes.
const PATIENCE: Duration = Duration::from_secs(30);

fn start(args: &[&str]) -> Child {
    start_with(args, |command| tools::with_default_signals(command))
}

fn start_with(args: &[&str], change: impl FnOnce(&mut Command) -> &mut Command) -> Child {
    let mut command = Command::new(tools::tool("vgasnetrun"));
    change(&mut command).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("vgasnetrun starts")
}

/// Waits for the launcher, which must end in time. If it is killed, its ranks end with it.
fn finish(mut child: Child) -> Output {
    drop(child.stdin.take());
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let read_all = |stream: &mut dyn Read| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("a pipe");
        bytes
    };
    std::thread::scope(|scope| {
        let stdout = scope.spawn(move || read_all(&mut out));
        let stderr = scope.spawn(move || read_all(&mut err));
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("our child") {
                break status;
            }
            if begin.elapsed() > PATIENCE {
                child.kill().expect("our child");
                child.wait().expect("our child");
                panic!("vgasnetrun did not end within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Output { status, stdout: stdout.join().expect("reader"), stderr: stderr.join().expect("reader") }
    })
}

fn run(args: &[&str]) -> Output {
    finish(start(args))
}

#[test]
fn np_is_n_before_the_program() {
    let output = run(&["-np", "2", "-l", "echo", "-np", "5"]);
    assert_eq!(sorted_lines(&output.stdout), ["[0] -np 5", "[1] -np 5"]);
    assert_eq!(text(&run(&["echo", "-np"]).stdout), "-np\n");
    assert_eq!(run(&["-np", "lots", "true"]).status.code(), Some(2));
}

#[test]
fn version_is_told() {
    let output = run(&["--version"]);
    assert_eq!(text(&output.stdout), format!("vgasnetrun {}\n", env!("CARGO_PKG_VERSION")));
}

fn run_script(ranks: &str, script: &str) -> Output {
    run(&["-n", ranks, "sh", "-c", script])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn sorted_lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> = text(bytes).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Sends a signal by number to an unreaped child of ours.
fn kill(child: &Child, signal: i32) {
    // SAFETY: the call takes numbers only, and the child's number is its own until it is reaped.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// Reads `count` lines, and puts the remaining stream back.
fn read_lines(child: &mut Child, count: usize) -> Vec<String> {
    let mut out = BufReader::with_capacity(1, child.stdout.take().expect("piped"));
    let lines = (0..count).map(|_| {
        let mut line = String::new();
        out.read_line(&mut line).expect("a pipe");
        line.trim_end().to_owned()
    });
    let lines = lines.collect();
    child.stdout = Some(out.into_inner());
    lines
}

/// Whether a process with this number exists and is not a zombie.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn assert_gone(pids: &[String]) {
    let begin = Instant::now();
    while pids.iter().any(|pid| is_alive(pid)) {
        assert!(begin.elapsed() < PATIENCE, "still there: {pids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn programs_that_are_no_ranks_simply_run() {
    let output = run_script("5", "echo hello");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "hello\n".repeat(5));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn one_rank_is_the_default_and_later_options_are_the_programs() {
    let output = run(&["echo", "-l", "-n", "2", "--help", "--", "x"]);
    assert_eq!(text(&output.stdout), "-l -n 2 --help -- x\n");
}

#[test]
fn a_failing_rank_decides_the_status_and_ends_the_others() {
    let script = r#"case $VGASNET_SMP_JOB in rank=1,*) exit 3;; esac; exec sleep 60"#;
    let output = run_script("4", script);
    assert_eq!(output.status.code(), Some(3));
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("vgasnetrun: rank 1 (pid "), "{stderr}");
    assert!(stderr.ends_with(") ended with exit status 3; the other ranks were ended\n"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn a_killed_rank_is_reported_with_its_signal() {
    let script = r#"case $VGASNET_SMP_JOB in rank=2,*) kill -9 $$;; esac; exec sleep 60"#;
    let output = run_script("4", script);
    assert_eq!(output.status.code(), Some(137));
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("vgasnetrun: rank 2 (pid "), "{stderr}");
    assert!(stderr.ends_with(") was killed by signal 9 (SIGKILL); the other ranks were ended\n"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn ranks_that_ignore_sigterm_are_killed_after_a_grace_period() {
    let script = r#"trap "" TERM; case $VGASNET_SMP_JOB in rank=0,*) sleep 0.2; exit 9;; esac; exec sleep 60"#;
    let begin = Instant::now();
    let output = run_script("3", script);
    assert_eq!(output.status.code(), Some(9));
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
}

/// The launcher ends ranks by SIGQUIT. A shell makes its background jobs ignore this signal.
#[test]
fn no_rank_ignores_sigquit_because_its_launcher_does() {
    let script =
        format!("trap '' INT QUIT; exec {} -n 1 grep SigIgn /proc/self/status", tools::tool("vgasnetrun").display());
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    let ignored = text(&output.stdout).trim().rsplit('\t').next().map(|mask| u64::from_str_radix(mask, 16));
    let of = |signal: i32| 1_u64 << (signal - 1);
    assert_eq!(
        ignored.map(|mask| mask.expect("a mask") & (of(libc::SIGQUIT) | of(libc::SIGINT))),
        Some(of(libc::SIGINT))
    );
}

#[test]
fn labelled_lines_are_whole() {
    let script = r#"x=$(head -c 3000 /dev/zero | tr "\0" x); i=0
        while [ $i -lt 100 ]; do echo "begin $x"; echo "$x end"; i=$((i+1)); done; printf last"#;
    let output = run(&["-l", "-n", "3", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0));
    let x = "x".repeat(3000);
    let mut expected: Vec<String> = Vec::new();
    for rank in 0..3 {
        expected.extend((0..100).flat_map(|_| [format!("[{rank}] begin {x}"), format!("[{rank}] {x} end")]));
        expected.push(format!("[{rank}] last"));
    }
    expected.sort();
    assert!(sorted_lines(&output.stdout) == expected, "lines were mixed or lost");
}

#[test]
fn stderr_is_labelled_too_and_stays_apart() {
    let output = run(&["-l", "-n", "2", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(sorted_lines(&output.stdout), ["[0] out", "[1] out"]);
    assert_eq!(sorted_lines(&output.stderr), ["[0] err", "[1] err"]);
}

/// As on a full disk, even if the ranks have ended before.
#[test]
fn labelled_lines_that_are_lost_are_a_failure() {
    for script in ["echo line", "echo line; sleep 60"] {
        let mut command = Command::new(tools::tool("vgasnetrun"));
        command.args(["-l", "-n", "2", "sh", "-c", script]).stdin(Stdio::null());
        let output =
            command.stdout(std::fs::File::create("/dev/full").expect("a device")).output().expect("a launcher");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("vgasnetrun: standard output: No space left on device"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// As under ssh, and under programs that share their nonblocking pipe or terminal. The reader is late, and gets all
/// lines.
#[test]
fn labelled_lines_wait_for_room_in_a_nonblocking_pipe() {
    const LINES: usize = 20_000;
    let (mut reader, writer) = pipe_of_nonblocking_writer();
    let mut command = Command::new(tools::tool("vgasnetrun"));
    command.args(["-l", "-n", "1", "seq", &LINES.to_string()]).stdin(Stdio::null()).stdout(writer);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("a launcher");
    drop(command);
    // The pipe is full at the end of this loop: it holds less than a tenth of the lines.
    while child.try_wait().expect("our child").is_none() && room_is_left(&reader) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut lines = String::new();
    reader.read_to_string(&mut lines).expect("text");
    let output = child.wait_with_output().expect("our child");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!((lines.lines().count(), lines.lines().last()), (LINES, Some("[0] 20000")));
}

fn pipe_of_nonblocking_writer() -> (fs::File, fs::File) {
    let mut ends = [0; 2];
    // SAFETY: the call writes two numbers into an array of two.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    // SAFETY: the call takes numbers only, and the descriptor is ours.
    assert_eq!(unsafe { libc::fcntl(ends[1], libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    // SAFETY: the descriptors are open, and nothing else owns them.
    let file = |end| unsafe { fs::File::from_raw_fd(end) };
    (file(ends[0]), file(ends[1]))
}

/// Whether a pipe holds less than it usually can.
fn room_is_left(pipe: &fs::File) -> bool {
    let mut held_bytes: libc::c_int = 0;
    // SAFETY: the call writes one number into a variable of its type.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut held_bytes) }, 0);
    held_bytes < 48 << 10
}

#[test]
fn a_process_left_behind_does_not_hold_labelled_output_up() {
    let mut child = start(&["-l", "sh", "-c", "sleep 60 & echo $!"]);
    let line = read_lines(&mut child, 1).remove(0);
    let output = finish(child);
    assert_eq!(output.status.code(), Some(0));
    let left = line.strip_prefix("[0] ").expect("a label").parse().expect("a pid");
    // SAFETY: the call takes numbers only. The process is left behind by our rank, and still asleep.
    assert_eq!(unsafe { libc::kill(left, libc::SIGKILL) }, 0);
}

#[test]
fn a_program_that_cannot_be_run_is_one_line_and_127_or_126() {
    let missing = run(&["-n", "3", "/nowhere/to/be/found"]);
    assert_eq!(missing.status.code(), Some(127));
    let stderr = text(&missing.stderr);
    assert!(stderr.contains("\"/nowhere/to/be/found\": No such file"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);

    let not_executable = run(&["-n", "3", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    assert_eq!(not_executable.status.code(), Some(126));
    assert!(text(&not_executable.stderr).contains("Permission denied"));
}

#[test]
fn wrong_options_are_refused() {
    for args in [
        &["-n", "0", "true"][..],
        &["-n", "4097", "true"],
        &["-n", "1048577", "true"],
        &["-n", "x", "true"],
        &["--bogus", "true"],
        &[],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains("error:"), "{args:?}");
    }
}

#[test]
fn stdin_goes_to_rank_0_alone() {
    let mut child = start(&["-l", "-n", "3", "sh", "-c", "cat; echo end"]);
    child.stdin.as_mut().expect("piped").write_all(b"hello\n").expect("rank 0 reads");
    let output = finish(child);
    assert_eq!(sorted_lines(&output.stdout), ["[0] end", "[0] hello", "[1] end", "[2] end"]);
}

#[test]
fn signals_are_forwarded() {
    let script = r#"trap "echo got; exit 0" USR1; echo ready; while :; do sleep 0.02; done"#;
    let mut child = start(&["-n", "2", "sh", "-c", script]);
    assert_eq!(read_lines(&mut child, 2), ["ready", "ready"]);
    kill(&child, libc::SIGUSR1);
    let output = finish(child);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "got\ngot\n");
}

#[test]
fn ranks_take_signals() {
    let output = run(&["-n", "2", "grep", "SigBlk", "/proc/self/status"]);
    assert_eq!(text(&output.stdout), "SigBlk:\t0000000000000000\n".repeat(2));
}

#[test]
fn an_interrupt_ends_the_job_quietly() {
    for (signal, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let mut child = start(&["-n", "3", "sh", "-c", "echo ready; exec sleep 60"]);
        read_lines(&mut child, 3);
        kill(&child, signal);
        let output = finish(child);
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn signals_that_the_launcher_ignores_end_no_job() {
    let ignored = [libc::SIGINT, libc::SIGHUP];
    let mut child = start_with(&["sh", "-c", "echo ready; read line; echo $line"], |command| {
        tools::with_disposition(command, &ignored, libc::SIG_IGN)
    });
    read_lines(&mut child, 1);
    ignored.iter().for_each(|signal| kill(&child, *signal));
    child.stdin.take().expect("piped").write_all(b"and on\n").expect("a pipe");
    let output = finish(child);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "and on\n".to_owned()));
}

#[test]
fn an_interrupt_that_a_rank_ignores_ends_it_after_a_grace_period() {
    let mut child = start(&["sh", "-c", r#"trap "" INT; echo ready; exec sleep 60"#]);
    read_lines(&mut child, 1);
    let begin = Instant::now();
    kill(&child, libc::SIGINT);
    assert_eq!(finish(child).status.code(), Some(130));
    assert!(begin.elapsed() >= Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[test]
fn a_killed_launcher_takes_its_ranks_along() {
    let mut child = start(&["-n", "4", "sh", "-c", "echo $$; exec sleep 60"]);
    let pids = read_lines(&mut child, 4);
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    kill(&child, libc::SIGKILL);
    child.wait().expect("our child");
    assert_gone(&pids);
}

#[test]
fn nothing_stays_in_dev_shm() {
    if std::fs::read_dir("/dev/shm").is_err() {
        eprintln!("NOT RUN: nothing_stays_in_dev_shm: there is no /dev/shm here");
        return;
    }
    let mut child = start(&["-n", "2", "sh", "-c", "ls /dev/shm; echo ready; exec sleep 60"]);
    let mut names = Vec::new();
    while names.iter().filter(|name| *name == "ready").count() < 2 {
        names.extend(read_lines(&mut child, 1));
    }
    kill(&child, libc::SIGKILL);
    child.wait().expect("our child");
    let after = std::fs::read_dir("/dev/shm").expect("it exists").flatten();
    names.extend(after.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    assert!(names.iter().all(|name| !name.contains("vgasnet")), "{names:?}");
}

/// The system kills a process for lack of memory without a message to it.
#[test]
fn a_rank_that_was_killed_for_want_of_memory_is_told_of_so() {
    let Some(limit) = tools::MemoryLimit::new(64 << 20) else {
        // Not by a macro, since the test harness captures the output of macros.
        let line = b"NOT RUN: a job in a cgroup without memory: this user may not make cgroups here\n";
        return std::io::stderr().write_all(line).expect("somebody reads");
    };
    let script = format!("echo $$ >{} && exec \"$@\"", limit.processes().display());
    let mut command = Command::new("sh");
    tools::with_default_signals(&mut command).args(["-c", &script, "limited"]).arg(tools::tool("vgasnetrun"));
    // tail keeps its input until a line ends.
    command.args(["-n", "2", "tail", "/dev/zero"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = finish(command.spawn().expect("a shell"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(137), "{said}");
    assert!(said.contains("(SIGKILL): the system has ended processes for want of memory meanwhile"), "{said}");
    assert!(said.contains("lower VGASNET_POOL_SIZE") && said.lines().count() == 1, "{said}");
}
