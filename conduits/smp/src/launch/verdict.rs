//! What the launcher does when something happens to a job. No processes and no clocks: ends, signals and times come in,
//! signals to send and lines to say go out.
//!
//! ```text
//!            a rank fails, or the job is broken, or the time limit is over
//! Running ────────────────────────────────── quit ────────────────▶ Ending ── 3 s: SIGKILL ──▶ Killed
//!    │ ╲  SIGINT, SIGTERM (forwarded)                                  ▲
//!    │  ╰───────────────▶ Interrupted ── 5 s: SIGKILL ──▶ Killed       │
//!    │ a rank leaves the job in peace                                  │
//!    ╰──────────────────▶ Leaving ────── 10 s: quit ───────────────────╯
//! ```
//!
//! To quit is to get SIGQUIT, which GASNet's clients may handle to clean up, or SIGTERM for a process that is no rank yet.
//!
//! The first failure decides the status. From `Ending` on, how ranks end no longer matters: they were told to.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::arena::Life;
use crate::launch::{End, Failure, Outcome};

/// From being told to quit to SIGKILL.
const GRACE: Duration = Duration::from_secs(3);
/// From a signal that the user sent to the job, to SIGKILL.
const INTERRUPT_GRACE: Duration = Duration::from_secs(5);
/// From the first rank's orderly end to the others' being told to quit.
const LEAVE_GRACE: Duration = Duration::from_secs(10);
/// A launcher that looks so late did not run, and neither did the ranks, it may be: they get their time again.
const LATE: Duration = Duration::from_secs(1);

/// The status when the time limit ends a job, as timeout(1) has it.
const TIME_LIMIT_STATUS: i32 = 124;

/// What the launcher knows of a rank at some moment.
#[derive(Clone, Debug)]
pub struct RankView {
    /// Its process; 0 when that is not known.
    pub pid: u32,
    /// Where that is, if not on this machine.
    pub host: Option<Rc<str>>,
    /// How far it has come.
    pub life: Life,
    /// Whether it has not ended.
    pub is_running: bool,
}

impl RankView {
    /// The process as a line names it.
    fn name(&self) -> String {
        match &self.host {
            Some(host) => format!("pid {} on {host}", self.pid),
            None => format!("pid {}", self.pid),
        }
    }
}

/// What to do now: an order for every rank that runs, and a line for the user.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What every rank that runs is sent.
    pub order: Option<Order>,
    /// What the user is told.
    pub say: Option<String>,
}

/// What ranks are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A signal that the launcher got.
    Forward(i32),
    /// To clean up and end.
    Quit,
    /// SIGKILL.
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Leaving { quit_at: Instant },
    Interrupted { signal: i32, kill_at: Instant },
    Ending { kill_at: Instant },
    Killed,
}

/// The state of a job as its launcher judges it.
#[derive(Debug)]
pub struct Verdict {
    phase: Phase,
    outcome: Outcome,
    time_limit: Option<(Duration, Instant)>,
    /// A rank that ended in peace without ever initialising.
    never_initialised: Option<usize>,
}

impl Verdict {
    /// A job that begins, with a limit and when it is over.
    pub fn new(time_limit: Option<(Duration, Instant)>) -> Self {
        let outcome = Outcome { status: 0, failure: None };
        Verdict { phase: Phase::Running, outcome, time_limit, never_initialised: None }
    }

    /// How the job has ended, or would if all ranks ended well now.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// A rank ended; `ranks` already says so.
    pub fn on_end(&mut self, rank: usize, end: End, ranks: &[RankView], now: Instant) -> Step {
        match self.phase {
            Phase::Ending { .. } | Phase::Killed => Step::default(),
            Phase::Interrupted { signal, .. } if end == End::Signal(signal) => {
                self.note_failure(rank, end, ranks);
                Step::default()
            }
            _ if end != End::Status(0) => self.fail(rank, end, ranks, now),
            Phase::Running if ranks[rank].life == Life::Fresh => {
                self.never_initialised.get_or_insert(rank);
                self.check_never_initialised(ranks, now)
            }
            Phase::Running => {
                self.phase = Phase::Leaving { quit_at: now + LEAVE_GRACE };
                self.check_never_initialised(ranks, now)
            }
            Phase::Leaving { .. } if ranks[rank].life == Life::Fresh => {
                self.never_initialised.get_or_insert(rank);
                self.check_never_initialised(ranks, now)
            }
            Phase::Leaving { .. } | Phase::Interrupted { .. } => Step::default(),
        }
    }

