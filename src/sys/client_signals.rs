//! The client's view of signals.
//!
//! From attach on the kernel knows our handlers only: those of SIGSEGV and of SIGTRAP (for single steps), which the library
//! handles itself, and one that every other handler of the client is called from, unless it has to wait (`deferred_signals.rs`). What
//! the client installed before, and what it installs later through the functions defined here in place of the C library's,
//! is kept as its disposition and gets every signal that is not ours. Signals that an instruction itself raises are taken
//! out of every set that the client blocks: blocked, they would end the process.
//!
//! The functions here stand in for `sigaction`, `signal` (with its other names), `sigset`, `sigprocmask` and
//! `pthread_sigmask` in the whole process, as POSIX has them.

use super::deferred_signals::{self as deferred, SignalGuard};
use super::futex::Lock;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// A signal's handler as the kernel calls it.
pub type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// A set of signals as the kernel has it: signal `n` is bit `n - 1`.
pub type Mask = u64;

/// Signals that an instruction raises, which must reach their handler at once.
const SYNCHRONOUS: Mask =
    bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGILL) | bit(libc::SIGFPE) | bit(libc::SIGTRAP);

/// Signals that the C library keeps to itself (nptl(7)).
const RESERVED: Mask = bit(32) | bit(33);

/// All signals of the client that come from elsewhere.
pub const ASYNCHRONOUS: Mask = !(SYNCHRONOUS | RESERVED);

const fn bit(signal: c_int) -> Mask {
    1 << (signal - 1)
}

unsafe extern "C" {
    /// The C library's `sigaction` by its other name.
    fn __sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
}

/// Runs `body` with the C library's error number as it is restored to afterwards.
pub fn keep_errno<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the C library's place for this thread's error number, valid as long as the thread.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = *errno;
    let answer = body();
    *errno = before;
    answer
}

/// Changes this thread's mask; returns what it was.
pub fn change_mask(how: c_int, mask: Option<Mask>) -> Mask {
    let mut before: Mask = 0;
    let new = mask.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both masks have the size that is given, and the call keeps neither.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, new, &raw mut before, size_of::<Mask>()) };
    before
}

/// What the client wants done with a signal. Signal handlers read it at any time.
struct Disposition {
    /// Counts changes; odd while one is under way.
    version: AtomicUsize,
    handler: AtomicUsize,
    flags: AtomicUsize,
    mask: AtomicU64,
}

/// A disposition, read as a whole.
#[derive(Clone, Copy)]
struct Wanted {
    handler: usize,
    flags: c_int,
    mask: Mask,
}

/// Signals are counted from 1.
const SIGNALS: usize = 64;

/// Whether the handlers are ours. Changes of dispositions take turns by this lock.
static OURS: Lock<bool> = Lock::new(false);

/// By signal. Of a signal that is not the library's own it is what the client wants only while the kernel has
/// [`on_client_signal`].
static DISPOSITIONS: [Disposition; SIGNALS + 1] = [const { Disposition::new() }; SIGNALS + 1];

/// Signals that the library handles itself.
const OWN: Mask = bit(libc::SIGSEGV) | bit(libc::SIGTRAP);

fn is_own(signal: c_int) -> bool {
    OWN & bit(signal) != 0
}

/// Of a signal that the client may handle.
fn disposition(signal: c_int) -> Option<&'static Disposition> {
    let is_of_clients = (1..=SIGNALS as c_int).contains(&signal)
        && (RESERVED | bit(libc::SIGKILL) | bit(libc::SIGSTOP)) & bit(signal) == 0;
    is_of_clients.then(|| &DISPOSITIONS[signal as usize])
}

impl Disposition {
    const fn new() -> Disposition {
        let (handler, flags) = (AtomicUsize::new(libc::SIG_DFL), AtomicUsize::new(0));
        Disposition { version: AtomicUsize::new(0), handler, flags, mask: AtomicU64::new(0) }
    }

