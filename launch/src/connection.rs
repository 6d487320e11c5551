//! A stream of messages with non-blocking writes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use vgasnet_protocol::wire::{Layout, Malformed};

use crate::address::may_be_slow;
use crate::wire::{frame, take};

/// Maximum bytes waiting to be sent. A peer exceeding it is about to be given up.
const OUTGOING_BYTES_MAX: usize = 64 << 10;

/// The two ways to reach a peer.
#[derive(Debug)]
pub(crate) enum Stream {
    /// On the same host.
    Unix(UnixStream),
    /// To anywhere.
    Tcp(TcpStream),
}

impl Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn make_nonblocking(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(true),
            Stream::Tcp(stream) => stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)),
        }
    }
}

/// Maximum bytes read at once, so that a constantly sending peer delays nobody.
const FILL_BYTES_MAX: usize = 64 << 10;

/// Maximum bytes read from a peer before its hello; at least one message.
const HELLO_BYTES_MAX: usize = 4 << 10;

/// Messages in, messages out.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    is_open: bool,
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> io::Result<Connection> {
        stream.make_nonblocking()?;
        Ok(Connection::accepted(stream))
    }

    /// A connection by a stream that is non-blocking already.
    pub(crate) fn accepted(stream: Stream) -> Connection {
        Connection { stream, incoming: Vec::new(), outgoing: Vec::new(), is_open: true }
    }

    /// Has the system send messages at once, not with later ones.
    pub(crate) fn hurry(&self) {
        if let Stream::Tcp(stream) = &self.stream {
            // Fails for a broken connection, whose end is read next.
            let _ = stream.set_nodelay(true);
        }
    }

    /// Lets messages take any time, now that the peer has answered.
    pub(crate) fn may_be_slow(&self) {
        if let Stream::Tcp(stream) = &self.stream {
            may_be_slow(stream);
        }
    }

    /// Whether the peer may still send.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether bytes wait to be sent.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.is_open && !self.outgoing.is_empty()
    }

    /// The peer's address, if it may be on another host.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        match &self.stream {
            Stream::Unix(_) => None,
            Stream::Tcp(stream) => stream.peer_addr().ok().map(|address| address.ip().to_canonical()),
        }
    }

    /// Sends a message, now or when there is room.
    pub(crate) fn send(&mut self, message: &impl Layout) {
        self.send_text(message, "");
    }

    /// As [`Connection::send`], with a text.
    pub(crate) fn send_text(&mut self, message: &impl Layout, text: &str) {
        if self.is_open && self.outgoing.len() < OUTGOING_BYTES_MAX {
            self.outgoing.extend(frame(message, text));
            self.flush();
        }
    }

    /// Sends a heartbeat, unless other messages are pending: they serve as one.
    pub(crate) fn beat(&mut self, beat: &impl Layout) {
        if self.outgoing.is_empty() {
            self.send(beat);
        }
    }

    /// Sends pending bytes, as far as there is room.
    pub(crate) fn flush(&mut self) {
        while self.has_outgoing() {
            match self.stream.write(&self.outgoing) {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The peer's earlier messages can still be read, and reading will report its end.
                Err(_) => self.outgoing.clear(),
            }
        }
    }

    /// Reads the bytes available. Returns whether there were any.
    pub(crate) fn fill(&mut self) -> bool {
        self.fill_up_to(FILL_BYTES_MAX)
    }

    /// As [`Connection::fill`], from an unauthenticated peer: an agent's hello is short.
    pub(crate) fn fill_hello(&mut self) -> bool {
        self.fill_up_to(HELLO_BYTES_MAX.saturating_sub(self.incoming.len()))
    }

    fn fill_up_to(&mut self, more_bytes: usize) -> bool {
        let mut buffer = [0; 4096];
        let mut has_come = false;
        let limit_bytes = self.incoming.len() + more_bytes;
        while self.is_open && self.incoming.len() < limit_bytes {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.is_open = false,
                Ok(count) => {
                    self.incoming.extend_from_slice(&buffer[..count]);
                    has_come = true;
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.is_open = false,
            }
        }
        has_come
    }

    /// Whether these bytes are among the unconsumed ones.
    pub(crate) fn has_said(&self, bytes: &[u8]) -> bool {
        self.incoming.windows(bytes.len()).any(|said| said == bytes)
    }

    /// The next complete message. Malformed bytes close the connection.
    pub(crate) fn next<M: Layout>(&mut self) -> Option<M> {
        self.next_with_text().map(|(message, _)| message)
    }

    /// As [`Connection::next`], with the message's text.
    pub(crate) fn next_with_text<M: Layout>(&mut self) -> Option<(M, String)> {
        match take(&mut self.incoming) {
            Ok(message) => message,
            Err(Malformed) => {
                self.is_open = false;
                self.incoming.clear();
                None
            }
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit_policy::Order;
    use crate::wire::{Command, Event};

    #[test]
    fn what_was_said_before_the_end_is_heard() {
        let (near, far) = UnixStream::pair().expect("sockets");
        let mut far = Connection::new(Stream::Unix(far)).expect("a connection");
        let mut near = Connection::new(Stream::Unix(near)).expect("a connection");
        far.send(&Command::Release);
        far.beat(&Command::Beat);
        drop(far);
        assert!(near.fill());
        assert_eq!(near.next(), Some(Command::Release));
        assert_eq!(near.next(), Some(Command::Beat));
        assert_eq!(near.next::<Command>(), None);
        assert!(!near.fill());
        assert!(!near.is_open());
    }

    #[test]
    fn a_peer_that_does_not_listen_holds_nobody_up() {
        let (near, _far) = UnixStream::pair().expect("sockets");
        let mut near = Connection::new(Stream::Unix(near)).expect("a connection");
        for _ in 0..1_000_000 {
            near.send(&Command::Order(Order::Forward(10)));
        }
        assert!(near.has_outgoing() && near.outgoing.len() <= OUTGOING_BYTES_MAX + 64);
    }

    #[test]
    fn a_peer_that_says_much_is_heard_in_parts() {
        let (near, far) = UnixStream::pair().expect("sockets");
        let mut near = Connection::new(Stream::Unix(near)).expect("a connection");
        let mut far = Connection::new(Stream::Unix(far)).expect("a connection");
        let beats = 100_000;
        let mut heard = 0;
        far.outgoing = frame(&Command::Beat, "").repeat(beats);
        while heard < beats {
            far.flush();
            near.fill();
            assert!(near.incoming.len() <= FILL_BYTES_MAX + 4096);
            while near.next::<Command>().is_some() {
                heard += 1;
            }
        }
        assert!(near.is_open());
    }

    /// Messages, valid and altered, in pieces of any length: the connection yields messages or closes.
    #[test]
    fn bytes_of_any_kind_are_messages_or_the_end() {
        vgasnet_fuzzing::run("-p vgasnet-launch --lib bytes_of_any_kind", 50_000, |random| {
            let (near, mut far) = UnixStream::pair().expect("sockets");
            let mut near = Connection::new(Stream::Unix(near)).expect("a connection");
            let mut inputs = 0;
            while near.is_open() && inputs < 200 {
                inputs += 1;
                let bytes = crate::wire::tests::random_message(random);
                let (first, second) = bytes.split_at(random.usize(0..=bytes.len()));
                for part in [first, second] {
                    far.write_all(part).expect("somebody listens");
                    near.fill();
                    while near.next_with_text::<Event>().is_some() {}
                    assert!(near.incoming.len() <= 2 + crate::wire::MESSAGE_BYTES_MAX);
                }
            }
            inputs
        });
    }
}
