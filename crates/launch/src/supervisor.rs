//! The process that looks after a job on several hosts. Agents report on their ranks, and pass on the orders of the
//! exit policy.

use std::os::fd::AsFd;
use std::process::Command as Program;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use vgasnet_protocol::{PROTOCOL_VERSION, RankState};
use vgasnet_smp::raise_descriptor_limit;

use crate::address::{LAUNCHER_VARIABLE, Listeners, Reach};
use crate::connection::Connection;
use crate::event_loop::{Role, Watched, run};
use crate::exit_policy::{Decision, ExitPolicy, Graces, Order};
use crate::launcher_stderr::IsNoise;
use crate::other_launcher::OtherLauncher;
use crate::rank_table::{ChildStatus, Entry, Host, RankTable};
use crate::rank_view::name_ranks;
use crate::signals::Signals;
use crate::wire::{Command, Event};
use crate::{StartError, host_name, say};

/// Time-out of a connection's hello. Agents send it at once, and connect again if it was lost.
const HELLO_PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of connections without a hello. A further one replaces the oldest, so strangers keep no agent out.
const UNAUTHENTICATED_MAX: usize = 256;

/// Delay before a vanished agent is reported: if the other launcher ended it, the launcher's end says more.
const VANISHED_PATIENCE: Duration = Duration::from_secs(1);

/// A job to look after.
#[derive(Debug)]
pub struct Plan {
    /// Number of ranks.
    pub ranks: u32,
    /// Their hosts.
    pub reach: Reach,
    /// The command to start an agent in place of each rank.
    pub launcher: Program,
    /// Whether to kill the launcher once a rank has failed: it has nothing left to do, and would complain.
    pub is_dispensable: bool,
    /// Silence after which an agent counts as lost.
    pub host_timeout: Duration,
    /// Selects lines of the launcher's stderr to drop, if any.
    pub is_noise: Option<IsNoise>,
}

/// Runs a job to its end. An error is one line on stderr. Returns the exit status for the user.
pub fn supervise(plan: Plan) -> i32 {
    run(|signals| Supervisor::start(plan, signals), Supervisor::finish).unwrap_or_else(StartError::tell)
}

struct Supervisor {
    listeners: Listeners,
    /// Peers without a hello yet, oldest first.
    unauthenticated: Vec<Peer>,
    table: RankTable,
    /// Time of the last agent's arrival.
    came: Instant,
    policy: ExitPolicy,
    /// Lines for the user, held until the ranks' output has arrived through the other launcher.
    to_say: Vec<String>,
    /// The current command, for agents that arrive late.
    current_command: Option<Command>,
    launcher: OtherLauncher,
    is_dispensable: bool,
    /// The job ended before any agent arrived.
    nobody_came: bool,
    host_name: String,
    host_timeout: Duration,
}

/// A connected process that has not said who it is.
struct Peer {
    connection: Connection,
    /// Its deadline.
    late: Instant,
    /// It may have something to read. Strangers can be many, so the others are left alone.
    is_ready: bool,
}

/// The meaning of a descriptor for the supervisor.
#[derive(Clone, Copy)]
enum Source {
    Listener,
    /// A peer without a hello, by its place.
    Peer(usize),
    Rank(usize),
    Launcher,
}

impl Role for Supervisor {
    type Source = Source;
    const BEATS: bool = true;

