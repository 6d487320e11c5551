//! Disks that fill up and get space again, offers of segments, and reported waits.

use crate::support::compile::{self, Language, Linking};
use crate::support::mounts::{ext, free_bytes, on_own_disk, on_own_disk_over_any, tmpfs};
use crate::support::run::{Ended, IN_CONTAINERS, Setup, conduit, fresh_dir, run_with, say_not_run};
use crate::support::tools::tool;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Far longer than any line takes to come.
const PATIENCE: Duration = Duration::from_secs(120);

fn setup(ranks: u32) -> Setup {
    Setup { ranks, page_bytes: 64 << 10, pool_pages: 16, peer_memory: true, cooperative: true }
}

fn program() -> PathBuf {
    compile::program("disk", Language::C99, Linking::Shared)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

fn run_on(dir: &Path, program: &Path, args: &[&str], ranks: u32) -> Ended {
    run_with(program, args, setup(ranks), &[("VGASNET_STORAGE_DIR", text(dir))])
}

#[test]
fn the_space_is_back_when_the_launcher_ends() {
    on_own_disk("the_space_is_back_when_the_launcher_ends", tmpfs("size=128m"), |dir| {
        let traffic = compile::program("traffic", Language::C99, Linking::Shared);
        let before = free_bytes(dir);
        for _ in 0..5 {
            run_on(dir, &traffic, &["16", "1"], 4).expect(0);
            assert_eq!(free_bytes(dir), before);
        }
        run_on(dir, &traffic, &["16", "1000", "die"], 4).expect(128 + 9);
        // Writes in flight when the rank was killed still reach the disk.
        assert!(free_bytes(dir) >= before - (1 << 20), "{} of {before}", free_bytes(dir));
    });
}

#[test]
fn the_space_is_back_though_a_child_of_a_rank_stays() {
    on_own_disk_over_any("the_space_is_back_though_a_child_of_a_rank_stays", tmpfs("size=128m"), |dir| {
        let stays = dir.with_extension("stays");
        File::create(&stays).expect("room for a name");
        let before = free_bytes(dir);
        let (args, conduit) = (["child", text(&stays)], conduit());
        let job = Waiting::start_with(&program(), &args, 2, dir, &[("VGASNET_CONDUIT", &*conduit)]);
        let status = job.status();
        let after = free_bytes(dir);
        fs::remove_file(&stays).expect("a file of ours");
        assert_eq!((status, after), (Some(0), before));
    });
}

#[test]
fn space_is_reserved_although_a_timer_rings() {
    run_with(&program(), &["ticks"], setup(1), &[]).expect(0);
}

#[test]
fn an_offer_holds_as_long_as_there_is_space() {
    on_own_disk("an_offer_holds_as_long_as_there_is_space", tmpfs("size=64m"), |dir| {
        run_on(dir, &program(), &["offer", text(dir), "30"], 1).expect(0);
        let refused = run_on(dir, &program(), &["offer", text(dir), "10"], 1);
        let lines: Vec<_> = refused.expect(3).stderr.lines().filter(|line| line.contains("attach")).collect();
        let [line] = lines[..] else { panic!("{refused}") };
        assert!(line.starts_with("vgasnet: rank 0: vgasnet_attach: a segment of 16M does not fit into "), "{refused}");
    });
}

#[test]
fn jobs_that_take_all_they_are_offered_leave_room() {
    on_own_disk("jobs_that_take_all_they_are_offered_leave_room", tmpfs("size=64m"), |dir| {
        let free = free_bytes(dir);
        let exit = dir.join("exit");
        let jobs: Vec<Waiting> = (0..3).map(|_| Waiting::start(&["all", text(&exit)], 2, dir)).collect();
        for job in &jobs {
            job.line_with("attached");
        }
        assert!(free_bytes(dir) > free / 3, "{} of {free}", free_bytes(dir));
        File::create(&exit).expect("room for a name");
        for job in jobs {
            job.ends_well();
        }
        fs::remove_file(&exit).expect("a file of ours");
    });
}

#[test]
fn writes_wait_on_a_disk_that_is_full_for_a_while() {
    let traffic = compile::program("traffic", Language::C99, Linking::Shared);
    let ended = run_with(&traffic, &["16", "1"], setup(2), &[("VGASNET_TEST_IO_ERROR", "full:3:4")]);
    let lines: Vec<_> = ended.expect(0).stderr.lines().filter(|line| line.contains("is full")).collect();
    let [line] = lines[..] else { panic!("{ended}") };
    assert!(line.starts_with("vgasnet: rank 0: the disk of /"), "{ended}");
    assert!(line.ends_with(" is full; waiting up to 30 s for space"), "{ended}");
}

/// Runs a job whose ranks put and get a few bytes of many large pages of rank 0.
fn scattered(fault: &str) -> Ended {
    let program = compile::program("scattered", Language::C99, Linking::Shared);
    // More blocks than the home has slots.
    let setup = Setup { page_bytes: 1 << 20, pool_pages: 4, ..setup(3) };
    run_with(&program, &["one-disk"], setup, &[("VGASNET_TEST_IO_ERROR", fault)])
}

#[test]
fn a_block_that_cannot_be_moved_ends_the_job_with_a_line() {
    for (fault, parts) in [
        ("read:1", ["read", "from"]),
        ("read:40", ["read", "from"]),
        ("write:1", ["write", "to"]),
        ("write:100", ["write", "to"]),
    ] {
        let ended = scattered(fault);
        let [line, last] = ended.expect(1).stderr.lines().collect::<Vec<_>>()[..] else { panic!("{ended}") };
        let [verb, preposition] = parts;
        let rest = line.strip_prefix(&*format!("vgasnet: rank 0: engine: cannot {verb} the page at offset "));
        let (offset, rest) = rest.and_then(|rest| rest.split_once(' ')).unwrap_or_else(|| panic!("{ended}"));
        assert!(offset.parse::<u64>().is_ok_and(|offset| offset % (1 << 20) == 0 && offset < 64 << 20), "{ended}");
        let expected = format!("of this rank's segment {preposition} its backing file: Input/output error");
        assert!(rest.starts_with(&expected), "{ended}");
        assert!(last.starts_with("vgasnetrun: rank 0 ") && last.contains("exit status 1"), "{ended}");
    }
}

#[test]
fn blocks_wait_on_a_disk_that_is_full_for_a_while() {
    let ended = scattered("full:20:5");
    let [line] = ended.expect(0).stderr.lines().collect::<Vec<_>>()[..] else { panic!("{ended}") };
    assert!(line.starts_with("vgasnet: rank 0: the disk of /"), "{ended}");
    assert!(line.ends_with(" is full; waiting up to 30 s for space"), "{ended}");
}

#[test]
fn a_job_goes_on_when_a_full_disk_has_space_again() {
    on_own_disk("a_job_goes_on_when_a_full_disk_has_space_again", ext("ext2", 32 << 20), |dir| {
        let job = Waiting::start(&["full", text(dir)], 2, dir);
        job.line_with("is full; waiting up to 30 s for space");
        fs::remove_file(dir.join("filler")).expect("the job's file");
        job.ends_well();
    });
}

#[test]
fn who_is_waited_for_is_told() {
    if conduit() != "smp" {
        return say_not_run("who_is_waited_for_is_told", "others are waited for over a network");
    }
    let (dir, storage) = (fresh_dir(), fresh_dir());
    let told = [
        ("init", "vgasnet: rank 0: vgasnet_init: waits for rank 1 (since 5 s)"),
        ("attach", "vgasnet: rank 0: vgasnet_attach: waits for rank 1 (since 5 s)"),
        ("exit", "vgasnet: rank 0: exit: waits for rank 1: the program is not over there (since 5 s)"),
    ];
    let jobs = told.map(|(part, _)| Waiting::start(&[part, text(&dir.join(part))], 3, &storage));
    for (job, (part, line)) in jobs.into_iter().zip(told) {
        assert_eq!(job.line_with("waits"), line);
        File::create(dir.join(part)).expect("room for a name");
        job.ends_well();
    }
    fs::remove_dir_all(&dir).expect("a directory of ours");
    fs::remove_dir(&storage).expect("an empty directory of ours");
}

/// The ranks of a host know each other's waits. Ranks without shared memory report in rotation.
#[test]
fn who_is_waited_for_over_a_network_is_told() {
    if conduit() == "smp" {
        return say_not_run("who_is_waited_for_over_a_network_is_told", "CHECK_CONDUIT is no network");
    }
    let (dir, storage, conduit) = (fresh_dir(), fresh_dir(), conduit());
    let told = [
        ("attach", "1", "1", "vgasnet: rank 0: vgasnet_attach: waits for rank 1 (since 5 s)"),
        ("exit", "0", "1", "vgasnet: rank 1: exit: waits for rank 0: the program is not over there (since 5 s)"),
        ("attach", "1", "0", "vgasnet: rank 0: vgasnet_attach: waits for other ranks (since 5 s)"),
        ("exit", "0", "0", "vgasnet: rank 1: exit: waits for other ranks: the program is not over there (since 10 s)"),
    ];
    for (at, (part, late, peer_memory, line)) in told.into_iter().enumerate() {
        let file = dir.join(at.to_string());
        let args = [part, text(&file), late];
        let variables = [("VGASNET_CONDUIT", &*conduit), ("VGASNET_PEER_MEMORY", peer_memory)];
        let job = Waiting::start_with(&program(), &args, 3, &storage, &variables);
        assert_eq!(job.line_with("waits"), line);
        File::create(&file).expect("room for a name");
        job.ends_well();
    }
    fs::remove_dir_all(&dir).expect("a directory of ours");
    fs::remove_dir(&storage).expect("an empty directory of ours");
}

#[test]
fn a_rank_that_nobody_lets_in_says_so() {
    if conduit() != "smp" {
        return say_not_run("a_rank_that_nobody_lets_in_says_so", "over a network the network lets ranks in");
    }
    let storage = fresh_dir();
    let script = r#"kill -STOP $PPID; exec "$0" init /"#;
    let job = Waiting::start_program(Path::new("sh"), &["-c", script, text(&program())], 1, &storage);
    let launcher = job.child.id();
    assert_eq!(
        job.line_with("waits"),
        format!(
            "vgasnet: rank 0: vgasnet_init: waits for its shared memory from vgasnetrun or the first rank of this host, pid {launcher} \
             (since 5 s)"
        )
    );
    // SAFETY: the call takes numbers only, and the launcher is our child, not waited for yet.
    assert_eq!(unsafe { libc::kill(job.child.id() as i32, libc::SIGCONT) }, 0);
    job.ends_well();
    fs::remove_dir(&storage).expect("an empty directory of ours");
}

/// A job that prints a line and then waits for an action of its test.
struct Waiting {
    child: Child,
    lines: Receiver<String>,
}

impl Waiting {
    /// Starts `disk` with its files in `storage`.
    fn start(args: &[&str], ranks: u32, storage: &Path) -> Waiting {
        Waiting::start_program(&program(), args, ranks, storage)
    }

    fn start_program(program: &Path, args: &[&str], ranks: u32, storage: &Path) -> Waiting {
        Waiting::start_with(program, args, ranks, storage, &[])
    }

    /// With more variables in the environment.
    fn start_with(program: &Path, args: &[&str], ranks: u32, storage: &Path, variables: &[(&str, &str)]) -> Waiting {
        let setup = setup(ranks);
        let mut command = Command::new(tool("vgasnetrun"));
        command.envs(IN_CONTAINERS).envs(variables.iter().copied());
        command.env("VGASNET_STORAGE_DIR", storage).env("CHECK_SEED", "1").env("CHECK_RANKS", ranks.to_string());
        for (name, bytes) in [("PAGE", setup.page_bytes), ("POOL", setup.page_bytes * setup.pool_pages)] {
            command.env(format!("VGASNET_{name}_SIZE"), bytes.to_string());
            command.env(format!("CHECK_{name}_BYTES"), bytes.to_string());
        }
        command.args(["-n", &ranks.to_string()]).arg(program).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("vgasnetrun starts");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // The test may have dropped the receiver.
            stderr.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        Waiting { child, lines }
    }

    /// The first line that contains these words.
    fn line_with(&self, words: &str) -> String {
        let mut others = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(words) => return line,
                Ok(line) => others.push(line),
                Err(error) => panic!("no line with {words:?}: {error}; {others:?}"),
            }
        }
    }

    /// Waits for the end.
    fn status(mut self) -> Option<i32> {
        self.child.wait().expect("our child").code()
    }

    /// Waits for the end, with status 0.
    fn ends_well(mut self) {
        let status = self.child.wait().expect("our child").code();
        let lines: Vec<_> = self.lines.iter().collect();
        assert!(status == Some(0), "{status:?}: {lines:?}");
    }
}

impl Drop for Waiting {
    /// Kills the job of a failed test.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
