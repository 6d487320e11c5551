//! How much keys were used that have no entry: so that what is asked for again and again finds room, and what is asked for once does not
//! take it.

use super::heat::Heat;
use super::key::Hash;
use alloc::vec;
use alloc::vec::Vec;

/// The heat of keys without entry, as far as no other key has taken its place.
#[derive(Debug)]
pub struct Ghosts {
    /// Of each place the tag of its key and the heat of that, apart: numbers that are zeros at first take no memory until they are
    /// written.
    tags: Vec<u32>,
    heats: Vec<u64>,
}

impl Ghosts {
    /// Room for so many keys, which is a power of two.
    pub fn new(count: u32) -> Ghosts {
        Ghosts { tags: vec![0; count as usize], heats: vec![0; count as usize] }
    }

    /// Notes a key's heat. Of the places only the first so many are used, which is a power of two.
    pub fn note(&mut self, hash: Hash, heat: Heat, places: u32) {
        let at = self.place(hash, places);
        (self.tags[at], self.heats[at]) = (hash.tag(), heat.to_bits());
    }

    /// What is known of a key.
    pub fn heat(&self, hash: Hash, places: u32) -> Heat {
        let at = self.place(hash, places);
        if self.tags[at] == hash.tag() { Heat::from_bits(self.heats[at]) } else { Heat::default() }
    }

    fn place(&self, hash: Hash, places: u32) -> usize {
        hash.homes(places)[1] as usize % self.tags.len()
    }
}
