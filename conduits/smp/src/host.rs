//! The ranks of one host that another launcher has started: the first makes what they share and hands it to the others
//! through a socket without a file.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sendmsg};
use nix::unistd::geteuid;
use vgasnet_conduit::ConduitError;

use crate::conduit::SmpConduit;
use crate::job::{Job, Objects, raise_descriptor_limit};

/// How long ranks of a host wait for each other.
const PATIENCE: Duration = Duration::from_secs(60);

/// Descriptors in one message; the kernel takes 253.
const BATCH: usize = 128;

/// What the first rank of a host has made for all of them, before the others have it.
pub struct Invitation {
    listener: UnixListener,
    address: Vec<u8>,
    objects: Objects,
    ranks: u32,
}

impl Invitation {
    /// Makes what `ranks` ranks of this host will share.
    ///
    /// # Errors
    /// The system refuses memory, descriptors or a socket.
    pub fn new(ranks: u32) -> Result<Self, ConduitError> {
        let objects = Objects::for_ranks(ranks)?;
        let refused = |error| ConduitError(format!("cannot open a socket for the ranks of this host: {error}"));
        // The process has one invitation at most, and no other process has its number.
        let address = format!("vgasnet-{}", std::process::id()).into_bytes();
        let listener = SocketAddr::from_abstract_name(&address).and_then(|at| UnixListener::bind_addr(&at));
        Ok(Invitation { listener: listener.map_err(refused)?, address, objects, ranks })
    }

    /// Where the others find it: at most 32 bytes for [`join`].
    pub fn address(&self) -> &[u8] {
        &self.address
    }

    /// Hands it to all others, and makes this process rank 0 of the host.
    ///
    /// # Errors
    /// Not all come within a minute.
    pub fn admit(self) -> Result<SmpConduit, ConduitError> {
        let deadline = Instant::now() + PATIENCE;
        let mut missing = self.ranks - 1;
        while missing > 0 {
            let late = || ConduitError(format!("{missing} ranks of this host did not come within {PATIENCE:?}"));
            wait_readable(self.listener.as_fd(), deadline).map_err(|_| late())?;
            let (stream, _) = self.listener.accept().map_err(|error| ConduitError(format!("a socket: {error}")))?;
            if is_ours(&stream) {
                self.hand_over(&stream).map_err(|error| ConduitError(format!("sending descriptors: {error}")))?;
                missing -= 1;
            }
        }
        SmpConduit::member(Job::of(0, self.ranks, self.objects)?)
    }

    fn hand_over(&self, stream: &UnixStream) -> Result<(), Errno> {
        let doorbells = self.objects.doorbells.iter().map(AsRawFd::as_raw_fd);
        let all: Vec<RawFd> = std::iter::once(self.objects.arena.as_raw_fd()).chain(doorbells).collect();
        for batch in all.chunks(BATCH) {
            let rights = [ControlMessage::ScmRights(batch)];
            sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(&[0])], &rights, MsgFlags::MSG_NOSIGNAL, None)?;
        }
        Ok(())
    }
}

/// Makes this process rank `rank` of the `ranks` that [`Invitation::address`] names.
///
/// # Errors
/// There is no such invitation, or it is somebody else's.
pub fn join(address: &[u8], rank: u32, ranks: u32) -> Result<SmpConduit, ConduitError> {
    let refused = |error: std::io::Error| ConduitError(format!("cannot reach the first rank of this host: {error}"));
    // Room for the doorbells.
    raise_descriptor_limit(64 + 2 * u64::from(ranks)).map_err(|error| refused(error.into()))?;
    let stream =
        SocketAddr::from_abstract_name(address).and_then(|at| UnixStream::connect_addr(&at)).map_err(refused)?;
    if !is_ours(&stream) {
        return Err(ConduitError("the first rank of this host belongs to another user".to_owned()));
    }
    let mut received = receive(&stream, 1 + 2 * ranks as usize).map_err(|error| refused(error.into()))?;
    let arena = received.remove(0);
    SmpConduit::member(Job::of(rank, ranks, Objects { arena, doorbells: received })?)
}

/// Takes `count` descriptors, closed on exec, in the order in which they were sent.
fn receive(stream: &UnixStream, count: usize) -> Result<Vec<OwnedFd>, Errno> {
    let deadline = Instant::now() + PATIENCE;
    let mut received = Vec::with_capacity(count);
    let mut space = nix::cmsg_space!([RawFd; BATCH]);
    while received.len() < count {
        wait_readable(stream.as_fd(), deadline)?;
        let mut byte = [0];
        let mut bytes = [IoSliceMut::new(&mut byte)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<()>(stream.as_raw_fd(), &mut bytes, Some(&mut space), flags)?;
        let before = received.len();
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(descriptors) = control {
                // SAFETY: the kernel just made these descriptors for this process, and nobody else knows of them.
                received.extend(descriptors.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
            }
        }
        if received.len() == before {
            return Err(Errno::ECONNRESET);
        }
    }
    Ok(received)
}

/// Whether a process of this user has the other end.
fn is_ours(stream: &UnixStream) -> bool {
    getsockopt(stream, PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw())
}

fn wait_readable(fd: std::os::fd::BorrowedFd<'_>, deadline: Instant) -> Result<(), Errno> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout) {
            Ok(0) => return Err(Errno::ETIMEDOUT),
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}
