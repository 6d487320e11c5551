//! How much keys were used that have no entry: so that what is asked for again and again finds room, and what is asked for once does not
//! take it.

use super::heat::Heat;
use super::key::Hash;
use alloc::vec;
use alloc::vec::Vec;

/// The heat of keys without entry, as far as no other key has taken its place.
#[derive(Debug)]
pub struct Ghosts {
    /// Tag and heat.
    known: Vec<(u32, u64)>,
}

impl Ghosts {
    /// Room for so many keys, which is a power of two.
    pub fn new(count: u32) -> Ghosts {
        Ghosts { known: vec![(0, 0); count as usize] }
    }

    /// Notes a key's heat. Of the places only the first so many are used, which is a power of two.
    pub fn note(&mut self, hash: Hash, heat: Heat, places: u32) {
        let at = self.place(hash, places);
        self.known[at] = (hash.tag(), heat.to_bits());
    }

    /// What is known of a key.
    pub fn heat(&self, hash: Hash, places: u32) -> Heat {
        let (tag, bits) = self.known[self.place(hash, places)];
        if tag == hash.tag() { Heat::from_bits(bits) } else { Heat::default() }
    }

    fn place(&self, hash: Hash, places: u32) -> usize {
        hash.homes(places)[1] as usize % self.known.len()
    }
}
