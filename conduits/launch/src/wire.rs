//! What an agent and the supervisor tell each other.
//!
//! A message is its length (two bytes, little-endian), a byte for its kind, and its fields: numbers in little-endian, at
//! most one text, which comes last.

use vgasnet_smp::launch::{End, Life};

/// The longest message, without its length, in bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1024;

/// The longest text in a message, in bytes; longer ones are cut.
const TEXT_BYTES_MAX: usize = 512;

/// What makes an agent known to its supervisor.
pub(crate) type Cookie = [u8; 16];

/// From an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The first message: who it is, and which rank its child will probably be.
    Hello { cookie: Cookie, rank: Option<u32>, host: String },
    /// The child runs.
    Started { pid: u32 },
    /// There is no child, for this reason.
    CannotStart { status: i32, why: String },
    /// The child says so.
    Life { life: Life, rank: Option<u32> },
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

/// A message.
pub(crate) trait Message: Sized {
    /// Its kind and fields.
    fn write(&self, to: &mut Writer);

    /// The message with these fields, if there is such a kind and they are its.
    fn read(kind: u8, fields: &mut Reader<'_>) -> Option<Self>;

    /// The whole message with its length.
    fn encode(&self) -> Vec<u8> {
        let mut writer = Writer(vec![0; 2]);
        self.write(&mut writer);
        let Writer(mut bytes) = writer;
        let len_bytes = bytes.len() - 2;
        assert!(len_bytes <= MESSAGE_BYTES_MAX, "a message of {len_bytes} bytes");
        bytes[..2].copy_from_slice(&(len_bytes as u16).to_le_bytes());
        bytes
    }

    /// Takes the first message out of what has come. Nothing if it is not complete yet.
    fn take(bytes: &mut Vec<u8>) -> Result<Option<Self>, Malformed> {
        let Some(len_bytes) = bytes.first_chunk().map(|len| usize::from(u16::from_le_bytes(*len))) else {
            return Ok(None);
        };
        if len_bytes == 0 || len_bytes > MESSAGE_BYTES_MAX {
            return Err(Malformed);
        }
        let Some(message) = bytes.get(2..2 + len_bytes) else { return Ok(None) };
        let mut fields = Reader(&message[1..]);
        let read = Self::read(message[0], &mut fields).filter(|_| fields.0.is_empty()).ok_or(Malformed)?;
        bytes.drain(..2 + len_bytes);
        Ok(Some(read))
    }
}

/// What came is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A message under construction.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    fn kind(&mut self, kind: u8) -> &mut Self {
        self.bytes(&[kind])
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    fn rank(&mut self, rank: Option<u32>) -> &mut Self {
        self.u32(rank.unwrap_or(u32::MAX))
    }

    fn text(&mut self, text: &str) {
        let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        self.bytes(&text.as_bytes()[..end]);
    }
}

/// The fields of a message that have not been read.
pub(crate) struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.bytes().map(i32::from_le_bytes)
    }

    fn rank(&mut self) -> Option<Option<u32>> {
        self.u32().map(|rank| (rank != u32::MAX).then_some(rank))
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(std::mem::take(&mut self.0)).into_owned()
    }
}

impl Message for News {
    fn write(&self, to: &mut Writer) {
        match self {
            News::Hello { cookie, rank, host } => to.kind(1).bytes(cookie).rank(*rank).text(host),
            News::Started { pid } => drop(to.kind(2).u32(*pid)),
            News::CannotStart { status, why } => to.kind(3).u32(*status as u32).text(why),
            News::Life { life, rank } => drop(to.kind(4).bytes(&life.encode().to_le_bytes()).rank(*rank)),
            News::Ended(End::Status(status)) => drop(to.kind(5).u32(*status as u32)),
            News::Ended(End::Signal(signal)) => drop(to.kind(6).u32(*signal as u32)),
            News::Beat => drop(to.kind(7)),
        }
    }

    fn read(kind: u8, fields: &mut Reader<'_>) -> Option<Self> {
        Some(match kind {
            1 => News::Hello { cookie: fields.bytes()?, rank: fields.rank()?, host: fields.text() },
            2 => News::Started { pid: fields.u32()? },
            3 => News::CannotStart { status: fields.i32()?, why: fields.text() },
            4 => News::Life { life: Life::decode(u64::from_le_bytes(fields.bytes()?)), rank: fields.rank()? },
            5 => News::Ended(End::Status(fields.i32()?)),
            6 => News::Ended(End::Signal(fields.i32()?)),
            7 => News::Beat,
            _ => return None,
        })
    }
}

impl Message for Command {
    fn write(&self, to: &mut Writer) {
        match self {
            Command::Welcome { timeout_s } => to.kind(1).u32(*timeout_s),
            Command::Forward(signal) => to.kind(2).u32(*signal as u32),
            Command::Quit => to.kind(3),
            Command::Kill => to.kind(4),
            Command::Release => to.kind(5),
            Command::Beat => to.kind(6),
        };
    }

    fn read(kind: u8, fields: &mut Reader<'_>) -> Option<Self> {
        Some(match kind {
            1 => Command::Welcome { timeout_s: fields.u32()? },
            2 => Command::Forward(fields.i32()?),
            3 => Command::Quit,
            4 => Command::Kill,
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
            assert_eq!(M::take(&mut stream).as_ref(), Ok(&Some(M::read_back(message))));
        }
        assert_eq!(M::take(&mut stream), Ok(None));
    }

    trait ReadBack: Message {
        fn read_back(&self) -> Self {
            let bytes = self.encode();
            Self::read(bytes[2], &mut Reader(&bytes[3..])).expect("a message")
        }
    }
    impl<M: Message> ReadBack for M {}

    #[test]
    fn news_survive_the_way() {
        let news = [
            News::Hello { cookie: [7; 16], rank: Some(3), host: "node-é".to_owned() },
            News::Hello { cookie: [0; 16], rank: None, host: String::new() },
            News::Started { pid: 12345 },
            News::CannotStart { status: 127, why: "no such program".to_owned() },
            News::Life { life: Life::Exiting(-1), rank: Some(4095) },
            News::Life { life: Life::Initialised, rank: None },
            News::Ended(End::Status(-1)),
            News::Ended(End::Signal(9)),
            News::Beat,
        ];
        survive(&news);
        assert_eq!(news.each_ref().map(ReadBack::read_back), news);
    }

    #[test]
    fn commands_survive_the_way() {
        let commands = [
            Command::Welcome { timeout_s: 3600 },
            Command::Forward(15),
            Command::Quit,
            Command::Kill,
            Command::Release,
            Command::Beat,
        ];
        survive(&commands);
        assert_eq!(commands.each_ref().map(ReadBack::read_back), commands);
    }

    #[test]
    fn anything_else_is_malformed() {
        for bytes in [&[0, 0][..], &[1, 0, 99], &[2, 0, 7, 0], &[3, 0, 2, 1, 0], &[1, 5], b"GET / HTTP/1.1\r\n"] {
            assert_eq!(News::take(&mut bytes.to_vec()), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let news = News::CannotStart { status: 1, why: "é".repeat(2000) };
        assert_eq!(news.read_back(), News::CannotStart { status: 1, why: "é".repeat(TEXT_BYTES_MAX / 2) });
    }
}
