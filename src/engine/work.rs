//! Work outside the engine's lock: copies between frames and the client's memory, and between frames; unmapping pages.

use super::shipping::{Delivery, Shipment};
use super::storage_server::{BlockCopies, OverlaidBlocks};
use crate::request::Part;
use vgasnet_conduit::Transfer;
use vgasnet_protocol::coherence::{Cause, FrameId, PageId};

/// A piece of work to do without the engine's lock.
#[derive(Debug)]
pub enum Work {
    /// Do the copies that waited for a page, which is pinned once for all of them.
    Copies {
        /// The page.
        page: PageId,
        /// The frame that it is in.
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
    /// Do the copy of a part that overwrites the whole page, then tell the engine.
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
        /// The frame that it was in.
        frame: FrameId,
    },
    /// Unmap a page of the own segment, if nobody has it pinned: its next use leaves a mark.
    UnmapUnused {
        /// The page.
        page: PageId,
        /// The frame that it was in.
        frame: FrameId,
    },
    /// Unmap a page of the own segment whose frame a neighbour has lent, and give that back.
    GiveBack {
        /// The number of the page.
        index: u32,
    },
    /// Do the copies of a job on blocks of the file, then tell the engine.
    Blocks(Box<BlockCopies>),
    /// Copy blocks over a page that was read, then tell the engine.
    LayOver {
        /// The operation of the storage server that has read the page.
        operation: usize,
        /// The blocks.
        blocks: OverlaidBlocks,
    },
    /// Collect the bytes of a request, and send it.
    Ship(Box<Shipment>),
    /// Hand over what has come of a part that was carried out elsewhere.
    Deliver(Box<Delivery>),
    /// Tell that parts have failed.
    Fail {
        /// The parts.
        parts: Vec<Part>,
        /// Why.
        cause: Cause,
    },
    /// Start a put.
    Put(Transfer),
    /// Start a get.
    Get(Transfer),
}