    fn read(&self) -> Wanted {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let handler = self.handler.load(Ordering::Relaxed);
            let flags = self.flags.load(Ordering::Relaxed) as c_int;
            let mask = self.mask.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if version % 2 == 0 && self.version.load(Ordering::Relaxed) == version {
                return Wanted { handler, flags, mask };
            }
            std::thread::yield_now();
        }
    }

    /// The caller has [`OURS`].
    fn write(&self, wanted: Wanted) {
        self.version.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.handler.store(wanted.handler, Ordering::Relaxed);
        self.flags.store(wanted.flags as usize, Ordering::Relaxed);
        self.mask.store(wanted.mask, Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
    }
}

impl Wanted {
    const DEFAULT: Wanted = Wanted { handler: libc::SIG_DFL, flags: 0, mask: 0 };

    fn of(action: &libc::sigaction) -> Wanted {
        Wanted { handler: action.sa_sigaction, flags: action.sa_flags, mask: to_mask(&action.sa_mask) }
    }

    fn to_action(self) -> libc::sigaction {
        action(self.handler, self.flags, self.mask)
    }

    fn is_handler(&self) -> bool {
        self.handler != libc::SIG_DFL && self.handler != libc::SIG_IGN
    }

    /// What the kernel is to know of it.
    fn to_kernels(self) -> libc::sigaction {
        let mask = self.mask & ASYNCHRONOUS;
        if !self.is_handler() {
            return action(self.handler, self.flags, mask);
        }
        // A signal that waits must find the handler again; so it is reset where it is called.
        action(entry(), (self.flags | libc::SA_SIGINFO) & !libc::SA_RESETHAND, mask)
    }

    /// Calls the handler.
    ///
    /// # Safety
    /// There is one, and the arguments are those of a handler.
    unsafe fn call(&self, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the client installed this address as a handler of the kind that its flags say.
        unsafe {
            if self.flags & libc::SA_SIGINFO != 0 {
                std::mem::transmute::<usize, Handler>(self.handler)(signal, info, context);
            } else {
                std::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(self.handler)(signal);
            }
        }
    }
}

/// The address of [`on_client_signal`].
fn entry() -> usize {
    on_client_signal as Handler as usize
}

/// Where the client's handlers of signals that come from elsewhere are called.
unsafe extern "C" fn on_client_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: these are the handler's arguments.
    if keep_errno(|| unsafe { deferred::defer(signal, info, context) }) {
        return;
    }
    let Some(disposition) = disposition(signal) else { return };
    // Nobody is in the middle of a change in this thread: it would hold signals off.
    let wanted = disposition.read();
    if !wanted.is_handler() {
        return;
    }
    if wanted.flags & libc::SA_RESETHAND != 0 {
        let default = Wanted::DEFAULT.to_action();
        // SAFETY: the action is valid.
        unsafe { __sigaction(signal, &raw const default, std::ptr::null_mut()) };
    }
    // SAFETY: these are the handler's arguments.
    deferred::in_client_handler(|| unsafe { wanted.call(signal, info, context) });
}

fn to_mask(set: &libc::sigset_t) -> Mask {
    // SAFETY: on Linux a signal set begins with the kernel's mask, of 64 signals.
    unsafe { std::ptr::from_ref(set).cast::<Mask>().read() }
}

fn action(handler: usize, flags: c_int, mask: Mask) -> libc::sigaction {
    // SAFETY: all of its fields are integers, or pointers that may be null.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: as in `to_mask`.
    unsafe { (&raw mut action.sa_mask).cast::<Mask>().write(mask) };
    action
}

