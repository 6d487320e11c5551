//! The client's view of signals.
//!
//! From attach on the kernel knows only handlers of the library. The handlers of SIGSEGV, SIGBUS and SIGTRAP (for single
//! steps) serve the library's own faults. Another one stands for every other handler of the client, and calls it or
//! defers the signal (`deferred_signals.rs`). A handler installed by the client, before attach or after it
//! (`signal_functions.rs`), is kept as its disposition, and gets every signal that is not the library's. The client can
//! never block signals raised by an instruction: blocked, they would end the process.

use super::deferred_signals::{defer, in_client_handler, is_guarded};
use super::errno::{keep_errno, last_errno};
use super::observers::vgasnet_debug_stop;
use super::passed_on::{PASSED_ON, pass_on, times_passed_on};
use super::signal_changes::{Change, is_borrowed, note_process};
use super::signal_mask::{ASYNCHRONOUS, Mask, RESERVED, SYNCHRONOUS, bit, change_mask, mask_in, to_mask};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

/// A signal's handler as the kernel calls it.
pub type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

unsafe extern "C" {
    /// The C library's `sigaction` by its other name.
    pub(super) fn __sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
}

/// The client's disposition of a signal. Signal handlers read it at any time.
pub(super) struct Disposition {
    /// Number of changes; odd during one.
    version: AtomicUsize,
    handler: AtomicUsize,
    flags: AtomicUsize,
    mask: AtomicU64,
}

/// A disposition, read as a whole.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) handler: usize,
    pub(super) flags: c_int,
    pub(super) mask: Mask,
}

/// Signals are counted from 1.
const SIGNALS: usize = 64;

/// Called before a signal of the client's raised by an instruction is handled, with the ucontext.
pub type OnSynchronous = unsafe fn(*mut c_void);

/// Set once the library's handlers are installed.
static ON_SYNCHRONOUS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Whether the client's handlers run on alternate stacks.
static ON_ALTERNATE_STACKS: AtomicBool = AtomicBool::new(false);

/// Called before each handler of the client, once it is set.
static BEFORE_HANDLERS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The library's handlers, once they are installed.
static INSTALLED: OnceLock<&[(c_int, Handler)]> = OnceLock::new();

/// By signal. The entry of a signal that the library does not handle itself counts only while the kernel has
/// [`on_client_signal`] for it.
static DISPOSITIONS: [Disposition; SIGNALS + 1] = [const { Disposition::new() }; SIGNALS + 1];

/// The dispositions before the ones found by [`reclaim`], by signal.
static BENEATH: [Disposition; SIGNALS + 1] = [const { Disposition::new() }; SIGNALS + 1];

/// Signals handled by the library itself.
const OWN: Mask = bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGTRAP);

fn is_own(signal: c_int) -> bool {
    OWN & bit(signal) != 0
}

