//! The files through io_uring.
//!
//! Each operation is submitted at once, by an `io_uring_enter` of its own, so that the disk begins without waiting for
//! the next poll. The call itself takes 2 µs. A batch would not save the other costs, mostly pinning the memory: 60 to
//! 150 µs for 4 MiB, 8 µs if registered. Operations over [`INLINE_BYTES_MAX`] go to a kernel thread instead: pinning 64
//! MiB takes milliseconds, and with a full disk queue the call blocks, for up to 40 ms as measured.
//!
//! The ring is set up without `SINGLE_ISSUER`, `DEFER_TASKRUN` and `COOP_TASKRUN`. Any thread may start an operation
//! and then compute, or end, while another thread waits for it. With those flags the kernel would post the completion
//! only when the first thread enters it again. The price: a completion interrupts the thread that started the
//! operation, so a system call that is never restarted (`epoll_wait`) may return `EINTR` there without any signal.
//!
//! No file is registered with the ring. The kernel tears a ring down some time after the process has ended, and a
//! registered file keeps its space until then: the next job would find the disk full.

use super::buffers::Buffers;
use super::file::BackingFile;
use super::named::Files;
use super::operation::{FileSlot, IoOperation, Progress, REQUEST_BYTES_MAX, Step};
use super::run::Run;
use super::{BlockingReader, Busy, IoDirection, NamedFile, Storage};
use io_uring::{IoUring, Probe, opcode, squeue, types};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::thread;
use vgasnet_conduit::say;

/// Maximum length of a request the submitting thread executes itself, in bytes: a default page.
const INLINE_BYTES_MAX: usize = 4 << 20;

/// The kernel refuses io_uring, or lacks resources or features for it.
#[derive(Debug)]
pub struct Refused {
    /// The file, for another kind of storage.
    pub file: BackingFile,
    /// `ENOSYS` or `EPERM` if io_uring is not permitted, `ENOMEM` if memory or `ulimit -l` is short,
    /// [`io::ErrorKind::Unsupported`] if the kernel is too old for reads and writes (before 5.6).
    pub error: io::Error,
}

/// A backing file and named files, read and written by the kernel through io_uring.
pub struct RingStorage {
    ring: IoUring,
    file: Arc<BackingFile>,
    files: Files,
    /// The operations in flight. A completion carries the index of its slot.
    slots: Vec<Option<Slot>>,
    /// Number of operations in flight.
    operations: usize,
    /// The indices of the empty slots.
    empty: Vec<usize>,
    /// The memory registered with the kernel.
    buffers: Buffers,
    /// [`RingStorage::register`] was called.
    takes_buffers: bool,
    /// Maximum length of a request, in bytes: whole blocks.
    pub(super) request_bytes_max: usize,
}

/// The work of one request to the kernel.
enum Slot {
    /// An operation, and the ones to do after it in the same slot: of a run done one by one.
    One(Progress, Vec<IoOperation>),
    /// Consecutive operations in the file.
    Run(Run),
}

impl Slot {
    /// The first operation; all operations in a slot are of the same file.
    fn first(&self) -> &IoOperation {
        match self {
            Slot::One(progress, _) => &progress.operation,
            Slot::Run(run) => &run.operations()[0],
        }
    }
}

impl RingStorage {
    /// Sets up a ring for `file`. `depth` is the bound on requests in flight, 1 to 4096; a run is one request.
    ///
    /// # Errors
    /// [`Refused`], which returns the file.
    ///
    /// # Panics
    /// If `depth` is out of range.
    pub fn new(file: BackingFile, depth: usize) -> Result<RingStorage, Refused> {
        assert!((1..=4096).contains(&depth), "a ring of depth {depth}");
        match set_up(depth) {
            Ok(ring) => Ok(RingStorage {
                ring,
                file: Arc::new(file),
                files: Files::default(),
                slots: (0..depth).map(|_| None).collect(),
                operations: 0,
                empty: (0..depth).rev().collect(),
                buffers: Buffers::default(),
                takes_buffers: false,
                request_bytes_max: REQUEST_BYTES_MAX,
            }),
            Err(error) => Err(Refused { file, error }),
        }
    }

    /// Keeps memory of `ranges` (address, length in bytes) pinned from the first operation on it, so that later ones
    /// need not pin it again. A chunk is `page_bytes` long, or a multiple if there are more pages than entries in the
    /// kernel's table. A chunk becomes resident with its first use and stays pinned until the storage is dropped, so
    /// the ranges must stay mapped until then. An operation across chunks pins its memory itself.
    ///
    /// If the kernel refuses, operations work as before, and `warn` gets a line for the user: at most once, now or at
    /// an operation.
    ///
    /// # Panics
    /// If it was called before or operations are in flight.
    pub fn register(
        &mut self,
        ranges: &[(*mut u8, usize)],
        page_bytes: usize,
        warn: impl FnOnce(&str) + Send + 'static,
    ) {
        assert!(!self.takes_buffers && self.in_flight() == 0, "buffers are registered once, at the start");
        self.takes_buffers = true;
        self.buffers = Buffers::new(&self.ring.submitter(), ranges, page_bytes, Box::new(warn));
    }

