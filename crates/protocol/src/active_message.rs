//! Active Messages as bytes.
//!
//! A request or reply begins with its [`Head`] and arguments and carries as much of its payload as the conduit's
//! messages hold. The remainder follows in fragments, which may overtake it.
//!
//! ```text
//! ┌──────┬────────────────┬─────────┐   ┌──────────────┬─────────┐   ┌────────┐
//! │ Head │ 0 to 16 × i32  │ payload…│   │ FragmentHead │ payload…│   │ Credit │
//! └──────┴────────────────┴─────────┘   └──────────────┴─────────┘   └────────┘
//! ```

use crate::wire::take;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// First byte of a request or reply.
pub const TAG_MESSAGE: u8 = 40;
/// First byte of a fragment.
pub const TAG_FRAGMENT: u8 = 41;
/// First byte of a credit return.
pub const TAG_CREDIT: u8 = 42;

/// Maximum number of arguments of a message (GASNet-1, E.1).
pub const ARGS_MAX: usize = 16;

/// Maximum number of bytes before a payload.
pub const HEAD_BYTES_MAX: usize = size_of::<Head>() + size_of::<[i32; ARGS_MAX]>();

/// The payload of a message besides its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub enum Category {
    /// None.
    Short,
    /// One in a buffer.
    Medium,
    /// One in the target's segment.
    Long,
}

/// The arguments of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args {
    values: [i32; ARGS_MAX],
    len: u8,
}

impl Args {
    /// `args` as arguments; `None` if longer than [`ARGS_MAX`].
    pub fn new(args: &[i32]) -> Option<Args> {
        Args::from_bytes(args.as_bytes())
    }

    /// The arguments filled by `bytes`, the last one zero-padded; `None` if more than [`ARGS_MAX`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Args> {
        let mut values = [0; ARGS_MAX];
        values.as_mut_bytes().get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Args { values, len: bytes.len().div_ceil(size_of::<i32>()) as u8 })
    }

    /// The arguments.
    pub fn as_slice(&self) -> &[i32] {
        &self.values[..usize::from(self.len)]
    }

    /// The arguments as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.as_slice().as_bytes()
    }
}

/// The first bytes of a request or reply. Its arguments follow, then its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed)]
pub struct Head {
    /// [`TAG_MESSAGE`].
    pub tag: u8,
    /// The handler's index in the target's table.
    pub handler: u8,
    /// The kind of payload.
    pub category: Category,
    /// Whether it is a reply rather than a request.
    pub is_reply: bool,
    /// The payload is already in the target's segment, not in the message.
    pub is_placed: bool,
    /// Number of arguments following; at most [`ARGS_MAX`].
    pub args: u8,
    /// Identifies the message at its sender, for its fragments.
    pub id: u32,
    /// The length of the whole payload.
    pub payload_bytes: u32,
    /// Reply: the credit in bytes returned for the request.
    pub cost: u32,
    /// [`Category::Long`]: the payload's destination address in the target's segment.
    pub address: u64,
}

/// The first bytes of a fragment. A part of the payload follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed)]
pub struct FragmentHead {
    /// [`TAG_FRAGMENT`].
    pub tag: u8,
    /// The [`Head::id`] of its message.
    pub id: u32,
    /// Offset of the part in the payload.
    pub offset_bytes: u32,
}

/// Returns the credit of requests handled without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, packed)]
pub struct Credit {
    /// [`TAG_CREDIT`].
    pub tag: u8,
    /// Number of requests.
    pub requests: u32,
    /// Their credit in bytes.
    pub cost: u32,
}

/// An Active Message, or a part of one, that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmMessage<'a> {
    /// The beginning of a request or reply, with the first bytes of its payload.
    First(Head, Args, &'a [u8]),
    /// More of a payload.
    Fragment(FragmentHead, &'a [u8]),
    /// Credit comes back.
    Credit(Credit),
}

impl Head {
    /// Writes the head and its arguments to the front of `buffer`. Returns their number of bytes.
    pub fn encode(&self, args: &Args, buffer: &mut [u8; HEAD_BYTES_MAX]) -> usize {
        debug_assert!(self.tag == TAG_MESSAGE, "the receiver knows a head by its tag");
        let (head, tail) = buffer.split_at_mut(size_of::<Head>());
        head.copy_from_slice(Head { args: args.len, ..*self }.as_bytes());
        let args = args.as_bytes();
        tail[..args.len()].copy_from_slice(args);
        size_of::<Head>() + args.len()
    }
}

/// Reads a message; `None` if the bytes are not one.
pub fn decode(bytes: &[u8]) -> Option<AmMessage<'_>> {
    let mut tail = bytes;
    match *bytes.first()? {
        TAG_MESSAGE => {
            let head: Head = take(&mut tail)?;
            let (args, payload) = tail.split_at_checked(size_of::<i32>() * usize::from(head.args))?;
            Some(AmMessage::First(head, Args::from_bytes(args)?, payload))
        }
        TAG_FRAGMENT => take(&mut tail).map(|head| AmMessage::Fragment(head, tail)),
        TAG_CREDIT => take(&mut tail).map(AmMessage::Credit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_message_survives_encoding() {
        for len in 0..=ARGS_MAX {
            let args: Vec<i32> = (0..len as i32).map(|n| n * -77_777).collect();
            let args = Args::new(&args).expect("not too many");
            let head = Head {
                tag: TAG_MESSAGE,
                handler: 200 + len as u8,
                category: [Category::Short, Category::Medium, Category::Long][len % 3],
                is_reply: len % 2 == 1,
                is_placed: len % 5 == 0,
                args: len as u8,
                id: 1 << 31,
                payload_bytes: 5,
                cost: 99,
                address: u64::MAX - 1,
            };
            let mut buffer = [0xee; HEAD_BYTES_MAX];
            let used = head.encode(&args, &mut buffer);
            let bytes = [&buffer[..used], b"hello"].concat();
            assert_eq!(decode(&bytes), Some(AmMessage::First(head, args, b"hello")));
            assert!((0..used).all(|cut| decode(&bytes[..cut]).is_none()));
        }
        assert_eq!(Args::new(&[0; ARGS_MAX + 1]), None);
        let head = FragmentHead { tag: TAG_FRAGMENT, id: 7, offset_bytes: 8 };
        assert_eq!(decode(&[head.as_bytes(), b"tail"].concat()), Some(AmMessage::Fragment(head, b"tail")));
        let credit = Credit { tag: TAG_CREDIT, requests: 3, cost: 4 };
        assert_eq!(decode(credit.as_bytes()), Some(AmMessage::Credit(credit)));
        assert_eq!(decode(&[TAG_MESSAGE, 0, 3, 0]), None);
        assert_eq!(decode(&[]), None);
    }
}