    /// The job is broken by something else than the end of a rank, so it ends with `status`.
    pub fn on_breakdown(&mut self, status: i32, say: String, now: Instant) -> Step {
        if self.is_ending() {
            return Step::default();
        }
        if self.outcome.status == 0 {
            self.outcome.status = status;
        }
        match self.phase {
            // The ranks were told already, and have their time.
            Phase::Interrupted { .. } => Step { order: None, say: Some(say) },
            _ => Step { say: Some(say), ..self.end(now) },
        }
    }

    /// Two ranks turn out to have each other's numbers.
    pub fn on_swap(&mut self, one: usize, other: usize) {
        self.never_initialised = match self.never_initialised {
            Some(rank) if rank == one => Some(other),
            Some(rank) if rank == other => Some(one),
            same => same,
        };
    }

    /// Whether the ranks were told to end, so that how they do so no longer matters.
    pub fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending { .. } | Phase::Killed)
    }

    /// The launcher got a signal, perhaps from the terminal, which sends it to the ranks too.
    pub fn on_signal(&mut self, signal: i32, from_terminal: bool, now: Instant) -> Step {
        let may_wait = matches!(self.phase, Phase::Running | Phase::Leaving { .. });
        if may_wait && matches!(signal, libc::SIGINT | libc::SIGTERM) {
            self.phase = Phase::Interrupted { signal, kill_at: now + INTERRUPT_GRACE };
        }
        let had_it = from_terminal && matches!(signal, libc::SIGINT | libc::SIGQUIT);
        Step { order: (!had_it).then_some(Order::Forward(signal)), say: None }
    }

    /// Some time has passed.
    pub fn on_time(&mut self, ranks: &[RankView], now: Instant) -> Step {
        if !ranks.iter().any(|rank| rank.is_running) {
            return Step::default();
        }
        self.give_time_again(now);
        match self.phase {
            Phase::Leaving { quit_at } if quit_at <= now => {
                self.phase = Phase::Ending { kill_at: now + GRACE };
                Step { order: Some(Order::Quit), say: None }
            }
            Phase::Interrupted { signal, kill_at } if kill_at <= now => {
                if self.outcome.status == 0 {
                    self.outcome.status = 128 + signal;
                }
                self.kill()
            }
            Phase::Ending { kill_at } if kill_at <= now => self.kill(),
            Phase::Running | Phase::Leaving { .. } if self.time_limit.is_some_and(|(_, at)| at <= now) => {
                self.end_for_time_limit(ranks, now)
            }
            _ => self.check_never_initialised(ranks, now),
        }
    }

    fn give_time_again(&mut self, now: Instant) {
        let (at, grace) = match &mut self.phase {
            Phase::Leaving { quit_at } => (quit_at, LEAVE_GRACE),
            Phase::Interrupted { kill_at, .. } => (kill_at, INTERRUPT_GRACE),
            Phase::Ending { kill_at } => (kill_at, GRACE),
            Phase::Running | Phase::Killed => return,
        };
        if now > *at + LATE {
            *at = now + grace;
        }
    }

    /// When `on_time` is next needed.
    pub fn deadline(&self) -> Option<Instant> {
        let limit = self.time_limit.map(|(_, at)| at);
        match self.phase {
            Phase::Running => limit,
            Phase::Leaving { quit_at } => Some(limit.map_or(quit_at, |at| at.min(quit_at))),
            Phase::Interrupted { kill_at, .. } | Phase::Ending { kill_at } => Some(kill_at),
            Phase::Killed => None,
        }
    }

    /// Whether a change in the ranks' lives, of which nobody tells the launcher, would matter.
    pub fn must_look_again(&self) -> bool {
        self.never_initialised.is_some() && matches!(self.phase, Phase::Running | Phase::Leaving { .. })
    }

    fn fail(&mut self, rank: usize, end: End, ranks: &[RankView], now: Instant) -> Step {
        let failure = self.note_failure(rank, end, ranks);
        let Failure { rank, pid: _, end } = failure;
        let how = match end {
            End::Status(status) => format!("ended with exit status {status}"),
            End::Signal(signal) => format!("was killed by {}", name_signal(signal)),
        };
        let others = if ranks.iter().any(|rank| rank.is_running) { "; the other ranks were ended" } else { "" };
        let name = ranks[rank as usize].name();
        let say = Some(format!("rank {rank} ({name}) {how}{others}"));
        match self.phase {
            // The ranks were told already, and have their time.
            Phase::Interrupted { .. } => Step { order: None, say },
            _ => Step { say, ..self.end(now) },
        }
    }

    /// Notes the job's first failure and returns it.
    fn note_failure(&mut self, rank: usize, end: End, ranks: &[RankView]) -> Failure {
        let exit_status = |rank: &RankView| match rank.life {
            Life::Exiting(status) if status & 0xff != 0 => Some(status & 0xff),
            _ => None,
        };
        let reported = Failure { rank: rank as u32, pid: ranks[rank].pid, end };
        // Ranks that raced to end the job: the lowest status counts.
        let first = if exit_status(&ranks[rank]).is_some() {
            let racing = (0..).zip(ranks).filter_map(|(rank, view)| Some((exit_status(view)?, rank, view.pid)));
            racing.min().map_or(reported, |(status, rank, pid)| Failure { rank, pid, end: End::Status(status) })
        } else {
            reported
        };
        if self.outcome.failure.is_none() {
            let status = match first.end {
                End::Status(status) => status,
                End::Signal(signal) => 128 + signal,
            };
            self.outcome = Outcome { status, failure: Some(first) };
        }
        first
    }

    /// One rank ended without becoming part of the job: fine if no rank does, an error if another did and waits for it.
    fn check_never_initialised(&mut self, ranks: &[RankView], now: Instant) -> Step {
        let Some(rank) = self.never_initialised.filter(|_| self.outcome.failure.is_none()) else {
            return Step::default();
        };
        let may_end = matches!(self.phase, Phase::Running | Phase::Leaving { .. });
        if !may_end || ranks.iter().all(|rank| rank.life == Life::Fresh) {
            return Step::default();
        }
        let pid = ranks[rank].pid;
        self.outcome = Outcome { status: 1, failure: Some(Failure { rank: rank as u32, pid, end: End::Status(0) }) };
        let name = ranks[rank].name();
        let say = format!(
            "rank {rank} ({name}) ended before vgasnet_init, which other ranks have called; all ranks must call it"
        );
        Step { say: Some(say), ..self.end(now) }
    }

    fn end_for_time_limit(&mut self, ranks: &[RankView], now: Instant) -> Step {
        let running: Vec<_> = (0..ranks.len()).filter(|&rank| ranks[rank].is_running).take(8).collect();
        let (limit, _) = self.time_limit.expect("this is its end");
        self.outcome.status = TIME_LIMIT_STATUS;
        let say = format!("the time limit of {} s is over; still running: ranks {running:?}", limit.as_secs_f64());
        Step { say: Some(say), ..self.end(now) }
    }

    fn end(&mut self, now: Instant) -> Step {
        self.phase = Phase::Ending { kill_at: now + GRACE };
        Step { order: Some(Order::Quit), say: None }
    }

    fn kill(&mut self) -> Step {
        self.phase = Phase::Killed;
        Step { order: Some(Order::Kill), say: None }
    }
}

fn name_signal(number: i32) -> String {
    match nix::sys::signal::Signal::try_from(number) {
        Ok(signal) => format!("signal {number} ({signal})"),
        Err(_) => format!("signal {number}"),
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