    /// Bytes of the ranges of [`RingStorage::register`] pinned so far.
    pub fn registered_bytes(&self) -> usize {
        self.buffers.registered_bytes()
    }

    /// Puts the next request of a slot into the submission queue.
    fn queue(&mut self, slot: usize) {
        let entry = self.entry(slot).user_data(slot as u64);
        // SAFETY: the file is open as long as it has operations in flight. The memory is valid and left alone until
        // `poll` returns the operation or `drop` returns, and neither happens while the kernel has the request.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the queue has room for one request for each slot");
    }

    fn entry(&mut self, slot: usize) -> squeue::Entry {
        let what = self.slots[slot].as_ref().expect("a slot with a request holds an operation");
        let file = types::Fd(self.descriptor(what.first().file));
        let progress = match what {
            // A no-op completes like the other requests, and `advance` then fails the operation.
            Slot::One(progress, _) if self.refusal(&progress.operation).is_some() => return opcode::Nop::new().build(),
            Slot::One(progress, _) => progress,
            Slot::Run(run) => return run.entry(file, self.request_bytes_max),
        };
        let request = progress.request(self.request_bytes_max);
        let len_bytes = u32::try_from(request.len_bytes).expect("a request has at most 1 GiB");
        let (offset_bytes, pointer) = (request.offset_bytes, request.pointer);
        let buffer = self.buffers.index_of(&self.ring.submitter(), pointer as usize, request.len_bytes);
        let entry = match (progress.operation.direction, buffer) {
            (IoDirection::Read, Some(buffer)) => {
                opcode::ReadFixed::new(file, pointer, len_bytes, buffer).offset(offset_bytes).build()
            }
            (IoDirection::Read, None) => opcode::Read::new(file, pointer, len_bytes).offset(offset_bytes).build(),
            (IoDirection::Write, Some(buffer)) => {
                opcode::WriteFixed::new(file, pointer, len_bytes, buffer).offset(offset_bytes).build()
            }
            (IoDirection::Write, None) => opcode::Write::new(file, pointer, len_bytes).offset(offset_bytes).build(),
        };
        let is_inline = request.len_bytes <= INLINE_BYTES_MAX;
        if is_inline { entry } else { entry.flags(squeue::Flags::ASYNC) }
    }

    fn descriptor(&self, file: FileSlot) -> RawFd {
        let named = self.files.get(file).and_then(|named| named.descriptor());
        named.unwrap_or_else(|| self.file.as_fd().as_raw_fd())
    }

    /// The error of an operation that must not reach the kernel.
    fn refusal(&self, operation: &IoOperation) -> Option<io::Error> {
        self.files.get(operation.file)?.refusal(operation)
    }

    /// Submits the queued requests. Requests refused for lack of memory stay queued until the next poll, after a
    /// completion. If no request is in the kernel, and so no completion will come, this repeats until the kernel takes
    /// them.
    fn submit(&mut self) {
        loop {
            let queued = self.ring.submission().len();
            if queued == 0 {
                return;
            }
            let in_kernel = self.slots.len() - self.empty.len() - queued;
            if !self.enter(0) && in_kernel > 0 {
                return;
            }
        }
    }

    /// Submits the queued requests and waits for `want` completions. Returns false if the kernel is too busy now.
    fn enter(&self, want: usize) -> bool {
        match self.ring.submitter().submit_and_wait(want) {
            Ok(_) => true,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => true,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {
                thread::yield_now();
                false
            }
            Err(error) => {
                // The kernel may still write to memory that unwinding would free.
                let line = format!(
                    "vgasnet: io_uring_enter: {error}: the program has closed or replaced a file descriptor of the library; \
                     it must leave descriptors alone that it did not open"
                );
                say(&line);
                std::process::abort();
            }
        }
    }

    /// The next completion: its slot, and the kernel's answer.
    fn next_completion(&mut self) -> Option<(usize, io::Result<usize>)> {
        let completion = self.ring.completion().next()?;
        let result = match completion.result() {
            negative if negative < 0 => Err(io::Error::from_raw_os_error(-negative)),
            moved_bytes => Ok(moved_bytes as usize),
        };
        Some((completion.user_data() as usize, result))
    }

