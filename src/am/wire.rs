//! Active Messages as bytes.
//!
//! A message begins with its tag. A request or reply carries as much of its payload as the conduit's messages hold; the
//! rest follows in fragments, which may overtake it.
//!
//! ```text
//!  0    1        2      3     4     8         12     16        24       88
//! ┌────┬────────┬──────┬─────┬─────┬─────────┬──────┬─────────┬────────┬─────────┐
//! │tag │ handler│ kind │nargs│ id  │ payload │ cost │ address │ 16 args│ payload…│   REQUEST, REPLY
//! └────┴────────┴──────┴─────┴─────┴─────────┴──────┴─────────┴────────┴─────────┘
//! ┌────┬────────┬────────────┬─────┬─────────┬─────────┐
//! │tag │                     │ id  │ offset  │ payload…│                             FRAGMENT
//! └────┴─────────────────────┴─────┴─────────┴─────────┘
//! ```

/// First byte of a request or reply.
pub const TAG_MESSAGE: u8 = 40;
/// First byte of a fragment.
pub const TAG_FRAGMENT: u8 = 41;
/// First byte of a return of credit.
pub const TAG_CREDIT: u8 = 42;

/// The most arguments that a message has (GASNet-1, E.1).
pub const ARGS_MAX: usize = 16;

/// What comes before a payload.
pub const HEAD_BYTES: usize = 24 + 4 * ARGS_MAX;
/// What comes before a fragment's payload.
pub const FRAGMENT_HEAD_BYTES: usize = 12;

/// What a handler is given besides its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Nothing.
    Short,
    /// A payload in a buffer.
    Medium,
    /// A payload in the target's segment.
    Long,
}

/// The arguments of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args {
    values: [i32; ARGS_MAX],
    len: u8,
}

impl Args {
    /// Up to [`ARGS_MAX`] arguments; `None` if they are more.
    pub fn new(args: &[i32]) -> Option<Args> {
        let mut values = [0; ARGS_MAX];
        values.get_mut(..args.len())?.copy_from_slice(args);
        Some(Args { values, len: args.len() as u8 })
    }

    /// The arguments.
    pub fn as_slice(&self) -> &[i32] {
        &self.values[..usize::from(self.len)]
    }
}

/// All of a request or reply but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// A reply; else a request.
    pub is_reply: bool,
    /// What the handler is given.
    pub category: Category,
    /// The payload is in the target's segment already, and not in the message.
    pub is_placed: bool,
    /// Which handler.
    pub handler: u8,
    /// Names the message among those of its sender.
    pub id: u32,
    /// The length of the payload.
    pub payload_bytes: u32,
    /// Of a reply: what the answered request had cost.
    pub cost: u32,
    /// Of a [`Category::Long`]: where the payload belongs.
    pub address: u64,
    /// The arguments.
    pub args: Args,
}

