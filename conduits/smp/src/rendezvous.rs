//! How the ranks of a host get the arena and the doorbells: the first party of the host makes them, and hands them out through
//! an abstract unix socket. In a job on one machine the first party is the launcher, else the first rank of the host.
//!
//! ```text
//! rank ── connect, Request ─────────────▶ first party
//!      ◀───────────── a line, closed ────  the rank does not exist, or another process is that rank
//!      ◀── Grant, descriptors … ─────────  else: as many messages as it takes
//!      ── a byte ───────────────────────▶  the rank has them all
//! ```
//!
//! A rank that has a file comes once more, with a request that has the file's descriptor beside it. It gets no answer.
//!
//! Anybody on the host can see the name of the socket and connect. So each end shows the other its half of a key, which
//! only the ranks are told. Users are compared as well, except with root, who may start ranks as somebody else: another user
//! cannot even hold up a job. The first party serves one rank at a time, without a wait in any call: ranks that start wait
//! for each other in any case, and descriptors on their way count against a limit.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{UnixCredentials, getsockopt};
use nix::unistd::{Uid, ftruncate, geteuid};
use vgasnet_conduit::{ConduitError, SLOW, say};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::arena::Control;
use crate::conduit::SmpConduit;
use crate::descriptors::{BATCH, receive, send};
use crate::job::{Job, JobVariable, Objects, raise_descriptor_limit};
use vgasnet_protocol::{PROTOCOL_VERSION, RankState};

/// How long the ranks of a host may take to come, and each of them to take its descriptors.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a rank waits for its turn and its descriptors.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);

/// A party that looks so late has been stopped, and so perhaps were the others: they get their time again.
const LATE: Duration = Duration::from_secs(1);

/// How long to wait where the system lets no more descriptors be on their way: another job has its own there.
const HELD_UP: Duration = Duration::from_millis(5);

/// The first byte of a [`Grant`]. No line begins with it.
const GRANTED: u8 = 0;

/// The first bytes of a request.
const GREETING: [u8; 8] = *b"vgasnet?";

/// Requests of other versions may be longer than this one's.
const REQUEST_BYTES_MAX: usize = 1024;

/// The answer to a rank of another version.
const OTHER_VERSION: &str =
    "this rank runs another version of vgasnet than its job; give launcher and ranks the same one";

/// Half of a key, as hexadecimal digits.
type HalfKey = [u8; 16];

/// The length of a socket's name.
const NAME_BYTES: usize = 40;

/// The length of an address: a name, a dash and two halves of a key.
const ADDRESS_BYTES: usize = NAME_BYTES + 1 + 2 * size_of::<HalfKey>();

/// The request of a rank.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Request {
    /// [`GREETING`] and [`PROTOCOL_VERSION`], first in every version.
    greeting: [u8; 8],
    version: u64,
    rank: u32,
    ranks: u32,
    /// The process, as it knows itself.
    pid: u32,
    /// The first half.
    key: HalfKey,
    /// The layout has no padding.
    _unused: u32,
}

impl Request {
    /// The request of this process.
    fn new(rank: u32, ranks: u32, key: HalfKey) -> Request {
        let (greeting, version, pid) = (GREETING, PROTOCOL_VERSION, std::process::id());
        Request { greeting, version, rank, ranks, pid, key, _unused: 0 }
    }

    /// Reads what a process has sent; the error says whether that may be a rank of another version.
    fn read(bytes: &[u8]) -> Result<Request, bool> {
        let request = Request::read_from_bytes(bytes).ok();
        let is_greeting = bytes.starts_with(&GREETING);
        request.filter(|request| is_greeting && request.version == PROTOCOL_VERSION).ok_or(is_greeting)
    }
}

/// What a message with descriptors says.
#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
struct Grant {
    granted: u8,
    /// The second half.
    key: HalfKey,
}

/// How a rank finds its first party: `NAME-KEY`, the name of the socket and the two halves of the key.
#[derive(Clone, Debug)]
struct Address {
    text: String,
}

