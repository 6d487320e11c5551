//! The operations behind the client's calls: gets, puts and memsets, blocking or not, of one range or of lists; atomic
//! operations; pins and hints.

mod advice;
mod atomic;
mod bounce_buffer;
mod hits;
mod lists;
mod missing;
mod nonblocking;
mod own_memory;
mod own_runs;
mod pieces;
mod readonly;
mod resolve;
mod runs;
mod transfer;
mod unwaiting_puts;

pub use advice::{Advice, PinError};
pub use atomic::AtomicOperation;
pub use lists::Direction;
pub use missing::PARTS_MAX;
pub use nonblocking::{Implicit, Kind};
pub use readonly::{CopySettings, CopyStats, EndError, RangeOptions, ReadOnly, Report};
pub use runs::{Region, Run, Strided, runs};
pub use transfer::{Operation, Remote};
pub use unwaiting_puts::{Started, Then};

use hits::Hits;
use std::sync::Arc;
use vgasnet_engine::Driver;
use vgasnet_engine::request::{Budget, CompletionId, Completions, Reserved};
use vgasnet_memory::AddressSpace;

/// Memory for copies of bytes still to be written by non-blocking puts and by gets into the own segment, in bytes.
const COPIES_BYTES: usize = 16 << 20;

/// Overhead of a copy in bytes: the part, its continuation, and its queue entries.
const COPY_OVERHEAD_BYTES: usize = 256;

/// The operations of an attached rank.
pub struct Ops {
    driver: Arc<Driver>,
    space: Arc<AddressSpace>,
    hits: Hits,
    /// Room for copies of bytes still to be written by non-blocking operations.
    copies: Budget,
    /// Counts parts of operations without a waiting thread.
    nobody_waits: CompletionId,
    /// Transfers in the own memory outside the segment are refused.
    strict: bool,
    /// Ranges declared read-only, and their copies.
    readonly: ReadOnly,
}

impl Ops {
    /// Operations performed by `driver`. If `cooperative`, pages in the pools of neighbours other than their home are used,
    /// too. If `strict`, both ends of a transfer in the own memory must lie in the
    /// segment.
    pub fn new(driver: Arc<Driver>, cooperative: bool, strict: bool, copies: CopySettings) -> Ops {
        let space = Arc::clone(driver.space());
        let readonly = ReadOnly::new(Arc::clone(&driver), copies);
        let nobody_waits = driver.completions().begin();
        let hits = Hits::new(Arc::clone(&driver), cooperative);
        Ops { driver, space, hits, copies: Budget::new(COPIES_BYTES), nobody_waits, strict, readonly }
    }

    /// Room for a copy of `len_bytes` bytes, if there is some.
    fn room_for_copy(&self, len_bytes: usize) -> Option<Reserved> {
        self.copies.take(len_bytes + COPY_OVERHEAD_BYTES)
    }

    /// The job's address space.
    #[inline]
    pub fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// The driver of the engine.
    pub fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Makes the engines of this host check whether awaited pages are still pinned.
    pub fn notify_unpinned(&self) {
        self.hits.notify_unpinned();
    }

    /// The ranges declared read-only, and their copies.
    pub fn readonly(&self) -> &ReadOnly {
        &self.readonly
    }

    /// Whether the user has asked for checks beyond GASNet's.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// The completions of this rank.
    pub fn completions(&self) -> &Completions {
        self.driver.completions()
    }
}
