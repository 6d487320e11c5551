//! Lookup of entries by key: a bucketed cuckoo hash table growing and shrinking bucket by bucket.

use super::key::{EntryId, Hash, SLOTS, entry_of};
use super::mirror::Mirror;
use alloc::vec::Vec;

/// Maximum number of buckets examined in a search for a free slot.
const PATH_BUCKETS: usize = 32;

/// Buckets added or removed per step.
const BUCKETS_A_STEP: u32 = 4;

/// Minimum number of buckets.
pub const BUCKETS_MIN: u32 = 2;

/// The index. The driver holds its slots.
#[derive(Debug)]
pub struct Index {
    buckets: u32,
    /// Planned number of buckets.
    target: u32,
    buckets_max: u32,
    len: u32,
}

/// A bucket on the search for a free slot, reached from a slot of the bucket before.
#[derive(Clone, Copy, Default)]
struct Step {
    bucket: u32,
    before: usize,
    from_slot: u32,
}

/// The bucket a new one takes keys from.
fn parent(bucket: u32) -> u32 {
    bucket - (1 << bucket.ilog2())
}

fn slots(bucket: u32) -> core::ops::Range<u32> {
    bucket * SLOTS..(bucket + 1) * SLOTS
}

impl Index {
    /// An empty index of `buckets` buckets, a power of two.
    pub fn new(buckets: u32, buckets_max: u32, mirror: &mut impl Mirror) -> Index {
        assert!(buckets >= BUCKETS_MIN && buckets.is_power_of_two() && buckets_max.is_power_of_two());
        mirror.set_buckets(buckets);
        Index { buckets, target: buckets, buckets_max: buckets_max.max(buckets), len: 0 }
    }

