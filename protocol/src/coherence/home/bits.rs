//! A bit for each page of a segment.

use alloc::vec;
use alloc::vec::Vec;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Bits {
    len: u32,
    words: Vec<u64>,
}

impl Bits {
    /// `len` bits, none of them set.
    pub fn new(len: u32) -> Bits {
        Bits { len, words: vec![0; (len as usize).div_ceil(64)] }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn get(&self, index: u32) -> bool {
        self.words[index as usize / 64] >> (index % 64) & 1 == 1
    }

    pub fn set(&mut self, index: u32) {
        self.words[index as usize / 64] |= 1 << (index % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn a_bit_is_set_alone() {
        let mut bits = Bits::new(130);
        [0, 63, 64, 129].into_iter().for_each(|index| bits.set(index));
        assert!((0..bits.len()).all(|index| bits.get(index) == [0, 63, 64, 129].contains(&index)));
    }
}
