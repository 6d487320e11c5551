//! Puts that wait for no page of their target, and have read the client's memory once they have been started.

use super::{Operation, Ops, PARTS_MAX, Remote};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vgasnet_engine::request::{Completion, CompletionId, Continuation, Copy, Part, Reserved};
use vgasnet_settings::UserError;

/// Continuation of such a put once its bytes are in place. It may run in any thread, without a lock of the library.
pub type Then = Box<dyn Fn() + Send + Sync>;

/// State of such a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// Its bytes are in place.
    Done,
    /// It is in flight.
    UnderWay,
    /// There is no room for copies. Nothing was put.
    NoRoom,
}

impl Ops {
    /// Starts a put. Bytes for missing pages are copied. `then` supplies the continuation, unless this returns
    /// [`Started::Done`]. A source in the own segment waits for its pages.
    ///
    /// # Errors
    /// As [`Ops::transfer`].
    ///
    /// # Safety
    /// As [`Ops::transfer`].
    pub unsafe fn put_unwaiting(
        &self,
        from: *const u8,
        remote: Remote,
        then: impl FnOnce() -> Then,
    ) -> Result<Started, UserError> {
        let operation = Operation::Put(from);
        self.check_client(operation, remote.len_bytes)?;
        self.readonly.check_write(&remote)?;
        if !self.is_own_segment(operation, remote.len_bytes) {
            // SAFETY: as the caller says; the source is outside of the own segment.
            return unsafe { self.put_apart(from, None, remote, then) };
        }
        let Some(room) = self.copies.take_even_if_large(remote.len_bytes) else { return Ok(Started::NoRoom) };
        let mut buffer = vec![0_u8; remote.len_bytes];
        let here = Remote { rank: self.space.rank.0, address: from.addr(), ..remote };
        // SAFETY: the buffer is as long as the get, and nothing else uses it; the put has read it once it has been
        // started.
        unsafe {
            self.transfer(Operation::Get(buffer.as_mut_ptr()), here)?;
            self.put_apart(buffer.as_ptr(), Some(room), remote, then)
        }
    }

    /// As [`Ops::put_unwaiting`], from a source outside of the own segment. `room` is for the copies, if the caller has
    /// some.
    ///
    /// # Safety
    /// The source is valid for `remote.len_bytes` bytes.
    unsafe fn put_apart(
        &self,
        from: *const u8,
        room: Option<Reserved>,
        remote: Remote,
        then: impl FnOnce() -> Then,
    ) -> Result<Started, UserError> {
        let operation = Operation::Put(from);
        let pieces = || self.space.pieces(remote.rank, remote.address, remote.len_bytes);
        // SAFETY: the source is valid for all bytes, so for each piece of them.
        let Some(missed) = (unsafe { self.hits.all(pieces()?, |piece| operation.copy(piece)) }) else {
            return Ok(Started::Done);
        };
        let Some(mut room) = room.or_else(|| self.copies.take_even_if_large(remote.len_bytes)) else {
            return Ok(Started::NoRoom);
        };
        let mut missing = Vec::new();
        for piece in pieces()? {
            // SAFETY: the source is valid for all bytes, so for this piece of them.
            unsafe {
                if piece == missed || !self.hits.hit(&piece, &operation.copy(&piece)) {
                    let bytes = std::slice::from_raw_parts(from.add(piece.start_bytes), piece.len_bytes);
                    missing.push((piece, Copy::PutOwned(bytes.into(), room.split_off(piece.len_bytes))));
                }
            }
        }
        let last = Arc::new(AtLast { left: AtomicUsize::new(missing.len()), then: then() });
        let parts = missing.into_iter().map(|(piece, copy)| {
            let continuation = Box::new(OneDone(Arc::clone(&last)));
            Part { piece, copy, completion: Completion::Then(self.nobody_waits, continuation) }
        });
        let mut parts = parts.peekable();
        while parts.peek().is_some() {
            self.driver.submit(parts.by_ref().take(PARTS_MAX));
        }
        Ok(Started::UnderWay)
    }
}

/// Runs the continuation when all parts of a put are done.
struct AtLast {
    left: AtomicUsize,
    then: Then,
}

struct OneDone(Arc<AtLast>);

impl std::fmt::Debug for OneDone {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "one of {} parts that are left", self.0.left.load(Ordering::Relaxed))
    }
}

impl Continuation for OneDone {
    fn run(self: Box<Self>, _: &mut dyn FnMut(CompletionId)) -> Option<(vgasnet_memory::Piece, Copy)> {
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            (self.0.then)();
        }
        None
    }
}
