//! The engine with its threads: driving it and performing the resulting work.

mod barriers;
mod callers;
mod closing_reports;
mod fault_service;
mod file_waits;
mod helper;
mod host_barriers;
mod job_barrier;
mod loans;
mod outstanding;
mod performing;
mod shared_engine;
mod sleepers;
mod spinning;
mod wait;
mod wait_mode;

pub use callers::CallerWork;
pub use shared_engine::Locked;
pub use wait_mode::WaitMode;

use crate::request::{Completions, Part};
use crate::work::Delivery;
use crate::{EndedNeighbourRead, EndedRead, Engine, TAG_ABOVE, ThreadRead, Work};
use barriers::Barriers;
use callers::Callers;
use helper::Helper;
use host_barriers::HostBarriers;
use outstanding::{Left, Outstanding};
use performing::{Performer, Receivers};
use shared_engine::SharedEngine;
use sleepers::Sleepers;
use spinning::Spinning;
use std::sync::{Arc, MutexGuard};
use vgasnet_conduit::{Busy, Conduit, Urgency};
use vgasnet_memory::{AddressSpace, LargePages};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::streams::ends_step;
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use vgasnet_sys::SignalGuard;

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
    engine: SharedEngine,
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    completions: Arc<Completions>,
    performer: Performer,
    sleepers: Sleepers,
    outstanding: Outstanding,
    spinning: Spinning,
    callers: Callers,
    helper: Helper,
    barriers: Barriers,
    large_pages: Arc<LargePages>,
    /// Pages by which streams advance.
    stream_step: u32,
    /// The conduit detects arrivals without a poll.
    arrivals_visible: bool,
}

