//! The messages between an agent and the supervisor.
//!
//! A message is its length (two bytes, without themselves), a byte for its kind, the layout of its fields, and at most one text.
//! Numbers are little-endian, whatever the hosts are.

use vgasnet_smp::RankState;
use zerocopy::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

use crate::exit_policy::End;

/// The longest message, without its length, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1024;

/// The longest text in a message, in bytes; longer ones are cut.
const TEXT_BYTES_MAX: usize = 512;

/// By which an agent is known to its supervisor.
pub(crate) type Cookie = [u8; 16];

/// From an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first message: who it is, and which rank its child will probably be.
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
    /// A signal for the child.
    Forward(i32),
    /// The child shall clean up and end.
    Quit,
    /// The child shall be killed.
    Kill,
    /// The job is over: end.
    Release,
    /// Nothing, but the supervisor is there.
    Beat,
}

/// The bytes that came are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// What comes before the fields of every message.
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct Header {
    len_bytes: U16,
    kind: u8,
}

/// The fields of [`Event::Hello`].
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct HelloFields {
    cookie: Cookie,
    rank: RankField,
}

/// The fields of [`Event::State`].
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct StateFields {
    state: U64,
    rank: RankField,
}

/// A rank, or `u32::MAX` for none.
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct RankField(U32);

impl From<Option<u32>> for RankField {
    fn from(rank: Option<u32>) -> RankField {
        RankField(rank.unwrap_or(u32::MAX).into())
    }
}

impl From<RankField> for Option<u32> {
    fn from(RankField(rank): RankField) -> Option<u32> {
        Some(rank.get()).filter(|rank| *rank != u32::MAX)
    }
}

/// A message.
pub(crate) trait Message: Sized {
    /// The whole message with its length.
    fn encode(&self) -> Vec<u8>;

    /// The message of this kind with these fields and text.
    fn decode(kind: u8, body: &[u8]) -> Result<Self, Malformed>;

    /// Takes the first message out of the bytes that have come. Nothing if it is not complete yet.
    fn take(bytes: &mut Vec<u8>) -> Result<Option<Self>, Malformed> {
        let Ok((len_bytes, _)) = U16::read_from_prefix(bytes) else { return Ok(None) };
        let len_bytes = usize::from(len_bytes.get());
        if len_bytes == 0 || len_bytes > MESSAGE_BYTES_MAX {
            return Err(Malformed);
        }
        let Some(message) = bytes.get(2..2 + len_bytes) else { return Ok(None) };
        let message = Self::decode(message[0], &message[1..])?;
        bytes.drain(..2 + len_bytes);
        Ok(Some(message))
    }
}

/// A message of this kind, with these fields and this text.
fn message(kind: u8, fields: impl IntoBytes + Immutable, text: &str) -> Vec<u8> {
    let fields = fields.as_bytes();
    let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let len_bytes = U16::new((1 + fields.len() + end) as u16);
    [Header { len_bytes, kind }.as_bytes(), fields, &text.as_bytes()[..end]].concat()
}

/// The fields at the beginning of a body, and the text after them.
fn with_text<T: FromBytes>(body: &[u8]) -> Result<(T, String), Malformed> {
    let (fields, text) = T::read_from_prefix(body).map_err(|_| Malformed)?;
    Ok((fields, String::from_utf8_lossy(text).into_owned()))
}

/// The fields that make up a body.
fn fields<T: FromBytes>(body: &[u8]) -> Result<T, Malformed> {
    T::read_from_bytes(body).map_err(|_| Malformed)
}

fn number(body: &[u8]) -> Result<i32, Malformed> {
    fields::<I32>(body).map(I32::get)
}

impl Message for Event {
    fn encode(&self) -> Vec<u8> {
        match self {
            Event::Hello { cookie, rank, host } => {
                message(1, HelloFields { cookie: *cookie, rank: (*rank).into() }, host)
            }
            Event::Started { pid } => message(2, U32::new(*pid), ""),
            Event::CannotStart { status, why } => message(3, I32::new(*status), why),
            Event::State { state, rank } => {
                message(4, StateFields { state: state.encode().into(), rank: (*rank).into() }, "")
            }
            Event::Ended(End::Status(status)) => message(5, I32::new(*status), ""),
            Event::Ended(End::Signal(signal)) => message(6, I32::new(*signal), ""),
            Event::Beat => message(7, (), ""),
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Result<Self, Malformed> {
        Ok(match kind {
            1 => {
                let (HelloFields { cookie, rank }, host) = with_text(body)?;
                Event::Hello { cookie, rank: rank.into(), host }
            }
            2 => Event::Started { pid: fields::<U32>(body)?.get() },
            3 => {
                let (status, why) = with_text::<I32>(body)?;
                Event::CannotStart { status: status.get(), why }
            }
            4 => {
                let StateFields { state, rank } = fields(body)?;
                Event::State { state: RankState::decode(state.get()), rank: rank.into() }
            }
            5 => Event::Ended(End::Status(number(body)?)),
            6 => Event::Ended(End::Signal(number(body)?)),
            7 => fields(body).map(|()| Event::Beat)?,
            _ => return Err(Malformed),
        })
    }
}

impl Message for Command {
    fn encode(&self) -> Vec<u8> {
        match self {
            Command::Welcome { timeout_s } => message(1, U32::new(*timeout_s), ""),
            Command::Forward(signal) => message(2, I32::new(*signal), ""),
            Command::Quit => message(3, (), ""),
            Command::Kill => message(4, (), ""),
            Command::Release => message(5, (), ""),
            Command::Beat => message(6, (), ""),
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Result<Self, Malformed> {
        Ok(match kind {
            1 => Command::Welcome { timeout_s: fields::<U32>(body)?.get() },
            2 => Command::Forward(number(body)?),
            3 => fields(body).map(|()| Command::Quit)?,
            4 => fields(body).map(|()| Command::Kill)?,
            5 => fields(body).map(|()| Command::Release)?,
            6 => fields(body).map(|()| Command::Beat)?,
            _ => return Err(Malformed),
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
            Command::Forward(15),
            Command::Quit,
            Command::Kill,
            Command::Release,
            Command::Beat,
        ]);
    }

    #[test]
    fn anything_else_is_malformed() {
        for bytes in [&[0, 0][..], &[1, 0, 99], &[2, 0, 7, 0], &[3, 0, 2, 1, 0], &[1, 5], b"GET / HTTP/1.1\r\n"] {
            assert_eq!(Event::take(&mut bytes.to_vec()), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let event = Event::CannotStart { status: 1, why: "é".repeat(2000) };
        assert_eq!(read_back(&event), Event::CannotStart { status: 1, why: "é".repeat(TEXT_BYTES_MAX / 2) });
    }
}
