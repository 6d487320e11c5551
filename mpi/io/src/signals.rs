//! Signals that end a process. Once it has files to rescue, each of them has the files written first ([`crate::rescue`]),
//! also if the program asks for the default action later: a handler that cleans up does so, and sends itself the signal
//! again.

use crate::asking::{self, WAITS};
use crate::next_function::{NextFunction, missing};
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

type Action = libc::sigaction;

/// Signals that end a process, unless it has a handler. Handlers of [`REPORTERS`] are replaced, and those of the program
/// stay.
const REPORTED: [c_int; 10] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGXCPU,
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
];

/// Further signals that end a process without a handler. All handlers stay: MPI and vgasnet use some of these signals.
/// Real-time signals belong to them as well.
const OTHERS: [c_int; 12] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
    libc::SIGPIPE,
    libc::SIGXFSZ,
    libc::SIGSYS,
    libc::SIGTRAP,
];

/// Signals that mostly come from the thread's own code, which must not go on.
const OF_THREADS: [c_int; 9] = [
    libc::SIGABRT,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGPIPE,
    libc::SIGXFSZ,
    libc::SIGSYS,
    libc::SIGTRAP,
];

/// Those of them that come again when the instruction is repeated.
const OF_FAULTS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// Numbers of signals are lower.
const SIGNALS_MAX: usize = 65;

/// Libraries with handlers that report the origin of a fault and end the process: MPIs and libraries they use,
/// Fortran's runtime, sanitizers.
const REPORTERS: [&[u8]; 11] = [
    b"libmpi",
    b"libopen-",
    b"libpmi",
    b"libprrte",
    b"libucs",
    b"libfabric",
    b"libgfortran",
    b"libasan",
    b"libclang_rt",
    b"libSegFault",
    b"libvgasnet",
];

/// The former action of each signal.
static BEFORE: [AtomicPtr<Action>; SIGNALS_MAX] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS_MAX];

/// The files are written, and the process ends by its signal.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

static SIGACTION: NextFunction = NextFunction::new(c"sigaction");
static SIGNAL: NextFunction = NextFunction::new(c"signal");
static SYSV_SIGNAL: NextFunction = NextFunction::new(c"__sysv_signal");
static SIGSET: NextFunction = NextFunction::new(c"sigset");
static RAISE: NextFunction = NextFunction::new(c"raise");
static KILL: NextFunction = NextFunction::new(c"kill");

// SAFETY: all fields may be 0, which is SIG_DFL.
static DEFAULT: Action = unsafe { std::mem::zeroed() };

