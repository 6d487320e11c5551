//! When a job quits and when its processes are killed. No processes and no clocks: ends, signals and times come in,
//! orders and lines to say go out. All grace periods are here.
//!
//! ```text
//!            a rank fails, or the job is broken, or the time limit is over
//! Running ────────────────────────────────── quit ────────────────▶ Ending ── 3 s: SIGKILL ──▶ Killed
//!    │ ╲  SIGINT, SIGTERM (forwarded)                                ▲   ▲
//!    │  ╰───────────────▶ Interrupted ── 5 s: SIGKILL ──▶ Killed     │   │
//!    │ a rank leaves the job in peace                                │   │
//!    ├──────────────────▶ Leaving ────── 10 s: quit ─────────────────┤   │
//!    │ a rank just ends, with status 0                               │   │
//!    ├──────────────────▶ Deserted ───── 2 s: quit, a failure ───────╯   │
//!    │ an agent has lost its supervisor                                  │
//!    ╰────────────────────────────────── SIGTERM ────────────────────────╯
//!
//! Killed ── 60 s: not waited for ──▶ GivenUp
//! ```
//!
//! Quitting sends SIGQUIT, which GASNet's clients may handle to clean up, or SIGTERM to a process that is no rank yet.
//!
//! The first failure decides the status. From `Ending` on, how ranks end no longer matters: they were told to.
//!
//! There are three policies: a launcher's for its job, an agent's for its one rank, and a launcher's for the other
//! launcher once it has nothing left to do. They differ in their [`Graces`].

use std::time::{Duration, Instant};

use vgasnet_protocol::{RankState, messages};

use crate::rank_view::{RankView, name_ranks};

/// Grace periods of processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Graces {
    /// From the first orderly end to quitting the others.
    leave: Duration,
    /// From the first end without leaving the job to quitting the others.
    desert: Duration,
    /// From a user's signal to SIGKILL.
    interrupt: Duration,
    /// From quitting to SIGKILL.
    quit: Duration,
}

impl Graces {
    const fn of_seconds(leave: u64, interrupt: u64, quit: u64) -> Graces {
        let seconds = Duration::from_secs;
        Graces { leave: seconds(leave), desert: seconds(2), interrupt: seconds(interrupt), quit: seconds(quit) }
    }

    /// The ranks of a job.
    pub(crate) const JOB: Graces = Graces::of_seconds(10, 5, 3);
    /// A rank whose agent has lost its supervisor.
    pub(crate) const ORPHAN: Graces = Graces { quit: Duration::from_secs(1), ..Graces::JOB };
    /// Another launcher, after all its processes.
    pub(crate) const LAUNCHER: Graces = Graces::of_seconds(5, 5, 1);
    /// Another launcher possibly waiting in vain: for a lost host, or for processes that became no ranks.
    pub(crate) const LAUNCHER_IN_VAIN: Graces = Graces::of_seconds(1, 1, 1);
}

/// A launcher this late was stopped, and possibly the ranks too: the grace periods start again.
const LATE: Duration = Duration::from_secs(1);

/// Time from SIGKILL until the user is told of processes still running. The system first reclaims their memory and
/// files.
const KILLED_SLOW: Duration = Duration::from_secs(5);

/// Time from SIGKILL until a process is given up: the system holds it, for example for an unresponsive disk.
const KILLED_PATIENCE: Duration = Duration::from_secs(60);

/// Exit status at the time limit, as of timeout(1).
const TIME_LIMIT_STATUS: i32 = 124;

messages! {
    /// The end of a rank.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum End {
        /// It exited with this status.
        0 => Status(status: i32),
        /// This signal killed it.
        1 => Signal(signal: i32),
    }
}

impl End {
    /// The exit status as reported by a shell.
    pub(crate) fn status(self) -> i32 {
        match self {
            End::Status(status) => status,
            End::Signal(signal) => 128 + signal,
        }
    }
}

