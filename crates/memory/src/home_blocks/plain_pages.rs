//! The plain pages of a home: those that have been written and that no rank holds or is about to. Their newest bytes are
//! in the home's blocks and its file.

use super::{long_words, words};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Number of versions. Pages with equal numbers modulo this share one, which costs a block read in vain now and then.
const VERSIONS: usize = 4096;

/// A bit for each page of a home's backing file, and versions by which changes since are noticed.
///
/// The order of all accesses is one for all threads: a page that was plain after its version was read, and has the same
/// version later, was plain in between, and no block of it became other than the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainPages {
    versions: &'static [AtomicU32],
    bits: &'static [AtomicU64],
    pages: u32,
}

impl PlainPages {
    pub(super) fn bytes(pages: u32) -> usize {
        VERSIONS * size_of::<AtomicU32>() + (pages as usize).div_ceil(64) * size_of::<AtomicU64>()
    }

    pub(super) fn new(address: usize, pages: u32) -> PlainPages {
        let bits = address + VERSIONS * size_of::<AtomicU32>();
        PlainPages { versions: words(address, VERSIONS), bits: long_words(bits, (pages as usize).div_ceil(64)), pages }
    }

    /// The version of a page, by its place in the file.
    pub fn version(&self, place: u32) -> u32 {
        self.versions.get(place as usize % VERSIONS).map_or(0, |version| version.load(SeqCst))
    }

    /// Whether a page is plain. Pages without a bit are not.
    pub fn is_plain(&self, place: u32) -> bool {
        place < self.pages && self.bits[place as usize / 64].load(SeqCst) >> (place % 64) & 1 == 1
    }

    /// The home begins or ceases to show a page. Ceasing changes its version.
    pub fn set(&self, place: u32, is_plain: bool) {
        if place >= self.pages || self.is_plain(place) == is_plain {
            return;
        }
        let (word, bit) = (&self.bits[place as usize / 64], 1 << (place % 64));
        if is_plain {
            word.fetch_or(bit, SeqCst);
        } else {
            word.fetch_and(!bit, SeqCst);
            self.on_written(place);
        }
    }

    /// A block of a page has become other than the file. The writer does not know yet that its bytes are there.
    pub fn on_written(&self, place: u32) {
        if let Some(version) = self.versions.get(place as usize % VERSIONS) {
            version.fetch_add(1, SeqCst);
        }
    }
}
