//! Distribution of the arena and the doorbells to the ranks of a host: the first party of the host creates them, and
//! hands them out through an abstract unix socket. In a job on one machine the first party is the launcher, otherwise
//! the first rank of the host.
//!
//! ```text
//! rank ── connect, Request ─────────────▶ first party
//!      ◀───────────── a line, closed ────  the rank does not exist, or another process is that rank
//!      ◀── Grant, descriptors … ─────────  else: as many messages as it takes
//!      ── a byte ───────────────────────▶  the rank has them all
//! ```
//!
//! The first party keeps the connection open until it ends: a rank of a killed launcher ends itself.
//!
//! A rank with a file connects once more, with a request carrying the file's descriptor. It gets no answer.
//!
//! Anybody on the host can see the name of the socket and connect. The first party checks the credentials of a peer
//! before anything else, and closes the connections of other users at once ([`Strangers`]). Each end then proves itself
//! by its half of a key known only to the ranks. Visitors are served concurrently, and no call waits: a silent or
//! stopped visitor delays nobody else. A turn of [`Rendezvous::serve`] is bounded, so that its caller stays responsive
//! to signals.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::unistd::ftruncate;
use vgasnet_conduit::ConduitError;
use zerocopy::IntoBytes;

use crate::arena::Control;
use crate::conduit::SmpConduit;
use crate::descriptors::{BATCH, receive, send, tell};
use crate::handshake::{Address, GRANTED, Grant, OTHER_VERSION, REQUEST_BYTES_MAX, Request};
use crate::job::{JobMember, JobVariable, Objects};
use crate::peers::{Peer, Strangers, listen_locally};
use crate::visitor::Visitor;
use vgasnet_protocol::RankState;

/// Time-out for all ranks of a host to arrive, and for each to take its descriptors.
const PATIENCE: Duration = Duration::from_secs(60);

/// A party this late has been stopped, and possibly the others too: the time-outs start again.
const LATE: Duration = Duration::from_secs(1);

/// Retry interval when the system allows no more descriptors in flight because of another job.
const HELD_UP: Duration = Duration::from_millis(5);

/// Maximum number of connections examined in one turn.
const ACCEPTED_MAX: usize = 64;

/// Maximum number of visitors not yet identified. Others wait in the queue of the socket.
const UNKNOWN_MAX: usize = 64;

/// Maximum number of descriptors in flight, since the kernel holds them in its memory; a single rank may exceed it.
const UNDER_WAY_MAX: usize = 64 << 10;

/// The outcome for an arrived rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visit {
    /// It has received everything.
    Joined {
        /// The rank.
        rank: u32,
    },
    /// It has passed a file.
    Entrusted,
    /// It was granted, but did not receive everything.
    Lost {
        /// The rank.
        rank: u32,
        /// In words.
        why: String,
    },
}

/// Called with a rank and its process, in this process's namespace; 0 if invisible.
pub type Adopt<'a> = dyn FnMut(u32, u32) -> io::Result<()> + 'a;

/// The identity of a visitor.
enum Identity {
    /// A rank, from now on.
    New(u32),
    Known(u32),
    /// A rank that has passed a file.
    File,
}

/// The shared objects of the ranks of a host, held by the first party.
pub struct Rendezvous {
    listener: UnixListener,
    address: Address,
    objects: Objects,
    control: Control,
    ranks: u32,
    /// Readable when a connection or a visitor needs service. Their descriptors identify them.
    arrivals: Epoll,
    /// By descriptor number.
    visitors: BTreeMap<RawFd, Visitor>,
    strangers: Strangers,
    /// The connections of joined ranks, which hang up when this process ends.
    joined: Vec<UnixStream>,
    /// Files passed by ranks.
    files: Vec<OwnedFd>,
}

