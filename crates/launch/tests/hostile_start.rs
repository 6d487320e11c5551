//! Starts disturbed by processes of another user: silent, flooding, with garbage, with half a handshake.
//! `examples/hostile_start.rs` provides the processes. Only root can start processes of another user.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use vgasnet_conduit::conformance::example;

/// The users of the job and of its attackers. Neither needs a name.
const OWNER: u32 = 64_200;
const ENEMY: u32 = 64_201;

/// Maximum extra time of a start with attackers.
const DELAY_MAX: Duration = Duration::from_secs(1);

/// The part with agents connecting by TCP, where the users of peers are unknown.
const BY_TCP: &str = "supervise-hosts";

const RANKS: u32 = 4;
const ENEMIES: usize = 6;

/// A copy of the example and a FIFO, in a directory accessible to all users.
struct Stage {
    dir: PathBuf,
    program: PathBuf,
    gate: PathBuf,
}

impl Stage {
    /// `None` if this process is not root.
    fn set(name: &str) -> Option<Stage> {
        if !geteuid().is_root() {
            println!("NOT RUN: {name}: only root can start processes of another user");
            return None;
        }
        let dir = std::env::temp_dir().join(format!("vgasnet-hostile-{}-{name}", std::process::id()));
        std::fs::create_dir(&dir).expect("a directory");
        let (program, gate) = (dir.join("program"), dir.join("gate"));
        // Not by this process: no file can be run while a child that another thread has just forked has it open for writing.
        let copied = Command::new("cp").args([&example("hostile_start"), &program]).status().expect("coreutils");
        assert!(copied.success(), "{copied}");
        nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("a FIFO");
        for path in [&dir, &gate] {
            nix::unistd::chown(path, Some(OWNER.into()), Some(OWNER.into())).expect("root may");
        }
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).expect("root may");
        Some(Stage { dir, program, gate })
    }

    /// Starts a process as this user.
    fn start(&self, uid: u32, arguments: &[&str]) -> Ended {
        let mut command = Command::new(&self.program);
        command.args(arguments).uid(uid).gid(uid).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        Ended(command.spawn().expect("the program is there"))
    }

    /// Starts a job of the user, with `part` as the launcher. Returns the launcher and the name of its socket.
    fn launch(&self, part: &str, uid: u32) -> (Ended, String) {
        let launcher = self.start(uid, &[part, &RANKS.to_string(), self.gate.to_str().expect("text")]);
        let late = Instant::now() + Duration::from_secs(20);
        loop {
            let pid = launcher.0.id();
            if let Some(name) = if part == BY_TCP { port_of(pid) } else { socket_of(pid) } {
                return (launcher, name);
            }
            assert!(Instant::now() < late, "the launcher opens no socket");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn attack(&self, kind: &str, socket: &str) -> Ended {
        self.start(ENEMY, &["attack", kind, socket])
    }

    /// Opens the gate all ranks wait for. Returns the job's remaining time.
    fn open_gate(&self, mut launcher: Ended) -> Duration {
        // The ranks' opens wait for this one. A later rank finds no writer, and waits for the next.
        let begin = Instant::now();
        loop {
            let mut options = std::fs::OpenOptions::new();
            drop(options.write(true).custom_flags(libc::O_NONBLOCK).open(&self.gate));
            if let Some(status) = launcher.0.try_wait().expect("our child") {
                assert!(status.success(), "{status}");
                return begin.elapsed();
            }
            assert!(begin.elapsed() < Duration::from_secs(50), "the job does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A process, killed on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The sockets of a process, by its descriptors.
fn sockets_of(pid: u32) -> Option<Vec<PathBuf>> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    Some(descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect())
}

/// The address of a process's listener for other hosts, as reached from this one.
fn port_of(pid: u32) -> Option<String> {
    let lists = ["tcp", "tcp6"].map(|name| std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default());
    let links = sockets_of(pid)?;
    lists.iter().flat_map(|list| list.lines()).find_map(|line| {
        const LISTENS: &str = "0A";
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_its = links.iter().any(|link| link.to_str() == Some(&format!("socket:[{}]", fields[9])));
        let port = u16::from_str_radix(fields[1].split_once(':')?.1, 16).ok()?;
        (is_its && fields[3] == LISTENS).then(|| format!("tcp:127.0.0.1:{port}"))
    })
}

/// The name of the abstract socket a process listens on: the list of sockets is public.
fn socket_of(pid: u32) -> Option<String> {
    let list = std::fs::read_to_string("/proc/net/unix").expect("it exists");
    let links = sockets_of(pid)?;
    let is_its = |inode: &str| links.iter().any(|link| link.to_str() == Some(&format!("socket:[{inode}]")));
    list.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let name = fields.get(7)?.strip_prefix("@vgasnet-")?;
        is_its(fields[6]).then(|| format!("vgasnet-{name}"))
    })
}

/// Starts a job of `owner` with attackers of a kind, on its socket or on a missing one. Returns its time.
fn time(stage: &Stage, part: &str, owner: u32, kind: &str, is_in_the_way: bool) -> Duration {
    let (launcher, socket) = stage.launch(part, owner);
    let nobody =
        if part == BY_TCP { "tcp:127.0.0.1:1".to_owned() } else { format!("vgasnet-nobody-{}", std::process::id()) };
    let target = if is_in_the_way { socket } else { nobody };
    let _enemies: Vec<_> = (0..ENEMIES).map(|_| stage.attack(kind, &target)).collect();
    // Time for the attackers to start.
    std::thread::sleep(Duration::from_millis(300));
    stage.open_gate(launcher)
}

/// A loaded machine delays one start or another. An attack that works delays each.
const TRIES: usize = 3;

/// Attackers also take processor time, so the bound is relative to a job with as many attackers on a missing socket.
fn held_up(name: &str, part: &str, owner: u32) {
    let Some(stage) = Stage::set(name) else { return };
    for kind in ["silent", "garbage", "half", "flooding"] {
        let try_both = || [false, true].map(|is_in_the_way| time(&stage, part, owner, kind, is_in_the_way));
        let delay = |[beside, took]: &[Duration; 2]| took.saturating_sub(*beside);
        let mut times = try_both();
        for _ in 1..TRIES {
            if delay(&times) >= DELAY_MAX {
                times = try_both();
            }
        }
        let [beside, took] = times;
        println!("{name}: {kind}: {} ms; {} ms beside enemies of nobody", took.as_millis(), beside.as_millis());
        assert!(took < beside + DELAY_MAX, "{kind}: {took:?}; {beside:?} beside enemies of nobody");
    }
}

#[test]
fn another_user_delays_no_start() {
    held_up("a user's job", "launch", OWNER);
}

#[test]
fn another_user_delays_no_start_of_root() {
    held_up("root's job", "launch", 0);
}

#[test]
fn another_user_delays_no_agent() {
    held_up("a user's agents", "supervise", OWNER);
}

#[test]
fn strangers_of_the_network_delay_no_agent() {
    held_up("agents of other hosts", BY_TCP, OWNER);
}

/// Ends the launcher of a part by a signal while strangers flood its socket.
fn flooded(part: &str) {
    let Some(stage) = Stage::set(&format!("a signal to {part}")) else { return };
    let (mut launcher, socket) = stage.launch(part, OWNER);
    let enemies: Vec<_> = (0..ENEMIES).map(|_| stage.attack("flooding", &socket)).collect();
    std::thread::sleep(Duration::from_millis(300));
    let begin = Instant::now();
    kill(Pid::from_raw(launcher.0.id() as i32), Signal::SIGTERM).expect("our child");
    launcher.0.wait().expect("our child");
    println!("a signal to {part}: {} ms with {} enemies", begin.elapsed().as_millis(), enemies.len());
    assert!(begin.elapsed() < DELAY_MAX, "{:?}", begin.elapsed());
}

#[test]
fn a_flood_delays_no_signal() {
    flooded("launch");
}

/// A stranger sending nothing, or half of a message, is soon disconnected, and only a bounded number is held.
#[test]
fn strangers_of_the_network_are_dropped() {
    // A loaded machine adds to the second that each gets.
    const PATIENCE: Duration = Duration::from_secs(10);
    const HELD_MAX: usize = 256;
    let Some(stage) = Stage::set("strangers of the network") else { return };
    let (launcher, place) = stage.launch(BY_TCP, OWNER);
    let connect = || TcpStream::connect(place.trim_start_matches("tcp:")).expect("somebody listens");
    for said in [&b""[..], b"v", &[0x5a; 4096], &[0; 20]] {
        let mut stream = connect();
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let _ = stream.write_all(said);
        let heard = stream.read(&mut [0; 64]);
        let is_over = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
        assert!(heard.as_ref().map_or_else(is_over, |len| *len == 0), "{} bytes: {heard:?}", said.len());
    }
    let begin = Instant::now();
    let mut held: Vec<_> = (0..2 * HELD_MAX).map(|_| connect()).collect();
    let mut left = held.len();
    while left > HELD_MAX {
        assert!(begin.elapsed() < PATIENCE, "{left} are held");
        held.iter().for_each(|stream| stream.set_nonblocking(true).expect("a socket"));
        left = held
            .iter_mut()
            .filter_map(|stream| stream.read(&mut [0; 1]).err())
            .filter(|error| error.kind() == std::io::ErrorKind::WouldBlock)
            .count();
        std::thread::sleep(Duration::from_millis(5));
    }
    stage.open_gate(launcher);
}
