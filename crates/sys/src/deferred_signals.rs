//! Deferred signals: the client's signals wait while a thread holds a lock of the library, or is in the middle of its
//! work.
//!
//! A thread with a [`SignalGuard`] has a slot here, which costs no system call. `client_signals.rs` calls every handler
//! of the client, and asks [`defer`] first: if the interrupted thread has a slot, the signal is sent to it again, and
//! the thread goes on with these signals blocked until it gives the slot back. A signal raised by an instruction cannot
//! wait.
//!
//! Slots are in a table, because a handler cannot use thread-local storage: its first use in a thread may allocate.

use super::cancellation::CancellationGuard;
use super::copy_guard;
use super::frames::{Frame, interrupted_stack_pointer, stack_pointer};
use super::signal_mask::{ASYNCHRONOUS, Mask, bit, change_mask, mask_in};
use super::thread_table::{THREAD_TABLE_LEN, places_of_thread, thread_key};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum concurrent guards without a system call. One more blocks signals in the kernel.
const SLOTS: usize = THREAD_TABLE_LEN;

/// In a slot's owner, a key that is a multiple of 4: a handler of the client runs, and signals are not deferred.
const HANDLING: usize = 2;

/// In a slot's owner: signals were deferred until the slot is given back. With [`HANDLING`]: it is being given back.
const DEFERRED: usize = 1;

/// Signals that wait in the kernel once one has been deferred: all without a handler of the library's own. SIGBUS waits only
/// once it has been sent itself: blocked, it would end a load from a segment.
const WAITING: Mask = ASYNCHRONOUS | bit(libc::SIGILL) | bit(libc::SIGFPE);

#[repr(align(64))]
struct Slot {
    /// The thread's key with the bits above, or 0.
    owner: AtomicUsize,
    /// The thread's mask before a signal was deferred.
    before: Cell<Mask>,
    /// Position of the handler, once it is known.
    frame: Cell<Frame>,
    has_frame: AtomicBool,
}

// SAFETY: only the owning thread accesses the cells. The mask: its signal handlers until they have blocked all signals,
// and the thread itself afterwards. The frame: the handler that took the slot writes it before it sets `has_frame`, and
// it is read only after.
unsafe impl Sync for Slot {}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        owner: AtomicUsize::new(0),
        before: Cell::new(0),
        frame: Cell::new(Frame::NONE),
        has_frame: AtomicBool::new(false),
    }
}; SLOTS];

/// Defers signals while it exists: no handler of the client runs in this thread, and it is not cancelled, unless the
/// guard is a brief one.
pub struct SignalGuard {
    slot: Cell<Option<&'static Slot>>,
    /// The thread's mask, if there is no slot.
    before: Cell<Mask>,
    _uncancelled: Option<CancellationGuard>,
}

impl SignalGuard {
    /// Defers signals from now on.
    pub fn new() -> SignalGuard {
        SignalGuard::with(Some(CancellationGuard::new()))
    }

    /// As [`SignalGuard::new`], for code without cancellation points.
    pub(super) fn brief() -> SignalGuard {
        SignalGuard::with(None)
    }

    fn with(uncancelled: Option<CancellationGuard>) -> SignalGuard {
        let guard = SignalGuard { slot: Cell::new(None), before: Cell::new(0), _uncancelled: uncancelled };
        guard.begin();
        guard
    }

    /// Lets signals in while `body` runs. The thread is not cancelled there either.
    pub fn except<T>(&self, body: impl FnOnce() -> T) -> T {
        self.end();
        let answer = body();
        self.begin();
        answer
    }

    fn begin(&self) {
        self.slot.set(take_slot(thread_key()));
        if self.slot.get().is_none() {
            self.before.set(change_mask(libc::SIG_BLOCK, Some(WAITING)));
        }
    }