impl Address {
    /// Nobody finds a socket by the address of a job that is over.
    fn random() -> io::Result<Address> {
        Ok(Address { text: format!("vgasnet-{:032x}-{:032x}", random()?, random()?) })
    }

    fn parse(text: &[u8]) -> Result<Address, String> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() == ADDRESS_BYTES && text.is_ascii());
        text.map(|text| Address { text: text.to_owned() }).ok_or_else(|| "that is no address of a socket".to_owned())
    }

    fn socket(&self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(&self.text[..NAME_BYTES])
    }

    fn keys(&self) -> [HalfKey; 2] {
        let (first, second) = self.text.as_bytes()[NAME_BYTES + 1..].split_at(size_of::<HalfKey>());
        [first, second].map(|half| half.try_into().expect("half of a key"))
    }
}

/// What became of a rank that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visit {
    /// It has got everything.
    Joined {
        /// The rank.
        rank: u32,
        /// Its process, as this process sees it; 0 if it does not.
        pid: u32,
    },
    /// It has entrusted a file.
    Entrusted,
    /// It was granted, but did not get everything.
    Lost {
        /// The rank.
        rank: u32,
        /// In words.
        why: String,
    },
}

/// The shared objects of the ranks of a host, in the hands of the first party.
pub struct Rendezvous {
    listener: UnixListener,
    address: Address,
    objects: Objects,
    control: Control,
    ranks: u32,
    current: Option<Handover>,
    /// Files that ranks have entrusted.
    files: Vec<OwnedFd>,
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
        let address = Address::random()?;
        let listener = UnixListener::bind_addr(&address.socket()?)?;
        listener.set_nonblocking(true)?;
        Ok(Rendezvous { listener, address, objects, control, ranks, current: None, files: Vec::new() })
    }

    /// The address and key of the socket, for [`join`]; 73 bytes, for the ranks' eyes only.
    pub fn address(&self) -> &str {
        &self.address.text
    }

    /// The value of [`crate::JOB_VARIABLE`] for the process that is to become `rank`.
    pub fn variable(&self, rank: u32) -> String {
        JobVariable { rank, ranks: self.ranks, socket: self.address() }.to_string()
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

    /// Serves ranks that have come, without waiting, until it has something to say of one.
    ///
    /// # Errors
    /// The system refuses a connection: too many files are open.
    pub fn serve(&mut self) -> io::Result<Option<Visit>> {
        loop {
            let current = match self.current.take() {
                Some(current) => Some(current),
                None => self.accept()?,
            };
            let Some(mut current) = current else { return Ok(None) };
            match self.advance(&mut current) {
                Ok(visit) => return Ok(Some(visit)),
                Err(error) if error.kind() == ErrorKind::WouldBlock && has_time(&mut current.late) => {
                    self.current = Some(current);
                    return Ok(None);
                }
                Err(error) => {
                    if let Some(rank) = current.rank {
                        return Ok(Some(Visit::Lost { rank, why: error.to_string() }));
                    }
                }
            }
        }
    }

    /// The next process that has connected, if there is one that may.
    fn accept(&self) -> io::Result<Option<Handover>> {
        loop {
            match self.listener.accept() {
                // Another user's stream is dropped, and so closed.
                Ok((stream, _)) => match Handover::of(stream) {
                    Ok(handover) => return Ok(Some(handover)),
                    Err(_) => continue,
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on with a handover. [`ErrorKind::WouldBlock`] says that it takes longer; another error is its end.
    fn advance(&mut self, current: &mut Handover) -> io::Result<Visit> {
        let rank = match current.rank {
            Some(rank) => rank,
            None => match self.answer(&mut current.stream)? {
                Some(rank) => *current.rank.insert(rank),
                None => return Ok(Visit::Entrusted),
            },
        };
        self.hand_over(current)?;
        if current.stream.read(&mut [0])? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(Visit::Joined { rank, pid: u32::try_from(current.peer.pid()).unwrap_or(0) })
    }

    /// Reads a request, and makes the process that rank or tells it why not. Returns the rank; none for a file.
    fn answer(&mut self, stream: &mut UnixStream) -> io::Result<Option<u32>> {
        let mut files = Vec::new();
        let request = receive(stream, &mut files, REQUEST_BYTES_MAX)?;
        let request = match Request::read(&request) {
            Ok(request) => request,
            Err(is_other_version) => {
                if is_other_version {
                    stream.write_all(OTHER_VERSION.as_bytes())?;
                }
                return Err(ErrorKind::InvalidData.into());
            }
        };
        if request.key != self.address.keys()[0] {
            return Err(ErrorKind::PermissionDenied.into());
        }
        if !files.is_empty() {
            self.files.append(&mut files);
            return Ok(None);
        }
        if let Err(why) = self.grant(request) {
            stream.write_all(why.as_bytes())?;
            return Err(io::Error::other(why));
        }
        Ok(Some(request.rank))
    }

    /// Empties the files that ranks have entrusted, when all ranks have ended.
    pub fn give_space_back(&mut self) {
        for file in self.files.drain(..) {
            // It fails for a file that cannot be emptied, which has to wait for its other holders.
            let _ = ftruncate(&file, 0);
        }
    }

    /// Makes the process a rank, or says why it cannot be.
    fn grant(&self, Request { rank, ranks, pid, .. }: Request) -> Result<(), String> {
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
        let grant = Grant { granted: GRANTED, key: self.address.keys()[1] };
        for batch in all[current.sent..].chunks(BATCH) {
            let sent = send(&current.stream, grant.as_bytes(), batch);
            current.is_held_up = matches!(sent, Err(Errno::EAGAIN | Errno::ETOOMANYREFS));
            sent.map_err(|error| if current.is_held_up { Errno::EAGAIN } else { error })?;
            current.sent += batch.len();
        }
        Ok(())
    }

    /// Makes this process the first rank of the host, and waits until all others have come.
    ///
    /// # Errors
    /// Not all come within a minute, or one does not get everything.
    pub fn admit(mut self) -> Result<SmpConduit, ConduitError> {
        let own = Request::new(0, self.ranks, self.address.keys()[0]);
        self.grant(own).map_err(ConduitError)?;
        let mut late = Instant::now() + PATIENCE;
        let mut missing = self.ranks - 1;
        while missing > 0 {
            match self.serve() {
                Ok(Some(Visit::Joined { .. })) => missing -= 1,
                Ok(Some(Visit::Entrusted)) => {}
                Ok(Some(Visit::Lost { rank, why })) => {
                    let what = format!("rank {rank} of this host did not get its shared memory: {why}");
                    return Err(ConduitError(what));
                }
                Ok(None) if !has_time(&mut late) => {
                    let what = format!("{missing} ranks of this host did not come within {PATIENCE:?}");
                    return Err(ConduitError(what));
                }
                Ok(None) => self.sleep_until(late),
                Err(error) => return Err(ConduitError(format!("ranks of this host cannot come: {error}"))),
            }
        }
        Ok(SmpConduit::member(Job::of(0, self.ranks, self.objects).map_err(ConduitError)?))
    }

    fn sleep_until(&self, end: Instant) {
        let left = self.deadline().map_or(end, |at| at.min(end)).saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        // A signal that interrupts it is a reason to look, too.
        let _ = poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], timeout);
    }
}

impl AsFd for Rendezvous {
    /// Readable when [`Rendezvous::serve`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.current.as_ref().map_or(self.listener.as_fd(), |current| current.stream.as_fd())
    }
}

impl Handover {
    /// # Errors
    /// The stream is another user's, and neither of us is root.
    fn of(stream: UnixStream) -> io::Result<Handover> {
        stream.set_nonblocking(true)?;
        let peer = getsockopt(&stream, PeerCredentials)?;
        let (own, other) = (geteuid(), Uid::from_raw(peer.uid()));
        if own != other && !own.is_root() && !other.is_root() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        Ok(Handover { stream, peer, late: Instant::now() + PATIENCE, rank: None, sent: 0, is_held_up: false })
    }
}

/// Whether it is not `late` yet. After a stop of this process, the time begins anew.
fn has_time(late: &mut Instant) -> bool {
    let now = Instant::now();
    if now > *late + LATE {
        *late = now + PATIENCE;
    }
    now < *late
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

/// Makes this process rank `rank` of the `ranks` that find each other by this [`Rendezvous::address`].
///
/// # Errors
/// There is no such socket, it does not know the key, or it refuses.
pub fn join(address: &[u8], rank: u32, ranks: u32) -> Result<SmpConduit, ConduitError> {
    let job = ask(address, rank, ranks).and_then(|objects| Job::of(rank, ranks, objects));
    let job = job.map_err(|why| ConduitError(format!("cannot reach the first rank of this host: {why}")))?;
    Ok(SmpConduit::member(job))
}

/// Asks the first party of this host to make this process a rank. The error says in words why it does not.
pub(crate) fn ask(address: &[u8], rank: u32, ranks: u32) -> Result<Objects, String> {
    let address = Address::parse(address)?;
    let [key, answer] = address.keys();
    let broken = |error: io::Error| match error.kind() {
        ErrorKind::WouldBlock => "no shared memory came through the socket in time".to_owned(),
        _ => format!(
            "no shared memory came through the socket: {error} (do launcher and ranks have the same version of vgasnet?)"
        ),
    };
    // Room for the doorbells.
    raise_descriptor_limit(64 + 2 * u64::from(ranks)).map_err(|error| broken(error.into()))?;
    let stream = address.socket().and_then(|at| UnixStream::connect_addr(&at));
    let mut stream = stream.map_err(|error| format!("nobody answers at the socket: {error}"))?;
    let request = Request::new(rank, ranks, key);
    stream.write_all(request.as_bytes()).map_err(broken)?;
    if !answers_soon(&stream) {
        let seconds = SLOW.as_secs();
        let line = format!(
            "vgasnet: rank {rank}: vgasnet_init: waits for its shared memory from vgasnetrun or the first rank of this host \
             (since {seconds} s)"
        );
        say(&line);
    }
    stream.set_read_timeout(Some(ANSWER_PATIENCE)).map_err(broken)?;
    let mut received = Vec::with_capacity(1 + 2 * ranks as usize);
    while received.len() < 1 + 2 * ranks as usize {
        let mut said = receive(&stream, &mut received, size_of::<Grant>()).map_err(broken)?;
        if said[0] != GRANTED {
            stream.read_to_end(&mut said).map_err(broken)?;
            return Err(String::from_utf8_lossy(&said).into_owned());
        }
        if said.get(1..) != Some(&answer[..]) {
            return Err("somebody else answers at the socket".to_owned());
        }
    }
    // It fails when the first party is gone, which ends this process, too.
    let _ = stream.write_all(&[GRANTED]);
    let maker = getsockopt(&stream, PeerCredentials).ok().and_then(|peer| u32::try_from(peer.pid()).ok());
    let arena = received.remove(0);
    // 0 stands for a process of another PID namespace.
    Ok(Objects { arena, doorbells: received, maker: maker.filter(|process| *process > 0) })
}

/// Hands the first party at this [`Rendezvous::address`] a file of a rank's.
///
/// # Errors
/// It is gone.
pub(crate) fn entrust(address: &str, rank: u32, ranks: u32, file: BorrowedFd<'_>) -> io::Result<()> {
    let address = Address::parse(address.as_bytes()).map_err(io::Error::other)?;
    let stream = UnixStream::connect_addr(&address.socket()?)?;
    let request = Request::new(rank, ranks, address.keys()[0]);
    send(&stream, request.as_bytes(), &[file.as_raw_fd()])?;
    Ok(())
}

/// Whether there is something to read soon, if it is the end.
fn answers_soon(stream: &UnixStream) -> bool {
    let late = Instant::now() + SLOW;
    loop {
        let left = PollTimeout::try_from(late.saturating_duration_since(Instant::now())).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(stream.as_fd(), PollFlags::POLLIN)], left) {
            Err(Errno::EINTR) => {}
            ready => return ready != Ok(0),
        }
    }
}

#[cfg(all(test, not(loom)))]
#[path = "rendezvous_tests.rs"]
mod tests;
