//! Heat of keys without entries. Repeatedly requested keys are admitted; keys requested once do not displace others.

use super::heat::Heat;
use super::key::Hash;
use alloc::vec;
use alloc::vec::Vec;

/// The heat of keys without entry, until another key takes the slot.
#[derive(Debug)]
pub struct Ghosts {
    /// By slot, the key's tag and its heat, in separate vectors: zeroed memory is not resident until written.
    tags: Vec<u32>,
    heats: Vec<u64>,
}

impl Ghosts {
    /// Slots for `count` keys, a power of two.
    pub fn new(count: u32) -> Ghosts {
        assert!(count.is_power_of_two(), "{count} slots are no power of two");
        Ghosts { tags: vec![0; count as usize], heats: vec![0; count as usize] }
    }

    /// Records a key's heat, using only the first `places` slots, a power of two.
    pub fn note(&mut self, hash: Hash, heat: Heat, places: u32) {
        let at = self.place(hash, places);
        (self.tags[at], self.heats[at]) = (hash.tag(), heat.to_bits());
    }

    /// The recorded heat of a key.
    pub fn heat(&self, hash: Hash, places: u32) -> Heat {
        let at = self.place(hash, places);
        if self.tags[at] == hash.tag() { Heat::from_bits(self.heats[at]) } else { Heat::default() }
    }

    fn place(&self, hash: Hash, places: u32) -> usize {
        debug_assert!(places.is_power_of_two(), "{places} slots are no power of two");
        hash.homes(places)[1] as usize % self.tags.len()
    }
}
