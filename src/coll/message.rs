//! What ranks tell each other in collectives, as the arguments of an Active Message.

use crate::am::Args;
use crate::barrier;

/// Names a collective: all ranks of a team start them in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The team.
    pub team: u64,
    /// How many the team had before; it wraps.
    pub number: u32,
}

/// A message of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// About which collective. The number means nothing to a [`Body::Barrier`].
    pub key: Key,
    /// The sender, as its team counts.
    pub from: u32,
    /// What it says.
    pub body: Body,
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// There is a place for the bytes with this tag: send them.
    Ready {
        /// The tag.
        tag: u32,
    },
    /// The payload: bytes with this tag. Without a payload it is a signal.
    Bytes {
        /// The tag.
        tag: u32,
        /// Where among all bytes with this tag.
        offset_bytes: u64,
    },
    /// Of the team's named barrier.
    Barrier(barrier::Message),
}

const READY: i32 = 0;
const BYTES: i32 = 1;
const BARRIER: i32 = 2;

impl Message {
    /// The message as arguments.
    pub fn encode(&self) -> Args {
        let low = |wide: u64| wide as u32 as i32;
        let high = |wide: u64| (wide >> 32) as u32 as i32;
        let Key { team, number } = self.key;
        let mut args = [0, low(team), high(team), number as i32, self.from as i32, 0, 0, 0, 0];
        match self.body {
            Body::Ready { tag } => {
                args[0] = READY;
                args[5] = tag as i32;
            }
            Body::Bytes { tag, offset_bytes } => {
                args[0] = BYTES;
                args[5..8].copy_from_slice(&[tag as i32, low(offset_bytes), high(offset_bytes)]);
            }
            Body::Barrier(message) => {
                args[0] = BARRIER;
                for (arg, bytes) in args[5..].iter_mut().zip(message.encode(0).chunks_exact(4)) {
                    *arg = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                }
            }
        }
        Args::new(&args).expect("nine arguments are not too many")
    }

    /// Reads what [`Message::encode`] wrote; `None` if it is something else.
    pub fn decode(args: &Args) -> Option<Message> {
        let args: &[i32; 9] = args.as_slice().try_into().ok()?;
        let wide = |at: usize| u64::from(args[at] as u32) | u64::from(args[at + 1] as u32) << 32;
        let body = match args[0] {
            READY => Body::Ready { tag: args[5] as u32 },
            BYTES => Body::Bytes { tag: args[5] as u32, offset_bytes: wide(6) },
            BARRIER => {
                let bytes: Vec<u8> = args[5..].iter().flat_map(|arg| arg.to_le_bytes()).collect();
                Body::Barrier(barrier::Message::decode(&bytes)?)
            }
            _ => return None,
        };
        Some(Message { key: Key { team: wide(1), number: args[3] as u32 }, from: args[4] as u32, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barrier::Name;

    #[test]
    fn what_is_encoded_is_decoded() {
        let bodies = [
            Body::Ready { tag: u32::MAX },
            Body::Bytes { tag: 1 << 31, offset_bytes: u64::MAX - 7 },
            Body::Barrier(barrier::Message::Arrived(Name::Id(-5))),
            Body::Barrier(barrier::Message::Released(Name::Mismatch)),
        ];
        for body in bodies {
            let message = Message { key: Key { team: 5 << 32 | 0xffff_fffe, number: u32::MAX - 1 }, from: 4095, body };
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
        assert_eq!(Message::decode(&Args::new(&[3, 0, 0, 0, 0, 0, 0, 0, 0]).expect("nine")), None);
        assert_eq!(Message::decode(&Args::new(&[0, 1]).expect("two")), None);
    }
}
