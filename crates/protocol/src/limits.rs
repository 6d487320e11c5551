//! Limits on every message of a peer, known from attach on.

use crate::page_id::FrameId;
use crate::{Rank, Space, Spaces};
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

    pub(crate) fn has_frame(&self, rank: Rank, frame: FrameId) -> bool {
        self.frames.get(rank.index()).is_some_and(|frames| frame.0 < *frames)
    }
}
