//! The backing file through blocking calls on a few threads, where io_uring is not permitted.

use super::file::BackingFile;
use super::operation::{IoOperation, Progress, REQUEST_BYTES_MAX, Step};
use super::{BlockingReader, Busy, Storage};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use vgasnet_conduit::blocking_signals;

/// Few threads are enough for whole pages: with one, the disk idles between operations; with so many, it has always the
/// next.
const THREADS_MAX: usize = 4;

/// A backing file that a few threads read and write with `pread` and `pwrite`.
pub struct ThreadStorage {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    depth: usize,
    in_flight: usize,
}

struct Shared {
    file: BackingFile,
    request_bytes_max: usize,
    work: Mutex<Work>,
    /// Notified of each operation that is queued, and of the end.
    queued: Condvar,
    /// Has a count exactly while `Work::completed` is not empty; both change under the lock.
    doorbell: EventFd,
}

#[derive(Default)]
struct Work {
    queue: VecDeque<Progress>,
    completed: Vec<(u64, io::Result<()>)>,
    is_stopping: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().expect("nothing panics under this lock")
    }
}

impl ThreadStorage {
    /// Starts the threads. `depth` is the bound on operations in flight, from 1.
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
        let work = Mutex::new(Work {
            queue: VecDeque::with_capacity(depth),
            completed: Vec::with_capacity(depth),
            is_stopping: false,
        });
        let shared = Arc::new(Shared { file, request_bytes_max, work, queued: Condvar::new(), doorbell });
        let mut storage = ThreadStorage { shared, workers: Vec::new(), depth, in_flight: 0 };
        // The client's signal handlers belong on the client's threads. A new thread inherits the mask of its creator.
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
        let progress = Progress::new(operation, self.shared.file.size_bytes());
        if self.in_flight == self.depth {
            return Err(Busy);
        }
        self.in_flight += 1;
        self.shared.lock().queue.push_back(progress);
        self.shared.queued.notify_one();
        Ok(())
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
        for (token, result) in completed {
            sink(token, result);
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.doorbell.as_fd())
    }

    fn reader(&self) -> Option<Arc<dyn BlockingReader>> {
        let shared: Arc<Shared> = Arc::clone(&self.shared);
        Some(shared)
    }
}

impl BlockingReader for Shared {
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()> {
        // SAFETY: the caller has promised what this needs.
        unsafe { self.file.read(operation) }
    }
}

impl Drop for ThreadStorage {
    /// Drops the operations that no thread has begun and waits for the others, so that no memory is accessed
    /// afterwards.
    fn drop(&mut self) {
        let mut work = self.shared.lock();
        work.is_stopping = true;
        work.queue.clear();
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
            .wait_while(shared.lock(), |work| work.queue.is_empty() && !work.is_stopping)
            .expect("nothing panics under this lock");
        let Some(mut progress) = guard.queue.pop_front() else { return };
        drop(guard);
        let result = run(shared, &mut progress);
        let mut guard = shared.lock();
        if guard.completed.is_empty() {
            shared.doorbell.write(1).expect("the doorbell holds at most one count");
        }
        guard.completed.push((progress.operation.token, result));
    }
}

fn run(shared: &Shared, progress: &mut Progress) -> io::Result<()> {
    loop {
        let request = progress.request(shared.request_bytes_max);
        // SAFETY: the request is a part of the operation's memory, which is valid for its direction and left alone
        // until `poll` hands the operation out. This thread has it until then.
        let result = unsafe { shared.file.transfer(progress.operation.direction, &request) };
        if let Step::Complete(result) = progress.advance(result) {
            return result;
        }
    }
}
