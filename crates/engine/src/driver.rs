//! The engine with its threads: driving it and performing the resulting work.

use super::host_barriers::HostBarriers;
use super::sleepers::Sleepers;
use super::wait::CallerWork;
use super::{EndedRead, Engine, Work};
use crate::request::{Completion, Completions, Mailbox, Part};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use vgasnet_conduit::{Busy, Conduit, Urgency};
use vgasnet_memory::{AddressSpace, LargePages, SegmentView};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::streams::ends_step;
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::{SignalGuard, Signalproof};

/// First sleep while messages wait for room in the conduit, which does not signal when it has room.
pub(super) const HELD_UP_SLEEP: Duration = Duration::from_millis(1);

/// Maximum doublings of this sleep while there is no room: many ranks may wait for one.
const HELD_UP_DOUBLINGS: u32 = 4;

/// Maximum work items that a thread takes at a time.
const WORK_MAX: usize = 4;

/// With larger pages, in bytes, a thread takes one work item at a time, so that another thread can do the next.
const SMALL_BYTES_MAX: usize = 256 << 10;

/// Reports an error of a call and ends the job.
pub type Fail = fn(call: &str, line: &UserError) -> !;

/// The engine of a rank with its threads.
///
/// A waiting client thread becomes the driver if there is none: it drives the engine and sleeps in the conduit, so a
/// miss costs no thread switch. Other threads wait until their operation is done or the driver hands over. The helper
/// thread drives when no client thread does.
pub struct Driver {
    engine: Mutex<Engine>,
    pub(super) conduit: Arc<dyn Conduit>,
    pub(super) space: Arc<AddressSpace>,
    completions: Arc<Completions>,
    pub(super) mailbox: Mailbox,
    /// Readable when the storage has completed an operation.
    storage_doorbell: Option<OwnedFd>,
    large_pages: Arc<LargePages>,
    /// Pages by which streams advance.
    pub(super) stream_step: u32,
    pub(super) sleepers: Sleepers,
    pub(super) spin_us: AtomicU32,
    pub(super) callers: OnceLock<Arc<dyn CallerWork>>,
    /// Present if all ranks share memory.
    pub(super) host_barriers: Option<HostBarriers<'static>>,
    /// Storage operations are in flight, or messages or transfers wait for room: some thread has to drive again.
    pub(super) unfinished: AtomicBool,
    /// The storage's doorbell will ring at a set time, and some thread has to watch it.
    pub(super) rings_later: AtomicBool,
    /// The helper sleeps until the storage wakes it.
    pub(super) helper_watches: AtomicBool,
    /// Consecutive attempts without room for messages or transfers.
    held_up: AtomicU32,
    /// The conduit detects arrivals without a poll.
    pub(super) arrivals_visible: bool,
    /// Without cooperative caching, barriers write dirty pages back.
    pub(super) flushes_at_barriers: bool,
    /// This rank's program has ended.
    pub(super) has_left: AtomicBool,
    fail: Fail,
}

/// The engine, locked.
pub type Locked<'a> = Signalproof<MutexGuard<'a, Engine>>;

impl Driver {
    /// Creates a driver for an engine. `fail` ends the job on an error that cannot be recovered from.
    pub fn new(engine: Engine, completions: Arc<Completions>, cooperative: bool, fail: Fail) -> Driver {
        let (conduit, space) = (Arc::clone(&engine.conduit), Arc::clone(&engine.space));
        let doorbell = engine.storage().storage().doorbell();
        let storage_doorbell = doorbell.and_then(|doorbell| doorbell.try_clone_to_owned().ok());
        let ranks = conduit.ranks();
        let host_barriers = space.shared_by_all().map(|memory| HostBarriers::new(memory, ranks));
        Driver {
            arrivals_visible: conduit.capabilities().wakes_on_arrival,
            stream_step: engine.stream_step(),
            large_pages: Arc::clone(engine.frames().large_pages()),
            engine: Mutex::new(engine),
            conduit,
            space,
            completions,
            mailbox: Mailbox::default(),
            storage_doorbell,
            sleepers: Sleepers::default(),
            spin_us: AtomicU32::new(0),
            callers: OnceLock::new(),
            host_barriers,
            unfinished: AtomicBool::new(false),
            rings_later: AtomicBool::new(false),
            helper_watches: AtomicBool::new(false),
            held_up: AtomicU32::new(0),
            flushes_at_barriers: !cooperative,
            has_left: AtomicBool::new(false),
            fail,
        }
    }

    /// The job's address space.
    #[inline]
    pub fn space(&self) -> &Arc<AddressSpace> {
        &self.space
    }

    /// The completions of this rank.
    #[inline]
    pub fn completions(&self) -> &Arc<Completions> {
        &self.completions
    }

    /// The transport.
    pub fn conduit(&self) -> &dyn Conduit {
        &*self.conduit
    }

