//! The messages between an agent and the supervisor.
//!
//! A message is its length (two bytes, excluding themselves), the length of its layout (one byte), its layout, and at
//! most one text.

use vgasnet_protocol::RankState;
use vgasnet_protocol::messages;
use vgasnet_protocol::wire::{Layout, Malformed, decode, encode};

use crate::exit_policy::{End, Order};

/// Maximum bytes of a message, without its length.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1024;

/// Maximum bytes of a text in a message; longer ones are cut.
const TEXT_BYTES_MAX: usize = 512;

/// Authenticates an agent to its supervisor.
pub(crate) type Cookie = u128;

messages! {
    /// From an agent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Event {
        /// The first message, with the process number assigned by the other launcher. The text names the host. The
        /// hello of every version contains the cookie.
        1 => Hello { version: u64, cookie: Cookie, rank: Option<u32> },
        /// The child runs.
        2 => Started { pid: u32 },
        /// There is no child. The text gives the reason.
        3 => CannotStart { status: i32 },
        /// The state reported by the child. The text gives the reason of a failure.
        4 => State { state: RankState, rank: Option<u32> },
        /// The child has ended.
        5 => Ended(end: End),
        /// Heartbeat.
        6 => Beat,
    }
}

messages! {
    /// From the supervisor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Command {
        /// The answer to a hello: start the child. A supervisor silent for this long is lost.
        1 => Welcome { timeout_s: u32 },
        /// An order for the child.
        2 => Order(order: Order),
        /// The job is over: end.
        3 => Release,
        /// Heartbeat.
        4 => Beat,
        /// The answer to a hello of another version: end. The supervisor tells the user.
        5 => Refuse,
    }
}

/// A whole message with its length.
pub(crate) fn frame(message: &impl Layout, text: &str) -> Vec<u8> {
    let end = (0..=text.len().min(TEXT_BYTES_MAX)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let layout = encode(message);
    let len_bytes = (1 + layout.len() + end) as u16;
    [&len_bytes.to_le_bytes(), &[layout.len() as u8][..], &layout, &text.as_bytes()[..end]].concat()
}

/// Takes the first message, with its text, out of the received bytes. `None` if incomplete.
pub(crate) fn take<M: Layout>(bytes: &mut Vec<u8>) -> Result<Option<(M, String)>, Malformed> {
    let Some((len_bytes, tail)) = bytes.split_first_chunk() else { return Ok(None) };
    let len_bytes = usize::from(u16::from_le_bytes(*len_bytes));
    if !(1..=MESSAGE_BYTES_MAX).contains(&len_bytes) {
        return Err(Malformed);
    }
    let Some(message) = tail.get(..len_bytes) else { return Ok(None) };
    let (layout, text) = message[1..].split_at_checked(message[0].into()).ok_or(Malformed)?;
    let message = (decode(layout)?, String::from_utf8_lossy(text).into_owned());
    bytes.drain(..2 + len_bytes);
    Ok(Some(message))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fmt::Debug;

    /// The message and text decoded from their frame.
    fn read_back<M: Layout + Debug>(message: &M, text: &str) -> (M, String) {
        take(&mut frame(message, text)).expect("it is well-formed").expect("it is complete")
    }

    /// Every message is decoded whole, and no part of it is mistaken for one.
    fn survive<M: Layout + Clone + PartialEq + Debug>(messages: &[(M, &str)]) {
        let mut stream = Vec::new();
        for (message, text) in messages {
            let bytes = frame(message, text);
            for end in 0..bytes.len() {
                let mut part = bytes[..end].to_vec();
                assert_eq!(take::<M>(&mut part), Ok(None), "{message:?}");
                assert_eq!(part.len(), end);
            }
            stream.extend(bytes);
        }
        for (message, text) in messages {
            let whole = (message.clone(), (*text).to_owned());
            assert_eq!(take(&mut stream), Ok(Some(whole.clone())));
            assert_eq!(read_back(message, text), whole);
        }
        assert_eq!(take::<M>(&mut stream), Ok(None));
    }

    #[test]
    fn events_survive_the_way() {
        survive(&[
            (Event::Hello { version: u64::MAX, cookie: 7 << 120, rank: Some(3) }, "node-é"),
            (Event::Hello { version: 1, cookie: 0, rank: None }, ""),
            (Event::Started { pid: 12345 }, ""),
            (Event::CannotStart { status: 127 }, "no such program"),
            (Event::State { state: RankState::Exiting(-1), rank: Some(4095) }, ""),
            (Event::State { state: RankState::Initialised, rank: None }, ""),
            (Event::State { state: RankState::Broken, rank: Some(1) }, "mpi: no route"),
            (Event::Ended(End::Status(-1)), ""),
            (Event::Ended(End::Signal(9)), ""),
            (Event::Beat, ""),
        ]);
    }

    #[test]
    fn commands_survive_the_way() {
        let commands = [
            Command::Welcome { timeout_s: 3600 },
            Command::Order(Order::Forward(15)),
            Command::Order(Order::Quit),
            Command::Order(Order::Kill),
            Command::Release,
            Command::Beat,
            Command::Refuse,
        ];
        survive(&commands.map(|command| (command, "")));
    }

    #[test]
    fn anything_else_is_malformed() {
        for bytes in [&[0, 0][..], &[1, 0, 99], &[2, 0, 1, 0], &[3, 0, 2, 6, 0], &[1, 5], b"GET / HTTP/1.1\r\n"] {
            assert_eq!(take::<Event>(&mut bytes.to_vec()), Err(Malformed), "{bytes:?}");
        }
        let mut unknown = frame(&Event::Beat, "");
        unknown[3] = 99;
        assert_eq!(take::<Event>(&mut unknown), Err(Malformed));
    }

    /// The bytes of a message, mostly valid.
    pub(crate) fn random_message(random: &mut vgasnet_fuzzing::Rng) -> Vec<u8> {
        let number = vgasnet_fuzzing::odd_number(random);
        let rank = random.bool().then_some(number as u32);
        let text = vgasnet_fuzzing::text(random, &["node", "no such program"]);
        let event = match random.u32(0..6) {
            0 => Event::Hello { version: number, cookie: number.into(), rank },
            1 => Event::Started { pid: number as u32 },
            2 => Event::CannotStart { status: number as i32 },
            3 => Event::State { state: RankState::decode(number), rank },
            4 => Event::Ended(End::Signal(number as i32)),
            _ => Event::Beat,
        };
        let mut bytes = frame(&event, &text);
        match random.u32(0..8) {
            0 => vgasnet_fuzzing::mutate(random, &mut bytes),
            1 => bytes = vgasnet_fuzzing::bytes(random, 80),
            _ => {}
        }
        bytes
    }

    #[test]
    fn what_is_taken_is_written_like_that_again() {
        vgasnet_fuzzing::run("-p vgasnet-launch --lib what_is_taken", 200_000, |random| {
            let bytes = random_message(random);
            let _ = take::<Command>(&mut bytes.clone());
            let mut tail = bytes.clone();
            match take::<Event>(&mut tail) {
                Ok(Some((event, text))) => {
                    assert!(bytes.len() - tail.len() <= 2 + MESSAGE_BYTES_MAX, "{event:?} {text}")
                }
                Ok(None) | Err(Malformed) => assert_eq!(tail, bytes),
            }
            1
        });
    }

    #[test]
    fn long_texts_are_cut() {
        let event = Event::CannotStart { status: 1 };
        assert_eq!(read_back(&event, &"é".repeat(2000)), (event, "é".repeat(TEXT_BYTES_MAX / 2)));
    }
}