impl Rendezvous {
    /// Creates the shared objects of `ranks` ranks of this host, and opens the socket.
    ///
    /// # Errors
    /// The system refuses memory, descriptors or a socket.
    pub fn open(ranks: u32) -> io::Result<Self> {
        let objects = Objects::create(ranks)?;
        let control = Control::open(objects.arena.as_fd(), ranks).map_err(io::Error::other)?;
        let address = Address::random()?;
        let listener = listen_locally(&address.socket()?)?;
        let arrivals = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        arrivals.add(&listener, interest(&listener, true))?;
        let (visitors, strangers, joined, files) = Default::default();
        Ok(Rendezvous { listener, address, objects, control, ranks, arrivals, visitors, strangers, joined, files })
    }

    /// The address and key of the socket, for [`crate::join`]; 73 bytes, secret to the ranks.
    pub fn address(&self) -> &str {
        &self.address.text
    }

    /// The value of [`crate::JOB_VARIABLE`] for the process to become `rank`.
    pub fn variable(&self, rank: u32) -> String {
        JobVariable { rank, ranks: self.ranks, socket: self.address() }.to_string()
    }

    /// The state of `rank`.
    pub fn state(&self, rank: u32) -> RankState {
        self.control.block(rank).state()
    }

    /// The rejected processes.
    pub fn strangers(&self) -> &Strangers {
        &self.strangers
    }

    /// Time at which [`Rendezvous::serve`] is needed even without arrivals.
    pub fn deadline(&self) -> Option<Instant> {
        let held_up = self.visitors.values().any(|visitor| visitor.is_held_up).then(|| Instant::now() + HELD_UP);
        held_up.into_iter().chain(self.visitors.values().filter_map(Visitor::late)).min()
    }

    /// Serves visitors for a bounded time, without waiting. [`AsFd::as_fd`] stays readable if work is left. Returns the
    /// outcomes of ranks. `adopt` gets the rank and process of each new rank before the rank receives anything, so no
    /// rank proceeds unknown to the first party.
    ///
    /// # Errors
    /// The system refuses a connection: too many files are open. Or `adopt` fails.
    pub fn serve(&mut self, adopt: &mut Adopt<'_>) -> io::Result<Vec<Visit>> {
        let mut ready = [EpollEvent::empty(); ACCEPTED_MAX];
        let count = self.arrivals.wait(&mut ready, EpollTimeout::ZERO).or_else(|error| match error {
            Errno::EINTR => Ok(0),
            error => Err(error),
        })?;
        let mut due: Vec<RawFd> = ready[..count].iter().map(|event| event.data() as RawFd).collect();
        if due.contains(&self.listener.as_raw_fd()) {
            due.extend(self.accept()?);
        }
        due.extend(self.visitors.iter().filter(|(_, visitor)| visitor.is_held_up).map(|(at, _)| *at));
        let mut visits = Vec::new();
        for at in due {
            visits.extend(self.attend(at, adopt)?);
        }
        self.drop_silent(Instant::now());
        self.listen_or_not()?;
        Ok(visits)
    }

