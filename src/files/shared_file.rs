//! An open file as a rank has it. Its state is in parts, each with a type of its own: what the rank has open in the file
//! system, its length, its locks, its end, and what the engine keeps of it.

use super::found::Written;
#[cfg(feature = "mpi")]
use super::handing_over::Ending;
use super::length::Length;
use super::locks::Locks;
use super::members::Members;
use super::{Access, FileError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use vgasnet_engine::FileState;
use vgasnet_protocol::{Space, Stripes};
use vgasnet_storage::{Claim, NamedFile};
use vgasnet_sys::Signalproof;

/// An open file.
pub struct SharedFile {
    space: Space,
    path: PathBuf,
    access: Access,
    members: Members,
    stripes: Stripes,
    own: OwnFile,
    length: Length,
    state: Arc<FileState>,
    locks: Locks,
    /// The team caches nothing of the file any more, and others may write it: its size is the file system's.
    is_handed_over: AtomicBool,
    #[cfg(feature = "mpi")]
    ending: Ending,
}

/// What does not change while a file is open.
pub(super) struct Facts {
    pub space: Space,
    pub path: PathBuf,
    pub access: Access,
    pub members: Members,
    pub stripes: Stripes,
}

/// What a rank has open in the file system.
#[derive(Default)]
pub(super) struct OwnFile {
    /// The file, if this rank sees it.
    named: Option<Arc<NamedFile>>,
    /// If the file is open for writing: no other handle of this rank writes it.
    _written: Option<Written>,
    /// The same, at the first rank: no other team or job writes it.
    claim: Mutex<Option<Claim>>,
}

impl OwnFile {
    pub(super) fn new(named: Option<Arc<NamedFile>>, written: Option<Written>, claim: Option<Claim>) -> OwnFile {
        OwnFile { named, _written: written, claim: Mutex::new(claim) }
    }
}

impl SharedFile {
    /// A file of `size_bytes`, whose calls are atomic if `is_atomic`.
    pub(super) fn new(facts: Facts, own: OwnFile, state: FileState, size_bytes: u64, is_atomic: bool) -> SharedFile {
        let Facts { space, path, access, members, stripes } = facts;
        SharedFile {
            space,
            path,
            access,
            members,
            stripes,
            own,
            length: Length::new(size_bytes),
            state: Arc::new(state),
            locks: Locks::new(is_atomic),
            is_handed_over: AtomicBool::new(false),
            #[cfg(feature = "mpi")]
            ending: Ending::default(),
        }
    }

    /// The space of its pages.
    #[inline]
    pub(super) fn space(&self) -> Space {
        self.space
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    #[inline]
    pub(super) fn access(&self) -> Access {
        self.access
    }

    pub(super) fn members(&self) -> &Members {
        &self.members
    }

    pub(super) fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    /// The file in the file system, if this rank sees it.
    pub(super) fn named(&self) -> Option<&Arc<NamedFile>> {
        self.own.named.as_ref()
    }

    /// The same at a home, which does I/O on it.
    pub(super) fn named_at_home(&self) -> Option<&NamedFile> {
        self.own.named.as_deref().filter(|_| self.is_home())
    }

    /// From now on other teams and jobs may write the file.
    pub(super) fn end_claim(&self) {
        drop(Signalproof::lock(&self.own.claim).take());
    }

    #[inline]
    pub(super) fn length(&self) -> &Length {
        &self.length
    }

    /// What the engine keeps of the file.
    #[inline]
    pub(super) fn state(&self) -> &Arc<FileState> {
        &self.state
    }

    #[inline]
    pub(super) fn locks(&self) -> &Locks {
        &self.locks
    }

    #[cfg(feature = "mpi")]
    pub(super) fn ending(&self) -> &Ending {
        &self.ending
    }

    pub(super) fn is_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Relaxed)
    }

    #[cfg(feature = "mpi")]
    pub(super) fn note_handed_over(&self) {
        self.is_handed_over.store(true, Ordering::Relaxed);
    }

    /// Fails unless the file is open for writing.
    pub(super) fn check_writable(&self) -> Result<(), FileError> {
        self.check(self.access.write, "written", "VGASNET_FILE_WRITE")
    }

    /// Fails unless the file is open for reading.
    pub(super) fn check_readable(&self) -> Result<(), FileError> {
        self.check(self.access.read, "read", "VGASNET_FILE_READ")
    }

    fn check(&self, is_allowed: bool, what: &str, flag: &str) -> Result<(), FileError> {
        if is_allowed {
            return Ok(());
        }
        let path = self.path.display();
        Err(FileError::argument(format!("{path}: it is not open to be {what}; open it with {flag}")))
    }

    /// Whether this rank does I/O on the file.
    pub(super) fn is_home(&self) -> bool {
        self.stripes.homes.contains(&self.members.own())
    }
}