/// The rank whose end ended the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The rank.
    pub rank: u32,
    /// Its process, now gone.
    pub pid: u32,
    /// How it ended.
    pub end: End,
}

/// The end of a job. No rank is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit status for a launcher: 0, or the status of the first failed rank (128 + n for signal n), or 124 at the
    /// time limit, or 126 or 127 if the program could not be run.
    pub status: i32,
    /// The first failed rank.
    pub failure: Option<Failure>,
}

/// A decision: an order for every running rank, and a line for the user.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The order for every running rank.
    pub(crate) order: Option<Order>,
    /// The line for the user.
    pub(crate) say: Option<String>,
}

messages! {
    /// An order for a rank.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Order {
        /// A signal received by the launcher.
        0 => Forward(signal: i32),
        /// Clean up and end.
        1 => Quit,
        /// SIGKILL.
        2 => Kill,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Leaving { first: Option<usize>, quit_at: Instant },
    Deserted { rank: usize, quit_at: Instant },
    Interrupted { signal: i32, kill_at: Instant },
    Ending { kill_at: Instant },
    Killed { since: Instant, look_at: Instant },
    GivenUp,
}

/// The launcher's judgement of a job.
#[derive(Debug)]
pub(crate) struct ExitPolicy {
    graces: Graces,
    phase: Phase,
    outcome: Outcome,
    time_limit: Option<(Duration, Instant)>,
    /// A rank that ended successfully without ever initialising.
    never_initialised: Option<usize>,
}

impl ExitPolicy {
    /// A policy for starting processes, with a time limit and its deadline.
    pub(crate) fn new(graces: Graces, time_limit: Option<(Duration, Instant)>) -> Self {
        let outcome = Outcome { status: 0, failure: None };
        ExitPolicy { graces, phase: Phase::Running, outcome, time_limit, never_initialised: None }
    }

    /// A policy for processes that have nothing left to do.
    pub(crate) fn leaving(graces: Graces, now: Instant) -> Self {
        ExitPolicy { phase: Phase::Leaving { first: None, quit_at: now + graces.leave }, ..Self::new(graces, None) }
    }

    /// The job's outcome, or its outcome if all ranks ended well now.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// A rank ended; `ranks` already reflects it.
    pub(crate) fn on_end(&mut self, rank: usize, end: End, ranks: &[RankView], now: Instant) -> Decision {
        match self.phase {
            Phase::Ending { .. } | Phase::Killed { .. } | Phase::GivenUp => Decision::default(),
            Phase::Interrupted { signal, .. } if end == End::Signal(signal) => {
                self.note_failure(rank, end, ranks);
                Decision::default()
            }
            // The network breaks if ranks end by a signal.
            Phase::Interrupted { signal, .. } if ranks[rank].why.is_some() => {
                self.note_interrupt(signal);
                Decision::default()
            }
            _ if self.is_at_work() && is_in_peace(end, &ranks[rank]) => self.fail_in_peace(rank, end, ranks, now),
            _ if end != End::Status(0) => self.fail(rank, end, ranks, now),
            Phase::Running | Phase::Leaving { .. } if ranks[rank].state == RankState::Fresh => {
                self.never_initialised.get_or_insert(rank);
                self.check_never_initialised(ranks, now)
            }
            Phase::Running => {
                self.phase = match ranks[rank].state {
                    RankState::Exiting(_) => Phase::Leaving { first: Some(rank), quit_at: now + self.graces.leave },
                    _ => Phase::Deserted { rank, quit_at: now + self.graces.desert },
                };
                self.check_never_initialised(ranks, now)
            }
            Phase::Leaving { .. } | Phase::Deserted { .. } | Phase::Interrupted { .. } => Decision::default(),
        }
    }