    /// Accepts some of the connected processes with the right to take part. Returns them.
    fn accept(&mut self) -> io::Result<Vec<RawFd>> {
        let mut new = Vec::new();
        for _ in 0..ACCEPTED_MAX {
            if self.unknown() >= UNKNOWN_MAX {
                break;
            }
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => continue,
                Err(error) => return Err(error),
            };
            let Ok(peer) = Peer::of(&stream) else { continue };
            if self.strangers.include(peer) {
                // The stream is dropped, and thus closed.
                continue;
            }
            stream.set_nonblocking(true)?;
            self.arrivals.add(&stream, interest(&stream, true))?;
            new.push(stream.as_raw_fd());
            self.visitors.insert(stream.as_raw_fd(), Visitor::new(stream, peer));
        }
        Ok(new)
    }

    fn unknown(&self) -> usize {
        self.visitors.values().filter(|visitor| visitor.is_unknown()).count()
    }

    /// Continues with a visitor, if it exists. Returns the outcome of its rank. The error is `adopt`'s.
    fn attend(&mut self, at: RawFd, adopt: &mut Adopt<'_>) -> io::Result<Option<Visit>> {
        let Some(mut visitor) = self.visitors.remove(&at) else { return Ok(None) };
        let done = match self.identify(&mut visitor) {
            Ok(Identity::New(rank)) => {
                adopt(rank, visitor.peer.pid)?;
                self.advance(&mut visitor, rank)
            }
            Ok(Identity::Known(rank)) => self.advance(&mut visitor, rank),
            Ok(Identity::File) => Ok(Visit::Entrusted),
            Err(error) => Err(error),
        };
        if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            self.visitors.insert(at, visitor);
            return Ok(None);
        }
        self.forget(&visitor);
        Ok(match done {
            Ok(visit) => {
                if visitor.rank.is_some() {
                    self.joined.push(visitor.stream);
                }
                Some(visit)
            }
            Err(error) => visitor.rank.map(|rank| Visit::Lost { rank, why: error.to_string() }),
        })
    }

    /// Identifies a visitor. [`ErrorKind::WouldBlock`]: not yet possible; another error ends it.
    fn identify(&mut self, visitor: &mut Visitor) -> io::Result<Identity> {
        if let Some(rank) = visitor.rank {
            return Ok(Identity::Known(rank));
        }
        let Some(rank) = self.answer(&visitor.stream)? else { return Ok(Identity::File) };
        visitor.since = Instant::now();
        Ok(Identity::New(*visitor.rank.insert(rank)))
    }

    /// Continues with a rank. Errors are as for [`Rendezvous::identify`].
    fn advance(&self, visitor: &mut Visitor, rank: u32) -> io::Result<Visit> {
        self.hand_over(visitor)?;
        visitor.confirm()?;
        Ok(Visit::Joined { rank })
    }

    fn drop_silent(&mut self, now: Instant) {
        let is_silent = |visitor: &Visitor| visitor.late().is_some_and(|late| now >= late);
        self.visitors.values().filter(|visitor| is_silent(visitor)).for_each(|visitor| self.forget(visitor));
        self.visitors.retain(|_, visitor| !is_silent(visitor));
    }

    /// A visitor's stream is about to be closed.
    fn forget(&self, visitor: &Visitor) {
        // A forked child sharing the stream would otherwise keep it registered.
        let _ = self.arrivals.delete(&visitor.stream);
    }

    /// Listens for further connections only while there is room for one.
    fn listen_or_not(&self) -> io::Result<()> {
        let has_room = self.unknown() < UNKNOWN_MAX;
        Ok(self.arrivals.modify(&self.listener, &mut interest(&self.listener, has_room))?)
    }

    /// Reads a request, and makes the process a rank or sends it the reason of a refusal. Returns the rank; `None` for
    /// a file.
    fn answer(&mut self, stream: &UnixStream) -> io::Result<Option<u32>> {
        let mut files = Vec::new();
        let request = receive(stream, &mut files, REQUEST_BYTES_MAX)?;
        let request = match Request::read(&request) {
            Ok(request) => request,
            Err(is_other_version) => {
                if is_other_version {
                    tell(stream, OTHER_VERSION.as_bytes())?;
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
            tell(stream, why.as_bytes())?;
            return Err(io::Error::other(why));
        }
        Ok(Some(request.rank))
    }

    /// Truncates the files passed by ranks, after all ranks have ended.
    pub fn give_space_back(&mut self) {
        for file in self.files.drain(..) {
            // Fails for a file that cannot be truncated; its space waits for its other holders.
            let _ = ftruncate(&file, 0);
        }
    }

    /// Makes the process a rank, or returns the reason it cannot be.
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

    /// Sends all descriptors, or as many as the system and the bound allow now.
    fn hand_over(&self, visitor: &mut Visitor) -> io::Result<()> {
        let doorbells = self.objects.doorbells.iter().map(AsRawFd::as_raw_fd);
        let all: Vec<RawFd> = std::iter::once(self.objects.arena.as_raw_fd()).chain(doorbells).collect();
        let grant = Grant { granted: GRANTED, key: self.address.keys()[1] };
        let now = Instant::now();
        let others: usize = self.visitors.values().map(|other| other.descriptors_in_flight(now)).sum();
        for batch in all[visitor.sent..].chunks(BATCH) {
            let has_room = others == 0 || others + visitor.sent + batch.len() <= UNDER_WAY_MAX;
            let sent = if has_room { send(&visitor.stream, grant.as_bytes(), batch) } else { Err(Errno::EAGAIN) };
            visitor.is_held_up = matches!(sent, Err(Errno::EAGAIN | Errno::ETOOMANYREFS));
            sent.map_err(|error| if visitor.is_held_up { Errno::EAGAIN } else { error })?;
            visitor.sent += batch.len();
        }
        Ok(())
    }

    /// Makes this process the first rank of the host, and waits until all others have arrived.
    ///
    /// # Errors
    /// Not all arrive within a minute, or one does not receive everything.
    pub fn admit(mut self) -> Result<SmpConduit, ConduitError> {
        let own = Request::new(0, self.ranks, self.address.keys()[0]);
        self.grant(own).map_err(ConduitError)?;
        let mut late = Instant::now() + PATIENCE;
        let mut missing: Vec<u32> = (1..self.ranks).collect();
        while !missing.is_empty() {
            let visits = self.serve(&mut |_, _| Ok(()));
            let visits = visits.map_err(|error| ConduitError(format!("ranks of this host cannot come: {error}")))?;
            let has_visits = !visits.is_empty();
            for visit in visits {
                match visit {
                    Visit::Joined { rank } => missing.retain(|one| *one != rank),
                    Visit::Entrusted => {}
                    Visit::Lost { rank, why } => {
                        let what = format!("rank {rank} of this host did not get its shared memory: {why}");
                        return Err(ConduitError(what));
                    }
                }
            }
            if !has_visits && !has_time(&mut late) {
                return Err(ConduitError(self.name_missing(&missing)));
            }
            if !has_visits {
                self.sleep_until(late);
            }
        }
        Ok(SmpConduit::member(JobMember::of(0, self.ranks, self.objects).map_err(ConduitError)?))
    }

    /// Names the ranks of this host awaited in vain.
    fn name_missing(&self, missing: &[u32]) -> String {
        const SHOWN_MAX: usize = 8;
        let name = |rank: &u32| {
            let visitor = self.visitors.values().find(|visitor| visitor.rank == Some(*rank));
            visitor.map_or_else(|| rank.to_string(), |visitor| format!("{rank} (pid {}, stopped?)", visitor.peer.pid))
        };
        let shown: Vec<_> = missing.iter().take(SHOWN_MAX).map(name).collect();
        let more = missing.len().saturating_sub(SHOWN_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (shown, seconds) = (shown.join(", "), PATIENCE.as_secs());
        format!(
            "waited {seconds} s in vain for ranks of this host, by their order here: {shown}{more}{}",
            self.strangers
        )
    }

    fn sleep_until(&self, end: Instant) {
        let left = self.deadline().map_or(end, |at| at.min(end)).saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        // After an interrupting signal the loop looks, too.
        let _ = poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], timeout);
    }
}

impl AsFd for Rendezvous {
    /// Readable when [`Rendezvous::serve`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrivals.0.as_fd()
    }
}

/// Interest in readability, or only in the end of a descriptor.
fn interest(descriptor: &impl AsRawFd, is_readable: bool) -> EpollEvent {
    let flags = if is_readable { EpollFlags::EPOLLIN } else { EpollFlags::empty() };
    EpollEvent::new(flags, descriptor.as_raw_fd() as u64)
}

/// Whether `late` has not passed yet. After a stop of this process, the time starts again.
fn has_time(late: &mut Instant) -> bool {
    let now = Instant::now();
    if now > *late + LATE {
        *late = now + PATIENCE;
    }
    now < *late
}

#[cfg(all(test, not(loom)))]
#[path = "rendezvous_tests.rs"]
mod tests;