    /// Locks the engine. The caller must not touch client memory while it holds the lock.
    pub fn engine(&self) -> Locked<'_> {
        let mut engine = Signalproof::lock(&self.engine);
        engine.is_settled = false;
        engine
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Engine> {
        let mut engine = self.lock_to_drive();
        engine.is_settled = false;
        engine
    }

    fn lock_to_drive(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports an error of a call and ends the job.
    pub fn fail(&self, call: &str, line: &UserError) -> ! {
        (self.fail)(call, line)
    }

    /// Calls [`Driver::fail`] if `done` is an error.
    pub fn must(&self, call: &str, done: Result<(), UserError>) {
        if let Err(line) = done {
            self.fail(call, &line);
        }
    }

    /// Submits parts of operations, which wait for their pages, and drives the engine once.
    pub fn submit(&self, parts: impl Iterator<Item = Part>) {
        let mut engine = self.engine();
        for part in parts {
            self.count(&part);
            engine.submit(part);
        }
        drop(engine);
        self.step();
    }

    /// As [`Driver::submit`], for a thread that waits for these parts only. It may read a page or block itself.
    pub fn submit_and_wait(&self, mut parts: Vec<Part>) {
        // If the conduit has to be polled for messages, this thread must not sleep in a read.
        if parts.len() > 1 || !self.arrivals_visible {
            return self.submit(parts.into_iter());
        }
        let Some(part) = parts.pop() else { return };
        self.count(&part);
        if !self.submit_and_read(part, Some(Row::WaitPage)) {
            self.step();
        }
    }

    pub(super) fn count(&self, part: &Part) {
        if let Completion::Counted(completion) | Completion::Then(completion, _) = &part.completion {
            self.completions.add(*completion);
        }
    }

    /// Reads ahead of a prefetched page that is used for the first time.
    #[cold]
    pub fn prefetch_after_use(&self, page: PageId) {
        if ends_step(page.index, self.stream_step) {
            self.engine().prefetch_after_use(page);
            self.step();
        }
    }

    /// Drives the engine once and performs the resulting work. Returns whether anything was done. Unfinished work is
    /// left to the helper, unless a client thread drives.
    pub fn step(&self) -> bool {
        let _signals = SignalGuard::new();
        let worked = self.drive();
        self.delegate();
        worked
    }

    /// As [`Driver::step`], but skips the drive if nothing has arrived and nothing is unfinished.
    pub(super) fn step_if_needed(&self) -> bool {
        let is_quiet = self.arrivals_visible && !self.has_arrivals() && !self.unfinished.load(Ordering::SeqCst);
        !is_quiet && self.step()
    }

    /// Wakes another thread of this rank for unfinished work and for timed rings of the doorbell. A sleeping driver, or
    /// else the helper, watches the storage, but neither knows of messages that other threads have left waiting for
    /// room.
    pub(super) fn delegate(&self) {
        let is_watched = || self.sleepers.has_driver() || self.helper_watches.load(Ordering::SeqCst);
        let is_due = self.unfinished.load(Ordering::SeqCst) || self.rings_later.load(Ordering::SeqCst);
        let unwatched = is_due && !is_watched();
        if unwatched || self.is_held_up() {
            self.conduit.wake(self.space.rank);
        }
    }

    /// As [`Driver::step`], for a thread that has signals deferred and then drives again or delegates.
    pub(super) fn drive(&self) -> bool {
        self.drive_after(None)
    }

    /// As [`Driver::drive`], for a thread that has read a page.
    pub(super) fn drive_after(&self, mut read: Option<EndedRead>) -> bool {
        let (mut worked, mut is_refused) = (self.pass_host_barrier(), false);
        loop {
            let mut engine = self.lock_to_drive();
            let ended = read.take().map_or(Ok(()), |read| engine.end_read(read));
            // Once the conduit has refused a message, other work still proceeds; the next call retries the refused
            // work.
            match ended.and_then(|()| if is_refused { Ok(false) } else { engine.drive() }) {
                Ok(progress) => worked |= progress,
                Err(error) => self.fail("engine", &error),
            }
            let work = self.unlock(engine, worked);
            if work[0].is_none() {
                return worked;
            }
            for work in work.into_iter().flatten() {
                let is_done = self.perform(work);
                worked |= is_done;
                is_refused |= !is_done;
            }
        }
    }

    /// Submits a part for which this thread waits, and reads its page if the engine leaves the read to this thread.
    /// Returns whether it did; the follow-up work is then done or delegated. The read counts as a wait in `row`.
    #[inline(never)]
    pub(super) fn submit_and_read(&self, part: Part, row: Option<Row>) -> bool {
        let _signals = SignalGuard::new();
        let mut engine = self.lock();
        let Some(read) = engine.submit_or_read(part) else { return false };
        let work = self.unlock(engine, true);
        for work in work.into_iter().flatten() {
            // The engine keeps refused work.
            let _ = self.perform(work);
        }
        let waiting = row.map(stats::wait);
        let read = read.run();
        drop(waiting);
        self.drive_after(Some(read));
        self.delegate();
        true
    }

    /// Publishes the state for threads without the lock, and unlocks the engine. Returns the work to perform.
    fn unlock(&self, mut engine: MutexGuard<'_, Engine>, worked: bool) -> [Option<Work>; WORK_MAX] {
        let work = self.take_work(&mut engine);
        let has_event = engine.take_event() || worked && engine.files.is_awaited();
        self.note_held_up(engine.is_held_up(), worked);
        let is_unfinished = engine.is_held_up() || engine.storage().is_busy();
        if self.unfinished.load(Ordering::Relaxed) != is_unfinished {
            self.unfinished.store(is_unfinished, Ordering::SeqCst);
        }
        if self.rings_later.load(Ordering::Relaxed) != engine.rings_later() {
            self.rings_later.store(engine.rings_later(), Ordering::SeqCst);
        }
        drop(engine);
        if has_event {
            self.notify();
        }
        work
    }

    /// Whether a drive may find arrivals.
    #[inline]
    pub(super) fn has_arrivals(&self) -> bool {
        self.conduit.has_arrivals() || self.is_host_barrier_released()
    }

    /// Takes the work for one thread. The queue is mostly empty, so that case does no more than return.
    #[inline]
    fn take_work(&self, engine: &mut Engine) -> [Option<Work>; WORK_MAX] {
        if engine.work.is_empty() {
            return [const { None }; WORK_MAX];
        }
        let most = if self.space.page_bytes() > SMALL_BYTES_MAX { 1 } else { WORK_MAX };
        std::array::from_fn(|at| if at < most { engine.take_work() } else { None })
    }

    /// Sends a message of the rooms above, now or when the conduit has room. At its target it wakes client threads
    /// only.
    pub fn post(&self, to: Rank, head: &[u8], body: &[u8]) {
        let _signals = SignalGuard::new();
        if self.conduit.send(to, head, body, Urgency::WhenCalled) == Err(Busy) {
            self.lock().keep_message(to, [head, body].concat().into());
            self.step();
        }
    }

    /// As [`Driver::post`], but leaves a message without room to another thread of this rank.
    pub fn post_idly(&self, to: Rank, head: &[u8], body: &[u8]) {
        let _signals = SignalGuard::new();
        if self.conduit.send(to, head, body, Urgency::WhenCalled) == Err(Busy) {
            let mut engine = self.lock();
            engine.keep_message(to, [head, body].concat().into());
            self.unfinished.store(true, Ordering::SeqCst);
            drop(engine);
            self.conduit.wake(self.space.rank);
        }
    }

    /// Tells this rank's engine that a closing page has been unpinned.
    #[cold]
    pub fn notify_unpinned(&self) {
        self.space.own.table.notify_unpinned();
        self.conduit.wake(self.space.rank);
    }

    /// Undoes one pin of a page of the own segment.
    pub fn unpin_own(&self, index: u32) {
        if self.view().is_some_and(|view| view.unpin(index)) {
            self.notify_unpinned();
        }
    }

    /// As [`Driver::notify_unpinned`], for a rank of this host.
    #[cold]
    pub fn notify_unpinned_at(&self, rank: usize) {
        if let Some(memory) = self.space.memories.get(rank) {
            memory.table.notify_unpinned();
            self.conduit.wake(Rank(rank as u32));
        }
    }

    /// Body of the thread that prepares large pages, until the whole pool has them or the system refuses.
    pub fn prepare_memory(&self) {
        self.large_pages.prepare_ahead();
    }

    pub(super) fn view(&self) -> Option<&SegmentView> {
        self.space.view.as_deref()
    }

    pub(super) fn storage_doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.storage_doorbell.as_ref().map(|doorbell| doorbell.as_fd())
    }

    pub(super) fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::SeqCst) > 0
    }

    /// Called under the engine's lock, or when work was refused.
    fn note_held_up(&self, is_held_up: bool, worked: bool) {
        let before = if worked { 0 } else { self.held_up.load(Ordering::SeqCst) };
        let times = if is_held_up { (before + 1).min(1 + HELD_UP_DOUBLINGS) } else { 0 };
        if self.held_up.load(Ordering::Relaxed) != times {
            self.held_up.store(times, Ordering::SeqCst);
        }
    }

    /// Longest sleep allowed while messages wait for room.
    pub(super) fn sleep_limit(&self) -> Option<Duration> {
        let times = self.held_up.load(Ordering::SeqCst);
        times.checked_sub(1).map(|doublings| HELD_UP_SLEEP * (1 << doublings))
    }
}