    fn end(&self) {
        match self.slot.take() {
            Some(slot) => slot.give_back(thread_key()),
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

/// A lock held by this thread, with signals deferred: a handler of the client might fault, and the fault might need the
/// lock.
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

impl<'a, T> Signalproof<MutexGuard<'a, T>> {
    /// Takes a mutex, even a poisoned one.
    pub fn lock(mutex: &'a Mutex<T>) -> Self {
        Signalproof::take(|| mutex.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Signalproof::lock`], for a mutex whose holder calls no cancellation points. Taking it is none.
    pub fn lock_briefly(mutex: &'a Mutex<T>) -> Self {
        let signals = SignalGuard::brief();
        Signalproof { guard: mutex.lock().unwrap_or_else(PoisonError::into_inner), _signals: signals }
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

fn take_slot(owner: usize) -> Option<&'static Slot> {
    places_of_thread(owner).map(|place| &TABLE[place]).find(|slot| {
        let is_free = slot.owner.load(Ordering::Relaxed) == 0;
        is_free && slot.owner.compare_exchange(0, owner, Ordering::Acquire, Ordering::Relaxed).is_ok()
    })
}

impl Slot {
    fn give_back(&self, owner: usize) {
        if self.owner.compare_exchange(owner, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
            return;
        }
        let before = self.before.get();
        self.owner.store(0, Ordering::Release);
        // The deferred signals arrive now.
        change_mask(libc::SIG_SETMASK, Some(before));
    }
}

/// Handlers of the client running in threads without room in the table, and handlers that have jumped out there.
static UNNOTED: AtomicUsize = AtomicUsize::new(0);

impl Slot {
    /// Whether the slot belongs to a handler of this thread with key `key`. If the thread has left the handler for
    /// good, by a jump, gives the slot back: the thread's stack ends at `now`.
    fn has_handler(&self, key: usize, now: usize) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        if owner & !DEFERRED != key | HANDLING {
            return false;
        }
        let is_left =
            owner == key | HANDLING && self.has_frame.load(Ordering::Acquire) && self.frame.get().is_left_at(now);
        if is_left {
            self.end_handler(key);
        }
        !is_left
    }

    fn begin_handler(&self, frame: Frame) {
        self.frame.set(frame);
        self.has_frame.store(true, Ordering::Release);
    }

    /// Gives back the slot of a handler of this thread. A handler that interrupts this finds it taken.
    fn end_handler(&self, key: usize) {
        let (owner, ending) = (key | HANDLING, key | HANDLING | DEFERRED);
        if self.owner.compare_exchange(owner, ending, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.has_frame.store(false, Ordering::Release);
            self.owner.store(0, Ordering::Release);
        }
    }
}

/// Runs `body` as a handler of the client. If it jumps out, [`Slot::has_handler`] finds its slot.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler.
pub(super) unsafe fn in_client_handler(context: *mut c_void, body: impl FnOnce()) {
    let key = thread_key();
    // SAFETY: `context` is as this function requires.
    let frame = unsafe { Frame::here(context) };
    let is_noted = TABLE.iter().any(|slot| slot.has_handler(key, stack_pointer()));
    let slot = if is_noted { None } else { take_slot(key | HANDLING) };
    let unnoted = usize::from(!is_noted && slot.is_none());
    UNNOTED.fetch_add(unnoted, Ordering::Relaxed);
    if let Some(slot) = slot {
        slot.begin_handler(frame);
    }
    copy_guard::outside_of_copies(body);
    // In a child forked by it it is no longer counted.
    let _ = UNNOTED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(unnoted));
    if let Some(slot) = slot {
        let is_own = slot.owner.load(Ordering::Relaxed) == key | HANDLING && slot.frame.get().is(frame);
        if is_own {
            slot.end_handler(key);
        }
    }
}

/// Called in a forked child: the parent's other threads have no slots there.
pub(super) fn keep_slots_of_this_thread() {
    let key = thread_key();
    let is_anothers = |owner| (owner & !(DEFERRED | HANDLING) != key).then_some(0);
    for slot in &TABLE {
        if slot.owner.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_anothers).is_ok() {
            slot.has_frame.store(false, Ordering::Relaxed);
        }
    }
    UNNOTED.store(0, Ordering::Relaxed);
}

#[cfg(test)]
pub(super) fn owned_slots() -> usize {
    TABLE.iter().filter(|slot| slot.owner.load(Ordering::Relaxed) != 0).count()
}

/// Whether this thread defers signals or runs a handler of the client, or may do so.
pub fn is_disturbed() -> bool {
    is_disturbed_at(stack_pointer())
}

/// As [`is_disturbed`], for the code interrupted by a signal handler of the library.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler.
pub unsafe fn was_disturbed(context: *mut c_void) -> bool {
    // SAFETY: `context` is as this function requires.
    is_disturbed_at(unsafe { interrupted_stack_pointer(context) })
}

fn is_disturbed_at(now: usize) -> bool {
    let key = thread_key();
    let is_here = |slot: &Slot| slot.owner.load(Ordering::Relaxed) & !DEFERRED == key || slot.has_handler(key, now);
    UNNOTED.load(Ordering::Relaxed) > 0 || TABLE.iter().any(is_here)
}

/// Whether this thread has a [`SignalGuard`] in the table.
pub(super) fn is_guarded() -> bool {
    guarded_slot(thread_key()).is_some()
}

fn guarded_slot(key: usize) -> Option<&'static Slot> {
    TABLE.iter().find(|slot| slot.owner.load(Ordering::Relaxed) & !DEFERRED == key)
}

/// Defers a signal if the interrupted thread has a [`SignalGuard`] or a [`copy_guard::CopyGuard`]. Returns whether it
/// does.
///
/// # Safety
/// `info` and `context` are the calling handler's for `signal`, from the kernel.
pub(super) unsafe fn defer(signal: c_int, info: *const libc::siginfo_t, context: *mut c_void) -> bool {
    let key = thread_key();
    let Some(slot) = guarded_slot(key) else {
        // A signal raised by an instruction of the copy is about the client's memory.
        let waits = ASYNCHRONOUS & bit(signal) != 0 && copy_guard::is_copying();
        if waits {
            change_mask(libc::SIG_BLOCK, Some(ASYNCHRONOUS));
            // SAFETY: `info` and `context` are the calling handler's for this signal, from the kernel.
            unsafe {
                send_again(signal, info);
                copy_guard::defer_until_copied(context);
            }
        }
        return waits;
    };
    let waiting = WAITING | bit(signal);
    change_mask(libc::SIG_BLOCK, Some(waiting));
    // SAFETY: `info` is the siginfo for this signal from the kernel.
    unsafe { send_again(signal, info) };
    // SAFETY: `context` is the ucontext of this handler, and nobody else touches it while the handler runs.
    unsafe {
        let mask = mask_in(context);
        // Of several nested signals the last to be deferred has interrupted the thread itself. One that comes after them
        // finds SIGILL blocked, which no client can block.
        let is_later = mask.read() & bit(libc::SIGILL) != 0;
        if !is_later {
            slot.before.set(mask.read());
        }
        mask.write(mask.read() | waiting);
    }
    slot.owner.store(key | DEFERRED, Ordering::Relaxed);
    true
}

/// Sends a signal to this thread, with its original siginfo.
///
/// # Safety
/// `info` points to the siginfo of `signal`.
unsafe fn send_again(signal: c_int, info: *const libc::siginfo_t) {
    // SAFETY: `info` points to a siginfo, which the kernel copies; all else are numbers.
    unsafe {
        let (process, thread) = (libc::getpid(), libc::gettid());
        if libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info) != 0 {
            // The kernel has no room for the siginfo: the signal arrives without it.
            libc::syscall(libc::SYS_tgkill, process, thread, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_child::status_of;
    use crate::signal_changes::survive_forks;

    /// Acts as a handler that jumps out. Returns whether it was noted.
    #[inline(never)]
    fn begin_and_leave() -> bool {
        let slot = take_slot(thread_key() | HANDLING).expect("a slot");
        // SAFETY: a ucontext may be all zeros.
        let mut context: libc::ucontext_t = unsafe { std::mem::zeroed() };
        // SAFETY: no handler runs, so there is no alternate stack.
        slot.begin_handler(unsafe { Frame::here((&raw mut context).cast()) });
        let below = std::hint::black_box(stack_pointer() - 64);
        is_disturbed_at(below)
    }

    #[test]
    fn handlers_that_were_left_by_a_jump_are_forgotten() {
        // Other tests may have all slots.
        survive_forks();
        let status = status_of(|| begin_and_leave() && !is_disturbed() && owned_slots() == 0);
        assert_eq!(status, 0);
    }

    #[test]
    fn guards_nest_and_there_may_be_more_than_slots() {
        let guards: Vec<SignalGuard> = (0..SLOTS + 3).map(|_| SignalGuard::new()).collect();
        let key = thread_key();
        let owned = || TABLE.iter().filter(|slot| slot.owner.load(Ordering::Relaxed) == key).count();
        // Other tests have guards, too.
        assert!((SLOTS / 2..=SLOTS).contains(&owned()));
        guards.into_iter().rev().for_each(drop);
        assert_eq!(owned(), 0);
        assert_eq!(change_mask(libc::SIG_BLOCK, None) & ASYNCHRONOUS, 0);
    }
}
