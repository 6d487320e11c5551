//! The process that looks after a job: it hears of the ranks from their agents, and has them told what the verdict is.

use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command as Program;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;
use vgasnet_smp::launch::{
    End, Life, Order, Process, Signals, Step, Verdict, cannot_run_status, raise_descriptor_limit, say,
};

use crate::address::{LAUNCHER_VARIABLE, Listeners};
use crate::agent::timeout_until;
use crate::connection::{Connection, Stream};
use crate::roll::{Care, Host, Member, Roll, name_ranks};
use crate::wire::{Command, News};
use crate::{BEAT, host_name, stood_still, terminal};

/// How long a connection may take to say hello.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);

/// How long an agent has been gone before that is told: if the other launcher has ended it, its end says more.
const VANISHED_PATIENCE: Duration = Duration::from_secs(1);

/// How long the other launcher may take to end after its processes.
const LAUNCHER_PATIENCE: Duration = Duration::from_secs(5);

/// From SIGTERM to SIGKILL for the other launcher.
const LAUNCHER_GRACE: Duration = Duration::from_secs(1);

/// A job to look after.
#[derive(Debug)]
pub struct Plan {
    /// How many ranks it has.
    pub ranks: u32,
    /// What starts an agent in place of each of them.
    pub launcher: Program,
    /// The launcher has nothing to do once a rank has failed, but complains: it is killed.
    pub is_dispensable: bool,
    /// An agent that is silent for so long is lost.
    pub host_timeout: Duration,
}

/// Runs a job to its end. What goes wrong is one line on stderr. Returns the exit status for the user.
pub fn supervise(plan: Plan) -> i32 {
    match Supervisor::start(plan) {
        Ok(supervisor) => supervisor.run(),
        Err((status, why)) => {
            say(&why);
            status
        }
    }
}

struct Supervisor {
    signals: Signals,
    listeners: Listeners,
    /// Who has not said hello yet, and how long each may take.
    strangers: Vec<(Connection, Instant)>,
    roll: Roll,
    /// When an agent came last.
    came: Instant,
    verdict: Verdict,
    /// Lines for the user, who gets them after what the ranks said before: that takes its time through the other launcher.
    to_say: Vec<String>,
    /// What agents that come late are told.
    standing: Option<Command>,
    launcher: Process,
    launcher_name: String,
    is_dispensable: bool,
    launcher_end: Option<End>,
    /// When it ended, until that has been judged.
    launcher_ended: Option<Instant>,
    host_name: String,
    host_timeout: Duration,
    next_beat: Instant,
}

impl Supervisor {
    fn start(mut plan: Plan) -> Result<Supervisor, (i32, String)> {
        let system = |what: &str, error: &dyn std::fmt::Display| (1, format!("{what}: {error}"));
        let signals = Signals::block().map_err(|error| system("taking over signals", &error))?;
        // A supervisor that the terminal stops would be taken for lost.
        let _ = SigSet::from(Signal::SIGTSTP).thread_block();
        let _ = raise_descriptor_limit(64 + u64::from(plan.ranks));
        let listeners = Listeners::open().map_err(|error| system("listening for agents", &error))?;
        plan.launcher.env(LAUNCHER_VARIABLE, listeners.address.to_string());
        // Signals are to take the way through the agents.
        plan.launcher.process_group(0);
        terminal::replace(&mut plan.launcher);
        let launcher_name = plan.launcher.get_program().to_string_lossy().into_owned();
        let mut launcher = Process::spawn(plan.launcher, signals.previous_mask(), Signal::SIGTERM, std::iter::empty())
            .map_err(|error| (cannot_run_status(&error), format!("cannot run {launcher_name}: {error}")))?;
        if let Some(pipe) = launcher.take_stdin() {
            terminal::forward(pipe);
        }
        let now = Instant::now();
        Ok(Supervisor {
            signals,
            listeners,
            strangers: Vec::new(),
            roll: Roll::new(plan.ranks),
            came: now,
            verdict: Verdict::new(None),
            to_say: Vec::new(),
            standing: None,
            launcher,
            launcher_name,
            is_dispensable: plan.is_dispensable,
            launcher_end: None,
            launcher_ended: None,
            host_name: host_name(),
            host_timeout: plan.host_timeout,
            next_beat: now + BEAT,
        })
    }

