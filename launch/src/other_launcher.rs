//! The other launcher, such as `mpiexec`, as a process of the supervisor's.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;
use vgasnet_protocol::RankState;

use crate::exit_policy::{End, ExitPolicy, Graces, Order, RankView};
use crate::launcher_stderr::{IsNoise, LauncherStderr};
use crate::process::Process;
use crate::{StartError, cannot_run_status, terminal};

/// From the launcher's end until the agents that vanished with it are given up. Some launchers end as soon as a rank does, while the
/// rank's agent is about to say how it ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How often to look whether the output is held up.
const OUTPUT_LOOK: Duration = Duration::from_millis(100);

/// A launcher that has started.
pub(crate) struct OtherLauncher {
    process: Process,
    name: String,
    /// Its stderr, where that does not go straight to the user.
    stderr: Option<LauncherStderr>,
    end: Option<(End, Instant)>,
    /// Its end has been judged.
    is_judged: bool,
    /// Set once it has nothing left to do.
    policy: Option<ExitPolicy>,
}

impl OtherLauncher {
    /// Starts the launcher with this signal mask. With `is_noise`, its lines that say nothing are kept from the user.
    pub(crate) fn start(
        mut command: Command,
        is_noise: Option<IsNoise>,
        mask: SigSet,
    ) -> Result<OtherLauncher, StartError> {
        // Signals are to take the way through the agents.
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

    /// Takes in its end.
    pub(crate) fn reap(&mut self, now: Instant) {
        self.end = self.process.reap().map(|end| (end, now)).or(self.end);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// The exit status for its end; 1 before.
    pub(crate) fn status(&self) -> i32 {
        self.end.map_or(1, |(end, _)| end.status())
    }

    /// Says once that it has ended, in words, after its agents had time to say how their ranks ended.
    pub(crate) fn take_end(&mut self, now: Instant) -> Option<String> {
        let (end, _) = self.end.filter(|(_, at)| !self.is_judged && now >= *at + LAST_WORDS)?;
        self.is_judged = true;
        let how = match end {
            End::Status(status) => format!("ended with exit status {status}"),
            End::Signal(signal) => format!("was killed by signal {signal}"),
        };
        Some(format!("{} {how} before the ranks did; they were ended", self.name))
    }

    /// All its processes are about to end. With `waits_in_vain`, it may wait for one that never ends.
    pub(crate) fn see_off(&mut self, waits_in_vain: bool, now: Instant) {
        let graces = if waits_in_vain { Graces::LAUNCHER_IN_VAIN } else { Graces::LAUNCHER };
        self.policy = Some(ExitPolicy::leaving(graces, now));
    }

    /// Kills it, which is of no use any more; with `has_lost`, also the processes by which it reaches hosts that are lost.
    pub(crate) fn dismiss(&mut self, has_lost: bool) {
        let Some(order) = self.policy.as_mut().and_then(|policy| policy.kill(Instant::now()).order) else { return };
        if has_lost { self.obey(order) } else { self.process.obey(order, RankState::Fresh) }
    }

    /// Whether it has nothing left to do.
    pub(crate) fn is_seen_off(&self) -> bool {
        self.policy.is_some()
    }

    /// Whether nobody has told it to end.
    pub(crate) fn is_left_alone(&self) -> bool {
        !self.policy.as_ref().is_some_and(ExitPolicy::is_ending)
    }

    /// The user does not want to wait for its end.
    pub(crate) fn on_impatience(&mut self, now: Instant) {
        if let Some(policy) = &mut self.policy {
            policy.on_impatience(now);
        }
    }

    /// When [`OtherLauncher::on_time`] is next needed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let look = self.is_left_alone().then(|| Instant::now() + OUTPUT_LOOK);
        self.policy.as_ref()?.deadline().into_iter().chain(look).min()
    }

    /// The order for a launcher that has nothing left to do. Output on its way through it is a reason to wait.
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

    /// It has ended: waits until all is written that it and its ranks have said.
    pub(crate) fn finish_output(&self) {
        if let Some(stderr) = &self.stderr {
            stderr.finish(is_output_held_up);
        }
    }

    /// Reaches the launcher and the processes that it has started here.
    pub(crate) fn obey(&self, order: Order) {
        let signal = if order == Order::Kill { Signal::SIGKILL } else { Signal::SIGTERM };
        // The number is the launcher's own, since it is not reaped.
        if self.process.is_running() {
            // It fails when all have just ended.
            let _ = killpg(Pid::from_raw(self.process.pid() as i32), signal);
        }
    }
}

/// Whether the reader of this process's output, and so of the other launcher's, does not read: a pager, say.
fn is_output_held_up() -> bool {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    let mut watched = [out.as_fd(), err.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLOUT));
    poll(&mut watched, PollTimeout::ZERO).is_ok() && watched.iter().any(|watched| watched.any() == Some(false))
}
