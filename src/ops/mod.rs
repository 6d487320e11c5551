//! The operations behind the client's calls: gets, puts and memsets, blocking or not, of one range or of lists; atomic
//! operations; pins and hints.

mod advice;
mod atomic;
mod bounce_buffer;
mod hit;
mod hit_runs;
mod lists;
mod missing;
mod nonblocking;
mod own_memory;
mod own_runs;
mod pieces;
mod readonly;
mod runs;
mod transfer;
mod unwaiting_puts;

pub use advice::{Advice, PinError};
pub use atomic::AtomicOperation;
pub use lists::Direction;
pub use missing::PARTS_MAX;
pub use nonblocking::{Implicit, Kind};
pub use readonly::{CopySettings, CopyStats, EndError, RangeOptions, Report};
pub use runs::{Region, Run, Strided, runs};
pub use transfer::{Operation, Remote};
pub use unwaiting_puts::{Started, Then};

use crate::engine::Driver;
use crate::memory::AddressSpace;
use crate::request::{Budget, CompletionId, Completions, Reserved};
use readonly::ReadOnly;
use std::sync::Arc;

/// Memory for the copies of bytes that non-blocking puts, and gets into the own segment, have still to write, in bytes.
const COPIES_BYTES: usize = 16 << 20;

/// Memory that a copy takes besides its bytes, in bytes: the part, what follows it, and its place in queues.
const COPY_BESIDES_BYTES: usize = 256;

/// The operations of a rank that has attached.
pub struct Ops {
    driver: Arc<Driver>,
    space: Arc<AddressSpace>,
    /// Pages are used in the pools of other neighbours than their home, too.
    cooperative: bool,
    /// Room for the copies of bytes that non-blocking operations have still to write.
    copies: Budget,
    /// Counts the parts of operations for whose end no thread waits.
    nobody_waits: CompletionId,
    /// A transfer in the own memory outside the segment is refused.
    strict: bool,
    /// Ranges that are declared read-only, and copies of what was got from them.
    readonly: ReadOnly,
}

impl Ops {
    /// Operations that `driver` carries out. Where they are `strict`, both ends of a transfer in the own memory lie in the
    /// segment.
    pub fn new(driver: Arc<Driver>, cooperative: bool, strict: bool, copies: CopySettings) -> Ops {
        let space = Arc::clone(driver.space());
        let readonly = ReadOnly::new(copies, space.segments.ranks() as usize);
        let nobody_waits = driver.completions().begin();
        Ops { driver, space, cooperative, copies: Budget::new(COPIES_BYTES), nobody_waits, strict, readonly }
    }

    /// Room for a copy of so many bytes that an operation has still to write, if there is some.
    fn room_for_copy(&self, len_bytes: usize) -> Option<Reserved> {
        self.copies.take(len_bytes + COPY_BESIDES_BYTES)
    }

    /// The job's address space.
    #[inline]
    pub fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// The driver of the engine that carries the operations out.
    pub fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Whether the user has asked for checks of what GASNet lets pass.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// The completions of this rank.
    pub fn completions(&self) -> &Completions {
        self.driver.completions()
    }
}
