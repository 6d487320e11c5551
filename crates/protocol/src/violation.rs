//! Peers' messages that make no sense.

use crate::Rank;
use crate::page_id::PageId;
use core::fmt;

/// A message no conforming rank sends. The job cannot go on: the sender's state is inconsistent with this rank's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Violation {
    /// The sender.
    pub from: Rank,
    /// The message, in words.
    pub what: &'static str,
    /// The page the message is about, if any.
    pub page: Option<PageId>,
}

impl Violation {
    /// A message about no page.
    pub fn new(from: Rank, what: &'static str) -> Violation {
        Violation { from, what, page: None }
    }

    /// A message about a page.
    pub fn about(page: PageId, from: Rank, what: &'static str) -> Violation {
        Violation { from, what, page: Some(page) }
    }
}

/// One line for the user.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} sent {}", self.from, self.what)?;
        if let Some(PageId { space, index }) = self.page {
            match space.segment() {
                Some(rank) => write!(f, " (page {index} of rank {rank})")?,
                None => write!(f, " (page {index} of {space:?})")?,
            }
        }
        f.write_str("; do all ranks run the same version of vgasnet?")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_line_names_the_rank_and_the_page() {
        let line = Violation::about(PageId::of_segment(Rank(2), 7), Rank(3), "a grant that nobody asked for");
        let expected = "rank 3 sent a grant that nobody asked for (page 7 of rank 2); do all ranks run the same version \
                        of vgasnet?";
        assert_eq!(line.to_string(), expected);
        assert!(Violation::new(Rank(0), "a message").to_string().starts_with("rank 0 sent a message; "));
    }
}
