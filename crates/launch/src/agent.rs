//! The process in place of a rank: it starts the rank's program as its child and looks after it for the supervisor.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command as Program;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use vgasnet_conduit::environment;
use vgasnet_conduit::launchers::{MPI_RANK_VARIABLES, SLURM_RANK_VARIABLE};
use vgasnet_hybrid::Report;
use vgasnet_protocol::{PROTOCOL_VERSION, RankState};

use crate::address::{Address, LAUNCHER_VARIABLE};
use crate::connection::{Connection, Stream};
use crate::event_loop::{Role, Watched, run as run_role, timeout_until};
use crate::exit_policy::{End, ExitPolicy, Graces, Order};
use crate::memory_shortage::MemoryShortage;
use crate::process::Process;
use crate::rank_process::RankProcess;
use crate::rank_view::RankView;
use crate::reports::Reports;
use crate::signals::Signals;
use crate::wire::{Command, Event};
use crate::{StartError, cannot_run_status, host_name, pmi};

/// Time-out of a supervisor's answer to a hello. Another process at its address, on another network, never answers.
const WELCOME_PATIENCE: Duration = Duration::from_secs(10);

/// Number of times an agent tries all ways to its supervisor, and the time between them.
const ATTEMPTS: usize = 10;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);

/// Runs this process as an agent for `program`, a command with its arguments. Returns its exit status.
///
/// The supervisor reports the child's end, so the status is 0 unless the supervisor is missing.
pub fn run(program: &[OsString]) -> i32 {
    let start = |signals: &Signals| {
        let mut agent = Agent::start().map_err(|why| StartError::new(1, why))?;
        agent.start_child(program, signals);
        Ok(agent)
    };
    run_role(start, Agent::finish).unwrap_or_else(|StartError { status, text }| {
        if !text.is_empty() {
            tell(&format!("an agent on {}: {text}", host_name()));
        }
        status
    })
}

/// An agent known to its supervisor.
struct Agent {
    supervisor: Connection,
    /// Silence after which the supervisor counts as lost.
    timeout: Duration,
    heard: Instant,
    rank: Option<u32>,
    state: RankState,
    child: Option<Child>,
    /// The child's end, until reported to the supervisor.
    end: Option<End>,
    /// The child has received an order.
    is_ordered: bool,
    /// Since the agent's start.
    shortage: MemoryShortage,
    policy: ExitPolicy,
    ending: Ending,
}

/// The program of a rank. The connections it has passed stay open after its end.
struct Child {
    process: RankProcess,
    reports: Reports,
}

/// Whether the agent is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// The supervisor is lost, by silence or because it has ended.
    Lost {
        is_silent: bool,
    },
    Released,
}

/// The meaning of a descriptor for the agent.
#[derive(Clone, Copy)]
enum Source {
    Supervisor,
    Child,
}

impl Role for Agent {
    type Source = Source;
    const BEATS: bool = true;

    fn watch<'a>(&'a self, watched: &mut Watched<'a, Source>) {
        watched.connection(&self.supervisor, Source::Supervisor);
        if let Some(child) = self.running_child() {
            watched.readable(child.reports.open_fd(), Source::Child);
            child.process.running_fds().for_each(|running| watched.readable(running, Source::Child));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if self.ending == Ending::No { Some(self.heard + self.timeout) } else { self.policy.deadline() }
    }

    /// Signals of the other launcher or the system are meant for the child.
    fn on_signal(&mut self, signal: i32, _from_terminal: bool) {
        match self.running_child() {
            Some(child) => child.process.obey(Order::Forward(signal), self.state),
            None if matches!(signal, libc::SIGTERM | libc::SIGINT | libc::SIGHUP) => self.ending = Ending::Released,
            None => {}
        }
    }

    fn on_ready(&mut self, source: Source) {
        match source {
            Source::Child => self.hear_child(),
            // `on_time` handles it, because more than its welcome may have arrived.
            Source::Supervisor => {}
        }
    }

