//! Starting the ranks of a job on this machine, and seeing it to its end.
//!
//! The launcher makes the arena and the doorbells, starts the ranks, forwards signals and labels output. When one rank
//! dies it ends the others and says which one died, and how. It sleeps in the kernel until one of these happens; what it
//! then does is decided by `verdict`, which is a state machine without processes or clocks.
//!
//! ```no_run
//! use vgasnet_smp::launch::Launch;
//!
//! let program = std::env::current_exe().expect("this program has a path");
//! let outcome = Launch::new(4, program).arg("--as-a-rank").run();
//! assert_eq!(outcome.status, 0);
//! ```

mod output;
mod process;
mod rank;
mod signals;
mod verdict;

pub use process::Process;
pub use signals::Signals;
pub use verdict::{Order, RankView, Step, Verdict};

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit};

use crate::RANKS_MAX;
use crate::arena::Control;
pub use crate::arena::Life;
use crate::job::Objects;
pub use crate::job::raise_descriptor_limit;
use output::LabelledPipe;

/// How often the launcher looks at what no event tells it: whether ranks have initialised while another never will.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How long another host may be silent before it is lost, in seconds: what users may set, where a launcher looks after several.
pub const HOST_TIMEOUT_S: std::ops::RangeInclusive<u64> = 5..=3600;

/// A job to run: a program, its arguments, and how many ranks of it.
#[derive(Clone, Debug)]
pub struct Launch {
    ranks: u32,
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    label_output: bool,
    time_limit: Option<Duration>,
}

/// How a rank ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this status.
    Status(i32),
    /// This signal killed it.
    Signal(i32),
}

/// The rank whose end ended the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The rank.
    pub rank: u32,
    /// Its process, which is gone.
    pub pid: u32,
    /// How it ended.
    pub end: End,
}

/// How a job ended. No rank is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What a launcher should exit with: 0, or the status of the first rank that failed (128 + n for signal n), or 124
    /// when the time limit ended the job, 126 or 127 when the program could not be run.
    pub status: i32,
    /// The first rank that failed.
    pub failure: Option<Failure>,
}

