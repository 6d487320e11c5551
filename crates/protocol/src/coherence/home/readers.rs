//! The reads of a page being served by holders.

use super::super::{CopyVersion, FrameId, Priority};
use super::aside::Aside;
use super::holders::Holder;
use crate::Rank;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Maximum number of readers searched linearly. More are indexed by rank.
const LIST_MAX: usize = 32;

/// A read being served by `source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Reader {
    pub requester: Rank,
    pub frame: FrameId,
    pub version: CopyVersion,
    pub source: Holder,
    pub priority: Priority,
    pub tried_home: bool,
    /// The requester has already given up the copy: its Forget has overtaken its Done.
    pub forgotten: bool,
}

/// Readers, at most one a rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Readers {
    all: Vec<Reader>,
    /// Present once there have been more than [`LIST_MAX`].
    index: Option<Box<Index>>,
    /// Reads not being served yet.
    pub aside: Aside,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Index {
    /// By rank, the position of its reader in `all`.
    places: BTreeMap<Rank, usize>,
    /// By holder, the number of readers it serves.
    served: BTreeMap<Holder, usize>,
}

impl Readers {
    pub fn one(reader: Reader) -> Readers {
        Readers { all: vec![reader], index: None, aside: Aside::default() }
    }

    /// Adds a reader; its rank must have none.
    pub fn add(&mut self, reader: Reader) {
        debug_assert!(!self.has(reader.requester), "{:?} is served once at a time", reader.requester);
        let place = self.all.len();
        self.all.push(reader);
        match &mut self.index {
            Some(index) => index.add(place, &reader),
            None if self.all.len() > LIST_MAX => {
                let mut index = Index::default();
                self.all.iter().enumerate().for_each(|(place, reader)| index.add(place, reader));
                self.index = Some(Box::new(index));
            }
            None => {}
        }
        let indexed = self.index.as_ref().map_or(self.all.len(), |index| index.places.len());
        debug_assert_eq!(indexed, self.all.len(), "the index has each reader once");
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Number of readers served by a holder.
    pub fn served_by(&self, holder: &Holder) -> usize {
        match &self.index {
            Some(index) => index.served.get(holder).copied().unwrap_or(0),
            None => self.all.iter().filter(|reader| reader.source == *holder).count(),
        }
    }

    fn place_of(&self, requester: Rank) -> Option<usize> {
        match &self.index {
            Some(index) => index.places.get(&requester).copied(),
            None => self.all.iter().position(|reader| reader.requester == requester),
        }
    }

    /// Whether `requester` is one of them.
    pub fn has(&self, requester: Rank) -> bool {
        self.place_of(requester).is_some()
    }

    /// Whether any of `ranks` is one of them.
    pub fn has_among(&self, ranks: &Range<Rank>) -> bool {
        match &self.index {
            Some(index) => index.places.range(ranks.clone()).next().is_some(),
            None => self.all.iter().any(|reader| ranks.contains(&reader.requester)),
        }
    }

    /// The caller changes neither the requester nor the source.
    pub fn of_mut(&mut self, requester: Rank) -> Option<&mut Reader> {
        self.place_of(requester).map(|place| &mut self.all[place])
    }

    /// Takes out the reader of this version served by `source`.
    pub fn take_version(&mut self, version: CopyVersion, source: Rank) -> Option<Reader> {
        let is_it = |reader: &Reader| reader.version == version && reader.source.rank == source;
        let place = self.all.iter().position(is_it)?;
        debug_assert_eq!(self.place_of(self.all[place].requester), Some(place), "a reader is where its place says");
        Some(self.take_at(place))
    }

    /// Takes out the reader of a rank, if it is to get this version.
    pub fn take(&mut self, requester: Rank, version: CopyVersion) -> Option<Reader> {
        let place = self.place_of(requester).filter(|place| self.all[*place].version == version)?;
        Some(self.take_at(place))
    }

    fn take_at(&mut self, place: usize) -> Reader {
        let Reader { requester, source, .. } = self.all[place];
        self.aside.stir(requester);
        self.aside.stir(source.rank);
        let Some(index) = &mut self.index else { return self.all.remove(place) };
        let reader = self.all.swap_remove(place);
        index.remove(&reader);
        debug_assert_eq!(index.places.len(), self.all.len(), "each reader has its place");
        if let Some(moved) = self.all.get(place) {
            index.places.insert(moved.requester, place);
        }
        reader
    }

    /// All readers, for renumbering.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Reader> {
        self.index = None;
        self.all.iter_mut()
    }
}

impl Index {
    fn add(&mut self, place: usize, reader: &Reader) {
        let before = self.places.insert(reader.requester, place);
        debug_assert!(before.is_none(), "{:?} is served once at a time", reader.requester);
        *self.served.entry(reader.source).or_default() += 1;
    }

    fn remove(&mut self, reader: &Reader) {
        debug_assert!(self.served.contains_key(&reader.source), "{:?} was serving a reader", reader.source);
        self.places.remove(&reader.requester);
        if let Some(count) = self.served.get_mut(&reader.source) {
            *count -= 1;
            if *count == 0 {
                self.served.remove(&reader.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_found_however_many_there_are() {
        let source = |rank: u32| Holder { rank: Rank(rank), copy: CopyVersion(u64::from(rank)) };
        let reader = |requester, version, by: u32| Reader {
            requester: Rank(requester),
            frame: FrameId(0),
            version: CopyVersion(version),
            source: source(by),
            priority: Priority::Now,
            tried_home: false,
            forgotten: false,
        };
        let mut random = fastrand::Rng::with_seed(2);
        for ranks in [3, 4 * LIST_MAX as u32] {
            let first = reader(0, 1, 1);
            let (mut readers, mut model) = (Readers::one(first), vec![first]);
            for version in 2..3000 {
                let rank = random.u32(0..ranks);
                match model.iter().position(|known: &Reader| known.requester == Rank(rank)) {
                    None => {
                        let one = reader(rank, version, random.u32(0..5));
                        readers.add(one);
                        model.push(one);
                    }
                    Some(at) if random.u32(0..4) == 0 => {
                        readers.of_mut(Rank(rank)).expect("it is there").forgotten = true;
                        model[at].forgotten = true;
                    }
                    Some(at) if random.bool() => {
                        let its = model[at].version;
                        assert_eq!(readers.take(Rank(rank), CopyVersion(version)), None);
                        assert_eq!(readers.take(Rank(rank), its), Some(model.swap_remove(at)));
                    }
                    Some(at) => {
                        let Reader { version, source, .. } = model[at];
                        assert_eq!(readers.take_version(version, Rank(source.rank.0 + 1)), None);
                        assert_eq!(readers.take_version(version, source.rank), Some(model.swap_remove(at)));
                    }
                }
                assert_eq!((readers.len(), readers.is_empty()), (model.len(), model.is_empty()));
                let found = readers.of_mut(Rank(rank)).map(|reader| *reader);
                assert_eq!(found.as_ref(), model.iter().find(|known| known.requester == Rank(rank)));
                assert_eq!(readers.has(Rank(rank)), found.is_some());
                let some = Rank(rank / 2)..Rank(rank / 2 + 2);
                assert_eq!(readers.has_among(&some), model.iter().any(|known| some.contains(&known.requester)));
                let by = source(random.u32(0..5));
                assert_eq!(readers.served_by(&by), model.iter().filter(|known| known.source == by).count());
            }
        }
    }
}
