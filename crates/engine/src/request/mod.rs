//! Requests of ops and fault to the engine: the parts of operations, their copies, and the completions by which the
//! engine reports a part as done.

mod budget;
mod completions;
mod mailbox;

pub use budget::{Budget, Reserved};
pub use completions::{CompletionId, Completions, Handle};
pub use mailbox::{Fault, FaultId, Mailbox, Waited};

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vgasnet_memory::{MAPPED_BLOCK_BYTES, Piece, RankMemory};
use vgasnet_protocol::byte_message::{AtomicOp, Operands};
use vgasnet_protocol::coherence::{Access, FrameId, PageId};
use vgasnet_sys::copy_bytes;

/// The part of an operation that lies in one page.
#[derive(Debug)]
pub struct Part {
    /// The bytes of the page.
    pub piece: Piece,
    /// The copy to or from them.
    pub copy: Copy,
    /// Receiver of the completion.
    pub completion: Completion,
}

/// Receiver of a part's completion.
#[derive(Debug)]
pub enum Completion {
    /// All threads waiting for this completion, which counts the part.
    Counted(CompletionId),
    /// The same, after the continuation has run.
    Then(CompletionId, Box<dyn Continuation>),
    /// The faulting thread: its page is mapped and pinned, or its block is mapped or copied.
    Fault(FaultId),
    /// Another rank. The engine answers its request when all of its pieces are done.
    Served(ServedId),
    /// Nobody waits for the part.
    Nobody,
}

impl Completion {
    /// The same, counted in another completion.
    pub fn counted_in(self, other: CompletionId) -> Completion {
        match self {
            Completion::Counted(_) => Completion::Counted(other),
            Completion::Then(_, continuation) => Completion::Then(other, continuation),
            Completion::Fault(_) | Completion::Served(_) | Completion::Nobody => self,
        }
    }
}

/// Continuation of a part once its bytes are in place. It runs in the driving thread, without the engine's lock.
pub trait Continuation: Send + Debug {
    /// Runs the continuation, and calls `done` for each further completion with a part finished by it. Returns a
    /// follow-up copy in another page, which counts where the part did.
    fn run(self: Box<Self>, done: &mut dyn FnMut(CompletionId)) -> Option<(Piece, Copy)>;
}

/// Names a piece of another rank's request in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedId {
    /// The request.
    pub request: u32,
    /// Index of the piece in it.
    pub piece: u16,
}

/// An atomic operation on a number of 4 or 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    /// The operation.
    pub op: AtomicOp,
    /// Its operands.
    pub operands: Operands,
    /// Destination of the number's old value, as long as the number; null if it is not needed.
    pub old: *mut u8,
}

/// The copy of a part, between a frame and the client's memory.
#[derive(Debug)]
pub enum Copy {
    /// From the frame to the client.
    Get(*mut u8),
    /// From the client to the frame.
    Put(*const u8),
    /// From a copy of the client's bytes to the frame, with the budget of this copy.
    PutOwned(Box<[u8]>, Reserved),
    /// One byte, everywhere in the piece.
    Set(u8),
    /// An atomic operation on the piece, an aligned number.
    Atomic(Atomic),
    /// No copy: maps the page in the segment and leaves it pinned, for a faulting thread. If the piece is a block,
    /// mapping the block suffices.
    MakeResident(Access),
    /// As [`Copy::MakeResident`], for the client until it unpins the page.
    Pin(Access),
    /// No copy: brings a block of the page into its home's memory.
    ReadAhead,
}

// SAFETY: the pointers are to client memory, which belongs to the operation until the client has synced it, from any of
// its threads (GASNet specification 1.8, non-blocking transfers).
unsafe impl Send for Copy {}

impl Copy {
    /// The access to the page that the copy needs.
    pub fn access(&self) -> Access {
        match self {
            Copy::Get(_) | Copy::ReadAhead => Access::Read,
            Copy::Atomic(atomic) if atomic.op.is_read() => Access::Read,
            Copy::Put(_) | Copy::PutOwned(..) | Copy::Set(_) | Copy::Atomic(_) => Access::Write,
            Copy::MakeResident(access) | Copy::Pin(access) => *access,
        }
    }

    /// Whether it writes the bytes of its piece.
    #[inline]
    pub fn is_put(&self) -> bool {
        match self {
            Copy::Put(_) | Copy::PutOwned(..) | Copy::Set(_) => true,
            Copy::Atomic(atomic) => !atomic.op.is_read(),
            Copy::Get(_) | Copy::MakeResident(_) | Copy::Pin(_) | Copy::ReadAhead => false,
        }
    }

    /// The access for which the page is mapped and stays pinned, if it does.
    pub fn mapped_access(&self) -> Option<Access> {
        match self {
            Copy::MakeResident(access) | Copy::Pin(access) => Some(*access),
            _ => None,
        }
    }

