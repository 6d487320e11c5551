//! State of an open file that both the engine and the file calls change: its written end, failures, and operations in
//! progress.

use super::written_again::WrittenAgain;
use crate::request::Handle;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::Cause;
use vgasnet_protocol::file_message::PageFilter;
use vgasnet_storage::NamedFile;
use vgasnet_sys::Signalproof;

/// Least number of begun operations before the ended ones are collected.
const BEGUN_MIN: usize = 64;

/// In place of a number of ranks: the job is about to end.
const ENDING: u32 = 1 << 31;

/// The state of one file.
#[derive(Debug, Default)]
pub struct FileState {
    /// End of the data written by this rank, in bytes.
    written_end: AtomicU64,
    /// End of the data written or being written by this rank, in bytes. Lower than `written_end` before the first
    /// write.
    intended_end: AtomicU64,
    /// Number of ranks that need `intended_end` to stay as it is, and [`ENDING`].
    end_holders: AtomicU32,
    /// First error on this rank, as an errno value; 0 if none.
    first_error: AtomicU32,
    /// Number of errors.
    errors: AtomicU64,
    /// Why writes are refused after a failed write-back, as an errno value; 0 if they are not.
    refusal: AtomicU32,
    /// Whether the user has been told that writes are refused.
    told_refusal: AtomicBool,
    /// Whether the user has been told that a call waited for unsynced operations.
    told_unsynced: AtomicBool,
    /// The file's shared pointer, if the memory of the team's first member is mapped.
    pointer: Option<&'static AtomicU64>,
    /// At the team's first member: the other members.
    others: Box<[Rank]>,
    /// Pages written by this rank since its last flush of the file, as a [`PageFilter`].
    written_pages: AtomicU64,
    /// Operations in progress at the last check.
    begun: Mutex<Begun>,
    /// The pages that they write.
    begun_pages: AtomicU64,
    /// Ranges written again since a sync failed.
    again: WrittenAgain,
    /// The file, if this rank is one of its homes.
    home: Option<Arc<NamedFile>>,
    /// At the team's first member of an MPI program's file: a rank needs the file handed over.
    is_wanted: AtomicBool,
}

/// Operations on a file without completion notice, with the pages that they write.
#[derive(Debug, Default)]
struct Begun {
    all: Vec<(Handle, PageFilter)>,
    /// At this length the ended ones are removed.
    most: usize,
}

impl FileState {
    /// Creates the state of a newly opened file. `others` is for the team's first member only; `pointer` needs the
    /// first member's memory mapped; `home` is the file at one of its homes.
    pub fn new(others: Box<[Rank]>, pointer: Option<&'static AtomicU64>, home: Option<Arc<NamedFile>>) -> FileState {
        FileState { others, pointer, home, ..FileState::default() }
    }

