//! Messages with descriptors between processes of a host.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// Maximum number of descriptors in one message: the kernel's limit.
pub(crate) const BATCH: usize = 253;

/// Sends bytes with descriptors, [`BATCH`] at most.
pub(crate) fn send(stream: &UnixStream, bytes: &[u8], descriptors: &[RawFd]) -> Result<usize, Errno> {
    let (parts, rights) = ([IoSlice::new(bytes)], [ControlMessage::ScmRights(descriptors)]);
    sendmsg::<()>(stream.as_raw_fd(), &parts, &rights, MsgFlags::MSG_NOSIGNAL, None)
}

/// Sends bytes, short enough to fit at once.
pub(crate) fn tell(stream: &UnixStream, bytes: &[u8]) -> Result<(), Errno> {
    sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(bytes)], &[], MsgFlags::MSG_NOSIGNAL, None).map(drop)
}

/// Receives the descriptors of one message, close-on-exec, in sending order. Returns the message's bytes, or a
/// non-empty prefix, at most `len_bytes`.
///
/// # Errors
/// The system's; [`ErrorKind::ConnectionReset`] at the end of the stream.
pub(crate) fn receive(stream: &UnixStream, received: &mut Vec<OwnedFd>, len_bytes: usize) -> io::Result<Vec<u8>> {
    let mut space = nix::cmsg_space!([RawFd; BATCH]);
    let mut bytes = vec![0; len_bytes];
    let mut part = [IoSliceMut::new(&mut bytes)];
    let message = loop {
        match recvmsg::<()>(stream.as_raw_fd(), &mut part, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC) {
            Err(Errno::EINTR) => {}
            message => break message?,
        }
    };
    if message.flags.contains(MsgFlags::MSG_CTRUNC) {
        return Err(Errno::EMFILE.into());
    }
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = control {
            // SAFETY: the kernel just made these descriptors for this process, and nobody else knows of them.
            received.extend(descriptors.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    let count = message.bytes;
    bytes.truncate(count);
    if count == 0 { Err(ErrorKind::ConnectionReset.into()) } else { Ok(bytes) }
}
