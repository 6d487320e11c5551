//! Rescue of a job that ends without `MPI_Finalize`: dirty bytes of files in the ranks' memory are written, as far as
//! possible within a few seconds. Without the library they would be in the system's cache, and survive the process.
//!
//! The rank that ends has the dirty bytes of all ranks of its files' teams written, while their helpers live. Files that
//! it has not opened are rescued by their first ranks, which it asks, and for which it waits. An existing thread does
//! all this, waiting at a pipe, since a signal handler must not start one.

use crate::asking::{self, PATIENCE, Pipes, WAITS, ask};
use crate::cached_files::{self, CachedFile, is_closing};
use crate::vgasnet::Library;
use crate::{alternate_stack, running, say, signals, threads};
use std::ffi::c_int;
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

/// After this time a line says that files are being written.
const SLOW: Duration = Duration::from_millis(400);

/// How long other ranks are waited for that have not answered: they may have ended.
const LATE: Duration = Duration::from_millis(500);

/// Interval between questions to other ranks.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(5);

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

/// Makes signals that end the process write its files first. Called when files may be cached; acts once, and once for
/// each thread.
pub fn prepare() {
    static ONCE: Once = Once::new();
    alternate_stack::prepare();
    ONCE.call_once(|| {
        let Some(pipes) = Pipes::open() else { return tell_unprepared("descriptors") };
        let Pipes { asked, answered, .. } = pipes;
        if threads::start("vgasnet-mpi-end", move || serve(asked, answered)).is_err() {
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
    // The thread gets no signal: a handler would wait for it.
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
    if running::is_running() {
        let files = open_files(&why, begin + PATIENCE);
        files.iter().for_each(|file| file.through.hold_for_ever(begin + PATIENCE / 3));
        write(&files, &why, begin + PATIENCE, Whose::OfJob);
        if !files.is_empty() {
            std::thread::sleep(LINGER);
        }
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

/// The program is about to be replaced. Returns whether this process had anything to rescue.
pub fn before_exec() -> bool {
    running::is_running() && ask(EXEC | WAITS)
}

/// It was not replaced: the job goes on. Keeps `errno`.
#[cold]
pub fn after_failed_exec() {
    // SAFETY: the place is the thread's own.
    let errno = unsafe { *libc::__errno_location() };
    IS_ENDED_HERE.store(false, Ordering::Relaxed);
    let (done, is_done) = mpsc::channel();
    let go_on = move || {
        running::library().into_iter().for_each(Library::go_on);
        let _heard = done.send(());
    };
    let _no_thread = threads::start("vgasnet-mpi-job", go_on);
    // Ranks that have ended answer no more.
    let _all_have_answered = is_done.recv_timeout(LATE);
    // SAFETY: the place is the thread's own.
    unsafe { *libc::__errno_location() = errno };
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

/// Writes the dirty bytes of any rank for this rank's files, in bounded time, and has other ranks do the same for theirs.
/// A line names each file with possible losses.
pub fn all(why: &str) {
    if running::is_running() {
        let end = Instant::now() + PATIENCE;
        write(&open_files(why, end), why, end, Whose::OfJob);
    }
}

/// This rank ends the job, and asks the others.
static IS_ENDED_HERE: AtomicBool = AtomicBool::new(false);

/// If another rank is about to end the job, rescues the files whose first rank this is, in a new thread. Called
/// regularly.
pub fn if_job_ends() {
    /// The other rank has been heard, and has not gone on since.
    static IS_HEARD: AtomicBool = AtomicBool::new(false);
    let is_ending = running::library().is_some_and(Library::is_job_ending);
    if !is_ending || IS_ENDED_HERE.load(Ordering::Relaxed) {
        IS_HEARD.store(is_ending, Ordering::Relaxed);
    } else if !IS_HEARD.swap(true, Ordering::Relaxed) {
        let (why, end) = ("the end of another rank", Instant::now() + PATIENCE);
        let rescue = move || {
            let mut files = open_files(why, end);
            files.retain(|file| file.comm.rank == 0);
            write(&files, why, end, Whose::OfRank);
        };
        let _no_thread = threads::start("vgasnet-mpi-save", rescue);
    }
}

/// The files to write. A line says so if another thread keeps the table of files.
fn open_files(why: &str, end: Instant) -> Vec<Arc<CachedFile>> {
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

/// The files that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// Those of this rank.
    OfRank,
    /// And those of the other ranks.
    OfJob,
}

/// What is done for a rescue. Files are named by their places.
enum Step {
    /// A file is written.
    Written(usize, bool),
    /// Further writes of a file wait: its ranks live.
    Held(usize),
    /// A file is written again, with what came before its writes waited.
    WrittenAgain(usize, bool),
    /// All ranks have answered, and have files to rescue.
    Answered,
}

/// Writes these files, and then has further writes of other ranks wait: they would be lost.
fn write(files: &[Arc<CachedFile>], why: &str, end: Instant, whose: Whose) {
    static TURN: Mutex<()> = Mutex::new(());
    // Another thread may be writing, and ending the process now would cut it short.
    let Some(_turn) = until(end, || TURN.try_lock().ok()) else { return };
    let (done, steps) = mpsc::channel();
    if whose == Whose::OfJob && asking::is_prepared() {
        IS_ENDED_HERE.store(true, Ordering::Relaxed);
        let done = done.clone();
        let _no_thread = threads::start("vgasnet-mpi-job", move || end_job(&done));
    }
    let theirs = files.to_vec();
    let _no_thread = threads::start("vgasnet-mpi-save", move || write_twice(&theirs, end, &done));
    let mut progress = Progress { first: vec![None; files.len()], second: vec![Some(true); files.len()] };
    let mut slow = Some(Instant::now() + SLOW);
    let mut late = progress.deadline(end);
    loop {
        let next = slow.filter(|_| progress.is_first_pass()).unwrap_or(late).min(late);
        match steps.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(step) => late = progress.take(step, end),
            Err(RecvTimeoutError::Timeout) if next < late && slow.take().is_some() => {
                tell_slow(files, &progress.first, why);
            }
            Err(_) => break,
        }
    }
    tell_lost(files, &progress, why);
}

/// How far the files are written: by the first pass, and by the second, which counts if its writes were held.
struct Progress {
    first: Vec<Option<bool>>,
    second: Vec<Option<bool>>,
}

impl Progress {
    fn is_first_pass(&self) -> bool {
        self.first.contains(&None)
    }

    /// Takes a step. Returns how long the next one is waited for.
    fn take(&mut self, step: Step, end: Instant) -> Instant {
        match step {
            Step::Written(at, is_written) => self.first[at] = Some(is_written),
            Step::Held(at) => self.second[at] = None,
            Step::WrittenAgain(at, is_written) => self.second[at] = Some(is_written),
            Step::Answered => {}
        }
        self.deadline(end)
    }

    /// Ranks that have not answered may have ended, unless they are known to live.
    fn deadline(&self, end: Instant) -> Instant {
        let is_alive = self.is_first_pass() || self.second.contains(&None);
        if is_alive { end } else { end.min(Instant::now() + LATE) }
    }

    fn is_lost(&self, at: usize) -> bool {
        self.first[at] != Some(true) || self.second[at] != Some(true)
    }
}

fn write_twice(files: &[Arc<CachedFile>], end: Instant, done: &Sender<Step>) {
    let mut left = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let is_written = rescue(file, end);
        left.extend(is_written.then_some((at, file)));
        let _heard = done.send(Step::Written(at, is_written));
    }
    for (at, file) in left {
        if file.library.hold_writes(file.file).is_ok() {
            let _heard = done.send(Step::Held(at));
            let _heard = done.send(Step::WrittenAgain(at, rescue(file, end)));
        }
    }
    running::library().into_iter().for_each(Library::note_rescue);
}

/// Writes a file. If the program closes it meanwhile, the close writes it, or tells the program.
fn rescue(file: &Arc<CachedFile>, end: Instant) -> bool {
    let is_closed = || !cached_files::is_open(file) && until(end, || (!is_closing(file)).then_some(())).is_some();
    file.library.rescue(file.file).is_ok() || is_closed()
}

/// Has the other ranks rescue their files, and waits for them.
fn end_job(done: &Sender<Step>) {
    while let Some(library) = running::library() {
        if library.end_job() == 0 || done.send(Step::Answered).is_err() {
            break;
        }
        std::thread::sleep(BETWEEN_QUESTIONS);
    }
    // Others that end the job at the same time ask this rank once more.
    std::thread::sleep(2 * BETWEEN_QUESTIONS);
}

/// A launcher may kill the process before its files are written.
fn tell_slow(files: &[Arc<CachedFile>], first: &[Option<bool>], why: &str) {
    let first =
        files.iter().zip(first).find_map(|(file, written)| written.is_none().then(|| file.path.to_string_lossy()));
    say(format_args!(
        "rank {}: {why}: writing what was not synced of {}; it is lost if the launcher kills this rank now",
        running::own_rank(),
        first.unwrap_or_default()
    ));
}

/// Names the files whose bytes may be lost.
fn tell_lost(files: &[Arc<CachedFile>], progress: &Progress, why: &str) {
    let lost: Vec<_> = files.iter().enumerate().filter(|(at, _)| progress.is_lost(*at)).map(|(_, file)| file).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(files: usize) -> Progress {
        Progress { first: vec![None; files], second: vec![Some(true); files] }
    }

    /// Ranks that have not answered are waited for briefly, and those that live as long as there is time.
    #[test]
    fn ranks_that_live_are_waited_for() {
        let (end, mut progress) = (Instant::now() + 10 * LATE, progress(2));
        assert_eq!(progress.take(Step::Written(0, true), end), end);
        assert!(progress.take(Step::Written(1, true), end) < end);
        assert_eq!(progress.take(Step::Held(0), end), end);
        assert_eq!(progress.take(Step::Answered, end), end, "a file is being written again");
        assert!(progress.take(Step::WrittenAgain(0, true), end) < end);
    }

    #[test]
    fn a_file_is_lost_that_is_not_written_again_though_its_writes_are_held() {
        let (end, mut progress) = (Instant::now(), progress(4));
        assert!(progress.is_lost(0), "nothing is written");
        for at in 0..3 {
            progress.take(Step::Written(at, true), end);
        }
        progress.take(Step::Written(3, false), end);
        progress.take(Step::Held(1), end);
        progress.take(Step::Held(2), end);
        progress.take(Step::WrittenAgain(2, true), end);
        assert_eq!([0, 1, 2, 3].map(|at| progress.is_lost(at)), [false, true, false, true]);
    }
}