    fn watch<'a>(&'a self, watched: &mut Watched<'a, Source>) {
        watched.readable(self.listeners.unix.as_fd(), Source::Listener);
        for tcp in &self.listeners.tcp {
            watched.readable(tcp.as_fd(), Source::Listener);
        }
        for (place, peer) in self.unauthenticated.iter().enumerate() {
            watched.connection(&peer.connection, Source::Peer(place));
        }
        for (rank, entry) in self.table.present() {
            watched.connection(&entry.connection, Source::Rank(rank));
        }
        watched.readable(self.launcher.running_fd(), Source::Launcher);
    }

    fn deadline(&self) -> Option<Instant> {
        let late = self.unauthenticated.first().map(|peer| peer.late);
        let next = if self.launcher.is_seen_off() { self.launcher.deadline() } else { self.policy.deadline() };
        next.into_iter().chain(late).min()
    }

    fn on_signal(&mut self, signal: i32, _from_terminal: bool) {
        if self.launcher.is_seen_off() {
            return self.launcher.on_impatience(Instant::now());
        }
        let decision = self.policy.on_signal(signal, false, Instant::now());
        self.take(decision);
    }

    fn on_ready(&mut self, source: Source) {
        match source {
            // `on_time` accepts new peers, and checks the deadlines of all.
            Source::Listener => {}
            Source::Peer(place) => self.unauthenticated[place].is_ready = true,
            Source::Rank(rank) => self.hear(rank),
            Source::Launcher => self.launcher.reap(Instant::now()),
        }
    }

    fn on_time(&mut self, now: Instant) {
        self.admit();
        if !self.launcher.is_seen_off() {
            self.look_for_the_lost(now);
            let decision = self.policy.on_time(&self.table.view(), now);
            self.take(decision);
            if self.has_nobody_left() {
                self.release(now);
            }
        } else if let Some(order) = self.launcher.on_time(now) {
            self.to_say.drain(..).for_each(|text| say(&text));
            self.launcher.obey(order);
        }
    }

    fn beat(&mut self) {
        for (_, entry) in self.table.present_mut() {
            entry.connection.beat(&Command::Beat);
        }
    }

    fn forgive(&mut self, time: Duration) {
        self.table.forgive(time);
    }

    fn is_over(&self) -> bool {
        self.launcher.is_seen_off() && self.launcher.has_ended()
    }
}

impl Supervisor {
    fn start(mut plan: Plan, signals: &Signals) -> Result<Supervisor, StartError> {
        // A supervisor stopped by the terminal would be taken for lost.
        let _ = SigSet::from(Signal::SIGTSTP).thread_block();
        let _ = raise_descriptor_limit((64 + UNAUTHENTICATED_MAX) as u64 + u64::from(plan.ranks));
        let listeners = Listeners::open(&plan.reach)
            .map_err(|error| StartError::new(1, format!("listening for agents: {error}")))?;
        plan.launcher.env(LAUNCHER_VARIABLE, listeners.address.to_string());
        Ok(Supervisor {
            listeners,
            unauthenticated: Vec::new(),
            table: RankTable::new(plan.ranks),
            came: Instant::now(),
            policy: ExitPolicy::new(Graces::JOB, None),
            to_say: Vec::new(),
            current_command: None,
            launcher: OtherLauncher::start(plan.launcher, plan.is_noise, signals.previous_mask())?,
            is_dispensable: plan.is_dispensable,
            nobody_came: false,
            host_name: host_name(),
            host_timeout: plan.host_timeout,
        })
    }

    /// Whether no rank is left to wait for.
    fn has_nobody_left(&self) -> bool {
        let waits_for_missing = !self.launcher.has_ended() && !self.policy.is_ending();
        !(self.table.has_running() || (waits_for_missing && self.table.missing() > 0))
    }