/// The disposition of a signal, if the client may handle it.
pub(super) fn disposition(signal: c_int) -> Option<&'static Disposition> {
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

    /// The caller has a [`Change`] in progress.
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
    pub(super) const DEFAULT: Wanted = Wanted { handler: libc::SIG_DFL, flags: 0, mask: 0 };

    pub(super) fn of(action: &libc::sigaction) -> Wanted {
        Wanted { handler: action.sa_sigaction, flags: action.sa_flags, mask: to_mask(&action.sa_mask) }
    }

    pub(super) fn to_action(self) -> libc::sigaction {
        action(self.handler, self.flags, self.mask)
    }

    fn is_handler(&self) -> bool {
        self.handler != libc::SIG_DFL && self.handler != libc::SIG_IGN
    }

    /// The action for the kernel.
    fn to_kernels(self) -> libc::sigaction {
        let mask = self.mask & ASYNCHRONOUS;
        if !self.is_handler() {
            return action(self.handler, self.flags, mask);
        }
        let place = if ON_ALTERNATE_STACKS.load(Ordering::Relaxed) { libc::SA_ONSTACK } else { 0 };
        // A deferred signal must find the handler again, so SA_RESETHAND is left to the caller of the handler.
        action(entry(), (self.flags | place | libc::SA_SIGINFO) & !libc::SA_RESETHAND, mask)
    }

    /// Calls the handler.
    ///
    /// # Safety
    /// There is a handler. `info` and `context` are the siginfo and the ucontext for `signal` from the kernel.
    unsafe fn call(&self, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        keep_errno(tell_before_handler);
        // SAFETY: the client installed this address as a handler of the kind in its flags, and the arguments are a
        // handler's.
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

/// The kernel's handler of every signal with a handler of the client: calls it, or defers the signal.
///
/// # Safety
/// Called by the kernel, with the siginfo and the ucontext of `signal`.
unsafe extern "C" fn on_client_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: `info` is the siginfo of this handler from the kernel.
    if SYNCHRONOUS & bit(signal) != 0 && unsafe { (*info).si_code } > 0 && is_guarded() {
        // The library itself has raised it. Its instruction would raise it again, and no handler of the client may run.
        return take_default(signal, false);
    }
    // SAFETY: `info` and `context` are this handler's, from the kernel.
    if keep_errno(|| unsafe { defer(signal, info, context) }) {
        return;
    }
    if SYNCHRONOUS & bit(signal) != 0 {
        // SAFETY: `context` is the ucontext of this handler.
        keep_errno(|| unsafe { tell_synchronous(context) });
    }
    let Some(disposition) = disposition(signal) else { return };
    // This thread is not in the middle of changing it: a thread blocks signals during a change.
    let wanted = disposition.read();
    if !wanted.is_handler() {
        return;
    }
    if wanted.flags & libc::SA_RESETHAND != 0 {
        set_default(signal);
    }
    // A call that waits with a signal set of its own, as sigsuspend and ppoll do, blocks this set until the handler has
    // returned.
    change_mask(libc::SIG_UNBLOCK, Some(SYNCHRONOUS & !bit(signal)));
    // SAFETY: `wanted` has a handler; `info` and `context` are this signal's, from the kernel.
    unsafe { in_client_handler(context, || wanted.call(signal, info, context)) };
}

/// An action for the kernel.
pub(super) fn action(handler: usize, flags: c_int, mask: Mask) -> libc::sigaction {
    // SAFETY: all of its fields are integers, or pointers that may be null.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: on Linux a signal set begins with the kernel's mask, of 64 signals.
    unsafe { (&raw mut action.sa_mask).cast::<Mask>().write(mask) };
    action
}

/// Makes the kernel take the default action for a signal.
fn set_default(signal: c_int) {
    let default = Wanted::DEFAULT.to_action();
    // SAFETY: the action is valid, and names no handler.
    unsafe { __sigaction(signal, &raw const default, std::ptr::null_mut()) };
}

/// # Safety
/// `context` is the ucontext of the calling signal handler.
unsafe fn tell_synchronous(context: *mut c_void) {
    let function = ON_SYNCHRONOUS.load(Ordering::Acquire);
    if !function.is_null() {
        // SAFETY: only `install` stores there, a function of this type.
        let function = unsafe { std::mem::transmute::<*mut c_void, OnSynchronous>(function) };
        // SAFETY: `context` is a ucontext, which the function needs.
        unsafe { function(context) };
    }
}

fn tell_before_handler() {
    let function = BEFORE_HANDLERS.load(Ordering::Acquire);
    if !function.is_null() {
        // SAFETY: only `call_before_handlers` stores there, a function of this type.
        unsafe { std::mem::transmute::<*mut c_void, fn()>(function)() };
    }
}

/// Sets a function called before each handler of the client, in the handler's thread and place.
pub fn call_before_handlers(function: fn()) {
    BEFORE_HANDLERS.store(function as *mut c_void, Ordering::Release);
}

/// Installs these handlers of the library, once. The former ones become the client's dispositions. `on_synchronous` is
/// called before the client's handler of any other signal raised by an instruction.
///
/// # Errors
/// The system's errno value.
pub fn install(handlers: &'static [(c_int, Handler)], on_synchronous: OnSynchronous) -> Result<(), i32> {
    ON_SYNCHRONOUS.store(on_synchronous as *mut c_void, Ordering::Release);
    let _change = Change::begin();
    for (signal, handler) in handlers {
        let before = exchange(*signal, Some(&own_action(*handler)))?;
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
    note_process();
    // A rank installs them once.
    let _ = INSTALLED.set(handlers);
    Ok(())
}

/// The client has stacks in its segment. From now on all of its handlers run on the alternate stacks of their threads.
/// Called in signal handlers as well: a call that interrupts another change leaves it to the next one.
pub fn use_alternate_stacks() {
    if ON_ALTERNATE_STACKS.load(Ordering::Relaxed) || is_borrowed() {
        return;
    }
    let Some(_change) = Change::try_begin() else { return };
    ON_ALTERNATE_STACKS.store(true, Ordering::Relaxed);
    for signal in (1..=SIGNALS as c_int).filter(|signal| !is_own(*signal)) {
        let Some(disposition) = disposition(signal) else { continue };
        if exchange(signal, None).is_ok_and(|now| now.handler == entry()) {
            // It can only fail for an invalid signal.
            let _ = exchange(signal, Some(&disposition.read().to_kernels()));
        }
    }
}

/// The library's handlers; none before they are installed.
fn installed() -> &'static [(c_int, Handler)] {
    INSTALLED.get().copied().unwrap_or_default()
}

