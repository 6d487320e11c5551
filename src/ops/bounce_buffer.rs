//! Operations with client memory in the caller's own segment, and thus in pages, too.

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

impl Ops {
    /// Performs such an operation. Bytes are copied from page to page if both pages are open, and otherwise through
    /// buffers, so that no page is pinned while another is awaited. Buffers of many pages are in flight at a time.
    #[cold]
    pub(super) fn through_bounce_buffer(&self, operation: Operation, remote: Remote) -> Result<(), UserError> {
        let Some(local) = operation.address() else { return Ok(()) };
        let own = self.space.rank.0;
        self.space.pieces(own, local, remote.len_bytes)?;
        let here = Remote { rank: own, address: local, ..remote };
        let (from, to) = if operation.is_get() { (remote, here) } else { (here, remote) };
        self.check_write(&to)?;
        if self.copy_page_to_page(from, to)? == remote.len_bytes {
            return Ok(());
        }
        if self.keeps_copies(&operation) {
            let mut buffer = Vec::new();
            return self.bring(from, to, |from, to| self.copy_through(&mut buffer, from, to));
        }
        let completion = self.completions().begin();
        let mut on_the_way = OnTheWay::new(completion);
        let started = self.bring(from, to, |from, to| self.start_through(&mut on_the_way, from, to));
        self.submit_missing(&mut on_the_way.parts);
        self.driver.finish(completion);
        started
    }

    /// Whether copies of the fetched bytes may be kept.
    pub(super) fn keeps_copies(&self, operation: &Operation) -> bool {
        operation.is_get() && self.readonly.is_any()
    }

    /// Copies a range to another of the same length: from page to page if both are open, otherwise by `through`, which
    /// returns the number of leading bytes that it has copied.
    pub(super) fn bring(
        &self,
        from: Remote,
        to: Remote,
        mut through: impl FnMut(Remote, Remote) -> Result<usize, UserError>,
    ) -> Result<(), UserError> {
        let mut at = 0;
        while at < from.len_bytes {
            let remaining =
                |side: Remote| Remote { address: side.address + at, len_bytes: side.len_bytes - at, ..side };
            at += match self.copy_page_to_page(remaining(from), remaining(to))? {
                0 => through(remaining(from), remaining(to))?,
                len_bytes => len_bytes,
            };
        }
        Ok(())
    }

    /// Whether an operation is a put from the own segment to a segment, or a get into the own one from a segment. With
    /// read-only copies gets take their ordinary path.
    pub(super) fn is_between_segments(&self, operation: Operation, remote: Remote) -> bool {
        let local = match operation {
            Operation::Put(from) | Operation::PutNow(from) => from.addr(),
            Operation::Get(to) if !self.readonly.is_any() => to.addr(),
            Operation::Get(_) | Operation::GetWeighted(..) | Operation::Set(_) => return false,
        };
        let is_inside = |rank, address| self.space.pieces(rank, address, remote.len_bytes).is_ok();
        self.is_own_segment(operation, remote.len_bytes)
            && is_inside(remote.rank, remote.address)
            && is_inside(self.space.rank.0, local)
    }

    /// Performs such a get if source and target lie in one open page each. Returns whether it did.
    pub(super) fn get_page_to_page(&self, operation: Operation, remote: Remote) -> Result<bool, UserError> {
        let Some(to) = operation.address().filter(|_| operation.is_get()) else { return Ok(false) };
        let here = Remote { rank: self.space.rank.0, address: to, ..remote };
        Ok(self.copy_page_to_page(remote, here)? == remote.len_bytes)
    }

    /// Starts such an operation. It waits for no page, except that a put with a source to be read at once waits for the
    /// source's pages, which are this rank's own.
    ///
    /// # Errors
    /// As [`Ops::transfer`]; nothing is started then.
    #[cold]
    pub(super) fn start_between_segments(
        &self,
        operation: Operation,
        remote: Remote,
        completion: CompletionId,
    ) -> Result<(), UserError> {
        let Some(local) = operation.address() else { return Ok(()) };
        let here = Remote { rank: self.space.rank.0, address: local, ..remote };
        let (from, to) = if operation.is_get() { (remote, here) } else { (here, remote) };
        self.check_write(&to)?;
        let sources = matches!(operation, Operation::PutNow(_)).then(|| self.completions().begin());
        let mut on_the_way = OnTheWay { sources, ..OnTheWay::new(completion) };
        let started = self.bring(from, to, |from, to| self.start_through(&mut on_the_way, from, to));
        self.submit_missing(&mut on_the_way.parts);
        sources.into_iter().for_each(|sources| self.driver.finish(sources));
        started
    }

    /// Starts to copy bytes to their page through a buffer, or without room for a buffer waits for the copy. Returns
    /// the number of bytes.
    pub(super) fn start_through(
        &self,
        on_the_way: &mut OnTheWay,
        from: Remote,
        to: Remote,
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
        // SAFETY: the buffer is as long as the piece, and nothing else uses it.
        let part = if unsafe { self.hit(&source, &copy) } {
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

    /// Copies the bytes up to the nearer page border, if both pages are open. Returns their number.
    fn copy_page_to_page(&self, from: Remote, to: Remote) -> Result<usize, UserError> {
        let (Some(from), Some(to)) = (self.first_piece(from)?, self.first_piece(to)?) else { return Ok(0) };
        let _copying = CopyGuard::begin();
        let Some(source) = self.pin_anywhere(from.page, Access::Read) else { return Ok(0) };
        let mut copied = 0;
        if let Some(target) = self.pin_anywhere(to.page, Access::Write) {
            copied = from.len_bytes.min(to.len_bytes);
            stats::add(Row::HitPins, 2);
            self.mark_dirty(&target, to.offset_bytes, copied);
            // SAFETY: both pages are pinned, the target for writing, and the pieces end inside them. The bytes may
            // overlap.
            unsafe {
                let (source, target) = (source.frame.add(from.offset_bytes), target.frame.add(to.offset_bytes));
                std::ptr::copy(source, target, copied);
            }
            self.unpin_page(target);
        }
        self.unpin_page(source);
        Ok(copied)
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
