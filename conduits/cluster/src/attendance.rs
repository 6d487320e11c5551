//! What a rank tells the launcher's agent beside it, where there is one.
//!
//! Whoever launched this process with an agent (`conduits/launch`) looks after all ranks' ends: then a rank that fails just
//! ends, and the launcher tells the others. Over gasnet-smp the launcher itself is the agent of all. Without one, the network ends the
//! job as it can.
#![allow(unsafe_code)]

use std::io::{IoSlice, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{ControlMessage, MsgFlags, getsockopt, sendmsg, sockopt};
use vgasnet_conduit::Rank;
use vgasnet_smp::launch::Life;

use crate::network::Network;

/// The environment variable that says how to reach the agent: `DESCRIPTOR:INODE` of an inherited socket.
pub const AGENT_VARIABLE: &str = "VGASNET_AGENT";

/// How far a rank has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// How far.
    pub life: Life,
    /// Its number, as soon as it knows.
    pub rank: Option<u32>,
}

impl Report {
    /// The length of a report, in bytes.
    pub const BYTES: usize = 12;

    /// As an agent gets it.
    pub fn to_bytes(self) -> [u8; Report::BYTES] {
        let mut bytes = [0; Report::BYTES];
        bytes[..8].copy_from_slice(&self.life.encode().to_le_bytes());
        bytes[8..].copy_from_slice(&self.rank.unwrap_or(u32::MAX).to_le_bytes());
        bytes
    }

    /// What a rank has sent, unless it is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Report> {
        let (life, rank) = bytes.split_at_checked(8)?;
        let rank = u32::from_le_bytes(rank.try_into().ok()?);
        let life = Life::decode(u64::from_le_bytes(life.try_into().ok()?));
        Some(Report { life, rank: (rank != u32::MAX).then_some(rank) })
    }
}

/// This process as a rank of a job.
struct Attendance {
    pid: u32,
    agent: Option<UnixDatagram>,
}

static ATTENDANCE: OnceLock<Attendance> = OnceLock::new();

/// Says that this process becomes a rank: before the network starts, since that waits for the other ranks.
pub fn announce() {
    ATTENDANCE.get_or_init(|| {
        let agent = std::env::var(AGENT_VARIABLE).ok().and_then(|value| adopt(&value));
        Attendance { pid: std::process::id(), agent }
    });
    report(Life::Initialised, None);
}

/// Says which rank this process is, which has been announced.
pub fn introduce(rank: Rank) {
    report(Life::Initialised, Some(rank.0));
}

/// Says how far this rank has come.
pub(crate) fn report(life: Life, rank: Option<u32>) {
    if let Some(agent) = ATTENDANCE.get().and_then(|attendance| attendance.agent.as_ref()) {
        // It fails when the agent is gone, which ends this process too.
        let _ = agent.send(&Report { life, rank }.to_bytes());
    }
}

/// Has the agent, if there is one, keep this open as long as it lives.
pub fn entrust(descriptor: BorrowedFd<'_>) {
    let Some(agent) = ATTENDANCE.get().and_then(|attendance| attendance.agent.as_ref()) else { return };
    let report = Report { life: Life::Initialised, rank: None }.to_bytes();
    let descriptors = [descriptor.as_raw_fd()];
    let parts = [ControlMessage::ScmRights(&descriptors)];
    // It fails when the agent is gone, which ends this process too.
    let _ = sendmsg::<()>(agent.as_raw_fd(), &[IoSlice::new(&report)], &parts, MsgFlags::empty(), None);
}

/// Whether an agent of `vgasnetrun` looks after this process, which has been announced.
pub fn is_attended() -> bool {
    ATTENDANCE.get().is_some_and(|attendance| attendance.agent.is_some())
}

/// The process that looks after this one, which has been announced.
pub fn attendant() -> Option<i32> {
    let agent = ATTENDANCE.get()?.agent.as_ref()?;
    Some(getsockopt(agent, sockopt::PeerCredentials).ok()?.pid())
}

/// Whether this process is a copy that a rank has made of itself: it may not touch the network.
pub(crate) fn is_copy() -> bool {
    ATTENDANCE.get().is_some_and(|attendance| attendance.pid != std::process::id())
}

/// Ends the job with `status`.
pub(crate) fn exit(network: &dyn Network, status: i32) -> ! {
    if is_copy() {
        end_process(status);
    }
    if is_attended() {
        report(Life::Exiting(status), Some(network.rank().0));
        if !network.ends_jobs(status) {
            end_process(status);
        }
    }
    network.exit(status)
}

/// Ends the job because of an error of the network: what was under way is lost.
pub fn break_down(network: &dyn Network, why: &str) -> ! {
    let line = format!("vgasnet: rank {}: {}: {why}; the job ends\n", network.rank(), network.name());
    // Where stderr is closed there is nobody to tell.
    let _ = std::io::stderr().write_all(line.as_bytes());
    exit(network, 1)
}

/// Runs `last`, the end of the network, after which this process ends well in any case. Where an agent looks after it, it does
/// so even if that takes longer than `patience`: networks have been seen to wait for each other then, for ever.
pub fn finish(patience: Duration, last: impl FnOnce()) {
    let is_done = Arc::new(AtomicBool::new(false));
    if is_attended() {
        let is_done = Arc::clone(&is_done);
        std::thread::spawn(move || {
            std::thread::sleep(patience);
            if !is_done.load(Ordering::Acquire) {
                // SAFETY: a null pointer asks for all of the client's output streams; the call has no other condition.
                unsafe { libc::fflush(std::ptr::null_mut()) };
                report(Life::Exiting(0), None);
                end_process(0);
            }
        });
    }
    last();
    is_done.store(true, Ordering::Release);
}

fn end_process(status: i32) -> ! {
    // SAFETY: ends the process at once; no destructor or exit handler runs.
    unsafe { libc::_exit(status) }
}

/// Takes over the inherited socket, after making sure that it is the agent's, and closes it on exec.
fn adopt(value: &str) -> Option<UnixDatagram> {
    let (number, inode) = value.split_once(':')?;
    let number: RawFd = number.parse().ok().filter(|number| *number > 2)?;
    // Whatever else has this number now, if a rank has started this program, is another file.
    let found = std::fs::metadata(format!("/proc/self/fd/{number}")).ok()?;
    if found.ino().to_string() != inode {
        return None;
    }
    // SAFETY: the agent opened this descriptor for us and nothing else in this process knows its number; `announce` comes
    // here once a process.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).ok()?;
    Some(UnixDatagram::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_the_way() {
        for rank in [None, Some(0), Some(4095)] {
            for life in [Life::Initialised, Life::Attached, Life::Exiting(-1), Life::Exiting(7)] {
                let report = Report { life, rank };
                assert_eq!(Report::from_bytes(&report.to_bytes()), Some(report));
            }
        }
        assert_eq!(Report::from_bytes(&[0; 11]), None);
        assert_eq!(Report::from_bytes(&[0; 13]), None);
        assert_eq!(Report::from_bytes(&[]), None);
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
}
