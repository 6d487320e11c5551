//! Ordered maps and sets, cheap to instantiate for many types.
//!
//! The standard library's B-trees are compiled anew for every pair of types, 15 KB each. Here all types share one tree
//! from key codes to entry positions. An operation costs a B-tree's, one more access to the entry, and one more to the
//! tree when a removed entry is not the last. Maps accessed for every block of a small access, or with an entry for
//! many ranks, should use the standard library's: an entry takes twice the memory here.

mod keys;
mod set;
#[cfg(test)]
mod tests;

pub use set::OrderedSet;

use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use core::ops::{Bound, Index, RangeBounds};
use core::{fmt, mem};

/// A key of an entry.
pub trait OrderedKey: Copy {
    /// Bits of a code, at most 128.
    const BITS: u32;

    /// A unique number, in the order of the keys.
    fn code(self) -> u128;
}

/// The codes, each with the position of its entry. Independent of the entry type.
#[derive(Default)]
struct Tree(BTreeMap<u128, u32>);

type Codes = (Bound<u128>, Bound<u128>);

impl Tree {
    #[inline(never)]
    fn find(&self, code: u128) -> Option<u32> {
        self.0.get(&code).copied()
    }

    #[inline(never)]
    fn insert(&mut self, code: u128, place: u32) {
        self.0.insert(code, place);
    }

    /// The position of a code, inserting `place` if there is none.
    #[inline(never)]
    fn find_or_insert(&mut self, code: u128, place: u32) -> Option<u32> {
        match self.0.entry(code) {
            btree_map::Entry::Occupied(known) => Some(*known.get()),
            btree_map::Entry::Vacant(room) => {
                room.insert(place);
                None
            }
        }
    }

    #[inline(never)]
    fn first(&self) -> Option<u32> {
        self.0.first_key_value().map(|(_, place)| *place)
    }

    #[inline(never)]
    fn last(&self) -> Option<u32> {
        self.0.last_key_value().map(|(_, place)| *place)
    }

    #[inline(never)]
    fn remove(&mut self, code: u128) -> Option<u32> {
        self.0.remove(&code)
    }

    #[inline(never)]
    fn places(&self, codes: Codes) -> Places<'_> {
        Places(self.0.range(codes))
    }
}

impl Clone for Tree {
    #[inline(never)]
    fn clone(&self) -> Tree {
        Tree(self.0.clone())
    }
}

impl Drop for Tree {
    /// Not inlined: compiled once instead of for every map.
    #[inline(never)]
    fn drop(&mut self) {
        drop(mem::take(&mut self.0));
    }
}

/// Positions in the order of their codes.
#[derive(Clone)]
struct Places<'a>(btree_map::Range<'a, u128, u32>);

impl Iterator for Places<'_> {
    type Item = usize;

    #[inline(never)]
    fn next(&mut self) -> Option<usize> {
        self.0.next().map(|(_, place)| *place as usize)
    }
}

impl DoubleEndedIterator for Places<'_> {
    #[inline(never)]
    fn next_back(&mut self) -> Option<usize> {
        self.0.next_back().map(|(_, place)| *place as usize)
    }
}

const ALL: Codes = (Bound::Unbounded, Bound::Unbounded);

fn codes<K: OrderedKey>(keys: &impl RangeBounds<K>) -> Codes {
    (keys.start_bound().map(|key| key.code()), keys.end_bound().map(|key| key.code()))
}

/// Values by key, in the order of the keys.
#[derive(Clone)]
pub struct OrderedMap<K, V> {
    tree: Tree,
    /// Unordered, without gaps.
    entries: Vec<(K, V)>,
}

impl<K: OrderedKey, V> OrderedMap<K, V> {
    /// No entries.
    pub const fn new() -> OrderedMap<K, V> {
        OrderedMap { tree: Tree(BTreeMap::new()), entries: Vec::new() }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn place(&self, key: &K) -> Option<usize> {
        // Most maps are empty most of the time.
        if self.entries.is_empty() { None } else { self.tree.find(key.code()).map(|place| place as usize) }
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.place(key).map(|place| &self.entries[place].1)
    }

    /// The value of a key.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.place(key).map(|place| &mut self.entries[place].1)
    }

