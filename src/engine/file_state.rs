//! What the engine and those who use a file both change, of each file that is open: how far it was written, what has failed, which
//! operations have begun.

mod written_again;

use crate::request::Handle;
use crate::sys::Signalproof;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_message::PageFilter;
use written_again::WrittenAgain;

/// So many operations may have begun on a file before those that have ended are looked for.
const BEGUN_MIN: usize = 64;

/// That of one file.
#[derive(Debug, Default)]
pub struct FileState {
    /// The end of what this rank has written, in bytes.
    pub written_end: AtomicU64,
    /// The first error on this rank, as an error number.
    pub first_error: AtomicU32,
    /// How many there were.
    pub errors: AtomicU64,
    /// Why nothing more is to be written: something could not be. An error number.
    pub refusal: AtomicU32,
    /// Whether the user knows that writes are refused.
    pub told_refusal: AtomicBool,
    /// Whether the user knows that some call has waited for operations that were not synced.
    pub told_unsynced: AtomicBool,
    /// The file's shared pointer, where the memory of its team's first member is mapped.
    pub pointer: Option<&'static AtomicU64>,
    /// At the first member: the others.
    pub others: Box<[Rank]>,
    /// The pages that this rank has written since it flushed the file last, as a [`PageFilter`].
    written_pages: AtomicU64,
    /// Operations that were under way when they were looked at last.
    begun: Mutex<Begun>,
    /// The pages of writes among them.
    begun_pages: AtomicU64,
    /// What was written again since a sync has failed.
    pub again: WrittenAgain,
}

/// Operations on a file of which nobody notes the end, with the pages that they write.
#[derive(Debug, Default)]
struct Begun {
    all: Vec<(Handle, PageFilter)>,
    /// When there are so many, those that have ended are forgotten.
    most: usize,
}

impl FileState {
    /// Of a file that is opened now. The first member of its team gives the others; who has that one's memory mapped gives the pointer.
    pub fn new(others: Box<[Rank]>, pointer: Option<&'static AtomicU64>) -> FileState {
        FileState { others, pointer, ..FileState::default() }
    }

    /// An operation has failed.
    pub fn note_error(&self, cause: Cause) {
        let _known = self.first_error.compare_exchange(0, cause.0, Ordering::Relaxed, Ordering::Relaxed);
        self.errors.fetch_add(1, Ordering::Release);
    }

    /// A write of these pages has ended.
    pub fn note_written_pages(&self, pages: PageFilter) {
        note_pages(&self.written_pages, pages);
    }

    /// An operation has begun that writes these pages, and nobody will note its end.
    pub fn note_begun(&self, handle: Handle, pages: PageFilter, is_under_way: impl Fn(Handle) -> bool) {
        let mut begun = Signalproof::lock(&self.begun);
        if begun.all.len() >= begun.most {
            self.forget_ended(&mut begun, is_under_way);
            begun.most = 2 * begun.all.len() + BEGUN_MIN;
        }
        begun.all.push((handle, pages));
        note_pages(&self.begun_pages, pages);
    }

    /// Looks at the operations that have begun. Returns how many are under way.
    pub fn settle_begun(&self, is_under_way: impl Fn(Handle) -> bool) -> usize {
        let mut begun = Signalproof::lock(&self.begun);
        self.forget_ended(&mut begun, is_under_way);
        begun.all.len()
    }

    fn forget_ended(&self, begun: &mut Begun, is_under_way: impl Fn(Handle) -> bool) {
        let (mut written, mut pages_left) = (PageFilter::default(), PageFilter::default());
        begun.all.retain(|(handle, pages)| {
            let stays = is_under_way(*handle);
            let of = if stays { &mut pages_left } else { &mut written };
            *of = of.with(*pages);
            stays
        });
        note_pages(&self.written_pages, written);
        self.begun_pages.store(pages_left.0, Ordering::Release);
    }

    /// The pages that were written since this was asked last.
    pub(super) fn take_written_pages(&self) -> PageFilter {
        PageFilter(self.written_pages.swap(0, Ordering::AcqRel))
    }

    pub(super) fn begun_pages(&self) -> PageFilter {
        PageFilter(self.begun_pages.load(Ordering::Acquire))
    }
}

fn note_pages(noted: &AtomicU64, PageFilter(pages): PageFilter) {
    // Mostly they are there.
    if noted.load(Ordering::Relaxed) & pages != pages {
        noted.fetch_or(pages, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_is_written_when_it_has_ended() {
        let state = FileState::default();
        let handle = |bits| Handle::from_bits(bits).expect("it is not 0");
        let (first, second, read) = (PageFilter::of(1, 1), PageFilter::of(5, 6), PageFilter::default());
        for (bits, pages) in [(1, first), (2, second), (3, read)] {
            state.note_begun(handle(bits), pages, |_| true);
        }
        assert_eq!((state.take_written_pages(), state.begun_pages()), (read, first.with(second)));
        assert_eq!(state.settle_begun(|of| of != handle(1)), 2);
        assert_eq!((state.take_written_pages(), state.begun_pages()), (first, second));
        assert_eq!(state.settle_begun(|_| false), 0);
        assert_eq!((state.take_written_pages(), state.begun_pages()), (second, read));
    }

    #[test]
    fn those_that_have_ended_take_no_room() {
        let (state, page) = (FileState::default(), PageFilter::of(0, 0));
        for bits in 1..10_000 {
            let handle = Handle::from_bits(bits).expect("it is not 0");
            state.note_begun(handle, page, |of| of.to_bits() + 5 > bits);
            assert!(Signalproof::lock(&state.begun).all.len() <= 2 * BEGUN_MIN);
        }
    }
}
