//! A map from pages to a few bytes each, in order, with little memory besides them.
//!
//! Pages lie in leaves: sorted vectors that grow by a few pages at a time, so what is not full takes little. A tree finds the leaf
//! of a page. How pages came to their leaves depends on the past of a map, and is no part of its value.

use crate::coherence::PageId;
use crate::{Rank, Space};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem;

/// A leaf of so many pages is split.
const LEAF_MAX: usize = 64;

/// A leaf of fewer pages joins the one before it, if both together have no more than `JOINED_MAX`.
const LEAF_MIN: usize = 16;
const JOINED_MAX: usize = 48;

/// Pages that a leaf has room for at a time.
const STEP: usize = 8;

/// No page is before this one.
const FIRST: PageId = PageId { space: Space::of_segment(Rank(0)), index: 0 };

type Leaf<V> = Vec<(PageId, V)>;

/// Values by page, in the order of the pages.
#[derive(Clone)]
pub(crate) struct PageMap<V> {
    /// Each with a page that comes before none of the leaf and behind all of the leaf before. The first, if there is one, is
    /// at [`FIRST`].
    leaves: BTreeMap<PageId, Leaf<V>>,
    len: usize,
}

impl<V> PageMap<V> {
    /// No pages.
    pub fn new() -> PageMap<V> {
        PageMap { leaves: BTreeMap::new(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, page: PageId) -> Option<&V> {
        let (_, leaf) = self.leaves.range(..=page).next_back()?;
        place(leaf, page).ok().map(|at| &leaf[at].1)
    }

    pub fn get_mut(&mut self, page: PageId) -> Option<&mut V> {
        let (_, leaf) = self.leaves.range_mut(..=page).next_back()?;
        place(leaf, page).ok().map(|at| &mut leaf[at].1)
    }

    /// The value of a page, which `make` makes if there is none.
    pub fn get_or_insert_with(&mut self, page: PageId, make: impl FnOnce() -> V) -> &mut V {
        if self.leaves.is_empty() {
            self.leaves.insert(FIRST, Leaf::new());
        }
        if leaf_of(&mut self.leaves, page).len() >= LEAF_MAX {
            self.split(page);
        }
        let PageMap { leaves, len } = self;
        let leaf = leaf_of(leaves, page);
        let at = place(leaf, page).unwrap_or_else(|at| {
            if leaf.len() == leaf.capacity() {
                leaf.reserve_exact(STEP);
            }
            leaf.insert(at, (page, make()));
            *len += 1;
            at
        });
        &mut leaf[at].1
    }

    /// Forgets a page. Returns its value.
    pub fn remove(&mut self, page: PageId) -> Option<V> {
        let (key, leaf) = self.leaves.range_mut(..=page).next_back()?;
        let (_, value) = leaf.remove(place(leaf, page).ok()?);
        self.len -= 1;
        if leaf.capacity() > leaf.len() + 2 * STEP {
            leaf.shrink_to(leaf.len() + STEP);
        }
        if leaf.len() < LEAF_MIN {
            let key = *key;
            self.join(key);
        }
        Some(value)
    }

    /// All pages in order.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, &V)> {
        self.leaves.values().flatten().map(|(page, value)| (*page, value))
    }

    /// All pages in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PageId, &mut V)> {
        self.leaves.values_mut().flatten().map(|(page, value)| (*page, value))
    }

    /// The pages from this one on, in order.
    pub fn from(&self, page: PageId) -> impl Iterator<Item = (PageId, &V)> {
        let first = self.leaves.range(..=page).next_back().map_or(page, |(key, _)| *key);
        let behind = move |leaf: &'_ Leaf<V>| leaf.partition_point(|(its, _)| *its < page);
        self.leaves.range(first..).flat_map(move |(_, leaf)| &leaf[behind(leaf)..]).map(|(page, value)| (*page, value))
    }

    /// The pages before this one, the last of them first.
    pub fn before(&self, page: PageId) -> impl Iterator<Item = (PageId, &V)> {
        let end = move |leaf: &'_ Leaf<V>| leaf.partition_point(|(its, _)| *its < page);
        let leaves = self.leaves.range(..page).rev();
        leaves.flat_map(move |(_, leaf)| leaf[..end(leaf)].iter().rev()).map(|(page, value)| (*page, value))
    }

    /// Makes two leaves of a page's leaf.
    fn split(&mut self, page: PageId) {
        let leaf = leaf_of(&mut self.leaves, page);
        let upper = leaf.split_off(leaf.len() / 2);
        leaf.shrink_to_fit();
        self.leaves.insert(upper[0].0, upper);
    }

