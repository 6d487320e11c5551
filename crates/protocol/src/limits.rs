//! Limits on every message of a peer, known from attach on.

use crate::coherence::{CoherenceBody, CoherenceMessage, FrameId, ToCache, ToHome};
use crate::{Rank, Space, Spaces, Violation};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Memory sizes of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankSizes {
    /// Pages of its segment.
    pub pages: u32,
    /// Frames of its pool for pages; at least 1.
    pub frames: u32,
}

/// Memory sizes of all ranks, as known to one rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limits {
    rank: Rank,
    spaces: Spaces,
    /// Of each rank.
    frames: Arc<[u32]>,
}

impl Limits {
    /// The limits at `rank`, one of these ranks.
    pub fn new(rank: Rank, sizes: impl IntoIterator<Item = RankSizes>) -> Limits {
        let (pages, frames): (Vec<u32>, Vec<u32>) = sizes.into_iter().map(|sizes| (sizes.pages, sizes.frames)).unzip();
        assert!(rank.index() < frames.len(), "rank {rank} of {}", frames.len());
        Limits { rank, spaces: Spaces::new(pages), frames: frames.into() }
    }

    /// Replaces the spaces by `segments`, with the same segments and other homes.
    #[must_use]
    pub fn with_homes(self, segments: Spaces) -> Limits {
        assert_eq!(segments.ranks(), self.ranks(), "the homes change, and the segments do not");
        Limits { spaces: segments, ..self }
    }

    /// This rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// This rank's memory.
    pub fn own(&self) -> RankSizes {
        RankSizes { pages: self.spaces.pages(Space::of_segment(self.rank)), frames: self.frames[self.rank.index()] }
    }

    /// The job's spaces.
    pub fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    pub(crate) fn spaces_mut(&mut self) -> &mut Spaces {
        &mut self.spaces
    }

    /// Number of ranks in the job.
    pub fn ranks(&self) -> u32 {
        self.frames.len() as u32
    }

    /// Checks a received coherence message: its sender, page, rank and frame exist, and a message to a home is about a
    /// page of this rank.
    ///
    /// # Errors
    /// One of these does not hold.
    pub fn check(&self, from: Rank, message: &CoherenceMessage) -> Result<(), Violation> {
        let violation = |what| Err(Violation::about(message.page, from, what));
        if from.0 >= self.ranks() {
            return violation("a message, and there is no such rank");
        }
        if !self.spaces.has(message.page) {
            return violation("a message about a page that does not exist");
        }
        match message.body {
            CoherenceBody::Home(_) if self.spaces.home(message.page) != self.rank => {
                violation("a message for the home of a page of another rank")
            }
            CoherenceBody::Home(
                ToHome::Read { frame, .. }
                | ToHome::Overwrite { frame }
                | ToHome::Write { frame, .. }
                | ToHome::Evict { frame, .. },
            ) if !self.has_frame(from, frame) => violation("a request with a frame that it does not have"),
            CoherenceBody::Cache(ToCache::Forward(forward)) if !self.has_frame(forward.to, forward.frame) => {
                violation("an order to serve a rank or a frame that does not exist")
            }
            CoherenceBody::Cache(ToCache::Relay { to, .. }) if to.ranks().iter().any(|rank| rank.0 >= self.ranks()) => {
                violation("an order to tell a rank that does not exist")
            }
            _ => Ok(()),
        }
    }

    fn has_frame(&self, rank: Rank, frame: FrameId) -> bool {
        self.frames.get(rank.index()).is_some_and(|frames| frame.0 < *frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coherence::{Access, CopyVersion, Forward, PageId, Priority};

    #[test]
    fn what_does_not_exist_is_refused() {
        let limits = Limits::new(Rank(1), [(3, 2), (5, 4)].map(|(pages, frames)| RankSizes { pages, frames }));
        let home = |frame, home, index| CoherenceMessage {
            body: CoherenceBody::Home(ToHome::Read { frame: FrameId(frame), priority: Priority::Now }),
            page: PageId::of_segment(Rank(home), index),
        };
        assert_eq!(limits.check(Rank(0), &home(1, 1, 4)), Ok(()));
        assert_eq!(limits.check(Rank(1), &home(3, 1, 0)), Ok(()));
        for (from, message) in
            [(0, home(2, 1, 4)), (0, home(1, 1, 5)), (0, home(1, 0, 2)), (0, home(1, 2, 0)), (2, home(0, 1, 0))]
        {
            assert!(
                limits.check(Rank(from), &message).is_err_and(|violation| violation.from == Rank(from)),
                "{message:?}"
            );
        }
        let forward = |to, frame| {
            let (version, access) = (CopyVersion(1), Access::Read);
            let forward = Forward { version, to: Rank(to), frame: FrameId(frame), access, grant: false };
            CoherenceMessage {
                body: CoherenceBody::Cache(ToCache::Forward(forward)),
                page: PageId::of_segment(Rank(0), 2),
            }
        };
        assert_eq!(limits.check(Rank(0), &forward(0, 1)), Ok(()));
        assert!(limits.check(Rank(0), &forward(0, 2)).is_err() && limits.check(Rank(0), &forward(2, 0)).is_err());
    }
}
