//! Reading and writing many places of a file at once.

use super::transfer::count;
use super::{Bytes, FileError, Files, SharedFile};
use crate::ops::{Operation, Ops, PARTS_MAX, Region, Run, runs};
use vgasnet_engine::request::CompletionId;
use vgasnet_memory::Piece;
use vgasnet_protocol::coherence::{Cause, PageId};
use vgasnet_protocol::file_locks::LockMode;
use vgasnet_stats::Row;

/// A pass writes at most one page per this many frames of the pool. Its pages are then full before write-behind reaches
/// them, or the replacement policy, which evicts pages used once first.
const WRITTEN_PART: usize = 16;

/// The same for a pass of reads: its last pages come before its first ones are evicted.
const READ_PART: usize = 2;

/// Places of a file and regions of memory. The n-th byte of all places corresponds to the n-th byte of all regions.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// Places of the file.
    pub places: &'a [FileRange],
    /// Regions of the client's memory.
    pub memory: &'a [Region],
}

/// A contiguous range of a file, in the layout of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct FileRange {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub len_bytes: u64,
}

impl Lists<'_> {
    fn runs(&self) -> impl Iterator<Item = Run> {
        let place = |place: &FileRange| Region { address: place.offset as usize, len_bytes: place.len_bytes as usize };
        runs(self.memory.iter().copied(), self.places.iter().map(place))
    }
}

fn bytes(run: &Run) -> Bytes {
    Bytes { offset: run.remote as u64, len: run.len_bytes }
}

impl Files {
    /// Reads bytes of many places, up to the first byte that the file does not have. Returns their number.
    ///
    /// # Errors
    /// As [`Files::read`].
    ///
    /// # Safety
    /// Each memory region is valid for its length.
    pub unsafe fn read_lists(&self, file: &SharedFile, lists: &Lists<'_>) -> Result<usize, FileError> {
        file.check_readable()?;
        let end = self.check_lists(file, lists)?;
        self.in_one_step(file, LockMode::Shared, lists.runs().map(|run| bytes(&run)), || {
            let size = self.size_up_to(file, end);
            let (mut read, mut has_ended) = (0, false);
            let readable = lists.runs().map_while(|run| {
                let len_bytes =
                    if has_ended { 0 } else { run.len_bytes.min(size.saturating_sub(run.remote as u64) as usize) };
                has_ended |= len_bytes < run.len_bytes;
                read += len_bytes;
                (len_bytes > 0).then_some(Run { len_bytes, ..run })
            });
            // SAFETY: the caller guarantees the memory, and no run exceeds it.
            let done = unsafe { self.transfer_runs(file, &|run| Operation::Get(memory(run)), readable) };
            done.map_err(|cause| file.failed("be read", cause))?;
            Ok(read)
        })
    }

    /// Writes bytes to many places.
    ///
    /// # Errors
    /// As [`Files::write`].
    ///
    /// # Safety
    /// Each memory region is valid for its length.
    pub unsafe fn write_lists(&self, file: &SharedFile, lists: &Lists<'_>) -> Result<(), FileError> {
        file.check_writable()?;
        self.check_lists(file, lists)?;
        self.check_not_refused(file, lists.runs().map(|run| bytes(&run)))?;
        self.in_one_step(file, LockMode::Exclusive, lists.runs().map(|run| bytes(&run)), || {
            lists.runs().for_each(|run| self.intend(file, bytes(&run)));
            // SAFETY: the caller guarantees the memory, and no run exceeds it.
            let done =
                unsafe { self.transfer_runs(file, &|run| Operation::Put(memory(run).cast_const()), lists.runs()) };
            // As in a write of one place.
            lists.runs().for_each(|run| self.note_written(file, bytes(&run)));
            if done.is_ok() {
                file.note_again(lists.runs().map(|run| bytes(&run)));
            }
            self.end_write(file);
            done.map_err(|cause| file.not_written(lists.runs().map(|run| bytes(&run)), cause))
        })
    }

    /// Checks all runs. Returns their largest end in the file.
    fn check_lists(&self, file: &SharedFile, lists: &Lists<'_>) -> Result<u64, FileError> {
        let mut end = 0;
        for run in lists.runs() {
            end = self.end(file, bytes(&run), run.local == 0)?.max(end);
        }
        Ok(end)
    }

