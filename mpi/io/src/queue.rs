//! Non-blocking operations and split collectives, concurrent with the program. Some threads of the library begin them,
//! and run operations that vgasnet cannot run by itself; others wait for operations in flight.

use crate::ffi::OwnRequest;
use crate::operation::{Operation, Outcome};
use crate::vgasnet::{Library, OperationHandle};
use crate::{running, threads};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Work for any thread.
pub trait Work: Send {
    /// Begins it. Does not wait long, unless it is done afterwards.
    fn start(&self) -> Started;
    /// The result after work in flight has ended.
    fn end(&self) -> Outcome;
}

/// The result of starting some work.
#[derive(Debug)]
pub enum Started {
    Done(Outcome),
    InFlight(OperationHandle),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task of a library thread: an operation, its completion, and the counter of its file.
struct Task {
    work: Box<dyn Work>,
    operation: Arc<Operation>,
    /// The request to complete.
    request: Option<OwnRequest>,
    open: Arc<Open>,
}

/// The unfinished operations of a file.
#[derive(Debug, Default)]
struct Open {
    count: AtomicUsize,
    mutex: Mutex<()>,
    is_idle: Condvar,
}

/// Maximum number of threads of a line. Several, so that a large operation does not delay all later ones.
const THREADS_MAX: usize = 4;

/// Work for some threads of the library, for all files, in order.
struct Line<T> {
    state: Mutex<Contents<T>>,
    is_longer: Condvar,
    thread_name: &'static str,
    /// The endless loop of a thread.
    run: fn(),
}

struct Contents<T> {
    waiting: VecDeque<T>,
    threads: usize,
    /// Of these, the number waiting for work.
    idle: usize,
}

impl<T> Line<T> {
    const fn new(thread_name: &'static str, run: fn()) -> Line<T> {
        let state = Contents { waiting: VecDeque::new(), threads: 0, idle: 0 };
        Line { state: Mutex::new(state), is_longer: Condvar::new(), thread_name, run }
    }

    /// Hands work to a thread. Returns it if the system has no thread.
    fn add(&self, one: T) -> Result<(), T> {
        let mut state = lock(&self.state);
        if state.waiting.len() >= state.idle && state.threads < THREADS_MAX {
            state.threads += usize::from(threads::start(self.thread_name, self.run).is_ok());
        }
        if state.threads == 0 {
            return Err(one);
        }
        state.waiting.push_back(one);
        self.is_longer.notify_one();
        Ok(())
    }

    /// The first entry; waits for it.
    fn next(&self) -> T {
        let mut state = lock(&self.state);
        loop {
            if let Some(one) = state.waiting.pop_front() {
                return one;
            }
            state.idle += 1;
            state = self.is_longer.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn next_at_once(&self) -> Option<T> {
        lock(&self.state).waiting.pop_front()
    }
}

/// Tasks not begun.
static TASKS: Line<Task> = Line::new("vgasnet-mpi-io", begin_tasks);

/// Tasks in flight, for threads that wait for them.
static IN_FLIGHT: Line<(Task, OperationHandle)> = Line::new("vgasnet-mpi-end", end_tasks);

fn begin_tasks() {
    loop {
        TASKS.next().begin();
    }
}

/// A task added while all these threads wait is noticed once one of them has seen an end.
fn end_tasks() {
    let (mut tasks, mut handles) = (Vec::new(), Vec::new());
    loop {
        let first = tasks.is_empty().then(|| IN_FLIGHT.next());
        for (task, handle) in first.into_iter().chain(std::iter::from_fn(|| IN_FLIGHT.next_at_once())) {
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

/// Tasks exist, so vgasnet runs.
fn vgasnet_of_tasks() -> &'static Library {
    running::library().expect("files are open")
}

impl Task {
    fn begin(self) {
        match self.work.start() {
            Started::Done(outcome) => self.end(outcome),
            Started::InFlight(handle) => {
                if let Err((task, handle)) = IN_FLIGHT.add((self, handle)) {
                    vgasnet_of_tasks().wait_some(&mut [handle]);
                    let outcome = task.work.end();
                    task.end(outcome);
                }
            }
        }
    }

    fn end(self, outcome: Outcome) {
        let Task { work, operation, request, open } = self;
        drop(work);
        operation.end(outcome);
        if let Some(request) = request {
            request.complete();
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
    /// The split collective in progress.
    pub split: Mutex<Option<Split>>,
}

/// A split collective between its begin and its end.
#[derive(Debug)]
pub struct Split {
    pub operation: Arc<Operation>,
    /// Its name.
    pub name: &'static str,
}

impl Queue {
    /// Has an operation done. If `is_short` it is begun here, which saves waking a thread.
    pub fn add(&self, operation: Arc<Operation>, request: Option<OwnRequest>, work: Box<dyn Work>, is_short: bool) {
        self.open.count.fetch_add(1, Ordering::AcqRel);
        let task = Task { work, operation, request, open: Arc::clone(&self.open) };
        let own = if is_short { Err(task) } else { TASKS.add(task) };
        own.err().into_iter().for_each(Task::begin);
    }

    /// Waits until no operation of the file is in flight.
    pub fn wait_until_idle(&self) {
        let mut idle = lock(&self.open.mutex);
        while self.open.count.load(Ordering::Acquire) > 0 {
            idle = self.open.is_idle.wait(idle).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
