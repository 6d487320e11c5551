//! The process in place of a rank: it starts the rank's program as its child and looks after it for the supervisor.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command as Program;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use vgasnet_cluster::Report;
use vgasnet_smp::launch::{Life, Order, Process, Signals, cannot_run_status};

use crate::address::{Address, LAUNCHER_VARIABLE};
use crate::connection::{Connection, Stream};
use crate::reports::Reports;
use crate::wire::{Command, News};
use crate::{BEAT, host_name, pmi, stood_still};

/// How long a supervisor has to answer a hello. What answers at its address on another network never does.
const WELCOME_PATIENCE: Duration = Duration::from_secs(10);

/// From SIGTERM to SIGKILL for the child of an agent that has lost its supervisor.
const GRACE: Duration = Duration::from_secs(1);

/// How other launchers number the processes that they start.
const RANK_VARIABLES: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"];

/// Runs this process as an agent for `program`, a command with its arguments. Returns its exit status.
///
/// The supervisor says how the child has ended, so that is 0 unless the supervisor is not there.
pub fn run(program: &[OsString]) -> i32 {
    match Agent::start() {
        Ok(agent) => agent.look_after(program),
        Err(why) => {
            tell(&format!("an agent on {}: {why}", host_name()));
            1
        }
    }
}

/// An agent that its supervisor knows.
struct Agent {
    signals: Signals,
    supervisor: Connection,
    /// A supervisor that is silent for so long is lost.
    timeout: Duration,
    heard: Instant,
    next_beat: Instant,
    rank: Option<u32>,
    life: Life,
    child: Option<Child>,
    /// The child that has ended: what it has entrusted to this process stays open.
    past: Option<Child>,
    ending: Ending,
}

/// A program under the care of an agent.
struct Child {
    process: Process,
    /// The rank itself, where `process` is a script that has started it.
    within: Option<Process>,
    reports: Reports,
}

/// Whether the agent is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// The supervisor is lost, by silence or because it has ended, and the child gets SIGKILL at this time.
    Lost {
        is_silent: bool,
        kill_at: Instant,
    },
    Released,
}

impl Agent {
    fn start() -> Result<Agent, String> {
        let text = std::env::var(LAUNCHER_VARIABLE).unwrap_or_default();
        let address =
            Address::parse(&text).ok_or_else(|| format!("{LAUNCHER_VARIABLE}={text} does not name a launcher"))?;
        let signals = Signals::block().map_err(|error| format!("taking over signals: {error}"))?;
        let rank = RANK_VARIABLES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
        let hello = News::Hello { cookie: address.cookie, rank, host: host_name() };
        let found = address.streams().find_map(|stream| greet(stream, &hello));
        let (supervisor, timeout) = found
            .ok_or_else(|| format!("cannot reach vgasnetrun at {}; a firewall may be in the way", address.advice()))?;
        let now = Instant::now();
        let (life, child, past, ending) = (Life::Fresh, None, None, Ending::No);
        Ok(Agent { signals, supervisor, timeout, heard: now, next_beat: now, rank, life, child, past, ending })
    }

    fn look_after(mut self, program: &[OsString]) -> i32 {
        match Child::start(program, &self.signals) {
            Ok(child) => {
                self.supervisor.send(&News::Started { pid: child.process.pid() });
                self.child = Some(child);
            }
            Err(error) => {
                let name = program.first().map(|name| name.to_string_lossy()).unwrap_or_default();
                let why = format!("\"{name}\": {error}");
                self.supervisor.send(&News::CannotStart { status: cannot_run_status(&error), why });
            }
        }
        loop {
            let look = Instant::now();
            self.wait();
            self.heard += stood_still(look.elapsed());
            self.hear_signals();
            self.hear_child();
            self.hear_supervisor();
            self.on_time(Instant::now());
            match self.ending {
                Ending::Released => {
                    pmi::say_finalized();
                    return 0;
                }
                Ending::Lost { is_silent, .. } if self.child.is_none() => {
                    if is_silent {
                        end_starter();
                    }
                    return 1;
                }
                _ => {}
            }
        }
    }

    /// Sleeps until something happens or it is time for something.
    fn wait(&self) {
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut watched = vec![watch(self.signals.as_fd())];
        if self.supervisor.is_open() {
            let room = if self.supervisor.has_outgoing() { PollFlags::POLLOUT } else { PollFlags::empty() };
            watched.push(PollFd::new(self.supervisor.as_fd(), PollFlags::POLLIN | room));
        }
        if let Some(child) = &self.child {
            watched.push(watch(child.reports.as_fd()));
            watched.extend(child.process.running_fd().map(watch));
        }
        let next = match self.ending {
            Ending::Lost { kill_at, .. } => kill_at,
            _ => self.next_beat.min(self.heard + self.timeout),
        };
        // A signal that interrupts it is a reason to look, too.
        let _ = poll(&mut watched, timeout_until(next));
    }

    /// What the other launcher or the system tells this process is meant for its child.
    fn hear_signals(&mut self) {
        while let Some((signal, _)) = self.signals.next() {
            match &self.child {
                Some(child) => child.obey(Order::Forward(signal), self.life),
                None if matches!(signal, libc::SIGTERM | libc::SIGINT | libc::SIGHUP) => {
                    self.ending = Ending::Released;
                }
                None => {}
            }
        }
    }

