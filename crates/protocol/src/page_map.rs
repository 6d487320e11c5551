//! An ordered map from pages to small values, with little memory overhead.
//!
//! Pages lie in leaves: sorted vectors growing by [`STEP`] pages, so partly filled leaves waste little. A tree finds
//! the leaf of a page. The division into leaves depends on the map's history and is no part of its value.

use crate::page_id::PageId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::{iter, mem};

/// A leaf is split at this many pages.
const LEAF_MAX: usize = 64;

/// A leaf with fewer pages joins the previous one, if both together have at most `JOINED_MAX`.
const LEAF_MIN: usize = 16;
const JOINED_MAX: usize = 48;

/// Pages by which a leaf's capacity grows.
const STEP: usize = 8;

type Leaf<V> = Vec<(PageId, V)>;

/// Values by page, in the order of the pages.
#[derive(Clone)]
pub(crate) struct PageMap<V> {
    /// The leaf of the first pages, the only one of small maps.
    first: Leaf<V>,
    /// The other leaves, each keyed by a lower bound of its pages above all pages of the previous leaf.
    others: BTreeMap<PageId, Leaf<V>>,
    len: usize,
}

impl<V> PageMap<V> {
    /// No pages.
    pub fn new() -> PageMap<V> {
        PageMap { first: Leaf::new(), others: BTreeMap::new(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, page: PageId) -> Option<&V> {
        let leaf = self.leaf(page);
        place(leaf, page).ok().map(|at| &leaf[at].1)
    }

    pub fn get_mut(&mut self, page: PageId) -> Option<&mut V> {
        let leaf = self.leaf_mut(page);
        place(leaf, page).ok().map(|at| &mut leaf[at].1)
    }

    /// The value of a page, made by `make` if there is none.
    pub fn get_or_insert_with(&mut self, page: PageId, make: impl FnOnce() -> V) -> &mut V {
        if self.leaf_mut(page).len() >= LEAF_MAX {
            self.split(page);
        }
        let PageMap { first, others, len } = self;
        let leaf = leaf_of(first, others, page);
        let at = place(leaf, page).unwrap_or_else(|at| {
            if leaf.len() == leaf.capacity() {
                leaf.reserve_exact(STEP);
            }
            leaf.insert(at, (page, make()));
            *len += 1;
            at
        });
        debug_assert!(leaf.len() <= LEAF_MAX, "a full leaf is split before a page is added");
        &mut leaf[at].1
    }

    /// Removes a page. Returns its value.
    pub fn remove(&mut self, page: PageId) -> Option<V> {
        let leaf = self.leaf_mut(page);
        let (_, value) = leaf.remove(place(leaf, page).ok()?);
        if leaf.capacity() > leaf.len() + 2 * STEP {
            leaf.shrink_to(leaf.len() + STEP);
        }
        if leaf.len() < LEAF_MIN {
            self.join(page);
        }
        debug_assert!(self.len > 0, "the pages are counted");
        self.len -= 1;
        debug_assert!(self.get(page).is_none(), "{page:?} had one value");
        Some(value)
    }

    /// All pages in order.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, &V)> {
        iter::once(&self.first).chain(self.others.values()).flatten().map(|(page, value)| (*page, value))
    }

    /// All pages in order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PageId, &mut V)> {
        iter::once(&mut self.first).chain(self.others.values_mut()).flatten().map(|(page, value)| (*page, value))
    }

    /// The pages from `page` on, in order.
    pub fn from(&self, page: PageId) -> impl Iterator<Item = (PageId, &V)> {
        let key = self.leaf_key(page);
        let behind = move |leaf: &'_ Leaf<V>| leaf.partition_point(|(its, _)| *its < page);
        let first = key.is_none().then_some(&self.first);
        let others = self.others.range(key.unwrap_or(page)..).map(|(_, leaf)| leaf);
        let leaves = first.into_iter().chain(others);
        leaves.flat_map(move |leaf| &leaf[behind(leaf)..]).map(|(page, value)| (*page, value))
    }

