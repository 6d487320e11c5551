//! Who drives the engine, and who sleeps.
//!
//! A client thread that waits takes the seat, if it is free, and leads: it drives the engine and sleeps in the conduit
//! itself, so that a miss costs no thread switch. Other waiting threads follow: they sleep until their operation is done
//! or the seat is free. The helper thread drives when nobody leads, and sleeps in the conduit's other seat.

use super::work::{self, Copy, Work};
use super::{Engine, Part};
use crate::coherence::{Access, Event, FrameId, PageId};
use crate::error::UserError;
use crate::handles::Completions;
use crate::large_pages::LargePages;
use crate::local::{Fault, Local, SignalsOff, Undisturbed, Waiting, futex};
use crate::space::AddressSpace;
use crate::wait_mode::WaitMode;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vgasnet_conduit::{Busy, Conduit, Rank, Seat, Urgency};

/// How long a sleep lasts at first while messages wait for room in the conduit, which does not tell when there is some.
const HELD_UP_SLEEP: Duration = Duration::from_millis(1);

/// The sleep doubles as often as there is still no room, but not more often than this: many ranks may wait for one.
const HELD_UP_DOUBLINGS: u32 = 4;

/// The engine of a rank with the threads around it.
pub struct Progress {
    engine: Mutex<Engine>,
    conduit: Arc<dyn Conduit>,
    space: Arc<AddressSpace>,
    completions: Arc<Completions>,
    /// Readable when the storage has completed something.
    storage_doorbell: Option<OwnedFd>,
    large_pages: Arc<LargePages>,
    /// A client thread leads.
    seat: AtomicBool,
    followers: AtomicUsize,
    /// Counts what followers may wait for.
    turn: AtomicU32,
    /// The storage has operations in flight, or messages or transfers wait for room: someone has to look again.
    unfinished: AtomicBool,
    /// How often in a row there was no room for messages or transfers.
    held_up: AtomicU32,
    spin_us: AtomicU32,
    /// The conduit knows without a poll whether something has arrived.
    arrivals_show: bool,
    fail: fn(&UserError) -> !,
}