    fn run(mut self) -> i32 {
        while !self.is_over() {
            let look = Instant::now();
            self.wait();
            self.roll.forgive(stood_still(look.elapsed()));
            self.admit();
            // Before the ranks: a signal explains how they ended.
            while let Some((signal, _)) = self.signals.next() {
                let step = self.verdict.on_signal(signal, false, Instant::now());
                self.take(step);
            }
            self.hear();
            self.hear_launcher();
            self.look_for_the_lost(Instant::now());
            let step = self.verdict.on_time(&self.roll.view(), Instant::now());
            self.take(step);
            self.beat(Instant::now());
        }
        self.finish()
    }

    /// Whether nobody is left to wait for.
    fn is_over(&self) -> bool {
        let waits_for_missing = self.launcher_end.is_none() && !self.verdict.is_ending();
        !(self.roll.has_running() || (waits_for_missing && self.roll.missing() > 0))
    }

    /// Sleeps until something happens or it is time for something.
    fn wait(&self) {
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut watched =
            vec![watch(self.signals.as_fd()), watch(self.listeners.unix.as_fd()), watch(self.listeners.tcp.as_fd())];
        watched.extend(self.launcher.running_fd().map(watch));
        let members = self.roll.present().map(|(_, member)| &member.connection);
        for connection in self.strangers.iter().map(|(stranger, _)| stranger).chain(members) {
            if connection.is_open() {
                let room = if connection.has_outgoing() { PollFlags::POLLOUT } else { PollFlags::empty() };
                watched.push(PollFd::new(connection.as_fd(), PollFlags::POLLIN | room));
            }
        }
        let next = self.verdict.deadline().map_or(self.next_beat, |at| at.min(self.next_beat));
        // A signal that interrupts it is a reason to look, too.
        let _ = poll(&mut watched, timeout_until(next));
    }

    /// Lets agents in that have the cookie.
    fn admit(&mut self) {
        let late = Instant::now() + HELLO_PATIENCE;
        let new = self.listeners.accept().into_iter().filter_map(|stream: Stream| Connection::new(stream).ok());
        self.strangers.extend(new.map(|stranger| (stranger, late)));
        for (mut stranger, late) in std::mem::take(&mut self.strangers) {
            stranger.fill();
            match stranger.next() {
                Some(News::Hello { cookie, rank, host }) if cookie == self.listeners.address.cookie => {
                    self.welcome(stranger, rank, host);
                }
                None if stranger.is_open() && Instant::now() < late => self.strangers.push((stranger, late)),
                // It is dropped, and so closed.
                _ => {}
            }
        }
    }

    fn welcome(&mut self, mut connection: Connection, rank: Option<u32>, host: String) {
        let Some(place) = self.roll.place(rank) else { return };
        connection.send(&Command::Welcome { timeout_s: self.host_timeout.as_secs() as u32 });
        if let Some(command) = self.standing {
            connection.send(&command);
        }
        let host = Host::new(host, connection.peer(), &self.host_name);
        let now = Instant::now();
        let (life, care) = (Life::Fresh, Care::Running);
        self.roll.members[place] = Some(Member { connection, host, pid: 0, life, care, heard: now });
        self.came = now;
    }

    /// Takes in what agents have said.
    fn hear(&mut self) {
        for rank in 0..self.roll.members.len() {
            let Some(member) = &mut self.roll.members[rank] else { continue };
            member.connection.flush();
            if member.connection.fill() {
                member.heard = Instant::now();
            }
            let mut at = rank;
            while let Some(news) = self.roll.members[at].as_mut().and_then(|member| member.connection.next()) {
                at = self.on_news(at, news);
            }
            let member = self.roll.members[at].as_mut().expect("it was there");
            if !member.connection.is_open() && member.care == Care::Running {
                member.care = Care::Vanished(Instant::now());
            }
        }
    }

