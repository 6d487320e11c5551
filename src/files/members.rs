//! The ranks that have a file open, in a team of the file's own: collective calls of other files never come between its
//! own, and the team given at open may be freed.

use super::FileError;
use crate::coll::Coll;
use std::sync::Arc;
use vgasnet_protocol::Rank;
use zerocopy::{FromBytes, IntoBytes};

/// The ranks that have a file open.
pub(super) struct Members {
    coll: Arc<Coll>,
    team: u64,
    ranks: Box<[u32]>,
    /// This rank's index among them.
    me: u32,
}

impl Members {
    /// The ranks of a team, this one being number `me`.
    pub(super) fn new(coll: Arc<Coll>, team: u64, ranks: Box<[u32]>, me: u32) -> Members {
        assert!((me as usize) < ranks.len(), "this rank is a member");
        Members { coll, team, ranks, me }
    }

    pub(super) fn ranks(&self) -> impl ExactSizeIterator<Item = Rank> + '_ {
        self.ranks.iter().map(|rank| Rank(*rank))
    }

    /// All members but this rank.
    pub(super) fn others(&self) -> impl Iterator<Item = Rank> + '_ {
        self.ranks().filter(|rank| *rank != self.own())
    }

    pub(super) fn first(&self) -> Rank {
        Rank(self.ranks[0])
    }

    pub(super) fn own(&self) -> Rank {
        Rank(self.ranks[self.me as usize])
    }

    pub(super) fn is_first(&self) -> bool {
        self.me == 0
    }

    /// Gathers a value from all members, in their order. Collective.
    ///
    /// # Errors
    /// The team was freed.
    pub(super) fn gather<T: Copy + FromBytes + IntoBytes>(&self, mine: T) -> Result<Vec<T>, FileError> {
        self.gather_or_tell(mine, None)
    }

    /// As [`Members::gather`]. Calls `tell` once if others are late.
    ///
    /// # Errors
    /// As there.
    pub(super) fn gather_or_tell<T>(&self, mine: T, tell: Option<&dyn Fn()>) -> Result<Vec<T>, FileError>
    where
        T: Copy + FromBytes + IntoBytes,
    {
        Ok(self.coll.gather_all_or_tell(self.team, mine, tell)?)
    }

    /// Returns when all members have come. Collective.
    ///
    /// # Errors
    /// The team was freed.
    pub(super) fn meet(&self) -> Result<(), FileError> {
        self.gather(0_u32).map(drop)
    }

    /// Frees the team. No collective call follows.
    ///
    /// # Errors
    /// It was freed before, or a collective call is under way.
    pub(super) fn disband(&self) -> Result<(), FileError> {
        Ok(self.coll.free_team(self.team)?)
    }
}
