//! How the thread of [`crate::rescue`] is asked to write the files, also by a signal handler: through a pipe.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Timeout of the rescue at a job's end.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// The answer comes at most this much later.
const AFTER_PATIENCE: Duration = Duration::from_secs(1);

/// Added to a signal's number if the signalled thread waits until the files are written.
pub const WAITS: u8 = 0x80;

/// Ends of pipes. A signal's number goes in. If the thread that sent it waits, a byte comes back when the files are written.
static ASK: AtomicI32 = AtomicI32::new(-1);
static ANSWER: AtomicI32 = AtomicI32::new(-1);

/// The process with the thread. Its children lack the thread.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Two pipes: by one the thread is asked, by the other it answers.
#[derive(Debug)]
pub struct Pipes {
    ask: c_int,
    answer: c_int,
    /// The thread reads it.
    pub asked: c_int,
    /// The thread writes it.
    pub answered: c_int,
}

impl Pipes {
    /// `None` if the process may have no more descriptors.
    pub fn open() -> Option<Pipes> {
        let [asked, ask] = pipe()?;
        let Some([answer, answered]) = pipe() else {
            // SAFETY: nobody knows of them.
            [asked, ask].into_iter().for_each(|end| _ = unsafe { libc::close(end) });
            return None;
        };
        Some(Pipes { ask, answer, asked, answered })
    }

    /// From now on the thread may be asked.
    pub fn publish(self) {
        ASK.store(self.ask, Ordering::Relaxed);
        ANSWER.store(self.answer, Ordering::Relaxed);
        PROCESS.store(std::process::id() as i32, Ordering::Release);
    }
}

fn pipe() -> Option<[c_int; 2]> {
    let mut ends = [0; 2];
    // SAFETY: there is room for both.
    (unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == 0).then_some(ends)
}

/// Whether this process writes its files at such a signal. A child does not.
pub fn is_prepared() -> bool {
    // SAFETY: the call has no preconditions.
    (unsafe { libc::getpid() }) == PROCESS.load(Ordering::Acquire)
}

/// Asks the thread, if this process has it, and waits for its answer if the byte says so. May be called in a signal
/// handler.
pub fn ask(byte: u8) -> bool {
    // SAFETY: these functions may be called in a handler. The pipe is open once a process is noted, and there is a byte.
    unsafe {
        let is_asked = is_prepared() && libc::write(ASK.load(Ordering::Relaxed), [byte].as_ptr().cast(), 1) == 1;
        if is_asked && byte & WAITS != 0 {
            wait_for_answer();
        }
        is_asked
    }
}

/// Waits for the answer. No handler runs meanwhile: it might end the process.
///
/// # Safety
/// The pipe is open.
unsafe fn wait_for_answer() {
    let mut wait = libc::pollfd { fd: ANSWER.load(Ordering::Relaxed), events: libc::POLLIN, revents: 0 };
    let mut answer = [0_u8; 1];
    let end = Instant::now() + PATIENCE + AFTER_PATIENCE;
    // SAFETY: these functions may be called in a handler. The pipe is open, as the caller promises, and there is room
    // for a byte of it. The sets are filled before they are used.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
        // A process that was stopped meanwhile goes on here.
        let mut ready = -1;
        while ready < 0 && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            ready = libc::poll(&mut wait, 1, left.as_millis() as c_int);
        }
        if ready == 1 {
            libc::read(wait.fd, answer.as_mut_ptr().cast(), 1);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
    }
}
