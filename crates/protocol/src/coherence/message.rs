//! The messages of the coherence protocol. They may overtake each other.

use super::{Access, Cause, CopyVersion, FrameId, PageId, Priority, Share};
use crate::wire::{self, Encoded, Layout, Malformed};
use crate::{Rank, messages};

messages! {
    /// From a rank's cache to the home of the page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ToHome {
        /// The sender wants a copy and has none.
        1 => Read {
            /// The sender's frame for the copy.
            frame: FrameId,
            /// [`Priority::Soon`]: no operation waits for it. [`Priority::Later`]: not worth a read of the file; if the
            /// page has no holder the answer is [`ToCache::Unread`].
            priority: Priority,
        },
        /// The sender wants to own the page.
        2 => Write {
            /// The sender's frame with its copy, or for the page.
            frame: FrameId,
            /// The copy in `frame`, if there is one. An invalidation may be on its way to it.
            copy: Option<CopyVersion>,
        },
        /// The sender has the requested page: the transaction is complete.
        3 => Done {
            /// The transaction; from now on it names the copy.
            version: CopyVersion,
        },
        /// The sender was told to serve a requester, but no longer has a copy.
        4 => Nack {
            /// The transaction the home must serve in another way.
            version: CopyVersion,
        },
        /// Copies invalidated by [`ToCache::Invalidate`] are gone: the sender's, or those of ranks it relayed to.
        5 => Acknowledge {
            /// The invalidating transaction.
            version: CopyVersion,
            /// Number of copies.
            copies: u32,
        },
        /// Asks the home to write the sender's dirty copy back.
        6 => Evict {
            /// The sender's frame with the copy.
            frame: FrameId,
            /// The dirty copy.
            copy: CopyVersion,
            /// The sender keeps a clean copy; otherwise it frees the frame when answered.
            keep: bool,
            /// Priority of the write.
            priority: Priority,
        },
        /// Notice of a clean eviction: the sender gave up its copy some time ago.
        7 => Forget {
            /// The copy it had.
            copy: CopyVersion,
        },
        /// An operation now waits for the sender's request.
        14 => Hurry,
        /// The sender wants to own the page, and needs none of its bytes: it overwrites the whole page as soon as no other
        /// copy is left.
        16 => Overwrite {
            /// The sender's frame for the page.
            frame: FrameId,
        },
        /// From the home's own rank: it does not fetch the page requested by [`ToCache::Fetch`].
        18 => Decline {
            /// The version of the order.
            version: CopyVersion,
        },
    }
}

messages! {
    /// From a home, the holder serving a request, or a relaying rank, to a rank's cache.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ToCache {
        /// Tells a holder to serve a requester.
        8 => Forward(forward: Forward),
        /// Asks a holder to give up its copy and acknowledge.
        9 => Invalidate {
            /// The invalidating transaction.
            version: CopyVersion,
        },
        /// Allows the requester to write: no other copy is left.
        10 => Grant {
            /// The requester's transaction.
            version: CopyVersion,
        },
        /// The page is in the requester's frame.
        11 => Data {
            /// The requester's transaction.
            version: CopyVersion,
            /// Writing is allowed, too.
            grant: bool,
            /// No rank has written the page: nothing was transferred, and the requester fills the frame with zeros.
            zeros: bool,
        },
        /// The dirty copy is written back.
        12 => Evicted {
            /// The copy.
            copy: CopyVersion,
        },
        /// Asks the dirty owner to have its copy written back, and to keep a clean one.
        13 => Recall {
            /// The copy.
            copy: CopyVersion,
        },
        /// The page could not be read although no operation waited for it, or it has no holder. If operations wait by
        /// now, the rank asks again.
        15 => Unread,
        /// To the home's own rank, without cooperative caching: fetch the page in order to serve another rank.
        17 => Fetch {
            /// Names this order.
            version: CopyVersion,
            /// Priority of the other rank's request.
            priority: Priority,
        },
        /// The page could not be read: the waiting operations fail.
        19 => Unreadable {
            /// Write access was granted to the requester, or will be.
            granted: bool,
            /// Why.
            cause: Cause,
        },
        /// The write of the dirty copy failed: the copy stays dirty.
        20 => Unwritten {
            /// The copy.
            copy: CopyVersion,
            /// Why.
            cause: Cause,
        },
        /// Asks the receiver to invalidate the copies of some ranks and to acknowledge for them.
        21 => Relay {
            /// The invalidating transaction.
            version: CopyVersion,
            /// The ranks.
            to: Share,
        },
        /// To the sender of an invalidation: as [`ToHome::Acknowledge`].
        22 => Acknowledge {
            /// The invalidating transaction.
            version: CopyVersion,
            /// Number of copies.
            copies: u32,
        },
    }
}

messages! {
    /// A home's order to a holder to serve a requester.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Forward {
        /// The requester's transaction.
        pub version: CopyVersion,
        /// The requester.
        pub to: Rank,
        /// The requester's frame for the page.
        pub frame: FrameId,
        /// [`Access::Write`]: the holder's own copy ends with the transfer.
        pub access: Access,
        /// The requester may write as soon as it has the data.
        pub grant: bool,
    }
}

messages! {
    /// A message of the coherence protocol.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct CoherenceMessage {
        /// The content.
        pub body: CoherenceBody,
        /// The page it is about.
        pub page: PageId,
    }
}

/// The content of a message, by receiving role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoherenceBody {
    /// For the page's home.
    Home(ToHome),
    /// For a cache.
    Cache(ToCache),
}

