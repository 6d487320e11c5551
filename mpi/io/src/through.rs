//! Handover of a cached file that others want to write: its team writes all dirty bytes, and from then on accesses the
//! file directly.
//!
//! ```text
//!              a guest has come: no call begins             all ranks have synced the file
//!  CACHED ───────────────────────────────────────► HELD ───────────────────────────────────► THROUGH
//! ```
//!
//! A call about the file's bytes marks its thread as busy, and then reads the mode. A thread that holds the file sets
//! the mode, executes a barrier in all threads, and waits until none is busy. So each call either has seen the mode or
//! is waited for. Calls that find the file held wait.
//!
//! Joint calls (`together`) are cached on all ranks or on none: when all have arrived, the first rank decides. It
//! begins to hold the file only between two joint calls, and tells the others the last one, which they complete before
//! they hold it.

use crate::direct::Direct;
use crate::vgasnet::Failed;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, compiler_fence, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

const CACHED: u8 = 0;
const HELD: u8 = 1;
const THROUGH: u8 = 2;

/// The way in which this process's handles read and write a file.
#[derive(Debug, Default)]
pub struct Through {
    mode: AtomicU8,
    /// Whether the file may be handed over: a file that is only read never is.
    pub is_watched: AtomicBool,
    /// The file by a descriptor of its own, for syncs by some of its ranks, if it was opened here for them.
    pub synced_alone: OnceLock<File>,
    /// Whether each access is one step.
    pub is_atomic: AtomicBool,
    /// An error if this rank cannot open the file.
    direct: OnceLock<Result<Direct, Failed>>,
    /// The error of bytes not written before the handover, reported by later calls.
    unwritten: Mutex<Option<Failed>>,
    /// Threads that have used the file.
    users: Mutex<Vec<Arc<AtomicBool>>>,
    calls: Mutex<Calls>,
    has_changed: Condvar,
}

/// Counts of joint calls.
#[derive(Debug, Default)]
struct Calls {
    /// At the first rank.
    begun: u64,
    ended: u64,
    /// At the first rank: the file will be held, or is closed.
    is_decided: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cached joint call, until dropped.
#[derive(Debug)]
pub struct Joint<'a>(&'a Through);

impl Drop for Joint<'_> {
    fn drop(&mut self) {
        lock(&self.0.calls).ended += 1;
        self.0.has_changed.notify_all();
    }
}

impl Through {
    /// Whether the file is accessed directly.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.mode.load(Ordering::Acquire) == THROUGH
    }

    /// Direct access to the file, once it has begun.
    #[inline]
    pub fn direct(&self) -> Option<Result<&Direct, Failed>> {
        if self.is_on() { self.direct.get().map(|direct| direct.as_ref().map_err(|failed| *failed)) } else { None }
    }

    /// Adds a thread that uses the file from now on.
    pub fn add_user(&self) -> Arc<AtomicBool> {
        let user = Arc::new(AtomicBool::new(false));
        let mut users = lock(&self.users);
        users.retain(|user| Arc::strong_count(user) > 1);
        users.push(Arc::clone(&user));
        user
    }

    /// Begins a thread's call, which waits while the file is held.
    #[inline]
    pub fn enter(&self, user: &AtomicBool) {
        user.store(true, Ordering::Relaxed);
        if barrier::is_there() {
            compiler_fence(Ordering::SeqCst)
        } else {
            fence(Ordering::SeqCst)
        }
        if self.mode.load(Ordering::Relaxed) != CACHED {
            self.enter_slowly(user);
        }
    }

    #[cold]
    fn enter_slowly(&self, user: &AtomicBool) {
        if !self.is_on() {
            user.store(false, Ordering::Release);
            self.wait_until_on();
            user.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until the file is accessed directly.
    pub fn wait_until_on(&self) {
        let mut calls = lock(&self.calls);
        while !self.is_on() {
            calls = self.has_changed.wait(calls).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// At the first rank: decides how to do a joint call that all ranks have reached. True means cached. After the last
    /// joint call nobody holds the file.
    pub fn decide(&self, is_last: bool) -> bool {
        let mut calls = lock(&self.calls);
        let is_cached = !calls.is_decided;
        calls.is_decided |= is_last;
        calls.begun += u64::from(is_cached);
        is_cached
    }

    /// A cached joint call that all ranks have reached, starting with the first rank's decision.
    pub fn joint_call(&self) -> Joint<'_> {
        Joint(self)
    }

    /// At the first rank: has the file held. Returns the number of cached joint calls before; `None` if the file was
    /// closed.
    pub fn decide_to_hold(&self) -> Option<u64> {
        let mut calls = lock(&self.calls);
        if std::mem::replace(&mut calls.is_decided, true) {
            return None;
        }
        Some(calls.begun)
    }

    /// Holds the file after this many joint calls have ended and no other call is in flight.
    pub fn hold(&self, joint_calls: u64) {
        let mut calls = lock(&self.calls);
        while calls.ended < joint_calls {
            calls = self.has_changed.wait(calls).unwrap_or_else(PoisonError::into_inner);
        }
        drop(calls);
        self.mode.store(HELD, Ordering::SeqCst);
        self.wait_until_idle(None);
    }

    /// The process is about to end: no further call begins while the file is cached. Waits for those in progress, at most until `end`.
    pub fn hold_for_ever(&self, end: Instant) {
        if self.mode.compare_exchange(CACHED, HELD, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.wait_until_idle(Some(end));
        }
    }

    fn wait_until_idle(&self, end: Option<Instant>) {
        if barrier::is_there() {
            barrier::everywhere()
        } else {
            fence(Ordering::SeqCst)
        }
        let users = lock(&self.users).clone();
        for user in users {
            while user.load(Ordering::Acquire) && end.is_none_or(|end| Instant::now() < end) {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        }
    }

    /// No handle accesses the file directly any more: vgasnet may close it.
    pub fn end(&self) {
        if let Some(Ok(direct)) = self.direct.get() {
            self.wait_until_idle(None);
            direct.end();
        }
    }

    /// All ranks have held the file, and it has all bytes except unwritable ones.
    pub fn let_through(&self, direct: Result<Direct, Failed>, synced: Result<(), Failed>) {
        let _set = self.direct.set(direct);
        *lock(&self.unwritten) = synced.err();
        let calls = lock(&self.calls);
        self.mode.store(THROUGH, Ordering::Release);
        drop(calls);
        self.has_changed.notify_all();
    }

    /// An error if bytes could not be written before the handover. They are lost, so each sync and the close fail.
    pub fn tell_unwritten(&self) -> Result<(), Failed> {
        lock(&self.unwritten).map_or(Ok(()), Err)
    }
}

/// A barrier in all threads of the process at once, so that calls need no barrier of their own.
mod barrier {
    use std::sync::OnceLock;

    /// Commands of `membarrier`, from `linux/membarrier.h`.
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    #[inline]
    pub fn is_there() -> bool {
        static IS_THERE: OnceLock<bool> = OnceLock::new();
        *IS_THERE.get_or_init(|| call(REGISTER_PRIVATE_EXPEDITED))
    }

    pub fn everywhere() {
        // A forked process may have to register again.
        let is_done = call(PRIVATE_EXPEDITED) || (call(REGISTER_PRIVATE_EXPEDITED) && call(PRIVATE_EXPEDITED));
        assert!(is_done, "the kernel has had this call before");
    }

    fn call(command: libc::c_int) -> bool {
        // SAFETY: the call accesses no memory.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}
