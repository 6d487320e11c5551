//! A cached file that others want to write, too: its team writes all that it has, and reads and writes the file itself from then on.
//!
//! ```text
//!              a guest has come: no call begins             all ranks have synced the file
//!  CACHED ───────────────────────────────────────► HELD ───────────────────────────────────► THROUGH
//! ```
//!
//! A call about the file's bytes marks its thread as busy, and then looks at the mode. Who holds the file sets the mode, has a barrier in all
//! threads, and waits until none is busy: so a call has seen the mode, or is seen. Calls that find the file held wait.
//!
//! Calls that ranks make together (`together`) are cached on all of them or on none: when all have come, the first rank says which. It
//! begins to hold the file only between two such calls, and names the last one, which the others end before they hold it.

use crate::direct::Direct;
use crate::vgasnet::Failed;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, compiler_fence, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

const CACHED: u8 = 0;
const HELD: u8 = 1;
const THROUGH: u8 = 2;

/// How the handles of a file in this process read and write it.
#[derive(Debug, Default)]
pub struct Through {
    mode: AtomicU8,
    /// Whether each access is one step.
    pub is_atomic: AtomicBool,
    /// An error where this rank cannot open the file.
    direct: OnceLock<Result<Direct, Failed>>,
    /// What could not be written when the file was handed over, until somebody is told.
    unwritten: Mutex<Option<Failed>>,
    /// Threads that have used the file.
    users: Mutex<Vec<Arc<AtomicBool>>>,
    calls: Mutex<Calls>,
    has_changed: Condvar,
}

/// The calls that ranks make together.
#[derive(Debug, Default)]
struct Calls {
    /// At the first rank.
    begun: u64,
    ended: u64,
    /// At the first rank: the file is to be held, or is closed.
    is_decided: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cached call that ranks make together, until this is dropped.
#[derive(Debug)]
pub struct Joint<'a>(&'a Through);

impl Drop for Joint<'_> {
    fn drop(&mut self) {
        lock(&self.0.calls).ended += 1;
        self.0.has_changed.notify_all();
    }
}

impl Through {
    /// Whether the file is read and written itself.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.mode.load(Ordering::Acquire) == THROUGH
    }

    /// The file, once it is read and written itself.
    #[inline]
    pub fn direct(&self) -> Option<Result<&Direct, Failed>> {
        if self.is_on() { self.direct.get().map(|direct| direct.as_ref().map_err(|failed| *failed)) } else { None }
    }

    /// A thread uses the file from now on.
    pub fn add_user(&self) -> Arc<AtomicBool> {
        let user = Arc::new(AtomicBool::new(false));
        let mut users = lock(&self.users);
        users.retain(|user| Arc::strong_count(user) > 1);
        users.push(Arc::clone(&user));
        user
    }

    /// A call of a thread begins; it waits while the file is held.
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

    /// Waits until the file is read and written itself.
    pub fn wait_until_on(&self) {
        let mut calls = lock(&self.calls);
        while !self.is_on() {
            calls = self.has_changed.wait(calls).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// At the first rank: decides how a call that all ranks have come to is done. Cached if true. After the last one nobody holds the file.
    pub fn decide(&self, is_last: bool) -> bool {
        let mut calls = lock(&self.calls);
        let is_cached = !calls.is_decided;
        calls.is_decided |= is_last;
        calls.begun += u64::from(is_cached);
        is_cached
    }

    /// A cached call that all ranks have come to, from when the first has decided so.
    pub fn joint_call(&self) -> Joint<'_> {
        Joint(self)
    }

    /// At the first rank: has the file held. Returns the number of cached calls that come before that; `None` if it was closed.
    pub fn decide_to_hold(&self) -> Option<u64> {
        let mut calls = lock(&self.calls);
        if std::mem::replace(&mut calls.is_decided, true) {
            return None;
        }
        Some(calls.begun)
    }

    /// Holds the file when so many calls have ended, and no other is under way.
    pub fn hold(&self, joint_calls: u64) {
        let mut calls = lock(&self.calls);
        while calls.ended < joint_calls {
            calls = self.has_changed.wait(calls).unwrap_or_else(PoisonError::into_inner);
        }
        drop(calls);
        self.mode.store(HELD, Ordering::SeqCst);
        if barrier::is_there() {
            barrier::everywhere()
        } else {
            fence(Ordering::SeqCst)
        }
        self.wait_until_idle();
    }

    fn wait_until_idle(&self) {
        let users = lock(&self.users).clone();
        for user in users {
            while user.load(Ordering::Acquire) {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        }
    }

    /// No handle reads and writes the file itself any more: vgasnet may close it.
    pub fn end(&self) {
        if let Some(Ok(direct)) = self.direct.get() {
            self.wait_until_idle();
            direct.end();
        }
    }

    /// All ranks have held the file, and it has all bytes, or all but those that could not be written.
    pub fn let_through(&self, direct: Result<Direct, Failed>, synced: Result<(), Failed>) {
        let _set = self.direct.set(direct);
        *lock(&self.unwritten) = synced.err();
        let calls = lock(&self.calls);
        self.mode.store(THROUGH, Ordering::Release);
        drop(calls);
        self.has_changed.notify_all();
    }

    /// An error if bytes could not be written before the file was handed over. They are lost, so each sync and the close fail.
    pub fn tell_unwritten(&self) -> Result<(), Failed> {
        lock(&self.unwritten).map_or(Ok(()), Err)
    }
}

/// A barrier in all threads of the process at once, so that calls need none of their own.
mod barrier {
    use std::sync::OnceLock;

    /// Commands of `membarrier`, which `linux/membarrier.h` has.
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    #[inline]
    pub fn is_there() -> bool {
        static IS_THERE: OnceLock<bool> = OnceLock::new();
        *IS_THERE.get_or_init(|| call(REGISTER_PRIVATE_EXPEDITED))
    }

    pub fn everywhere() {
        // A process that was forked may have to register anew.
        let is_done = call(PRIVATE_EXPEDITED) || (call(REGISTER_PRIVATE_EXPEDITED) && call(PRIVATE_EXPEDITED));
        assert!(is_done, "the kernel has had this call before");
    }

    fn call(command: libc::c_int) -> bool {
        // SAFETY: the call has no memory.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}