    /// Does gets or puts in parallel. Of consecutive runs in one missing page only the first starts; the others wait
    /// for it, since it usually brings the page.
    ///
    /// # Safety
    /// The memory of all runs is valid.
    unsafe fn transfer_runs(
        &self,
        file: &SharedFile,
        operation: &dyn Fn(&Run) -> Operation,
        runs: impl Iterator<Item = Run>,
    ) -> Result<(), Cause> {
        let mut pass = Pass::new(&self.ops);
        let mut buffered = Ok(());
        for run in runs {
            let (operation, bytes) = (operation(&run), bytes(&run));
            if operation.is_get() {
                count(Row::FileReads, Row::FileReadBytes, bytes);
            } else {
                count(Row::FileWrites, Row::FileWriteBytes, bytes);
            }
            if self.ops.is_in_own_segment(run.local, run.len_bytes) {
                buffered = buffered.and_then(|()| self.through_buffer(file, operation, bytes));
                continue;
            }
            for piece in self.pieces(file, bytes) {
                if pass.is_full(piece.page, operation.is_get()) {
                    // SAFETY: the memory is valid and outside the own segment.
                    unsafe { pass.end() }?;
                    pass = Pass::new(&self.ops);
                }
                // SAFETY: the memory of all runs is valid, and this function waits for the end of the pass.
                unsafe { pass.start(operation, piece) };
            }
        }
        // SAFETY: the memory of all runs is valid.
        let done = unsafe { pass.end() };
        buffered.and(done)
    }
}

/// Pieces started in parallel, one per page. A pass starts at most [`PARTS_MAX`] pieces and postpones at most as many.
/// With postponed pieces it starts fewer: their pages must still be resident when the postponed pieces follow, and must
/// not be written half filled.
struct Pass<'a> {
    ops: &'a Ops,
    completion: CompletionId,
    /// The page that missed last, and the number of misses.
    missed: Option<PageId>,
    begun: usize,
    /// Pieces postponed until their pages have come.
    later: Vec<(Operation, Piece)>,
}

impl<'a> Pass<'a> {
    fn new(ops: &'a Ops) -> Pass<'a> {
        Pass { ops, completion: ops.begin_pieces(), missed: None, begun: 0, later: Vec::new() }
    }

    /// Whether a piece of this page is for the next pass.
    fn is_full(&self, page: PageId, is_read: bool) -> bool {
        let is_next = self.missed != Some(page);
        let part = if is_read { READ_PART } else { WRITTEN_PART };
        let frames = self.ops.space().own.table.frames() as usize;
        let most = if self.later.is_empty() { PARTS_MAX } else { (frames / part).clamp(1, PARTS_MAX) };
        is_next && self.begun >= most || self.later.len() == PARTS_MAX
    }

    /// Does, starts or postpones a piece.
    ///
    /// # Safety
    /// The client's memory is valid for the piece until the pass has ended, and outside the own segment.
    unsafe fn start(&mut self, operation: Operation, piece: Piece) {
        if self.missed == Some(piece.page) {
            self.later.push((operation, piece));
            return;
        }
        // SAFETY: the client's memory is valid for the piece until the pass has ended, and outside the own segment.
        if unsafe { self.ops.start_pieces(&operation, std::iter::once(piece), self.completion) } {
            self.missed = Some(piece.page);
            self.begun += 1;
        }
    }

    /// Waits for the started pieces, then does the postponed ones.
    ///
    /// # Safety
    /// As [`Pass::start`].
    unsafe fn end(self) -> Result<(), Cause> {
        self.ops.end_pieces(self.completion)?;
        let completion = self.ops.begin_pieces();
        for (operation, piece) in self.later {
            // SAFETY: the memory is valid until the completion has ended. A piece without its page by now is shipped,
            // and shares messages.
            unsafe { self.ops.start_pieces(&operation, std::iter::once(piece), completion) };
        }
        self.ops.end_pieces(completion)
    }
}

/// The client's memory of a run, given by its address.
fn memory(run: &Run) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(run.local)
}
