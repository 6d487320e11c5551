//! Shared files: the ranks of a team have one open together, and their pools cache its pages as those of segments.
//!
//! Each file is a space of pages, whose homes take turns by stripes. The home of a page does its I/O, so each stripe is written by one
//! client of the file system. A write that has returned is what every rank reads: pages are coherent.
//!
//! Source: Liao, Coloma and Choudhary, "Cooperative Client-Side File Caching for MPI Applications" (IJHPCA 21(2), 2007); there a
//! page stays with one rank, and locks keep order.

mod calls;
mod close;
mod durable;
mod error;
mod found;
#[cfg(feature = "mpi")]
mod handing_over;
mod lists;
mod locks;
mod open;
mod pointer;
mod refresh;
mod size;
mod table;
mod together;
mod transfer;
mod unwritten;

pub use error::FileError;
pub use lists::{Lists, Place};
pub use open::{Access, OpenArguments};
pub use table::Call;
pub use transfer::Bytes;

use crate::coll::Coll;
use crate::engine::{Driver, FileState};
use crate::ops::Ops;
use crate::storage::{Claim, NamedFile, Warn};
use calls::Use;
use found::{Writing, Written};
use locks::Held;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};
use table::Table;
use vgasnet_protocol::{Space, Stripes};

/// The shared files of a rank that has attached.
pub struct Files {
    coll: Arc<Coll>,
    ops: Arc<Ops>,
    open: Table,
    /// Files that teams have opened of which this rank is the first.
    opened: AtomicU32,
    writing: Writing,
    /// Takes a line for the user.
    tell: Warn,
}

/// A file that is open.
pub struct SharedFile {
    space: Space,
    path: PathBuf,
    access: Access,
    /// Each call is one step to all others.
    is_atomic: AtomicBool,
    /// A team of its own: no other file's calls come between its, and whoever opened it may free the one that they gave.
    team: u64,
    members: Box<[u32]>,
    /// This rank's place among them.
    me: u32,
    stripes: Stripes,
    /// The file, for a rank that sees it.
    file: Option<Arc<NamedFile>>,
    /// Of a file that is written: no other handle of this rank does.
    _written: Option<Written>,
    /// The same, at the first rank: no other team or job does.
    claim: Mutex<Option<Claim>>,
    /// Bytes of the file, as far as this rank knows: not more than it has.
    known_bytes: AtomicU64,
    /// How long this rank has made the file without writing, since it flushed that.
    extended_end: AtomicU64,
    state: Arc<FileState>,
    /// Its team caches nothing of it any more, and others may write it: it has the size that the file system knows.
    is_handed_over: AtomicBool,
    /// The locks that the program has.
    held: Mutex<Vec<Held>>,
}

impl Files {
    /// No file is open. `tell` takes lines for the user.
    pub fn new(coll: Arc<Coll>, ops: Arc<Ops>, tell: Warn) -> Files {
        Files { coll, ops, tell, open: Table::new(), opened: AtomicU32::new(0), writing: Writing::default() }
    }

    /// Begins a call that uses bytes of an open file, or its size. It waits while another thread sets that.
    ///
    /// # Errors
    /// No file of this number is open.
    #[inline]
    pub fn get(&self, number: u32) -> Result<Call<'_>, FileError> {
        self.open.begin(self.driver(), number, Use::Bytes)
    }

    /// Begins another call about an open file: it may wait for other ranks, which set the file's size together with this one.
    ///
    /// # Errors
    /// No file of this number is open.
    pub fn get_beside(&self, number: u32) -> Result<Call<'_>, FileError> {
        self.open.begin(self.driver(), number, Use::Beside)
    }

    fn driver(&self) -> &Driver {
        self.ops.driver()
    }
}
