//! Claims on files opened for writing: locks of bytes far beyond any data, held by the first rank of the handle's
//! communicator while the handle is open. They work across communicators, jobs and hosts, and are released when a
//! process dies.
//!
//! One byte belongs to the owner: its team caches and writes the file. Every other handle that may write the file is a
//! guest, and holds a byte of its own. A handle becomes the owner only if there is no guest. A guest waits until there
//! is no owner: the owner notices the guest, has its team write its dirty bytes, and becomes a guest itself
//! (`watch.rs`).

use crate::locks::{find_lock, is_locked, set_lock};
use crate::running;
use crate::say;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_int};
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};
use vgasnet_mpi_front::kind::File;
use vgasnet_mpi_front::{Handle, forked};

/// The owner's byte. vgasnet locks the byte before it.
const OWNER: i64 = i64::MAX - 1;

/// Number of guests' bytes.
const GUESTS: i64 = 1 << 16;

/// The first guest's byte.
const FIRST_GUEST: i64 = i64::MAX - 8 - GUESTS;

/// The bytes of claims, and vgasnet's.
pub const PLACES: RangeInclusive<i64> = FIRST_GUEST..=OWNER;

/// Number of bytes a guest tries, one after another.
const TRIES: i64 = 64;

/// After this time a waiting guest says so.
const SLOW: Duration = Duration::from_secs(5);

/// Timeout of a guest that waits for the owner to write its dirty bytes.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The locks of a handle.
#[derive(Debug)]
pub struct Claim {
    file: OwnedFd,
    /// Its guest's byte.
    guest: Option<Byte>,
    is_owner: bool,
}

/// A locked byte of guests.
#[derive(Debug)]
pub struct Byte {
    place: i64,
    /// Whether no other process has locked it.
    pub is_own: bool,
}

impl Claim {
    /// A guest's claim by this byte, before it has waited for the owner.
    pub fn new(file: OwnedFd, byte: Byte) -> Claim {
        forked::keep_from_children(file.as_raw_fd());
        Claim { file, guest: Some(byte), is_owner: false }
    }

    /// Makes a guest the owner, unless there are other guests. It remains a guest on failure.
    pub fn become_owner(&mut self) -> bool {
        // Without a byte of its own it could not be told from a reader's lock.
        if !self.has_own_byte() || !self.set_lock(libc::F_WRLCK, OWNER) {
            self.tell_of_readers_of(OWNER, 1);
            return false;
        }
        self.is_owner = true;
        // Of two concurrent attempts each has taken a guest's byte before it checks here, so at least one sees the
        // other.
        if self.has_guests() {
            self.give_up_ownership();
            return false;
        }
        self.give_back(None);
        true
    }

    fn has_own_byte(&self) -> bool {
        self.guest.as_ref().is_some_and(|byte| byte.is_own)
    }

    /// Has another guest's byte from now on, or none.
    fn give_back(&mut self, next: Option<Byte>) {
        let kept = next.as_ref().map(|byte| byte.place);
        let before = std::mem::replace(&mut self.guest, next);
        before
            .filter(|byte| kept != Some(byte.place))
            .into_iter()
            .for_each(|byte| _ = self.set_lock(libc::F_UNLCK, byte.place));
    }

    /// Makes an owner a guest. From then on its team caches nothing.
    pub fn become_guest(&mut self) -> bool {
        let better = if self.has_own_byte() { None } else { take_guest_byte(self.file.as_raw_fd()).ok() };
        if better.is_some() {
            self.give_back(better);
        }
        self.give_up_ownership();
        self.guest.is_some()
    }

    /// The claim of a handle that MPI serves after all.
    pub fn of_mpi(mut self) -> Option<Claim> {
        self.become_guest().then_some(self)
    }

    /// Whether this descriptor holds the claim.
    pub fn is_by(&self, descriptor: c_int) -> bool {
        self.file.as_raw_fd() == descriptor
    }

    /// Whether no team caches and writes the file.
    fn has_no_owner(&self) -> bool {
        !self.is_locked(OWNER, 1)
    }

    fn give_up_ownership(&mut self) {
        if std::mem::take(&mut self.is_owner) {
            self.set_lock(libc::F_UNLCK, OWNER);
        }
    }

    /// Whether other handles may write the file. A guest without a byte of its own has a read lock, so readers' locks there count.
    pub fn has_guests(&self) -> bool {
        let found = self.finds_lock(libc::F_WRLCK, FIRST_GUEST, GUESTS);
        if found == Some(libc::F_RDLCK) {
            tell_of_readers(self.file.as_raw_fd());
        }
        found.is_some()
    }

