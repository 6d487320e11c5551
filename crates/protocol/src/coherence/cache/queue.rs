//! A queue of pages with removal from any position.

use super::super::PageId;
use alloc::collections::BTreeMap;

/// Pages in order. A removal from the middle costs one look-up: a pool may be emptied page by page.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PageQueue {
    links: BTreeMap<PageId, Links>,
    first: Option<PageId>,
    last: Option<PageId>,
}

/// The neighbours of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Links {
    before: Option<PageId>,
    behind: Option<PageId>,
}

impl PageQueue {
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Appends a page not in the queue.
    pub fn push_back(&mut self, page: PageId) {
        let before = self.last.replace(page);
        *self.behind(before) = Some(page);
        let known = self.links.insert(page, Links { before, behind: None });
        assert!(known.is_none(), "{page:?} is in the queue twice");
        debug_assert!(self.first.is_some() && self.last == Some(page), "{page:?} is the last of the queue");
    }

    pub fn pop_front(&mut self) -> Option<PageId> {
        let page = self.first?;
        self.remove(page);
        debug_assert_ne!(self.first, Some(page), "{page:?} has left the queue");
        Some(page)
    }

    /// Removes a page if it is in the queue.
    pub fn remove(&mut self, page: PageId) {
        let Some(Links { before, behind }) = self.links.remove(&page) else { return };
        *self.behind(before) = behind;
        *self.before(behind) = before;
        debug_assert_eq!(self.first.is_none(), self.links.is_empty(), "a queue with pages has a first one");
    }

    /// The link to the successor of `page`, or to the first page.
    fn behind(&mut self, page: Option<PageId>) -> &mut Option<PageId> {
        match page {
            Some(page) => &mut self.links.get_mut(&page).expect("a neighbour is in the queue").behind,
            None => &mut self.first,
        }
    }

    /// The link to the predecessor of `page`, or to the last page.
    fn before(&mut self, page: Option<PageId>) -> &mut Option<PageId> {
        match page {
            Some(page) => &mut self.links.get_mut(&page).expect("a neighbour is in the queue").before,
            None => &mut self.last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;
    use std::vec::Vec;

    #[test]
    fn pages_leave_from_anywhere_and_the_others_keep_their_order() {
        let page = |index| PageId::of_segment(Rank(0), index);
        for left in 0..1 << 6 {
            let mut queue = PageQueue::default();
            (0..6).for_each(|index| queue.push_back(page(index)));
            let leaves = |index: &u32| left >> index & 1 == 1;
            (0..7).filter(leaves).for_each(|index| queue.remove(page(index)));
            queue.remove(page(9));
            queue.push_back(page(8));
            let expected: Vec<PageId> = (0..6).filter(|index| !leaves(index)).chain([8]).map(page).collect();
            assert_eq!(queue.len(), expected.len());
            let pages: Vec<PageId> = core::iter::from_fn(|| queue.pop_front()).collect();
            assert_eq!(pages, expected);
            assert_eq!(queue, PageQueue::default());
        }
    }
}
