//! Operations that go on while the program does: non-blocking ones, and split collectives. One thread of the library begins them, and does
//! those that vgasnet cannot do by itself; another one waits for what is under way.

use crate::vgasnet::{Handle, Library};
use crate::{ffi, job};
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// How an operation has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// MPI's code.
    pub code: c_int,
    /// Bytes that were moved.
    pub bytes: u64,
}

/// What is to be done, by any thread.
pub trait Work: Send {
    /// Begins it, and does not wait for long unless it is done then.
    fn start(&self) -> Started;
    /// How it has ended that was under way.
    fn end(&self) -> Outcome;
}

/// What has come of the start of some work.
#[derive(Debug)]
pub enum Started {
    Done(Outcome),
    UnderWay(Handle),
}

/// An operation of a queue.
#[derive(Debug, Default)]
pub struct Operation {
    outcome: Mutex<Option<Outcome>>,
    is_done: Condvar,
}

/// How an operation has ended whose request is complete.
pub fn outcome(operation: &Operation) -> Outcome {
    lock(&operation.outcome).unwrap_or_default()
}

impl Operation {
    /// Waits until it is done.
    pub fn wait(&self) -> Outcome {
        let mut outcome = lock(&self.outcome);
        loop {
            match *outcome {
                Some(outcome) => return outcome,
                None => outcome = self.is_done.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn end(&self, outcome: Outcome) {
        *lock(&self.outcome) = Some(outcome);
        self.is_done.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a thread of the library does: an operation, who is told of its end, and the operations of its file.
struct Task {
    work: Box<dyn Work>,
    operation: Arc<Operation>,
    /// The request to complete.
    request: Option<u64>,
    open: Arc<Open>,
}

/// How many operations of a file are not done.
#[derive(Debug, Default)]
struct Open {
    count: AtomicUsize,
    mutex: Mutex<()>,
    is_idle: Condvar,
}

/// What a thread of the library is to do: for all files, in order.
struct Line<T> {
    waiting: Mutex<VecDeque<T>>,
    is_longer: Condvar,
}

impl<T> Line<T> {
    const fn new() -> Line<T> {
        Line { waiting: Mutex::new(VecDeque::new()), is_longer: Condvar::new() }
    }

    fn add(&self, one: T) {
        lock(&self.waiting).push_back(one);
        self.is_longer.notify_one();
    }

    /// All that is there; waits for the first.
    fn wait(&self) -> VecDeque<T> {
        let mut waiting = lock(&self.waiting);
        while waiting.is_empty() {
            waiting = self.is_longer.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut waiting)
    }
}

/// Tasks that are not begun, of the one thread.
static TASKS: Line<Task> = Line::new();

/// Tasks under way, of the other.
static UNDER_WAY: Line<(Task, Handle)> = Line::new();

fn begin_tasks() {
    loop {
        TASKS.wait().into_iter().for_each(Task::begin);
    }
}

fn end_tasks() {
    let (mut tasks, mut handles) = (Vec::new(), Vec::new());
    loop {
        let new = if tasks.is_empty() { UNDER_WAY.wait() } else { std::mem::take(&mut *lock(&UNDER_WAY.waiting)) };
        for (task, handle) in new {
            tasks.push(task);
            handles.push(handle);
        }
        vgasnet_of_tasks().wait_some(&mut handles);
        for at in (0..tasks.len()).rev().filter(|at| handles[*at].is_done()).collect::<Vec<_>>() {
            handles.swap_remove(at);
            let task: Task = tasks.swap_remove(at);
            let outcome = task.work.end();
            task.end(outcome);
        }
    }
}

/// There are tasks, so it runs.
fn vgasnet_of_tasks() -> &'static Library {
    job::library().expect("files are open")
}

/// Starts a thread of the library's, once. Whether it runs: the system may give none.
fn has_thread(started: &OnceLock<bool>, name: &str, run: fn()) -> bool {
    *started.get_or_init(|| std::thread::Builder::new().name(name.to_owned()).spawn(run).is_ok())
}

impl Task {
    fn begin(self) {
        static HAS_THREAD: OnceLock<bool> = OnceLock::new();
        match self.work.start() {
            Started::Done(outcome) => self.end(outcome),
            Started::UnderWay(handle) if has_thread(&HAS_THREAD, "vgasnet-mpi-end", end_tasks) => {
                UNDER_WAY.add((self, handle));
            }
            Started::UnderWay(handle) => {
                vgasnet_of_tasks().wait_some(&mut [handle]);
                let outcome = self.work.end();
                self.end(outcome);
            }
        }
    }

    fn end(self, outcome: Outcome) {
        let Task { work, operation, request, open } = self;
        drop(work);
        operation.end(outcome);
        if let Some(request) = request {
            ffi::complete(request);
        }
        let _idle = lock(&open.mutex);
        open.count.fetch_sub(1, Ordering::AcqRel);
        open.is_idle.notify_all();
    }
}

/// The operations of a file.
#[derive(Debug, Default)]
pub struct Queue {
    open: Arc<Open>,
    /// The split collective that has begun.
    pub split: Mutex<Option<Split>>,
}

/// A split collective between its begin and its end.
#[derive(Debug)]
pub struct Split {
    pub operation: Arc<Operation>,
    /// Which one.
    pub name: &'static str,
}

impl Queue {
    /// Has something done. What `is_short` is begun here, so that it costs no thread its sleep.
    pub fn add(&self, operation: Arc<Operation>, request: Option<u64>, work: Box<dyn Work>, is_short: bool) {
        static HAS_THREAD: OnceLock<bool> = OnceLock::new();
        self.open.count.fetch_add(1, Ordering::AcqRel);
        let task = Task { work, operation, request, open: Arc::clone(&self.open) };
        if !is_short && has_thread(&HAS_THREAD, "vgasnet-mpi-io", begin_tasks) {
            TASKS.add(task);
        } else {
            task.begin();
        }
    }

    /// Waits until no operation of the file is under way.
    pub fn wait_until_idle(&self) {
        let mut idle = lock(&self.open.mutex);
        while self.open.count.load(Ordering::Acquire) > 0 {
            idle = self.open.is_idle.wait(idle).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
