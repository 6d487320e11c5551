//! Operations with client memory in the caller's own segment, and thus in pages, too.

use super::resolve::Resolved;
use super::{Operation, Ops, Remote};
use vgasnet_engine::request::{Completion, CompletionId, Continuation, Copy, Part, Reserved};
use vgasnet_memory::Piece;
use vgasnet_protocol::coherence::Access;
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::CopyGuard;

/// Bytes copied through the buffer at a time, if there is no room for more.
const BUFFER_BYTES: usize = 64 << 10;

/// Parts submitted to the engine together.
const TOGETHER: usize = 64;

/// An operation with client memory in the own segment: a copy between two ranges of segments.
pub(super) struct Between {
    operation: Operation,
    from: Remote,
    to: Remote,
    /// The outcome for the bytes up to the first page border.
    first: PageCopy,
}

/// The outcome of a copy from page to page.
#[derive(Clone, Copy)]
pub(super) enum PageCopy {
    /// As many bytes are copied.
    Done(usize),
    /// The source's page is not open on this host.
    NoSource,
    /// The target's page is not.
    NoTarget,
}

impl Ops {
    /// Resolves an operation with client memory in the own segment: copies its first bytes if both of their pages are
    /// open.
    ///
    /// # Errors
    /// The client's memory is only partly in the own segment, or the target is declared read-only.
    #[cold]
    pub(super) fn resolve_between(&self, operation: Operation, remote: Remote) -> Result<Resolved, UserError> {
        let Some(local) = operation.address() else { return Ok(Resolved::Done) };
        let own = self.space.rank.0;
        self.space.pieces(own, local, remote.len_bytes)?;
        let here = Remote { rank: own, address: local, ..remote };
        let (from, to) = if operation.is_get() { (remote, here) } else { (here, remote) };
        self.readonly.check_write(&to)?;
        let between = Between { operation, from, to, first: self.copy_page_to_page(from, to)? };
        Ok(if operation.is_get() && between.is_done() { Resolved::Done } else { Resolved::Between(between) })
    }

    /// Performs the rest of such an operation. Bytes are copied from page to page if both pages are open, and otherwise
    /// through buffers, so that no page is pinned while another is awaited. Buffers of many pages are in flight at a
    /// time.
    #[cold]
    pub(super) fn finish_between(&self, between: &Between) -> Result<(), UserError> {
        if between.is_done() {
            return Ok(());
        }
        if self.keeps_copies(&between.operation) {
            let mut buffer = Vec::new();
            return between.bring(self, |from, to, _| self.copy_through(&mut buffer, from, to));
        }
        let completion = self.completions().begin();
        let mut on_the_way = OnTheWay::new(completion);
        let started = between.bring(self, |from, to, known| self.start_through(&mut on_the_way, from, to, known));
        self.submit_missing(&mut on_the_way.parts);
        self.driver.finish(completion);
        started
    }

    /// Starts the rest of such an operation. It waits for no page, except that a put with a source to be read at once
    /// waits for the source's pages, which are this rank's own, and a get that keeps copies for all.
    ///
    /// # Errors
    /// As [`Ops::transfer`]; nothing is started then.
    #[cold]
    pub(super) fn start_between(&self, between: &Between, completion: CompletionId) -> Result<(), UserError> {
        if between.is_done() || self.keeps_copies(&between.operation) {
            return self.finish_between(between);
        }
        let sources = matches!(between.operation, Operation::PutNow(_)).then(|| self.completions().begin());
        let mut on_the_way = OnTheWay { sources, ..OnTheWay::new(completion) };
        let started = between.bring(self, |from, to, known| self.start_through(&mut on_the_way, from, to, known));
        self.submit_missing(&mut on_the_way.parts);
        sources.into_iter().for_each(|sources| self.driver.finish(sources));
        started
    }

    /// Whether copies of the fetched bytes may be kept.
    pub(super) fn keeps_copies(&self, operation: &Operation) -> bool {
        operation.is_get() && self.readonly.is_any()
    }

    /// Copies a range to another of the same length: from page to page if both are open, otherwise by `through`, which
    /// is told of the missing page and returns the number of leading bytes that it has copied. `first` is the outcome
    /// for the first bytes, if they have been tried.
    pub(super) fn bring(
        &self,
        from: Remote,
        to: Remote,
        mut first: Option<PageCopy>,
        mut through: impl FnMut(Remote, Remote, PageCopy) -> Result<usize, UserError>,
    ) -> Result<(), UserError> {
        let mut at = 0;
        while at < from.len_bytes {
            let remaining =
                |side: Remote| Remote { address: side.address + at, len_bytes: side.len_bytes - at, ..side };
            let (from, to) = (remaining(from), remaining(to));
            at += match first.take().map_or_else(|| self.copy_page_to_page(from, to), Ok)? {
                PageCopy::Done(len_bytes) => len_bytes,
                missing => through(from, to, missing)?,
            };
        }
        Ok(())
    }