/// The engine, locked.
pub type Locked<'a> = Undisturbed<MutexGuard<'a, Engine>>;

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
        let large_pages = Arc::clone(engine.large_pages());
        let storage_doorbell = doorbell.and_then(|doorbell| doorbell.try_clone_to_owned().ok());
        Progress {
            engine: Mutex::new(engine),
            arrivals_show: conduit.capabilities().wakes_on_arrival,
            conduit,
            space,
            completions,
            storage_doorbell,
            large_pages,
            seat: AtomicBool::new(false),
            followers: AtomicUsize::new(0),
            turn: AtomicU32::new(0),
            unfinished: AtomicBool::new(false),
            held_up: AtomicU32::new(0),
            spin_us: AtomicU32::new(0),
            fail,
        }
    }

    /// The engine. The caller touches no client memory while it holds the lock.
    pub fn engine(&self) -> Locked<'_> {
        Undisturbed::take(|| self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes parts of operations wait for their pages, and drives the engine once.
    pub fn submit(&self, parts: impl Iterator<Item = Part>) {
        let mut engine = self.engine();
        for part in parts {
            part.completion.into_iter().for_each(|completion| self.completions.add(completion));
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

    /// As [`Progress::step`], unless there is plainly nothing to do. Returns whether something was done.
    pub fn poll(&self) -> bool {
        let is_quiet = self.arrivals_show && !self.conduit.has_arrivals() && !self.unfinished.load(Ordering::SeqCst);
        !is_quiet && self.step()
    }

    /// Looks for a moment whether it is `done` or something arrives, without taking the seat: for a thread that waits for
    /// messages that ring nobody but a leader. Returns whether there was anything.
    pub fn watch(&self, done: &dyn Fn() -> bool) -> bool {
        let may_spin = !self.spin().is_zero() && !self.unfinished.load(Ordering::SeqCst);
        may_spin && look_eagerly(&|| done() || self.conduit.has_arrivals()) && {
            self.poll();
            true
        }
    }

    /// Wakes whoever has to look again at what is unfinished. A leader watches the storage while it sleeps, but does not
    /// know what others left waiting for room.
    fn delegate(&self) {
        let unwatched = self.unfinished.load(Ordering::SeqCst) && !self.seat.load(Ordering::SeqCst);
        if unwatched || self.is_held_up() {
            self.conduit.wake(self.space.rank);
        }
    }

    /// As [`Progress::step`], for a caller that looks again, or leaves what is unfinished to somebody itself.
    fn drive(&self) -> bool {
        let _held = SignalsOff::new();
        self.drive_held()
    }

    /// As [`Progress::drive`], for a thread whose signals are held off already.
    fn drive_held(&self) -> bool {
        let mut worked = false;
        loop {
            let mut engine = self.lock();
            match engine.drive() {
                Ok(progress) => worked |= progress,
                Err(error) => (self.fail)(&error),
            }
            let work = engine.take_work();
            let news = engine.take_news();
            self.note_held_up(engine.is_held_up(), worked);
            self.unfinished.store(engine.is_held_up() || engine.storage().is_busy(), Ordering::SeqCst);
            drop(engine);
            if news {
                self.announce();
            }
            let Some(work) = work else { return worked };
            if !self.perform(work) {
                self.note_held_up(true, worked);
                self.unfinished.store(true, Ordering::SeqCst);
                return worked;
            }
            worked = true;
        }
    }

    /// Drives the engine until `done`, or sleeps while others drive it.
    pub fn wait(&self, done: &dyn Fn() -> bool) {
        self.wait_until(done, None);
    }

    /// As [`Progress::wait`], but no longer than `end`: for what nobody may announce.
    pub fn wait_until(&self, done: &dyn Fn() -> bool, end: Option<Instant>) {
        let done = &|| done() || is_past(end);
        let held = SignalsOff::new();
        let mut was_follower = false;
        while !done() {
            if self.seat.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                was_follower = false;
                self.conduit.occupy(true);
                let kicks = self.lead(done, end, &held);
                self.vacate(kicks);
            } else {
                was_follower = true;
                self.follow(done, end, &held);
            }
        }
        // It may have been woken to lead.
        if was_follower && !self.seat.load(Ordering::SeqCst) {
            self.call_follower();
        }
    }

    /// What the helper thread does until the process ends.
    pub fn help(&self) -> ! {
        loop {
            let kicks = self.space.own.table.kick_count();
            let faulted = self.take_faults();
            let led = self.seat.load(Ordering::SeqCst);
            if !led || faulted {
                while self.drive_held() {}
                // A client thread may have taken the seat meanwhile, and sleep.
                self.delegate();
            }
            // While somebody leads, the storage is theirs to watch: it would ring here until they have polled it.
            let also = if led { None } else { self.storage_doorbell() };
            // A leader that sleeps may be the very thread that waits for a page, in a signal handler: then nobody else looks.
            let limit = if led && faulted { Some(HELD_UP_SLEEP) } else { self.sleep_limit() };
            self.conduit.sleep(Seat::Helper, also, limit, &|| {
                self.space.own.table.kick_count() != kicks
                    || (led && !self.seat.load(Ordering::SeqCst))
                    || (limit.is_none() && self.is_held_up())
                    || self.local().is_some_and(Local::has_mail)
            });
        }
    }

    /// Makes the engine fetch the pages that threads wait for. Returns whether there are such threads.
    fn take_faults(&self) -> bool {
        let Some(local) = self.local() else { return false };
        if local.has_mail() {
            let mut engine = self.lock();
            for waiting in local.take_faults() {
                engine.submit(local.part(waiting));
            }
            for page in local.take_hints() {
                engine.read_ahead(page);
            }
        }
        local.is_waited_for()
    }

    fn local(&self) -> Option<&Local> {
        self.space.local.as_deref()
    }

    /// What a second thread does until all of the pool has large pages, or the system refuses them.
    pub fn prepare_memory(&self) {
        self.large_pages.prepare_ahead();
    }

    /// Tells this rank's engine that a page it is closing is not used any more.
    #[cold]
    pub fn kick(&self) {
        self.space.own.table.kick();
        self.conduit.wake(self.space.rank);
    }

    /// Returns how often this rank had been kicked when the engine was last driven.
    fn lead(&self, done: &dyn Fn() -> bool, end: Option<Instant>, held: &SignalsOff) -> u32 {
        let mut idle = Idle::new(self.spin());
        loop {
            let kicks = self.space.own.table.kick_count();
            let worked = self.drive_held();
            if done() {
                return kicks;
            }
            if worked {
                idle.end();
            } else if !idle
                .spin(&|| self.conduit.has_arrivals() || done() || self.space.own.table.kick_count() != kicks)
            {
                let held_up = self.sleep_limit();
                let limit = held_up.into_iter().chain(time_left(end)).min();
                let stay =
                    || done() || self.space.own.table.kick_count() != kicks || self.is_held_up() != held_up.is_some();
                // The client's signal handlers run while this thread sleeps. If one of them faults, the helper serves it.
                held.except(|| self.conduit.sleep(Seat::Caller, self.storage_doorbell(), limit, &stay));
                idle.end();
            }
        }
    }

    /// How long a leader looks again before it sleeps.
    fn spin(&self) -> Duration {
        match WaitMode::current() {
            WaitMode::Spin => Duration::MAX,
            WaitMode::Block => Duration::ZERO,
            WaitMode::SpinBlock => Duration::from_micros(self.spin_us.load(Ordering::Relaxed).into()),
        }
    }

    /// The same in microseconds, unless the client says otherwise.
    pub fn set_spin(&self, spin_us: u32) {
        self.spin_us.store(spin_us, Ordering::Relaxed);
    }

    /// Leaves the seat to a follower, and what is unfinished to the helper: a follower whose operation is done by now does
    /// not take the seat.
    fn vacate(&self, kicks: u32) {
        self.seat.store(false, Ordering::SeqCst);
        let missed = self.conduit.occupy(false) || self.space.own.table.kick_count() != kicks;
        self.call_follower();
        if missed || self.unfinished.load(Ordering::SeqCst) {
            self.conduit.wake(self.space.rank);
        }
    }

    /// Wakes a follower, to lead; one that has nothing to wait for any more wakes the next.
    fn call_follower(&self) {
        if self.followers.load(Ordering::SeqCst) > 0 {
            self.turn.fetch_add(1, Ordering::SeqCst);
            futex::wake_one(&self.turn);
        }
    }

    fn follow(&self, done: &dyn Fn() -> bool, end: Option<Instant>, held: &SignalsOff) {
        self.followers.fetch_add(1, Ordering::SeqCst);
        // Whoever changes one of these and sees a follower counts the turn on after that.
        let turn = self.turn.load(Ordering::SeqCst);
        if !done() && self.seat.load(Ordering::SeqCst) {
            held.except(|| futex::wait_for(&self.turn, turn, time_left(end)));
        }
        self.followers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Sends a message of the client's Active Messages, when the conduit has room for it.
    pub fn post(&self, to: Rank, head: &[u8], body: &[u8]) {
        let _held = SignalsOff::new();
        if self.conduit.send(to, head, body, Urgency::WhenCalled) == Err(Busy) {
            self.lock().send(to, &[head, body].concat());
            self.step();
        }
    }

    /// Lets waiting threads look whether what they wait for has come.
    pub fn announce(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.followers.load(Ordering::SeqCst) > 0 {
            self.turn.fetch_add(1, Ordering::SeqCst);
            futex::wake_all(&self.turn);
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
            if let Copy::Admit(access, _) = part.copy {
                self.admit(page, frame, access);
            }
        }
        if own.table.unpin(self.space.slots.of(page)) {
            self.kick();
        }
        for part in parts {
            let Part { copy, completion, .. } = part;
            if let Copy::Admit(_, waiting) = copy {
                finished |= waiting.as_ref().is_some_and(Waiting::leads);
                waiting.into_iter().for_each(|waiting| self.serve(waiting));
            }
            finished |= completion.is_some_and(|completion| self.completions.finish(completion));
        }
        if finished {
            self.announce();
        }
    }

    /// Shows a page in the segment, pinned for somebody.
    fn admit(&self, page: PageId, frame: FrameId, access: Access) {
        let local = self.local().expect("who asks for a page in the segment has one");
        if let Err(errno) = local.admit(page.index, frame, access) {
            let error = std::io::Error::from_raw_os_error(errno);
            let line = format!("cannot map a page of the segment: {error}; raise vm.max_map_count");
            (self.fail)(&UserError::new(line));
        }
    }

    fn serve(&self, waiting: Waiting) {
        let local = self.local().expect("who waits for a page in the segment has one");
        local.serve(waiting);
    }

    fn storage_doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.storage_doorbell.as_ref().map(|doorbell| doorbell.as_fd())
    }

    fn is_held_up(&self) -> bool {
        self.held_up.load(Ordering::SeqCst) > 0
    }

    /// Under the engine's lock, or when its work could not be done.
    fn note_held_up(&self, is_held_up: bool, worked: bool) {
        let before = if worked { 0 } else { self.held_up.load(Ordering::SeqCst) };
        let times = if is_held_up { (before + 1).min(1 + HELD_UP_DOUBLINGS) } else { 0 };
        self.held_up.store(times, Ordering::SeqCst);
    }

    fn sleep_limit(&self) -> Option<Duration> {
        let times = self.held_up.load(Ordering::SeqCst);
        times.checked_sub(1).map(|doublings| HELD_UP_SLEEP * (1 << doublings))
    }
}

fn is_past(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

fn time_left(end: Option<Instant>) -> Option<Duration> {
    end.map(|end| end.saturating_duration_since(Instant::now()))
}

/// Looks for a moment, and keeps the processor: an answer is here sooner than another thread would have run. Returns whether
/// there was any.
fn look_eagerly(has_news: &dyn Fn() -> bool) -> bool {
    const LOOKS: u32 = 64;
    (0..LOOKS).any(|_| {
        std::hint::spin_loop();
        has_news()
    })
}

/// How a leader that finds nothing to do passes the time before it sleeps.
struct Idle {
    spin: Duration,
    is_eager: bool,
    since: Option<Instant>,
}

impl Idle {
    fn new(spin: Duration) -> Idle {
        Idle { spin, is_eager: true, since: None }
    }

    fn end(&mut self) {
        (self.is_eager, self.since) = (true, None);
    }

    /// Returns whether to look again at once instead of going to sleep. While it is eager, it waits for `has_news` itself.
    fn spin(&mut self, has_news: &dyn Fn() -> bool) -> bool {
        if self.spin.is_zero() {
            return false;
        }
        if std::mem::take(&mut self.is_eager) {
            self.is_eager = look_eagerly(has_news);
            return true;
        }
        // Whoever was woken just now may be waiting for this processor.
        std::thread::yield_now();
        self.since.get_or_insert_with(Instant::now).elapsed() < self.spin
    }
}

impl crate::local::Bell for Progress {
    fn fetch(&self, fault: &Fault) {
        let local = self.local().expect("who faults in the segment has one");
        self.engine().submit(local.part(Waiting::of(fault)));
        self.wait(&|| fault.is_served());
    }

    fn wake_helper(&self) {
        self.conduit.wake_helper();
    }

    fn kick(&self) {
        Progress::kick(self);
    }
}
