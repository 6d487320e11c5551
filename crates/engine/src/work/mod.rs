//! Work outside the engine's lock: copies between frames and the client's memory, and between frames; unmapping pages.

mod block_copies;
mod shipment;

pub use block_copies::{BlockCopies, BlockPlace, Copier, OverlaidBlocks};
pub(crate) use shipment::describe;
pub use shipment::{Delivery, Shipment};

use crate::request::Part;
use vgasnet_conduit::Transfer;
use vgasnet_protocol::coherence::{Cause, FrameId, PageId};

/// A work item to be performed without the engine's lock.
#[derive(Debug)]
pub enum Work {
    /// Perform the copies that waited for a page, which is pinned once for all of them.
    Copies {
        /// The page.
        page: PageId,
        /// Its frame.
        frame: FrameId,
        /// The parts that waited.
        parts: Vec<Part>,
    },
    /// Fill a frame with zeros, then tell the engine.
    Clear {
        /// The page for which the frame is reserved.
        page: PageId,
        /// The frame.
        frame: FrameId,
    },
    /// Perform the copy of a part that overwrites the whole page, then tell the engine.
    Fill {
        /// The page for which the frame is reserved.
        page: PageId,
        /// The frame.
        frame: FrameId,
        /// The part.
        part: Box<Part>,
    },
    /// Unmap a page of the own segment that is closed, then tell the engine.
    Unmap {
        /// The page.
        page: PageId,
        /// Its frame.
        frame: FrameId,
    },
    /// Unmap pages of the own segment, unless they are pinned, so that their next use faults and is noticed.
    UnmapUnused {
        /// Indices of the pages, with their frames.
        pages: Box<[(u32, FrameId)]>,
    },
    /// Unmap a page of the own segment with a frame lent by a neighbour, and return the frame.
    GiveBack {
        /// Index of the page.
        index: u32,
    },
    /// Perform the copies of a job on blocks of the file, then tell the engine.
    Blocks(Box<BlockCopies>),
    /// Copy blocks over a page that was read, then tell the engine.
    LayOver {
        /// The storage server's operation that has read the page.
        operation: usize,
        /// The blocks.
        blocks: OverlaidBlocks,
    },
    /// Collect the bytes of a request, and send it.
    Ship(Box<Shipment>),
    /// Deliver the result of a shipped part.
    Deliver(Box<Delivery>),
    /// Report the failure of parts.
    Fail {
        /// The parts.
        parts: Vec<Part>,
        /// The cause.
        cause: Cause,
    },
    /// Start a put.
    Put(Transfer),
    /// Start a get.
    Get(Transfer),
}
