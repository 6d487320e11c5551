//! Requests of ops and fault to the engine: the parts of operations, their copies, and the completions by which the
//! engine tells that a part is done.

mod budget;
mod completions;
mod mailbox;

pub use budget::{Budget, Reserved};
pub use completions::{CompletionId, Completions, Handle};
pub use mailbox::{Fault, FaultId, Mailbox, Waited};

use crate::memory::{Piece, RankMemory};
use vgasnet_protocol::coherence::{Access, FrameId, PageId};

/// The part of an operation that lies in one page.
#[derive(Debug)]
pub struct Part {
    /// The bytes of the page.
    pub piece: Piece,
    /// The copy to or from them.
    pub copy: Copy,
    /// Told when the part is done.
    pub completion: Completion,
}

/// The one that is told when a part is done.
#[derive(Debug)]
pub enum Completion {
    /// All threads that wait for this completion, which counts the part.
    Counted(CompletionId),
    /// The thread that faulted: its page is mapped and pinned.
    Fault(FaultId),
}

/// The copy of a part, between a frame and the client's memory.
#[derive(Debug)]
pub enum Copy {
    /// From the frame to the client.
    Get(*mut u8),
    /// From the client to the frame.
    Put(*const u8),
    /// From a copy of the client's bytes to the frame, with the room that this copy takes.
    PutOwned(Box<[u8]>, Reserved),
    /// One byte, everywhere in the piece.
    Set(u8),
    /// Nothing: maps the page in the segment and leaves it pinned, for a thread that faulted.
    MakeResident(Access),
    /// As [`Copy::MakeResident`], for the client until it unpins the page.
    Pin(Access),
}

// SAFETY: the pointers are to client memory, which the client leaves to the operation until it has synced that, from
// any of its threads (GASNet specification 1.8, non-blocking transfers).
unsafe impl Send for Copy {}

impl Copy {
    /// The access to the page that the copy needs.
    pub fn access(&self) -> Access {
        match self {
            Copy::Get(_) => Access::Read,
            Copy::Put(_) | Copy::PutOwned(..) | Copy::Set(_) => Access::Write,
            Copy::MakeResident(access) | Copy::Pin(access) => *access,
        }
    }

    /// Whether it writes the bytes of its piece.
    #[inline]
    pub fn is_put(&self) -> bool {
        matches!(self, Copy::Put(_) | Copy::PutOwned(..) | Copy::Set(_))
    }

    /// The access for which the page is mapped and stays pinned, if it does.
    pub fn mapped_access(&self) -> Option<Access> {
        match self {
            Copy::MakeResident(access) | Copy::Pin(access) => Some(*access),
            _ => None,
        }
    }

    /// Carries the copy out in a frame of a rank, and marks the blocks that it writes.
    ///
    /// # Safety
    /// The page in the frame is pinned for [`Copy::access`], and the piece is inside that page. The client's memory is
    /// valid for as many bytes as the piece has.
    #[inline]
    pub unsafe fn run(&self, memory: &RankMemory, frame: FrameId, piece: &Piece) {
        let len_bytes = piece.len_bytes;
        if self.is_put() {
            memory.blocks.mark(frame, piece.offset_bytes, len_bytes);
        }
        // SAFETY: the piece is inside the frame, which the pin leaves to this page. The client's memory has as many
        // bytes, and does not overlap the frame: the client has no addresses of the pool.
        unsafe {
            let place = memory.pool.frame(frame).add(piece.offset_bytes);
            match self {
                Copy::Get(to) => std::ptr::copy_nonoverlapping(place, *to, len_bytes),
                Copy::Put(from) => std::ptr::copy_nonoverlapping(*from, place, len_bytes),
                Copy::PutOwned(from, _) => std::ptr::copy_nonoverlapping(from.as_ptr(), place, from.len()),
                Copy::Set(byte) => std::ptr::write_bytes(place, *byte, len_bytes),
                Copy::MakeResident(_) | Copy::Pin(_) => {}
            }
        }
    }
}

impl Part {
    /// Whether the copy writes all bytes of a page of `page_bytes`, and so needs none of them.
    pub fn overwrites(&self, page_bytes: usize) -> bool {
        self.copy.is_put() && self.piece.len_bytes == page_bytes
    }

    /// Makes a page of the own segment resident for a thread that faulted.
    pub fn of_fault(page: PageId, fault: FaultId) -> Part {
        Part {
            piece: Piece::of_page(page),
            copy: Copy::MakeResident(fault.wants().1),
            completion: Completion::Fault(fault),
        }
    }
}
