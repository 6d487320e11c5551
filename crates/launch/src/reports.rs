//! Reports of ranks to their agent.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use nix::cmsg_space;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixCredentials, recvmsg, setsockopt, socketpair,
    sockopt,
};
use nix::unistd::ftruncate;
use vgasnet_hybrid::{AGENT_VARIABLE, Passed, REASON_BYTES_MAX, Report};
use vgasnet_protocol::wire::Layout;

/// The receiving end of the report socket.
pub(crate) struct Reports {
    socket: OwnedFd,
    /// No process has the other end.
    is_over: bool,
    /// Connections passed by ranks.
    connections: Vec<OwnedFd>,
    /// Files passed by ranks.
    files: Vec<OwnedFd>,
}

impl Reports {
    /// A socket for the processes `command` will start, and the end they must inherit.
    pub(crate) fn open(command: &mut Command) -> io::Result<(Reports, OwnedFd)> {
        // Of messages, and the rank's end hangs up when the agent dies.
        let (socket, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        fcntl(&socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        let inode = std::fs::metadata(format!("/proc/self/fd/{}", theirs.as_raw_fd()))?.ino();
        command.env(AGENT_VARIABLE, format!("{}:{inode}", theirs.as_raw_fd()));
        Ok((Reports { socket, is_over: false, connections: Vec::new(), files: Vec::new() }, theirs))
    }

    /// The next valid report, its text, and its sending process.
    pub(crate) fn next(&mut self) -> Option<(Report, String, u32)> {
        loop {
            let mut bytes = [0; Report::BYTES_MAX + REASON_BYTES_MAX];
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let mut space = cmsg_space!(UnixCredentials, RawFd);
            let fd = self.socket.as_raw_fd();
            let message = recvmsg::<()>(fd, &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC).ok()?;
            let count = message.bytes;
            if count == 0 {
                self.is_over = true;
                return None;
            }
            let (mut sender, mut passed) = (0, Vec::new());
            for part in message.cmsgs().ok()? {
                match part {
                    ControlMessageOwned::ScmCredentials(its) => sender = u32::try_from(its.pid()).unwrap_or(0),
                    ControlMessageOwned::ScmRights(descriptors) => passed.extend(descriptors.into_iter().map(own)),
                    _ => {}
                }
            }
            let mut tail = &bytes[..count];
            let Some(report) = Report::read(&mut tail) else { continue };
            match report.passed {
                Passed::Nothing => return Some((report, String::from_utf8_lossy(tail).replace('\n', " "), sender)),
                Passed::Connection => self.connections.append(&mut passed),
                Passed::File => self.files.append(&mut passed),
            }
        }
    }

    /// Readable when there is a report. `None` once no process can send one.
    pub(crate) fn open_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.is_over).then(|| self.socket.as_fd())
    }

    /// Truncates the files passed by ranks, after their end.
    pub(crate) fn give_space_back(&mut self) {
        for file in self.files.drain(..) {
            // Fails for a file that cannot be truncated; its space waits for its other holders.
            let _ = ftruncate(&file, 0);
        }
    }
}

/// Takes ownership of a received descriptor.
#[expect(unsafe_code)]
fn own(descriptor: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor for this process, and nobody else here knows of it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{ControlMessage, sendmsg};
    use std::fs::File;
    use std::io::{IoSlice, Write};
    use std::path::Path;
    use vgasnet_protocol::RankState;
    use vgasnet_protocol::wire::encode;

    /// An unlinked file with some bytes.
    fn file(path: &Path) -> File {
        let mut file = File::create_new(path).expect("a new file");
        std::fs::remove_file(path).expect("our file");
        file.write_all(b"some bytes").expect("room for them");
        file
    }

    #[test]
    fn files_are_emptied_and_connections_are_not() {
        let (mut reports, theirs) = Reports::open(&mut Command::new("true")).expect("a socket");
        let path = std::env::temp_dir().join(format!("vgasnet-reports-{}", std::process::id()));
        let [emptied, kept] = [Passed::File, Passed::Connection].map(|passed| {
            let (file, state) = (file(&path), RankState::Initialised);
            let report = encode(&Report { state, rank: None, passed });
            let descriptors = [file.as_raw_fd()];
            let parts = [ControlMessage::ScmRights(&descriptors)];
            sendmsg::<()>(theirs.as_raw_fd(), &[IoSlice::new(&report)], &parts, MsgFlags::empty(), None).expect("room");
            file
        });
        let report = Report { state: RankState::Attached, rank: Some(3), passed: Passed::Nothing };
        let last = encode(&report);
        sendmsg::<()>(theirs.as_raw_fd(), &[IoSlice::new(&last)], &[], MsgFlags::empty(), None).expect("room");
        let (heard, why, _) = reports.next().expect("the last one says something");
        assert_eq!((heard, &*why), (report, ""));
        let len_bytes = |file: &File| file.metadata().expect("it is open").len();
        assert_eq!((len_bytes(&emptied), len_bytes(&kept)), (10, 10));
        reports.give_space_back();
        assert_eq!((len_bytes(&emptied), len_bytes(&kept)), (0, 10));
    }
}
