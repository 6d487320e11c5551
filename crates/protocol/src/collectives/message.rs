//! The messages of collectives, as arguments of an Active Message.

use crate::active_message::{ARGS_MAX, Args};
use crate::barrier::BarrierMessage;
use crate::messages;
use crate::wire::{self, Layout};

messages! {
    /// Identifies a collective: all ranks of a team start its collectives in the same order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct CollectiveKey {
        /// The team's name.
        pub team: u64,
        /// Number of the team's earlier collectives; wraps.
        pub number: u32,
    }
}

messages! {
    /// A message of a collective, or of a team's barrier.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CollectiveMessage {
        /// The collective. [`CollectiveBody::Barrier`] ignores the number.
        pub key: CollectiveKey,
        /// The sender's rank in the team.
        pub from: u32,
        /// The content.
        pub body: CollectiveBody,
    }
}

messages! {
    /// Location of the bytes of a large transfer, for a receiver reading them itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Source {
        /// The receiver cannot read them. It sends Ready, and the bytes come in messages.
        0 => Unreadable,
        /// In the sender's segment.
        1 => Segment {
            /// The first address.
            address: u64,
        },
        /// In the memory of a process of the same host, in its address space.
        2 => Process {
            /// The first address.
            address: u64,
            /// The process.
            process: u32,
            /// The address of `proof` in the process. A process without it there is a different one.
            proof_address: u64,
            /// A number no other process has there.
            proof: u64,
        },
    }
}

messages! {
    /// The content of a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CollectiveBody {
        /// The receive is ready: send the bytes of a transfer.
        1 => Ready {
            /// The transfer.
            tag: u32,
        },
        /// The payload is bytes of a transfer. Without a payload it is a signal.
        2 => Bytes {
            /// The transfer.
            tag: u32,
            /// Offset of the payload in the transfer.
            offset_bytes: u64,
        },
        /// A message of the team's named barrier.
        3 => Barrier(message: BarrierMessage),
        /// The bytes of a large transfer may be read.
        4 => Announce {
            /// The transfer.
            tag: u32,
            /// Their location.
            source: Source,
        },
        /// The sender has read all bytes of a transfer.
        5 => Taken {
            /// The transfer.
            tag: u32,
        },
    }
}

impl CollectiveMessage {
    /// The message as arguments.
    pub fn encode(&self) -> Args {
        const { assert!(Self::BYTES_MAX <= size_of::<[i32; ARGS_MAX]>(), "ARGS_MAX is too small for a message") }
        Args::from_bytes(&wire::encode(self)).expect("BYTES_MAX is the most that it takes")
    }

    /// Reads the arguments of [`CollectiveMessage::encode`]; `None` if they are something else.
    pub fn decode(args: &Args) -> Option<CollectiveMessage> {
        let mut bytes = args.as_bytes();
        let message = CollectiveMessage::read(&mut bytes)?;
        // The last argument may be zero-padded.
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
            CollectiveBody::Announce { tag: 1, source: Source::Unreadable },
            CollectiveBody::Announce { tag: 2, source: Source::Segment { address: u64::MAX } },
            CollectiveBody::Announce {
                tag: 3,
                source: Source::Process {
                    address: 1 << 63,
                    process: u32::MAX,
                    proof_address: 2 << 60,
                    proof: u64::MAX - 5,
                },
            },
            CollectiveBody::Taken { tag: u32::MAX },
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