impl Launch {
    /// A job of `ranks` ranks of `program`, which is looked for in `PATH` unless it contains a slash.
    pub fn new(ranks: u32, program: impl Into<OsString>) -> Self {
        assert!((1..=RANKS_MAX).contains(&ranks), "a job of {ranks} ranks; 1 to {RANKS_MAX} are possible");
        let (args, env) = Default::default();
        Launch { ranks, program: program.into(), args, env, label_output: false, time_limit: None }
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

    /// Sets an environment variable for the ranks. They inherit the others from this process.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Whether every line of output begins with the rank that wrote it. Without it, ranks write where this process does.
    pub fn label_output(mut self, label_output: bool) -> Self {
        self.label_output = label_output;
        self
    }

    /// Ends the job with status 124 when it runs for longer.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Runs the job to its end. What goes wrong is one line on stderr.
    ///
    /// The ranks die with the calling thread, and signals are only forwarded when no other thread of this process takes
    /// them: call this from the main thread, before there are others, where that matters.
    pub fn run(&self) -> Outcome {
        match self.start() {
            Ok(job) => job.supervise(),
            Err(StartError { status, text }) => {
                say(&text);
                Outcome { status, failure: None }
            }
        }
    }

    fn start(&self) -> Result<RunningJob, StartError> {
        let system = |what: &str, error: Errno| {
            let text = format!("{what} for {} ranks: {}{}", self.ranks, error.desc(), advice(error));
            StartError { status: 1, text }
        };
        let signals = Signals::block().map_err(|error| system("taking over signals", error))?;
        let objects =
            Objects::create(self.ranks).map_err(|error| system("making shared memory and doorbells", error))?;
        let control = Control::open(objects.arena.as_fd(), self.ranks)
            .map_err(|what| StartError { status: 1, text: format!("the arena {what}") })?;
        let mut job = RunningJob {
            processes: Vec::new(),
            pipes: Vec::new(),
            verdict: Verdict::new(self.time_limit.map(|limit| (limit, Instant::now() + limit))),
            control,
            signals,
        };
        for rank in 0..self.ranks {
            match rank::spawn(self, rank, &objects, job.signals.previous_mask()) {
                Ok((process, pipes)) => {
                    job.processes.push(process);
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
}

/// Why a job did not start.
struct StartError {
    status: i32,
    text: String,
}

/// What the user can do about an error of the system, if anything.
fn advice(error: Errno) -> String {
    if error != Errno::EMFILE {
        return String::new();
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default();
    format!("; at most {hard} are possible here, see \"ulimit -Hn\"")
}

/// Statuses as shells have them: 127 when there is no such program, 126 when it cannot be run.
pub fn cannot_run_status(error: &std::io::Error) -> i32 {
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Writes one line to stderr, whole.
pub fn say(text: &str) {
    // Nobody is left to be told when stderr is gone.
    let _ = std::io::stderr().write_all(format!("vgasnetrun: {text}\n").as_bytes());
}

struct RunningJob {
    processes: Vec<Process>,
    pipes: Vec<LabelledPipe>,
    verdict: Verdict,
    control: Control,
    signals: Signals,
}

impl RunningJob {
    fn supervise(mut self) -> Outcome {
        while self.processes.iter().any(Process::is_running) {
            for pipe in self.wait() {
                self.pipes[pipe].forward();
            }
            self.pipes.retain(LabelledPipe::is_open);
            // Before the ranks: a signal explains how they ended.
            while let Some((signal, from_terminal)) = self.signals.next() {
                let step = self.verdict.on_signal(signal, from_terminal, Instant::now());
                self.take(step);
            }
            self.reap();
            let step = self.verdict.on_time(&self.view(), Instant::now());
            self.take(step);
        }
        // What the ranks wrote is in the pipes. A process that a rank left behind may hold them open, so nobody waits for
        // their end.
        for pipe in &mut self.pipes {
            pipe.finish();
        }
        self.verdict.outcome()
    }

    /// Sleeps until a signal comes, a rank ends or writes, or it is time for something. Returns which pipes can be read or
    /// have ended.
    fn wait(&self) -> Vec<usize> {
        fn watch(fd: BorrowedFd<'_>) -> PollFd<'_> {
            PollFd::new(fd, PollFlags::POLLIN)
        }
        let mut watched = vec![watch(self.signals.as_fd())];
        watched.extend(self.pipes.iter().map(|pipe| watch(pipe.as_fd())));
        watched.extend(self.processes.iter().filter_map(Process::running_fd).map(watch));
        let look_again = self.verdict.must_look_again().then(|| Instant::now() + LOOK_AGAIN);
        let next = self.verdict.deadline().into_iter().chain(look_again).min();
        let timeout = next.map_or(PollTimeout::NONE, |at| {
            // One millisecond more than rounded down: waking before the deadline would only mean to sleep again.
            let left_ms = at.saturating_duration_since(Instant::now()).as_millis() + 1;
            PollTimeout::from(u16::try_from(left_ms).unwrap_or(u16::MAX))
        });
        if poll(&mut watched, timeout).is_err() {
            return Vec::new();
        }
        (0..self.pipes.len()).filter(|&pipe| watched[1 + pipe].any() == Some(true)).collect()
    }

    fn reap(&mut self) {
        for rank in 0..self.processes.len() {
            if let Some(end) = self.processes[rank].reap() {
                let step = self.verdict.on_end(rank, end, &self.view(), Instant::now());
                self.take(step);
            }
        }
    }

    fn take(&self, step: Step) {
        if let Some(text) = step.say {
            say(&text);
        }
        let Some(order) = step.order else { return };
        for (rank, process) in (0..).zip(&self.processes) {
            process.obey(order, self.control.block(rank).life());
        }
    }

    /// Kills what has been started of a job that cannot start.
    fn abandon(&mut self) {
        self.take(Step { order: Some(Order::Kill), say: None });
        self.processes.iter_mut().for_each(Process::wait);
    }

    fn view(&self) -> Vec<RankView> {
        let life = |rank| self.control.block(rank).life();
        let view = |(rank, process): (u32, &Process)| RankView {
            pid: process.pid(),
            host: None,
            life: life(rank),
            is_running: process.is_running(),
        };
        (0..).zip(&self.processes).map(view).collect()
    }
}
