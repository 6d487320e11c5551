//! A job that is about to end without `MPI_Finalize`: what ranks have in memory of files is written as far as that can be done in a few
//! seconds. Without the library it would be in the system's cache, where the end of a process loses nothing.
//!
//! One rank has all written that any rank of a file's team has, while their helpers live. A thread does so that has been there before, since a
//! handler of signals may not start one: it waits at a pipe.

use crate::files;
use crate::job;
use crate::say;
use std::ffi::c_int;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, Once, mpsc};
use std::time::Duration;

/// How long a job's end waits.
const PATIENCE: Duration = Duration::from_secs(3);

/// Signals that end a process. The first ones are the program's affair if it has a handler.
const SIGNALS: [c_int; 10] = [
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

/// Those from here on MPI may have a handler for, which shows where it came from, and ends the process.
const OF_FAULTS: usize = 5;

/// What each did before.
static BEFORE: [AtomicPtr<libc::sigaction>; SIGNALS.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS.len()];

/// Ends of pipes: a signal's number goes in, and a byte comes back when its files are written.
static ASK: AtomicI32 = AtomicI32::new(-1);
static ANSWER: AtomicI32 = AtomicI32::new(-1);

/// The process that has the thread. A child has it not.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Starts the library, and keeps the program's actions for the signals that end a job: vgasnet would pass them on as SIGQUIT, which this
/// module handles.
pub fn keeping_terminations<T>(start: impl FnOnce() -> T) -> T {
    let before = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP].map(|signal| {
        // SAFETY: all fields may be 0, and there is room for the action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: as before.
        let is_known = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) } == 0;
        (signal, is_known.then_some(action))
    });
    let started = start();
    for (signal, action) in before {
        let Some(action) = action else { continue };
        // SAFETY: the action was in force for this signal.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
    started
}

/// Has signals that end the process write its files first. Once; a file is cached and written.
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
        (0..SIGNALS.len()).for_each(take_over);
    });
}

fn pipe() -> Option<[c_int; 2]> {
    let mut ends = [0; 2];
    // SAFETY: there is room for both.
    (unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == 0).then_some(ends)
}

fn serve(asked: c_int, answered: c_int) {
    // A handler in this thread would wait for itself.
    // SAFETY: the set is filled before it is used.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
    // SAFETY: the pipes are this thread's.
    let mut asked = unsafe { File::from_raw_fd(asked) };
    let mut signal = [0_u8; 1];
    while asked.read_exact(&mut signal).is_ok() {
        all(&format!("signal {}", signal[0]));
        // SAFETY: the pipe is open, and there is a byte.
        unsafe { libc::write(answered, signal.as_ptr().cast(), 1) };
    }
}

/// Keeps what the process does at a signal, unless that is nothing, or the program's affair.
fn take_over(at: usize) {
    let (signal, before) = (SIGNALS[at], &BEFORE[at]);
    // SAFETY: all fields may be 0.
    let (mut old, mut new): (libc::sigaction, libc::sigaction) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // SAFETY: there is room for the action.
    let is_known = unsafe { libc::sigaction(signal, std::ptr::null(), &mut old) } == 0;
    let is_left = old.sa_sigaction == libc::SIG_IGN || at < OF_FAULTS && old.sa_sigaction != libc::SIG_DFL;
    if !is_known || is_left {
        return;
    }
    before.store(Box::into_raw(Box::new(old)), Ordering::Release);
    new.sa_sigaction = on_signal as *const () as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler has this signature, and calls what a handler may call.
    unsafe { libc::sigaction(signal, &new, std::ptr::null_mut()) };
}

/// Has the thread write the files, waits for it, and lets the signal do what it did before.
extern "C" fn on_signal(signal: c_int, about: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let Some(before) = SIGNALS.iter().position(|its| *its == signal).map(|at| &BEFORE[at]) else { return };
    // SAFETY: these functions may be called in a handler; the memory that they get is there. The old action stays for ever.
    unsafe {
        let errno = *libc::__errno_location();
        if libc::getpid() == PROCESS.load(Ordering::Acquire) {
            let (byte, mut answer) = ([signal as u8], [0_u8; 1]);
            if libc::write(ASK.load(Ordering::Relaxed), byte.as_ptr().cast(), 1) == 1 {
                let mut wait = libc::pollfd { fd: ANSWER.load(Ordering::Relaxed), events: libc::POLLIN, revents: 0 };
                if libc::poll(&mut wait, 1, PATIENCE.as_millis() as c_int + 1000) == 1 {
                    libc::read(wait.fd, answer.as_mut_ptr().cast(), 1);
                }
            }
        }
        libc::sigaction(signal, before.load(Ordering::Acquire), std::ptr::null_mut());
        // A fault comes again by itself.
        let is_fault =
            [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL].contains(&signal) && (*about).si_code > 0;
        if !is_fault {
            libc::raise(signal);
        }
        *libc::__errno_location() = errno;
    }
}

/// Writes what any rank has of this rank's files, in bounded time. A line names those of which something may be lost.
pub fn all(why: &str) {
    static TURN: Mutex<()> = Mutex::new(());
    let Ok(_turn) = TURN.try_lock() else { return };
    let Some(files) = files::written_files().filter(|files| !files.is_empty()) else { return };
    let (done, is_done) = mpsc::channel();
    let theirs = files.clone();
    let thread = std::thread::Builder::new().name("vgasnet-mpi-save".to_owned());
    let worker = thread.spawn(move || {
        for (at, file) in theirs.iter().enumerate() {
            let _heard = done.send((at, file.library.rescue(file.file)));
        }
    });
    let mut left: Vec<bool> = vec![true; files.len()];
    let end = std::time::Instant::now() + PATIENCE;
    while worker.is_ok() {
        let Ok((at, rescued)) = is_done.recv_timeout(end.saturating_duration_since(std::time::Instant::now())) else {
            break;
        };
        left[at] = rescued.is_err();
    }
    for (file, _) in files.iter().zip(left).filter(|(_, is_left)| *is_left) {
        let (rank, path) = (job::own_rank(), file.path.to_string_lossy());
        say(format_args!(
            "rank {rank}: {why}: {path} is open; what was written since it was last synced may be lost; call MPI_File_close or \
             MPI_Finalize before"
        ));
    }
}