    /// Waits until no team caches and writes the file. Returns whether this happened in time.
    pub fn wait_for_owner(&self, say_slow: impl Fn()) -> bool {
        let start = Instant::now();
        let mut has_said = false;
        while !self.has_no_owner() {
            if start.elapsed() > PATIENCE {
                return false;
            }
            if !has_said && start.elapsed() > SLOW {
                say_slow();
                has_said = true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn set_lock(&self, kind: c_int, place: i64) -> bool {
        set_lock(self.file.as_raw_fd(), kind, place).is_ok()
    }

    /// Whether other handles with write access have locked some of these bytes. A handle with read access can only have
    /// read locks, which do not count.
    fn is_locked(&self, place: i64, bytes: i64) -> bool {
        self.finds_lock(libc::F_RDLCK, place, bytes).is_some()
    }

    /// The kind of another lock that is in the way of one of this kind.
    fn finds_lock(&self, kind: c_int, place: i64, bytes: i64) -> Option<c_int> {
        find_lock(self.file.as_raw_fd(), kind, place, bytes)
    }

    /// Says so if another process has a read lock there: it is a reader's, or a guest's that readers left no byte.
    fn tell_of_readers_of(&self, place: i64, bytes: i64) {
        if self.finds_lock(libc::F_WRLCK, place, bytes) == Some(libc::F_RDLCK) {
            tell_of_readers(self.file.as_raw_fd());
        }
    }
}

impl Drop for Claim {
    /// A child by vfork or clone may have the file open, too. Closing it here would then leave the locks held.
    fn drop(&mut self) {
        self.give_up_ownership();
        self.give_back(None);
        forked::forget(self.file.as_raw_fd());
    }
}

/// The path of an open file, for a line.
fn path_of(descriptor: c_int) -> String {
    let path = std::fs::read_link(format!("/proc/self/fd/{descriptor}"));
    path.map_or_else(|_| "a file".to_owned(), |path| path.display().to_string())
}

/// Says once that a reader has bytes of claims.
pub fn tell_of_readers(descriptor: c_int) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        say(format_args!(
            "rank {}: {}: another process has a read lock on the bytes by which the file's handles find each other; MPI serves the file; \
             end the lock (fcntl, also of a whole file) to have it cached",
            running::own_rank(),
            path_of(descriptor)
        ));
    });
}

/// Takes a free guest's byte. Each search starts at a different byte, so processes seldom collide. If readers' locks
/// leave none, the byte is read-locked as well: the owner sees that.
pub fn take_guest_byte(descriptor: c_int) -> io::Result<Byte> {
    static NEXT: AtomicI64 = AtomicI64::new(0);
    let start = i64::from(std::process::id()) * 7 + NEXT.fetch_add(1, Ordering::Relaxed);
    let mut places = (start..start + TRIES).map(|place| FIRST_GUEST + place.rem_euclid(GUESTS));
    let tried = |place| match set_lock(descriptor, libc::F_WRLCK, place) {
        Err(error) if is_locked(&error) => None,
        taken => Some(taken.map(|()| Byte { place, is_own: true })),
    };
    if let Some(taken) = places.find_map(tried) {
        return taken;
    }
    let place = FIRST_GUEST + start.rem_euclid(GUESTS);
    match set_lock(descriptor, libc::F_RDLCK, place) {
        Ok(()) => Ok(Byte { place, is_own: false }),
        // The descriptor may not read.
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
        Err(error) => Err(error),
    }
}

/// Lets another open file description, given by its descriptor, hold a guest's byte until it is closed.
pub fn pass_to(descriptor: c_int) -> bool {
    take_guest_byte(descriptor).is_ok()
}

/// The claims of handles served by MPI.
static OF_MPI: Mutex<BTreeMap<Handle<File>, Vec<Claim>>> = Mutex::new(BTreeMap::new());

/// Number of these handles. While it is 0, closing a file costs one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn change<T>(change: impl FnOnce(&mut BTreeMap<Handle<File>, Vec<Claim>>) -> T) -> T {
    let mut handles = OF_MPI.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = change(&mut handles);
    COUNT.store(handles.len(), Ordering::Release);
    answer
}

/// Holds a claim until MPI's handle is closed.
pub fn keep(handle: Handle<File>, claim: Claim) {
    change(|handles| handles.entry(handle).or_default().push(claim));
}

/// MPI is about to close a handle. Its claims end when they are dropped. They are taken before, since MPI may give the
/// next handle the same number.
pub fn take(handle: Handle<File>) -> Vec<Claim> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Vec::new();
    }
    change(|handles| handles.remove(&handle)).unwrap_or_default()
}

