//! The end of a rank: by the client's exit, by the process's, or by the transport's.

use super::slow::tell_of_end;
use super::statistics;
use super::{exit_without_job, job, refusal_in_child, report, runtime, threads};
use crate::am;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use vgasnet_conduit::SLOW;
use vgasnet_settings::UserError;
use vgasnet_sys::{CancellationGuard, is_disturbed, thread_key};

/// How long a rank exiting with status 0 waits for the other ranks to do the same.
const LEAVE_GRACE: Duration = Duration::from_secs(2);

/// Time allowed to the program's exit handlers.
const HANDLERS_GRACE: Duration = Duration::from_secs(10);

/// Whether the process calls [`on_process_exit`] when it exits.
static HAS_HANDLER: AtomicBool = AtomicBool::new(false);

/// Key of the thread that has called [`exit`]; 0 if there is none.
static EXITING: AtomicUsize = AtomicUsize::new(0);

/// Reports an exception not caught by a function of the client. The language's runtime then ends the process.
pub fn tell_of_exception() {
    let which = if am::is_in_handler() { "a handler of Active Messages" } else { "a function of a reduction" };
    let line = format!("an exception leaves {which}, which it must not; catch it there");
    report("exception", &UserError::new(line));
}

/// Notes that the process will call [`on_process_exit`] when it exits.
pub fn note_exit_handler() {
    HAS_HANDLER.store(true, Ordering::Release);
}

/// Ends the job with `status`: at once if it is not 0, else after the end of every rank's program or a grace period.
/// The program's exit handlers run first, except in a signal handler.
pub fn exit(status: i32) -> ! {
    if let Some(line) = refusal_in_child() {
        report("vgasnet_exit", &line);
        exit_without_job(if status == 0 { 1 } else { status });
    }
    let _uncancelled = CancellationGuard::new();
    let before = EXITING.compare_exchange(0, thread_key(), Ordering::AcqRel, Ordering::Acquire);
    match before {
        Err(thread) if thread != thread_key() => loop {
            // The other thread ends the process.
            std::thread::park();
        },
        Ok(_) if HAS_HANDLER.load(Ordering::Acquire) && !is_disturbed() => {
            if let Some(job) = job() {
                limit_handlers(status);
                job.conduit.note_exit(status);
            }
            std::process::exit(status)
        }
        // An exit handler has called this, or exit handlers cannot be run.
        _ => exit_at_once(status),
    }
}

/// Ends the process if its exit handlers take too long. If the system has no thread left, they have no time limit.
fn limit_handlers(status: i32) {
    after(HANDLERS_GRACE, move || {
        let seconds = HANDLERS_GRACE.as_secs();
        let line = format!("the program's exit handlers are not through after {seconds} s; the rank ends without them");
        report("vgasnet_exit", &UserError::new(line));
        end(status)
    });
}

/// Runs `what` after some time, if the system has a thread for it. Returns once the thread has begun: leak checkers at
/// the end of the process count memory of a starting thread as lost.
fn after(time: Duration, what: impl FnOnce() + Send + 'static) {
    let has_begun = Arc::new(Barrier::new(2));
    let begins = Arc::clone(&has_begun);
    let wait = move || {
        begins.wait();
        std::thread::sleep(time);
        what();
    };
    if threads::start("vgasnet-end", wait).is_ok() {
        has_begun.wait();
    }
}

fn exit_at_once(status: i32) -> ! {
    // SAFETY: a null pointer stands for all output streams; the call has no other condition.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    end(status)
}

fn end(status: i32) -> ! {
    let Some(job) = job() else { exit_without_job(status) };
    if status == 0 && leave_soon() {
        close();
    }
    job.conduit.exit(status)
}

/// Announces the end of this rank's program, and waits a while for the other ranks. Returns whether all are through.
fn leave_soon() -> bool {
    let Some(runtime) = runtime() else { return true };
    note_end();
    let are_all_through = runtime.driver().leave(Some(Instant::now() + LEAVE_GRACE));
    if !are_all_through {
        statistics::show_own("the programs of other ranks are not over");
        // Rank 0 may show all statistics after this rank is gone.
        if let Some(job) = job().filter(|job| job.conduit.rank().0 != 0) {
            job.show_statistics();
        }
    }
    are_all_through
}

/// Called when the program returns from main, or calls the C library's exit or [`exit`]. With status 0 it waits for the
/// other ranks, which may still need this rank's pages. With another status it waits only if the user's settings leave
/// the end of the job to the program.
pub fn on_process_exit(status: i32) {
    let Some(job) = job() else { return };
    if job.conduit.is_abandoned() {
        return;
    }
    let is_by_call = EXITING.load(Ordering::Acquire) != 0;
    match status {
        _ if !is_by_call && (status == 0 || !job.config.catches_exit) => leave(),
        0 if leave_soon() => close(),
        // Other exit handlers have yet to run, if the conduit allows it.
        _ if is_by_call && !job.conduit.note_exit(status) => job.conduit.exit(status),
        _ => job.conduit.expect_failure(),
    }
}

/// Announces the end of this rank's program, once.
fn note_end() {
    static IS_NOTED: AtomicBool = AtomicBool::new(false);
    if let Some(job) = job().filter(|_| !IS_NOTED.swap(true, Ordering::AcqRel)) {
        job.conduit.note_step();
    }
}

/// Waits until every rank's program has ended, and ends the transport.
pub(super) fn leave() {
    if let Some(runtime) = runtime() {
        note_end();
        let (mut is_told, mut times) = (is_disturbed(), 0);
        // Without a watching thread: Rust 1.85 starts none while the process ends.
        while !runtime.driver().leave((!is_told).then(|| Instant::now() + SLOW)) {
            times += 1;
            is_told = tell_of_end(times);
        }
    }
    close();
}

/// Ends the transport, when all ranks are through.
fn close() {
    if let Some(job) = job() {
        job.show_statistics();
        job.conduit.close();
    }
}
