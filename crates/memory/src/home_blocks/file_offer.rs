//! How a neighbour finds a home's file, which has no name.

use super::long_words;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers that describe a file.
const WORDS: usize = 6;

/// A file's description, once its home has given it. By default there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileOffer {
    /// 1 once the others are there, and those.
    words: &'static [AtomicU64],
}

impl FileOffer {
    pub(super) fn bytes() -> usize {
        (1 + WORDS) * size_of::<AtomicU64>()
    }

    pub(super) fn new(address: usize) -> FileOffer {
        FileOffer { words: long_words(address, 1 + WORDS) }
    }

    /// Gives the description. For the home only, once.
    pub fn give(&self, described: [u64; WORDS]) {
        let Some((is_there, words)) = self.words.split_first() else { return };
        words.iter().zip(described).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        is_there.store(1, Ordering::Release);
    }

    /// The description.
    pub fn get(&self) -> Option<[u64; WORDS]> {
        let (is_there, words) = self.words.split_first()?;
        (is_there.load(Ordering::Acquire) == 1).then(|| std::array::from_fn(|at| words[at].load(Ordering::Relaxed)))
    }
}
