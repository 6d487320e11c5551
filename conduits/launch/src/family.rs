//! Looks after a job on this machine whose first rank makes the others by copying itself, as GASNet's does over shared memory.

use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;
use vgasnet_cluster::Report;
use vgasnet_smp::launch::{
    End, Life, Order, Process, RankView, Signals, Step, Verdict, cannot_run_status, raise_descriptor_limit, say,
};

use crate::agent::{pass_on, timeout_until};
use crate::reports::Reports;

/// Runs `first`, which becomes rank 0 and makes the others up to `ranks`, to the end of the job. What goes wrong is one line on
/// stderr. Returns the exit status for the user.
pub fn supervise_family(first: Command, ranks: u32) -> i32 {
    match Family::start(first, ranks) {
        Ok(family) => family.run(),
        Err((status, why)) => {
            say(&why);
            status
        }
    }
}

/// How often orphans are looked for that have ended.
const ORPHANS_LOOK: Duration = Duration::from_secs(1);

struct Family {
    signals: Signals,
    reports: Reports,
    verdict: Verdict,
    /// By rank.
    members: Vec<Member>,
    /// What ranks that make themselves known late are told.
    standing: Option<Order>,
}

/// A rank as far as it is known.
struct Member {
    /// None until it has said something. That of the first rank is the launcher's child, by whose end it is judged.
    process: Option<Process>,
    /// The rank itself, where that child is a script that has started it.
    within: Option<Process>,
    life: Life,
}

impl Family {
    fn start(mut first: Command, ranks: u32) -> Result<Family, (i32, String)> {
        let system = |what: &str, error: &dyn std::fmt::Display| (1, format!("{what}: {error}"));
        let signals = Signals::block().map_err(|error| system("taking over signals", &error))?;
        let _ = raise_descriptor_limit(64 + u64::from(ranks));
        // Ranks that outlive the first one become this process's, by which they know that somebody looks after them.
        set_child_subreaper(true).map_err(|error| system("adopting ranks", &error))?;
        let name = first.get_program().to_string_lossy().into_owned();
        let (reports, theirs) =
            Reports::open(&mut first).map_err(|error| system("a socket for the ranks' reports", &error))?;
        let inherited = std::iter::once(theirs.as_raw_fd());
        let process = Process::spawn(first, signals.previous_mask(), Signal::SIGKILL, inherited)
            .map_err(|error| (cannot_run_status(&error), format!("cannot start \"{name}\": {error}")))?;
        let unknown = |_| Member { process: None, within: None, life: Life::Fresh };
        let mut members: Vec<Member> = (0..ranks).map(unknown).collect();
        members[0].process = Some(process);
        Ok(Family { signals, reports, verdict: Verdict::new(None), members, standing: None })
    }

    fn run(mut self) -> i32 {
        while self.members.iter().any(Member::is_running) {
            self.wait();
            // Before the ranks: a signal explains how they ended.
            while let Some((signal, from_terminal)) = self.signals.next() {
                let step = self.verdict.on_signal(signal, from_terminal, Instant::now());
                self.take(step);
            }
            self.hear_and_reap();
            self.reap_orphans();
            let step = self.verdict.on_time(&self.view(), Instant::now());
            self.take(step);
        }
        let status = self.verdict.outcome().status;
        if status != 0 {
            self.kill_orphans();
        }
        status
    }

    /// Sleeps until something happens or it is time for something.
    fn wait(&self) {
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut watched = vec![watch(self.signals.as_fd()), watch(self.reports.as_fd())];
        let processes = self.members.iter().filter_map(|member| member.process.as_ref());
        watched.extend(processes.filter_map(Process::running_fd).map(watch));
        let look = Instant::now() + ORPHANS_LOOK;
        // A signal that interrupts it is a reason to look, too.
        let _ = poll(&mut watched, timeout_until(self.verdict.deadline().map_or(look, |at| at.min(look))));
    }

    fn hear_and_reap(&mut self) {
        let has_ended: Vec<bool> = self.members.iter().map(Member::has_ended).collect();
        // After it is known who has ended: what a rank said last came before its end.
        while let Some((report, pid)) = self.reports.next() {
            self.hear(report, pid);
        }
        for rank in (0..self.members.len()).filter(|&rank| has_ended[rank]) {
            let member = &mut self.members[rank];
            let unknown = member.end_by_life();
            if let Some(end) = member.process.as_mut().and_then(|process| process.reap_or(unknown)) {
                self.on_end(rank, end);
            }
        }
    }

    fn hear(&mut self, Report { life, rank }: Report, pid: u32) {
        let Some(rank) = rank.map(|rank| rank as usize).filter(|&rank| rank < self.members.len()) else { return };
        let member = &mut self.members[rank];
        member.life = life;
        let is_known = [&member.process, &member.within].into_iter().flatten().any(|process| process.pid() == pid);
        if is_known {
            return;
        }
        let Ok(process) = Process::adopt(pid) else {
            let end = member.end_by_life();
            if member.process.is_none() {
                self.on_end(rank, end);
            }
            return;
        };
        if let Some(order) = self.standing {
            process.obey(order, life);
        }
        let place = if member.process.is_none() { &mut member.process } else { &mut member.within };
        place.get_or_insert(process);
    }

    fn on_end(&mut self, rank: usize, end: End) {
        let step = self.verdict.on_end(rank, end, &self.view(), Instant::now());
        self.take(step);
    }

    fn take(&mut self, step: Step) {
        if let Some(text) = step.say {
            say(&text);
        }
        let Some(order) = step.order else { return };
        self.standing = Some(order);
        self.members.iter().for_each(|member| member.obey(order));
    }

    fn view(&self) -> Vec<RankView> {
        let view = |member: &Member| RankView {
            pid: member.process.as_ref().map_or(0, Process::pid),
            host: None,
            life: member.life,
            is_running: member.is_running(),
        };
        self.members.iter().map(view).collect()
    }

    /// Sees off what others have left to this process, and is no rank.
    fn reap_orphans(&self) {
        let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        while let Some(pid) = waitid(Id::All, peek).ok().and_then(|status| status.pid()) {
            let is_ranks = |process: &Process| process.is_running() && process.pid() == pid.as_raw() as u32;
            if self.members.iter().filter_map(|member| member.process.as_ref()).any(is_ranks) {
                return;
            }
            let _ = waitpid(pid, None);
        }
    }

    /// Ends what is left of a job that has failed: ranks that never made themselves known, and what ranks have started.
    fn kill_orphans(&self) {
        let own = Pid::this();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            // It is this process's, and not reaped, so the number is its own.
            let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
        }
    }
}

impl Member {
    fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_running)
    }

    /// Whether it has ended and is to be reaped.
    fn has_ended(&self) -> bool {
        let running = self.process.as_ref().and_then(Process::running_fd);
        running.is_some_and(|fd| {
            let mut watched = [PollFd::new(fd, PollFlags::POLLIN)];
            poll(&mut watched, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
        })
    }

    /// How it has ended where another process has reaped it: well, if it had come to its own end.
    fn end_by_life(&self) -> End {
        match self.life {
            Life::Exiting(status) => End::Status(status & 0xff),
            _ => End::Status(1),
        }
    }

    fn obey(&self, order: Order) {
        if let Some(process) = &self.process {
            pass_on(order, self.life, process, self.within.as_ref());
        }
    }
}