    /// The pages before `page`, in descending order.
    pub fn before(&self, page: PageId) -> impl Iterator<Item = (PageId, &V)> {
        let end = move |leaf: &'_ Leaf<V>| leaf.partition_point(|(its, _)| *its < page);
        let leaves = self.others.range(..page).rev().map(|(_, leaf)| leaf).chain([&self.first]);
        leaves.flat_map(move |leaf| leaf[..end(leaf)].iter().rev()).map(|(page, value)| (*page, value))
    }

    /// Splits a page's leaf in two.
    fn split(&mut self, page: PageId) {
        let leaf = self.leaf_mut(page);
        debug_assert!(leaf.len() >= LEAF_MAX, "only a full leaf is split");
        let upper = leaf.split_off(leaf.len() / 2);
        leaf.shrink_to_fit();
        self.others.insert(upper[0].0, upper);
    }

    /// Joins a page's leaf with the previous one, if that has room.
    fn join(&mut self, page: PageId) {
        let Some(key) = self.leaf_key(page) else { return };
        let len = self.others[&key].len();
        let PageMap { first, others, .. } = self;
        let before = others.range_mut(..key).next_back().map_or(first, |(_, leaf)| leaf);
        if len > 0 && before.len() + len > JOINED_MAX {
            return;
        }
        let mut before = mem::take(before);
        before.reserve_exact(len);
        before.append(&mut self.others.remove(&key).expect("it was just there"));
        debug_assert!(before.is_sorted_by(|one, next| one.0 < next.0), "the pages of a leaf stay in order");
        debug_assert!(before.len() <= LEAF_MAX, "two leaves that are joined have room in one");
        *self.leaf_mut(page) = before;
    }

    /// The key of the leaf a page is in, or would be; `None` for the first.
    fn leaf_key(&self, page: PageId) -> Option<PageId> {
        if self.others.is_empty() {
            return None;
        }
        self.others.range(..=page).next_back().map(|(key, _)| *key)
    }

    fn leaf(&self, page: PageId) -> &Leaf<V> {
        if self.others.is_empty() {
            return &self.first;
        }
        self.others.range(..=page).next_back().map_or(&self.first, |(_, leaf)| leaf)
    }

    fn leaf_mut(&mut self, page: PageId) -> &mut Leaf<V> {
        leaf_of(&mut self.first, &mut self.others, page)
    }
}

/// The leaf a page is in, or would be.
fn leaf_of<'a, V>(first: &'a mut Leaf<V>, others: &'a mut BTreeMap<PageId, Leaf<V>>, page: PageId) -> &'a mut Leaf<V> {
    if others.is_empty() {
        return first;
    }
    let second = others.first_key_value().map(|(key, _)| *key);
    debug_assert!(first.last().map(|(last, _)| *last) < second, "the first leaf has the first pages");
    others.range_mut(..=page).next_back().map_or(first, |(_, leaf)| leaf)
}

/// The position of a page in a leaf, or its insertion point.
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
    use crate::Rank;
    use std::collections::hash_map::DefaultHasher;

    fn hash_of(map: &PageMap<u32>) -> u64 {
        let mut hasher = DefaultHasher::new();
        map.hash(&mut hasher);
        hasher.finish()
    }

    fn bytes_of(map: &PageMap<u32>) -> usize {
        iter::once(&map.first)
            .chain(map.others.values())
            .map(|leaf| size_of_val(leaf) + leaf.capacity() * size_of::<(PageId, u32)>())
            .sum()
    }

    #[test]
    fn it_is_an_ordered_map_and_its_past_does_not_show() {
        for (seed, pages_max) in [(1, 40), (2, 400), (3, 4000)] {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut map, mut model) = (PageMap::new(), BTreeMap::new());
            let steps = if cfg!(miri) { 300 } else { 30_000 };
            for step in 0..steps {
                let page = PageId::of_segment(Rank(random.u32(0..3)), random.u32(0..pages_max));
                // Grows at first, and shrinks in the end.
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