    /// Admits agents presenting the cookie.
    fn admit(&mut self) {
        let late = Instant::now() + HELLO_PATIENCE;
        let new = self.listeners.accept().into_iter().map(Connection::accepted);
        self.unauthenticated.extend(new.map(|connection| Peer { connection, late, is_ready: true }));
        let surplus = self.unauthenticated.len().saturating_sub(UNAUTHENTICATED_MAX);
        for (at, peer) in std::mem::take(&mut self.unauthenticated).into_iter().enumerate() {
            let now = Instant::now();
            if !peer.is_ready && now < peer.late && at >= surplus {
                self.unauthenticated.push(peer);
                continue;
            }
            let Peer { connection: mut peer, late, .. } = peer;
            peer.fill_hello();
            let own = self.listeners.address.cookie;
            // A peer that knows the cookie is an agent, of whatever version.
            let is_agent = peer.has_said(&own.to_ne_bytes());
            match peer.next_with_text() {
                Some((Event::Hello { version: PROTOCOL_VERSION, cookie, rank }, host)) if cookie == own => {
                    self.welcome(peer, rank, host);
                }
                Some(_) if is_agent => self.refuse(peer),
                None if is_agent && !peer.is_open() => self.refuse(peer),
                None if peer.is_open() && now < late && at >= surplus => {
                    self.unauthenticated.push(Peer { connection: peer, late, is_ready: false });
                }
                // Dropped, and thus closed.
                _ => {}
            }
        }
    }

    /// An agent has another version.
    fn refuse(&mut self, mut connection: Connection) {
        connection.send(&Command::Refuse);
        let host = connection.peer().map_or_else(|| self.host_name.clone(), |address| address.to_string());
        let text =
            format!("the agent on {host} is of another version of vgasnetrun; install the same one on all hosts");
        self.break_down(1, text);
    }

    fn welcome(&mut self, mut connection: Connection, rank: Option<u32>, host: String) {
        let Some(place) = self.table.place(rank) else { return };
        connection.hurry();
        connection.send(&Command::Welcome { timeout_s: self.host_timeout.as_secs() as u32 });
        if let Some(command) = self.current_command {
            connection.send(&command);
        }
        let host = Host::new(host, connection.peer(), &self.host_name);
        let now = Instant::now();
        let (state, why, child) = (RankState::Fresh, None, ChildStatus::Running);
        self.table.entries[place] = Some(Entry { connection, host, pid: 0, state, why, child, heard: now });
        self.came = now;
        self.hear(place);
    }

    /// Handles the events of the agent of `rank`.
    fn hear(&mut self, rank: usize) {
        let Some(entry) = &mut self.table.entries[rank] else { return };
        entry.connection.flush();
        if entry.connection.fill() {
            entry.heard = Instant::now();
        }
        let mut at = rank;
        while let Some((event, text)) =
            self.table.entries[at].as_mut().and_then(|entry| entry.connection.next_with_text())
        {
            at = self.on_event(at, event, &text);
        }
        let entry = self.table.entries[at].as_mut().expect("it was there");
        if !entry.connection.is_open() && entry.child == ChildStatus::Running {
            entry.child = ChildStatus::Vanished(Instant::now());
        }
    }

    /// Handles an event of the agent of `rank`. Returns its rank, which may have changed.
    fn on_event(&mut self, rank: usize, event: Event, text: &str) -> usize {
        let entry = self.table.entries[rank].as_mut().expect("somebody has said it");
        match event {
            Event::Started { pid } => entry.pid = pid,
            Event::State { state, rank: own } => {
                entry.state = state;
                if state == RankState::Broken {
                    entry.why = Some(text.into());
                }
                return own.map_or(rank, |own| self.move_to(rank, own as usize));
            }
            Event::Ended(end) => {
                entry.child = ChildStatus::Ended;
                let decision = self.policy.on_end(rank, end, &self.table.view(), Instant::now());
                self.take(decision);
            }
            Event::CannotStart { status } => {
                entry.child = ChildStatus::Ended;
                let text = format!("cannot start rank {rank} of {}, {text}", self.table.entries.len());
                self.break_down(status, text);
            }
            Event::Hello { .. } | Event::Beat => {}
        }
        rank
    }

    /// An agent's child turns out to be a different rank. Returns its entry.
    fn move_to(&mut self, rank: usize, own: usize) -> usize {
        if own == rank || own >= self.table.entries.len() {
            return rank;
        }
        self.table.entries.swap(rank, own);
        self.policy.on_swap(rank, own);
        own
    }

