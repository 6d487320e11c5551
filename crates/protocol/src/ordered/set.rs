//! Ordered sets.

use super::{Iter, OrderedKey, OrderedMap};
use core::ops::RangeBounds;
use core::{fmt, iter};

/// Keys in order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderedSet<K: OrderedKey>(OrderedMap<K, ()>);

impl<K: OrderedKey> OrderedSet<K> {
    /// No members.
    pub const fn new() -> OrderedSet<K> {
        OrderedSet(OrderedMap::new())
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `key` is a member.
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// Adds a member. Returns whether it was new.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ()).is_none()
    }

    /// Removes a member. Returns whether it was present.
    pub fn remove(&mut self, key: &K) -> bool {
        self.0.remove(key).is_some()
    }

    /// Removes all members.
    pub fn clear(&mut self) {
        *self = OrderedSet::new();
    }

    /// The members in order.
    pub fn iter(&self) -> Members<'_, K> {
        self.0.iter().map(|(key, _)| key)
    }

    /// The members in a range, in order.
    pub fn range(&self, keys: impl RangeBounds<K>) -> Members<'_, K> {
        self.0.range(keys).map(|(key, _)| key)
    }

    /// The first member.
    pub fn first(&self) -> Option<&K> {
        self.0.first_key_value().map(|(key, _)| key)
    }

    /// Removes the first member.
    pub fn pop_first(&mut self) -> Option<K> {
        self.0.pop_first().map(|(key, _)| key)
    }
}

/// Members in order.
pub type Members<'a, K> = iter::Map<Iter<'a, K, ()>, fn((&'a K, &'a ())) -> &'a K>;

impl<K: OrderedKey> IntoIterator for OrderedSet<K> {
    type Item = K;
    type IntoIter = iter::Map<alloc::vec::IntoIter<(K, ())>, fn((K, ())) -> K>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(key, _)| key)
    }
}

impl<'a, K: OrderedKey> IntoIterator for &'a OrderedSet<K> {
    type Item = &'a K;
    type IntoIter = Members<'a, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: OrderedKey> Extend<K> for OrderedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| _ = self.insert(key));
    }
}

impl<K: OrderedKey> FromIterator<K> for OrderedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = OrderedSet::new();
        set.extend(keys);
        set
    }
}

impl<K: OrderedKey> Default for OrderedSet<K> {
    fn default() -> Self {
        OrderedSet(OrderedMap::default())
    }
}

impl<K: OrderedKey + fmt::Debug> fmt::Debug for OrderedSet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
