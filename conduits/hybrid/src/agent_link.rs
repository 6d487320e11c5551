//! The link of a rank to its agent, if it has one.
//!
//! Under vgasnet's launcher, each rank has an agent (`crates/launch/`). The rank reports its progress to the agent. On a
//! failure it just ends, and the launcher tells the other ranks. Without an agent, the network ends the job as it can.
#![allow(unsafe_code)]

use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{ControlMessage, MsgFlags, getsockopt, sendmsg};
use vgasnet_conduit::{Rank, blocking_signals, end_with_launcher, environment, say};
use vgasnet_protocol::wire::encode;
use vgasnet_protocol::{RankState, messages};

use crate::network::Network;

/// The environment variable with the way to the agent: `DESCRIPTOR:INODE` of an inherited socket.
pub const AGENT_VARIABLE: &str = "VGASNET_AGENT";

/// Maximum bytes of the text after a report.
pub const REASON_BYTES_MAX: usize = 512;

/// Time a rank with a failed network waits to be ended: longer than the launcher takes to notice a lost agent.
const JUDGEMENT_PATIENCE: Duration = Duration::from_secs(3);

messages! {
    /// The meaning of the descriptor sent with a report.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Passed {
        /// No descriptor.
        0 => Nothing,
        /// A connection or a listener, kept open by the agent until it ends.
        1 => Connection,
        /// A file, truncated by the agent after the rank's end. Others may have it open by then.
        2 => File,
    }
}

messages! {
    /// A rank's report to its agent. A text with a reason may follow.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Report {
        /// The rank's progress.
        pub state: RankState,
        /// Its number, once known.
        pub rank: Option<u32>,
        /// The descriptor's meaning. With a descriptor, the report has no other meaning.
        pub passed: Passed,
    }
}

/// The socket of the agent, if this rank has one. It keeps messages apart like datagrams, and hangs up with the agent.
static LINK: OnceLock<Option<UnixDatagram>> = OnceLock::new();

/// Opens the link, and reports that this process becomes a rank. Called before the start of the network, which waits
/// for the other ranks.
pub fn open_agent_link() {
    LINK.get_or_init(|| {
        let socket = environment::var(AGENT_VARIABLE).and_then(|value| adopt(&value))?;
        end_with_agent(&socket);
        Some(socket)
    });
    report(RankState::Initialised, None);
}

/// Ends this rank with its agent. Without a free descriptor, only a rank that is the agent's child ends with it.
fn end_with_agent(socket: &UnixDatagram) {
    let agent = getsockopt(socket, PeerCredentials).map_or(0, |agent| agent.pid());
    if let Ok(connection) = socket.try_clone() {
        end_with_launcher(connection.into(), agent as u32);
    }
}

fn agent() -> Option<&'static UnixDatagram> {
    LINK.get()?.as_ref()
}

/// Reports this rank's progress.
pub(crate) fn report(state: RankState, rank: Option<u32>) {
    if let Some(agent) = agent() {
        // Fails if the agent is gone, which ends this process too.
        let _ = agent.send(&encode(&Report { state, rank, passed: Passed::Nothing }));
    }
}

/// Passes a connection or a file to the agent, if there is one.
pub fn pass_descriptor(descriptor: BorrowedFd<'_>, passed: Passed) {
    let Some(agent) = agent() else { return };
    let report = encode(&Report { state: RankState::Initialised, rank: None, passed });
    let descriptors = [descriptor.as_raw_fd()];
    let parts = [ControlMessage::ScmRights(&descriptors)];
    // Fails if the agent is gone, which ends this process too.
    let _ = sendmsg::<()>(agent.as_raw_fd(), &[IoSlice::new(&report)], &parts, MsgFlags::empty(), None);
}

/// Maximum numbers of descriptors examined, and passed. MPI opens its connections early.
const LOOKED_AT_MAX: RawFd = 4096;
const KEPT_MAX: usize = 512;

/// Before the end of a failing rank, once: passes the rank's TCP connections to the agent. Peers then do not notice the
/// end before the launcher tells them, and the network does not complain of it: Open MPI does in a dozen lines.
pub(crate) fn keep_connections() {
    static ARE_KEPT: AtomicBool = AtomicBool::new(false);
    if !has_agent() || ARE_KEPT.swap(true, Ordering::Relaxed) {
        return;
    }
    // Listing /proc would use the client's malloc, possibly interrupted by a signal. SAFETY: open descriptors are
    // borrowed for a system call each. If another thread closes one first, the call fails, or passes a file reusing its
    // number; the agent keeps it unused.
    let all = (3..LOOKED_AT_MAX).map(|number| unsafe { BorrowedFd::borrow_raw(number) });
    for connection in all.filter(is_over_tcp).take(KEPT_MAX) {
        pass_descriptor(connection, Passed::Connection);
    }
}

fn is_over_tcp(descriptor: &BorrowedFd<'_>) -> bool {
    let option = |name| {
        let mut value: libc::c_int = -1;
        let mut bytes = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the call writes at most the given number of bytes to `value`; it fails for a descriptor that is no
        // socket, or not open.
        unsafe {
            libc::getsockopt(descriptor.as_raw_fd(), libc::SOL_SOCKET, name, (&raw mut value).cast(), &mut bytes)
        };
        value
    };
    matches!(option(libc::SO_DOMAIN), libc::AF_INET | libc::AF_INET6) && option(libc::SO_TYPE) == libc::SOCK_STREAM
}

/// Whether this process has an agent. Known once the link is open.
pub fn has_agent() -> bool {
    agent().is_some()
}

/// Ends the job with `status`.
pub(crate) fn exit(network: &dyn Network, status: i32) -> ! {
    if note_exit(network, status) {
        end_process(status);
    }
    network.exit(status)
}

