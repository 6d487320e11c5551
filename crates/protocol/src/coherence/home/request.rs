//! A request about a page, until it starts.

use super::super::{CopyVersion, FrameId, Priority};
use crate::Rank;

/// A request of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Request {
    pub from: Rank,
    /// The frame of `from` with the page, or for it.
    pub frame: FrameId,
    pub kind: RequestKind,
    pub priority: Priority,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RequestKind {
    /// `tried_home`: the home's own cache was already told to fetch the page for this request, and is not told again.
    Read {
        tried_home: bool,
    },
    Write {
        copy: Option<CopyVersion>,
    },
    Overwrite,
    /// From the home itself: bring the file up to date with the page.
    Recall,
    /// From the home itself: the ranks keeping the page for others give it up.
    Dismiss,
    Evict {
        copy: CopyVersion,
        keep: bool,
    },
}
