//! How the ranks of a host get the arena and the doorbells: the first party of the host makes them, and hands them out through
//! an abstract unix socket. In a job on one machine the first party is the launcher, else the first rank of the host.
//!
//! ```text
//! rank ── connect, Request ─────────────▶ first party
//!      ◀───────────── a line, closed ────  the rank does not exist, or another process is that rank
//!      ◀── GRANTED, descriptors … ───────  else: as many messages as it takes
//!      ── a byte ───────────────────────▶  the rank has them all
//! ```
//!
//! Anybody on the host can connect, so both ends look at the user of the other. The first party serves one rank at a time, and
//! never waits for it: ranks that start wait for each other in any case, and descriptors on their way count against a limit.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixCredentials, getsockopt, recvmsg, sendmsg};
use nix::unistd::geteuid;
use vgasnet_conduit::ConduitError;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::arena::Control;
use crate::conduit::SmpConduit;
use crate::job::{Job, JobVariable, Objects, raise_descriptor_limit};
use vgasnet_protocol::RankState;

/// How long the ranks of a host may take to come, and each of them to take its descriptors.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long to wait where the system lets no more descriptors be on their way: another job has its own there.
const HELD_UP: Duration = Duration::from_millis(5);

/// Descriptors in one message: the most that the kernel takes.
const BATCH: usize = 253;

/// The first byte of a message with descriptors.
const GRANTED: u8 = 0;

/// The request of a rank.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Request {
    rank: u32,
    ranks: u32,
    /// The process, as it knows itself.
    pid: u32,
}

/// A rank that has got everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The rank.
    pub rank: u32,
    /// Its process, as this process sees it; 0 if it does not.
    pub pid: u32,
}

/// The shared objects of the ranks of a host, in the hands of the first party.
pub struct Rendezvous {
    listener: UnixListener,
    name: String,
    objects: Objects,
    control: Control,
    ranks: u32,
    current: Option<Handover>,
}

/// A process that has connected.
struct Handover {
    stream: UnixStream,
    peer: UnixCredentials,
    late: Instant,
    /// The rank that it has been granted.
    rank: Option<u32>,
    /// How many descriptors are on their way.
    sent: usize,
    is_held_up: bool,
}

impl Rendezvous {
    /// Makes the shared objects of `ranks` ranks of this host, and opens the socket.
    ///
    /// # Errors
    /// The system refuses memory, descriptors or a socket.
    pub fn open(ranks: u32) -> io::Result<Self> {
        let objects = Objects::create(ranks)?;
        let control = Control::open(objects.arena.as_fd(), ranks).map_err(io::Error::other)?;
        // Nobody finds this socket by the variable of a job that is over.
        let name = format!("vgasnet-{:032x}", random()?);
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        Ok(Rendezvous { listener, name, objects, control, ranks, current: None })
    }

    /// The name of the socket, for [`join`]; 40 bytes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of [`crate::JOB_VARIABLE`] for the process that is to become `rank`.
    pub fn variable(&self, rank: u32) -> String {
        JobVariable { rank, ranks: self.ranks, socket: &self.name }.to_string()
    }

    /// How far `rank` has come.
    pub fn state(&self, rank: u32) -> RankState {
        self.control.block(rank).state()
    }

    /// When [`Rendezvous::serve`] is needed even though nothing has arrived.
    pub fn deadline(&self) -> Option<Instant> {
        let current = self.current.as_ref()?;
        Some(if current.is_held_up { Instant::now() + HELD_UP } else { current.late })
    }

    /// Serves ranks that have come, without waiting, until one has got everything.
    pub fn serve(&mut self) -> Option<Joined> {
        loop {
            let mut current = match self.current.take() {
                Some(current) => current,
                None => Handover::of(self.listener.accept().ok()?.0).ok()?,
            };
            match self.advance(&mut current) {
                Ok(joined) => return Some(joined),
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < current.late => {
                    self.current = Some(current);
                    return None;
                }
                Err(_) => {}
            }
        }
    }

    /// Goes on with a handover. [`ErrorKind::WouldBlock`] says that it takes longer; another error is its end.
    fn advance(&self, current: &mut Handover) -> io::Result<Joined> {
        let rank = match current.rank {
            Some(rank) => rank,
            None => *current.rank.insert(self.answer(&mut current.stream)?),
        };
        self.hand_over(current)?;
        let _received = current.stream.read(&mut [0])?;
        Ok(Joined { rank, pid: u32::try_from(current.peer.pid()).unwrap_or(0) })
    }

    /// Reads a request, and makes the process that rank or tells it why not.
    fn answer(&self, stream: &mut UnixStream) -> io::Result<u32> {
        let mut request = [0; size_of::<Request>()];
        let count = stream.read(&mut request)?;
        let request = Request::read_from_bytes(&request[..count]).map_err(|_| ErrorKind::InvalidData)?;
        if let Err(why) = self.grant(request) {
            stream.write_all(why.as_bytes())?;
            return Err(io::Error::other(why));
        }
        Ok(request.rank)
    }