/// Has a guest wait for the owner. Returns whether the file is free; if not, a line says so.
pub fn settle(claim: &Claim, path: &CStr) -> bool {
    let is_free = claim.wait_for_owner(|| {
        say(format_args!(
            "rank {}: MPI_File_open: {}: waits for ranks of another communicator, or of another job, to hand the file back (since {} s)",
            running::own_rank(),
            path.to_string_lossy(),
            SLOW.as_secs()
        ));
    });
    if !is_free {
        say(format_args!(
            "rank {}: MPI_File_open: {}: ranks of another communicator, or of another job, cache and write the file, and have not handed it back \
             for {} s; open it after they have closed it, or give it the hint vgasnet_cache=disable there",
            running::own_rank(),
            path.to_string_lossy(),
            PATIENCE.as_secs()
        ));
    }
    is_free
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::locks::lock_of;
    use crate::look::Look;
    use std::ffi::CString;
    use std::os::fd::FromRawFd;
    use std::os::unix::ffi::OsStrExt;

    pub struct Scratch(pub CString);

    impl Scratch {
        pub fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("vgasnet-claims-{}-{name}", std::process::id()));
            std::fs::write(&path, b"").expect("the directory can be written");
            Scratch(CString::new(path.as_os_str().as_bytes()).expect("no zero"))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            // SAFETY: it is a string.
            unsafe { libc::unlink(self.0.as_ptr()) };
        }
    }

    #[test]
    fn a_handle_owns_a_file_that_has_no_guests() {
        let file = Scratch::new("owner");
        let of = || Look::of(&file.0).claim().expect("a guest");
        let mut first = of();
        assert!(first.become_owner() && !first.has_guests());
        let mut second = of();
        assert!(first.has_guests() && !second.become_owner() && second.is_locked(OWNER, 1));
        assert!(first.become_guest() && second.wait_for_owner(|| ()));
        assert!(!second.become_owner() && !first.become_owner(), "each is the other's guest");
        drop(first);
        assert!(second.become_owner());
        drop(second);
        let (mut one, mut other) = (of(), of());
        assert!(!one.become_owner() && !other.become_owner(), "of two who come at once none owns the file");
    }

    #[test]
    fn who_may_only_read_a_file_is_no_guest() {
        let file = Scratch::new("reader");
        let own = Look::of(&file.0).claim().expect("a guest");
        // SAFETY: the path is a string.
        let reader = unsafe { OwnedFd::from_raw_fd(libc::open(file.0.as_ptr(), libc::O_RDONLY)) };
        let lock = lock_of(libc::F_RDLCK, FIRST_GUEST - 1, 1);
        // SAFETY: the file is open, and the lock is valid.
        assert_eq!(unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_OFD_SETLK, &lock) }, 0);
        let lock = lock_of(libc::F_RDLCK, OWNER, 1);
        // SAFETY: the file is open, and the lock is valid.
        assert_eq!(unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_OFD_SETLK, &lock) }, 0);
        assert!(!own.has_guests() && own.wait_for_owner(|| ()));
    }

    #[test]
    fn a_reader_that_leaves_no_byte_to_guests_has_nobody_cache_the_file() {
        let file = Scratch::new("blocked");
        // SAFETY: the path is a string.
        let reader = unsafe { OwnedFd::from_raw_fd(libc::open(file.0.as_ptr(), libc::O_RDONLY)) };
        let lock = |kind| {
            let lock = lock_of(kind, FIRST_GUEST, GUESTS);
            // SAFETY: the file is open, and the lock is valid.
            assert_eq!(unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_OFD_SETLK, &lock) }, 0);
        };
        let mut owner = Look::of(&file.0).claim().expect("a guest");
        assert!(owner.become_owner());
        lock(libc::F_RDLCK);
        let blocked = Look::of(&file.0).claim().expect("the file system has locks");
        assert!(!blocked.has_no_owner(), "it has to wait");
        assert!(owner.has_guests(), "the owner sees it");
        drop(owner);
        let (mut one, mut other) = (blocked, Look::of(&file.0).claim().expect("as above"));
        assert!(one.has_no_owner() && !one.become_owner() && !other.become_owner());
        lock(libc::F_UNLCK);
        assert!(one.become_guest() && !one.become_owner(), "the other has the file open still");
        drop(other);
        assert!(one.become_owner());
    }

    #[test]
    fn what_is_no_regular_file_has_no_claim() {
        assert!(Look::of(c"/dev/null").claim().is_none() && Look::of(c"/none/such").claim().is_none());
    }
}