    /// Number of buckets.
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// The slots possibly leading to an entry with this hash.
    pub fn candidates<'a>(&self, mirror: &'a impl Mirror, hash: Hash) -> impl Iterator<Item = (u32, EntryId)> + 'a {
        let homes = hash.homes(self.buckets);
        let looked_at = if homes[0] == homes[1] { 1 } else { 2 };
        let all = homes.into_iter().take(looked_at).flat_map(slots);
        all.filter_map(move |at| Some((at, hash.entry_in(mirror.slot(at))?)))
    }

    /// The entries occupying the buckets of this hash.
    pub fn around(&self, mirror: &impl Mirror, hash: Hash) -> Vec<EntryId> {
        let all = hash.homes(self.buckets).into_iter().flat_map(slots);
        all.filter_map(|at| entry_of(mirror.slot(at))).collect()
    }

    /// Adds an entry, if there is room; `slot` leads to it. `hash_of` returns the hashes of present entries.
    pub fn insert<M: Mirror>(
        &mut self,
        mirror: &mut M,
        hash_of: impl Fn(EntryId) -> Hash,
        hash: Hash,
        slot: u64,
    ) -> bool {
        self.plan(self.len + 1);
        self.step(mirror, &hash_of);
        if !self.place(mirror, &hash_of, hash, slot) {
            if self.target <= self.buckets {
                self.target = (2 * self.buckets.next_power_of_two()).min(self.buckets_max);
            }
            self.step(mirror, &hash_of);
            if !self.place(mirror, &hash_of, hash, slot) {
                return false;
            }
        }
        self.len += 1;
        debug_assert!(self.len <= self.buckets * SLOTS, "each entry has its slot");
        true
    }

    /// Removes an entry.
    pub fn remove<M: Mirror>(&mut self, mirror: &mut M, hash_of: impl Fn(EntryId) -> Hash, entry: EntryId) {
        let hash = hash_of(entry);
        let found = self.candidates(mirror, hash).find(|(_, other)| *other == entry);
        let (at, _) = found.expect("the entry is in the index");
        mirror.set_slot(at, 0);
        debug_assert!(self.len > 0, "the entries are counted");
        self.len -= 1;
        self.plan(self.len);
        self.step(mirror, &hash_of);
    }

    /// Plans the number of buckets for `len` entries, with hysteresis before shrinking.
    fn plan(&mut self, len: u32) {
        let room = |buckets: u32| u64::from(buckets) * u64::from(SLOTS);
        let len = u64::from(len);
        if len * 5 > room(self.target) * 4 {
            self.target = (2 * self.target).min(self.buckets_max);
        } else if len * 5 < room(self.target) && self.target > BUCKETS_MIN && self.buckets == self.target {
            self.target /= 2;
        }
        debug_assert!((BUCKETS_MIN..=self.buckets_max).contains(&self.target), "the number of buckets is limited");
    }

    /// Moves the number of buckets a step towards the plan.
    fn step<M: Mirror>(&mut self, mirror: &mut M, hash_of: &impl Fn(EntryId) -> Hash) {
        for _ in 0..BUCKETS_A_STEP {
            if self.buckets < self.target {
                self.split(mirror, hash_of);
            } else if self.buckets > self.target && !self.merge(mirror, hash_of) {
                return;
            }
        }
    }

    /// Adds a bucket, moving in the entries that now belong there.
    fn split<M: Mirror>(&mut self, mirror: &mut M, hash_of: &impl Fn(EntryId) -> Hash) {
        debug_assert!(self.buckets < self.buckets_max, "the number of buckets is limited");
        let (new, old) = (self.buckets, parent(self.buckets));
        self.buckets += 1;
        let mut free = slots(new);
        for at in slots(old) {
            let slot = mirror.slot(at);
            let Some(entry) = entry_of(slot) else { continue };
            if !hash_of(entry).homes(self.buckets).contains(&old) {
                mirror.set_slot(free.next().expect("as many slots as the other has"), slot);
                mirror.set_slot(at, 0);
            }
        }
        mirror.set_buckets(self.buckets);
    }

    /// Removes the last bucket, if its entries find room elsewhere.
    fn merge<M: Mirror>(&mut self, mirror: &mut M, hash_of: &impl Fn(EntryId) -> Hash) -> bool {
        debug_assert!(self.buckets > BUCKETS_MIN, "some buckets stay");
        let last = self.buckets - 1;
        let into = parent(last);
        debug_assert!(into < last, "the bucket that takes the entries stays");
        for at in slots(last) {
            let slot = mirror.slot(at);
            let Some(entry) = entry_of(slot) else { continue };
            let other = hash_of(entry).homes(self.buckets).into_iter().find(|home| *home != last);
            let free = other.filter(|other| *other != into).and_then(|other| free_slot(mirror, other));
            if let Some(free) = free {
                mirror.set_slot(free, slot);
                mirror.set_slot(at, 0);
            }
        }
        let left: Vec<u32> = slots(last).filter(|at| mirror.slot(*at) != 0).collect();
        let free: Vec<u32> = slots(into).filter(|at| mirror.slot(*at) == 0).collect();
        if left.len() > free.len() {
            return false;
        }
        self.buckets = last;
        mirror.set_buckets(last);
        for (at, free) in left.into_iter().zip(free) {
            mirror.set_slot(free, mirror.slot(at));
            mirror.set_slot(at, 0);
        }
        debug_assert!(slots(last).all(|at| mirror.slot(at) == 0), "the bucket that goes is empty");
        true
    }

    /// Stores an entry in a slot. If its buckets are full, moves entries along the shortest path to a free slot.
    fn place<M: Mirror>(&self, mirror: &mut M, hash_of: &impl Fn(EntryId) -> Hash, hash: Hash, slot: u64) -> bool {
        let mut steps = [Step::default(); PATH_BUCKETS];
        let mut len = 0;
        for bucket in hash.homes(self.buckets) {
            if len == 0 || steps[0].bucket != bucket {
                steps[len] = Step { bucket, before: usize::MAX, from_slot: 0 };
                len += 1;
            }
        }
        let mut at = 0;
        debug_assert!(entry_of(slot).is_some(), "a slot leads to an entry");
        while at < len {
            if let Some(free) = free_slot(mirror, steps[at].bucket) {
                move_along(mirror, &steps, at, free, slot);
                return true;
            }
            len = self.add_steps(mirror, hash_of, &mut steps, at, len);
            at += 1;
        }
        false
    }

    /// Appends the buckets to which entries of a full one could move. Returns the number of steps.
    fn add_steps<M: Mirror>(
        &self,
        mirror: &M,
        hash_of: &impl Fn(EntryId) -> Hash,
        steps: &mut [Step; PATH_BUCKETS],
        at: usize,
        mut len: usize,
    ) -> usize {
        debug_assert!(at < len, "a step of the search goes on from an earlier one");
        let full = steps[at].bucket;
        for slot in slots(full) {
            let Some(entry) = entry_of(mirror.slot(slot)) else { continue };
            for bucket in hash_of(entry).homes(self.buckets) {
                let is_known = steps[..len].iter().any(|step| step.bucket == bucket);
                if !is_known && len < PATH_BUCKETS {
                    steps[len] = Step { bucket, before: at, from_slot: slot };
                    len += 1;
                }
            }
        }
        len
    }
}

fn free_slot(mirror: &impl Mirror, bucket: u32) -> Option<u32> {
    slots(bucket).find(|at| mirror.slot(*at) == 0)
}

/// Moves the entries on the path to a free slot by one step each, last one first, so that each stays findable.
fn move_along(mirror: &mut impl Mirror, steps: &[Step; PATH_BUCKETS], mut at: usize, mut free: u32, slot: u64) {
    debug_assert_eq!(mirror.slot(free), 0, "the path ends at a free slot");
    while steps[at].before != usize::MAX {
        mirror.set_slot(free, mirror.slot(steps[at].from_slot));
        free = steps[at].from_slot;
        at = steps[at].before;
    }
    mirror.set_slot(free, slot);
}
