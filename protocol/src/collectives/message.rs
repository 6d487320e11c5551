//! What ranks tell each other in collectives, as the arguments of an Active Message.

use crate::active_message::{ARGS_MAX, Args};
use crate::barrier::BarrierMessage;
use crate::messages;
use crate::wire::{self, Layout};

messages! {
    /// Names a collective: all ranks of a team start its collectives in the same order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct CollectiveKey {
        /// The team's name.
        pub team: u64,
        /// How many collectives the team had before; it wraps.
        pub number: u32,
    }
}

messages! {
    /// A message of a collective, or of a team's barrier.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CollectiveMessage {
        /// The collective. The number means nothing to a [`CollectiveBody::Barrier`].
        pub key: CollectiveKey,
        /// The sender, as its team counts ranks.
        pub from: u32,
        /// What it says.
        pub body: CollectiveBody,
    }
}

messages! {
    /// What a message says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CollectiveBody {
        /// The sender has a place for the bytes of a transfer: send them.
        1 => Ready {
            /// The transfer.
            tag: u32,
        },
        /// The payload is bytes of a transfer. Without a payload it is a signal.
        2 => Bytes {
            /// The transfer.
            tag: u32,
            /// Where the payload starts among all bytes of the transfer.
            offset_bytes: u64,
        },
        /// Of the team's named barrier.
        3 => Barrier(message: BarrierMessage),
    }
}

impl CollectiveMessage {
    /// The message as arguments.
    pub fn encode(&self) -> Args {
        const { assert!(Self::BYTES_MAX <= size_of::<[i32; ARGS_MAX]>(), "ARGS_MAX is too small for a message") }
        Args::from_bytes(&wire::encode(self)).expect("BYTES_MAX is the most that it takes")
    }

    /// Reads what [`CollectiveMessage::encode`] wrote; `None` if it is something else.
    pub fn decode(args: &Args) -> Option<CollectiveMessage> {
        let mut bytes = args.as_bytes();
        let message = CollectiveMessage::read(&mut bytes)?;
        // Zeros may fill up the last argument.
        (bytes.len() < size_of::<i32>()).then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barrier::Name;

    #[test]
    fn every_message_survives_encoding() {
        let bodies = [
            CollectiveBody::Ready { tag: u32::MAX },
            CollectiveBody::Bytes { tag: 1 << 31, offset_bytes: u64::MAX - 7 },
            CollectiveBody::Barrier(BarrierMessage::Arrived(Name::Id(-5))),
            CollectiveBody::Barrier(BarrierMessage::Released(Name::Mismatch)),
        ];
        for body in bodies {
            let key = CollectiveKey { team: 5 << 32 | 0xffff_fffe, number: u32::MAX - 1 };
            let message = CollectiveMessage { key, from: 4095, body };
            assert_eq!(CollectiveMessage::decode(&message.encode()), Some(message));
        }
        assert_eq!(CollectiveMessage::decode(&Args::new(&[0; 9]).expect("nine")), None);
        assert_eq!(CollectiveMessage::decode(&Args::new(&[0, 1]).expect("two")), None);
    }
}
