//! What ranks tell each other in collectives, as the arguments of an Active Message.

use crate::active_message::Args;
use crate::barrier::BarrierMessage;
use crate::wire::{self, Layout};
use crate::{layout_of_fields, messages};

/// Names a collective: all ranks of a team start them in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The team.
    pub team: u64,
    /// How many the team had before; it wraps.
    pub number: u32,
}

layout_of_fields!(Key { team, number });

/// A message of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveMessage {
    /// About which collective. The number means nothing to a [`Body::Barrier`].
    pub key: Key,
    /// The sender, as its team counts.
    pub from: u32,
    /// What it says.
    pub body: Body,
}

messages! {
    /// What a message says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Body {
        /// There is a place for the bytes with this tag: send them.
        1 => Ready {
            /// The tag.
            tag: u32,
        },
        /// The payload: bytes with this tag. Without a payload it is a signal.
        2 => Bytes {
            /// The tag.
            tag: u32,
            /// Where among all bytes with this tag.
            offset_bytes: u64,
        },
        /// Of the team's named barrier.
        3 => Barrier(message: BarrierMessage),
    }
}

layout_of_fields!(CollectiveMessage { key, from, body });

impl CollectiveMessage {
    /// The message as arguments.
    pub fn encode(&self) -> Args {
        Args::from_bytes(&wire::encode(self)).expect("the longest message fits the arguments")
    }

    /// Reads what [`CollectiveMessage::encode`] wrote; `None` if it is something else.
    pub fn decode(args: &Args) -> Option<CollectiveMessage> {
        let mut bytes = args.as_bytes();
        let message = CollectiveMessage::read(&mut bytes)?;
        // The last argument may be longer than the rest of the message.
        (bytes.len() < size_of::<i32>()).then_some(message)
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
            Body::Barrier(BarrierMessage::Arrived(Name::Id(-5))),
            Body::Barrier(BarrierMessage::Released(Name::Mismatch)),
        ];
        for body in bodies {
            let key = Key { team: 5 << 32 | 0xffff_fffe, number: u32::MAX - 1 };
            let message = CollectiveMessage { key, from: 4095, body };
            assert_eq!(CollectiveMessage::decode(&message.encode()), Some(message));
        }
        assert_eq!(CollectiveMessage::decode(&Args::new(&[0; 9]).expect("nine")), None);
        assert_eq!(CollectiveMessage::decode(&Args::new(&[0, 1]).expect("two")), None);
    }
}
