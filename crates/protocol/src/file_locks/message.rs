//! Messages about locks, as bytes.
//!
//! ```text
//! ┌────────────────┬─────────────┐   ┌────────────────┬─────────────┬───────────┬───────────┬─────┐
//! │ TAG_FILE_LOCKS │ LockMessage │   │ TAG_FILE_LOCKS │ Ask         │ LockRange │ LockRange │  …  │
//! └────────────────┴─────────────┘   └────────────────┴─────────────┴───────────┴───────────┴─────┘
//! ```

use super::LockRange;
use crate::wire::{self, Layout, Malformed, take};
use crate::{Space, layout_as_in_memory, messages};
use alloc::vec::Vec;
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// First byte of a lock message. Messages of the coherence protocol begin with lower numbers.
pub const TAG_FILE_LOCKS: u8 = 31;

/// Bytes of a message before its ranges.
const ASK_BYTES: usize = u8::BYTES_MAX + LockMessage::BYTES_MAX;

/// The purpose of a lock. Locks of different purposes never conflict: a program that locked bytes may read and write
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub enum LockPurpose {
    /// The program asked for it.
    Program,
    /// A read or write appears as one step to all others.
    Atomicity,
}

layout_as_in_memory!(LockPurpose);

messages! {
    /// Identifies a request's ask at one home, among all asks of its rank there.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct AskName {
        /// The request's number. A rank uses each once.
        pub number: u64,
        /// The home queues it behind conflicting locks. Otherwise it is a try: granted at once or refused.
        pub waits: bool,
    }
}

messages! {
    /// A part of an ask. Its ranges follow the message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct AskPart {
        /// The ask.
        pub name: AskName,
        /// The file.
        pub file: Space,
        /// The lock's purpose.
        pub purpose: LockPurpose,
        /// Number of ranges in all parts.
        pub ranges: u32,
        /// Number of ranges before this part.
        pub first: u32,
    }
}

messages! {
    /// A message between a rank and a home.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum LockMessage {
        /// To a home: lock these ranges, all at once.
        0 => Ask(part: AskPart),
        /// From the home: all ranges are locked.
        1 => Granted(name: AskName),
        /// From the home: no range is locked. It was a try, and no longer exists.
        2 => Refused(name: AskName),
        /// To a home: the grant is over.
        3 => Unlock(name: AskName),
    }
}

impl LockMessage {
    /// The message as bytes, with the ranges of an ask.
    pub fn encode(&self, ranges: &[LockRange]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ASK_BYTES + ranges.len() * LockRange::BYTES_MAX);
        bytes.push(TAG_FILE_LOCKS);
        bytes.extend_from_slice(&wire::encode(self));
        ranges.iter().for_each(|range| bytes.extend_from_slice(&wire::encode(range)));
        bytes
    }

    /// Reads the bytes of [`LockMessage::encode`]. An ask has at least one range, other messages none.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn decode(mut bytes: &[u8]) -> Result<(LockMessage, Vec<LockRange>), Malformed> {
        let tag = take::<u8>(&mut bytes).ok_or(Malformed)?;
        let message = LockMessage::read(&mut bytes).ok_or(Malformed)?;
        let mut ranges = Vec::with_capacity(bytes.len() / LockRange::BYTES_MAX);
        while !bytes.is_empty() {
            ranges.push(LockRange::read(&mut bytes).ok_or(Malformed)?);
        }
        let has_ranges = matches!(message, LockMessage::Ask(_));
        if tag == TAG_FILE_LOCKS && has_ranges != ranges.is_empty() { Ok((message, ranges)) } else { Err(Malformed) }
    }
}

/// Maximum number of ranges in a message of `message_bytes_max`; at least 1 on any conduit.
pub(super) fn ranges_max(message_bytes_max: usize) -> usize {
    message_bytes_max.saturating_sub(ASK_BYTES) / LockRange::BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_locks::LockMode;

    #[test]
    fn every_message_survives_encoding() {
        let name = AskName { number: u64::MAX - 5, waits: true };
        let part = AskPart { name, file: Space::of_file(7), purpose: LockPurpose::Atomicity, ranges: 9, first: 2 };
        let range = |start| LockRange { start, end: u64::MAX, mode: LockMode::Exclusive };
        let ranges = [range(3), range(1 << 40)];
        for message in [LockMessage::Granted(name), LockMessage::Refused(name), LockMessage::Unlock(name)] {
            assert_eq!(LockMessage::decode(&message.encode(&[])), Ok((message, Vec::new())));
            assert_eq!(LockMessage::decode(&message.encode(&ranges)), Err(Malformed));
        }
        let ask = LockMessage::Ask(part);
        let bytes = ask.encode(&ranges);
        assert_eq!(LockMessage::decode(&bytes), Ok((ask, ranges.to_vec())));
        assert_eq!((bytes[0], ranges_max(bytes.len()), ranges_max(bytes.len() - 1)), (TAG_FILE_LOCKS, 2, 1));
        for end in 0..bytes.len() {
            let is_whole = end + LockRange::BYTES_MAX == bytes.len();
            assert_eq!(LockMessage::decode(&bytes[..end]).is_ok(), is_whole, "{end} bytes");
        }
        assert_eq!(LockMessage::decode(&ask.encode(&[])), Err(Malformed));
        assert_eq!(LockMessage::decode(&[&[TAG_FILE_LOCKS + 1], &bytes[1..]].concat()), Err(Malformed));
    }
}
