//! Reading and writing many places of a file at once.

use super::transfer::count;
use super::{Bytes, FileError, Files, SharedFile};
use crate::memory::Piece;
use crate::ops::{Operation, Ops, PARTS_MAX, Region, Run, runs};
use crate::request::CompletionId;
use crate::stats::Row;
use vgasnet_protocol::coherence::{Cause, PageId};
use vgasnet_protocol::file_locks::LockMode;

/// The pages of a pass that are written are one in so many frames of the pool: neither write-behind nor the policy, which gives up first what
/// was used once, comes to them before they are full.
const WRITTEN_PART: usize = 16;

/// The same of those that are read: the next ones come before the first ones go.
const READ_PART: usize = 2;

/// Places of a file, and memory: the bytes of both, one behind the other, are the same.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// Of the file.
    pub places: &'a [Place],
    /// Of the client's memory.
    pub memory: &'a [Region],
}

/// Some contiguous bytes of a file, as C has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Place {
    /// The first one.
    pub offset: u64,
    /// How many.
    pub len_bytes: u64,
}

impl Lists<'_> {
    fn runs(&self) -> impl Iterator<Item = Run> {
        let place = |place: &Place| Region { address: place.offset as usize, len_bytes: place.len_bytes as usize };
        runs(self.memory.iter().copied(), self.places.iter().map(place))
    }
}

fn bytes(run: &Run) -> Bytes {
    Bytes { offset: run.remote as u64, len: run.len_bytes }
}

impl Files {
    /// Reads bytes of many places, up to the first that the file does not have. Returns how many.
    ///
    /// # Errors
    /// As [`Files::read`].
    ///
    /// # Safety
    /// The memory is valid for as many bytes as its regions have.
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
            // SAFETY: the memory is valid, and this asks for no others of its bytes.
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
    /// The memory is valid for as many bytes as its regions have.
    pub unsafe fn write_lists(&self, file: &SharedFile, lists: &Lists<'_>) -> Result<(), FileError> {
        file.check_writable()?;
        self.check_lists(file, lists)?;
        self.check_not_refused(file, lists.runs().map(|run| bytes(&run)))?;
        self.in_one_step(file, LockMode::Exclusive, lists.runs().map(|run| bytes(&run)), || {
            lists.runs().for_each(|run| self.intend(file, bytes(&run)));
            // SAFETY: the memory is valid, and this asks for no others of its bytes.
            let done =
                unsafe { self.transfer_runs(file, &|run| Operation::Put(memory(run).cast_const()), lists.runs()) };
            // As in a write of one place.
            lists.runs().for_each(|run| self.note_written(file, bytes(&run)));
            if done.is_ok() {
                file.note_again(lists.runs().map(|run| bytes(&run)));
            }
            done.map_err(|cause| file.not_written(lists.runs().map(|run| bytes(&run)), cause))
        })
    }

    /// Checks all runs. Returns the end of the last one in the file.
    fn check_lists(&self, file: &SharedFile, lists: &Lists<'_>) -> Result<u64, FileError> {
        let mut end = 0;
        for run in lists.runs() {
            end = self.end(file, bytes(&run), run.local == 0)?.max(end);
        }
        Ok(end)
    }

    /// Does gets or puts side by side. Of runs side by side in one page that misses the first is begun, and the others wait for that: most
    /// often it brings the page.
    ///
    /// # Safety
    /// The memory of all is valid.
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
                    // SAFETY: the memory is valid, and none of the own segment.
                    unsafe { pass.end() }?;
                    pass = Pass::new(&self.ops);
                }
                // SAFETY: as above, and this function waits for the end of the pass.
                unsafe { pass.start(operation, piece) };
            }
        }
        // SAFETY: as above.
        let done = unsafe { pass.end() };
        buffered.and(done)
    }
}

/// Pieces that are begun side by side, of each page one. As many begin, and as many are left for later, as parts of a transfer miss. Where
/// some are left, fewer begin: their pages are to be in the pool still when their turn comes, and not to be written half filled.
struct Pass<'a> {
    ops: &'a Ops,
    completion: CompletionId,
    /// The page that missed last, and how many have.
    missed: Option<PageId>,
    begun: usize,
    /// What waits for pages that missed.
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

    /// Does or begins a piece, or leaves it for later.
    ///
    /// # Safety
    /// The client's memory is valid for the piece until the pass has ended, and none of the own segment.
    unsafe fn start(&mut self, operation: Operation, piece: Piece) {
        if self.missed == Some(piece.page) {
            self.later.push((operation, piece));
            return;
        }
        // SAFETY: as the caller promises.
        if unsafe { self.ops.start_pieces(&operation, std::iter::once(piece), self.completion) } {
            self.missed = Some(piece.page);
            self.begun += 1;
        }
    }

    /// Waits for what was begun, and does what is left.
    ///
    /// # Safety
    /// As [`Pass::start`].
    unsafe fn end(self) -> Result<(), Cause> {
        self.ops.end_pieces(self.completion)?;
        let completion = self.ops.begin_pieces();
        for (operation, piece) in self.later {
            // SAFETY: the memory is valid until the completion has ended. What does not find its page now is shipped, and shares messages.
            unsafe { self.ops.start_pieces(&operation, std::iter::once(piece), completion) };
        }
        self.ops.end_pieces(completion)
    }
}

/// The memory of a run, which the client has given by its address.
fn memory(run: &Run) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(run.local)
}
