//! A handle's relation to its file: the file was opened for it, or for another handle.

use crate::claims::Claim;
use crate::company::Permit;
use crate::ffi::Comm;
use crate::vgasnet::{File, Library, Team};
use std::ffi::{CStr, c_int};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use vgasnet_mpi_front::{Handle, kind};

/// A handle's relation to its file.
#[derive(Debug)]
pub enum Hold {
    /// The file was opened for it.
    Own {
        team: Team,
        /// A number unique among the files of the job.
        name: u64,
        identity: Option<Identity>,
        /// At its first rank.
        claim: Mutex<Option<Claim>>,
        /// There as well, if it may be written.
        permit: Mutex<Option<Permit>>,
    },
    /// It uses the file of another handle.
    Shared {
        /// The other handle.
        first: Handle<kind::File>,
        /// Its place among second handles: unique, and the same on all their ranks.
        order: (u64, u32),
        /// Whether it has all ranks of the file.
        by_all: bool,
        pointer: Pointer,
    },
}

/// The shared pointer of a second handle.
#[derive(Debug)]
pub enum Pointer {
    /// The pointer of a one-rank handle.
    Here(AtomicU64),
    /// vgasnet's pointer for the handle's ranks.
    Opened(Team, File),
}

impl Pointer {
    /// One pointer for all ranks of a handle. Collective.
    pub fn new(library: &Library, comm: &Comm, tag: u32) -> Pointer {
        let here = Pointer::Here(AtomicU64::new(0));
        let Some(members) = comm.world_ranks().filter(|members| members.len() > 1) else { return here };
        let team = library.team_of(&members, tag);
        comm.meet();
        let opened = library.open_pointer(team);
        opened.map_or_else(
            |_| {
                library.free_team(team);
                here
            },
            |file| Pointer::Opened(team, file),
        )
    }

    /// Collective.
    pub fn close(&self, library: &Library) {
        if let Pointer::Opened(team, file) = *self {
            let _closed = library.close(file);
            library.free_team(team);
        }
    }
}

/// A file's identity in the file system: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64, u64);

impl Identity {
    /// The identity of the file at a path.
    pub fn of(path: &CStr) -> Option<Identity> {
        // SAFETY: all fields may be 0.
        let mut about: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the path is a string, and there is room for the answer.
        (unsafe { libc::stat(path.as_ptr(), &mut about) } == 0).then_some(Identity(about.st_dev, about.st_ino))
    }

    /// The identity of an open file.
    pub fn of_descriptor(descriptor: c_int) -> Option<Identity> {
        // SAFETY: all fields may be 0.
        let mut about: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: there is room for the answer. A descriptor that is not open is refused.
        (unsafe { libc::fstat(descriptor, &mut about) } == 0).then_some(Identity(about.st_dev, about.st_ino))
    }
}
