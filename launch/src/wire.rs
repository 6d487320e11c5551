//! The messages between an agent and the supervisor.
//!
//! A message is its length (two bytes, without themselves), its [`Layout`], and at most one text. Numbers are little-endian, whatever the
//! hosts are.

use vgasnet_smp::RankState;
use zerocopy::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::exit_policy::{End, Order};

/// The longest message, without its length, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1024;

/// The longest text in a message, in bytes; longer ones are cut.
const TEXT_BYTES_MAX: usize = 512;

/// By which an agent is known to its supervisor.
pub(crate) type Cookie = [u8; 16];

/// From an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first message, with the number that the other launcher has given the process.
    Hello { cookie: Cookie, rank: Option<u32>, host: String },
    /// The child runs.
    Started { pid: u32 },
    /// There is no child, for this reason.
    CannotStart { status: i32, why: String },
    /// The child says so.
    State { state: RankState, rank: Option<u32> },
    /// The child has ended.
    Ended(End),
    /// Nothing, but the agent is there.
    Beat,
}

/// From the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// The answer to a hello: start the child. A supervisor that is silent for so long is lost.
    Welcome { timeout_s: u32 },
    /// An order for the child.
    Order(Order),
    /// The job is over: end.
    Release,
    /// Nothing, but the supervisor is there.
    Beat,
}

/// The bytes that came are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A message, after its length and before its text. Fields that its kind does not have are 0.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Layout {
    kind: U32,
    number: I32,
    state: U64,
    /// `u32::MAX` for none.
    rank: U32,
    cookie: Cookie,
}

impl Layout {
    fn of_kind(kind: u32) -> Layout {
        Layout { kind: kind.into(), ..Layout::new_zeroed() }
    }

    fn of_number(kind: u32, number: i32) -> Layout {
        Layout { number: number.into(), ..Layout::of_kind(kind) }
    }

    fn with_rank(self, rank: Option<u32>) -> Layout {
        Layout { rank: rank.unwrap_or(u32::MAX).into(), ..self }
    }

    fn rank(&self) -> Option<u32> {
        Some(self.rank.get()).filter(|rank| *rank != u32::MAX)
    }
}

/// A message.
pub(crate) trait Message: Sized {
    /// Its layout and text.
    fn write(&self) -> (Layout, &str);

    /// The message with this layout and text, if there is such a kind.
    fn read(layout: &Layout, text: String) -> Option<Self>;

    /// The whole message with its length.
    fn encode(&self) -> Vec<u8> {
        let (layout, text) = self.write();
        let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let len_bytes = U16::new((size_of::<Layout>() + end) as u16);
        [len_bytes.as_bytes(), layout.as_bytes(), &text.as_bytes()[..end]].concat()
    }

    /// Takes the first message out of the bytes that have come. Nothing if it is not complete yet.
    fn take(bytes: &mut Vec<u8>) -> Result<Option<Self>, Malformed> {
        let Ok((len_bytes, rest)) = U16::read_from_prefix(bytes) else { return Ok(None) };
        let len_bytes = usize::from(len_bytes.get());
        if !(size_of::<Layout>()..=MESSAGE_BYTES_MAX).contains(&len_bytes) {
            return Err(Malformed);
        }
        let Some(message) = rest.get(..len_bytes) else { return Ok(None) };
        let (layout, text) = Layout::read_from_prefix(message).expect("it is as long as that at least");
        let message = Self::read(&layout, String::from_utf8_lossy(text).into_owned()).ok_or(Malformed)?;
        bytes.drain(..2 + len_bytes);
        Ok(Some(message))
    }
}

impl Message for Event {
    fn write(&self) -> (Layout, &str) {
        match self {
            Event::Hello { cookie, rank, host } => {
                (Layout { cookie: *cookie, ..Layout::of_kind(1).with_rank(*rank) }, host)
            }
            Event::Started { pid } => (Layout::of_number(2, *pid as i32), ""),
            Event::CannotStart { status, why } => (Layout::of_number(3, *status), why),
            Event::State { state, rank } => {
                (Layout { state: state.encode().into(), ..Layout::of_kind(4).with_rank(*rank) }, "")
            }
            Event::Ended(End::Status(status)) => (Layout::of_number(5, *status), ""),
            Event::Ended(End::Signal(signal)) => (Layout::of_number(6, *signal), ""),
            Event::Beat => (Layout::of_kind(7), ""),
        }
    }

