//! The client's view of the signals that the library handles itself: SIGSEGV, and SIGTRAP for single steps.
//!
//! From attach on the kernel knows our handlers only. What the client installed before, and what it installs later
//! through the functions defined here in place of the C library's, is kept as its disposition and gets every signal that
//! is not ours. Signals that an instruction itself raises are taken out of every set that the client blocks: blocked,
//! they would end the process.
//!
//! The functions here stand in for `sigaction`, `signal` (with its other names), `sigprocmask` and `pthread_sigmask` in
//! the whole process, as POSIX.1-2024 has them; for all other signals they do what the C library's do.

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

/// Asynchronous signals of this thread wait while this exists: no handler of the client runs while the thread has a lock
/// of the library.
#[derive(Debug)]
pub struct SignalsOff {
    before: Mask,
}

impl SignalsOff {
    /// From now on.
    pub fn new() -> SignalsOff {
        SignalsOff { before: change_mask(libc::SIG_BLOCK, Some(ASYNCHRONOUS)) }
    }

    /// Lets signals in while `body` runs.
    pub fn except<T>(&self, body: impl FnOnce() -> T) -> T {
        change_mask(libc::SIG_SETMASK, Some(self.before));
        let answer = body();
        change_mask(libc::SIG_BLOCK, Some(ASYNCHRONOUS));
        answer
    }
}

impl Default for SignalsOff {
    fn default() -> SignalsOff {
        SignalsOff::new()
    }
}

impl Drop for SignalsOff {
    fn drop(&mut self) {
        change_mask(libc::SIG_SETMASK, Some(self.before));
    }
}

/// Changes this thread's mask; returns what it was.
pub fn change_mask(how: c_int, mask: Option<Mask>) -> Mask {
    let mut before: Mask = 0;
    let new = mask.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both masks have the size that is given, and the call keeps neither.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, new, &raw mut before, size_of::<Mask>()) };
    before
}

/// What the client wants done with a signal that is not ours. Signal handlers read it at any time.
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

/// Whether the handlers are ours. Changes of dispositions take turns by this lock.
static OURS: Lock<bool> = Lock::new(false);
static SEGV: Disposition = Disposition::new();
static TRAP: Disposition = Disposition::new();

fn disposition(signal: c_int) -> Option<&'static Disposition> {
    match signal {
        libc::SIGSEGV => Some(&SEGV),
        libc::SIGTRAP => Some(&TRAP),
        _ => None,
    }
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
    let _held = SignalsOff::new();
    let mut ours = OURS.lock();
    for (signal, handler) in handlers {
        // Other signals wait until the handler is through; the ones that an instruction raises do not, so that a fault in
        // the handler itself is a crash and no riddle.
        let flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        let action = action(*handler as usize, flags, ASYNCHRONOUS);
        let mut before = Wanted::DEFAULT.to_action();
        // SAFETY: both actions are valid; the handler chains to what was there.
        if unsafe { __sigaction(*signal, &raw const action, &raw mut before) } != 0 {
            return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL));
        }
        if let Some(disposition) = disposition(*signal) {
            disposition.write(Wanted::of(&before));
        }
    }
    *ours = true;
    Ok(())
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
    // SAFETY: the client installed this address as a handler of the kind that its flags say.
    unsafe {
        if wanted.flags & libc::SA_SIGINFO != 0 {
            std::mem::transmute::<usize, Handler>(wanted.handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(wanted.handler)(signal);
        }
    }
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
    // SAFETY: the caller's promise.
    let wanted = unsafe { new.as_ref() }.map(Wanted::of);
    let Some(disposition) = disposition(signal) else {
        let passed = wanted.map(|wanted| Wanted { mask: wanted.mask & ASYNCHRONOUS, ..wanted }.to_action());
        let passed = passed.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `passed` is valid or null, and `old` is the caller's.
        return unsafe { __sigaction(signal, passed, old) };
    };
    let _held = SignalsOff::new();
    let ours = OURS.lock();
    if !*ours {
        drop(ours);
        // SAFETY: the caller's promise.
        return unsafe { __sigaction(signal, new, old) };
    }
    let before = disposition.read();
    if let Some(wanted) = wanted {
        disposition.write(wanted);
    }
    // The client's memory may fault, which is not to be while the lock is taken.
    drop(ours);
    // SAFETY: the caller's promise.
    if let Some(old) = unsafe { old.as_mut() } {
        *old = before.to_action();
    }
    0
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
