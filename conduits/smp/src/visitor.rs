//! A process that has connected to the first party, and how far it has come.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::peers::Peer;

/// A visitor that has not sent a whole request for so long is dropped. Ranks send it as soon as they are connected; one that was
/// stopped in between comes again.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);

/// Descriptors that were sent so long ago do not count as on their way: their receiver stands still.
const STANDSTILL: Duration = Duration::from_secs(1);

/// A visitor.
pub(crate) struct Visitor {
    pub(crate) stream: UnixStream,
    pub(crate) peer: Peer,
    /// When it connected, or was made a rank.
    pub(crate) since: Instant,
    /// The rank that it has been granted.
    pub(crate) rank: Option<u32>,
    /// How many descriptors are on their way.
    pub(crate) sent: usize,
    /// More are to be sent, as soon as the system or the others leave room.
    pub(crate) is_held_up: bool,
}

impl Visitor {
    pub(crate) fn new(stream: UnixStream, peer: Peer) -> Visitor {
        Visitor { stream, peer, since: Instant::now(), rank: None, sent: 0, is_held_up: false }
    }

    /// Whether nobody knows yet whether it is a rank of the job.
    pub(crate) fn is_unknown(&self) -> bool {
        self.rank.is_none()
    }

    /// When it has been silent for too long; none for a rank.
    pub(crate) fn late(&self) -> Option<Instant> {
        self.is_unknown().then(|| self.since + SILENCE)
    }

    /// How many descriptors its socket has, of a rank that is about to take them.
    pub(crate) fn descriptors_under_way(&self, now: Instant) -> usize {
        if now < self.since + STANDSTILL { self.sent } else { 0 }
    }

    /// Hears that a rank has all its descriptors. An error of the kind [`ErrorKind::WouldBlock`] says that it takes longer.
    pub(crate) fn confirm(&mut self) -> io::Result<()> {
        match self.stream.read(&mut [0])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
