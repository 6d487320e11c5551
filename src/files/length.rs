//! What a rank knows of a file's length.

use std::sync::atomic::{AtomicU64, Ordering};

/// A file's length in bytes, as a rank knows it.
pub(super) struct Length {
    /// Never more than the file's true length.
    known: AtomicU64,
    /// Up to here this rank has extended the file without writing, since its last flush; 0 for no extension.
    extended: AtomicU64,
}

impl Length {
    pub(super) fn new(bytes: u64) -> Length {
        Length { known: AtomicU64::new(bytes), extended: AtomicU64::new(0) }
    }

    pub(super) fn known(&self) -> u64 {
        self.known.load(Ordering::Acquire)
    }

    /// Raises the known length to at least `bytes`. Returns whether that is news.
    pub(super) fn raise(&self, bytes: u64) -> bool {
        self.known.fetch_max(bytes, Ordering::AcqRel) < bytes
    }

    /// The file was cut, or read anew: it has this length. No other thread uses the file.
    pub(super) fn set(&self, bytes: u64) {
        self.known.store(bytes, Ordering::Release);
    }

    /// Extends the file without writing. [`Length::extension`] is to tell the file system.
    pub(super) fn extend(&self, bytes: u64) {
        self.extended.fetch_max(bytes, Ordering::AcqRel);
    }

    /// The end of the last extension of which the file system does not know, or 0.
    pub(super) fn extension(&self) -> u64 {
        self.extended.load(Ordering::Acquire)
    }

    /// The file system knows of the extension to `end`. A longer one by another thread stays.
    pub(super) fn end_extension(&self, end: u64) {
        let _longer = self.extended.compare_exchange(end, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Forgets any extension: the file system has set the length. No other thread uses the file.
    pub(super) fn forget_extension(&self) {
        self.extended.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_length_falls_only_when_the_file_is_cut() {
        let length = Length::new(7);
        assert!(!length.raise(7) && !length.raise(3) && length.raise(8));
        assert_eq!(length.known(), 8);
        length.set(2);
        assert_eq!(length.known(), 2);
    }

    #[test]
    fn an_extension_that_grew_meanwhile_stays() {
        let length = Length::new(0);
        assert_eq!(length.extension(), 0);
        length.extend(10);
        length.extend(5);
        let told = length.extension();
        length.extend(20);
        length.end_extension(told);
        assert_eq!((told, length.extension(), length.known()), (10, 20, 0));
        length.end_extension(20);
        assert_eq!(length.extension(), 0);
        length.extend(1);
        length.forget_extension();
        assert_eq!(length.extension(), 0);
    }
}