/// Reports that this rank is about to end the job with `status`. Returns whether the end of the process suffices.
pub(crate) fn note_exit(network: &dyn Network, status: i32) -> bool {
    if has_agent() {
        report(RankState::Exiting(status), Some(network.rank().0));
    }
    if status != 0 {
        keep_connections();
    }
    has_agent() && !network.ends_jobs(status)
}

/// Ends the job because of a network error, which loses the transfers in flight. With an agent, the launcher reports
/// it.
pub fn break_down(network: &dyn Network, why: &str) -> ! {
    let why = format!("{}: {why}", network.name());
    if !await_judgement(network.rank(), &why) {
        say(&format!("vgasnet: rank {}: {why}; the job ends", network.rank()));
    }
    exit(network, 1)
}

/// Reports to the agent why this rank fails, and lets others fail first: a network breaks when a peer ends, and the
/// launcher learns of the peer shortly afterwards, then ends this rank. Returns whether the agent knows.
fn await_judgement(rank: Rank, why: &str) -> bool {
    static IS_BREAKING: AtomicBool = AtomicBool::new(false);
    let Some(agent) = agent() else { return false };
    if IS_BREAKING.swap(true, Ordering::Relaxed) {
        // Another thread ends the process.
        loop {
            std::thread::park();
        }
    }
    let mut report = encode(&Report { state: RankState::Broken, rank: Some(rank.0), passed: Passed::Nothing }).to_vec();
    report.extend(why.bytes().take(REASON_BYTES_MAX));
    let is_said = agent.send(&report).is_ok();
    if is_said {
        std::thread::sleep(JUDGEMENT_PATIENCE);
    }
    is_said
}

/// Runs `last`, the end of the network. Networks have been seen to wait for each other there for ever, so a process
/// with an agent ends successfully after `patience` at the latest, unless the system has no thread left.
pub fn finish(patience: Duration, last: impl FnOnce()) {
    let is_done = Arc::new(AtomicBool::new(false));
    if has_agent() {
        let is_done = Arc::clone(&is_done);
        let watch = move || {
            std::thread::sleep(patience);
            if !is_done.load(Ordering::Acquire) {
                // SAFETY: a null pointer selects all of the client's output streams; the call has no other
                // precondition.
                unsafe { libc::fflush(std::ptr::null_mut()) };
                report(RankState::Exiting(0), None);
                end_process(0);
            }
        };
        // The program's signals are for its own threads.
        let _watcher = blocking_signals(|| std::thread::Builder::new().name("vgasnet-end".into()).spawn(watch));
    }
    last();
    is_done.store(true, Ordering::Release);
}

fn end_process(status: i32) -> ! {
    // SAFETY: ends the process at once; no destructor or exit handler runs.
    unsafe { libc::_exit(status) }
}

/// Takes over the inherited socket after checking its identity, and sets it close-on-exec.
fn adopt(value: &str) -> Option<UnixDatagram> {
    let (number, inode) = value.split_once(':')?;
    let number: RawFd = number.parse().ok().filter(|number| *number > 2)?;
    // In a program started by a rank, the number is free or refers to another file.
    let found = std::fs::metadata(format!("/proc/self/fd/{number}")).ok()?;
    if found.ino().to_string() != inode {
        return None;
    }
    // SAFETY: the agent opened this descriptor for us and nothing else in this process uses its number;
    // `open_agent_link` comes here once a process.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    Some(UnixDatagram::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use vgasnet_protocol::wire::{Malformed, decode};

    #[test]
    fn reports_survive_the_way() {
        for rank in [None, Some(0), Some(4095)] {
            use RankState::{Attached, Exiting, Initialised};
            for state in [Initialised, Attached, Exiting(-1), Exiting(7)] {
                for passed in [Passed::Nothing, Passed::Connection, Passed::File] {
                    let report = Report { state, rank, passed };
                    assert_eq!(decode(&encode(&report)), Ok(report));
                }
            }
        }
        for other in [&[0, 0][..], &[0, 0, 0, 0], &[0, 0, 3], &[5, 0, 0], &[]] {
            assert_eq!(decode::<Report>(other), Err(Malformed));
        }
    }

    #[test]
    fn a_descriptor_that_is_not_the_agents_is_left_alone() {
        assert!(adopt("0:1").is_none());
        assert!(adopt("5").is_none());
        assert!(adopt("999:12").is_none());
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert!(adopt(&format!("{number}:1")).is_none());
    }

    #[test]
    fn connections_and_listeners_over_tcp_are_told_from_other_descriptors() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = std::net::TcpStream::connect(listener.local_addr().expect("its address")).expect("it listens");
        assert!(is_over_tcp(&listener.as_fd()) && is_over_tcp(&stream.as_fd()));
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let (local, _) = UnixDatagram::pair().expect("sockets");
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        for other in [datagrams.as_fd(), local.as_fd(), file.as_fd()] {
            assert!(!is_over_tcp(&other));
        }
    }

    #[test]
    fn reports_may_be_anything() {
        vgasnet_fuzzing::run("-p vgasnet-hybrid --lib reports_may_be", 200_000, |random| {
            let number = vgasnet_fuzzing::odd_number(random);
            let state = RankState::decode(number);
            let mut bytes = encode(&Report {
                state,
                rank: random.bool().then_some(number as u32),
                passed: if random.bool() { Passed::Nothing } else { Passed::File },
            })
            .to_vec();
            vgasnet_fuzzing::mutate(random, &mut bytes);
            if let Ok(report) = decode::<Report>(&bytes) {
                assert_eq!(&encode(&report)[..], &bytes[..]);
            }
            assert!(adopt(&vgasnet_fuzzing::text(random, &["0", ":", "2"])).is_none());
            1
        });
    }
}
