use super::*;
use crate::coherence::{CopyVersion, PageId};
use crate::{Rank, Space};
use std::collections::hash_map::DefaultHasher;

fn hash_of<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn it_is_an_ordered_map_and_its_past_does_not_show() {
    for (seed, keys_max) in [(1, 4), (2, 40), (3, 2000)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut map, mut model) = (OrderedMap::new(), BTreeMap::new());
        let steps = if cfg!(miri) { 300 } else { 20_000 };
        for step in 0..steps {
            let key = (Rank(random.u32(0..3)), random.u32(0..keys_max));
            // Grows at first, and shrinks in the end.
            match random.u32(0..steps) > step {
                true if random.bool() => assert_eq!(map.insert(key, step), model.insert(key, step)),
                true => {
                    *map.entry(key).and_modify(|value| *value += 2).or_insert(step) += 1;
                    *model.entry(key).and_modify(|value| *value += 2).or_insert(step) += 1;
                }
                false if random.u8(..) < 16 => assert_eq!(map.pop_first(), model.pop_first()),
                false => assert_eq!(map.remove(&key), model.remove(&key)),
            }
            assert_eq!((map.len(), map.get(&key)), (model.len(), model.get(&key)));
            assert_eq!(map.get_mut(&key), model.get_mut(&key));
            if step % 64 == 0 {
                assert!(map.iter().eq(&model) && map.iter().rev().eq(model.iter().rev()));
                assert!(map.range(key..).eq(model.range(key..)) && map.range(..=key).eq(model.range(..=key)));
                assert!(map.iter_mut().eq(model.iter_mut()) && map.clone().into_iter().eq(model.clone()));
                assert_eq!(map.last_key_value(), model.last_key_value());
                map.retain(|_, value| *value % 32 > 0);
                model.retain(|_, value| *value % 32 > 0);
            }
        }
        let same: OrderedMap<_, _> = model.iter().rev().map(|(key, value)| (*key, *value)).collect();
        assert!(map == same && map.cmp(&same).is_eq() && hash_of(&map) == hash_of(&same));
        assert!(map.entries.capacity() <= 16 + 4 * map.len().max(1), "{} for {}", map.entries.capacity(), map.len());
    }
}

#[test]
fn sets_know_their_members() {
    let mut set: OrderedSet<u32> = [5, 3, 9, 3].into_iter().collect();
    assert!(!set.insert(9) && set.insert(4) && set.remove(&5) && !set.remove(&5));
    assert!(set.iter().eq(&[3, 4, 9]) && set.range(4..9).eq(&[4]) && set.contains(&9) && !set.contains(&5));
    assert_eq!((set.pop_first(), set.first(), set.len()), (Some(3), Some(&4), 2));
    assert_eq!(set, [9, 4].into_iter().collect());
    set.clear();
    assert!(set.is_empty() && set.into_iter().next().is_none());
}

/// Keys of a kind, in their order.
fn assert_in_order<K: OrderedKey + Ord + fmt::Debug>(keys: &[K]) {
    for pair in keys.windows(2) {
        assert!(pair[0] < pair[1] && pair[0].code() < pair[1].code(), "{pair:?}");
    }
    assert!(keys.iter().all(|key| K::BITS == u128::BITS || key.code() >> K::BITS == 0), "{keys:?}");
}

#[test]
fn codes_are_in_the_order_of_keys() {
    assert_in_order(&[(0, u64::MAX), (1, 0), (1, 1 << 40), (u32::MAX, 0)]);
    assert_in_order(&[(0, 0, usize::MAX), (0, 1, 0), (1, 0, 0), (u32::MAX, u32::MAX, usize::MAX)]);
    let page = |space, index| PageId { space, index };
    let (segment, file) = (Space::of_segment(Rank(7)), Space::of_file(0));
    assert_in_order(&[page(segment, 8), page(segment, u32::MAX), page(file, 0), page(file, 1)]);
    // A guest copy's code comes after the same number's and before the next number's.
    let version = CopyVersion;
    assert_in_order(&[version(0), version(3), version(3).of_guest(), version(4), version(9).of_guest()]);
}
