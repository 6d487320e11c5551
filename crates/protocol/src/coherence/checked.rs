//! The check of every message of a peer, before its home or cache takes it.

use super::{CoherenceBody, CoherenceMessage, ToCache, ToHome};
use crate::{Limits, Rank, Violation};

impl Limits {
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
        if !self.spaces().has(message.page) {
            return violation("a message about a page that does not exist");
        }
        match message.body {
            CoherenceBody::Home(_) if self.spaces().home(message.page) != self.rank() => {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RankSizes;
    use crate::coherence::{Access, CopyVersion, Forward, FrameId, PageId, Priority};

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