    /// Whether the key has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.place(key).is_some()
    }

    /// Adds an entry; the key must have none. Returns its position.
    fn add(&mut self, key: K, value: V) -> usize {
        let place = self.entries.len();
        self.tree.insert(key.code(), place as u32);
        self.entries.push((key, value));
        place
    }

    /// Sets the value of a key. Returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(place) = self.tree.find_or_insert(key.code(), self.entries.len() as u32) {
            return Some(mem::replace(&mut self.entries[place as usize].1, value));
        }
        self.entries.push((key, value));
        None
    }

    /// Removes a key. Returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        if self.entries.is_empty() {
            return None;
        }
        let place = self.tree.remove(key.code())? as usize;
        let (_, value) = self.entries.swap_remove(place);
        if let Some((moved, _)) = self.entries.get(place) {
            self.tree.insert(moved.code(), place as u32);
        }
        if self.entries.capacity() > 16 + 4 * self.entries.len() {
            self.entries.shrink_to(2 * self.entries.len());
        }
        Some(value)
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = OrderedMap::new();
    }

    /// The entry of a key, to examine or fill.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        Entry { place: self.place(&key), map: self, key }
    }

    /// The entries in order.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { places: self.tree.places(ALL), entries: &self.entries }
    }

    /// The entries of a range of keys, in order.
    pub fn range(&self, keys: impl RangeBounds<K>) -> Iter<'_, K, V> {
        Iter { places: self.tree.places(codes(&keys)), entries: &self.entries }
    }

    /// The keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.iter())
    }

    /// The entries in order. Allocates memory proportional to the map.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        let mut all: Vec<_> = self.entries.iter_mut().map(|(key, value)| Some((&*key, value))).collect();
        self.tree.places(ALL).filter_map(move |place| all[place].take())
    }

    /// The values in the order of their keys. Allocates memory proportional to the map.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    /// The values in the order of their keys.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.into_iter().map(|(_, value)| value)
    }

    /// The first entry.
    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.at(if self.is_empty() { None } else { self.tree.first() })
    }

    /// The last entry.
    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.at(if self.is_empty() { None } else { self.tree.last() })
    }

    fn at(&self, place: Option<u32>) -> Option<(&K, &V)> {
        let (key, value) = &self.entries[place? as usize];
        Some((key, value))
    }

    /// Removes the first entry.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let key = *self.first_key_value()?.0;
        self.remove(&key).map(|value| (key, value))
    }

    /// Removes the entries `keeps` rejects. Visits them in order.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        let gone: Vec<K> = self.iter_mut().filter_map(|(key, value)| (!keeps(key, value)).then_some(*key)).collect();
        gone.iter().for_each(|key| drop(self.remove(key)));
    }
}

/// The entry of a key.
pub struct Entry<'a, K, V> {
    map: &'a mut OrderedMap<K, V>,
    key: K,
    place: Option<usize>,
}

impl<'a, K: OrderedKey, V> Entry<'a, K, V> {
    /// Changes the value if there is one.
    pub fn and_modify(self, change: impl FnOnce(&mut V)) -> Entry<'a, K, V> {
        if let Some(place) = self.place {
            change(&mut self.map.entries[place].1);
        }
        self
    }

    /// The value, made by `make` if there is none.
    pub fn or_insert_with(self, make: impl FnOnce() -> V) -> &'a mut V {
        let place = match self.place {
            Some(place) => place,
            None => self.map.add(self.key, make()),
        };
        &mut self.map.entries[place].1
    }

    /// The value, set to `value` if there is none.
    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    /// The value, set to the default if there is none.
    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }
}

/// Entries in order.
pub struct Iter<'a, K, V> {
    places: Places<'a>,
    entries: &'a [(K, V)],
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter { places: self.places.clone(), entries: self.entries }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = &self.entries[self.places.next()?];
        Some((key, value))
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let (key, value) = &self.entries[self.places.next_back()?];
        Some((key, value))
    }
}

/// Values in the order of their keys.
pub struct Values<'a, K, V>(Iter<'a, K, V>);

impl<'a, K, V> Iterator for Values<'a, K, V> {
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
        self.0.next().map(|(_, value)| value)
    }
}

impl<K, V> DoubleEndedIterator for Values<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(_, value)| value)
    }
}

impl<K: OrderedKey, V> IntoIterator for OrderedMap<K, V> {
    type Item = (K, V);
    type IntoIter = alloc::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        let OrderedMap { tree, entries } = self;
        let mut all: Vec<_> = entries.into_iter().map(Some).collect();
        let in_order: Vec<_> = tree.places(ALL).filter_map(|place| all[place].take()).collect();
        in_order.into_iter()
    }
}

impl<'a, K: OrderedKey, V> IntoIterator for &'a OrderedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: OrderedKey, V> Extend<(K, V)> for OrderedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

impl<K: OrderedKey, V> FromIterator<(K, V)> for OrderedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = OrderedMap::new();
        map.extend(entries);
        map
    }
}

impl<K: OrderedKey, V> Index<&K> for OrderedMap<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the key has a value")
    }
}

impl<K, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        OrderedMap { tree: Tree::default(), entries: Vec::new() }
    }
}

// Positions depend on history; equality must not.
impl<K: OrderedKey + PartialEq, V: PartialEq> PartialEq for OrderedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<K: OrderedKey + Eq, V: Eq> Eq for OrderedMap<K, V> {}

impl<K: OrderedKey + PartialOrd, V: PartialOrd> PartialOrd for OrderedMap<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other.iter())
    }
}

impl<K: OrderedKey + Ord, V: Ord> Ord for OrderedMap<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl<K: OrderedKey + Hash, V: Hash> Hash for OrderedMap<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|entry| entry.hash(state));
    }
}

impl<K: OrderedKey + fmt::Debug, V: fmt::Debug> fmt::Debug for OrderedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
