//! The files through blocking calls on a small number of threads, where io_uring is not permitted.
//!
//! Urgent operations go before earlier ones. A thread takes a run of consecutive operations as one piece of work.

use super::file::BackingFile;
use super::named::Files;
use super::operation::{FileSlot, IoOperation, Progress, REQUEST_BYTES_MAX, Step};
use super::{BlockingReader, Busy, NamedFile, SharedFile, Storage};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use vgasnet_conduit::blocking_signals;

/// Maximum number of threads. With one, the disk idles between operations of whole pages; with four, it always has the
/// next one.
const THREADS_MAX: usize = 4;

/// A backing file and named files, read and written by threads with `pread` and `pwrite`.
pub struct ThreadStorage {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    files: Files,
    depth: usize,
    in_flight: usize,
    /// Runs in flight, each of at least one operation.
    runs: usize,
}

/// After this many urgent runs one other run goes first, so that none starves.
const URGENT_RUNS_MAX: usize = 64;

struct Shared {
    file: BackingFile,
    request_bytes_max: usize,
    work: Mutex<Work>,
    /// Notified of each queued run, and of the end.
    queued: Condvar,
    /// Has a count exactly while `Work::completed` is not empty; both change under the lock.
    doorbell: EventFd,
}

#[derive(Default)]
struct Work {
    urgent: VecDeque<Run>,
    others: VecDeque<Run>,
    /// Urgent runs since the last other run.
    passed: usize,
    completed: Vec<Completed>,
    is_stopping: bool,
}

/// Operations for one thread, in order, on a named file or the backing file.
struct Run {
    named: Option<Arc<NamedFile>>,
    operations: Vec<Progress>,
}

struct Completed {
    token: u64,
    result: io::Result<()>,
    is_last: bool,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.others.is_empty()
    }

    fn push(&mut self, run: Run) {
        let is_urgent = run.operations.iter().any(|progress| progress.operation.is_urgent);
        if is_urgent { &mut self.urgent } else { &mut self.others }.push_back(run);
    }

    fn next(&mut self) -> Option<Run> {
        let urgent = if self.passed < URGENT_RUNS_MAX { self.urgent.pop_front() } else { None };
        self.passed = if urgent.is_some() { self.passed + 1 } else { 0 };
        urgent.or_else(|| self.others.pop_front()).or_else(|| self.urgent.pop_front())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().expect("nothing panics under this lock")
    }
}

impl ThreadStorage {
    /// Starts the threads. `depth` is the bound on runs in flight, at least 1.
    ///
    /// # Errors
    /// The system's, if it grants no thread or no event descriptor.
    ///
    /// # Panics
    /// If `depth` is 0.
    pub fn new(file: BackingFile, depth: usize) -> io::Result<ThreadStorage> {
        ThreadStorage::with_requests_of(file, depth, REQUEST_BYTES_MAX)
    }

    /// As [`ThreadStorage::new`], with requests of at most `request_bytes_max` (whole blocks).
    pub(super) fn with_requests_of(
        file: BackingFile,
        depth: usize,
        request_bytes_max: usize,
    ) -> io::Result<ThreadStorage> {
        assert!(depth > 0, "a storage without operations in flight does nothing");
        let doorbell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let work = Mutex::new(Work { completed: Vec::with_capacity(depth), ..Work::default() });
        let shared = Arc::new(Shared { file, request_bytes_max, work, queued: Condvar::new(), doorbell });
        let mut storage =
            ThreadStorage { shared, workers: Vec::new(), files: Files::default(), depth, in_flight: 0, runs: 0 };
        // The client's signal handlers must run on the client's threads. A new thread inherits the signal mask of its
        // creator.
        blocking_signals(|| storage.start_workers(depth.min(THREADS_MAX)))?;
        Ok(storage)
    }

    fn start_workers(&mut self, count: usize) -> io::Result<()> {
        for _ in 0..count {
            let shared = Arc::clone(&self.shared);
            let worker = thread::Builder::new().name("vgasnet-storage".into()).spawn(move || work(&shared))?;
            self.workers.push(worker);
        }
        Ok(())
    }
}

