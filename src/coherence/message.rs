//! The protocol's messages and their encoding.
//!
//! A message is a tag byte, a flag byte, and fixed little-endian fields; it always fits
//! [`MESSAGE_BYTES`]. Messages may overtake each other on the way.

use super::{Access, FrameId, PageId, Ticket};
use vgasnet_conduit::Rank;

/// Length of every encoded message in bytes.
pub const MESSAGE_BYTES: usize = 32;

/// From a rank's cache to the home of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToHome {
    /// Wants a copy in `frame`; has none.
    Read {
        /// Where the copy goes.
        frame: FrameId,
    },
    /// Wants to own the page in `frame`.
    Write {
        /// Where the page is, or goes.
        frame: FrameId,
        /// The copy it has in `frame`, unless that is invalidated before the home reads this.
        copy: Option<Ticket>,
    },
    /// The exchange `ticket` is complete at the requester: it holds the page.
    Done {
        /// The exchange; from now on it names the copy.
        ticket: Ticket,
    },
    /// The holder that was asked to serve `ticket` has no copy any more.
    Bounce {
        /// The exchange to serve in another way.
        ticket: Ticket,
    },
    /// The sender's copy is gone, as the exchange `ticket` asked.
    Acknowledge {
        /// The exchange.
        ticket: Ticket,
    },
    /// Please write the sender's dirty copy back.
    Evict {
        /// Where it is.
        frame: FrameId,
        /// Which copy.
        copy: Ticket,
        /// The sender keeps a clean copy; else it gives up the frame when answered.
        keep: bool,
    },
    /// The sender gave up a clean copy some time ago.
    Forget {
        /// Which copy.
        copy: Ticket,
    },
}

/// From a home, or from a holder that serves in its name, to a rank's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToCache {
    /// Put your copy into `frame` of `to`.
    Forward(Forward),
    /// Give up your copy and acknowledge.
    Invalidate {
        /// The exchange that needs it.
        ticket: Ticket,
    },
    /// You may write: no other copy exists.
    Grant {
        /// The exchange you asked for.
        ticket: Ticket,
    },
    /// The page is in the frame you named.
    Data {
        /// The exchange you asked for.
        ticket: Ticket,
        /// You may write too.
        grant: bool,
        /// The page was never written: it is zeros, and nothing was transferred.
        zeros: bool,
    },
    /// Your dirty copy is written back.
    Evicted {
        /// Which copy.
        copy: Ticket,
    },
    /// Write your dirty copy back, and keep a clean one.
    Recall {
        /// Which copy.
        copy: Ticket,
    },
}

/// A home's order to a holder to serve a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Forward {
    /// The exchange this serves.
    pub ticket: Ticket,
    /// The requester.
    pub to: Rank,
    /// Its frame.
    pub frame: FrameId,
    /// `Write`: the holder's own copy ends with the transfer.
    pub access: Access,
    /// The requester may write as soon as it has the data.
    pub grant: bool,
}

/// Any message about `page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// The page it is about.
    pub page: PageId,
    /// What it says.
    pub body: Body,
}

/// What a message says, by the role that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Body {
    /// For the page's home.
    Home(ToHome),
    /// For a cache.
    Cache(ToCache),
}

/// The bytes are no message of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

const FLAG_WRITE: u8 = 1;
const FLAG_GRANT: u8 = 2;
const FLAG_ZEROS: u8 = 4;
const FLAG_KEEP: u8 = 8;
const FLAG_COPY: u8 = 16;

/// A message as flat fields: the one layout that both directions share.
#[derive(Default)]
struct Fields {
    tag: u8,
    flags: u8,
    frame: u32,
    to: u32,
    ticket: u64,
}

impl Fields {
    fn flag(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

fn flags(pairs: &[(bool, u8)]) -> u8 {
    pairs.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag)
}

impl Message {
    /// The sender's frame where a page is to go, if this asks for one that the sender lacks.
    pub fn frame(&self) -> Option<FrameId> {
        match self.body {
            Body::Home(ToHome::Read { frame } | ToHome::Write { frame, copy: None }) => Some(frame),
            _ => None,
        }
    }

    /// The message as bytes.
    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let fields = match self.body {
            Body::Home(body) => encode_to_home(body),
            Body::Cache(body) => encode_to_cache(body),
        };
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[0] = fields.tag;
        bytes[1] = fields.flags;
        bytes[4..8].copy_from_slice(&self.page.home.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.page.index.to_le_bytes());
        bytes[12..16].copy_from_slice(&fields.frame.to_le_bytes());
        bytes[16..20].copy_from_slice(&fields.to.to_le_bytes());
        bytes[24..32].copy_from_slice(&fields.ticket.to_le_bytes());
        bytes
    }

    /// Reads what [`Message::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
        let bytes: &[u8; MESSAGE_BYTES] = bytes.try_into().map_err(|_| Malformed)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let page = PageId { home: Rank(word(4)), index: word(8) };
        let ticket = u64::from(word(24)) | u64::from(word(28)) << 32;
        let fields = Fields { tag: bytes[0], flags: bytes[1], frame: word(12), to: word(16), ticket };
        Ok(Message { page, body: decode_body(&fields)? })
    }
}

