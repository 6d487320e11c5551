//! The end of a rank: by the client's exit, by the process's, or by the network's.

use super::{exit_without_job, job, refusal_in_child, report, runtime};
use std::time::{Duration, Instant};

/// How long a rank that exits with status 0 waits for the others to do the same.
const LEAVE_GRACE: Duration = Duration::from_secs(2);

/// Ends the job with `status`: at once if that is not 0, else when every rank's program is over or a grace period has
/// passed.
pub fn exit(status: i32) -> ! {
    if let Some(line) = refusal_in_child() {
        report("vgasnet_exit", &line);
        exit_without_job(if status == 0 { 1 } else { status });
    }
    // SAFETY: a null pointer stands for all output streams; the call has no other condition.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    let Some(job) = job() else { std::process::exit(status) };
    if status == 0 {
        if let Some(runtime) = runtime() {
            let late = Instant::now() + LEAVE_GRACE;
            std::thread::spawn(move || {
                std::thread::sleep(LEAVE_GRACE);
                runtime.driver().notify_unpinned();
            });
            if runtime.driver().leave(&|| Instant::now() >= late) {
                job.conduit.close();
            }
        }
    }
    job.conduit.exit(status)
}

/// Called when the program returns from main or calls the C library's exit. With status 0 it waits for the other ranks,
/// which may still need this rank's pages.
pub fn on_process_exit(status: i32) {
    if status == 0 {
        leave();
    }
}

/// Waits until every rank's program is over, and ends the transport.
pub(super) fn leave() {
    if let Some(runtime) = runtime() {
        runtime.driver().leave(&|| false);
    }
    if let Some(job) = job() {
        job.conduit.close();
    }
}
