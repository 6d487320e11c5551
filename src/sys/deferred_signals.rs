//! Signals of the client that wait while a thread has something of the library's.
//!
//! A thread with a [`SignalGuard`] has a slot here, which costs no system call. Every handler of the client is entered
//! through `client_signals.rs`, which asks [`defer`] first: if the interrupted thread has a slot, the signal is sent to it
//! again, and the thread goes on with all signals blocked until it gives the slot back.
//!
//! A handler must find the thread's slots without thread-local storage: the first use of that in a thread may allocate.

use super::client_signals::{ASYNCHRONOUS, Mask, change_mask};
use super::thread_table as thread;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Guards that exist at the same time without a system call. One more blocks signals in the kernel.
const SLOTS: usize = thread::PLACES;

/// In a slot's owner: a handler of the client runs, and signals are not deferred.
const HANDLING: usize = 2;

/// In a slot's owner: signals were deferred until it is given back. Threads' names are multiples of 4.
const WAITING: usize = 1;

#[repr(align(64))]
struct Slot {
    /// The thread's name, or 0.
    owner: AtomicUsize,
    /// The thread's mask before a signal was deferred.
    before: Cell<Mask>,
}

// SAFETY: the mask is touched by the thread that owns the slot alone: by its signal handlers until they have blocked all
// signals, and by the thread itself after that.
unsafe impl Sync for Slot {}

static TABLE: [Slot; SLOTS] = [const { Slot { owner: AtomicUsize::new(0), before: Cell::new(0) } }; SLOTS];

/// No handler of the client runs in this thread while this exists.
pub struct SignalGuard {
    slot: Cell<Option<&'static Slot>>,
    /// The thread's mask, where there is no slot.
    before: Cell<Mask>,
    of_this_thread: PhantomData<*const ()>,
}

impl SignalGuard {
    /// Defers signals from now on.
    pub fn new() -> SignalGuard {
        let guard = SignalGuard { slot: Cell::new(None), before: Cell::new(0), of_this_thread: PhantomData };
        guard.begin();
        guard
    }

    /// Lets signals in while `body` runs.
    pub fn except<T>(&self, body: impl FnOnce() -> T) -> T {
        self.end();
        let answer = body();
        self.begin();
        answer
    }

    fn begin(&self) {
        self.slot.set(take_slot(thread::name()));
        if self.slot.get().is_none() {
            self.before.set(change_mask(libc::SIG_BLOCK, Some(ASYNCHRONOUS)));
        }
    }

    fn end(&self) {
        match self.slot.take() {
            Some(slot) => slot.give_back(thread::name()),
            None => {
                change_mask(libc::SIG_SETMASK, Some(self.before.get()));
            }
        }
    }
}

impl Default for SignalGuard {
    fn default() -> SignalGuard {
        SignalGuard::new()
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        self.end();
    }
}

/// A lock that this thread has. No handler of the client runs in the thread meanwhile: the handler might fault, and the fault
/// might need the lock.
pub struct Signalproof<G> {
    guard: G,
    _signals: SignalGuard,
}

impl<G> Signalproof<G> {
    /// Takes the lock.
    pub fn take(lock: impl FnOnce() -> G) -> Signalproof<G> {
        let signals = SignalGuard::new();
        Signalproof { guard: lock(), _signals: signals }
    }
}

impl<G: Deref> Deref for Signalproof<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Signalproof<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

fn take_slot(name: usize) -> Option<&'static Slot> {
    thread::places(name).map(|place| &TABLE[place]).find(|slot| {
        let is_free = slot.owner.load(Ordering::Relaxed) == 0;
        is_free && slot.owner.compare_exchange(0, name, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })
}

impl Slot {
    fn give_back(&self, name: usize) {
        if self.owner.compare_exchange(name, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
            return;
        }
        let before = self.before.get();
        self.owner.store(0, Ordering::Release);
        // Deferred signals come now.
        change_mask(libc::SIG_SETMASK, Some(before));
    }
}

/// Handlers of the client that run in threads for which the table has no room.
static UNNOTED: AtomicUsize = AtomicUsize::new(0);

/// Notes that this thread runs a handler of the client. A handler that never returns but jumps leaves its slot taken for the
/// thread's next ones.
pub fn in_client_handler(body: impl FnOnce()) {
    let name = thread::name() | HANDLING;
    let is_noted = TABLE.iter().any(|slot| slot.owner.load(Ordering::Relaxed) == name);
    let slot = if is_noted { None } else { take_slot(name) };
    let unnoted = usize::from(!is_noted && slot.is_none());
    UNNOTED.fetch_add(unnoted, Ordering::Relaxed);
    body();
    UNNOTED.fetch_sub(unnoted, Ordering::Relaxed);
    if let Some(slot) = slot {
        slot.owner.store(0, Ordering::Release);
    }
}

/// Whether this thread defers signals or runs a handler of the client, or may do so.
pub fn is_disturbed() -> bool {
    let name = thread::name();
    UNNOTED.load(Ordering::Relaxed) > 0
        || TABLE.iter().any(|slot| slot.owner.load(Ordering::Relaxed) & !(WAITING | HANDLING) == name)
}

/// Defers a signal if the thread that it interrupts has a [`SignalGuard`]. Returns whether it does.
///
/// # Safety
/// The arguments are those of a handler.
pub unsafe fn defer(signal: c_int, info: *const libc::siginfo_t, context: *mut c_void) -> bool {
    let name = thread::name();
    let is_owned = |slot: &&Slot| slot.owner.load(Ordering::Relaxed) & !WAITING == name;
    let Some(slot) = TABLE.iter().find(is_owned) else { return false };
    change_mask(libc::SIG_BLOCK, Some(ASYNCHRONOUS));
    // SAFETY: the caller's promise.
    unsafe { send_again(signal, info) };
    // SAFETY: the caller's promise; the mask in the context begins with the 64 signals that the kernel has.
    unsafe {
        let mask = (&raw mut (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<Mask>();
        // Of several that came at once, each on top of the one before, the last to be deferred interrupted the thread itself.
        slot.before.set(mask.read());
        mask.write(mask.read() | ASYNCHRONOUS);
    }
    slot.owner.store(name | WAITING, Ordering::Relaxed);
    true
}

/// Sends a signal to this thread, as it came.
///
/// # Safety
/// The siginfo is valid.
unsafe fn send_again(signal: c_int, info: *const libc::siginfo_t) {
    // SAFETY: the caller's promise; the calls have no other conditions.
    unsafe {
        let (process, thread) = (libc::getpid(), libc::gettid());
        if libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info) != 0 {
            // The kernel has no room for what came with it.
            libc::syscall(libc::SYS_tgkill, process, thread, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_nest_and_more_than_there_are_slots_exist() {
        let guards: Vec<SignalGuard> = (0..SLOTS + 3).map(|_| SignalGuard::new()).collect();
        let name = thread::name();
        let owned = || TABLE.iter().filter(|slot| slot.owner.load(Ordering::Relaxed) == name).count();
        // Other tests have guards, too.
        assert!((SLOTS / 2..=SLOTS).contains(&owned()));
        guards.into_iter().rev().for_each(drop);
        assert_eq!(owned(), 0);
        assert_eq!(change_mask(libc::SIG_BLOCK, None) & ASYNCHRONOUS, 0);
    }
}
