//! Operations that a thread of the library does while the program goes on: non-blocking ones, and split collectives.

use crate::ffi;
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
pub type Work = Box<dyn FnOnce() -> Outcome + Send>;

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
    work: Work,
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

/// One thread does the tasks of all files, in order.
static TASKS: Mutex<VecDeque<Task>> = Mutex::new(VecDeque::new());
static HAS_TASKS: Condvar = Condvar::new();

fn run() {
    loop {
        let mut tasks = lock(&TASKS);
        let task = loop {
            match tasks.pop_front() {
                Some(task) => break task,
                None => tasks = HAS_TASKS.wait(tasks).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(tasks);
        task.run();
    }
}

impl Task {
    fn run(self) {
        let Task { work, operation, request, open } = self;
        operation.end(work());
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
    /// Has the thread do something.
    pub fn add(&self, operation: Arc<Operation>, request: Option<u64>, work: Work) {
        static HAS_THREAD: OnceLock<bool> = OnceLock::new();
        self.open.count.fetch_add(1, Ordering::AcqRel);
        let task = Task { work, operation, request, open: Arc::clone(&self.open) };
        let has_thread = *HAS_THREAD.get_or_init(|| {
            let thread = std::thread::Builder::new().name("vgasnet-mpi-io".to_owned());
            thread.spawn(run).is_ok()
        });
        if has_thread {
            lock(&TASKS).push_back(task);
            HAS_TASKS.notify_one();
        } else {
            // The system gives no thread: whoever adds something does it.
            task.run();
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