/// The action of a handler of the library's.
fn own_action(handler: Handler) -> libc::sigaction {
    // Other signals wait until the handler returns, or lets them in. Signals raised by an instruction are not blocked:
    // the client's handlers may fault while the library's waits.
    let flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART | libc::SA_NODEFER;
    action(handler as usize, flags, ASYNCHRONOUS)
}

/// Reinstalls the library's handlers if the client has replaced them unnoticed. The client's become its dispositions.
pub(super) fn reclaim() {
    for (signal, handler) in installed() {
        if found_instead(*signal, *handler).is_some() {
            reclaim_one(*signal, *handler);
        }
    }
}

/// The client's action in the place of this handler of the library's.
fn found_instead(signal: c_int, handler: Handler) -> Option<Wanted> {
    let found = exchange(signal, None).ok()?;
    // A default action that ends the process is the library's own choice.
    (found.is_handler() && found.handler != handler as usize).then_some(found)
}

fn reclaim_one(signal: c_int, handler: Handler) {
    let _change = Change::begin();
    let Some(found) = found_instead(signal, handler) else { return };
    let disposition = &DISPOSITIONS[signal as usize];
    BENEATH[signal as usize].write(disposition.read());
    disposition.write(found);
    // It can only fail for an invalid signal.
    let _ = exchange(signal, Some(&own_action(handler)));
}

/// Gives the kernel an action for a signal, if there is a new one; returns the one before.
fn exchange(signal: c_int, new: Option<&libc::sigaction>) -> Result<Wanted, i32> {
    let mut before = Wanted::DEFAULT.to_action();
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `new` is null or a valid action, and `before` has room for one. A handler in it is the library's, or the
    // client's own choice.
    if unsafe { __sigaction(signal, new, &raw mut before) } != 0 {
        return Err(last_errno());
    }
    Ok(Wanted::of(&before))
}

/// Handles a signal that is not the library's according to the client's disposition, from within the library's handler.
///
/// # Safety
/// `info` and `context` are the calling handler's for `signal`, from the kernel.
pub unsafe fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: `context` is the handler's ucontext from the kernel.
    let Some(disposition) = disposition_for(signal, unsafe { times_passed_on(context) }) else { return };
    let wanted = disposition.read();
    // SAFETY: `info` is the handler's siginfo from the kernel.
    let was_sent = unsafe { (*info).si_code } <= 0;
    // SAFETY: `info` and `context` are the calling handler's for `signal`, from the kernel.
    if signal == libc::SIGBUS && was_sent && is_guarded() && unsafe { defer(signal, info, context) } {
        return;
    }
    if wanted.handler == libc::SIG_IGN && was_sent {
        return;
    }
    // A SIGBUS under a lock of the library is raised by the library itself: its instruction would raise it again.
    let is_librarys = signal == libc::SIGBUS && !was_sent && is_guarded();
    if wanted.handler == libc::SIG_DFL || wanted.handler == libc::SIG_IGN || is_librarys {
        return take_default(signal, was_sent);
    }
    if wanted.flags & libc::SA_RESETHAND != 0 {
        let _change = Change::begin();
        disposition.write(Wanted::DEFAULT);
    }
    // SAFETY: `context` is the handler's ucontext from the kernel.
    let interrupted = unsafe { mask_in(context).read() };
    change_mask(libc::SIG_SETMASK, Some((interrupted | wanted.mask) & ASYNCHRONOUS));
    // SAFETY: `context` is as above; `wanted` has a handler; `info` and `context` are this signal's, from the kernel.
    unsafe {
        pass_on(context, PASSED_ON);
        in_client_handler(context, || wanted.call(signal, info, context));
        pass_on(context, PASSED_ON.wrapping_neg());
    }
}