    /// Judges an end of the other launcher before the ranks'. Ranks whose agents vanished with it are lost.
    fn judge_launcher(&mut self, now: Instant) {
        let Some(text) = self.launcher.take_end(now) else { return };
        let nobody_came = self.table.present().next().is_none();
        if nobody_came || self.has_nobody_left() && self.table.missing() == 0 {
            return;
        }
        for (_, entry) in self.table.present_mut().filter(|(_, entry)| matches!(entry.child, ChildStatus::Vanished(_)))
        {
            entry.child = ChildStatus::Lost;
        }
        self.break_down(self.launcher.status().max(1), text);
    }

    /// Gives up unresponsive agents, and ranks that cannot start.
    fn look_for_the_lost(&mut self, now: Instant) {
        self.judge_launcher(now);
        let seconds = self.host_timeout.as_secs();
        if let Some((host, ranks)) = self.table.silent_host(self.host_timeout, now) {
            self.lose(&ranks, format!("host {} ({}) has not answered for {seconds} s", host.name, name_ranks(&ranks)));
        }
        if let Some((host, ranks)) = self.table.vanished_host(VANISHED_PATIENCE, now) {
            self.lose(&ranks, format!("host {} ({}) has broken the connection", host.name, name_ranks(&ranks)));
        }
        let has_begun = self.table.present().next().is_some();
        let missing = self.table.missing();
        if has_begun && missing > 0 && now >= self.came + self.host_timeout {
            let ranks = self.table.entries.len();
            let text = format!(
                "{missing} of {ranks} ranks did not start within {seconds} s of the others; the other ranks were ended"
            );
            self.break_down(1, text);
        }
    }

    fn lose(&mut self, ranks: &[usize], what: String) {
        for rank in ranks {
            self.table.entries[*rank].as_mut().expect("it was there").child = ChildStatus::Lost;
        }
        let others = if self.table.has_running() { "; the other ranks were ended" } else { "" };
        self.break_down(1, what + others);
    }

    fn break_down(&mut self, status: i32, text: String) {
        let decision = self.policy.on_breakdown(status, text, Instant::now());
        self.take(decision);
    }

    fn take(&mut self, decision: Decision) {
        self.to_say.extend(decision.say);
        let Some(order) = decision.order else { return };
        for (_, entry) in self.table.present_mut().filter(|(_, entry)| entry.child == ChildStatus::Running) {
            entry.connection.send(&Command::Order(order));
        }
        if !matches!(order, Order::Forward(signal) if signal != libc::SIGTERM && signal != libc::SIGINT) {
            self.current_command = Some(Command::Order(order));
        }
    }

    /// Releases the agents and the other launcher.
    fn release(&mut self, now: Instant) {
        let has_lost = self.table.present().any(|(_, entry)| entry.child == ChildStatus::Lost);
        self.nobody_came = self.table.present().next().is_none();
        // The launcher may wait for GASNet's ranks although the program never became one. If it did, only the launcher
        // knows the status of its gasnet_exit.
        let no_ranks = self.table.present().all(|(_, entry)| entry.state == RankState::Fresh);
        self.launcher.see_off(has_lost || (self.is_dispensable && no_ranks), now);
        if self.may_dismiss_launcher() {
            self.launcher.dismiss(has_lost);
        }
        for (_, entry) in self.table.present_mut() {
            entry.connection.send(&Command::Release);
        }
        self.current_command = Some(Command::Release);
    }

    fn may_dismiss_launcher(&self) -> bool {
        let has_failed = self.policy.outcome().status != 0;
        self.is_dispensable && has_failed && self.table.missing() == 0
    }

    /// Returns the exit status for the user.
    fn finish(mut self) -> i32 {
        self.launcher.finish_output();
        self.to_say.drain(..).for_each(|text| say(&text));
        let status = self.policy.outcome().status;
        // If no rank has failed, the other launcher may have.
        let launcher_counts = self.nobody_came || (status == 0 && self.launcher.is_left_alone());
        if launcher_counts { self.launcher.status().max(status) } else { status }
    }
}