    /// Makes the process a rank, or says why it cannot be.
    fn grant(&self, Request { rank, ranks, pid }: Request) -> Result<(), String> {
        if ranks != self.ranks || rank >= ranks {
            return Err(format!("rank {rank} of {ranks} does not exist in this job of {} ranks", self.ranks));
        }
        let block = self.control.block(rank);
        block.take(pid).map_err(|owner| match owner {
            _ if owner == pid => "this process is a rank already".to_owned(),
            _ => format!("process {owner} is rank {rank} already"),
        })?;
        // Before the rank knows, so that its own later states are not overwritten.
        block.set_state(RankState::Initialised);
        Ok(())
    }

    /// Sends all descriptors, or as many as the system takes now.
    fn hand_over(&self, current: &mut Handover) -> io::Result<()> {
        let doorbells = self.objects.doorbells.iter().map(AsRawFd::as_raw_fd);
        let all: Vec<RawFd> = std::iter::once(self.objects.arena.as_raw_fd()).chain(doorbells).collect();
        for batch in all[current.sent..].chunks(BATCH) {
            let (part, rights) = ([IoSlice::new(&[GRANTED])], [ControlMessage::ScmRights(batch)]);
            let sent = sendmsg::<()>(current.stream.as_raw_fd(), &part, &rights, MsgFlags::MSG_NOSIGNAL, None);
            current.is_held_up = matches!(sent, Err(Errno::EAGAIN | Errno::ETOOMANYREFS));
            sent.map_err(|error| if current.is_held_up { Errno::EAGAIN } else { error })?;
            current.sent += batch.len();
        }
        Ok(())
    }

    /// Makes this process the first rank of the host, and waits until all others have come.
    ///
    /// # Errors
    /// Not all come within a minute.
    pub fn admit(mut self) -> Result<SmpConduit, ConduitError> {
        self.grant(Request { rank: 0, ranks: self.ranks, pid: std::process::id() }).map_err(ConduitError)?;
        let late = Instant::now() + PATIENCE;
        let mut missing = self.ranks - 1;
        while missing > 0 {
            if self.serve().is_some() {
                missing -= 1;
                continue;
            }
            let left = self.deadline().map_or(late, |at| at.min(late)).saturating_duration_since(Instant::now());
            if Instant::now() >= late {
                return Err(ConduitError(format!("{missing} ranks of this host did not come within {PATIENCE:?}")));
            }
            // A signal that interrupts it is a reason to look, too.
            let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            let _ = poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], timeout);
        }
        Ok(SmpConduit::member(Job::of(0, self.ranks, self.objects).map_err(ConduitError)?))
    }
}

impl AsFd for Rendezvous {
    /// Readable when [`Rendezvous::serve`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.current.as_ref().map_or(self.listener.as_fd(), |current| current.stream.as_fd())
    }
}

impl Handover {
    /// Another user's stream is dropped, and so closed.
    fn of(stream: UnixStream) -> io::Result<Handover> {
        stream.set_nonblocking(true)?;
        let peer = peer_of_own_user(&stream)?;
        Ok(Handover { stream, peer, late: Instant::now() + PATIENCE, rank: None, sent: 0, is_held_up: false })
    }
}

/// A number that nobody guesses.
///
/// # Errors
/// The system has no random numbers.
pub fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}

/// The process at the other end, which must be of this user.
fn peer_of_own_user(stream: &UnixStream) -> io::Result<UnixCredentials> {
    let peer = getsockopt(stream, PeerCredentials)?;
    let is_own = peer.uid() == geteuid().as_raw();
    is_own.then_some(peer).ok_or_else(|| io::Error::other("it belongs to another user"))
}

/// Makes this process rank `rank` of the `ranks` that find each other by the socket of this [`Rendezvous::name`].
///
/// # Errors
/// There is no such socket, it is another user's, or it refuses.
pub fn join(name: &[u8], rank: u32, ranks: u32) -> Result<SmpConduit, ConduitError> {
    let job = ask(name, rank, ranks).and_then(|objects| Job::of(rank, ranks, objects));
    let job = job.map_err(|why| ConduitError(format!("cannot reach the first rank of this host: {why}")))?;
    Ok(SmpConduit::member(job))
}