    /// The file's shared pointer, if the memory of the team's first member is mapped.
    pub fn pointer(&self) -> Option<&'static AtomicU64> {
        self.pointer
    }

    /// At the team's first member: the other members.
    pub(super) fn others(&self) -> &[Rank] {
        &self.others
    }

    /// Ranges written again since a sync failed.
    pub fn again(&self) -> &WrittenAgain {
        &self.again
    }

    /// The end of the data written by this rank, in bytes.
    pub fn written_end(&self) -> u64 {
        self.written_end.load(Ordering::Acquire)
    }

    /// Notes a write up to `end`, whether or not it succeeds.
    pub fn note_written_end(&self, end: u64) {
        // Usually the end is known already: parallel writers do not disturb each other's caches.
        if self.written_end.load(Ordering::Relaxed) < end {
            self.written_end.fetch_max(end, Ordering::AcqRel);
        }
    }

    /// The first error on this rank, if there is one.
    pub fn first_error(&self) -> Option<Cause> {
        let errno = self.first_error.load(Ordering::Relaxed);
        (errno != 0).then_some(Cause(errno))
    }

    /// Number of errors on this rank.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Acquire)
    }

    /// Why writes are refused after a failed write-back, if they are.
    pub fn refusal(&self) -> Option<Cause> {
        let errno = self.refusal.load(Ordering::Relaxed);
        (errno != 0).then_some(Cause(errno))
    }

    /// Refuses further writes by this rank, and counts an error.
    pub(super) fn refuse(&self, cause: Cause) {
        debug_assert!(cause.0 != 0, "a refusal has a cause");
        self.refusal.store(cause.0, Ordering::Relaxed);
        self.note_error(cause);
    }

    /// Accepts writes again.
    pub fn accept(&self) {
        self.refusal.store(0, Ordering::Relaxed);
    }

    /// Whether the user has yet to be told that writes are refused. True once a refusal.
    pub fn must_tell_refusal(&self) -> bool {
        !self.told_refusal.swap(true, Ordering::Relaxed)
    }

    /// The next refusal is told again.
    pub(super) fn forget_told_refusal(&self) {
        self.told_refusal.store(false, Ordering::Relaxed);
    }

    /// Whether the user has yet to be told that a call waited for unsynced operations. True once.
    pub fn must_tell_unsynced(&self) -> bool {
        !self.told_unsynced.swap(true, Ordering::Relaxed)
    }

    /// A sync by one rank alone has failed with this error number, or has succeeded if it is 0. Returns the error
    /// number of a failed sync with doubtful bytes at this home, or 0.
    pub(super) fn doubt_after(&self, errno: i32) -> i32 {
        if errno != 0 {
            self.home.iter().for_each(|home| _ = home.end_sync(Some(errno), &[]));
            self.again.doubt();
        }
        self.home.as_ref().and_then(|home| home.doubt()).map_or(0, |doubt| doubt.errno)
    }

    /// A rank needs the file handed over.
    pub(super) fn want(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    /// Whether a rank needs the file handed over.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Notes a write up to `end` before its data can reach the file. Returns whether another rank holds the end, and the
    /// write has to wait until [`FileState::is_end_held`] is false.
    #[inline]
    pub fn intend_end(&self, end: u64) -> bool {
        // Sequentially consistent with `hold_end`: either that sees the end, or this sees the holder. Another thread's
        // end may be one that it waits with.
        if self.intended_end.load(Ordering::SeqCst) < end {
            self.intended_end.fetch_max(end, Ordering::SeqCst);
        }
        self.is_end_held()
    }

    /// The file was cut, and this rank writes nothing meanwhile.
    pub fn forget_end(&self) {
        self.intended_end.store(0, Ordering::SeqCst);
        self.written_end.store(0, Ordering::Release);
    }

    /// A rank is about to end the job: no further write begins, until holds are abandoned.
    pub fn hold_writes(&self) {
        self.end_holders.fetch_or(ENDING, Ordering::SeqCst);
    }

    /// No rank is about to end the job any more.
    pub fn go_on_writing(&self) {
        self.end_holders.fetch_and(!ENDING, Ordering::SeqCst);
    }

    /// Whether a rank is about to end the job.
    pub fn is_ending(&self) -> bool {
        self.end_holders.load(Ordering::SeqCst) & ENDING != 0
    }

    /// Whether a rank is about to give the file its size, or to end the job.
    pub fn is_end_held(&self) -> bool {
        self.end_holders.load(Ordering::SeqCst) > 0
    }

    /// Has writes beyond the end wait. Returns the end.
    pub fn hold_end(&self) -> u64 {
        self.end_holders.fetch_add(1, Ordering::SeqCst);
        self.intended_end.load(Ordering::SeqCst)
    }

    /// Ends one hold, unless all have been abandoned.
    pub fn release_end(&self) {
        let one_fewer = |holders: u32| (holders & !ENDING > 0).then(|| holders - 1);
        let _abandoned = self.end_holders.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_fewer);
    }

    /// Ends all holds, whose ranks may have died.
    pub fn abandon_holds(&self) {
        self.end_holders.store(0, Ordering::SeqCst);
    }

    /// Notes a failed operation.
    pub fn note_error(&self, cause: Cause) {
        let _known = self.first_error.compare_exchange(0, cause.0, Ordering::Relaxed, Ordering::Relaxed);
        self.errors.fetch_add(1, Ordering::Release);
    }

    /// Notes a completed write of these pages.
    pub fn note_written_pages(&self, pages: PageFilter) {
        note_pages(&self.written_pages, pages);
    }

    /// Notes the start of an operation that writes these pages and gives no completion notice.
    pub fn note_begun(&self, handle: Handle, pages: PageFilter, is_in_flight: impl Fn(Handle) -> bool) {
        let mut begun = Signalproof::lock(&self.begun);
        if begun.all.len() >= begun.most {
            self.forget_ended(&mut begun, is_in_flight);
            begun.most = 2 * begun.all.len() + BEGUN_MIN;
        }
        begun.all.push((handle, pages));
        note_pages(&self.begun_pages, pages);
    }

    /// Checks the begun operations. Returns how many are in progress.
    pub fn settle_begun(&self, is_in_flight: impl Fn(Handle) -> bool) -> usize {
        let mut begun = Signalproof::lock(&self.begun);
        self.forget_ended(&mut begun, is_in_flight);
        begun.all.len()
    }

    fn forget_ended(&self, begun: &mut Begun, is_in_flight: impl Fn(Handle) -> bool) {
        let (mut written, mut pages_left) = (PageFilter::default(), PageFilter::default());
        begun.all.retain(|(handle, pages)| {
            let stays = is_in_flight(*handle);
            let of = if stays { &mut pages_left } else { &mut written };
            *of = of.with(*pages);
            stays
        });
        note_pages(&self.written_pages, written);
        self.begun_pages.store(pages_left.0, Ordering::Release);
    }

    /// Takes the pages written since the last call.
    pub(super) fn take_written_pages(&self) -> PageFilter {
        PageFilter(self.written_pages.swap(0, Ordering::AcqRel))
    }

    pub(super) fn begun_pages(&self) -> PageFilter {
        PageFilter(self.begun_pages.load(Ordering::Acquire))
    }
}

fn note_pages(noted: &AtomicU64, PageFilter(pages): PageFilter) {
    // Most bits are set already, and a load is cheaper than a read-modify-write.
    if noted.load(Ordering::Relaxed) & pages != pages {
        noted.fetch_or(pages, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begun_pages_count_as_written_once_their_operation_has_ended() {
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
    fn writes_wait_at_the_end_of_a_job_whatever_is_released() {
        let state = FileState::default();
        assert!(!state.intend_end(10));
        state.hold_end();
        state.hold_writes();
        state.release_end();
        state.release_end();
        assert!(state.is_ending() && state.intend_end(5));
        state.abandon_holds();
        assert!(!state.is_ending() && !state.intend_end(5));
    }

    #[test]
    fn ended_operations_take_no_room() {
        let (state, page) = (FileState::default(), PageFilter::of(0, 0));
        for bits in 1..10_000 {
            let handle = Handle::from_bits(bits).expect("it is not 0");
            state.note_begun(handle, page, |of| of.to_bits() + 5 > bits);
            assert!(Signalproof::lock(&state.begun).all.len() <= 2 * BEGUN_MIN);
        }
    }
}
