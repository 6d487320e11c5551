//! Keys of entries, and their hashes.

/// The start of a get's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// A space or window, the unit of invalidation.
    pub space: u32,
    /// The rank with the bytes in its memory.
    pub target: u32,
    /// The start address there.
    pub address: u64,
}

/// An entry's index in the tables of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

impl EntryId {
    /// The id as a table index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Places for generations of spaces. Spaces sharing a place are invalidated together.
pub const GENERATION_PLACES: u32 = 1024;

/// The place of a space's generation.
#[inline]
pub fn generation_place(space: u32) -> usize {
    (space % GENERATION_PLACES) as usize
}

/// Further places for generations of targets: a power of two. Targets sharing a place are invalidated together.
pub const TARGET_PLACES: u32 = 4096;

/// The place of a target's generation, after the places of spaces.
#[inline]
pub fn target_place(space: u32, target: u32) -> usize {
    let mixed = (u64::from(space) << 32 | u64::from(target)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    GENERATION_PLACES as usize + (mixed >> (u64::BITS - TARGET_PLACES.ilog2())) as usize
}

/// Slots of a bucket.
pub const SLOTS: u32 = 4;

/// While the cache is dormant, one in this many keys is looked up.
const SAMPLED: u32 = 64;

/// Bit offsets of the fields of a slot.
const PLACE_SHIFT: u32 = 26;
const TAG_SHIFT: u32 = 52;

/// Number of values of a slot's entry field; 0 is reserved.
const SLOT_ENTRIES: u64 = 1 << PLACE_SHIFT;

/// Maximum number of entries in a cache.
pub const ENTRIES_MAX: u32 = SLOT_ENTRIES as u32 - 1;

/// The entry a slot leads to.
#[inline]
pub fn entry_of(slot: u64) -> Option<EntryId> {
    ((slot & (SLOT_ENTRIES - 1)) as u32).checked_sub(1).map(EntryId)
}

/// Arena location of a slot's entry, exact only if the arena has at most `ENTRIES_MAX` units; a prefetch hint.
#[inline]
pub fn place_of(slot: u64) -> u32 {
    (slot >> PLACE_SHIFT & (SLOT_ENTRIES - 1)) as u32
}

/// Hashes keys. Each cache has its own seed, so no program has keys colliding in all caches.
#[derive(Clone, Copy, Debug)]
pub struct Hasher {
    seed: u64,
}

/// Folds the halves of a product of two numbers: each bit of the result depends on all bits of both.
#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher {
    /// A hasher with this seed.
    pub fn new(seed: u64) -> Hasher {
        Hasher { seed: seed ^ 0x9E37_79B9_7F4A_7C15 }
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&self, key: &Key) -> Hash {
        let owner = u64::from(key.space) << 32 | u64::from(key.target);
        let mixed = fold(owner ^ self.seed, 0xD6E8_FEB8_6659_FD93);
        Hash(fold(mixed ^ key.address, self.seed | 0xA076_1D64_0000_0001))
    }
}

/// The hash of a key: its two halves choose a bucket each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(u64);

/// The bucket for half a hash among `buckets`. Buckets are added one by one: each bucket behind the last power of two
/// has taken part of the keys of the bucket without its top bit.
#[inline]
fn bucket_of(half: u32, buckets: u32) -> u32 {
    let mask = buckets.next_power_of_two() - 1;
    let bucket = half & mask;
    let bucket = if bucket < buckets { bucket } else { bucket & (mask >> 1) };
    debug_assert!(bucket < buckets, "bucket {bucket} is one of {buckets}");
    bucket
}

impl Hash {
    /// The two buckets of the key, possibly equal.
    #[inline]
    pub fn homes(self, buckets: u32) -> [u32; 2] {
        [bucket_of(self.0 as u32, buckets), bucket_of((self.0 >> 32) as u32, buckets)]
    }

    /// The slot value leading to this entry with its bytes at `place` in the arena. 0 is an empty slot.
    ///
    /// ```text
    ///  63      52 51                 26 25              0
    /// ┌──────────┬─────────────────────┬─────────────────┐
    /// │ tag      │ place, its low bits │ entry, plus one │
    /// └──────────┴─────────────────────┴─────────────────┘
    /// ```
    #[inline]
    pub fn slot(self, entry: EntryId, place: u32) -> u64 {
        debug_assert!(entry.0 < ENTRIES_MAX, "{entry:?} fits its field of a slot");
        let place = u64::from(place) & (SLOT_ENTRIES - 1);
        self.bits_in_slot() << TAG_SHIFT | place << PLACE_SHIFT | (u64::from(entry.0) + 1)
    }

    /// Whether the slot may lead to the key's entry.
    #[inline]
    pub fn suits(self, slot: u64) -> bool {
        slot >> TAG_SHIFT == self.bits_in_slot()
    }

    /// The tag stored in slots: never 0, the value of free slots.
    #[inline]
    fn bits_in_slot(self) -> u64 {
        u64::from(self.tag() >> (TAG_SHIFT - 32)) | 1
    }

    /// The entry a slot leads to, if it may be the key's.
    #[inline]
    pub fn entry_in(self, slot: u64) -> Option<EntryId> {
        entry_of(slot).filter(|_| self.suits(slot))
    }

    /// All bits.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Whether the key is looked up while the cache is dormant. Always the same keys, so that repeated gets can hit.
    #[inline]
    pub fn is_sampled(self) -> bool {
        self.tag() % SAMPLED == 0
    }

    /// Distinguishes, with high probability, keys in one place.
    #[inline]
    pub fn tag(self) -> u32 {
        (self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_new_bucket_takes_keys_of_one_other() {
        for buckets in 2..40u32 {
            let parent = buckets - (1 << buckets.ilog2());
            for half in 0..4096 {
                let (before, after) = (bucket_of(half, buckets), bucket_of(half, buckets + 1));
                assert!(before < buckets && (after == before || (before == parent && after == buckets)));
            }
        }
    }

    #[test]
    fn aligned_addresses_and_neighbouring_ranks_do_not_collide() {
        let hasher = Hasher::new(1);
        for shift in [0, 3, 6, 12, 20, 32, 50] {
            let keys = (0..8u32).flat_map(|target| (0..500u64).map(move |at| (target, at << shift)));
            let hashes = keys.map(|(target, address)| hasher.hash(&Key { space: 3, target, address }));
            let homes: HashSet<_> = hashes.map(|hash| hash.homes(1 << 20)).collect();
            assert_eq!(homes.len(), 4000, "addresses {shift} bits apart");
        }
    }
}