fn encode_to_home(body: ToHome) -> Fields {
    match body {
        ToHome::Read { frame } => Fields { tag: 1, frame: frame.0, ..Fields::default() },
        ToHome::Write { frame, copy } => Fields {
            tag: 2,
            flags: flags(&[(copy.is_some(), FLAG_COPY)]),
            frame: frame.0,
            ticket: copy.map_or(0, |copy| copy.0),
            ..Fields::default()
        },
        ToHome::Done { ticket } => Fields { tag: 3, ticket: ticket.0, ..Fields::default() },
        ToHome::Bounce { ticket } => Fields { tag: 4, ticket: ticket.0, ..Fields::default() },
        ToHome::Acknowledge { ticket } => Fields { tag: 5, ticket: ticket.0, ..Fields::default() },
        ToHome::Evict { frame, copy, keep } => {
            Fields { tag: 6, flags: flags(&[(keep, FLAG_KEEP)]), frame: frame.0, ticket: copy.0, ..Fields::default() }
        }
        ToHome::Forget { copy } => Fields { tag: 7, ticket: copy.0, ..Fields::default() },
    }
}

fn encode_to_cache(body: ToCache) -> Fields {
    match body {
        ToCache::Forward(forward) => Fields {
            tag: 8,
            flags: flags(&[(forward.access == Access::Write, FLAG_WRITE), (forward.grant, FLAG_GRANT)]),
            frame: forward.frame.0,
            to: forward.to.0,
            ticket: forward.ticket.0,
        },
        ToCache::Invalidate { ticket } => Fields { tag: 9, ticket: ticket.0, ..Fields::default() },
        ToCache::Grant { ticket } => Fields { tag: 10, ticket: ticket.0, ..Fields::default() },
        ToCache::Data { ticket, grant, zeros } => Fields {
            tag: 11,
            flags: flags(&[(grant, FLAG_GRANT), (zeros, FLAG_ZEROS)]),
            ticket: ticket.0,
            ..Fields::default()
        },
        ToCache::Evicted { copy } => Fields { tag: 12, ticket: copy.0, ..Fields::default() },
        ToCache::Recall { copy } => Fields { tag: 13, ticket: copy.0, ..Fields::default() },
    }
}

fn decode_body(fields: &Fields) -> Result<Body, Malformed> {
    let frame = FrameId(fields.frame);
    let ticket = Ticket(fields.ticket);
    let copy = ticket;
    Ok(match fields.tag {
        1 => Body::Home(ToHome::Read { frame }),
        2 => Body::Home(ToHome::Write { frame, copy: fields.flag(FLAG_COPY).then_some(copy) }),
        3 => Body::Home(ToHome::Done { ticket }),
        4 => Body::Home(ToHome::Bounce { ticket }),
        5 => Body::Home(ToHome::Acknowledge { ticket }),
        6 => Body::Home(ToHome::Evict { frame, copy, keep: fields.flag(FLAG_KEEP) }),
        7 => Body::Home(ToHome::Forget { copy }),
        8 => Body::Cache(ToCache::Forward(Forward {
            ticket,
            to: Rank(fields.to),
            frame,
            access: if fields.flag(FLAG_WRITE) { Access::Write } else { Access::Read },
            grant: fields.flag(FLAG_GRANT),
        })),
        9 => Body::Cache(ToCache::Invalidate { ticket }),
        10 => Body::Cache(ToCache::Grant { ticket }),
        11 => Body::Cache(ToCache::Data { ticket, grant: fields.flag(FLAG_GRANT), zeros: fields.flag(FLAG_ZEROS) }),
        12 => Body::Cache(ToCache::Evicted { copy }),
        13 => Body::Cache(ToCache::Recall { copy }),
        _ => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Body> {
        let (frame, ticket) = (FrameId(7), Ticket(u64::MAX - 3));
        let copy = ticket;
        let forward = Forward { ticket, to: Rank(9), frame, access: Access::Write, grant: true };
        vec![
            Body::Home(ToHome::Read { frame }),
            Body::Home(ToHome::Write { frame, copy: None }),
            Body::Home(ToHome::Write { frame, copy: Some(copy) }),
            Body::Home(ToHome::Done { ticket }),
            Body::Home(ToHome::Bounce { ticket }),
            Body::Home(ToHome::Acknowledge { ticket }),
            Body::Home(ToHome::Evict { frame, copy, keep: true }),
            Body::Home(ToHome::Evict { frame, copy, keep: false }),
            Body::Home(ToHome::Forget { copy }),
            Body::Cache(ToCache::Forward(forward)),
            Body::Cache(ToCache::Forward(Forward { access: Access::Read, grant: false, ..forward })),
            Body::Cache(ToCache::Invalidate { ticket }),
            Body::Cache(ToCache::Grant { ticket }),
            Body::Cache(ToCache::Data { ticket, grant: true, zeros: false }),
            Body::Cache(ToCache::Data { ticket, grant: false, zeros: true }),
            Body::Cache(ToCache::Evicted { copy }),
            Body::Cache(ToCache::Recall { copy }),
        ]
    }

    #[test]
    fn every_message_survives_encoding() {
        for body in samples() {
            let message = Message { page: PageId { home: Rank(3), index: u32::MAX - 1 }, body };
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut bytes = Message { page: PageId { home: Rank(0), index: 0 }, body: samples()[0] }.encode();
        assert_eq!(Message::decode(&bytes[1..]), Err(Malformed));
        bytes[0] = 14;
        assert_eq!(Message::decode(&bytes), Err(Malformed));
        bytes[0] = 0;
        assert_eq!(Message::decode(&bytes), Err(Malformed));
    }
}