    /// Joins a leaf with the one before it, if there is one that has room.
    fn join(&mut self, key: PageId) {
        let len = self.leaves[&key].len();
        let Some((_, before)) = self.leaves.range_mut(..key).next_back() else { return };
        if len > 0 && before.len() + len > JOINED_MAX {
            return;
        }
        let mut before = mem::take(before);
        before.reserve_exact(len);
        before.append(&mut self.leaves.remove(&key).expect("it was just there"));
        *leaf_of(&mut self.leaves, key) = before;
    }
}

/// The leaf that a page is in, or would be.
fn leaf_of<V>(leaves: &mut BTreeMap<PageId, Leaf<V>>, page: PageId) -> &mut Leaf<V> {
    let (_, leaf) = leaves.range_mut(..=page).next_back().expect("the first leaf is before all pages");
    leaf
}

/// Where a page is in a leaf, or would be.
fn place<V>(leaf: &Leaf<V>, page: PageId) -> Result<usize, usize> {
    leaf.binary_search_by_key(&page, |(page, _)| *page)
}

impl<V: PartialEq> PartialEq for PageMap<V> {
    fn eq(&self, other: &PageMap<V>) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<V: Eq> Eq for PageMap<V> {}

impl<V: PartialOrd> PartialOrd for PageMap<V> {
    fn partial_cmp(&self, other: &PageMap<V>) -> Option<Ordering> {
        self.iter().partial_cmp(other.iter())
    }
}

impl<V: Ord> Ord for PageMap<V> {
    fn cmp(&self, other: &PageMap<V>) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl<V: Hash> Hash for PageMap<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len.hash(state);
        self.iter().for_each(|pair| pair.hash(state));
    }
}

impl<V: fmt::Debug> fmt::Debug for PageMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::hash_map::DefaultHasher;

    fn hash_of(map: &PageMap<u32>) -> u64 {
        let mut hasher = DefaultHasher::new();
        map.hash(&mut hasher);
        hasher.finish()
    }

    fn bytes_of(map: &PageMap<u32>) -> usize {
        map.leaves.values().map(|leaf| size_of_val(leaf) + leaf.capacity() * size_of::<(PageId, u32)>()).sum()
    }

    #[test]
    fn it_is_an_ordered_map_and_its_past_does_not_show() {
        for (seed, pages_max) in [(1, 40), (2, 400), (3, 4000)] {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut map, mut model) = (PageMap::new(), BTreeMap::new());
            let steps = if cfg!(miri) { 300 } else { 30_000 };
            for step in 0..steps {
                let page = PageId::of_segment(Rank(random.u32(0..3)), random.u32(0..pages_max));
                // It grows, and shrinks again in the end.
                if random.u32(0..steps) > step {
                    *map.get_or_insert_with(page, || step) += 1;
                    *model.entry(page).or_insert(step) += 1;
                } else {
                    assert_eq!(map.remove(page), model.remove(&page));
                }
                assert_eq!((map.len(), map.get(page)), (model.len(), model.get(&page)));
                assert_eq!(map.get_mut(page), model.get_mut(&page));
                if step % 64 == 0 {
                    let owned = |(page, value): (&PageId, &u32)| (*page, *value);
                    let known = |(page, value): (PageId, &u32)| (page, *value);
                    assert!(map.iter().map(known).eq(model.iter().map(owned)));
                    assert!(map.from(page).map(known).eq(model.range(page..).map(owned)));
                    assert!(map.before(page).map(known).eq(model.range(..page).rev().map(owned)));
                }
            }
            let mut same = PageMap::new();
            model.iter().rev().for_each(|(page, value)| *same.get_or_insert_with(*page, || *value) = *value);
            assert!(map == same && map.cmp(&same).is_eq() && hash_of(&map) == hash_of(&same));
        }
    }

    #[test]
    fn a_page_takes_little_more_than_its_value() {
        const PAGES: u32 = 1 << 12;
        let page = |index| PageId::of_segment(Rank(0), index);
        let orders: [&dyn Fn(u32) -> u32; 3] = [&|at| at, &|at| PAGES - 1 - at, &|at| at * 1237 % PAGES];
        for order in orders {
            let mut map = PageMap::new();
            (0..PAGES).for_each(|at| *map.get_or_insert_with(page(order(at)), || 0) = at);
            assert!(bytes_of(&map) <= 16 * PAGES as usize, "{}", bytes_of(&map));
            (0..PAGES).filter(|index| index % 16 > 0).for_each(|index| assert!(map.remove(page(index)).is_some()));
            assert!(bytes_of(&map) <= 24 * map.len(), "{} for {}", bytes_of(&map), map.len());
        }
    }
}