/// Asks the first party of this host to make this process a rank. The error says in words why it does not.
pub(crate) fn ask(name: &[u8], rank: u32, ranks: u32) -> Result<Objects, String> {
    let broken = |error: io::Error| format!("no shared memory came through the socket: {error}");
    // Room for the doorbells.
    raise_descriptor_limit(64 + 2 * u64::from(ranks)).map_err(|error| broken(error.into()))?;
    let stream = SocketAddr::from_abstract_name(name).and_then(|at| UnixStream::connect_addr(&at));
    let mut stream = stream.map_err(|error| format!("nobody answers at the socket: {error}"))?;
    peer_of_own_user(&stream).map_err(|error| format!("the socket: {error}"))?;
    let request = Request { rank, ranks, pid: std::process::id() };
    stream.write_all(request.as_bytes()).map_err(broken)?;
    let mut received = Vec::with_capacity(1 + 2 * ranks as usize);
    while received.len() < 1 + 2 * ranks as usize {
        if let Some(first) = receive(&stream, &mut received).map_err(|error| broken(error.into()))? {
            let mut why = vec![first];
            stream.read_to_end(&mut why).map_err(broken)?;
            return Err(String::from_utf8_lossy(&why).into_owned());
        }
    }
    // It fails when the first party is gone, which ends this process, too.
    let _ = stream.write_all(&[GRANTED]);
    let arena = received.remove(0);
    Ok(Objects { arena, doorbells: received })
}

/// Takes the descriptors of one message, closed on exec, in the order in which they were sent. Returns the first byte of a message
/// without descriptors.
fn receive(stream: &UnixStream, received: &mut Vec<OwnedFd>) -> Result<Option<u8>, Errno> {
    let mut space = nix::cmsg_space!([RawFd; BATCH]);
    let mut byte = [GRANTED];
    let mut part = [IoSliceMut::new(&mut byte)];
    let message = loop {
        match recvmsg::<()>(stream.as_raw_fd(), &mut part, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC) {
            Err(Errno::EINTR) => {}
            message => break message?,
        }
    };
    if message.bytes == 0 {
        return Err(Errno::ECONNRESET);
    }
    if message.flags.contains(MsgFlags::MSG_CTRUNC) {
        return Err(Errno::EMFILE);
    }
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = control {
            // SAFETY: the kernel just made these descriptors for this process, and nobody else knows of them.
            received.extend(descriptors.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    Ok((byte[0] != GRANTED).then_some(byte[0]))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Serves until `ranks` have joined, and then closes the socket.
    fn serve(mut rendezvous: Rendezvous, count: usize) -> Vec<Joined> {
        let mut joined = Vec::new();
        while joined.len() < count {
            let _ = poll(&mut [PollFd::new(rendezvous.as_fd(), PollFlags::POLLIN)], PollTimeout::from(1000_u16));
            joined.extend(rendezvous.serve());
        }
        joined
    }

    #[test]
    fn a_rank_gets_everything_once() {
        let rendezvous = Rendezvous::open(200).expect("a small job");
        let (name, own) = (rendezvous.name().to_owned(), std::process::id());
        assert_eq!(name.len(), 40);
        let server = std::thread::spawn(move || serve(rendezvous, 2));
        let ask = |rank, ranks| ask(name.as_bytes(), rank, ranks).map(|objects| objects.doorbells.len());
        assert_eq!(ask(3, 200), Ok(400));
        assert_eq!(ask(3, 200), Err("this process is a rank already".to_owned()));
        for (rank, ranks) in [(200, 200), (200, 201), (0, 4)] {
            let why = format!("rank {rank} of {ranks} does not exist in this job of 200 ranks");
            assert_eq!(ask(rank, ranks), Err(why));
        }
        assert_eq!(ask(199, 200), Ok(400));
        assert_eq!(server.join().expect("a thread"), [3, 199].map(|rank| Joined { rank, pid: own }));
        let why = ask(0, 200).expect_err("the job is over");
        assert!(why.starts_with("nobody answers at the socket: ") && !why.contains('\n'), "{why}");
    }

    #[test]
    fn another_process_is_named_and_nonsense_is_not_answered() {
        let mut rendezvous = Rendezvous::open(2).expect("a small job");
        let taken = Request { rank: 1, ranks: 2, pid: u32::MAX };
        assert_eq!(rendezvous.grant(taken), Ok(()));
        assert_eq!(rendezvous.state(1), RankState::Initialised);
        let address = SocketAddr::from_abstract_name(rendezvous.name()).expect("a name");
        let mut nonsense = UnixStream::connect_addr(&address).expect("a socket");
        nonsense.write_all(b"GET /").expect("room");
        let mut silent = UnixStream::connect_addr(&address).expect("a socket");
        assert_eq!(rendezvous.serve(), None);
        assert_eq!(nonsense.read(&mut [0]).expect("the end"), 0);
        silent.write_all(Request { pid: 7, ..taken }.as_bytes()).expect("room");
        assert_eq!(rendezvous.serve(), None);
        let mut why = String::new();
        silent.read_to_string(&mut why).expect("text");
        assert_eq!(why, format!("process {} is rank 1 already", u32::MAX));
    }
}
