//! The reports of ranks to the agent that looks after them.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg, setsockopt, sockopt};
use vgasnet_hybrid::{AGENT_VARIABLE, REASON_BYTES_MAX, Report};
use vgasnet_protocol::wire::Layout;

/// The end of a socket at which reports arrive.
pub(crate) struct Reports {
    socket: UnixDatagram,
    /// The descriptors that ranks have passed.
    kept: Vec<OwnedFd>,
}

impl Reports {
    /// A socket for the processes that `command` will start, and the end that it has to inherit.
    pub(crate) fn open(command: &mut Command) -> io::Result<(Reports, OwnedFd)> {
        let (socket, theirs) = UnixDatagram::pair()?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        let inode = std::fs::metadata(format!("/proc/self/fd/{}", theirs.as_raw_fd()))?.ino();
        command.env(AGENT_VARIABLE, format!("{}:{inode}", theirs.as_raw_fd()));
        Ok((Reports { socket, kept: Vec::new() }, theirs.into()))
    }

    /// The next report that makes sense, its text, and the process that has sent it.
    pub(crate) fn next(&mut self) -> Option<(Report, String, u32)> {
        loop {
            let mut bytes = [0; Report::BYTES_MAX + REASON_BYTES_MAX];
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let mut space = cmsg_space!(UnixCredentials, RawFd);
            let fd = self.socket.as_raw_fd();
            let message = recvmsg::<()>(fd, &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC).ok()?;
            let count = message.bytes;
            let mut sender = 0;
            for part in message.cmsgs().ok()? {
                match part {
                    ControlMessageOwned::ScmCredentials(its) => sender = u32::try_from(its.pid()).unwrap_or(0),
                    ControlMessageOwned::ScmRights(descriptors) => self.kept.extend(descriptors.into_iter().map(own)),
                    _ => {}
                }
            }
            let mut rest = &bytes[..count];
            if let Some(report) = Report::read(&mut rest) {
                return Some((report, String::from_utf8_lossy(rest).replace('\n', " "), sender));
            }
        }
    }
}

/// A descriptor that has come through a socket.
#[expect(unsafe_code)]
fn own(descriptor: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor for this process, and nobody else here knows of it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
