//! Rescue of a job that ends without `MPI_Finalize`: dirty bytes of files in the ranks' memory are written, as far as
//! possible within a few seconds. Without the library they would be in the system's cache, and survive the process.
//!
//! One rank has the dirty bytes of all ranks of a file's team written, while their helpers live. An existing thread
//! does so, waiting at a pipe, since a signal handler must not start one.

use crate::cached_files::{self, CachedFile};
use crate::job;
use crate::say;
use std::ffi::{CStr, c_int};
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Once, mpsc};
use std::time::{Duration, Instant};

/// Timeout of the rescue at a job's end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time for the launcher to forward a line. After an abort it may drop what it has not read.
const FORWARDING: Duration = Duration::from_millis(200);

/// How long a signalled rank whose files are written still serves other ranks, which mostly got the same signal.
const LINGER: Duration = Duration::from_millis(250);

/// Interval between attempts to get a lock. The interrupted thread may hold it.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(2);

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

/// Added to a signal's number if the signalled thread waits until the files are written.
const WAITS: u8 = 0x80;

/// In place of a signal's number: the program has called `_exit`.
const EXIT: u8 = 0;

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
static BEFORE: [AtomicPtr<libc::sigaction>; SIGNALS_MAX] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS_MAX];

/// Ends of pipes. A signal's number goes in. If the thread that sent it waits, a byte comes back when the files are written.
static ASK: AtomicI32 = AtomicI32::new(-1);
static ANSWER: AtomicI32 = AtomicI32::new(-1);

/// The process with the thread. Its children lack the thread.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Makes signals that end the process write its files first. Called when a file is cached and written; acts once.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (Some([asked, ask]), Some([answer, answered])) = (pipe(), pipe()) else { return };
        let thread = std::thread::Builder::new().name("vgasnet-mpi-end".to_owned());
        if thread.spawn(move || serve(asked, answered)).is_err() {
            return;
        }
        ASK.store(ask, Ordering::Relaxed);
        ANSWER.store(answer, Ordering::Relaxed);
        PROCESS.store(std::process::id() as i32, Ordering::Release);
        let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
        REPORTED.into_iter().chain(OTHERS).chain(real_time).for_each(take_over);
    });
}

fn pipe() -> Option<[c_int; 2]> {
    let mut ends = [0; 2];
    // SAFETY: there is room for both.
    (unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == 0).then_some(ends)
}

fn serve(asked: c_int, answered: c_int) {
    // In this thread a handler would wait for itself.
    // SAFETY: the set is filled before it is used.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
    // SAFETY: the pipes belong to this thread.
    let mut asked = unsafe { File::from_raw_fd(asked) };
    let mut byte = [0_u8; 1];
    while asked.read_exact(&mut byte).is_ok() {
        let number = c_int::from(byte[0] & !WAITS);
        if byte[0] & WAITS == 0 {
            end_by(number, &BEFORE[number as usize]);
            continue;
        }
        let why = if byte[0] & !WAITS == EXIT { "_exit".to_owned() } else { format!("signal {number}") };
        all(&why);
        // SAFETY: the pipe is open, and there is a byte.
        unsafe { libc::write(answered, byte.as_ptr().cast(), 1) };
    }
}

