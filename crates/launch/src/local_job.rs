//! A job on this machine: its launcher makes the shared memory, starts the ranks, forwards signals and labels output.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{SigSet, Signal};
use vgasnet_protocol::RankState;
use vgasnet_smp::{JOB_VARIABLE, RANKS_MAX, Rendezvous};

use crate::event_loop::{Role, Watched, run};
use crate::exit_policy::{Decision, End, ExitPolicy, Graces, Outcome};
use crate::memory_shortage::MemoryShortage;
use crate::output::{LabelledPipe, Stream};
use crate::process::{Process, fix_addresses};
use crate::rank_process::RankProcess;
use crate::rank_view::RankView;
use crate::signals::Signals;
use crate::{StartError, cannot_run_status, say};

/// A job to run: a program, its arguments, and the number of ranks.
#[derive(Clone, Debug)]
pub struct Launch {
    ranks: u32,
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    label_output: bool,
    randomizes_addresses: bool,
    time_limit: Option<Duration>,
}

impl Launch {
    /// A job of `ranks` ranks of `program`, found in `PATH` unless it contains a slash.
    pub fn new(ranks: u32, program: impl Into<OsString>) -> Self {
        assert!((1..=RANKS_MAX).contains(&ranks), "a job of {ranks} ranks; 1 to {RANKS_MAX} are possible");
        let (args, env) = Default::default();
        let (label_output, randomizes_addresses, time_limit) = (false, false, None);
        Launch { ranks, program: program.into(), args, env, label_output, randomizes_addresses, time_limit }
    }

    /// Adds an argument for the program.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments for the program.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable for the ranks. They inherit all others from this process.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Whether every line of output is prefixed with its rank. Otherwise ranks share this process's output.
    pub fn label_output(mut self, label_output: bool) -> Self {
        self.label_output = label_output;
        self
    }

    /// Whether the system randomises each rank's addresses. Without it, functions and variables have the same addresses
    /// on all ranks, as in forked ranks, if the system allows it.
    pub fn randomize_addresses(mut self, randomizes_addresses: bool) -> Self {
        self.randomizes_addresses = randomizes_addresses;
        self
    }

    /// Ends the job with status 124 at this time limit.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Runs the job to its end. An error is one line on stderr.
    ///
    /// The ranks die with the calling thread, and signals are forwarded only if no other thread of this process takes
    /// them. If this matters, call it from the main thread before starting others.
    pub fn run(&self) -> Outcome {
        let ran = run(|signals| self.start(signals), LocalJob::finish);
        ran.unwrap_or_else(|error| Outcome { status: error.tell(), failure: None })
    }

    fn start(&self, signals: &Signals) -> Result<LocalJob, StartError> {
        let rendezvous = Rendezvous::open(self.ranks);
        let rendezvous = rendezvous.map_err(|error| {
            let why =
                error.raw_os_error().map_or_else(|| error.to_string(), |code| Errno::from_raw(code).desc().into());
            let what = format!("making shared memory and doorbells for {} ranks", self.ranks);
            StartError::new(1, format!("{what}: {why}{}", advice(&error)))
        })?;
        let time_limit = self.time_limit.map(|limit| (limit, Instant::now() + limit));
        let policy = ExitPolicy::new(Graces::JOB, time_limit);
        let mut job = LocalJob {
            ranks: Vec::new(),
            pipes: Vec::new(),
            policy,
            rendezvous,
            is_refused: false,
            shortage: MemoryShortage::since_now(),
            starved: None,
        };
        for rank in 0..self.ranks {
            match self.spawn(rank, &job.rendezvous, signals.previous_mask()) {
                Ok((process, pipes)) => {
                    job.ranks.push(process.into());
                    job.pipes.extend(pipes);
                }
                Err(error) => {
                    job.abandon();
                    return Err(error);
                }
            }
        }
        Ok(job)
    }

    /// Starts `rank` with this signal mask. Labelled output has pipes to read.
    fn spawn(
        &self,
        rank: u32,
        rendezvous: &Rendezvous,
        mask: SigSet,
    ) -> Result<(Process, Vec<LabelledPipe>), StartError> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env(JOB_VARIABLE, rendezvous.variable(rank));
        if rank > 0 {
            command.stdin(Stdio::null());
        }
        if !self.randomizes_addresses {
            fix_addresses(&mut command);
        }
        if self.label_output {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let mut process = Process::spawn(command, mask, Signal::SIGKILL, None).map_err(|error| {
            let program = self.program.to_string_lossy();
            let text = format!("cannot start rank {rank} of {}, \"{program}\": {error}{}", self.ranks, advice(&error));
            StartError::new(cannot_run_status(&error), text)
        })?;
        let [out, err] = process.take_output();
        let pipes = [(out, Stream::Out), (err, Stream::Err)].into_iter();
        let pipe = |(pipe, stream): (Option<OwnedFd>, _)| Some(LabelledPipe::new(rank, pipe?, stream));
        Ok((process, pipes.filter_map(pipe).collect()))
    }
}

/// Advice to the user on a system error, if any.
fn advice(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default();
            format!("; at most {hard} are possible here, see \"ulimit -Hn\"")
        }
        Some(libc::EAGAIN) => "; the system or the user has no more processes, see `ulimit -u`".to_owned(),
        Some(libc::EFBIG) => "; raise `ulimit -f`".to_owned(),
        _ => String::new(),
    }
}