    /// The job is broken for a reason other than a rank's end, and ends with `status`.
    pub(crate) fn on_breakdown(&mut self, status: i32, say: String, now: Instant) -> Decision {
        if self.is_ending() {
            return Decision::default();
        }
        if self.outcome.status == 0 {
            self.outcome.status = status;
        }
        self.end_unless_told(say, now)
    }

    /// Two ranks turn out to have each other's numbers.
    pub(crate) fn on_swap(&mut self, one: usize, other: usize) {
        self.never_initialised = match self.never_initialised {
            Some(rank) if rank == one => Some(other),
            Some(rank) if rank == other => Some(one),
            same => same,
        };
    }

    /// Whether the ranks were told to end, so that their statuses no longer matter.
    pub(crate) fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending { .. } | Phase::Killed { .. } | Phase::GivenUp)
    }

    /// Whether killed ranks have not ended and have been given up.
    pub(crate) fn has_given_up(&self) -> bool {
        self.phase == Phase::GivenUp
    }

    /// The launcher received a signal, possibly from the terminal, which sends it to the ranks too.
    pub(crate) fn on_signal(&mut self, signal: i32, from_terminal: bool, now: Instant) -> Decision {
        if self.is_at_work() && matches!(signal, libc::SIGINT | libc::SIGTERM) {
            self.phase = Phase::Interrupted { signal, kill_at: now + self.graces.interrupt };
        }
        let had_it = from_terminal && matches!(signal, libc::SIGINT | libc::SIGQUIT);
        Decision { order: (!had_it).then_some(Order::Forward(signal)), say: None }
    }

    /// Some time has passed.
    pub(crate) fn on_time(&mut self, ranks: &[RankView], now: Instant) -> Decision {
        if !ranks.iter().any(|rank| rank.is_running) {
            return Decision::default();
        }
        self.give_time_again(now);
        match self.phase {
            Phase::Leaving { first, quit_at } if quit_at <= now => self.cut_off(first, ranks, now),
            Phase::Deserted { rank, quit_at } if quit_at <= now => self.fail(rank, End::Status(0), ranks, now),
            Phase::Interrupted { signal, kill_at } if kill_at <= now => {
                self.note_interrupt(signal);
                self.kill_running(&name_signal(signal), self.graces.interrupt, ranks, now)
            }
            Phase::Ending { kill_at } if kill_at <= now => {
                self.kill_running("being told to", self.graces.quit, ranks, now)
            }
            Phase::Killed { since, look_at } if look_at <= now => self.wait_for_killed(since, ranks, now),
            _ if self.is_at_work() && self.time_limit.is_some_and(|(_, at)| at <= now) => {
                self.end_for_time_limit(ranks, now)
            }
            _ => self.check_never_initialised(ranks, now),
        }
    }

    /// Whether the ranks have not been told to end.
    fn is_at_work(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Leaving { .. } | Phase::Deserted { .. })
    }

    fn note_interrupt(&mut self, signal: i32) {
        if self.outcome.status == 0 {
            self.outcome.status = 128 + signal;
        }
    }

    fn give_time_again(&mut self, now: Instant) {
        let (at, grace) = match &mut self.phase {
            Phase::Leaving { quit_at, .. } => (quit_at, self.graces.leave),
            Phase::Deserted { quit_at, .. } => (quit_at, self.graces.desert),
            Phase::Interrupted { kill_at, .. } => (kill_at, self.graces.interrupt),
            Phase::Ending { kill_at } => (kill_at, self.graces.quit),
            Phase::Running | Phase::Killed { .. } | Phase::GivenUp => return,
        };
        if now > *at + LATE {
            *at = now + grace;
        }
    }

    /// Time of the next needed `on_time`.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let limit = self.time_limit.map(|(_, at)| at);
        match self.phase {
            Phase::Running => limit,
            Phase::Leaving { quit_at, .. } | Phase::Deserted { quit_at, .. } => {
                Some(limit.map_or(quit_at, |at| at.min(quit_at)))
            }
            Phase::Interrupted { kill_at, .. } | Phase::Ending { kill_at } => Some(kill_at),
            Phase::Killed { look_at, .. } => Some(look_at),
            Phase::GivenUp => None,
        }
    }

    /// The agent has lost its supervisor: nobody else would end the rank.
    pub(crate) fn on_orphaned(&mut self, now: Instant) -> Decision {
        Decision { order: Some(Order::Forward(libc::SIGTERM)), ..self.end(now) }
    }

    /// The leaving processes have work after all: their grace period starts again.
    pub(crate) fn on_delay(&mut self, now: Instant) {
        if let Phase::Leaving { quit_at, .. } = &mut self.phase {
            *quit_at = now + self.graces.leave;
        }
    }

    /// The user does not want to wait for the leaving processes.
    pub(crate) fn on_impatience(&mut self, now: Instant) {
        if let Phase::Leaving { quit_at, .. } = &mut self.phase {
            *quit_at = now;
        }
    }

    fn fail(&mut self, rank: usize, end: End, ranks: &[RankView], now: Instant) -> Decision {
        let failure = self.note_failure(rank, end, ranks);
        let Failure { rank, pid: _, end } = failure;
        let how = match (end, &ranks[rank as usize].why) {
            (End::Status(0), _) => "ended without leaving the job, as _exit does; call exit or vgasnet_exit".to_owned(),
            (End::Status(_), Some(why)) => format!("broke down: {why}"),
            (End::Status(status), None) => format!("ended with exit status {status}"),
            (End::Signal(signal), _) => {
                let shortage = ranks[rank as usize].shortage.map(|why| format!(": {why}")).unwrap_or_default();
                format!("was killed by {}{shortage}", name_signal(signal))
            }
        };
        let is_other = |(at, view): (u32, &RankView)| at != rank && view.is_running;
        let others = if (0..).zip(ranks).any(is_other) { "; the other ranks were ended" } else { "" };
        let name = ranks[rank as usize].name();
        self.end_unless_told(format!("rank {rank} ({name}) {how}{others}"), now)
    }

    /// All programs are over, and the other ranks keep their grace period.
    fn fail_in_peace(&mut self, rank: usize, end: End, ranks: &[RankView], now: Instant) -> Decision {
        let is_first = self.outcome.failure.is_none();
        self.note_failure(rank, end, ranks);
        if self.phase == Phase::Running {
            self.phase = Phase::Leaving { first: Some(rank), quit_at: now + self.graces.leave };
        }
        let line = || format!("rank {rank} ({}) ended with exit status {}", ranks[rank].name(), end.status());
        Decision { order: None, say: is_first.then(line) }
    }

    /// Records the job's first failure and returns it.
    fn note_failure(&mut self, rank: usize, end: End, ranks: &[RankView]) -> Failure {
        let exit_status = |rank: &RankView| match rank.state {
            RankState::Exiting(status) if status & 0xff != 0 => Some(status & 0xff),
            _ => None,
        };
        let reported = Failure { rank: rank as u32, pid: ranks[rank].pid, end };
        // If ranks raced to end the job, the lowest status counts.
        let first = if exit_status(&ranks[rank]).is_some() {
            let racing = (0..).zip(ranks).filter_map(|(rank, view)| Some((exit_status(view)?, rank, view.pid)));
            racing.min().map_or(reported, |(status, rank, pid)| Failure { rank, pid, end: End::Status(status) })
        } else {
            reported
        };
        if self.outcome.failure.is_none() {
            // Ending without leaving is a failure whatever the status.
            self.outcome = Outcome { status: first.end.status().max(1), failure: Some(first) };
        }
        first
    }

    /// One rank ended without joining the job: fine if no rank joins, an error if another did and waits for it.
    fn check_never_initialised(&mut self, ranks: &[RankView], now: Instant) -> Decision {
        let Some(rank) = self.never_initialised.filter(|_| self.outcome.failure.is_none()) else {
            return Decision::default();
        };
        if !self.is_at_work() || ranks.iter().all(|rank| rank.state == RankState::Fresh) {
            return Decision::default();
        }
        let pid = ranks[rank].pid;
        self.outcome = Outcome { status: 1, failure: Some(Failure { rank: rank as u32, pid, end: End::Status(0) }) };
        let name = ranks[rank].name();
        let say = format!(
            "rank {rank} ({name}) ended before vgasnet_init, which other ranks have called; all ranks must call it"
        );
        Decision { say: Some(say), ..self.end(now) }
    }

    /// The grace period after the first rank left is over.
    fn cut_off(&mut self, first: Option<usize>, ranks: &[RankView], now: Instant) -> Decision {
        let seconds = self.graces.leave.as_secs();
        let say =
            first.map(|first| format!("{} did not end within {seconds} s of rank {first}; ended", running(ranks)));
        Decision { say, ..self.end(now) }
    }

    fn kill_running(&mut self, since: &str, grace: Duration, ranks: &[RankView], now: Instant) -> Decision {
        let say = format!("{} did not end within {} s of {since}; killed", running(ranks), grace.as_secs());
        Decision { say: Some(say), ..self.kill(now) }
    }

    /// Reports killed ranks still running, and later gives them up.
    fn wait_for_killed(&mut self, since: Instant, ranks: &[RankView], now: Instant) -> Decision {
        let (end, running) = (since + KILLED_PATIENCE, running(ranks));
        let say = if now < end {
            self.phase = Phase::Killed { since, look_at: end };
            let seconds = KILLED_SLOW.as_secs();
            format!("waits for the system to take back memory and disk space of {running}, killed {seconds} s ago")
        } else {
            self.phase = Phase::GivenUp;
            self.outcome.status = self.outcome.status.max(1);
            format!("{running} did not end within {} s of being killed; left behind", KILLED_PATIENCE.as_secs())
        };
        Decision { order: None, say: Some(say) }
    }

    fn end_for_time_limit(&mut self, ranks: &[RankView], now: Instant) -> Decision {
        let (limit, _) = self.time_limit.expect("this is its end");
        self.outcome.status = TIME_LIMIT_STATUS;
        let say = format!("the time limit of {} s is over; still running: {}", limit.as_secs_f64(), running(ranks));
        Decision { say: Some(say), ..self.end(now) }
    }

    fn end_unless_told(&mut self, say: String, now: Instant) -> Decision {
        let order = match self.phase {
            // The ranks were told already, and have their grace period.
            Phase::Interrupted { .. } => None,
            _ => self.end(now).order,
        };
        Decision { order, say: Some(say) }
    }

    fn end(&mut self, now: Instant) -> Decision {
        self.phase = Phase::Ending { kill_at: now + self.graces.quit };
        Decision { order: Some(Order::Quit), say: None }
    }

    /// The job cannot start, or a process is no longer useful.
    pub(crate) fn kill(&mut self, now: Instant) -> Decision {
        self.phase = Phase::Killed { since: now, look_at: now + KILLED_SLOW };
        Decision { order: Some(Order::Kill), say: None }
    }
}

/// Whether a rank ended with a non-zero status after it had left the job: all programs were over, and it had waited for
/// them.
fn is_in_peace(end: End, rank: &RankView) -> bool {
    matches!(end, End::Status(status) if status != 0) && rank.state == RankState::Exiting(0)
}

/// Names the running ranks.
fn running(ranks: &[RankView]) -> String {
    name_ranks(&(0..ranks.len()).filter(|&rank| ranks[rank].is_running).collect::<Vec<_>>())
}

fn name_signal(number: i32) -> String {
    match nix::sys::signal::Signal::try_from(number) {
        Ok(signal) => format!("signal {number} ({signal})"),
        Err(_) => format!("signal {number}"),
    }
}

#[cfg(test)]
#[path = "exit_policy_tests.rs"]
mod tests;
