//! What is done outside the engine's lock: copies between frames and the client's memory, and between frames.

use crate::budget::Reserved;
use crate::coherence::{Access, FrameId, PageId};
use crate::handles::CompletionId;
use crate::local::Waiting;
use crate::space::{AddressSpace, Piece};
use vgasnet_conduit::Transfer;

/// The part of a client's operation that lies in one page.
#[derive(Debug)]
pub struct Part {
    /// Where.
    pub piece: Piece,
    /// What.
    pub copy: Copy,
    /// Which completion it counts in, if anybody waits for one.
    pub completion: Option<CompletionId>,
}

/// What a part does between a frame and the client's memory.
#[derive(Debug)]
pub enum Copy {
    /// From the frame to the client.
    Get(*mut u8),
    /// From the client to the frame.
    Put(*const u8),
    /// From a copy of the client's bytes to the frame, with the room that the copy takes.
    PutOwned(Box<[u8]>, Reserved),
    /// The same byte all over.
    Set(u8),
    /// Shows the page in the segment and keeps it pinned: for a thread that waits for just that, or for the client.
    Admit(Access, Option<Waiting>),
}

// SAFETY: the pointers are to client memory that the client leaves to the operation until it has synced it, from
// whatever thread that may be (GASNet specification 1.8, non-blocking transfers).
unsafe impl Send for Copy {}

impl Copy {
    /// The access that the copy needs to its page.
    pub fn access(&self) -> Access {
        match self {
            Copy::Get(_) => Access::Read,
            Copy::Put(_) | Copy::PutOwned(..) | Copy::Set(_) => Access::Write,
            Copy::Admit(access, _) => *access,
        }
    }

    /// Carries the copy out in a frame.
    ///
    /// # Safety
    /// The page in the frame at `frame` is pinned for [`Copy::access`]; the piece is inside a page; the client's memory
    /// is valid for as many bytes as the piece has.
    #[inline]
    pub unsafe fn run(&self, frame: *mut u8, piece: &Piece) {
        let len_bytes = piece.len_bytes;
        // SAFETY: the caller promises that all of these bytes are valid, and the pin keeps the frame this page's. Client
        // and frame memory do not overlap: the client never sees the pool's addresses.
        unsafe {
            let place = frame.add(piece.offset_bytes);
            match self {
                Copy::Get(to) => std::ptr::copy_nonoverlapping(place, *to, len_bytes),
                Copy::Put(from) => std::ptr::copy_nonoverlapping(*from, place, len_bytes),
                Copy::PutOwned(from, _) => std::ptr::copy_nonoverlapping(from.as_ptr(), place, from.len()),
                Copy::Set(byte) => std::ptr::write_bytes(place, *byte, len_bytes),
                Copy::Admit(..) => {}
            }
        }
    }
}

/// Something to do without the engine's lock.
#[derive(Debug)]
pub enum Work {
    /// Operations that waited for the page, which is pinned once for all of them.
    Copies {
        /// The page.
        page: PageId,
        /// Where it is.
        frame: FrameId,
        /// The operations.
        parts: Vec<Part>,
    },
    /// Fill a frame with zeros, then tell the engine.
    Clear {
        /// The page the frame is for.
        page: PageId,
        /// The frame.
        frame: FrameId,
    },
    /// Start a put.
    Put(Transfer),
    /// Start a get.
    Get(Transfer),
}

/// Fills a frame of this rank with zeros.
///
/// # Safety
/// Nothing else uses the frame: it is reserved for a page that has not been opened.
pub unsafe fn clear(space: &AddressSpace, frame: FrameId) {
    let pool = &space.own.pool;
    // SAFETY: the frame is inside the pool, and the caller says that it is nobody else's.
    unsafe { std::ptr::write_bytes(pool.frame(frame), 0, pool.page_bytes()) };
}