    fn on_time(&mut self, now: Instant) {
        self.hear_supervisor(now);
        if now >= self.heard + self.timeout {
            self.lose_supervisor(true, &format!("lost the launcher for {} s", self.timeout.as_secs()));
        }
        let Some(child) = self.child.as_ref().filter(|child| child.process.is_running()) else { return };
        let view = RankView {
            pid: child.process.pid(),
            host: None,
            state: self.state,
            why: None,
            shortage: None,
            is_running: true,
        };
        if let Some(order) = self.policy.on_time(&[view], now).order {
            child.process.obey(order, self.state);
        }
    }

    fn beat(&mut self) {
        self.supervisor.beat(&Event::Beat);
    }

    fn forgive(&mut self, time: Duration) {
        self.heard += time;
    }

    fn is_over(&self) -> bool {
        match self.ending {
            Ending::No => false,
            Ending::Lost { .. } => self.running_child().is_none(),
            Ending::Released => true,
        }
    }
}

impl Agent {
    fn start() -> Result<Agent, String> {
        let text = environment::var(LAUNCHER_VARIABLE).unwrap_or_default();
        let address =
            Address::parse(&text).ok_or_else(|| format!("{LAUNCHER_VARIABLE}={text} does not name a launcher"))?;
        let mut variables = MPI_RANK_VARIABLES.into_iter().chain([SLURM_RANK_VARIABLE]);
        let rank = variables.find_map(|name| environment::var(name)?.parse().ok());
        let hello = Event::Hello { version: PROTOCOL_VERSION, cookie: address.cookie, rank };
        let (mut is_refused, begin) = (false, Instant::now());
        // A supervisor drops an agent that stalled before its hello, or was crowded out by strangers.
        let attempts = (0..ATTEMPTS).take_while(|at| *at == 0 || begin.elapsed() < WELCOME_PATIENCE);
        let mut streams = attempts.flat_map(|at| {
            std::thread::sleep(ATTEMPT_PAUSE * u32::from(at > 0));
            address.streams()
        });
        let found = streams.find_map(|stream| match greet(stream, &hello) {
            Greeting::Welcome(connection, timeout) => Some(Some((connection, timeout))),
            Greeting::Refused => {
                is_refused = true;
                Some(None)
            }
            Greeting::Silence => None,
        });
        let (supervisor, timeout) = found.flatten().ok_or_else(|| match is_refused {
            // The supervisor has reported it.
            true => String::new(),
            false => format!("cannot reach vgasnetrun {}", address.advice()),
        })?;
        let policy = ExitPolicy::new(Graces::ORPHAN, None);
        let (state, ending, heard) = (RankState::Fresh, Ending::No, Instant::now());
        let (child, end, is_ordered) = (None, None, false);
        let shortage = MemoryShortage::since_now();
        Ok(Agent { supervisor, timeout, heard, rank, state, child, end, is_ordered, shortage, policy, ending })
    }

    fn start_child(&mut self, program: &[OsString], signals: &Signals) {
        match Child::start(program, signals) {
            Ok(child) => {
                self.supervisor.send(&Event::Started { pid: child.process.pid() });
                self.child = Some(child);
            }
            Err(error) => {
                let name = program.first().map(|name| name.to_string_lossy()).unwrap_or_default();
                let why = format!("\"{name}\": {error}");
                self.supervisor.send_text(&Event::CannotStart { status: cannot_run_status(&error) }, &why);
            }
        }
    }

    fn running_child(&self) -> Option<&Child> {
        self.child.as_ref().filter(|child| child.process.is_running())
    }

    fn hear_child(&mut self) {
        let Some(child) = self.child.as_mut().filter(|child| child.process.is_running()) else { return };
        // In this order: the child's last report precedes its end.
        self.end = self.end.or(child.process.reap());
        while let Some((Report { state, rank, .. }, why, pid)) = child.reports.next() {
            if let Err(error) = child.process.found(pid) {
                tell(&format!("cannot watch pid {pid}: {error}"));
            }
            self.rank = rank.or(self.rank);
            self.state = state;
            self.supervisor.send_text(&Event::State { state, rank }, &why);
        }
        if !child.process.is_running() {
            child.reports.give_space_back();
        }
        // If a script has died of an order, the rank within it keeps its grace period: the supervisor stops waiting
        // once told.
        let is_due = !self.is_ordered || !child.process.is_running();
        if let Some(end) = self.end.take_if(|_| is_due) {
            self.tell_of_shortage(end);
            self.supervisor.send(&Event::Ended(end));
        }
    }

