//! Who drives the engine, and who sleeps.
//!
//! A client thread that waits takes the seat, if it is free, and leads: it drives the engine and sleeps in the conduit
//! itself, so that a miss costs no thread switch. Other waiting threads follow: they sleep until their operation is done
//! or the seat is free. The helper thread drives when nobody leads, and sleeps in the conduit's other seat.

use super::work::{self, Work};
use super::{Engine, Part};
use crate::coherence::{Event, FrameId, PageId};
use crate::error::UserError;
use crate::handles::Completions;
use crate::space::AddressSpace;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vgasnet_conduit::{Busy, Conduit, Seat};

/// How long a sleep lasts while messages wait for room in the conduit, which does not tell when there is some.
const HELD_UP_SLEEP: Duration = Duration::from_millis(1);

/// The engine of a rank with the threads around it.
pub struct Progress {
    engine: Mutex<Engine>,
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    completions: Arc<Completions>,
    /// Readable when the storage has completed something.
    storage_doorbell: Option<OwnedFd>,
    /// A client thread leads.
    seat: AtomicBool,
    followers: AtomicUsize,
    turn: Mutex<()>,
    turn_changed: Condvar,
    /// The storage has operations in flight, or messages or transfers wait for room: someone has to look again.
    unfinished: AtomicBool,
    held_up: AtomicBool,
    fail: fn(&UserError) -> !,
}

impl Progress {
    /// An engine that nobody drives yet. `fail` ends the job when the engine cannot go on.
    pub fn new(
        engine: Engine,
        conduit: Arc<dyn Conduit>,
        space: Arc<AddressSpace>,
        completions: Arc<Completions>,
        fail: fn(&UserError) -> !,
    ) -> Progress {
        let doorbell = engine.storage().storage().doorbell();
        let storage_doorbell = doorbell.and_then(|doorbell| doorbell.try_clone_to_owned().ok());
        Progress {
            engine: Mutex::new(engine),
            conduit,
            space,
            completions,
            storage_doorbell,
            seat: AtomicBool::new(false),
            followers: AtomicUsize::new(0),
            turn: Mutex::new(()),
            turn_changed: Condvar::new(),
            unfinished: AtomicBool::new(false),
            held_up: AtomicBool::new(false),
            fail,
        }
    }

    /// The engine. The caller touches no client memory while it holds the lock.
    pub fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes parts of operations wait for their pages, and drives the engine once.
    pub fn submit(&self, parts: impl Iterator<Item = Part>) {
        let mut engine = self.engine();
        for part in parts {
            self.completions.add(part.completion);
            engine.submit(part);
        }
        drop(engine);
        self.step();
    }

    /// Fetches what may come after a page that was fetched ahead and is used for the first time.
    #[cold]
    pub fn read_ahead(&self, page: PageId) {
        self.engine().read_ahead(page);
        self.step();
    }

    /// Drives the engine once and does the work that came of it. Returns whether anything was done. The caller goes on to
    /// something else: what is unfinished then is left to the helper, unless a client thread leads.
    pub fn step(&self) -> bool {
        let worked = self.drive();
        self.delegate();
        worked
    }

    /// Wakes whoever has to look again at what is unfinished. A leader watches the storage while it sleeps, but does not
    /// know what others left waiting for room.
    fn delegate(&self) {
        let unwatched = self.unfinished.load(Ordering::SeqCst) && !self.seat.load(Ordering::SeqCst);
        if unwatched || self.held_up.load(Ordering::SeqCst) {
            self.conduit.wake(self.space.rank);
        }
    }

    /// As [`Progress::step`], for a caller that looks again, or leaves what is unfinished to somebody itself.
    fn drive(&self) -> bool {
        let mut worked = false;
        loop {
            let mut engine = self.engine();
            match engine.drive() {
                Ok(progress) => worked |= progress,
                Err(error) => (self.fail)(&error),
            }
            let work = engine.take_work();
            let news = engine.take_news();
            self.held_up.store(engine.is_held_up(), Ordering::SeqCst);
            self.unfinished.store(engine.is_held_up() || engine.storage().is_busy(), Ordering::SeqCst);
            drop(engine);
            if news {
                self.announce();
            }
            let Some(work) = work else { return worked };
            if !self.perform(work) {
                self.held_up.store(true, Ordering::SeqCst);
                self.unfinished.store(true, Ordering::SeqCst);
                return worked;
            }
            worked = true;
        }
    }

