//! Hitting runs of a list. A page is pinned once for consecutive runs in it. A small get alone in its page needs no
//! pin.

use super::{Hits, PinnedPage, SMALL_BYTES_MAX};
use crate::ops::{Direction, Run};
use vgasnet_memory::{DIRTY_BLOCK_BYTES, Piece};
use vgasnet_stats as stats;
use vgasnet_sys::{self as sys, CopyGuard};

/// Runs processed together. Their lists, which may lie in the own segment, are read before a page is pinned, and a page
/// wanted by another rank is released after as many.
const BATCH_RUNS: usize = 128;

/// The next runs of a list.
pub(in crate::ops) struct Batch {
    runs: [Run; BATCH_RUNS],
    first: usize,
    end: usize,
}

impl Batch {
    /// An empty batch.
    pub(in crate::ops) fn new() -> Batch {
        let none = Run { local: 0, remote: 0, len_bytes: 0 };
        Batch { runs: [none; BATCH_RUNS], first: 0, end: 0 }
    }

    /// Reads as many runs as there is room for, once all have been taken. Runs contiguous on both sides are merged.
    /// Returns whether there are any.
    ///
    /// Out of line, since this and the surrounding loop each need all registers.
    #[inline(never)]
    pub(in crate::ops) fn refill(&mut self, from: &mut impl Iterator<Item = Run>) -> bool {
        debug_assert!(self.first == self.end, "runs are left");
        let mut end = 0;
        while end < BATCH_RUNS {
            let Some(run) = from.next() else { break };
            match self.runs[..end].last_mut() {
                Some(last) if last.is_continued_by(&run) => last.len_bytes += run.len_bytes,
                _ => {
                    self.runs[end] = run;
                    end += 1;
                }
            }
        }
        (self.first, self.end) = (0, end);
        end > 0
    }

    /// Takes the next run.
    pub(in crate::ops) fn take(&mut self) -> Option<Run> {
        let run = self.left().first().copied()?;
        self.first += 1;
        Some(run)
    }

    /// Runs not taken yet.
    pub(in crate::ops) fn left(&self) -> &[Run] {
        &self.runs[self.first..self.end]
    }
}

/// No block begins at this offset.
const NO_BLOCK: usize = usize::MAX - DIRTY_BLOCK_BYTES;

/// The page of the last run, pinned.
struct HeldPage {
    page: PinnedPage,
    /// The address of its first byte at its home.
    start: usize,
    /// Offset of the last block marked dirty, which stays so while the page is pinned.
    marked: usize,
}

impl Hits {
    /// Performs the first runs of the batch, up to one that misses, crosses a page border, or has its local side null
    /// or in the own segment. Returns the piece of a run that missed.
    ///
    /// # Safety
    /// The local side of each run is valid for its length, or null.
    pub(in crate::ops) unsafe fn runs(&self, direction: Direction, rank: u32, batch: &mut Batch) -> Option<Piece> {
        // SAFETY: the local side of each run is valid for its length, or null.
        unsafe {
            match direction {
                Direction::Get => self.runs_of::<true>(rank, batch),
                Direction::Put => self.runs_of::<false>(rank, batch),
            }
        }
    }

    /// As [`Hits::runs`], for gets or puts. Out of line, since the loop that makes the runs needs the registers
    /// itself.
    ///
    /// # Safety
    /// The local side of each run is valid for its length, or null.
    #[inline(never)]
    unsafe fn runs_of<const IS_GET: bool>(&self, rank: u32, batch: &mut Batch) -> Option<Piece> {
        let direction = if IS_GET { Direction::Get } else { Direction::Put };
        let counts = stats::is_on();
        let own = self.space.own_segment();
        let page_bytes = self.space.page_bytes();
        // A run of at most a page that begins outside this range does not reach into the own segment.
        let near_own = own.base.saturating_sub(page_bytes)..own.base + own.size_bytes;
        let copying = CopyGuard::begin();
        let mut held: Option<HeldPage> = None;
        let mut missed = None;
        let mut done = 0;
        for (at, run) in batch.left().iter().enumerate() {
            let is_near_own = run.local.wrapping_sub(near_own.start) < near_own.len();
            if run.local == 0 || run.len_bytes > page_bytes || is_near_own && own.overlaps(run.local, run.len_bytes) {
                break;
            }
            let is_in = |start: usize| run.remote.wrapping_sub(start) <= page_bytes - run.len_bytes;
            let place = match &mut held {
                Some(held) if is_in(held.start) => held,
                _ => {
                    held.take().into_iter().for_each(|held| self.unpin(&held.page));
                    copying.let_in();
                    // Segments begin at multiples of the page size.
                    let is_alone = batch.left().get(at + 1).is_none_or(|next| (run.remote ^ next.remote) >= page_bytes);
                    // SAFETY: the local side is valid for the run, not null and not in the own segment.
                    if is_alone && direction == Direction::Get && unsafe { self.read_run(rank, run) } {
                        done += 1;
                        continue;
                    }
                    match self.hold(direction, rank, run) {
                        Ok(page) => held.insert(page),
                        Err(piece) => {
                            missed = piece;
                            break;
                        }
                    }
                }
            };
            let offset_bytes = run.remote - place.start;
            if direction == Direction::Put {
                self.mark_run(place, offset_bytes, run.len_bytes);
            }
            // SAFETY: the page is pinned for this direction, and the run lies in it. The local side is valid, not null and not
            // in the own segment, so it does not overlap the frame.
            unsafe { copy_run(direction, place.page.frame.add(offset_bytes), run) };
            if counts {
                self.count(place.page.rank, direction.access(), run.len_bytes);
            }
            done += 1;
        }
        batch.first += done;
        held.into_iter().for_each(|held| self.unpin(&held.page));
        missed
    }

