//! Starts the ranks of a job, and looks after them until its end.
//!
//! On this machine a [`Launch`] does everything by itself:
//!
//! ```no_run
//! use vgasnet_launch::Launch;
//!
//! let program = std::env::current_exe().expect("this program has a path");
//! let outcome = Launch::new(4, program).arg("--as-a-rank").run();
//! assert_eq!(outcome.status, 0);
//! ```
//!
//! On several hosts another launcher, such as `mpiexec`, starts the ranks. `vgasnetrun` remains as the supervisor
//! ([`supervise`]). The other launcher starts an agent ([`run_agent`]) in place of each rank, and the agent starts the
//! rank's program and looks after it:
//!
//! ```text
//!              starts            starts, on every host          starts
//! supervisor ─────────▶ mpiexec ──────────────────────▶ agent ─────────▶ rank
//!      ▲                                                ▲   ▲              │
//!      ╰──── a stream: commands, events, beats ─────────╯   ╰─ its state ──╯
//! ```
//!
//! The other launcher does not learn how ranks end: agents stay until all children have ended, and then end with status
//! 0. An agent without messages from its supervisor for some time ends its child. A supervisor without messages from an
//! agent for some time ends the job, without waiting for its rank.
//!
//! The local job, the supervisor and the agent are three roles in one loop (`event_loop`). One state machine decides for
//! all of them when processes quit and when they are killed (`exit_policy`).

#![deny(unsafe_code)]

mod address;
mod agent;
mod connection;
mod event_loop;
mod exit_policy;
#[allow(unsafe_code, reason = "a process without another program")]
mod launcher_stderr;
mod local_job;
mod memory_shortage;
mod other_launcher;
mod output;
mod pmi;
#[allow(unsafe_code, reason = "what happens between fork and exec, and signals by pidfd")]
mod process;
mod rank_process;
mod rank_table;
mod rank_view;
mod reports;
#[allow(unsafe_code, reason = "how signals are handled before they are taken over")]
mod signals;
mod supervisor;
mod terminal;
mod wire;

use std::ffi::OsStr;
use std::io::Write;
use std::time::Duration;

use vgasnet_conduit::environment;
use vgasnet_settings::HOST_TIMEOUT_VARIABLE;

pub use address::{LAUNCHER_VARIABLE, Reach};
pub use agent::run as run_agent;
pub use exit_policy::{End, Failure, Outcome};
pub use launcher_stderr::IsNoise;
pub use local_job::Launch;
pub use supervisor::{Plan, supervise};

/// The reason a job did not start, and its exit status.
struct StartError {
    status: i32,
    text: String,
}

impl StartError {
    fn new(status: i32, text: String) -> StartError {
        StartError { status, text }
    }

    /// Writes the reason to stderr. Returns the exit status.
    fn tell(self) -> i32 {
        say(&self.text);
        self.status
    }
}

/// [`Plan::host_timeout`], as set in the environment.
///
/// # Errors
/// The value is invalid; the text names the valid ones.
pub fn host_timeout() -> Result<Duration, String> {
    let value = environment::var_os(HOST_TIMEOUT_VARIABLE);
    let value = value.as_deref().map(OsStr::to_string_lossy);
    vgasnet_settings::host_timeout(value.as_deref()).map_err(|error| error.to_string())
}

/// Writes one whole line to stderr.
pub fn say(text: &str) {
    // If stderr is gone there is nobody left to tell.
    let _ = std::io::stderr().write_all(format!("vgasnetrun: {text}\n").as_bytes());
}

/// The exit status as of shells: 127 if there is no such program, 126 if it cannot be run.
fn cannot_run_status(error: &std::io::Error) -> i32 {
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

/// The name of this host.
fn host_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}