    /// Takes in what the agent of `rank` has said. Returns its rank, which that may change.
    fn on_news(&mut self, rank: usize, news: News) -> usize {
        let member = self.roll.members[rank].as_mut().expect("somebody has said it");
        match news {
            News::Started { pid } => member.pid = pid,
            News::Life { life, rank: own } => {
                member.life = life;
                return own.map_or(rank, |own| self.move_to(rank, own as usize));
            }
            News::Ended(end) => {
                member.care = Care::Ended;
                let step = self.verdict.on_end(rank, end, &self.roll.view(), Instant::now());
                self.take(step);
            }
            News::CannotStart { status, why } => {
                member.care = Care::Ended;
                let text = format!("cannot start rank {rank} of {}, {why}", self.roll.members.len());
                self.break_down(status, text);
            }
            News::Hello { .. } | News::Beat => {}
        }
        rank
    }

    /// An agent's child turns out to be another rank than it had been taken for. Returns its place.
    fn move_to(&mut self, rank: usize, own: usize) -> usize {
        if own == rank || own >= self.roll.members.len() {
            return rank;
        }
        self.roll.members.swap(rank, own);
        self.verdict.on_swap(rank, own);
        own
    }

    fn hear_launcher(&mut self) {
        let Some(end) = self.launcher.reap() else { return };
        (self.launcher_end, self.launcher_ended) = (Some(end), Some(Instant::now()));
    }

    /// Some launchers end as soon as a rank does, whose agent may be about to say how. What others still run then is lost.
    fn miss_launcher(&mut self, now: Instant) {
        let (Some(end), Some(at)) = (self.launcher_end, self.launcher_ended) else { return };
        if now < at + LAUNCHER_GRACE {
            return;
        }
        self.launcher_ended = None;
        let nobody_came = self.roll.present().next().is_none();
        if nobody_came || self.is_over() && self.roll.missing() == 0 {
            return;
        }
        for (_, member) in self.roll.present_mut().filter(|(_, member)| matches!(member.care, Care::Vanished(_))) {
            member.care = Care::Lost;
        }
        let how = match end {
            End::Status(status) => format!("ended with exit status {status}"),
            End::Signal(signal) => format!("was killed by signal {signal}"),
        };
        let text = format!("{} {how} before the ranks did; they were ended", self.launcher_name);
        self.break_down(status_of(end).max(1), text);
    }

    /// Gives up who does not answer, and what of the job cannot start.
    fn look_for_the_lost(&mut self, now: Instant) {
        self.miss_launcher(now);
        let seconds = self.host_timeout.as_secs();
        if let Some((host, ranks)) = self.roll.silent_host(self.host_timeout, now) {
            self.lose(&ranks, format!("host {} ({}) has not answered for {seconds} s", host.name, name_ranks(&ranks)));
        }
        if let Some((host, ranks)) = self.roll.vanished_host(VANISHED_PATIENCE, now) {
            self.lose(&ranks, format!("host {} ({}) has broken the connection", host.name, name_ranks(&ranks)));
        }
        let has_begun = self.roll.present().next().is_some();
        let missing = self.roll.missing();
        if has_begun && missing > 0 && now >= self.came + self.host_timeout {
            let ranks = self.roll.members.len();
            let text = format!(
                "{missing} of {ranks} ranks did not start within {seconds} s of the others; the other ranks were ended"
            );
            self.break_down(1, text);
        }
    }

    fn lose(&mut self, ranks: &[usize], what: String) {
        for rank in ranks {
            self.roll.members[*rank].as_mut().expect("it was there").care = Care::Lost;
        }
        let others = if self.roll.has_running() { "; the other ranks were ended" } else { "" };
        self.break_down(1, what + others);
    }

    fn break_down(&mut self, status: i32, text: String) {
        let step = self.verdict.on_breakdown(status, text, Instant::now());
        self.take(step);
    }

    fn take(&mut self, step: Step) {
        if let Some(text) = step.say {
            self.to_say.push(text);
        }
        let Some(order) = step.order else { return };
        for (_, member) in self.roll.present_mut().filter(|(_, member)| member.care == Care::Running) {
            member.connection.send(&command_for(order));
        }
        if !matches!(order, Order::Forward(signal) if signal != libc::SIGTERM && signal != libc::SIGINT) {
            self.standing = Some(command_for(order));
        }
    }

    fn beat(&mut self, now: Instant) {
        if now < self.next_beat {
            return;
        }
        self.next_beat = now + BEAT;
        for (_, member) in self.roll.present_mut() {
            member.connection.beat(&Command::Beat);
        }
    }

