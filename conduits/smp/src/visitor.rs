//! A process connected to the first party, and its progress.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::peers::Peer;

/// A visitor without a whole request after this time is dropped. Ranks send it right after connecting; one stopped in
/// between connects again.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);

/// Descriptors sent longer ago do not count as in flight: their receiver is stopped.
const STANDSTILL: Duration = Duration::from_secs(1);

/// A visitor.
pub(crate) struct Visitor {
    pub(crate) stream: UnixStream,
    pub(crate) peer: Peer,
    /// Time of its connection, or of becoming a rank.
    pub(crate) since: Instant,
    /// The granted rank.
    pub(crate) rank: Option<u32>,
    /// Number of descriptors in flight.
    pub(crate) sent: usize,
    /// More are to be sent, as soon as the system or the bound leaves room.
    pub(crate) is_held_up: bool,
}

impl Visitor {
    pub(crate) fn new(stream: UnixStream, peer: Peer) -> Visitor {
        Visitor { stream, peer, since: Instant::now(), rank: None, sent: 0, is_held_up: false }
    }

    /// Whether it is not yet identified as a rank of the job.
    pub(crate) fn is_unknown(&self) -> bool {
        self.rank.is_none()
    }

    /// Deadline for its request; `None` for a rank.
    pub(crate) fn late(&self) -> Option<Instant> {
        self.is_unknown().then(|| self.since + SILENCE)
    }

    /// Number of descriptors in its socket, if its rank is actively taking them.
    pub(crate) fn descriptors_in_flight(&self, now: Instant) -> usize {
        if now < self.since + STANDSTILL { self.sent } else { 0 }
    }

    /// Receives a rank's confirmation of all descriptors. An error of kind [`ErrorKind::WouldBlock`] means not yet.
    pub(crate) fn confirm(&mut self) -> io::Result<()> {
        match self.stream.read(&mut [0])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