/// The tags of the two roles differ, so a tag determines the role.
impl Layout for CoherenceBody {
    const BYTES_MAX: usize =
        if ToHome::BYTES_MAX > ToCache::BYTES_MAX { ToHome::BYTES_MAX } else { ToCache::BYTES_MAX };

    fn write(&self, to: &mut Encoded) {
        match self {
            CoherenceBody::Home(body) => body.write(to),
            CoherenceBody::Cache(body) => body.write(to),
        }
    }

    fn read(from: &mut &[u8]) -> Option<CoherenceBody> {
        let start = *from;
        ToHome::read(from).map(CoherenceBody::Home).or_else(|| {
            *from = start;
            ToCache::read(from).map(CoherenceBody::Cache)
        })
    }
}

impl CoherenceMessage {
    /// The sender's frame for a missing page, if this message asks for one.
    pub fn frame(&self) -> Option<FrameId> {
        match self.body {
            CoherenceBody::Home(
                ToHome::Read { frame, .. } | ToHome::Write { frame, copy: None } | ToHome::Overwrite { frame },
            ) => Some(frame),
            _ => None,
        }
    }

    /// The message as bytes; the first byte is less than 32.
    pub fn encode(&self) -> Encoded {
        wire::encode(self)
    }

    /// Reads the bytes of [`CoherenceMessage::encode`].
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn decode(bytes: &[u8]) -> Result<CoherenceMessage, Malformed> {
        wire::decode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn samples() -> Vec<CoherenceBody> {
        let (frame, version) = (FrameId(7), CopyVersion(u64::MAX - 3));
        let copy = version;
        let forward = Forward { version, to: Rank(9), frame, access: Access::Write, grant: true };
        vec![
            CoherenceBody::Home(ToHome::Read { frame, priority: Priority::Now }),
            CoherenceBody::Home(ToHome::Read { frame, priority: Priority::Soon }),
            CoherenceBody::Home(ToHome::Read { frame, priority: Priority::Later }),
            CoherenceBody::Home(ToHome::Hurry),
            CoherenceBody::Home(ToHome::Overwrite { frame }),
            CoherenceBody::Home(ToHome::Write { frame, copy: None }),
            CoherenceBody::Home(ToHome::Write { frame, copy: Some(copy) }),
            CoherenceBody::Home(ToHome::Done { version }),
            CoherenceBody::Home(ToHome::Nack { version }),
            CoherenceBody::Home(ToHome::Acknowledge { version, copies: 70_000 }),
            CoherenceBody::Home(ToHome::Evict { frame, copy, keep: true, priority: Priority::Later }),
            CoherenceBody::Home(ToHome::Evict { frame, copy, keep: false, priority: Priority::Now }),
            CoherenceBody::Home(ToHome::Forget { copy }),
            CoherenceBody::Cache(ToCache::Forward(forward)),
            CoherenceBody::Cache(ToCache::Forward(Forward { access: Access::Read, grant: false, ..forward })),
            CoherenceBody::Cache(ToCache::Invalidate { version }),
            CoherenceBody::Cache(ToCache::Relay { version, to: Share::new(&[Rank(3)]) }),
            CoherenceBody::Cache(ToCache::Relay { version, to: Share::new(&[1, 2, 3, 4, 5, 6, 7].map(Rank)) }),
            CoherenceBody::Cache(ToCache::Acknowledge { version, copies: 2 }),
            CoherenceBody::Cache(ToCache::Grant { version }),
            CoherenceBody::Cache(ToCache::Data { version, grant: true, zeros: false }),
            CoherenceBody::Cache(ToCache::Data { version, grant: false, zeros: true }),
            CoherenceBody::Cache(ToCache::Evicted { copy }),
            CoherenceBody::Cache(ToCache::Recall { copy }),
            CoherenceBody::Cache(ToCache::Unread),
            CoherenceBody::Cache(ToCache::Fetch { version, priority: Priority::Soon }),
            CoherenceBody::Home(ToHome::Decline { version }),
            CoherenceBody::Cache(ToCache::Unreadable { granted: true, cause: Cause(5) }),
            CoherenceBody::Cache(ToCache::Unwritten { copy, cause: Cause(28) }),
        ]
    }

    #[test]
    fn every_message_survives_encoding() {
        for body in samples() {
            let message = CoherenceMessage { page: PageId::of_segment(Rank(3), u32::MAX - 1), body };
            let bytes = message.encode();
            assert!(bytes[0] < 32);
            assert_eq!(CoherenceMessage::decode(&bytes), Ok(message));
            assert!((0..bytes.len()).all(|end| CoherenceMessage::decode(&bytes[..end]).is_err()));
        }
    }

    #[test]
    fn other_bytes_are_malformed() {
        let message = CoherenceMessage { page: PageId::of_segment(Rank(0), 0), body: samples()[0] };
        let bytes = message.encode().to_vec();
        assert_eq!(CoherenceMessage::decode(&bytes[1..]), Err(Malformed));
        for tag in [0, 23, 255] {
            let other = [&[tag], &bytes[1..]].concat();
            assert_eq!(CoherenceMessage::decode(&other), Err(Malformed));
        }
        let flagged = CoherenceMessage {
            body: CoherenceBody::Home(ToHome::Evict {
                frame: FrameId(0),
                copy: CopyVersion(0),
                keep: true,
                priority: Priority::Now,
            }),
            ..message
        };
        let mut bytes = flagged.encode().to_vec();
        bytes[13] = 2;
        assert_eq!(CoherenceMessage::decode(&bytes), Err(Malformed), "a flag is 0 or 1");
    }
}