/// Looks the functions up: a signal handler must not, nor a child that is about to end.
extern "C" fn look_all_up() {
    for next in [&SIGACTION, &SIGNAL, &SYSV_SIGNAL, &SIGSET, &RAISE, &KILL] {
        next.look_up();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look_all_up;

/// The C library's function.
///
/// # Safety
/// `new` and `old` are null or actions, and the new handler is one.
unsafe fn next_action(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    type Function = unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int;
    match SIGACTION.address() {
        0 => missing(),
        // SAFETY: the function has this signature, and takes what the caller promises.
        next => unsafe { std::mem::transmute::<usize, Function>(next)(signal, new, old) },
    }
}

/// Installs the handler for all signals that end a process, and keeps their former actions, unless they are ignored or
/// left to the program.
pub fn take_over() {
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    REPORTED.into_iter().chain(OTHERS).chain(real_time).for_each(take_over_one);
}

fn ends_process(signal: c_int) -> bool {
    REPORTED.contains(&signal) || OTHERS.contains(&signal) || (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal)
}

fn own_action() -> Action {
    let mut own = DEFAULT;
    own.sa_sigaction = on_signal as *const () as usize;
    own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    own
}

fn is_own(action: &Action) -> bool {
    action.sa_sigaction == on_signal as *const () as usize
}

fn take_over_one(signal: c_int) {
    let mut old = DEFAULT;
    // SAFETY: there is room for the action.
    let is_known = unsafe { next_action(signal, std::ptr::null(), &mut old) } == 0;
    let is_replaced = |handler| handler == libc::SIG_DFL || REPORTED.contains(&signal) && is_report(handler);
    let Some(before) = BEFORE.get(signal as usize).filter(|_| is_known && is_replaced(old.sa_sigaction)) else {
        return;
    };
    before.store(Box::into_raw(Box::new(old)), Ordering::Release);
    // SAFETY: the handler has this signature, and makes only calls allowed in a handler.
    unsafe { next_action(signal, &own_action(), std::ptr::null_mut()) };
}

/// The former action of a signal.
fn before(signal: c_int) -> &'static Action {
    let before = BEFORE.get(signal as usize).map_or(std::ptr::null_mut(), |before| before.load(Ordering::Acquire));
    // SAFETY: an action in the table is never freed.
    unsafe { before.as_ref() }.unwrap_or(&DEFAULT)
}

/// Gives a signal its former action, by which the process ends.
pub fn restore(signal: c_int) {
    IS_ENDING.store(true, Ordering::Relaxed);
    // SAFETY: it was the signal's action before.
    unsafe { next_action(signal, before(signal), std::ptr::null_mut()) };
}

/// Whether a handler belongs to a library that reports faults.
fn is_report(handler: libc::sighandler_t) -> bool {
    // SAFETY: all fields may be 0.
    let mut about: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: there is room for the answer. SIG_IGN is not an address in any library.
    if unsafe { libc::dladdr(handler as *const _, &mut about) } == 0 || about.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the linker's names are strings.
    let path = unsafe { CStr::from_ptr(about.dli_fname) }.to_bytes();
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    REPORTERS.iter().any(|reporter| name.starts_with(reporter))
}

/// Has the thread write the files. A signal of the thread's own code waits for it, and then triggers the signal's former
/// action. At a signal from outside the handler returns, since the interrupted code may be in the middle of a write, and
/// the thread ends the process.
///
/// # Safety
/// The kernel calls it for a signal: `about` is the address of the signal's origin.
unsafe extern "C" fn on_signal(signal: c_int, about: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: these functions may be called in a handler, and their memory is valid. The kernel has passed the origin.
    unsafe {
        let errno = *libc::__errno_location();
        let is_of_kernel = (*about).si_code > 0;
        let is_of_thread = OF_THREADS.contains(&signal) && (is_of_kernel || (*about).si_pid() == libc::getpid());
        let is_asked = asking::ask(signal as u8 | if is_of_thread { WAITS } else { 0 });
        if !is_asked || is_of_thread {
            restore(signal);
            if !(is_of_kernel && OF_FAULTS.contains(&signal)) {
                libc::raise(signal);
            }
        }
        *libc::__errno_location() = errno;
    }
}

/// The new action of a signal, and the old one, as the program sees them: it asks for the default action, and gets the
/// rescue before it.
///
/// # Safety
/// As [`next_action`].
unsafe fn change(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: `new` and `old` are null or actions, and the new handler is one. The handler of `own_action` makes only
    // calls allowed in a handler.
    unsafe {
        let known = before(signal);
        let wanted = new.as_ref().map(|new| new.sa_sigaction);
        let is_default = wanted == Some(libc::SIG_DFL);
        // A program that had put its own handler in place for a while gives back the one that it was told of.
        let is_own_again = is_default || wanted == Some(known.sa_sigaction);
        let (mut was, own) = (DEFAULT, own_action());
        if is_default {
            BEFORE[signal as usize].store((&raw const DEFAULT).cast_mut(), Ordering::Release);
        }
        let answer = next_action(signal, if is_own_again { &own } else { new }, &mut was);
        if answer == 0 && !old.is_null() {
            old.write(if is_own(&was) { *known } else { was });
        }
        answer
    }
}

/// A library that reports a fault sets the default action as well, after the rescue.
fn is_watched(signal: c_int) -> bool {
    asking::is_prepared() && ends_process(signal) && !IS_ENDING.load(Ordering::Relaxed)
}

/// C's function.
///
/// # Safety
/// `new` and `old` are null or actions, and the new handler is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { if is_watched(signal) { change(signal, new, old) } else { next_action(signal, new, old) } }
}

