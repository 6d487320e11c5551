//! The entries of a directory, with little memory for those of pages about which nothing is under way.

use super::super::{CopyVersion, PageId};
use super::entry::{Entry, Holder};
use crate::Rank;
use crate::page_map::PageMap;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::mem;

/// The entries by page.
///
/// An event takes the entry of its page into motion with [`Entries::open`], and lets it come to rest with [`Entries::settle`]. So
/// between two events those are at rest that may be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entries(PageMap<Record>);

/// What is known of a page that is held or asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Record {
    /// A page at rest with one holder, which accounts for its bytes if it is dirty.
    One { copy: CopyVersion, rank: Rank, is_dirty: bool },
    /// A page at rest with several holders.
    Several(Box<Holders>),
    /// A page about which something is under way.
    Moving(Box<Entry>),
}

const _: () = assert!(size_of::<Record>() == 16, "a page of which little is to be known takes little");

/// See [`Entry`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Holders {
    holders: VecDeque<Holder>,
    dirty_owner: Option<Rank>,
}

impl Entries {
    pub fn new() -> Entries {
        Entries(PageMap::new())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes a page's entry into motion. It is empty if there was none.
    pub fn open(&mut self, page: PageId) -> &mut Entry {
        self.0.get_or_insert_with(page, || Record::Moving(Box::default())).open()
    }

    /// The entry of a page in motion.
    pub fn moving(&self, page: PageId) -> Option<&Entry> {
        self.0.get(page).and_then(Record::moving)
    }

    /// The entry of a page in motion.
    pub fn moving_mut(&mut self, page: PageId) -> Option<&mut Entry> {
        match self.0.get_mut(page)? {
            Record::Moving(entry) => Some(entry),
            Record::One { .. } | Record::Several(_) => None,
        }
    }

    /// Lets the entry of a page in motion come to rest, if nothing is under way, or drops it if it has nothing left to say.
    pub fn settle(&mut self, page: PageId) {
        let Some(record) = self.0.get_mut(page) else { return };
        let Record::Moving(entry) = record else { return };
        if !entry.is_quiet() || entry.io.is_some() {
            return;
        }
        match entry.holders.len() {
            0 => {
                self.0.remove(page);
            }
            1 => {
                let Holder { rank, copy } = entry.holders[0];
                *record = Record::One { copy, rank, is_dirty: entry.dirty_owner.is_some() };
            }
            _ => {
                let Entry { holders, dirty_owner, .. } = mem::take(&mut **entry);
                *record = Record::Several(Box::new(Holders { holders, dirty_owner }));
            }
        }
    }

    /// The holders of a page, from the bottom of the stack to its top.
    pub fn holders(&self, page: PageId) -> impl Iterator<Item = Holder> + '_ {
        let (one, several) = match self.0.get(page) {
            None => (None, None),
            Some(Record::One { rank, copy, .. }) => (Some(Holder { rank: *rank, copy: *copy }), None),
            Some(Record::Several(several)) => (None, Some(&several.holders)),
            Some(Record::Moving(entry)) => (None, Some(&entry.holders)),
        };
        one.into_iter().chain(several.into_iter().flatten().copied())
    }

    /// The holder that accounts for bytes which the backing file lacks.
    pub fn dirty_owner(&self, page: PageId) -> Option<Rank> {
        match self.0.get(page)? {
            Record::One { rank, is_dirty, .. } => is_dirty.then_some(*rank),
            Record::Several(several) => several.dirty_owner,
            Record::Moving(entry) => entry.dirty_owner,
        }
    }

    /// All entries of pages in motion. This looks at the others, too.
    pub fn all_moving(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter_map(|(_, record)| record.moving())
    }

    /// The copies of pages at rest, handed to `at_rest`, and the entries of the others, handed to `moving`.
    pub fn each_mut<'a>(
        &'a mut self,
        mut at_rest: impl FnMut(&'a mut CopyVersion),
        mut moving: impl FnMut(&'a mut Entry),
    ) {
        for record in self.0.values_mut() {
            match record {
                Record::One { copy, .. } => at_rest(copy),
                Record::Several(several) => several.holders.iter_mut().for_each(|holder| at_rest(&mut holder.copy)),
                Record::Moving(entry) => moving(entry),
            }
        }
    }
}

impl Record {
    fn moving(&self) -> Option<&Entry> {
        match self {
            Record::Moving(entry) => Some(entry),
            Record::One { .. } | Record::Several(_) => None,
        }
    }

    fn open(&mut self) -> &mut Entry {
        let at_rest = match self {
            Record::Moving(_) => None,
            Record::One { copy, rank, is_dirty } => {
                let holders = VecDeque::from([Holder { rank: *rank, copy: *copy }]);
                Some(Holders { holders, dirty_owner: is_dirty.then_some(*rank) })
            }
            Record::Several(several) => Some(mem::take(&mut **several)),
        };
        if let Some(Holders { holders, dirty_owner }) = at_rest {
            *self = Record::Moving(Box::new(Entry { holders, dirty_owner, ..Entry::default() }));
        }
        match self {
            Record::Moving(entry) => entry,
            Record::One { .. } | Record::Several(_) => unreachable!("it is in motion by now"),
        }
    }
}