    /// The contents of a slot for a run; panics where the contract of [`Storage::start_run`] requires it.
    fn slot_for(&self, run: &[IoOperation]) -> Slot {
        let backing_bytes = self.file.size_bytes();
        run.iter().for_each(|operation| operation.check(backing_bytes));
        // Panics if there is no such file.
        let is_refused = run.iter().any(|operation| self.refusal(operation).is_some());
        match run {
            [first, remaining @ ..] if is_refused || remaining.is_empty() => {
                Slot::One(Progress::new(*first, backing_bytes), remaining.to_vec())
            }
            _ => Slot::Run(Run::new(run)),
        }
    }

    /// Fills a slot and queues its first request.
    fn begin(&mut self, slot: usize, what: Slot) {
        self.slots[slot] = Some(what);
        self.queue(slot);
    }

    /// Takes the kernel's answer to the request of a slot.
    fn advance(&mut self, slot: usize, result: io::Result<usize>, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        match self.slots[slot].take().expect("a completed slot holds an operation") {
            Slot::One(mut progress, remaining) => {
                let result = self.refusal(&progress.operation).map_or(result, Err);
                let named = self.files.get(progress.operation.file).map(Arc::as_ref);
                match progress.advance(result, named) {
                    Step::Continue => self.begin(slot, Slot::One(progress, remaining)),
                    Step::Complete(result) => {
                        self.operations -= 1;
                        sink(progress.operation.token, result);
                        self.begin_next(slot, remaining);
                    }
                }
            }
            Slot::Run(run) if run.is_complete(&result) => {
                self.operations -= run.operations().len();
                if let Some(named) = self.files.get(run.operations()[0].file) {
                    run.operations().iter().for_each(|operation| named.note_done(operation));
                }
                run.operations().iter().for_each(|operation| sink(operation.token, Ok(())));
                self.empty.push(slot);
            }
            // Repeated one by one, the operations show which one fails.
            Slot::Run(run) => self.begin_next(slot, run.into_operations()),
        }
    }

    /// Begins the first of the remaining operations of a slot, or frees the slot.
    fn begin_next(&mut self, slot: usize, mut remaining: Vec<IoOperation>) {
        if remaining.is_empty() {
            self.empty.push(slot);
            return;
        }
        let progress = Progress::new(remaining.remove(0), self.file.size_bytes());
        self.begin(slot, Slot::One(progress, remaining));
    }
}

impl Storage for RingStorage {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        let what = self.slot_for(&[operation]);
        let slot = self.empty.pop().ok_or(Busy)?;
        self.operations += 1;
        self.begin(slot, what);
        self.submit();
        Ok(())
    }

    unsafe fn start_runs(&mut self, runs: &[&[IoOperation]]) -> usize {
        let mut started = 0;
        for run in runs {
            if self.empty.is_empty() {
                break;
            }
            // Checked before a slot is taken, since misuse panics.
            let what = self.slot_for(run);
            let slot = self.empty.pop().expect("there is one");
            self.operations += run.len();
            self.begin(slot, what);
            started += run.len();
        }
        self.submit();
        started
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        while let Some((slot, result)) = self.next_completion() {
            self.advance(slot, result, sink);
        }
        self.submit();
    }

    fn in_flight(&self) -> usize {
        self.operations
    }

    /// # Panics
    /// If the file is in memory.
    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot {
        assert!(file.descriptor().is_some(), "the kernel does not know a file in memory");
        self.files.add(file)
    }

    fn remove_file(&mut self, slot: FileSlot) {
        let is_idle = self.slots.iter().flatten().all(|what| what.first().file != slot);
        assert!(is_idle, "{slot:?} is removed with operations in flight");
        self.files.remove(slot);
    }

    /// The ring itself. It is readable exactly while its completion queue is not empty. Unlike an event descriptor it
    /// needs no draining, and no system call in a poll without completions.
    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the ring keeps the descriptor open during its lifetime, which is longer than this borrow.
        Some(unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) })
    }

    fn reader(&self, file: FileSlot) -> Option<Arc<dyn BlockingReader>> {
        if let Some(named) = self.files.get(file).cloned() {
            return Some(named);
        }
        let file: Arc<BackingFile> = Arc::clone(&self.file);
        Some(file)
    }
}

impl Drop for RingStorage {
    /// Waits until the kernel has no request: it would otherwise write to memory freed after the drop.
    fn drop(&mut self) {
        while self.empty.len() < self.slots.len() {
            self.enter(1);
            while let Some((slot, _)) = self.next_completion() {
                self.slots[slot] = None;
                self.empty.push(slot);
            }
        }
    }
}

fn set_up(depth: usize) -> io::Result<IoUring> {
    let entries = depth.next_power_of_two() as u32;
    let ring = IoUring::builder().dontfork().build(entries)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let needed = [
        opcode::Read::CODE,
        opcode::Write::CODE,
        opcode::ReadFixed::CODE,
        opcode::WriteFixed::CODE,
        opcode::Readv::CODE,
        opcode::Writev::CODE,
    ];
    if !needed.iter().all(|&code| probe.is_supported(code)) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(ring)
}
