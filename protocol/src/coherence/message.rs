//! The messages of the coherence protocol. They may overtake each other on the way.

use super::{Access, CopyVersion, FrameId, PageId};
use crate::wire::{self, Encoded, Layout, Malformed};
use crate::{Rank, layout_of_fields, messages};

messages! {
    /// From a rank's cache to the home of the page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ToHome {
        /// Wants a copy in `frame`; has none.
        1 => Read {
            /// Where the copy goes.
            frame: FrameId,
        },
        /// Wants to own the page in `frame`.
        2 => Write {
            /// Where the page is, or goes.
            frame: FrameId,
            /// The copy in `frame`, unless it is invalidated before the home reads this.
            copy: Option<CopyVersion>,
        },
        /// The transaction `version` is complete at the requester: it holds the page.
        3 => Done {
            /// The transaction; from now on it names the copy.
            version: CopyVersion,
        },
        /// The holder that was asked to serve `version` has no copy any more.
        4 => Nack {
            /// The transaction to serve in another way.
            version: CopyVersion,
        },
        /// The sender's copy is gone, as the transaction `version` asked.
        5 => Acknowledge {
            /// The transaction.
            version: CopyVersion,
        },
        /// Asks the home to write the sender's dirty copy back.
        6 => Evict {
            /// Where it is.
            frame: FrameId,
            /// Which copy.
            copy: CopyVersion,
            /// The sender keeps a clean copy; else it gives up the frame when answered.
            keep: bool,
        },
        /// The sender gave up a clean copy some time ago.
        7 => Forget {
            /// Which copy.
            copy: CopyVersion,
        },
    }
}

messages! {
    /// From a home, or from a holder that serves in its name, to a rank's cache.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ToCache {
        /// Asks for a copy in `frame` of `to`.
        8 => Forward(forward: Forward),
        /// Asks to give up the copy and acknowledge.
        9 => Invalidate {
            /// The transaction that needs it.
            version: CopyVersion,
        },
        /// Allows writing: no other copy exists.
        10 => Grant {
            /// The transaction asked for.
            version: CopyVersion,
        },
        /// The page is in the frame of the request.
        11 => Data {
            /// The transaction asked for.
            version: CopyVersion,
            /// Writing is allowed too.
            grant: bool,
            /// The page was never written: it is zeros, and nothing was transferred.
            zeros: bool,
        },
        /// The dirty copy is written back.
        12 => Evicted {
            /// Which copy.
            copy: CopyVersion,
        },
        /// Asks to write the dirty copy back, and to keep a clean one.
        13 => Recall {
            /// Which copy.
            copy: CopyVersion,
        },
    }
}

/// A home's order to a holder to serve a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Forward {
    /// The transaction that this serves.
    pub version: CopyVersion,
    /// The requester.
    pub to: Rank,
    /// Its frame.
    pub frame: FrameId,
    /// `Write`: the holder's own copy ends with the transfer.
    pub access: Access,
    /// The requester may write as soon as it has the data.
    pub grant: bool,
}

layout_of_fields!(Forward { version, to, frame, access, grant });

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

impl Layout for Message {
    fn write(&self, to: &mut Encoded) {
        match &self.body {
            Body::Home(body) => body.write(to),
            Body::Cache(body) => body.write(to),
        }
        self.page.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Message> {
        // The tags of the two roles differ.
        let mut rest = *from;
        let body = match ToHome::read(&mut rest) {
            Some(body) => Body::Home(body),
            None => {
                rest = *from;
                Body::Cache(ToCache::read(&mut rest)?)
            }
        };
        *from = rest;
        Some(Message { page: PageId::read(from)?, body })
    }
}

impl Message {
    /// The sender's frame where a page is to go, if this asks for a page that the sender lacks.
    pub fn frame(&self) -> Option<FrameId> {
        match self.body {
            Body::Home(ToHome::Read { frame } | ToHome::Write { frame, copy: None }) => Some(frame),
            _ => None,
        }
    }

    /// The message as bytes, the first of which is less than 32.
    pub fn encode(&self) -> Encoded {
        wire::encode(self)
    }

    /// Reads what [`Message::encode`] wrote.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
        wire::decode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn samples() -> Vec<Body> {
        let (frame, version) = (FrameId(7), CopyVersion(u64::MAX - 3));
        let copy = version;
        let forward = Forward { version, to: Rank(9), frame, access: Access::Write, grant: true };
        vec![
            Body::Home(ToHome::Read { frame }),
            Body::Home(ToHome::Write { frame, copy: None }),
            Body::Home(ToHome::Write { frame, copy: Some(copy) }),
            Body::Home(ToHome::Done { version }),
            Body::Home(ToHome::Nack { version }),
            Body::Home(ToHome::Acknowledge { version }),
            Body::Home(ToHome::Evict { frame, copy, keep: true }),
            Body::Home(ToHome::Evict { frame, copy, keep: false }),
            Body::Home(ToHome::Forget { copy }),
            Body::Cache(ToCache::Forward(forward)),
            Body::Cache(ToCache::Forward(Forward { access: Access::Read, grant: false, ..forward })),
            Body::Cache(ToCache::Invalidate { version }),
            Body::Cache(ToCache::Grant { version }),
            Body::Cache(ToCache::Data { version, grant: true, zeros: false }),
            Body::Cache(ToCache::Data { version, grant: false, zeros: true }),
            Body::Cache(ToCache::Evicted { copy }),
            Body::Cache(ToCache::Recall { copy }),
        ]
    }

    #[test]
    fn every_message_survives_encoding() {
        for body in samples() {
            let message = Message { page: PageId { home: Rank(3), index: u32::MAX - 1 }, body };
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes), Ok(message));
            assert!((0..bytes.len()).all(|end| Message::decode(&bytes[..end]).is_err()));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let message = Message { page: PageId { home: Rank(0), index: 0 }, body: samples()[0] };
        let bytes = message.encode().to_vec();
        assert_eq!(Message::decode(&bytes[1..]), Err(Malformed));
        for tag in [0, 14, 255] {
            let other = [&[tag], &bytes[1..]].concat();
            assert_eq!(Message::decode(&other), Err(Malformed));
        }
        let flagged = Message {
            body: Body::Home(ToHome::Evict { frame: FrameId(0), copy: CopyVersion(0), keep: true }),
            ..message
        };
        let mut bytes = flagged.encode().to_vec();
        bytes[13] = 2;
        assert_eq!(Message::decode(&bytes), Err(Malformed), "a flag is 0 or 1");
    }
}
