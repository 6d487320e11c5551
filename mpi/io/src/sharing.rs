//! Files opened twice in a process. The second handle uses the pages of the first, so each sees the other's writes.
//! Libraries open a file this way to have one handle for collective calls and one of `MPI_COMM_SELF` for the others.
//!
//! The file belongs to the ranks of its first handle. If a second handle of only some of them needs a collective
//! operation of all, the file is handed over first (`through.rs`), and the operation goes to the file itself.

use crate::cached_files::{CachedFile, has_atomic_second};
use crate::direct::Direct;
use crate::ffi::{self, constants};
use crate::hold::{Hold, Pointer};
use crate::say;
use crate::through::Joint;
use crate::vgasnet::Failed;
use std::ffi::c_int;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// The way to execute a joint call of all ranks.
#[derive(Debug)]
pub enum Way<'a> {
    /// By the pages. The file is not handed over while this value is kept, unless the handover does not matter to the
    /// call.
    Cached(#[allow(dead_code, reason = "it is kept, and not looked at")] Option<Joint<'a>>),
    /// By direct access to the file.
    Through,
}

impl CachedFile {
    /// A joint call, which all ranks have reached. It is cached on all of them while the answer is kept, or on none.
    /// Collective.
    pub fn together(&self, is_last: bool) -> Way<'_> {
        self.comm.meet();
        let Some(decider) = self.decider else {
            let is_through = self.is_second() && self.comm.all(self.through.is_on());
            return if is_through { Way::Through } else { Way::Cached(None) };
        };
        let is_cached = self.comm.rank == decider && self.through.decide(is_last);
        if self.comm.of_rank(decider, u64::from(is_cached)) == Ok(1) {
            return Way::Cached(Some(self.through.joint_call()));
        }
        self.through.wait_until_on();
        Way::Through
    }

    /// Direct access to the file, for calls that are not cached.
    fn direct(&self) -> Result<&Direct, Failed> {
        self.through.direct().unwrap_or(Err(Failed::Otherwise))
    }

    /// `MPI_File_sync`. Collective.
    pub fn sync(&self) -> Result<(), Failed> {
        let way = self.together(false);
        if let Way::Through = way {
            self.through.tell_unwritten()?;
            return if self.may_write { self.direct()?.sync() } else { Ok(()) };
        }
        match self.hold {
            Hold::Own { .. } | Hold::Shared { by_all: true, .. } => self.library.sync(self.file),
            // Until the first handle is synced, the file may end with a whole block: only all its ranks together know
            // its size.
            Hold::Shared { .. } => {
                self.library.flush(self.file)?;
                if self.may_write { self.reach_disk() } else { Ok(()) }
            }
        }
    }

    /// Syncs the file system's bytes of the file to the disk, for a handle of some ranks.
    fn reach_disk(&self) -> Result<(), Failed> {
        let synced = match self.through.synced_alone.get() {
            Some(file) => file.sync_all(),
            None => self.open_to_sync().and_then(|file| file.sync_all()),
        };
        let errno = synced.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        // The kernel reports a failure once, and another rank may have had it. The homes remember it.
        self.library.end_sync_alone(self.file, errno)
    }

    /// A handle of some ranks will be synced without the others. Its descriptor is separate: if vgasnet's own reported
    /// an error in such a sync, no later sync of the team would. It is opened before the handle's first write: the kernel
    /// does not report an error to a descriptor opened after another one has reported it.
    pub fn prepare_to_sync_alone(&self) {
        let is_needed = self.may_write && matches!(self.hold, Hold::Shared { by_all: false, .. });
        if is_needed && self.through.synced_alone.get().is_none() {
            let opened = self.open_to_sync();
            opened.into_iter().for_each(|file| _ = self.through.synced_alone.set(file));
        }
    }

    fn open_to_sync(&self) -> std::io::Result<std::fs::File> {
        let path = self.own_path();
        let open = |access| {
            // SAFETY: the path is a string.
            let opened = unsafe { libc::open(path.as_ptr(), access | libc::O_NONBLOCK | libc::O_CLOEXEC) };
            if opened < 0 {
                return Err(std::io::Error::last_os_error());
            }
            // SAFETY: the file was just opened.
            Ok(std::fs::File::from(unsafe { OwnedFd::from_raw_fd(opened) }))
        };
        // This user may have only write permission.
        open(libc::O_RDONLY).or_else(|_| open(libc::O_WRONLY))
    }

    /// Has the file handed over, for a call of a second handle that pages cannot serve. A file that is only read stays
    /// as it is. Collective over the handle.
    pub fn have_handed_over(&self) -> Result<(), Failed> {
        if !self.through.is_watched.load(Ordering::Acquire) || self.through.is_on() {
            return Ok(());
        }
        // One rank's wish would do, but each of them reports an error of its own.
        self.library.want_handed_over(self.file)?;
        self.through.wait_until_on();
        Ok(())
    }

    /// Sets the file's size, or with `may_cut` false extends it to at least this size. Collective.
    pub fn resize(&self, bytes: u64, may_cut: bool) -> Result<(), Failed> {
        let way = self.together(false);
        if let Way::Through = way {
            return self.resize_directly(bytes, may_cut);
        }
        if may_cut && self.is_by_all() {
            return self.library.set_size(self.file, bytes);
        }
        if self.is_by_all() {
            return self.library.preallocate(self.file, bytes);
        }
        // Others may write meanwhile, so each rank could find another size.
        let found = self.found_by_first(|| Ok(self.size().unwrap_or(0)));
        if may_cut && found.map_err(|_| Failed::Otherwise)? > bytes {
            self.have_handed_over()?;
            return self.resize_directly(bytes, may_cut);
        }
        let user = self.through.add_user();
        self.through.enter(&user);
        let extended =
            self.through.direct().map_or_else(|| self.library.extend(self.file, bytes), |file| file?.extend(bytes));
        user.store(false, Ordering::Release);
        extended
    }

    /// The same by direct access, on the first rank.
    fn resize_directly(&self, bytes: u64, may_cut: bool) -> Result<(), Failed> {
        let resize = || if may_cut { self.direct()?.set_size(bytes) } else { self.direct()?.preallocate(bytes) };
        let resized = if self.comm.rank == 0 { resize() } else { Ok(()) };
        let errno = match resized {
            Ok(()) => 0,
            Err(Failed::System(errno)) => errno as u64,
            Err(_) => libc::EIO as u64,
        };
        match self.comm.of_first(errno) {
            Ok(0) => Ok(()),
            Ok(errno) => Err(Failed::System(errno as c_int)),
            Err(_) => Err(Failed::Otherwise),
        }
    }

    fn is_by_all(&self) -> bool {
        matches!(self.hold, Hold::Own { .. } | Hold::Shared { by_all: true, .. })
    }

    /// Whether it uses the file of another handle.
    pub fn is_second(&self) -> bool {
        matches!(self.hold, Hold::Shared { .. })
    }

    /// Refuses an unsupported operation, with a line.
    pub fn refuse(&self, what: &str, hint: &str) -> Result<(), Failed> {
        let (rank, path) = (ffi::world_rank(), self.path.to_string_lossy());
        say(format_args!("rank {rank}: {path}: {what}; {hint}"));
        Err(Failed::Unsupported)
    }

    /// Turns mode atomic on or off. Collective. The ranks of a second handle may share the file with others that want
    /// the mode: then it stays on.
    pub fn set_atomic(&self, is_atomic: bool) -> Result<(), Failed> {
        let mut way = self.together(false);
        let is_of_some = matches!(self.hold, Hold::Shared { by_all: false, .. });
        // On one rank every access is one step for the rank itself. Without pages each handle locks the bytes it uses.
        if is_atomic && is_of_some && self.comm.ranks > 1 && matches!(way, Way::Cached(_)) {
            self.have_handed_over()?;
            way = Way::Through;
        }
        let is_for_all = match self.hold {
            // A second handle of all ranks may still want it.
            Hold::Own { .. } => is_atomic || !has_atomic_second(self.handle),
            Hold::Shared { by_all, .. } => by_all && is_atomic,
        };
        if is_for_all {
            if let Way::Cached(_) = way {
                self.library.set_atomic(self.file, is_atomic)?;
            }
            self.through.is_atomic.store(is_atomic, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The number found by the first rank after all have arrived, since each rank could find another one. Collective.
    ///
    /// # Errors
    /// The first rank has found none, and raised the error.
    pub fn found_by_first(&self, find: impl FnOnce() -> Result<u64, c_int>) -> Result<u64, c_int> {
        self.comm.meet();
        let found = if self.comm.rank == 0 { find() } else { Ok(0) };
        // No size or pointer is this large.
        let number = self.comm.of_first(*found.as_ref().unwrap_or(&u64::MAX))?;
        match found {
            Ok(_) if number == u64::MAX => Err(self.raise(constants().err_other)),
            found => found.map(|_| number),
        }
    }

    /// Sets the shared pointer. Collective.
    pub fn set_pointer(&self, value: u64) -> Result<(), Failed> {
        // The pointer of a file belongs to its team, even after a handover.
        let _way = self.together(false);
        match &self.hold {
            Hold::Own { .. } => self.library.set_pointer(self.file, value),
            Hold::Shared { pointer: Pointer::Opened(_, file), .. } => self.library.set_pointer(*file, value),
            Hold::Shared { pointer: Pointer::Here(number), .. } => {
                number.store(value, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Adds to the shared pointer. Returns its former value.
    pub fn take(&self, amount: u64) -> Result<u64, Failed> {
        match &self.hold {
            Hold::Own { .. } => self.library.take(self.file, amount),
            Hold::Shared { pointer: Pointer::Opened(_, file), .. } => self.library.take(*file, amount),
            Hold::Shared { pointer: Pointer::Here(number), .. } if self.comm.ranks == 1 => {
                Ok(number.fetch_add(amount, Ordering::Relaxed))
            }
            // Only if a rank had no place for one more file.
            Hold::Shared { .. } => Err(Failed::Otherwise),
        }
    }

    /// The same at the first rank, for all ranks of an ordered access.
    pub fn take_in_order(&self, amount: u64) -> Result<u64, Failed> {
        match &self.hold {
            Hold::Own { .. } => self.library.take(self.file, amount),
            Hold::Shared { pointer: Pointer::Opened(_, file), .. } => self.library.take(*file, amount),
            Hold::Shared { pointer: Pointer::Here(number), .. } => Ok(number.fetch_add(amount, Ordering::Relaxed)),
        }
    }
}
