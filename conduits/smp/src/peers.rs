//! Processes at the other ends of local sockets, and their right to take part in a job.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::sockopt::{PeerCredentials, SendTimeout};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, connect, getsockopt, listen, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::geteuid;

/// Length of the queue of a local socket. A connecting process waits for a place, and a constantly connecting stranger
/// gets only a small number of places ahead of it.
const QUEUE_MAX: i32 = 64;

/// Listens at an address visible to everybody on this host. Non-blocking.
///
/// # Errors
/// The system refuses the socket.
pub fn listen_locally(address: &SocketAddr) -> io::Result<UnixListener> {
    let listener = UnixListener::bind_addr(address)?;
    listener.set_nonblocking(true)?;
    listen(&listener, Backlog::new(QUEUE_MAX)?)?;
    Ok(listener)
}

/// Connects to an address of [`listen_locally`], waiting at most `patience` for a place in its queue.
///
/// # Errors
/// Nobody listens, or the queue stays full ([`std::io::ErrorKind::WouldBlock`]).
pub fn connect_locally(address: &SocketAddr, patience: Duration) -> io::Result<UnixStream> {
    let name = address.as_abstract_name().ok_or(Errno::EINVAL)?;
    let stream = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&stream, SendTimeout, &TimeVal::microseconds(i64::try_from(patience.as_micros()).unwrap_or(i64::MAX)))?;
    let late = Instant::now() + patience;
    loop {
        match connect(stream.as_raw_fd(), &UnixAddr::new_abstract(name)?) {
            Err(Errno::EINTR) if Instant::now() < late => {}
            connected => break connected?,
        }
    }
    setsockopt(&stream, SendTimeout, &TimeVal::microseconds(0))?;
    Ok(stream.into())
}

/// A process, as of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number; 0 in another PID namespace.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
}

impl Peer {
    /// The process at the other end of a local stream.
    ///
    /// # Errors
    /// It is no local stream.
    pub fn of(stream: &impl AsFd) -> io::Result<Peer> {
        let found = getsockopt(stream, PeerCredentials)?;
        Ok(Peer { pid: u32::try_from(found.pid()).unwrap_or(0), uid: found.uid() })
    }

    /// Whether it may be the first party of this process's job: of the same user, or of root. Names of sockets are free for
    /// anybody once their owner has ended.
    pub fn may_lead(self) -> bool {
        self.uid == geteuid().as_raw() || self.uid == 0 || is_unmapped(self.uid)
    }

    /// Whether it may be a process of a job started by this process: of the same user, or of root. Jobs of root also
    /// accept other users' processes started by this process or its descendants.
    pub fn may_take_part(self) -> bool {
        let own = geteuid();
        self.uid == own.as_raw() || self.uid == 0 || (own.is_root() && descends_from(std::process::id(), self.pid))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => write!(f, "a process of uid {}", self.uid),
            pid => write!(f, "pid {pid} of uid {}", self.uid),
        }
    }
}

/// Whether this is the number of all users without one in this process's user namespace, such as a container's.
fn is_unmapped(uid: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let is_everybody = |map: &str| map.split_whitespace().eq(["0", "0", "4294967295"]);
    read("/proc/sys/kernel/overflowuid").trim().parse() == Ok(uid) && !is_everybody(&read("/proc/self/uid_map"))
}

/// Longer chains of parents do not occur.
const ANCESTORS_MAX: usize = 64;

/// Whether `pid` is a descendant of `ancestor`.
fn descends_from(ancestor: u32, pid: u32) -> bool {
    let mut chain = std::iter::successors(Some(pid), |pid| parent(*pid)).take(ANCESTORS_MAX);
    chain.any(|pid| pid == ancestor)
}

/// The parent of a process, if known.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // A name may contain anything, also brackets. Numbers follow the last one.
    let behind = stat.rsplit(|byte| *byte == b')').next()?;
    std::str::from_utf8(behind).ok()?.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 0)
}

/// A stranger is remembered for this time: its number may be reused later.
const KNOWN_FOR: Duration = Duration::from_secs(1);

