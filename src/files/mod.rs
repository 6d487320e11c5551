//! Shared files: the ranks of a team open a file together, and their pools cache its pages like the pages of segments.
//!
//! Each file is a space of pages, with homes assigned by stripes, round robin. The home of a page does its I/O, so each
//! stripe has one client of the file system as its writer. Pages are coherent: after a write has returned, every rank
//! reads its bytes.
//!
//! Source: Liao, Coloma and Choudhary, "Cooperative Client-Side File Caching for MPI Applications" (IJHPCA 21(2),
//! 2007); there a page stays with one rank, and locks keep order.

mod calls;
mod close;
mod durable;
mod error;
mod found;
#[cfg(feature = "mpi")]
mod handing_over;
mod length;
mod lists;
mod locks;
mod members;
mod open;
#[cfg(feature = "mpi")]
mod open_pointer;
mod pointer;
mod refresh;
mod shared_file;
mod size;
mod table;
mod together;
mod transfer;
mod unwritten;

pub use error::FileError;
pub use lists::{FileRange, Lists};
pub use open::{Access, OpenArguments};
pub use shared_file::SharedFile;
pub use table::Call;
pub use transfer::Bytes;

use crate::coll::Coll;
use crate::ops::Ops;
use calls::Use;
use found::Writing;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use table::Table;
use vgasnet_engine::Driver;
use vgasnet_storage::Warn;

/// The shared files of an attached rank.
pub struct Files {
    coll: Arc<Coll>,
    ops: Arc<Ops>,
    open: Table,
    /// Number of files opened by teams with this rank as the first.
    opened: AtomicU32,
    writing: Writing,
    /// Takes lines for the user.
    tell: Warn,
}

impl Files {
    /// No open files. `tell` takes lines for the user.
    pub fn new(coll: Arc<Coll>, ops: Arc<Ops>, tell: Warn) -> Files {
        Files { coll, ops, tell, open: Table::new(), opened: AtomicU32::new(0), writing: Writing::default() }
    }

    /// Starts a call that uses bytes of an open file, or its size. It waits while another thread sets the size.
    ///
    /// # Errors
    /// No file of this number is open.
    #[inline]
    pub fn get(&self, number: u32) -> Result<Call<'_>, FileError> {
        self.open.begin(self.driver(), number, Use::Bytes)
    }

    /// Starts any other call about an open file. It may wait for other ranks to set the file's size together with this
    /// one.
    ///
    /// # Errors
    /// No file of this number is open.
    pub fn get_beside(&self, number: u32) -> Result<Call<'_>, FileError> {
        self.open.begin(self.driver(), number, Use::Handle)
    }

    fn driver(&self) -> &Driver {
        self.ops.driver()
    }
}
