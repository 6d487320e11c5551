//! Looks after a job on this machine whose first rank makes the others by copying itself, as GASNet's does over shared memory.

use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::Signal;
use vgasnet_cluster::Report;
use vgasnet_smp::launch::{
    End, Life, Process, RankView, Signals, Step, Verdict, cannot_run_status, raise_descriptor_limit, say,
};

use crate::agent::timeout_until;
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

struct Family {
    signals: Signals,
    reports: Reports,
    verdict: Verdict,
    /// By rank.
    members: Vec<Member>,
}

/// A rank as far as it is known.
struct Member {
    /// None until it has said something.
    process: Option<Process>,
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
        let mut members: Vec<Member> = (0..ranks).map(|_| Member { process: None, life: Life::Fresh }).collect();
        members[0].process = Some(process);
        Ok(Family { signals, reports, verdict: Verdict::new(None), members })
    }

    fn run(mut self) -> i32 {
        while self.members.iter().any(Member::is_running) {
            self.wait();
            // Before the ranks: a signal explains how they ended.
            while let Some((signal, from_terminal)) = self.signals.next() {
                let step = self.verdict.on_signal(signal, from_terminal, Instant::now());
                self.take(step);
            }
            // Before their ends: what a rank said last came before.
            while let Some((report, pid)) = self.reports.next() {
                self.hear(report, pid);
            }
            self.reap();
            let step = self.verdict.on_time(&self.view(), Instant::now());
            self.take(step);
        }
        self.verdict.outcome().status
    }

    /// Sleeps until something happens or it is time for something.
    fn wait(&self) {
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut watched = vec![watch(self.signals.as_fd()), watch(self.reports.as_fd())];
        let processes = self.members.iter().filter_map(|member| member.process.as_ref());
        watched.extend(processes.filter_map(Process::running_fd).map(watch));
        // A signal that interrupts it is a reason to look, too.
        let _ = poll(&mut watched, self.verdict.deadline().map_or(PollTimeout::NONE, timeout_until));
    }

    fn hear(&mut self, Report { life, rank }: Report, pid: u32) {
        let Some(rank) = rank.map(|rank| rank as usize).filter(|&rank| rank < self.members.len()) else { return };
        let member = &mut self.members[rank];
        member.life = life;
        if member.process.is_none() {
            match Process::adopt(pid) {
                Ok(process) => member.process = Some(process),
                Err(_) => self.on_end(rank, End::Status(0)),
            }
        }
    }

    fn reap(&mut self) {
        for rank in 0..self.members.len() {
            let end = self.members[rank].process.as_mut().and_then(Process::reap);
            if let Some(end) = end {
                self.on_end(rank, end);
            }
        }
    }

    fn on_end(&mut self, rank: usize, end: End) {
        // The first rank reaps the others as soon as it has ended itself, and then only they know how they did.
        let end = match (end, self.members[rank].life) {
            (End::Status(0), Life::Exiting(status)) => End::Status(status & 0xff),
            _ => end,
        };
        let step = self.verdict.on_end(rank, end, &self.view(), Instant::now());
        self.take(step);
    }

    fn take(&self, step: Step) {
        if let Some(text) = step.say {
            say(&text);
        }
        let Some(order) = step.order else { return };
        for member in &self.members {
            if let Some(process) = &member.process {
                process.obey(order, member.life);
            }
        }
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
}

impl Member {
    fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_running)
    }
}