    /// Starts to copy bytes to their page through a buffer, or without room for a buffer waits for the copy. A page of
    /// them is `missing`. Returns the number of bytes.
    pub(super) fn start_through(
        &self,
        on_the_way: &mut OnTheWay,
        from: Remote,
        to: Remote,
        missing: PageCopy,
    ) -> Result<usize, UserError> {
        let (Some(source), Some(target)) = (self.first_piece(from)?, self.first_piece(to)?) else { return Ok(0) };
        let len_bytes = source.len_bytes.min(target.len_bytes);
        let Some(room) = self.room_for_copy(len_bytes) else {
            self.submit_missing(&mut on_the_way.parts);
            let [from, to] = [from, to].map(|side| Remote { len_bytes, ..side });
            return self.copy_through(&mut Vec::new(), from, to);
        };
        let [source, target] = [source, target].map(|piece| Piece { len_bytes, ..piece });
        let mut buffer = vec![0; len_bytes];
        let copy = Copy::Get(buffer.as_mut_ptr());
        let may_hit = !matches!(missing, PageCopy::NoSource);
        // SAFETY: the buffer is as long as the piece, and nothing else uses it.
        let part = if may_hit && unsafe { self.hits.hit(&source, &copy) } {
            let copy = Copy::PutOwned(buffer.into(), room);
            Part { piece: target, copy, completion: Completion::Counted(on_the_way.completion) }
        } else {
            on_the_way.sources.iter().for_each(|sources| self.completions().add(*sources));
            let remaining = PutOn { target, buffer, room, source: on_the_way.sources };
            Part { piece: source, copy, completion: Completion::Then(on_the_way.completion, Box::new(remaining)) }
        };
        on_the_way.parts.push(part);
        if on_the_way.parts.len() == TOGETHER {
            self.submit_missing(&mut on_the_way.parts);
        }
        Ok(len_bytes)
    }

    /// Copies the bytes up to the nearer page border, if both pages are open.
    fn copy_page_to_page(&self, from: Remote, to: Remote) -> Result<PageCopy, UserError> {
        let (Some(from), Some(to)) = (self.first_piece(from)?, self.first_piece(to)?) else {
            return Ok(PageCopy::Done(0));
        };
        let _copying = CopyGuard::begin();
        let Some(source) = self.hits.pin(from.page, Access::Read) else { return Ok(PageCopy::NoSource) };
        let mut copy = PageCopy::NoTarget;
        if let Some(target) = self.hits.pin(to.page, Access::Write) {
            let copied = from.len_bytes.min(to.len_bytes);
            copy = PageCopy::Done(copied);
            stats::add(Row::HitPins, 2);
            self.hits.mark_dirty(&target, to.offset_bytes, copied);
            // SAFETY: both pages are pinned, the target for writing, and the pieces end inside them. The bytes may
            // overlap.
            unsafe {
                let (source, target) = (source.frame.add(from.offset_bytes), target.frame.add(to.offset_bytes));
                std::ptr::copy(source, target, copied);
            }
            self.hits.unpin(&target);
        }
        self.hits.unpin(&source);
        Ok(copy)
    }

    fn first_piece(&self, side: Remote) -> Result<Option<Piece>, UserError> {
        Ok(self.space.pieces(side.rank, side.address, side.len_bytes)?.next())
    }

    /// Copies bytes through a buffer. Returns their number.
    fn copy_through(&self, buffer: &mut Vec<u8>, from: Remote, to: Remote) -> Result<usize, UserError> {
        let len_bytes = BUFFER_BYTES.min(from.len_bytes);
        buffer.resize(BUFFER_BYTES, 0);
        // SAFETY: the buffer has at least `len_bytes` bytes, and nothing else uses it.
        unsafe {
            self.transfer(Operation::Get(buffer.as_mut_ptr()), Remote { len_bytes, ..from })?;
            self.transfer(Operation::Put(buffer.as_ptr()), Remote { len_bytes, ..to })?;
        }
        Ok(len_bytes)
    }
}

impl Between {
    fn is_done(&self) -> bool {
        matches!(self.first, PageCopy::Done(len_bytes) if len_bytes == self.from.len_bytes)
    }

    fn bring(
        &self,
        ops: &Ops,
        through: impl FnMut(Remote, Remote, PageCopy) -> Result<usize, UserError>,
    ) -> Result<(), UserError> {
        ops.bring(self.from, self.to, Some(self.first), through)
    }
}

/// Bytes between two segments in flight through buffers.
pub(super) struct OnTheWay {
    /// Counts bytes not at their target yet.
    completion: CompletionId,
    /// Counts bytes not in their buffers yet, if the caller waits for them.
    sources: Option<CompletionId>,
    /// Parts not submitted yet.
    pub(super) parts: Vec<Part>,
}

impl OnTheWay {
    /// Nothing in flight yet.
    pub(super) fn new(completion: CompletionId) -> OnTheWay {
        OnTheWay { completion, sources: None, parts: Vec::new() }
    }
}

/// The second half of an operation between two segments: puts the buffer once it is filled.
#[derive(Debug)]
struct PutOn {
    /// Target of the buffer, and as long.
    target: Piece,
    buffer: Vec<u8>,
    room: Reserved,
    /// Counts the piece until it is in the buffer.
    source: Option<CompletionId>,
}

impl Continuation for PutOn {
    fn run(self: Box<Self>, done: &mut dyn FnMut(CompletionId)) -> Option<(Piece, Copy)> {
        let PutOn { target, buffer, room, source } = *self;
        source.into_iter().for_each(done);
        Some((target, Copy::PutOwned(buffer.into(), room)))
    }
}