/// The client's disposition of a signal passed on by this many of its handlers.
fn disposition_for(signal: c_int, times_passed_on: libc::c_ulong) -> Option<&'static Disposition> {
    static DEFAULT: Disposition = Disposition::new();
    let disposition = disposition(signal)?;
    Some(match times_passed_on {
        0 => disposition,
        1 => &BENEATH[signal as usize],
        _ => &DEFAULT,
    })
}

/// Ends the process by a signal, as if the library did not handle it: by the next one that the same instruction raises,
/// or by sending the signal again.
pub fn take_default(signal: c_int, was_sent: bool) {
    vgasnet_debug_stop(signal);
    set_default(signal);
    if was_sent {
        // SAFETY: the calls take numbers only. The signal arrives in this thread when its handler has returned.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), signal) };
    }
}

/// Whether a handler is one of the library's.
fn is_librarys(address: usize) -> bool {
    address == entry() || installed().iter().any(|(_, handler)| address == *handler as usize)
}

/// Changes the client's disposition of a signal, if there is a new one; returns the one before.
pub(super) fn change(signal: c_int, disposition: &Disposition, wanted: Option<Wanted>) -> Result<Wanted, i32> {
    if is_borrowed() {
        return change_in_borrowed_memory(signal, disposition, wanted);
    }
    let _change = Change::begin();
    if installed().is_empty() {
        return exchange(signal, wanted.map(Wanted::to_action).as_ref());
    }
    let kept = disposition.read();
    // A client that found the library's handler unnoticed may set it again.
    let wanted = wanted.map(|wanted| if is_librarys(wanted.handler) { kept } else { wanted });
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

/// As [`change`], in a child that has borrowed its parent's memory. Only the kernel keeps such a child's disposition.
fn change_in_borrowed_memory(signal: c_int, disposition: &Disposition, wanted: Option<Wanted>) -> Result<Wanted, i32> {
    let before = exchange(signal, wanted.map(Wanted::to_action).as_ref())?;
    Ok(if is_librarys(before.handler) { disposition.read() } else { before })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deferred_signals::SignalGuard;
    use crate::in_child::status_of;
    use crate::signal_changes::survive_forks;

    static HANDLED: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn count(_: c_int) {
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes [`count`] the client's handler of a signal.
    fn install_counter(signal: c_int) {
        let wanted = Wanted { handler: count as *const () as usize, ..Wanted::DEFAULT };
        DISPOSITIONS[signal as usize].write(wanted);
        exchange(signal, Some(&wanted.to_kernels())).expect("a signal");
    }

    #[test]
    fn signals_of_any_kind_that_are_sent_wait_for_the_guards_end() {
        // Other tests may have all slots.
        survive_forks();
        let status = status_of(|| {
            let signals = [libc::SIGFPE, libc::SIGUSR1, libc::SIGBUS, libc::SIGILL];
            signals.into_iter().for_each(install_counter);
            let guard = SignalGuard::new();
            for signal in signals.into_iter().chain(signals) {
                // SAFETY: the call takes a number only.
                unsafe { libc::raise(signal) };
            }
            let early = HANDLED.load(Ordering::Relaxed);
            drop(guard);
            let is_open = change_mask(libc::SIG_BLOCK, None) & !RESERVED == 0;
            early == 0 && HANDLED.load(Ordering::Relaxed) == signals.len() && is_open
        });
        assert_eq!(status, 0);
    }

    #[test]
    fn a_signal_that_the_library_raises_ends_the_process() {
        survive_forks();
        let status = status_of(|| {
            install_counter(libc::SIGBUS);
            // SAFETY: a file without bytes is mapped at an address chosen by the system, and loaded from, to raise
            // SIGBUS.
            unsafe {
                let file = libc::memfd_create(c"empty".as_ptr(), 0);
                let memory = libc::mmap(std::ptr::null_mut(), 1, libc::PROT_READ, libc::MAP_SHARED, file, 0);
                let _guard = SignalGuard::new();
                memory.cast::<u8>().read_volatile() == 0
            }
        });
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGBUS, "{status:#x}");
    }
}