/// Puts handlers of ours in place, once. What was there becomes the client's disposition.
///
/// # Errors
/// The system's error number.
pub fn install(handlers: &[(c_int, Handler)]) -> Result<(), i32> {
    let _signals = SignalGuard::new();
    let mut ours = OURS.lock();
    for (signal, handler) in handlers {
        // Other signals wait until the handler is through; the ones that an instruction raises do not, so that a fault in
        // the handler itself is a crash and no riddle.
        let flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        let before = exchange(*signal, Some(&action(*handler as usize, flags, ASYNCHRONOUS)))?;
        DISPOSITIONS[*signal as usize].write(before);
    }
    for signal in 1..=SIGNALS as c_int {
        let Some(disposition) = disposition(signal).filter(|_| !is_own(signal)) else { continue };
        let before = exchange(signal, None)?;
        if before.is_handler() {
            disposition.write(before);
            exchange(signal, Some(&before.to_kernels()))?;
        }
    }
    *ours = true;
    Ok(())
}

/// Tells the kernel what to do with a signal, if anything is given; what it knew before.
fn exchange(signal: c_int, new: Option<&libc::sigaction>) -> Result<Wanted, i32> {
    let mut before = Wanted::DEFAULT.to_action();
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both actions are valid or null; handlers of ours go on to what was there.
    if unsafe { __sigaction(signal, new, &raw mut before) } != 0 {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL));
    }
    Ok(Wanted::of(&before))
}

/// Does what the client wants done with a signal that is not ours, from within our handler for it.
///
/// # Safety
/// The arguments are those of the handler.
pub unsafe fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(disposition) = disposition(signal) else { return };
    let wanted = disposition.read();
    // SAFETY: the kernel gave the handler a valid siginfo.
    let was_sent = unsafe { (*info).si_code } <= 0;
    if wanted.handler == libc::SIG_IGN && was_sent {
        return;
    }
    if wanted.handler == libc::SIG_DFL || wanted.handler == libc::SIG_IGN {
        return take_default(signal, was_sent);
    }
    if wanted.flags & libc::SA_RESETHAND != 0 {
        let _turn = OURS.lock();
        disposition.write(Wanted::DEFAULT);
    }
    // SAFETY: the kernel gave the handler its ucontext, whose mask begins with the 64 signals that the kernel has.
    let interrupted = unsafe { (&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<Mask>().read() };
    change_mask(libc::SIG_SETMASK, Some((interrupted | wanted.mask) & ASYNCHRONOUS));
    // SAFETY: the caller's promise.
    deferred::in_client_handler(|| unsafe { wanted.call(signal, info, context) });
}

/// The default action: the process ends by the signal, at the instruction that raised it, or by a copy of what was sent.
pub fn take_default(signal: c_int, was_sent: bool) {
    let default = Wanted::DEFAULT.to_action();
    // SAFETY: the action is valid. The process ends by the next such signal, as if the library were not there.
    unsafe { __sigaction(signal, &raw const default, std::ptr::null_mut()) };
    if was_sent {
        // SAFETY: sends a signal to this thread, which handles it after this handler.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
    }
}

/// As POSIX `sigaction`.
///
/// # Safety
/// As POSIX has it: the pointers are valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // The client's memory may fault, which is not to be while the lock is taken.
    // SAFETY: the caller's promise.
    let wanted = unsafe { new.as_ref() }.map(Wanted::of);
    let Some(disposition) = disposition(signal) else {
        // SAFETY: the caller's promise.
        return unsafe { __sigaction(signal, new, old) };
    };
    match change(signal, disposition, wanted) {
        // SAFETY: the caller's promise.
        Ok(before) => unsafe {
            if let Some(old) = old.as_mut() {
                *old = before.to_action();
            }
            0
        },
        Err(errno) => {
            // SAFETY: the C library's place for this thread's error number.
            unsafe { *libc::__errno_location() = errno };
            -1
        }
    }
}

/// Changes what the client wants done with a signal, if it wants something; what it wanted before.
fn change(signal: c_int, disposition: &Disposition, wanted: Option<Wanted>) -> Result<Wanted, i32> {
    let _signals = SignalGuard::new();
    let ours = OURS.lock();
    if !*ours {
        return exchange(signal, wanted.map(Wanted::to_action).as_ref());
    }
    let kept = disposition.read();
    if let Some(wanted) = wanted.filter(|wanted| is_own(signal) || wanted.is_handler()) {
        disposition.write(wanted);
    }
    if is_own(signal) {
        return Ok(kept);
    }
    let before = exchange(signal, wanted.map(Wanted::to_kernels).as_ref());
    if before.is_err() {
        disposition.write(kept);
    }
    before.map(|before| if before.handler == entry() { kept } else { before })
}

