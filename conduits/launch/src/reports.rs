//! What ranks say of themselves to whoever looks after them on their host.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg, setsockopt, sockopt};
use vgasnet_cluster::{AGENT_VARIABLE, Report};

/// The end of a socket at which reports arrive.
pub(crate) struct Reports {
    socket: UnixDatagram,
}

impl Reports {
    /// A socket for what `command` will start, and the end that it has to inherit.
    pub(crate) fn open(command: &mut Command) -> io::Result<(Reports, OwnedFd)> {
        let (socket, theirs) = UnixDatagram::pair()?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        let inode = std::fs::metadata(format!("/proc/self/fd/{}", theirs.as_raw_fd()))?.ino();
        command.env(AGENT_VARIABLE, format!("{}:{inode}", theirs.as_raw_fd()));
        Ok((Reports { socket }, theirs.into()))
    }

    /// The next report that makes sense, and the process that it comes from.
    pub(crate) fn next(&self) -> Option<(Report, u32)> {
        loop {
            let mut bytes = [0; Report::BYTES + 1];
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let mut space = cmsg_space!(UnixCredentials);
            let fd = self.socket.as_raw_fd();
            let message = recvmsg::<()>(fd, &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC).ok()?;
            let count = message.bytes;
            let sender = message.cmsgs().ok()?.find_map(|part| match part {
                ControlMessageOwned::ScmCredentials(sender) => u32::try_from(sender.pid()).ok(),
                _ => None,
            });
            if let Some(report) = Report::from_bytes(&bytes[..count]) {
                return Some((report, sender.unwrap_or(0)));
            }
        }
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
