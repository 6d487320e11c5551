//! The ranks that one message tells to give up a page.

use crate::Rank;
use crate::wire::{self, Encoded, Layout};

/// Ranks in a [`Share`]: the capacity of a message.
pub(super) const SHARE_MAX: usize = 7;

/// Some ranks for the receiver to invalidate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share {
    len: u8,
    /// Zeros from `len` on.
    ranks: [Rank; SHARE_MAX],
}

impl Share {
    /// A share of at least 1 and at most 7 ranks, the capacity of a message.
    ///
    /// # Panics
    /// `ranks` is empty or longer.
    pub fn new(ranks: &[Rank]) -> Share {
        assert!(!ranks.is_empty(), "a share is of somebody");
        assert!(ranks.len() <= SHARE_MAX, "a share is of {SHARE_MAX} ranks at most, not of {}", ranks.len());
        let mut share = Share { len: ranks.len() as u8, ranks: [Rank(0); SHARE_MAX] };
        share.ranks[..ranks.len()].copy_from_slice(ranks);
        share
    }

    /// The ranks.
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks[..usize::from(self.len)]
    }
}

impl core::fmt::Debug for Share {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.ranks().fmt(formatter)
    }
}

impl Layout for Share {
    const BYTES_MAX: usize = size_of::<u8>() + SHARE_MAX * size_of::<Rank>();

    fn write(&self, to: &mut Encoded) {
        to.push(&self.len);
        self.ranks().iter().for_each(|rank| to.push(rank));
    }

    fn read(from: &mut &[u8]) -> Option<Share> {
        let len = wire::take::<u8>(from)?;
        let mut share = Share { len, ranks: [Rank(0); SHARE_MAX] };
        for rank in share.ranks.get_mut(..usize::from(len)).filter(|ranks| !ranks.is_empty())? {
            *rank = wire::take(from)?;
        }
        Some(share)
    }
}