    /// Drives the engine until `done`, or sleeps while others drive it.
    pub fn wait(&self, done: &dyn Fn() -> bool) {
        while !done() {
            if self.seat.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                self.conduit.occupy(true);
                let kicks = self.lead(done);
                self.vacate(kicks);
            } else {
                self.follow(done);
            }
        }
    }

    /// What the helper thread does until the process ends.
    pub fn help(&self) -> ! {
        loop {
            let kicks = self.space.own.table.kick_count();
            let led = self.seat.load(Ordering::SeqCst);
            if !led {
                while self.drive() {}
                // A client thread may have taken the seat meanwhile, and sleep.
                self.delegate();
            }
            // While somebody leads, the storage is theirs to watch: it would ring here until they have polled it.
            let also = if led { None } else { self.storage_doorbell() };
            let limit = self.sleep_limit();
            self.conduit.sleep(Seat::Helper, also, limit, &|| {
                self.space.own.table.kick_count() != kicks
                    || (led && !self.seat.load(Ordering::SeqCst))
                    || self.sleep_limit() != limit
            });
        }
    }

    /// Tells this rank's engine that a page it is closing is not used any more.
    #[cold]
    pub fn kick(&self) {
        self.space.own.table.kick();
        self.conduit.wake(self.space.rank);
    }

    /// Returns how often this rank had been kicked when the engine was last driven.
    fn lead(&self, done: &dyn Fn() -> bool) -> u32 {
        loop {
            let kicks = self.space.own.table.kick_count();
            let worked = self.drive();
            if done() {
                return kicks;
            }
            if !worked {
                let limit = self.sleep_limit();
                self.conduit.sleep(Seat::Caller, self.storage_doorbell(), limit, &|| {
                    done() || self.space.own.table.kick_count() != kicks || self.sleep_limit() != limit
                });
            }
        }
    }

    /// Leaves the seat to a follower, and what is unfinished to the helper: a follower whose operation is done by now does
    /// not take the seat.
    fn vacate(&self, kicks: u32) {
        self.seat.store(false, Ordering::SeqCst);
        let missed = self.conduit.occupy(false) || self.space.own.table.kick_count() != kicks;
        if self.followers.load(Ordering::SeqCst) > 0 {
            self.announce();
        }
        if missed || self.unfinished.load(Ordering::SeqCst) {
            self.conduit.wake(self.space.rank);
        }
    }

    fn follow(&self, done: &dyn Fn() -> bool) {
        self.followers.fetch_add(1, Ordering::SeqCst);
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever makes one of these false announces it after that, under the lock, if it sees a follower.
        while !done() && self.seat.load(Ordering::SeqCst) {
            turn = self.turn_changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        drop(turn);
        self.followers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Lets waiting threads look whether what they wait for has come.
    fn announce(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.followers.load(Ordering::SeqCst) > 0 {
            drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
            self.turn_changed.notify_all();
        }
        if self.seat.load(Ordering::SeqCst) {
            self.conduit.wake(self.space.rank);
        }
    }

    /// Returns whether it was done; if not, the conduit has no room and it is to be done again.
    fn perform(&self, work: Work) -> bool {
        match work {
            Work::Copies { page, frame, parts } => self.copy(page, frame, parts),
            Work::Clear { page, frame } => {
                // SAFETY: the engine asked for this frame to be cleared, so it is reserved for a page not opened yet.
                unsafe { work::clear(&self.space, frame) };
                self.engine().complete(Event::Cleared(page));
            }
            Work::Put(transfer) => {
                if self.conduit.put(&transfer) == Err(Busy) {
                    self.engine().put_back(work);
                    return false;
                }
            }
            Work::Get(transfer) => {
                if self.conduit.get(&transfer) == Err(Busy) {
                    self.engine().put_back(work);
                    return false;
                }
            }
        }
        true
    }

    fn copy(&self, page: PageId, frame: FrameId, parts: Vec<Part>) {
        let own = &self.space.own;
        let memory = own.pool.frame(frame);
        let mut finished = false;
        for part in &parts {
            // SAFETY: the engine pinned the page for these parts with the access they need; their pieces were cut by
            // the address space, and the client leaves its memory to them until it has synced them.
            unsafe { part.copy.run(memory, &part.piece) };
        }
        if own.table.unpin(self.space.slots.of(page)) {
            self.kick();
        }
        for part in parts {
            let completion = part.completion;
            drop(part);
            finished |= self.completions.finish(completion);
        }
        if finished {
            self.announce();
        }
    }

    fn storage_doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.storage_doorbell.as_ref().map(|doorbell| doorbell.as_fd())
    }

    fn sleep_limit(&self) -> Option<Duration> {
        self.held_up.load(Ordering::SeqCst).then_some(HELD_UP_SLEEP)
    }
}