    fn read(layout: &Layout, text: String) -> Option<Self> {
        let number = layout.number.get();
        Some(match layout.kind.get() {
            1 => Event::Hello { cookie: layout.cookie, rank: layout.rank(), host: text },
            2 => Event::Started { pid: number as u32 },
            3 => Event::CannotStart { status: number, why: text },
            4 => Event::State { state: RankState::decode(layout.state.get()), rank: layout.rank() },
            5 => Event::Ended(End::Status(number)),
            6 => Event::Ended(End::Signal(number)),
            7 => Event::Beat,
            _ => return None,
        })
    }
}

impl Message for Command {
    fn write(&self) -> (Layout, &str) {
        let layout = match *self {
            Command::Welcome { timeout_s } => Layout::of_number(1, timeout_s as i32),
            Command::Order(Order::Forward(signal)) => Layout::of_number(2, signal),
            Command::Order(Order::Quit) => Layout::of_kind(3),
            Command::Order(Order::Kill) => Layout::of_kind(4),
            Command::Release => Layout::of_kind(5),
            Command::Beat => Layout::of_kind(6),
        };
        (layout, "")
    }

    fn read(layout: &Layout, _text: String) -> Option<Self> {
        Some(match layout.kind.get() {
            1 => Command::Welcome { timeout_s: layout.number.get() as u32 },
            2 => Command::Order(Order::Forward(layout.number.get())),
            3 => Command::Order(Order::Quit),
            4 => Command::Order(Order::Kill),
            5 => Command::Release,
            6 => Command::Beat,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    /// The message that comes of the bytes of another one.
    fn read_back<M: Message + Debug>(message: &M) -> M {
        M::take(&mut message.encode()).expect("it is well-formed").expect("it is complete")
    }

    /// Every message comes through whole, and no part of it is taken for one.
    fn survive<M: Message + PartialEq + Debug>(messages: &[M]) {
        let mut stream = Vec::new();
        for message in messages {
            let bytes = message.encode();
            for end in 0..bytes.len() {
                let mut part = bytes[..end].to_vec();
                assert_eq!(M::take(&mut part), Ok(None), "{message:?}");
                assert_eq!(part.len(), end);
            }
            stream.extend(bytes);
        }
        for message in messages {
            assert_eq!(M::take(&mut stream).as_ref(), Ok(&Some(read_back(message))));
            assert_eq!(&read_back(message), message);
        }
        assert_eq!(M::take(&mut stream), Ok(None));
    }

    #[test]
    fn events_survive_the_way() {
        survive(&[
            Event::Hello { cookie: [7; 16], rank: Some(3), host: "node-é".to_owned() },
            Event::Hello { cookie: [0; 16], rank: None, host: String::new() },
            Event::Started { pid: 12345 },
            Event::CannotStart { status: 127, why: "no such program".to_owned() },
            Event::State { state: RankState::Exiting(-1), rank: Some(4095) },
            Event::State { state: RankState::Initialised, rank: None },
            Event::Ended(End::Status(-1)),
            Event::Ended(End::Signal(9)),
            Event::Beat,
        ]);
    }

    #[test]
    fn commands_survive_the_way() {
        survive(&[
            Command::Welcome { timeout_s: 3600 },
            Command::Order(Order::Forward(15)),
            Command::Order(Order::Quit),
            Command::Order(Order::Kill),
            Command::Release,
            Command::Beat,
        ]);
    }

    #[test]
    fn anything_else_is_malformed() {
        for bytes in [&[0, 0][..], &[1, 0, 99], &[2, 0, 7, 0], &[3, 0, 2, 1, 0], &[1, 5], b"GET / HTTP/1.1\r\n"] {
            assert_eq!(Event::take(&mut bytes.to_vec()), Err(Malformed), "{bytes:?}");
        }
        let mut unknown = Event::Beat.encode();
        unknown[2] = 99;
        assert_eq!(Event::take(&mut unknown), Err(Malformed));
    }

    #[test]
    fn long_texts_are_cut() {
        let event = Event::CannotStart { status: 1, why: "é".repeat(2000) };
        assert_eq!(read_back(&event), Event::CannotStart { status: 1, why: "é".repeat(TEXT_BYTES_MAX / 2) });
    }
}
