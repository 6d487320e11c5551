//! Launching ranks on several hosts: another launcher, such as `mpiexec`, starts them, and this one looks after them.
//!
//! `vgasnetrun` stays as the supervisor. It has the other launcher start an agent in place of each rank, and the agent starts
//! the rank's program and looks after it:
//!
//! ```text
//!              starts            starts, on every host          starts
//! supervisor ─────────▶ mpiexec ──────────────────────▶ agent ─────────▶ rank
//!      ▲                                                ▲   ▲              │
//!      ╰──── a stream: orders, news, a beat a second ───╯   ╰── its life ──╯
//! ```
//!
//! What is to be done when ranks end is decided by the same state machine as on one machine, [`vgasnet_smp::launch::Verdict`].
//! The other launcher learns nothing of it: an agent whose child has ended stays until all have, and then all agents end with
//! status 0.
//!
//! Each side takes the other for lost when it has not heard of it for some time. An agent that has lost its supervisor ends its
//! child; a supervisor that has lost an agent ends the job, and does not wait for that rank.
//!
//! Where no other launcher is needed, because the first rank makes the others, `vgasnetrun` looks after them all by itself.

#![deny(unsafe_code)]

mod address;
mod agent;
mod connection;
mod family;
mod pmi;
mod reports;
mod roll;
mod supervisor;
mod terminal;
mod wire;

use std::time::Duration;

use vgasnet_smp::launch::HOST_TIMEOUT_S;

pub use address::LAUNCHER_VARIABLE;
pub use agent::run as run_agent;
pub use family::supervise_family;
pub use supervisor::{Plan, supervise};

/// The environment variable for [`Plan::host_timeout`].
pub const TIMEOUT_VARIABLE: &str = "VGASNET_HOST_TIMEOUT";

/// [`Plan::host_timeout`] where nobody sets it, in seconds.
const TIMEOUT_DEFAULT_S: u64 = 30;

/// How often each side tells the other that it is there.
const BEAT: Duration = Duration::from_secs(1);

/// The time-out that the environment asks for.
///
/// # Errors
/// What is asked for makes no sense; the text says what does.
pub fn host_timeout() -> Result<Duration, String> {
    let Some(value) = std::env::var_os(TIMEOUT_VARIABLE) else { return Ok(Duration::from_secs(TIMEOUT_DEFAULT_S)) };
    let value = value.to_string_lossy();
    let seconds = value.parse().ok().filter(|seconds| HOST_TIMEOUT_S.contains(seconds));
    let why = || {
        format!(
            "{TIMEOUT_VARIABLE}={value} is not a number of seconds; allowed: {} to {}",
            HOST_TIMEOUT_S.start(),
            HOST_TIMEOUT_S.end()
        )
    };
    seconds.map(Duration::from_secs).ok_or_else(why)
}

/// How long this process, which looks up at every beat, did not run. A machine that stands still must not take the silence
/// of that time for the others'.
fn stood_still(since_last_look: Duration) -> Duration {
    if since_last_look > 3 * BEAT { since_last_look - BEAT } else { Duration::ZERO }
}

/// The name of this host.
fn host_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}