impl Storage for ThreadStorage {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        // SAFETY: the caller has promised the conditions of `start_run`.
        if unsafe { self.start_run(&[operation]) } == 0 { Err(Busy) } else { Ok(()) }
    }

    unsafe fn start_run(&mut self, run: &[IoOperation]) -> usize {
        let size_bytes = self.shared.file.size_bytes();
        let operations: Vec<Progress> = run.iter().map(|operation| Progress::new(*operation, size_bytes)).collect();
        let Some(first) = run.first().filter(|_| self.runs < self.depth) else { return 0 };
        assert!(run.iter().all(|operation| operation.file == first.file), "they are no run: {run:?}");
        let named = self.files.get(first.file).cloned();
        self.runs += 1;
        self.in_flight += run.len();
        self.shared.lock().push(Run { named, operations });
        self.shared.queued.notify_one();
        run.len()
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let mut work = self.shared.lock();
        if work.completed.is_empty() {
            return;
        }
        let completed = std::mem::replace(&mut work.completed, Vec::with_capacity(self.depth));
        self.shared.doorbell.read().expect("the doorbell holds a count while there are completions");
        drop(work);
        self.in_flight -= completed.len();
        for Completed { token, result, is_last } in completed {
            self.runs -= usize::from(is_last);
            sink(token, result);
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot {
        self.files.add(file)
    }

    fn remove_file(&mut self, slot: FileSlot) {
        self.files.remove(slot);
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.doorbell.as_fd())
    }

    fn reader(&self, file: FileSlot) -> Option<Arc<dyn BlockingReader>> {
        if let Some(named) = self.files.get(file).cloned() {
            return Some(named);
        }
        let shared: Arc<Shared> = Arc::clone(&self.shared);
        Some(shared)
    }
}

impl BlockingReader for Shared {
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()> {
        // SAFETY: the caller has promised the conditions of `read`.
        unsafe { self.file.read(operation) }
    }

    fn shared(&self) -> Option<SharedFile> {
        self.file.shared()
    }
}

impl Drop for ThreadStorage {
    /// Drops the operations not yet begun and waits for the others, so that no memory is accessed afterwards.
    fn drop(&mut self) {
        let mut work = self.shared.lock();
        work.is_stopping = true;
        (work.urgent, work.others) = Default::default();
        drop(work);
        self.shared.queued.notify_all();
        for worker in self.workers.drain(..) {
            worker.join().expect("a worker does not panic");
        }
    }
}

/// The body of a worker thread.
fn work(shared: &Shared) {
    loop {
        let mut guard = shared
            .queued
            .wait_while(shared.lock(), |work| work.is_empty() && !work.is_stopping)
            .expect("nothing panics under this lock");
        let Some(run) = guard.next() else { return };
        drop(guard);
        let mut left = run.operations.len();
        for mut progress in run.operations {
            let result = finish(shared, run.named.as_deref(), &mut progress);
            left -= 1;
            let mut guard = shared.lock();
            if guard.completed.is_empty() {
                shared.doorbell.write(1).expect("the doorbell holds at most one count");
            }
            guard.completed.push(Completed { token: progress.operation.token, result, is_last: left == 0 });
        }
    }
}

fn finish(shared: &Shared, named: Option<&NamedFile>, progress: &mut Progress) -> io::Result<()> {
    if let Some(named) = named {
        // SAFETY: the operation's memory is valid for its direction and left alone until `poll` returns the operation.
        // Only this thread uses it until then.
        return unsafe { named.finish(progress, shared.request_bytes_max) };
    }
    loop {
        let request = progress.request(shared.request_bytes_max);
        // SAFETY: the request is a part of the operation's memory, which is valid for its direction and left alone
        // until `poll` returns the operation. Only this thread uses it until then.
        let result = unsafe { shared.file.transfer(progress.operation.direction, &request) };
        if let Step::Complete(result) = progress.advance(result, None) {
            return result;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vgasnet_settings::IoDirection;

    fn run(token: u64, is_urgent: bool) -> Run {
        let memory = std::ptr::null_mut();
        let operation = IoOperation {
            file: FileSlot::BACKING,
            direction: IoDirection::Read,
            offset_bytes: 0,
            memory,
            len_bytes: 4096,
            token,
            is_urgent,
        };
        Run { named: None, operations: vec![Progress::new(operation, 4096)] }
    }

    fn order(work: &mut Work) -> Vec<u64> {
        std::iter::from_fn(|| work.next()).map(|run| run.operations[0].operation.token).collect()
    }

    #[test]
    fn what_somebody_waits_for_goes_first() {
        let mut work = Work::default();
        [false, false, true, false, true]
            .into_iter()
            .zip(0..)
            .for_each(|(urgent, token)| work.push(run(token, urgent)));
        assert_eq!(order(&mut work), [2, 4, 0, 1, 3]);
    }

    #[test]
    fn nothing_waits_for_ever() {
        let mut work = Work::default();
        work.push(run(1000, false));
        (0..100).for_each(|token| work.push(run(token, true)));
        assert_eq!(order(&mut work).iter().position(|token| *token == 1000), Some(URGENT_RUNS_MAX));
    }
}