/// A running job.
struct LocalJob {
    ranks: Vec<RankProcess>,
    pipes: Vec<LabelledPipe>,
    policy: ExitPolicy,
    rendezvous: Rendezvous,
    /// The system refused a connection, which ends the job.
    is_refused: bool,
    /// Since the job's start.
    shortage: MemoryShortage,
    /// The first rank killed during a memory shortage, with advice.
    starved: Option<(usize, &'static str)>,
}

/// The meaning of a descriptor for a local job.
#[derive(Clone, Copy)]
enum Source {
    Rendezvous,
    Pipe(usize),
    Rank(usize),
}

impl Role for LocalJob {
    type Source = Source;
    const BEATS: bool = false;

    fn watch<'a>(&'a self, watched: &mut Watched<'a, Source>) {
        watched.readable((!self.is_refused).then(|| self.rendezvous.as_fd()), Source::Rendezvous);
        for (at, pipe) in self.pipes.iter().enumerate() {
            watched.readable(pipe.open_fd(), Source::Pipe(at));
        }
        for (rank, process) in self.ranks.iter().enumerate() {
            process.running_fds().for_each(|running| watched.readable(running, Source::Rank(rank)));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.policy.deadline().into_iter().chain(self.rendezvous.deadline()).min()
    }

    fn on_signal(&mut self, signal: i32, from_terminal: bool) {
        let decision = self.policy.on_signal(signal, from_terminal, Instant::now());
        self.take(decision);
    }

    fn on_ready(&mut self, source: Source) {
        match source {
            // `on_time` serves the arrived ranks.
            Source::Rendezvous => {}
            Source::Pipe(at) => {
                self.pipes[at].forward();
                if let Some(say) = self.pipes[at].refusal() {
                    let decision = self.policy.on_breakdown(1, say, Instant::now());
                    self.take(decision);
                }
            }
            Source::Rank(rank) => {
                if let Some(end) = self.ranks[rank].reap() {
                    if end == End::Signal(libc::SIGKILL) && self.starved.is_none() {
                        self.starved = self.shortage.advice().map(|what| (rank, what));
                    }
                    let decision = self.policy.on_end(rank, end, &self.view(), Instant::now());
                    self.take(decision);
                }
            }
        }
    }

    fn on_time(&mut self, now: Instant) {
        if let Err((what, error)) = self.serve() {
            let say = format!("{what}: {error}{}", advice(&error));
            let decision = self.policy.on_breakdown(1, say, now);
            self.take(decision);
        }
        let decision = self.policy.on_time(&self.view(), now);
        self.take(decision);
    }

    fn is_over(&self) -> bool {
        self.policy.has_given_up() || !self.ranks.iter().any(RankProcess::is_running)
    }
}

impl LocalJob {
    /// Serves arrived ranks for one turn: signals and ends of ranks come first. An error includes the failed operation.
    fn serve(&mut self) -> Result<(), (String, std::io::Error)> {
        if self.is_refused {
            return Ok(());
        }
        let ranks = &mut self.ranks;
        // A lost rank reports itself, or has ended.
        let visits = self.rendezvous.serve(&mut |rank, pid| ranks[rank as usize].found(pid));
        visits.map(drop).map_err(|error| {
            self.is_refused = true;
            ("cannot give a rank its shared memory".to_owned(), error)
        })
    }

    /// Reports processes not let in while ranks are missing: one of them may have been meant as a rank.
    fn tell_of_strangers(&self, status: i32) {
        let is_missing = |rank| self.rendezvous.state(rank) == RankState::Fresh;
        let missing = (0..self.ranks.len() as u32).filter(|rank| is_missing(*rank)).count();
        let strangers = self.rendezvous.strangers().to_string();
        if status != 0 && missing > 0 && !strangers.is_empty() {
            say(&format!("{missing} of {} ranks did not call vgasnet_init{strangers}", self.ranks.len()));
        }
    }

    fn take(&self, Decision { order, say: line }: Decision) {
        if let Some(line) = line {
            say(&line);
        }
        let Some(order) = order else { return };
        for (rank, process) in (0..).zip(&self.ranks) {
            process.obey(order, self.rendezvous.state(rank));
        }
    }

    /// Kills the started ranks of a job that cannot start.
    fn abandon(&mut self) {
        let decision = self.policy.kill(Instant::now());
        self.take(decision);
        self.ranks.iter_mut().for_each(RankProcess::wait);
    }

    fn view(&self) -> Vec<RankView> {
        let view = |(rank, process): (u32, &RankProcess)| RankView {
            pid: process.pid(),
            host: None,
            state: self.rendezvous.state(rank),
            why: None,
            shortage: self.starved.filter(|(starved, _)| *starved == rank as usize).map(|(_, what)| what),
            is_running: process.is_running(),
        };
        (0..).zip(&self.ranks).map(view).collect()
    }

    fn finish(mut self) -> Outcome {
        // A rank may outlive the script that started it.
        let decision = self.policy.kill(Instant::now());
        self.take(decision);
        // The ranks' output is in the pipes. A process left behind may hold them open, so their end is not awaited.
        self.pipes.iter_mut().for_each(LabelledPipe::finish);
        let refusal = self.pipes.iter_mut().find_map(LabelledPipe::refusal);
        // A process that cannot be killed may have locked its file.
        if !self.policy.has_given_up() {
            self.rendezvous.give_space_back();
        }
        let outcome = self.policy.outcome();
        self.tell_of_strangers(outcome.status);
        match refusal {
            Some(why) if outcome.status == 0 => {
                say(&why);
                Outcome { status: 1, ..outcome }
            }
            _ => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_reached_is_named() {
        for (errno, limit) in [(libc::EMFILE, "ulimit -Hn"), (libc::EAGAIN, "ulimit -u"), (libc::EFBIG, "ulimit -f")] {
            let advice = advice(&std::io::Error::from_raw_os_error(errno));
            assert!(advice.contains(limit), "{advice}");
        }
        assert_eq!(advice(&std::io::Error::from_raw_os_error(libc::ENOENT)), "");
    }
}
