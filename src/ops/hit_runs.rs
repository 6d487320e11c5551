//! Runs of a list that hit. A page is pinned once for the runs in it that follow each other. A get of a few bytes that is alone
//! in its page does without a pin.

use super::hit::{PinnedPage, SMALL_BYTES_MAX};
use super::{Direction, Ops, Run};
use crate::memory::DIRTY_BLOCK_BYTES;
use crate::stats;

/// Runs that are done together. Their lists, which may lie in the own segment, are read before a page is pinned, and a page
/// that another rank wants is let go after as many.
const BATCH_RUNS: usize = 128;

/// The next runs of a list.
pub(super) struct Batch {
    runs: [Run; BATCH_RUNS],
    first: usize,
    end: usize,
}

impl Batch {
    /// None yet.
    pub(super) fn new() -> Batch {
        let none = Run { local: 0, remote: 0, len_bytes: 0 };
        Batch { runs: [none; BATCH_RUNS], first: 0, end: 0 }
    }

    /// Reads as many more runs as there is room for, once all have been taken. Returns whether there are any.
    #[inline]
    pub(super) fn refill(&mut self, from: &mut impl Iterator<Item = Run>) -> bool {
        debug_assert!(self.first == self.end, "runs are left");
        (self.first, self.end) = (0, 0);
        for run in from {
            self.runs[self.end] = run;
            self.end += 1;
            if self.end == BATCH_RUNS {
                break;
            }
        }
        self.end > 0
    }

    /// Takes the next run.
    pub(super) fn take(&mut self) -> Option<Run> {
        let run = self.left().first().copied()?;
        self.first += 1;
        Some(run)
    }

    fn left(&self) -> &[Run] {
        &self.runs[self.first..self.end]
    }
}

/// The page of the last run, pinned.
struct HeldPage {
    page: PinnedPage,
    /// The address of its first byte, as its home has it.
    start: usize,
    /// The last block that was marked as dirty. It stays so while the page is pinned.
    marked: Option<usize>,
}

impl Ops {
    /// Does the first runs of the batch, up to one that does not hit, that crosses the border of a page, or whose local side is
    /// null or lies in the own segment.
    ///
    /// # Safety
    /// The local side of each run is valid for its length, or null.
    #[inline]
    pub(super) unsafe fn hit_runs(&self, direction: Direction, rank: u32, batch: &mut Batch) {
        let own = self.space.own_segment();
        let page_bytes = self.space.page_bytes();
        let mut held: Option<HeldPage> = None;
        let mut done = 0;
        for (at, run) in batch.left().iter().enumerate() {
            if run.local == 0 || own.overlaps(run.local, run.len_bytes) {
                break;
            }
            if run.len_bytes > page_bytes {
                break;
            }
            let is_in = |start: usize| run.remote.wrapping_sub(start) <= page_bytes - run.len_bytes;
            let place = match &mut held {
                Some(held) if is_in(held.start) => held,
                _ => {
                    held.take().into_iter().for_each(|held| self.unpin_page(held.page));
                    // Segments begin at multiples of the page size.
                    let is_alone = batch.left().get(at + 1).is_none_or(|next| (run.remote ^ next.remote) >= page_bytes);
                    // SAFETY: the local side is valid for the run, not null and not in the own segment.
                    if is_alone && direction == Direction::Get && unsafe { self.read_run(rank, run) } {
                        done += 1;
                        continue;
                    }
                    let Some(page) = self.hold(direction, rank, run) else { break };
                    held.insert(page)
                }
            };
            let offset_bytes = run.remote - place.start;
            if direction == Direction::Put {
                self.mark_run(place, offset_bytes, run.len_bytes);
            }
            // SAFETY: the page is pinned for this direction, and the run lies in it. The local side is valid, not null and not
            // in the own segment, so it does not overlap the frame.
            unsafe { copy_run(direction, place.page.frame.add(offset_bytes), run) };
            if stats::is_on() {
                self.count_hit(place.page.rank, direction.access(), run.len_bytes);
            }
            done += 1;
        }
        batch.first += done;
        held.into_iter().for_each(|held| self.unpin_page(held.page));
    }

