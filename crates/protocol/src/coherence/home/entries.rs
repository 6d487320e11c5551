//! The entries of a directory, compact while stable.

use super::super::{CopyVersion, PageId};
use super::entry::Entry;
use super::holders::{Holder, Holders};
use crate::page_map::PageMap;
use crate::{Rank, Space};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use core::mem;

/// The entries by page.
///
/// An event makes its page's entry transient with [`Entries::open`] and stable again with [`Entries::settle`]. Between
/// two events every entry that can be stable is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entries {
    records: PageMap<Record>,
    transient: PageMap<Entry>,
    /// Stable file pages with a dirty owner.
    dirty_of_files: BTreeSet<PageId>,
}

/// The record of a page held or requested.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Record {
    /// A stable page with one holder, the dirty owner if `is_dirty`.
    One { copy: CopyVersion, rank: Rank, is_dirty: bool },
    /// A stable page with several holders.
    Several(Box<Several>),
    /// A transient page; its entry is in [`Entries::transient`].
    Transient,
}

const _: () = assert!(size_of::<Record>() == 16, "a page of which little is to be known takes little");

/// See [`Entry`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Several {
    holders: Holders,
    dirty_owner: Option<Rank>,
}

impl Entries {
    pub fn new() -> Entries {
        Entries { records: PageMap::new(), transient: PageMap::new(), dirty_of_files: BTreeSet::new() }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The pages with entries.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.records.iter().map(|(page, _)| page)
    }

    /// The pages from `page` on with entries, in order.
    pub fn pages_from(&self, page: PageId) -> impl Iterator<Item = PageId> + '_ {
        self.records.from(page).map(|(page, _)| page)
    }

    /// Forgets a page.
    pub fn remove(&mut self, page: PageId) {
        self.records.remove(page);
        self.transient.remove(page);
        self.dirty_of_files.remove(&page);
    }

    /// Whether the page is held or requested.
    pub fn has(&self, page: PageId) -> bool {
        self.records.get(page).is_some()
    }

    /// Makes a page's entry transient, adding an empty one if there was none.
    pub fn open(&mut self, page: PageId) -> &mut Entry {
        let record = self.records.get_or_insert_with(page, || Record::Transient);
        let known = mem::replace(record, Record::Transient);
        let was_transient = matches!(known, Record::Transient);
        debug_assert!(was_transient || self.transient.get(page).is_none(), "{page:?} has one entry");
        if page.space.segment().is_none() {
            self.dirty_of_files.remove(&page);
        }
        self.transient.get_or_insert_with(page, || known.stable().unwrap_or_default())
    }

    /// The entry of a transient page.
    pub fn transient(&self, page: PageId) -> Option<&Entry> {
        self.transient.get(page)
    }

    /// The entry of a transient page.
    pub fn transient_mut(&mut self, page: PageId) -> Option<&mut Entry> {
        self.transient.get_mut(page)
    }

    /// Makes a transient entry stable if nothing is in flight, or drops it if it is empty.
    pub fn settle(&mut self, page: PageId) {
        let Some(entry) = self.transient.get(page) else { return };
        entry.check(page);
        if !entry.is_quiet() || entry.io.is_some() {
            return;
        }
        let Some(Entry { holders, dirty_owner, .. }) = self.transient.remove(page) else { return };
        debug_assert!(holders.len() > 0 || dirty_owner.is_none(), "{page:?} has no holder, so the file has its bytes");
        if dirty_owner.is_some() && page.space.segment().is_none() {
            let is_new = self.dirty_of_files.insert(page);
            debug_assert!(is_new, "{page:?} was transient, and not listed");
        }
        let record = match holders {
            Holders::Nobody => {
                self.records.remove(page);
                return;
            }
            Holders::One(Holder { rank, copy }) => Record::One { copy, rank, is_dirty: dirty_owner.is_some() },
            Holders::List(_) | Holders::Many(_) => Record::Several(Box::new(Several { holders, dirty_owner })),
        };
        *self.records.get_mut(page).expect("each entry has its record") = record;
    }

    /// The holders of a page, from the bottom of the stack to its top.
    pub fn holders(&self, page: PageId) -> impl DoubleEndedIterator<Item = Holder> + '_ {
        let is_transient = matches!(self.records.get(page), Some(Record::Transient));
        debug_assert_eq!(is_transient, self.transient.get(page).is_some(), "{page:?} is transient in both tables");
        let (one, several) = match self.records.get(page) {
            None => (None, None),
            Some(Record::One { rank, copy, .. }) => (Some(Holder { rank: *rank, copy: *copy }), None),
            Some(Record::Several(several)) => (None, Some(&several.holders)),
            Some(Record::Transient) => (None, self.transient.get(page).map(|entry| &entry.holders)),
        };
        one.into_iter().chain(several.into_iter().flat_map(Holders::iter).copied())
    }

    /// The holder accounting for bytes missing from the backing file.
    pub fn dirty_owner(&self, page: PageId) -> Option<Rank> {
        match self.records.get(page)? {
            Record::One { rank, is_dirty, .. } => is_dirty.then_some(*rank),
            Record::Several(several) => several.dirty_owner,
            Record::Transient => self.transient.get(page)?.dirty_owner,
        }
    }

    /// The stable pages of a file with a dirty owner.
    pub fn stable_dirty(&self, file: Space) -> impl Iterator<Item = PageId> + '_ {
        self.dirty_of_files.range(file.all_pages()).copied()
    }

    /// The transient pages of a file, with their entries.
    pub fn transient_of(&self, file: Space) -> impl Iterator<Item = (PageId, &Entry)> + '_ {
        self.transient.from(*file.all_pages().start()).take_while(move |(page, _)| page.space == file)
    }

    /// The entries of all transient pages.
    pub fn all_transient(&self) -> impl Iterator<Item = &Entry> {
        self.transient.iter().map(|(_, entry)| entry)
    }

    /// The versions of stable pages' copies, and the entries of transient pages.
    pub fn all_mut(&mut self) -> (impl Iterator<Item = &mut CopyVersion>, impl Iterator<Item = &mut Entry>) {
        let copies = self.records.iter_mut().flat_map(|(_, record)| {
            let (one, several) = match record {
                Record::One { copy, .. } => (Some(copy), None),
                Record::Several(several) => (None, Some(several.holders.iter_mut())),
                Record::Transient => (None, None),
            };
            one.into_iter().chain(several.into_iter().flatten().map(|holder| &mut holder.copy))
        });
        (copies, self.transient.iter_mut().map(|(_, entry)| entry))
    }
}

impl Record {
    /// The entry of a stable page.
    fn stable(self) -> Option<Entry> {
        let Several { holders, dirty_owner } = match self {
            Record::One { copy, rank, is_dirty } => {
                Several { holders: Holders::One(Holder { rank, copy }), dirty_owner: is_dirty.then_some(rank) }
            }
            Record::Several(several) => *several,
            Record::Transient => return None,
        };
        debug_assert!(dirty_owner.is_none_or(|owner| holders.of(owner).is_some()), "the dirty owner holds its page");
        Some(Entry { holders, dirty_owner, ..Entry::default() })
    }
}
