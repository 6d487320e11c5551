//! Spaces: ranges of pages. Each rank's segment is one, as is each open shared file.

mod cyclic;

use crate::Rank;
use crate::page_id::{PageId, Space};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use cyclic::Cyclic;

/// The homes of a file's pages: round robin, a stripe each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stripes {
    /// The homes, at least one.
    pub homes: Arc<[Rank]>,
    /// Pages of a stripe, at least one.
    pub pages: u32,
}

impl Stripes {
    /// The home of the page at `index`.
    pub fn home(&self, index: u32) -> Rank {
        self.homes[(index / self.pages) as usize % self.homes.len()]
    }
}

/// The job's spaces: the number of pages of each, and the home of each page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spaces {
    /// Pages of each rank's segment.
    segments: Arc<[u32]>,
    /// Set if segments' pages have cyclic homes instead of their own rank.
    cyclic: Option<Cyclic>,
    /// The open files.
    files: Arc<BTreeMap<Space, Stripes>>,
}

impl Spaces {
    /// The segments of ranks with `pages` pages each, and no file.
    pub fn new(pages: impl IntoIterator<Item = u32>) -> Spaces {
        let segments: Arc<[u32]> = pages.into_iter().collect();
        assert!(segments.len() < 1 << 31, "ranks are numbered up to 2^31, and files from there");
        Spaces { segments, cyclic: None, files: Arc::default() }
    }

    /// Assigns segments' pages to all ranks round robin, `stripe_pages` at a time.
    ///
    /// # Panics
    /// `stripe_pages` is 0.
    #[must_use]
    pub fn with_cyclic_homes(self, stripe_pages: u32) -> Spaces {
        Spaces { cyclic: Some(Cyclic::new(&self.segments, stripe_pages)), ..self }
    }

    /// Number of ranks in the job.
    pub fn ranks(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Whether segments' pages have cyclic homes.
    pub fn are_homes_cyclic(&self) -> bool {
        self.cyclic.is_some()
    }

    /// Whether pages of this space with this home lie in the home's backing file.
    pub fn is_in_backing_file(&self, home: Rank, space: Space) -> bool {
        space.segment().is_some_and(|segment| segment == home || self.cyclic.is_some())
    }

    /// The position of a segment's page in the backing file of its home, in pages.
    pub fn place_at_home(&self, page: PageId) -> u32 {
        match (&self.cyclic, page.space.segment()) {
            (Some(cyclic), Some(segment)) => cyclic.place(segment, page.index),
            _ => page.index,
        }
    }

    /// The page at a position of a home's backing file.
    pub fn page_at_place(&self, home: Rank, place: u32) -> PageId {
        match &self.cyclic {
            Some(cyclic) => cyclic.page(home, place),
            None => PageId { space: Space::of_segment(home), index: place },
        }
    }

    /// Pages in the backing file of a rank. May exceed the range of a position.
    pub fn places_at_home(&self, home: Rank) -> u64 {
        match &self.cyclic {
            Some(cyclic) => cyclic.places(),
            None => u64::from(self.pages(Space::of_segment(home))),
        }
    }

    /// Adds a file. It may grow, so any page of it exists.
    ///
    /// # Panics
    /// The file exists, or `file` is a segment.
    pub fn add_file(&mut self, file: Space, stripes: Stripes) {
        assert!(file.segment().is_none() && !stripes.homes.is_empty() && stripes.pages > 0, "{file:?} is no file");
        let before = Arc::make_mut(&mut self.files).insert(file, stripes);
        assert!(before.is_none(), "{file:?} is open");
    }

    /// Forgets a file.
    pub fn remove_file(&mut self, file: Space) {
        let gone = Arc::make_mut(&mut self.files).remove(&file);
        assert!(gone.is_some(), "{file:?} is open until it is closed");
    }

    /// Whether it is a file not open: not yet, or no longer.
    pub fn is_closed(&self, space: Space) -> bool {
        space.segment().is_none() && !self.files.contains_key(&space)
    }

    /// Number of pages of a space; 0 if there is no such space.
    pub fn pages(&self, space: Space) -> u32 {
        match space.segment() {
            Some(rank) => self.segments.get(rank.index()).copied().unwrap_or_default(),
            None if self.files.contains_key(&space) => u32::MAX,
            None => 0,
        }
    }

    /// Whether the page exists.
    pub fn has(&self, page: PageId) -> bool {
        page.index < self.pages(page.space)
    }

    /// The home of a page: the rank with its directory entry, doing its I/O.
    ///
    /// # Panics
    /// There is no such space.
    #[inline]
    pub fn home(&self, page: PageId) -> Rank {
        match (page.space.segment(), &self.cyclic) {
            (Some(segment), None) => segment,
            (Some(segment), Some(cyclic)) => cyclic.home(segment, page.index),
            (None, _) => self.home_in_file(page),
        }
    }

    fn home_in_file(&self, page: PageId) -> Rank {
        self.files.get(&page.space).expect("the file is open").home(page.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn segments_are_named_by_their_ranks_and_files_by_a_bit() {
        let (segment, file) = (Space::of_segment(Rank(3)), Space::of_file(3));
        assert_eq!((segment.segment(), segment.number()), (Some(Rank(3)), 3));
        assert_eq!((file.segment(), file.number()), (None, 3 | 1 << 31));
        let names = [segment, file].map(|space| format!("{:?}", PageId { space, index: 4 }));
        assert_eq!(names, ["p3.4", "pfile3.4"]);
    }

    #[test]
    fn the_table_knows_sizes_and_homes() {
        let spaces = Spaces::new([2, 0, 5]);
        let page = |rank, index| PageId::of_segment(Rank(rank), index);
        assert!(
            spaces.has(page(0, 1)) && !spaces.has(page(0, 2)) && !spaces.has(page(1, 0)) && !spaces.has(page(3, 0))
        );
        assert_eq!(spaces.home(page(2, 4)), Rank(2));
        assert_eq!(spaces.pages(Space::of_file(0)), 0);
    }

    #[test]
    fn the_homes_of_a_file_take_turns_by_stripes() {
        let (file, mut spaces) = (Space::of_file(7), Spaces::new([1]));
        let page = |index| PageId { space: file, index };
        assert!(spaces.is_closed(file) && !spaces.has(page(0)) && !spaces.is_closed(Space::of_segment(Rank(9))));
        spaces.add_file(file, Stripes { homes: Arc::new([Rank(4), Rank(2), Rank(9)]), pages: 2 });
        let homes = [0, 1, 2, 3, 4, 5, 6, u32::MAX - 1].map(|index| spaces.home(page(index)).0);
        assert_eq!(homes, [4, 4, 2, 2, 9, 9, 4, 2]);
        assert!(spaces.has(page(u32::MAX - 1)) && !spaces.has(page(u32::MAX)));
        spaces.remove_file(file);
        assert!(spaces.is_closed(file));
    }
}