impl Driver {
    /// Creates a driver for an engine. `fail` ends the job on an error that cannot be recovered from.
    pub fn new(engine: Engine, completions: Arc<Completions>, cooperative: bool, fail: Fail) -> Driver {
        let (conduit, space) = engine.conduit_and_space();
        let doorbell = engine.storage().storage().doorbell();
        let doorbell = doorbell.and_then(|doorbell| doorbell.try_clone_to_owned().ok());
        let ranks = conduit.ranks();
        let of_host = space.shared_by_all().map(|memory| HostBarriers::new(memory, ranks));
        Driver {
            arrivals_visible: conduit.capabilities().wakes_on_arrival,
            stream_step: engine.stream_step(),
            large_pages: Arc::clone(engine.frames().large_pages()),
            engine: SharedEngine::new(engine),
            performer: Performer::new(Arc::clone(&conduit), Arc::clone(&space), Arc::clone(&completions), fail),
            conduit,
            space,
            completions,
            sleepers: Sleepers::default(),
            outstanding: Outstanding::default(),
            spinning: Spinning::default(),
            callers: Callers::default(),
            helper: Helper::new(doorbell),
            barriers: Barriers::new(of_host, !cooperative),
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
        self.engine.lock()
    }

    /// Reports an error of a call and ends the job.
    pub fn fail(&self, call: &str, line: &UserError) -> ! {
        self.performer.end_job_by(call, line)
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
            self.performer.count(&part);
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
        self.performer.count(&part);
        if !self.submit_and_read(part, Some(Row::WaitPage)) {
            self.step();
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
    fn step_if_needed(&self) -> bool {
        let is_quiet = self.arrivals_visible && !self.has_arrivals() && !self.outstanding.is_unfinished();
        !is_quiet && self.step()
    }

    /// Wakes another thread of this rank for unfinished work and for timed rings of the doorbell. A sleeping driver, or
    /// else the helper, watches the storage, but neither knows of messages that other threads have left waiting for
    /// room.
    fn delegate(&self) {
        let is_watched = || self.sleepers.has_driver() || self.helper.watches();
        let is_due = self.outstanding.is_unfinished() || self.outstanding.rings_later();
        let unwatched = is_due && !is_watched();
        if unwatched || self.outstanding.is_held_up() {
            self.conduit.wake(self.space.rank);
        }
    }

    /// As [`Driver::step`], for a thread that has signals deferred and then drives again or delegates.
    fn drive(&self) -> bool {
        self.drive_after(None)
    }

    /// As [`Driver::drive`], for a thread that has read a page.
    fn drive_after(&self, mut read: Option<EndedRead>) -> bool {
        let (mut worked, mut is_refused) = (self.pass_host_barrier(), false);
        loop {
            let mut engine = self.engine.lock_to_drive();
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
    fn submit_and_read(&self, part: Part, row: Option<Row>) -> bool {
        let _signals = SignalGuard::new();
        let mut engine = self.engine.lock_deferred();
        let read = match engine.submit_or_read(part) {
            None => return false,
            Some(ThreadRead::Neighbour(read)) => {
                // No work is taken: it may need a drive afterwards, and this thread does not drive.
                let reads_ahead = engine.has_shipments();
                drop(engine);
                if reads_ahead {
                    self.drive();
                    self.delegate();
                }
                let waiting = row.map(stats::wait);
                let read = read.run();
                drop(waiting);
                return self.end_neighbour_read(read);
            }
            Some(ThreadRead::Own(read)) => read,
        };
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

    /// Completes a part that this thread has read at a neighbour, or ships it. Returns whether it is complete.
    fn end_neighbour_read(&self, read: EndedNeighbourRead) -> bool {
        match read {
            EndedNeighbourRead::Done(part, to_wake) => {
                to_wake.into_iter().for_each(|home| self.conduit.wake(home));
                self.perform(Work::Deliver(Box::new(Delivery { part, bytes: Vec::new() })))
            }
            EndedNeighbourRead::Refused(part, home) => {
                self.engine.lock_deferred().ship(part, home);
                self.drive();
                self.delegate();
                false
            }
        }
    }

    /// Publishes the state for threads without the lock, and unlocks the engine. Returns the work to perform.
    fn unlock(&self, mut engine: MutexGuard<'_, Engine>, worked: bool) -> [Option<Work>; WORK_MAX] {
        let work = self.take_work(&mut engine);
        let has_news = engine.take_news() || worked && engine.is_awaited_for_files();
        let left = Left {
            is_held_up: engine.is_held_up(),
            is_stored: engine.storage().is_busy(),
            rings_later: engine.rings_later(),
        };
        self.outstanding.publish(left, worked);
        drop(engine);
        if has_news {
            self.notify();
        }
        work
    }

    /// Whether a drive may find arrivals.
    #[inline]
    fn has_arrivals(&self) -> bool {
        self.conduit.has_arrivals() || self.is_host_barrier_released()
    }

    /// Takes the work for one thread. The queue is mostly empty, so that case does no more than return.
    #[inline]
    fn take_work(&self, engine: &mut Engine) -> [Option<Work>; WORK_MAX] {
        if !engine.has_work() {
            return [const { None }; WORK_MAX];
        }
        let most = if self.space.page_bytes() > SMALL_BYTES_MAX { 1 } else { WORK_MAX };
        std::array::from_fn(|at| if at < most { engine.take_work() } else { None })
    }

    /// Sends a message of the rooms above, now or when the conduit has room. At its target it wakes client threads
    /// only.
    pub fn post(&self, to: Rank, head: &[u8], body: &[u8]) {
        debug_assert!(self.is_message_of_rooms(head, body), "a message of a room above begins with its tag");
        let _signals = SignalGuard::new();
        if self.conduit.send(to, head, body, Urgency::WhenCalled) == Err(Busy) {
            self.engine.lock_deferred().keep_message(to, [head, body].concat().into());
            self.step();
        }
    }

    /// Whether the conduit takes this message, and its receiver passes it to the rooms above.
    fn is_message_of_rooms(&self, head: &[u8], body: &[u8]) -> bool {
        let is_theirs = head.iter().chain(body).next().is_some_and(|tag| *tag >= TAG_ABOVE);
        is_theirs && head.len() + body.len() <= self.conduit.message_bytes_max()
    }

    /// As [`Driver::post`], but leaves a message without room to another thread of this rank.
    pub fn post_idly(&self, to: Rank, head: &[u8], body: &[u8]) {
        debug_assert!(self.is_message_of_rooms(head, body), "a message of a room above begins with its tag");
        let _signals = SignalGuard::new();
        if self.conduit.send(to, head, body, Urgency::WhenCalled) == Err(Busy) {
            let mut engine = self.engine.lock_deferred();
            engine.keep_message(to, [head, body].concat().into());
            self.outstanding.note_unfinished();
            drop(engine);
            self.conduit.wake(self.space.rank);
        }
    }

    /// Tells this rank's engine that a closing page has been unpinned.
    #[cold]
    pub fn notify_unpinned(&self) {
        self.performer.notify_unpinned();
    }

    /// Undoes one pin of a page of the own segment.
    pub fn unpin_own(&self, index: u32) {
        self.performer.unpin_own(index);
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

    /// Unmaps a page of the own segment and returns its frame, if a neighbour has lent it.
    pub fn give_back(&self, index: u32) {
        self.performer.give_back(index);
    }

    /// Performs a work item, and wakes the threads waiting for it. Returns whether it was done; if not, the engine has
    /// it again.
    fn perform(&self, work: Work) -> bool {
        let mut to = Receivers::new(&self.engine, self.helper.mailbox());
        let is_done = self.performer.perform(work, &mut to);
        if !to.happened().is_nothing() {
            self.tell(to.happened());
        }
        is_done
    }
}