/// Installs a handler as one of the `signal` functions does; returns the one before.
fn install_simply(signal: c_int, handler: usize, flags: c_int, mask: Mask) -> usize {
    let (new, mut old) = (action(handler, flags, mask), Wanted::DEFAULT.to_action());
    // SAFETY: both actions are valid.
    let status = unsafe { sigaction(signal, &raw const new, &raw mut old) };
    if status == 0 { old.sa_sigaction } else { libc::SIG_ERR }
}

/// Defines names for a function of the kind of `signal`.
macro_rules! signal_functions {
    ($($name:ident: $flags:expr, $mask:expr;)*) => {
        $(
            /// As the C library's function of this name; see signal(2).
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(signal: c_int, handler: usize) -> usize {
                let mask: fn(c_int) -> Mask = $mask;
                install_simply(signal, handler, $flags, if (1..=64).contains(&signal) { mask(signal) } else { 0 })
            }
        )*
    };
}

signal_functions! {
    signal: libc::SA_RESTART, bit;
    bsd_signal: libc::SA_RESTART, bit;
    ssignal: libc::SA_RESTART, bit;
    sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER, |_| 0;
    __sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER, |_| 0;
}

/// Not a handler: the signal is to be blocked.
const SIG_HOLD: usize = 2;

/// As POSIX `sigset`: a disposition for a signal, and whether it is blocked from now on.
#[unsafe(no_mangle)]
pub extern "C" fn sigset(signal: c_int, handler: usize) -> usize {
    let Some(disposition) = disposition(signal) else {
        // SAFETY: the C library's place for this thread's error number.
        unsafe { *libc::__errno_location() = libc::EINVAL };
        return libc::SIG_ERR;
    };
    let (how, wanted) = match handler {
        SIG_HOLD => (libc::SIG_BLOCK, None),
        handler => (libc::SIG_UNBLOCK, Some(Wanted { handler, ..Wanted::DEFAULT })),
    };
    let Ok(before) = change(signal, disposition, wanted) else { return libc::SIG_ERR };
    let mask = change_mask(how, Some(bit(signal) & ASYNCHRONOUS));
    if mask & bit(signal) != 0 { SIG_HOLD } else { before.handler }
}

/// As POSIX `pthread_sigmask`, but signals that an instruction raises are never blocked.
///
/// # Safety
/// As POSIX has it: the pointers are valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    if !new.is_null() && ![libc::SIG_BLOCK, libc::SIG_UNBLOCK, libc::SIG_SETMASK].contains(&how) {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    let new = unsafe { new.as_ref() }.map(to_mask);
    let unblockable = if how == libc::SIG_UNBLOCK { RESERVED } else { RESERVED | SYNCHRONOUS };
    let before = change_mask(how, new.map(|mask| mask & !unblockable));
    if !old.is_null() {
        // SAFETY: the caller's promise; all-zero is the empty set, which begins with the kernel's mask.
        unsafe {
            libc::sigemptyset(old);
            old.cast::<Mask>().write(before);
        }
    }
    0
}

/// As POSIX `sigprocmask`, but signals that an instruction raises are never blocked.
///
/// # Safety
/// As POSIX has it: the pointers are valid or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(how: c_int, new: *const libc::sigset_t, old: *mut libc::sigset_t) -> c_int {
    // SAFETY: the caller's promise.
    let error = unsafe { pthread_sigmask(how, new, old) };
    if error == 0 {
        return 0;
    }
    // SAFETY: the C library's place for this thread's error number.
    unsafe { *libc::__errno_location() = error };
    -1
}
