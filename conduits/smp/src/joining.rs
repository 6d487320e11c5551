//! A rank's request to the first party of its host for the shared memory and the doorbells.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::geteuid;
use vgasnet_conduit::{ConduitError, SLOW, say};
use zerocopy::IntoBytes;

use crate::conduit::SmpConduit;
use crate::descriptors::{receive, send, tell};
use crate::handshake::{Address, GRANTED, Grant, HalfKey, Request};
use crate::job::{JobMember, Objects, raise_descriptor_limit};
use crate::peers::{Peer, connect_locally};
use crate::visitor::SILENCE;

/// Time-out of a rank's wait for its turn and its descriptors.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);

/// Longer refusals are cut.
const REFUSAL_BYTES_MAX: u64 = 1024;

/// Why a process did not become a rank, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The address is not one of a current job the process may join.
    Misled(String),
    /// The first party exists, but did not answer in time.
    Late(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Refusal::Misled(why) | Refusal::Late(why)) = self;
        f.write_str(why)
    }
}

/// Makes this process rank `rank` of the `ranks` with this [`crate::Rendezvous::address`].
///
/// # Errors
/// There is no such socket, it does not know the key, or it refuses.
pub fn join(address: &[u8], rank: u32, ranks: u32) -> Result<SmpConduit, ConduitError> {
    let asked = ask(address, rank, ranks).map_err(|why| why.to_string());
    let job = asked.and_then(|(objects, _)| JobMember::of(rank, ranks, objects));
    let job = job.map_err(|why| ConduitError(format!("cannot reach the first rank of this host: {why}")))?;
    Ok(SmpConduit::member(job))
}

/// Asks the first party of this host to make this process a rank. Returns the connection, too: it hangs up when the
/// first party ends.
///
/// A process stopped between its connection and its request is dropped as a stranger, so it tries again.
pub(crate) fn ask(address: &[u8], rank: u32, ranks: u32) -> Result<(Objects, UnixStream), Refusal> {
    ask_within(ANSWER_PATIENCE, address, rank, ranks)
}

/// As [`ask`], with its time-out.
pub(crate) fn ask_within(
    patience: Duration,
    address: &[u8],
    rank: u32,
    ranks: u32,
) -> Result<(Objects, UnixStream), Refusal> {
    let address = Address::parse(address).map_err(Refusal::Misled)?;
    // Room for the doorbells.
    raise_descriptor_limit(64 + 2 * u64::from(ranks))
        .map_err(|error| Refusal::Misled(format!("no room for so many descriptors: {error}")))?;
    let late = Instant::now() + patience;
    loop {
        let begin = Instant::now();
        let mut attempt = Attempt::begin(&address, rank, ranks, patience)?;
        match attempt.finish() {
            Ok(objects) => return Ok((objects, attempt.stream)),
            Err(error) if attempt.is_unheard(&error) && begin.elapsed() >= SILENCE && Instant::now() < late => {}
            Err(error) => return Err(attempt.explain(error)),
        }
    }
}

/// A connection to the first party.
struct Attempt {
    stream: UnixStream,
    first_party: Peer,
    request: Request,
    answer: HalfKey,
    received: Vec<OwnedFd>,
    patience: Duration,
}

impl Attempt {
    fn begin(address: &Address, rank: u32, ranks: u32, patience: Duration) -> Result<Attempt, Refusal> {
        let [key, answer] = address.keys();
        let (stream, first_party) = connect(address, patience)?;
        let received = Vec::with_capacity(1 + 2 * ranks as usize);
        Ok(Attempt { stream, first_party, request: Request::new(rank, ranks, key), answer, received, patience })
    }