    /// Lets the agents go and sees the other launcher off.
    fn finish(mut self) -> i32 {
        let nobody_came = self.roll.present().next().is_none();
        let is_dismissed = self.may_dismiss_launcher();
        if is_dismissed {
            // What it has started to reach a host that is lost would wait.
            if self.has_lost() { self.signal_launchers(Signal::SIGKILL) } else { self.launcher.signal(libc::SIGKILL) }
        }
        for (_, member) in self.roll.present_mut() {
            member.connection.send(&Command::Release);
        }
        self.standing = Some(Command::Release);
        let was_left = self.see_launcher_off();
        let launcher_status = self.launcher_end.map_or(1, status_of);
        let status = self.verdict.outcome().status;
        // Where no rank has failed, the other launcher may have.
        if nobody_came || (status == 0 && was_left && !is_dismissed) { launcher_status.max(status) } else { status }
    }

    fn has_lost(&self) -> bool {
        self.roll.present().any(|(_, member)| member.care == Care::Lost)
    }

    fn may_dismiss_launcher(&self) -> bool {
        let has_failed = self.verdict.outcome().status != 0;
        // It would wait for processes that became no ranks.
        let no_ranks = self.roll.present().all(|(_, member)| member.life == Life::Fresh);
        self.is_dispensable && (has_failed || no_ranks) && self.roll.missing() == 0
    }

    /// Waits for the other launcher's end, and ends it if it takes too long. Returns whether it ended by itself.
    fn see_launcher_off(&mut self) -> bool {
        // It would wait for a host that is lost.
        let patience = if self.has_lost() { LAUNCHER_GRACE } else { LAUNCHER_PATIENCE };
        let mut late = Instant::now() + patience;
        while self.launcher_end.is_none() && Instant::now() < late {
            self.wait_for_launcher(late);
            if self.signals.next().is_some() {
                break;
            }
            if is_output_held_up() {
                late = Instant::now() + patience;
            }
        }
        self.to_say.drain(..).for_each(|text| say(&text));
        if self.launcher_end.is_some() {
            return true;
        }
        self.signal_launchers(Signal::SIGTERM);
        let late = Instant::now() + LAUNCHER_GRACE;
        while self.launcher_end.is_none() && Instant::now() < late {
            self.wait_for_launcher(late);
        }
        if self.launcher_end.is_none() {
            self.signal_launchers(Signal::SIGKILL);
            self.launcher.wait();
        }
        false
    }

    fn wait_for_launcher(&mut self, late: Instant) {
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut watched =
            vec![watch(self.signals.as_fd()), watch(self.listeners.unix.as_fd()), watch(self.listeners.tcp.as_fd())];
        watched.extend(self.launcher.running_fd().map(watch));
        let soon = Instant::now() + Duration::from_millis(if self.strangers.is_empty() { 100 } else { 5 });
        let _ = poll(&mut watched, timeout_until(late.min(soon)));
        // The job may be over before all agents have come.
        self.admit();
        for (_, member) in self.roll.present_mut() {
            member.connection.flush();
        }
        self.launcher_end = self.launcher.reap().or(self.launcher_end);
    }

    /// Reaches the other launcher and what it started here. Its number is its own, since it is not reaped.
    fn signal_launchers(&self, signal: Signal) {
        if self.launcher.is_running() {
            // It fails when all have just ended.
            let _ = killpg(Pid::from_raw(self.launcher.pid() as i32), signal);
        }
    }
}

/// Whether whoever reads this process's output, and so the other launcher's, does not: a pager, say.
fn is_output_held_up() -> bool {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    let mut watched = [out.as_fd(), err.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLOUT));
    poll(&mut watched, PollTimeout::ZERO).is_ok() && watched.iter().any(|watched| watched.any() == Some(false))
}

fn command_for(order: Order) -> Command {
    match order {
        Order::Forward(signal) => Command::Forward(signal),
        Order::Quit => Command::Quit,
        Order::Kill => Command::Kill,
    }
}

/// As shells have it.
fn status_of(end: End) -> i32 {
    match end {
        End::Status(status) => status,
        End::Signal(signal) => 128 + signal,
    }
}
