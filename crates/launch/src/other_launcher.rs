//! The other launcher, such as `mpiexec`, as a process of the supervisor's.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;
use vgasnet_protocol::RankState;

use crate::exit_policy::{End, ExitPolicy, Graces, Order};
use crate::launcher_stderr::{IsNoise, LauncherStderr};
use crate::process::Process;
use crate::rank_view::RankView;
use crate::{StartError, cannot_run_status, terminal};

/// Time from the launcher's end until agents that vanished with it are given up. Some launchers end as soon as a rank
/// does, while the rank's agent is about to report its end.
const REPORT_GRACE: Duration = Duration::from_secs(1);

/// Interval of checks for held-up output.
const OUTPUT_LOOK: Duration = Duration::from_millis(100);

/// A started launcher.
pub(crate) struct OtherLauncher {
    process: Process,
    name: String,
    /// Its stderr, if forwarded rather than inherited.
    stderr: Option<LauncherStderr>,
    end: Option<(End, Instant)>,
    /// Its end has been judged.
    is_judged: bool,
    /// Set once it has nothing left to do.
    policy: Option<ExitPolicy>,
}

impl OtherLauncher {
    /// Starts the launcher with this signal mask. `is_noise` selects stderr lines to drop.
    pub(crate) fn start(
        mut command: Command,
        is_noise: Option<IsNoise>,
        mask: SigSet,
    ) -> Result<OtherLauncher, StartError> {
        // Signals must go through the agents.
        command.process_group(0);
        terminal::replace(&mut command);
        let name = command.get_program().to_string_lossy().into_owned();
        let stderr = is_noise.map(|is_noise| LauncherStderr::redirect(&mut command, is_noise)).transpose();
        let stderr = stderr.map_err(|error| StartError::new(1, format!("copying what {name} says: {error}")))?;
        let mut process = Process::spawn(command, mask, Signal::SIGTERM, None)
            .map_err(|error| StartError::new(cannot_run_status(&error), format!("cannot run {name}: {error}")))?;
        if let Some(pipe) = process.take_stdin() {
            terminal::forward(pipe);
        }
        Ok(OtherLauncher { process, name, stderr, end: None, is_judged: false, policy: None })
    }

    /// Readable when it has ended; none after it was reaped.
    pub(crate) fn running_fd(&self) -> Option<BorrowedFd<'_>> {
        self.process.running_fd()
    }

    /// Records its end, if it has ended.
    pub(crate) fn reap(&mut self, now: Instant) {
        self.end = self.process.reap().map(|end| (end, now)).or(self.end);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Its exit status; 1 while it runs.
    pub(crate) fn status(&self) -> i32 {
        self.end.map_or(1, |(end, _)| end.status())
    }

    /// Reports its end once, in words, after its agents had time to report their ranks' ends.
    pub(crate) fn take_end(&mut self, now: Instant) -> Option<String> {
        let (end, _) = self.end.filter(|(_, at)| !self.is_judged && now >= *at + REPORT_GRACE)?;
        self.is_judged = true;
        let how = match end {
            End::Status(status) => format!("ended with exit status {status}"),
            End::Signal(signal) => format!("was killed by signal {signal}"),
        };
        Some(format!("{} {how} before the ranks did; they were ended", self.name))
    }

    /// All its processes are about to end. `waits_in_vain`: it may wait for one that never ends.
    pub(crate) fn see_off(&mut self, waits_in_vain: bool, now: Instant) {
        let graces = if waits_in_vain { Graces::LAUNCHER_IN_VAIN } else { Graces::LAUNCHER };
        self.policy = Some(ExitPolicy::leaving(graces, now));
    }

    /// Kills it, as it is no longer useful; with `has_lost`, also its processes for lost hosts.
    pub(crate) fn dismiss(&mut self, has_lost: bool) {
        let Some(order) = self.policy.as_mut().and_then(|policy| policy.kill(Instant::now()).order) else { return };
        if has_lost { self.obey(order) } else { self.process.obey(order, RankState::Fresh) }
    }

    /// Whether it has nothing left to do.
    pub(crate) fn is_seen_off(&self) -> bool {
        self.policy.is_some()
    }

    /// Whether it has not been told to end.
    pub(crate) fn is_left_alone(&self) -> bool {
        !self.policy.as_ref().is_some_and(ExitPolicy::is_ending)
    }

    /// The user does not want to wait for its end.
    pub(crate) fn on_impatience(&mut self, now: Instant) {
        if let Some(policy) = &mut self.policy {
            policy.on_impatience(now);
        }
    }

    /// Time of the next needed [`OtherLauncher::on_time`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let look = self.is_left_alone().then(|| Instant::now() + OUTPUT_LOOK);
        self.policy.as_ref()?.deadline().into_iter().chain(look).min()
    }

    /// The order for a launcher that has nothing left to do. Pending output through it delays the order.
    pub(crate) fn on_time(&mut self, now: Instant) -> Option<Order> {
        let is_running = self.process.is_running();
        let view = RankView { pid: 0, host: None, state: RankState::Fresh, why: None, shortage: None, is_running };
        let policy = self.policy.as_mut()?;
        let order = policy.on_time(&[view], now).order;
        if order.is_none() && is_output_held_up() {
            policy.on_delay(now);
        }
        order
    }

    /// After its end: waits until all its and its ranks' output is written.
    pub(crate) fn finish_output(&self) {
        if let Some(stderr) = &self.stderr {
            stderr.finish(is_output_held_up);
        }
    }

    /// Signals the launcher and the processes it started here.
    pub(crate) fn obey(&self, order: Order) {
        let signal = if order == Order::Kill { Signal::SIGKILL } else { Signal::SIGTERM };
        // The number is still the launcher's own, since it is not reaped.
        if self.process.is_running() {
            // Fails if all have just ended.
            let _ = killpg(Pid::from_raw(self.process.pid() as i32), signal);
        }
    }
}

/// Whether the reader of this process's output, and thus of the other launcher's, is not reading: a pager, for example.
fn is_output_held_up() -> bool {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    let mut watched = [out.as_fd(), err.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLOUT));
    poll(&mut watched, PollTimeout::ZERO).is_ok() && watched.iter().any(|watched| watched.any() == Some(false))
}