    /// Gets a small run without a pin, if it lies in one page that is open here. On `false` the contents of the local
    /// side are undefined.
    ///
    /// # Safety
    /// The local side is valid for the run, and not in the own segment.
    #[inline]
    unsafe fn read_run(&self, rank: u32, run: &Run) -> bool {
        let local = std::ptr::with_exposed_provenance_mut(run.local);
        // SAFETY: the local side is valid for the run, and not in the own segment.
        (1..SMALL_BYTES_MAX).contains(&run.len_bytes)
            && unsafe { self.space.translations().read_range(rank, run.remote, local, run.len_bytes) }
    }

    /// Pins the page of a run, if the run lies in one page that is open here.
    ///
    /// # Errors
    /// The piece of a run in one page that is not open here.
    fn hold(&self, direction: Direction, rank: u32, run: &Run) -> Result<HeldPage, Option<Piece>> {
        let first = self.space.pieces(rank, run.remote, run.len_bytes).ok().and_then(|mut pieces| pieces.next());
        let piece = first.filter(|piece| piece.len_bytes == run.len_bytes).ok_or(None)?;
        let page = self.pin(piece.page, direction.access()).ok_or(Some(piece))?;
        if direction == Direction::Get && run.len_bytes < SMALL_BYTES_MAX && !stats::is_on() {
            self.mark_quick(&page);
        }
        Ok(HeldPage { page, start: run.remote - piece.offset_bytes, marked: NO_BLOCK })
    }

    /// Marks the blocks that a run writes. Most runs lie in the last one marked.
    #[inline(always)]
    fn mark_run(&self, held: &mut HeldPage, offset_bytes: usize, len_bytes: usize) {
        if offset_bytes < held.marked || offset_bytes + len_bytes > held.marked + DIRTY_BLOCK_BYTES {
            self.mark_dirty(&held.page, offset_bytes, len_bytes);
            held.marked = (offset_bytes + len_bytes - 1) / DIRTY_BLOCK_BYTES * DIRTY_BLOCK_BYTES;
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
            Direction::Get => copy_run_bytes(place, local, run.len_bytes),
            Direction::Put => copy_run_bytes(local, place, run.len_bytes),
        }
    }
}

/// Copies bytes. Up to 128 are copied inline, which is faster than a call of memcpy.
///
/// # Safety
/// Both sides are valid for the length, and do not overlap.
#[inline]
unsafe fn copy_run_bytes(from: *const u8, to: *mut u8, len_bytes: usize) {
    type Vector = [u64; 4];
    const VECTOR_BYTES: usize = size_of::<Vector>();
    const INLINE_BYTES_MAX: usize = 4 * VECTOR_BYTES;
    // SAFETY: both sides are valid for the length and do not overlap. All vectors lie inside. The last one ends with
    // the bytes: if the length is no multiple of a vector's, it overlaps the one before and copies the same bytes
    // there.
    unsafe {
        if !(VECTOR_BYTES..=INLINE_BYTES_MAX).contains(&len_bytes) {
            return sys::copy_bytes(from, to, len_bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_adjacent_on_both_sides_are_merged() {
        let run = |local, remote, len_bytes| Run { local, remote, len_bytes };
        let pieces = [run(8, 108, 2), run(10, 110, 5), run(15, 115, 2), run(17, 118, 1), run(19, 119, 1)];
        let mut batch = Batch::new();
        assert!(batch.refill(&mut pieces.into_iter()));
        let runs: Vec<Run> = std::iter::from_fn(|| batch.take()).collect();
        assert_eq!(runs, [run(8, 108, 9), run(17, 118, 1), run(19, 119, 1)]);
        assert!(!batch.refill(&mut std::iter::empty()) && batch.take().is_none());
    }

    #[test]
    fn a_full_batch_leaves_the_next_runs() {
        let mut pieces = (0..300).map(|at| Run { local: 8 + 3 * at, remote: 9 * at, len_bytes: 2 });
        let mut batch = Batch::new();
        let mut counts = Vec::new();
        while batch.refill(&mut pieces) {
            counts.push(std::iter::from_fn(|| batch.take()).count());
        }
        assert_eq!(counts, [BATCH_RUNS, BATCH_RUNS, 300 - 2 * BATCH_RUNS]);
    }
}