/// Maximum number of remembered strangers.
const KNOWN_MAX: usize = 32;

/// Processes that connected without the right to take part.
#[derive(Clone, Debug, Default)]
pub struct Strangers {
    count: u64,
    first: Option<Peer>,
    /// Recent strangers, and when to forget them.
    known: VecDeque<(Peer, Instant)>,
}

impl Strangers {
    /// Whether this process may not take part; if so, it is recorded.
    pub fn include(&mut self, peer: Peer) -> bool {
        let now = Instant::now();
        let is_known = self.known.iter().any(|(stranger, until)| *stranger == peer && now < *until);
        let is_stranger = is_known || !peer.may_take_part();
        if is_stranger {
            self.count += 1;
            self.first.get_or_insert(peer);
        }
        if is_stranger && !is_known {
            self.known.truncate(KNOWN_MAX - 1);
            self.known.push_front((peer, now + KNOWN_FOR));
        }
        is_stranger
    }
}

impl fmt::Display for Strangers {
    /// Nothing, or the end of a line about something else.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            None => Ok(()),
            Some(first) if self.count == 1 => write!(f, "; a connection of another user was refused: {first}"),
            Some(first) => {
                write!(f, "; {} connections of other users were refused, the first of {first}", self.count)
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_known() {
        let own = std::process::id();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "sleep 20 & echo $!; wait"]).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let mut line = String::new();
        let pipe = child.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(pipe), &mut line).expect("a number");
        let grandchild: u32 = line.trim().parse().expect("a number");
        assert!(descends_from(own, child.id()) && descends_from(own, grandchild));
        assert!(!descends_from(child.id(), own) && !descends_from(own, 1) && !descends_from(own, 0));
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(grandchild as i32), nix::sys::signal::SIGKILL)
            .expect("it sleeps");
        child.wait().expect("our child");
        assert!(!descends_from(own, u32::MAX));
    }

    #[test]
    fn who_took_the_name_of_an_ended_job_leads_nobody() {
        let own = Peer { pid: 1, uid: geteuid().as_raw() };
        assert!(own.may_lead() && Peer { uid: 0, ..own }.may_lead());
        assert!(!Peer { uid: own.uid + 1000, ..own }.may_lead());
    }

    #[test]
    fn a_full_queue_delays_nobody_for_long() {
        let name = format!("vgasnet-full-{}", crate::handshake::random().expect("a number"));
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        let _listener = listen_locally(&address).expect("a socket");
        let begin = Instant::now();
        let patience = Duration::from_millis(100);
        let attempts = (0..=2 * QUEUE_MAX).map(|_| connect_locally(&address, patience));
        let attempts: Vec<_> = attempts.take_while(Result::is_ok).collect();
        assert!(attempts.len() <= 2 * QUEUE_MAX as usize, "the queue has no end");
        let refused = connect_locally(&address, patience).expect_err("it is full");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= 2 * patience);
    }

    #[test]
    fn strangers_end_a_line() {
        let mut strangers = Strangers::default();
        let own = Peer { pid: std::process::id(), uid: geteuid().as_raw() };
        assert!(!strangers.include(own) && strangers.to_string().is_empty());
        let uid = own.uid + 1000;
        let stranger = |pid| Peer { pid, uid };
        assert!(strangers.include(stranger(1)));
        assert_eq!(strangers.to_string(), format!("; a connection of another user was refused: pid 1 of uid {uid}"));
        assert!((0..100).all(|_| strangers.include(stranger(1))) && strangers.known.len() == 1);
        assert!((0..2 * KNOWN_MAX).all(|_| strangers.include(stranger(0))) && strangers.known.len() == 2);
        strangers.known = (0..KNOWN_MAX as u32).map(|pid| (stranger(pid + 2), Instant::now())).collect();
        assert!(strangers.include(stranger(1)) && strangers.known.len() == KNOWN_MAX);
        let line = format!(
            "; {} connections of other users were refused, the first of pid 1 of uid {uid}",
            102 + 2 * KNOWN_MAX
        );
        assert_eq!(strangers.to_string(), line);
    }
}