    /// The supervisor does not know about this host's memory.
    fn tell_of_shortage(&self, end: End) {
        let is_killed = end == End::Signal(libc::SIGKILL) && !self.is_ordered;
        if let Some(what) = self.shortage.advice().filter(|_| is_killed) {
            tell(&format!("{}: {what}", self.name()));
        }
    }

    /// The rank and its host.
    fn name(&self) -> String {
        let rank = self.rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
        format!("{rank} on {}", host_name())
    }

    fn hear_supervisor(&mut self, now: Instant) {
        self.supervisor.flush();
        if self.supervisor.fill() {
            self.heard = now;
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
            Command::Order(order) => order,
            Command::Release => Order::Kill,
            Command::Welcome { .. } | Command::Beat | Command::Refuse => return,
        };
        if let Some(child) = &self.child {
            self.is_ordered = true;
            child.process.obey(order, self.state);
        }
    }

    /// Ends the child, since nobody else would.
    fn lose_supervisor(&mut self, is_silent: bool, why: &str) {
        if self.ending != Ending::No {
            return;
        }
        self.ending = Ending::Lost { is_silent };
        let decision = self.policy.on_orphaned(Instant::now());
        let Some(child) = self.running_child() else { return };
        if let Some(order) = decision.order {
            child.process.obey(order, self.state);
        }
        tell(&format!("{}: {why}; ended", self.name()));
    }

    /// Returns the exit status for the other launcher.
    fn finish(self) -> i32 {
        match self.ending {
            Ending::Lost { is_silent } => {
                if is_silent {
                    end_starter();
                }
                1
            }
            _ => {
                pmi::say_finalized(self.state);
                0
            }
        }
    }
}

impl Child {
    fn start(program: &[OsString], signals: &Signals) -> std::io::Result<Child> {
        let (name, args) = program.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut command = Program::new(name);
        command.args(args).env_remove(LAUNCHER_VARIABLE);
        let (reports, theirs) = Reports::open(&mut command)?;
        let process = Process::spawn(command, signals.previous_mask(), Signal::SIGKILL, Some(theirs.as_raw_fd()))?;
        Ok(Child { process: process.into(), reports })
    }
}

/// The answer to a hello.
enum Greeting {
    /// From the supervisor, with its time-out.
    Welcome(Connection, Duration),
    /// From a supervisor of another version.
    Refused,
    Silence,
}

/// Sends a hello and waits for the answer.
fn greet(stream: Stream, hello: &Event) -> Greeting {
    let late = Instant::now() + WELCOME_PATIENCE;
    let Ok(mut connection) = Connection::new(stream) else { return Greeting::Silence };
    connection.send_text(hello, &host_name());
    while connection.is_open() && Instant::now() < late {
        let mut watched = [PollFd::new(connection.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut watched, timeout_until(late));
        connection.flush();
        connection.fill();
        match connection.next() {
            Some(Command::Welcome { timeout_s: timeout_s @ 1.. }) => {
                connection.may_be_slow();
                return Greeting::Welcome(connection, Duration::from_secs(u64::from(timeout_s)));
            }
            Some(Command::Refuse) => return Greeting::Refused,
            Some(_) => return Greeting::Silence,
            None => {}
        }
    }
    Greeting::Silence
}

/// Ends the other launcher's daemon on this host. The daemon also waits for its launcher, and TCP retransmits its bytes
/// for a quarter of an hour. If the supervisor has just ended, so has the launcher, which sees to its daemons.
fn end_starter() {
    let starter = nix::unistd::getppid();
    if starter.as_raw() > 1 {
        // Fails if the daemon is another user's, or has just ended.
        let _ = nix::sys::signal::kill(starter, Signal::SIGTERM);
    }
}

/// Writes one line to stderr unless it would block: the process forwarding stderr may be gone.
fn tell(text: &str) {
    let stderr = std::io::stderr();
    let mut watched = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    let is_ready = poll(&mut watched, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
    if is_ready && watched[0].revents().is_some_and(|events| events.contains(PollFlags::POLLOUT)) {
        // On failure there is nobody left to tell.
        let _ = stderr.lock().write_all(format!("vgasnetrun: {text}\n").as_bytes());
    }
}