    /// Gets a run of a few bytes without a pin, if it lies in one page that is open here. Where it returns `false`, the bytes at
    /// its local side mean nothing.
    ///
    /// # Safety
    /// The local side is valid for the run, and not in the own segment.
    #[inline]
    unsafe fn read_run(&self, rank: u32, run: &Run) -> bool {
        let local = std::ptr::with_exposed_provenance_mut(run.local);
        // SAFETY: the local side is valid for the run, and not in the own segment.
        (1..SMALL_BYTES_MAX).contains(&run.len_bytes)
            && unsafe { self.space.translations().read_few(rank, run.remote, local, run.len_bytes) }
    }

    /// Pins the page of a run, if the run lies in one page that is open here.
    fn hold(&self, direction: Direction, rank: u32, run: &Run) -> Option<HeldPage> {
        let piece = self.space.pieces(rank, run.remote, run.len_bytes).ok()?.next()?;
        if piece.len_bytes != run.len_bytes {
            return None;
        }
        let page = self.pin_anywhere(piece.page, direction.access())?;
        if direction == Direction::Get && run.len_bytes < SMALL_BYTES_MAX && !stats::is_on() {
            self.mark_read(&page);
        }
        Some(HeldPage { page, start: run.remote - piece.offset_bytes, marked: None })
    }

    /// Marks the blocks that a run writes. Most runs lie in the block of the one before.
    #[inline]
    fn mark_run(&self, held: &mut HeldPage, offset_bytes: usize, len_bytes: usize) {
        let block = |at: usize| Some(at / DIRTY_BLOCK_BYTES);
        let last = block((offset_bytes + len_bytes).saturating_sub(1));
        if held.marked != last || held.marked != block(offset_bytes) {
            self.mark_dirty(&held.page, offset_bytes, len_bytes);
            held.marked = last.filter(|_| len_bytes > 0);
        }
    }
}

/// Copies a run from or to its place in a frame.
///
/// # Safety
/// Both sides are valid for the length of the run, and do not overlap.
#[inline]
unsafe fn copy_run(direction: Direction, place: *mut u8, run: &Run) {
    let local = std::ptr::with_exposed_provenance_mut::<u8>(run.local);
    // SAFETY: both sides are valid for the length, and do not overlap.
    unsafe {
        match direction {
            Direction::Get => copy_bytes(place, local, run.len_bytes),
            Direction::Put => copy_bytes(local, place, run.len_bytes),
        }
    }
}

/// Copies bytes. Up to 128 are copied in line, which takes less time than a call of memcpy.
///
/// # Safety
/// Both sides are valid for the length, and do not overlap.
#[inline]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, len_bytes: usize) {
    type Vector = [u64; 4];
    const VECTOR_BYTES: usize = size_of::<Vector>();
    const INLINE_BYTES_MAX: usize = 4 * VECTOR_BYTES;
    // SAFETY: both sides are valid for the length and do not overlap. All vectors lie inside, the last one ends with the bytes:
    // where the length is no multiple of a vector's, it overlaps the one before, and has the same bytes there.
    unsafe {
        if !(VECTOR_BYTES..=INLINE_BYTES_MAX).contains(&len_bytes) {
            std::ptr::copy_nonoverlapping(from, to, len_bytes);
            return;
        }
        let copy_at =
            |at: usize| to.add(at).cast::<Vector>().write_unaligned(from.add(at).cast::<Vector>().read_unaligned());
        copy_at(0);
        if len_bytes > 2 * VECTOR_BYTES {
            copy_at(VECTOR_BYTES);
            copy_at(len_bytes - 2 * VECTOR_BYTES);
        }
        copy_at(len_bytes - VECTOR_BYTES);
    }
}
