//! The processes at the other ends of local sockets: which of them may take part in a job.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::geteuid;

/// A process as it was when it connected.
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

    /// Whether it may be a process of a job that this process starts: one of the same user, or of root. Jobs of root also take
    /// processes of other users that this process, or one that it has started, has started.
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

/// Longer chains of parents do not occur.
const ANCESTORS_MAX: usize = 64;

/// Whether `pid` is a descendant of `ancestor`.
fn descends_from(ancestor: u32, pid: u32) -> bool {
    let mut chain = std::iter::successors(Some(pid), |pid| parent(*pid)).take(ANCESTORS_MAX);
    chain.any(|pid| pid == ancestor)
}

/// The parent of a process; none where that is not known.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // A name may hold anything, also brackets. Numbers follow the last one.
    let behind = stat.rsplit(|byte| *byte == b')').next()?;
    std::str::from_utf8(behind).ok()?.split_whitespace().nth(1)?.parse().ok().filter(|parent| *parent > 0)
}

/// Processes that have connected and may not take part.
#[derive(Clone, Debug, Default)]
pub struct Strangers {
    count: u64,
    first: Option<Peer>,
}

impl Strangers {
    /// Notes one.
    pub fn add(&mut self, stranger: Peer) {
        self.count += 1;
        self.first.get_or_insert(stranger);
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
    fn strangers_end_a_line() {
        let mut strangers = Strangers::default();
        assert_eq!(strangers.to_string(), "");
        strangers.add(Peer { pid: 7, uid: 1000 });
        assert_eq!(strangers.to_string(), "; a connection of another user was refused: pid 7 of uid 1000");
        strangers.add(Peer { pid: 0, uid: 1 });
        let line = "; 2 connections of other users were refused, the first of pid 7 of uid 1000";
        assert_eq!(strangers.to_string(), line);
    }
}