    fn hear_child(&mut self) {
        let Some(child) = &mut self.child else { return };
        // In this order: what the child said last came before its end.
        let end = child.process.reap();
        while let Some((Report { life, rank }, pid)) = child.reports.next() {
            if pid != child.process.pid() && child.within.is_none() {
                child.within = Process::adopt(pid).ok();
            }
            self.rank = rank.or(self.rank);
            self.life = life;
            self.supervisor.send(&News::Life { life, rank });
        }
        if let Some(end) = end {
            self.past = self.child.take();
            self.supervisor.send(&News::Ended(end));
        }
    }

    fn hear_supervisor(&mut self) {
        self.supervisor.flush();
        if self.supervisor.fill() {
            self.heard = Instant::now();
        }
        while let Some(command) = self.supervisor.next() {
            self.obey(command);
        }
        if !self.supervisor.is_open() {
            self.lose_supervisor(false, "the launcher is gone");
        }
    }

    fn obey(&mut self, command: Command) {
        if command == Command::Release {
            self.ending = Ending::Released;
        }
        let order = match command {
            Command::Forward(signal) => Order::Forward(signal),
            Command::Quit => Order::Quit,
            Command::Kill | Command::Release => Order::Kill,
            Command::Welcome { .. } | Command::Beat => return,
        };
        if let Some(child) = self.child.as_ref().or(self.past.as_ref()) {
            child.obey(order, self.life);
        }
    }

    fn on_time(&mut self, now: Instant) {
        if now >= self.heard + self.timeout {
            self.lose_supervisor(true, &format!("lost the launcher for {} s", self.timeout.as_secs()));
        }
        if now >= self.next_beat {
            self.supervisor.beat(&News::Beat);
            self.next_beat = now + BEAT;
        }
        if let (Ending::Lost { kill_at, .. }, Some(child)) = (self.ending, &self.child) {
            if now >= kill_at {
                child.obey(Order::Kill, self.life);
            }
        }
    }

    /// Ends the child, since nobody else would.
    fn lose_supervisor(&mut self, is_silent: bool, why: &str) {
        if self.ending != Ending::No {
            return;
        }
        self.ending = Ending::Lost { is_silent, kill_at: Instant::now() + GRACE };
        let Some(child) = &self.child else { return };
        child.obey(Order::Forward(libc::SIGTERM), self.life);
        let rank = self.rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
        tell(&format!("{rank} on {}: {why}; ended", host_name()));
    }
}

impl Child {
    fn start(program: &[OsString], signals: &Signals) -> std::io::Result<Child> {
        let (name, args) = program.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut command = Program::new(name);
        command.args(args).env_remove(LAUNCHER_VARIABLE);
        let (reports, theirs) = Reports::open(&mut command)?;
        let inherited = std::iter::once(theirs.as_raw_fd());
        let process = Process::spawn(command, signals.previous_mask(), Signal::SIGKILL, inherited)?;
        Ok(Child { process, within: None, reports })
    }

    fn obey(&self, order: Order, life: Life) {
        pass_on(order, life, &self.process, self.within.as_ref());
    }
}

/// Gives an order to a rank that has come so far: to `process`, or, where that is a script, to it and to the rank within.
pub(crate) fn pass_on(order: Order, life: Life, process: &Process, within: Option<&Process>) {
    if let Some(within) = within {
        within.obey(order, life);
    }
    // A script does not know what a rank is told by.
    process.obey(order, if within.is_some() { Life::Fresh } else { life });
}

/// Says hello. Returns the connection and the time-out if a supervisor answers.
fn greet(stream: Stream, hello: &News) -> Option<(Connection, Duration)> {
    let late = Instant::now() + WELCOME_PATIENCE;
    let mut connection = Connection::new(stream).ok()?;
    connection.send(hello);
    while connection.is_open() && Instant::now() < late {
        let mut watched = [PollFd::new(connection.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut watched, timeout_until(late));
        connection.flush();
        connection.fill();
        match connection.next() {
            Some(Command::Welcome { timeout_s }) => {
                return Some((connection, Duration::from_secs(u64::from(timeout_s))));
            }
            Some(_) => return None,
            None => {}
        }
    }
    None
}

/// Ends the other launcher's daemon on this host. It waits for that launcher too, and what it has sent there keeps TCP busy for
/// a quarter of an hour. Where the supervisor has just ended, so has that launcher, and sees to its daemons.
fn end_starter() {
    let starter = nix::unistd::getppid();
    if starter.as_raw() > 1 {
        // It fails when the daemon is another user's, or has just ended.
        let _ = nix::sys::signal::kill(starter, Signal::SIGTERM);
    }
}

/// How long to sleep until `at`.
pub(crate) fn timeout_until(at: Instant) -> PollTimeout {
    // One millisecond more than rounded down: waking before it would only mean to sleep again.
    let left_ms = at.saturating_duration_since(Instant::now()).as_millis() + 1;
    PollTimeout::from(u16::try_from(left_ms).unwrap_or(u16::MAX))
}

/// Writes one line to stderr, unless that would mean to wait: who forwards it may be gone.
fn tell(text: &str) {
    let stderr = std::io::stderr();
    let mut watched = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    let is_ready = poll(&mut watched, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
    if is_ready && watched[0].revents().is_some_and(|events| events.contains(PollFlags::POLLOUT)) {
        // Nobody is left to be told when it fails.
        let _ = stderr.lock().write_all(format!("vgasnetrun: {text}\n").as_bytes());
    }
}
