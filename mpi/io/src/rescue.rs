//! Rescue of a job that ends without `MPI_Finalize`: dirty bytes of files in the ranks' memory are written, as far as
//! possible within a few seconds. Without the library they would be in the system's cache, and survive the process.
//!
//! One rank has the dirty bytes of all ranks of a file's team written, while their helpers live. An existing thread
//! does so, waiting at a pipe, since a signal handler must not start one.

use crate::asking::{PATIENCE, Pipes, WAITS, ask};
use crate::cached_files::{self, CachedFile};
use crate::{running, say, signals};
use std::ffi::c_int;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

/// After this time a line says that files are being written.
const SLOW: Duration = Duration::from_millis(400);

/// Timeout of the second pass, with writes of other ranks held.
const LATE: Duration = Duration::from_millis(500);

/// Time for the launcher to forward a line. After an abort it may drop what it has not read.
const FORWARDING: Duration = Duration::from_millis(200);

/// How long a signalled rank whose files are written still serves other ranks, which mostly got the same signal.
const LINGER: Duration = Duration::from_millis(250);

/// Interval between attempts to get a lock. The interrupted thread may hold it.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(2);

/// In place of a signal's number: the program has called `_exit`.
const EXIT: u8 = 0;

/// In place of a signal's number: the program is replaced.
const EXEC: u8 = 0x7f;

/// Makes signals that end the process write its files first. Called when a file is cached and written; acts once.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(pipes) = Pipes::open() else { return tell_unprepared("descriptors") };
        let Pipes { asked, answered, .. } = pipes;
        let thread = std::thread::Builder::new().name("vgasnet-mpi-end".to_owned());
        if thread.spawn(move || serve(asked, answered)).is_err() {
            return tell_unprepared("threads");
        }
        pipes.publish();
        signals::take_over();
    });
}

fn tell_unprepared(what: &str) {
    say(format_args!(
        "rank {}: MPI_File_open: this process may have no more {what}, so a signal that ends it loses what was written to \
         cached files and not synced; allow more, or give files the hint vgasnet_cache=disable",
        running::own_rank()
    ));
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
            end_by(number);
            continue;
        }
        all(&match byte[0] & !WAITS {
            EXIT => "_exit".to_owned(),
            EXEC => "exec".to_owned(),
            _ => format!("signal {number}"),
        });
        // SAFETY: the pipe is open, and there is a byte.
        unsafe { libc::write(answered, byte.as_ptr().cast(), 1) };
    }
}

/// Ends the process by a signal from outside, after writing its files. Calls in progress end before, further ones never begin: a write that
/// has returned is written.
fn end_by(signal: c_int) {
    let why = format!("signal {signal}");
    let begin = Instant::now();
    let files = open_files(&why, begin + PATIENCE);
    files.iter().for_each(|file| file.through.hold_for_ever(begin + PATIENCE / 3));
    if !files.is_empty() {
        write(&files, &why, begin + PATIENCE);
        std::thread::sleep(LINGER);
    }
    signals::restore(signal);
    // SAFETY: the call takes any numbers. This thread blocks the signal, so another one gets it.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// The program ends the process by `_exit`, perhaps in a signal handler.
pub fn before_exit() {
    if running::is_running() {
        ask(EXIT | WAITS);
    }
}

/// The program is about to be replaced.
pub fn before_exec() {
    if running::is_running() {
        ask(EXEC | WAITS);
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
    if !running::is_running() {
        return Vec::new();
    }
    until(end, cached_files::written_files).unwrap_or_else(|| {
        say(format_args!(
            "rank {}: {why}: the files that are open could not be looked at; what was written since they were last synced may be lost; \
             call MPI_File_close or MPI_Finalize before",
            running::own_rank()
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

/// Writes these files, and then has further writes of other ranks wait: they would be lost.
fn write(files: &[Arc<CachedFile>], why: &str, end: Instant) {
    static TURN: Mutex<()> = Mutex::new(());
    // Another thread may be writing, and ending the process now would cut it short.
    let Some(_turn) = until(end, || TURN.try_lock().ok()) else { return };
    let (done, is_done) = mpsc::channel();
    let theirs = files.to_vec();
    let thread = std::thread::Builder::new().name("vgasnet-mpi-save".to_owned());
    let worker = thread.spawn(move || {
        let mut failed = vec![false; theirs.len()];
        for holds_writes in [0, 1] {
            for (at, file) in theirs.iter().enumerate() {
                if failed[at] {
                    continue;
                }
                let rescued = file.library.rescue(file.file, holds_writes);
                failed[at] = rescued.is_err();
                let _heard = done.send((at, rescued));
            }
        }
    });
    let mut left: Vec<bool> = vec![true; files.len()];
    let mut slow = Some(Instant::now() + SLOW);
    while worker.is_ok() && left.contains(&true) {
        let now = Instant::now();
        let next = slow.unwrap_or(end).min(end);
        match is_done.recv_timeout(next.saturating_duration_since(now)) {
            Ok((at, rescued)) => left[at] &= rescued.is_err(),
            Err(RecvTimeoutError::Timeout) if slow.take().is_some() => tell_slow(files, &left, why),
            Err(_) => break,
        }
    }
    tell_lost(files, &left, why);
    // Other ranks may have ended by now, and answer no more.
    let late = end.min(Instant::now() + LATE);
    while is_done.recv_timeout(late.saturating_duration_since(Instant::now())).is_ok() {}
}

/// A launcher may kill the process before its files are written.
fn tell_slow(files: &[Arc<CachedFile>], left: &[bool], why: &str) {
    let first = files.iter().zip(left).find_map(|(file, is_left)| is_left.then(|| file.path.to_string_lossy()));
    say(format_args!(
        "rank {}: {why}: writing what was not synced of {}; it is lost if the launcher kills this rank now",
        running::own_rank(),
        first.unwrap_or_default()
    ));
}

/// Names the files whose bytes may be lost.
fn tell_lost(files: &[Arc<CachedFile>], left: &[bool], why: &str) {
    let lost: Vec<_> = files.iter().zip(left).filter_map(|(file, is_left)| is_left.then_some(file)).collect();
    for file in &lost {
        let (rank, path) = (running::own_rank(), file.path.to_string_lossy());
        say(format_args!(
            "rank {rank}: {why}: {path} is open; what was written since it was last synced may be lost; call MPI_File_close or \
             MPI_Finalize before"
        ));
    }
    if !lost.is_empty() {
        std::thread::sleep(FORWARDING);
    }
}