/// A message that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A request or reply, with the first bytes of its payload.
    First(Head, &'a [u8]),
    /// More of a payload.
    Fragment {
        /// Of which message.
        id: u32,
        /// Where in the payload.
        offset_bytes: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Requests were handled and not replied to.
    Credit {
        /// How many.
        requests: u32,
        /// What they had cost.
        cost: u32,
    },
}

const KIND_REPLY: u8 = 4;
const KIND_PLACED: u8 = 8;

impl Head {
    /// The bytes that come first. Arguments beyond the message's own are left out.
    pub fn encode(&self, buffer: &mut [u8; HEAD_BYTES]) -> usize {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let kind = self.category as u8 | flag(self.is_reply, KIND_REPLY) | flag(self.is_placed, KIND_PLACED);
        buffer[..4].copy_from_slice(&[TAG_MESSAGE, self.handler, kind, self.args.len]);
        buffer[4..8].copy_from_slice(&self.id.to_le_bytes());
        buffer[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        buffer[12..16].copy_from_slice(&self.cost.to_le_bytes());
        buffer[16..24].copy_from_slice(&self.address.to_le_bytes());
        let args = self.args.as_slice();
        for (place, arg) in buffer[24..].chunks_exact_mut(4).zip(args) {
            place.copy_from_slice(&arg.to_le_bytes());
        }
        24 + 4 * args.len()
    }

    fn decode(bytes: &[u8]) -> Option<(Head, &[u8])> {
        let [_, handler, kind, len] = *bytes.first_chunk()?;
        let category = match kind & 3 {
            0 => Category::Short,
            1 => Category::Medium,
            2 => Category::Long,
            _ => return None,
        };
        let (args, payload) = bytes.get(24..)?.split_at_checked(4 * usize::from(len))?;
        let mut values = [0; ARGS_MAX];
        for (value, bytes) in values.get_mut(..usize::from(len))?.iter_mut().zip(args.chunks_exact(4)) {
            *value = i32::from_le_bytes(bytes.try_into().ok()?);
        }
        let head = Head {
            is_reply: kind & KIND_REPLY != 0,
            category,
            is_placed: kind & KIND_PLACED != 0,
            handler,
            id: u32_at(bytes, 4)?,
            payload_bytes: u32_at(bytes, 8)?,
            cost: u32_at(bytes, 12)?,
            address: u64::from_le_bytes(bytes.get(16..24)?.try_into().ok()?),
            args: Args { values, len },
        };
        Some((head, payload))
    }
}

/// The bytes before a fragment's payload.
pub fn encode_fragment(id: u32, offset_bytes: u32) -> [u8; FRAGMENT_HEAD_BYTES] {
    let mut head = [TAG_FRAGMENT, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    head[4..8].copy_from_slice(&id.to_le_bytes());
    head[8..12].copy_from_slice(&offset_bytes.to_le_bytes());
    head
}

/// A return of credit.
pub fn encode_credit(requests: u32, cost: u32) -> [u8; 12] {
    let mut bytes = [TAG_CREDIT, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[4..8].copy_from_slice(&requests.to_le_bytes());
    bytes[8..12].copy_from_slice(&cost.to_le_bytes());
    bytes
}

/// What a message says; `None` if it makes no sense.
pub fn decode(bytes: &[u8]) -> Option<Message<'_>> {
    match *bytes.first()? {
        TAG_MESSAGE => Head::decode(bytes).map(|(head, payload)| Message::First(head, payload)),
        TAG_FRAGMENT => {
            let (id, offset_bytes) = (u32_at(bytes, 4)?, u32_at(bytes, 8)?);
            Some(Message::Fragment { id, offset_bytes, bytes: &bytes[FRAGMENT_HEAD_BYTES..] })
        }
        TAG_CREDIT => Some(Message::Credit { requests: u32_at(bytes, 4)?, cost: u32_at(bytes, 8)? }),
        _ => None,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for len in 0..=ARGS_MAX {
            let args: Vec<i32> = (0..len as i32).map(|n| n * -77_777).collect();
            let head = Head {
                is_reply: len % 2 == 1,
                category: [Category::Short, Category::Medium, Category::Long][len % 3],
                is_placed: len % 5 == 0,
                handler: 200 + len as u8,
                id: 1 << 31,
                payload_bytes: 5,
                cost: 99,
                address: u64::MAX - 1,
                args: Args::new(&args).expect("not too many"),
            };
            let mut buffer = [0xee; HEAD_BYTES];
            let used = head.encode(&mut buffer);
            let bytes = [&buffer[..used], b"hello"].concat();
            assert_eq!(decode(&bytes), Some(Message::First(head, b"hello")));
            assert!((0..used).all(|cut| decode(&bytes[..cut]).is_none()));
        }
        assert_eq!(Args::new(&[0; ARGS_MAX + 1]), None);
        let fragment = [&encode_fragment(7, 8)[..], b"rest"].concat();
        assert_eq!(decode(&fragment), Some(Message::Fragment { id: 7, offset_bytes: 8, bytes: b"rest" }));
        assert_eq!(decode(&encode_credit(3, 4)), Some(Message::Credit { requests: 3, cost: 4 }));
        assert_eq!(decode(&[TAG_MESSAGE, 0, 3, 0]), None);
        assert_eq!(decode(&[]), None);
    }
}