    /// Sends the request, and receives the descriptors. An error of kind [`ErrorKind::Other`] is a refusal in words.
    fn finish(&mut self) -> io::Result<Objects> {
        tell(&self.stream, self.request.as_bytes())?;
        self.say_if_slow();
        self.stream.set_read_timeout(Some(self.patience))?;
        let all = 1 + 2 * self.request.ranks as usize;
        while self.received.len() < all {
            let mut said = receive(&self.stream, &mut self.received, size_of::<Grant>())?;
            if said[0] != GRANTED {
                (&self.stream).take(REFUSAL_BYTES_MAX).read_to_end(&mut said)?;
                let line = String::from_utf8_lossy(&said).replace(char::is_control, " ");
                return Err(io::Error::other(line));
            }
            if said.get(1..) != Some(&self.answer[..]) {
                return Err(io::Error::other("somebody else answers at the socket"));
            }
        }
        // Fails if the first party is gone, which ends this process, too.
        let _ = tell(&self.stream, &[GRANTED]);
        let mut doorbells = std::mem::take(&mut self.received);
        let arena = doorbells.remove(0);
        // 0 means a process of another PID namespace.
        let maker = Some(self.first_party.pid).filter(|process| *process > 0);
        Ok(Objects { arena, doorbells, maker })
    }

    fn say_if_slow(&self) {
        if !answers_soon(&self.stream) {
            let (rank, seconds) = (self.request.rank, SLOW.as_secs());
            let line = format!(
                "vgasnet: rank {rank}: vgasnet_init: waits for its shared memory from vgasnetrun or the first rank of this host{} \
                 (since {seconds} s)",
                self.pid_in_words()
            );
            say(&line);
        }
    }

    /// Whether the first party closed the connection without sending anything.
    fn is_unheard(&self, error: &io::Error) -> bool {
        let is_end = matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        is_end && self.received.is_empty()
    }

    fn explain(&self, error: io::Error) -> Refusal {
        let is_of_other_user = self.first_party.uid != geteuid().as_raw();
        match error.kind() {
            ErrorKind::Other => Refusal::Misled(error.to_string()),
            ErrorKind::WouldBlock => Refusal::Late(format!(
                "waited {} s in vain for its shared memory from vgasnetrun or the first rank of this host{}; see whether that \
                 process is stopped",
                self.patience.as_secs(),
                self.pid_in_words()
            )),
            _ if self.is_unheard(&error) && is_of_other_user => Refusal::Misled(is_of_another(self.first_party)),
            _ => Refusal::Misled(format!(
                "no shared memory came through the socket: {error} (do launcher and ranks have the same version of vgasnet?)"
            )),
        }
    }

    fn pid_in_words(&self) -> String {
        let pid = Some(self.first_party.pid).filter(|pid| *pid > 0);
        pid.map_or_else(String::new, |pid| format!(", pid {pid}"))
    }
}

/// Waits for a place in the queue of the socket. Its owner may be a stranger who took the name of an ended job.
fn connect(address: &Address, patience: Duration) -> Result<(UnixStream, Peer), Refusal> {
    let nobody = |error: io::Error| Refusal::Misled(format!("nobody answers at the socket: {error}"));
    let socket = address.socket().map_err(nobody)?;
    let stream = connect_locally(&socket, patience).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            Refusal::Late(format!("its socket had no room for this rank within {} s", patience.as_secs()))
        }
        _ => nobody(error),
    })?;
    let peer = Peer::of(&stream).map_err(nobody)?;
    if peer.may_lead() { Ok((stream, peer)) } else { Err(Refusal::Misled(is_of_another(peer))) }
}

fn is_of_another(peer: Peer) -> String {
    format!("the job of {peer} takes no rank of uid {}; start both as one user", geteuid())
}

/// Passes a file of a rank to the first party at this [`crate::Rendezvous::address`].
///
/// # Errors
/// It is gone.
pub(crate) fn entrust(address: &str, rank: u32, ranks: u32, file: BorrowedFd<'_>) -> io::Result<()> {
    let address = Address::parse(address.as_bytes()).map_err(io::Error::other)?;
    let request = Request::new(rank, ranks, address.keys()[0]);
    let connected = || connect(&address, SLOW).map_err(|refusal| io::Error::other(refusal.to_string()));
    let attempt = || io::Result::Ok(send(&connected()?.0, request.as_bytes(), &[file.as_raw_fd()])?);
    // A second attempt in case the process was stopped in between, as in `ask`.
    attempt().or_else(|error| if error.kind() == ErrorKind::BrokenPipe { attempt() } else { Err(error) }).map(drop)
}

/// Waits up to [`SLOW`] for something to read, the end of the stream included. Returns whether there is.
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
