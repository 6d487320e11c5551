//! What is done outside the engine's lock: copies between frames and the client's memory, and between frames.

use crate::memory::AddressSpace;
use crate::request::Part;
use vgasnet_conduit::Transfer;
use vgasnet_protocol::coherence::{FrameId, PageId};

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