/// A handler as the functions `signal` set it. Returns the one before.
///
/// # Safety
/// The handler is one.
unsafe fn set(number: c_int, handler: usize, flags: c_int, next: &NextFunction) -> usize {
    type Function = unsafe extern "C" fn(c_int, usize) -> usize;
    // SAFETY: the function has this signature. The handler is one, as the caller promises.
    unsafe {
        let next = next.address();
        if !is_watched(number) && next != 0 {
            return std::mem::transmute::<usize, Function>(next)(number, handler);
        }
        let (mut new, mut old) = (DEFAULT, DEFAULT);
        (new.sa_sigaction, new.sa_flags) = (handler, flags);
        if flags & libc::SA_NODEFER == 0 {
            libc::sigaddset(&mut new.sa_mask, number);
        }
        if sigaction(number, &new, &mut old) == 0 { old.sa_sigaction } else { libc::SIG_ERR }
    }
}

/// Functions of the kind of C's `signal`, with their flags.
macro_rules! signal_functions {
    ($($name:ident $flags:expr, $next:expr;)*) => {$(
        /// C's function; see signal(2).
        ///
        /// # Safety
        /// The handler is one.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(number: c_int, handler: usize) -> usize {
            // SAFETY: as the caller promises.
            unsafe { set(number, handler, $flags, &$next) }
        }
    )*};
}

signal_functions! {
    signal libc::SA_RESTART, SIGNAL;
    bsd_signal libc::SA_RESTART, SIGNAL;
    ssignal libc::SA_RESTART, SIGNAL;
    sysv_signal libc::SA_RESETHAND | libc::SA_NODEFER, SYSV_SIGNAL;
    __sysv_signal libc::SA_RESETHAND | libc::SA_NODEFER, SYSV_SIGNAL;
}

/// C's function; see sigset(3). It unblocks the signal as well, or blocks it.
///
/// # Safety
/// The handler is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigset(number: c_int, handler: usize) -> usize {
    type Function = unsafe extern "C" fn(c_int, usize) -> usize;
    // SAFETY: the function has this signature, or there is none. The handler is one, as the caller promises.
    unsafe {
        let answer = match SIGSET.address() {
            0 => libc::SIG_ERR,
            next => std::mem::transmute::<usize, Function>(next)(number, handler),
        };
        if handler == libc::SIG_DFL && is_watched(number) {
            sigaction(number, &DEFAULT, std::ptr::null_mut());
        }
        if answer == on_signal as *const () as usize { before(number).sa_sigaction } else { answer }
    }
}

/// The thread sends itself a signal. If that ends the process, no instruction may follow, so the files are written
/// before.
fn before_own(signal: c_int) {
    // SAFETY: there is room for the answers. All fields may be 0.
    let is_ours = is_watched(signal)
        && unsafe {
            let (mut now, mut mask): (Action, libc::sigset_t) = (DEFAULT, std::mem::zeroed());
            let is_known = next_action(signal, std::ptr::null(), &mut now) == 0;
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
            is_known && is_own(&now) && libc::sigismember(&mask, signal) == 0
        };
    if is_ours && asking::ask(signal as u8 | WAITS) {
        restore(signal);
    }
}

/// C's function.
#[unsafe(no_mangle)]
pub extern "C" fn raise(signal: c_int) -> c_int {
    before_own(signal);
    match RAISE.address() {
        0 => missing(),
        // SAFETY: the function has this signature, and takes any number.
        next => unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(c_int) -> c_int>(next)(signal) },
    }
}

/// C's function.
#[unsafe(no_mangle)]
pub extern "C" fn kill(process: libc::pid_t, signal: c_int) -> c_int {
    type Function = unsafe extern "C" fn(libc::pid_t, c_int) -> c_int;
    // SAFETY: the call has no preconditions.
    if process == unsafe { libc::getpid() } {
        before_own(signal);
    }
    match KILL.address() {
        0 => missing(),
        // SAFETY: the function has this signature, and takes any numbers.
        next => unsafe { std::mem::transmute::<usize, Function>(next)(process, signal) },
    }
}