/// Ends the process by a signal from outside, after writing its files. Calls in progress end before, further ones never begin: a write that
/// has returned is written.
fn end_by(signal: c_int, before: &AtomicPtr<libc::sigaction>) {
    let why = format!("signal {signal}");
    let begin = Instant::now();
    let files = open_files(&why, begin + PATIENCE);
    files.iter().for_each(|file| file.through.hold_for_ever(begin + PATIENCE / 3));
    if !files.is_empty() {
        write(&files, &why, begin + PATIENCE);
        std::thread::sleep(LINGER);
    }
    // SAFETY: the old action is never freed. This thread blocks the signal, so another one gets it.
    unsafe {
        libc::sigaction(signal, before.load(Ordering::Acquire), std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
}

/// Installs the handler for a signal, and keeps the former action, unless the signal is ignored or left to the program.
fn take_over(signal: c_int) {
    // SAFETY: all fields may be 0.
    let (mut old, mut new): (libc::sigaction, libc::sigaction) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // SAFETY: there is room for the action.
    let is_known = unsafe { libc::sigaction(signal, std::ptr::null(), &mut old) } == 0;
    let is_replaced = |handler| handler == libc::SIG_DFL || REPORTED.contains(&signal) && is_report(handler);
    let Some(before) = BEFORE.get(signal as usize).filter(|_| is_known && is_replaced(old.sa_sigaction)) else {
        return;
    };
    before.store(Box::into_raw(Box::new(old)), Ordering::Release);
    new.sa_sigaction = on_signal as *const () as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler has this signature, and makes only calls allowed in a handler.
    unsafe { libc::sigaction(signal, &new, std::ptr::null_mut()) };
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
    let Some(before) = BEFORE.get(signal as usize) else { return };
    // SAFETY: these functions may be called in a handler, and their memory is valid. The old action is never freed. The
    // kernel has passed the origin.
    unsafe {
        let errno = *libc::__errno_location();
        let is_of_kernel = (*about).si_code > 0;
        let is_of_thread = OF_THREADS.contains(&signal) && (is_of_kernel || (*about).si_pid() == libc::getpid());
        let is_asked = ask(signal as u8 | if is_of_thread { WAITS } else { 0 });
        if !is_asked || is_of_thread {
            libc::sigaction(signal, before.load(Ordering::Acquire), std::ptr::null_mut());
            if !(is_of_kernel && OF_FAULTS.contains(&signal)) {
                libc::raise(signal);
            }
        }
        *libc::__errno_location() = errno;
    }
}

/// Asks the thread, if this process has it, and waits for its answer if the byte says so. May be called in a signal
/// handler.
fn ask(byte: u8) -> bool {
    // SAFETY: these functions may be called in a handler. The pipe is open once a process is noted, and there is a byte.
    unsafe {
        let is_asked = libc::getpid() == PROCESS.load(Ordering::Acquire)
            && libc::write(ASK.load(Ordering::Relaxed), [byte].as_ptr().cast(), 1) == 1;
        if is_asked && byte & WAITS != 0 {
            wait_for_answer();
        }
        is_asked
    }
}

/// The program ends the process by `_exit`, perhaps in a signal handler.
pub fn before_exit() {
    if job::is_running() {
        ask(EXIT | WAITS);
    }
}

/// # Safety
/// The pipe is open.
unsafe fn wait_for_answer() {
    let mut wait = libc::pollfd { fd: ANSWER.load(Ordering::Relaxed), events: libc::POLLIN, revents: 0 };
    let mut answer = [0_u8; 1];
    // SAFETY: the pipe is open, as the caller promises, and there is room for a byte of it.
    unsafe {
        if libc::poll(&mut wait, 1, PATIENCE.as_millis() as c_int + 1000) == 1 {
            libc::read(wait.fd, answer.as_mut_ptr().cast(), 1);
        }
    }
}

/// Whether the program has called `MPI_Abort`.
static IS_ABORTING: AtomicBool = AtomicBool::new(false);

/// MPI ends the job after an error, or for `MPI_Abort`.
pub fn on_error() {
    if !IS_ABORTING.load(Ordering::Relaxed) {
        all("an error of MPI");
    }
}

/// The program calls `MPI_Abort`.
pub fn abort() {
    IS_ABORTING.store(true, Ordering::Relaxed);
    all("MPI_Abort");
}

/// Writes the dirty bytes of any rank for this rank's files, in bounded time. A line names each file with possible
/// losses.
pub fn all(why: &str) {
    let end = Instant::now() + PATIENCE;
    let files = open_files(why, end);
    if !files.is_empty() {
        write(&files, why, end);
    }
}

/// The files to write. A line says so if another thread keeps the table of files.
fn open_files(why: &str, end: Instant) -> Vec<Arc<CachedFile>> {
    if !job::is_running() {
        return Vec::new();
    }
    until(end, cached_files::written_files).unwrap_or_else(|| {
        say(format_args!(
            "rank {}: {why}: the files that are open could not be looked at; what was written since they were last synced may be lost; \
             call MPI_File_close or MPI_Finalize before",
            job::own_rank()
        ));
        Vec::new()
    })
}

/// Repeats an attempt until it returns something or time runs out.
fn until<T>(end: Instant, attempt: impl Fn() -> Option<T>) -> Option<T> {
    loop {
        match attempt() {
            None if Instant::now() < end => std::thread::sleep(BETWEEN_ATTEMPTS),
            found => return found,
        }
    }
}

fn write(files: &[Arc<CachedFile>], why: &str, end: Instant) {
    static TURN: Mutex<()> = Mutex::new(());
    // Another thread may be writing, and ending the process now would cut it short.
    let Some(_turn) = until(end, || TURN.try_lock().ok()) else { return };
    let (done, is_done) = mpsc::channel();
    let theirs = files.to_vec();
    let thread = std::thread::Builder::new().name("vgasnet-mpi-save".to_owned());
    let worker = thread.spawn(move || {
        for (at, file) in theirs.iter().enumerate() {
            let _heard = done.send((at, file.library.rescue(file.file)));
        }
    });
    let mut left: Vec<bool> = vec![true; files.len()];
    while worker.is_ok() {
        let Ok((at, rescued)) = is_done.recv_timeout(end.saturating_duration_since(Instant::now())) else {
            break;
        };
        left[at] = rescued.is_err();
    }
    let lost: Vec<_> = files.iter().zip(left).filter_map(|(file, is_left)| is_left.then_some(file)).collect();
    for file in &lost {
        let (rank, path) = (job::own_rank(), file.path.to_string_lossy());
        say(format_args!(
            "rank {rank}: {why}: {path} is open; what was written since it was last synced may be lost; call MPI_File_close or \
             MPI_Finalize before"
        ));
    }
    if !lost.is_empty() {
        std::thread::sleep(FORWARDING);
    }
}