    /// Performs the copy in a frame of a rank, and marks the blocks written.
    ///
    /// # Safety
    /// The page in the frame is pinned for [`Copy::access`], and the piece is inside this page. The client's memory is
    /// valid for as many bytes as the piece has.
    #[inline]
    pub unsafe fn run(&self, memory: &RankMemory, frame: FrameId, piece: &Piece) {
        let page_bytes = memory.pool.page_bytes();
        debug_assert!(piece.offset_bytes + piece.len_bytes <= page_bytes, "{piece:?} lies in its page");
        if self.is_put() {
            memory.blocks.mark(frame, piece.offset_bytes, piece.len_bytes);
        }
        // SAFETY: the piece is inside the frame, which the pin keeps for this page.
        unsafe { self.run_at(memory.pool.frame(frame).add(piece.offset_bytes), 0, piece.len_bytes) }
    }

    /// Performs a part of the copy, `len_bytes` from byte `start` of its piece on, at `place`. An atomic operation has
    /// only one part.
    ///
    /// # Safety
    /// `place` is valid for `len_bytes`: for reads, and for writes if this is a put. The client's memory is valid for
    /// all bytes of the piece.
    #[inline(always)]
    pub unsafe fn run_at(&self, place: *mut u8, start: usize, len_bytes: usize) {
        debug_assert!(start == 0 || !matches!(self, Copy::Atomic(_)), "an atomic operation has one part");
        debug_assert!(
            !matches!(self, Copy::PutOwned(from, _) if from.len() < start + len_bytes),
            "the copy has all bytes of the piece"
        );
        // SAFETY: both sides are valid for `len_bytes`. They do not overlap: the client has no addresses of the pool.
        unsafe {
            match self {
                Copy::Get(to) => copy_bytes(place, to.add(start), len_bytes),
                Copy::Put(from) => copy_bytes(from.add(start), place, len_bytes),
                Copy::PutOwned(from, _) => copy_bytes(from.as_ptr().add(start), place, len_bytes),
                Copy::Set(byte) => std::ptr::write_bytes(place, *byte, len_bytes),
                Copy::Atomic(atomic) => atomic.run(place, len_bytes),
                Copy::MakeResident(_) | Copy::Pin(_) | Copy::ReadAhead => {}
            }
        }
    }
}

impl Copy {
    /// Delivers bytes read at another rank.
    ///
    /// # Safety
    /// The client's memory is valid for as many bytes.
    pub unsafe fn deliver(&self, bytes: &[u8]) {
        debug_assert!(
            bytes.is_empty() || matches!(self, Copy::Get(_) | Copy::Atomic(_) | Copy::ReadAhead),
            "bytes were read for {self:?}"
        );
        // SAFETY: the client's memory is valid for as many bytes, and not the library's own.
        unsafe {
            match self {
                Copy::Get(to) => copy_bytes(bytes.as_ptr(), *to, bytes.len()),
                Copy::Atomic(atomic) => atomic.leave(bytes),
                _ => {}
            }
        }
    }
}

impl Atomic {
    /// Performs the operation on the number at `place`.
    ///
    /// # Safety
    /// `place` is aligned and valid for `len_bytes`, 4 or 8, as `old` is, which need not be aligned.
    unsafe fn run(&self, place: *mut u8, len_bytes: usize) {
        debug_assert!(
            matches!(len_bytes, 4 | 8) && place.addr() % len_bytes == 0,
            "a number of {len_bytes} bytes is aligned"
        );
        let change = |old| self.op.apply(old, self.operands, len_bytes);
        let order = Ordering::SeqCst;
        // SAFETY: the number is aligned and valid, and concurrent accesses are to whole numbers.
        unsafe {
            if len_bytes == size_of::<u32>() {
                let number = AtomicU32::from_ptr(place.cast());
                let change = |old| change(u64::from(old)).map(|new| new as u32);
                let (Ok(old) | Err(old)) = number.fetch_update(order, order, change);
                self.leave(&old.to_ne_bytes());
            } else {
                let number = AtomicU64::from_ptr(place.cast());
                let (Ok(old) | Err(old)) = number.fetch_update(order, order, change);
                self.leave(&old.to_ne_bytes());
            }
        }
    }

    /// Stores the old value at `old`.
    ///
    /// # Safety
    /// `old` is null, or valid for as many bytes.
    unsafe fn leave(&self, number: &[u8]) {
        if !self.old.is_null() {
            // SAFETY: it is valid for as many bytes, and not the library's memory.
            unsafe { self.old.copy_from_nonoverlapping(number.as_ptr(), number.len()) };
        }
    }
}

impl Part {
    /// Whether the copy writes all bytes of a page of `page_bytes`, and so needs none of them.
    pub fn overwrites(&self, page_bytes: usize) -> bool {
        self.copy.is_put() && self.piece.len_bytes == page_bytes
    }

    /// Makes a page of the own segment resident for a faulting thread, or a block of it, if sufficient.
    pub fn of_fault(page: PageId, fault: FaultId) -> Part {
        let block = |start| Piece { page, offset_bytes: start as usize, len_bytes: MAPPED_BLOCK_BYTES, start_bytes: 0 };
        Part {
            piece: fault.block().map_or(Piece::of_page(page), block),
            copy: Copy::MakeResident(fault.wants().1),
            completion: Completion::Fault(fault),
        }
    }
}
