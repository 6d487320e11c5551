//! The mailbox: faulting threads leave requests there for the helper thread, without a lock.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vgasnet_protocol::coherence::Access;
use vgasnet_sys::futex;

/// Not in use.
const FREE: u32 = 0;
/// The thread polls, or drives the engine.
const LOOKING: u32 = 1;
/// The thread sleeps on the state.
const ASLEEP: u32 = 2;
/// The page is mapped and pinned.
const SERVED: u32 = 3;
/// The thread has jumped out of a signal handler.
const ABANDONED: u32 = 4;
/// A handler of the client interrupts the thread, and may jump elsewhere. The page is not pinned if it arrives now.
const AWAY: u32 = 5;
/// The wait is over without a pinned page: a handler of the client has interrupted the thread, or a block of the page
/// is mapped.
const RELEASED: u32 = 6;

/// Maximum number of hints; more are dropped.
const HINTS: usize = 16;
const NO_HINT: u32 = u32::MAX;

/// The thread needs the whole page.
const NO_BLOCK: u32 = u32::MAX;

/// A thread waiting for a page of its rank's segment. It must not move until it is served.
#[derive(Debug)]
pub struct Fault {
    index: AtomicU32,
    is_write: AtomicBool,
    /// Offset in the page of the block sufficient for the thread.
    block: AtomicU32,
    next: AtomicPtr<Fault>,
    state: AtomicU32,
}

/// State of a thread when its page arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// It polls, or sleeps like threads in calls.
    Looking,
    /// It slept, and was woken.
    Asleep,
    /// It had gone, or a handler interrupts it. If the page with this index was pinned for it, it has to be unpinned.
    Gone(u32),
}

impl Fault {
    /// An entry for a faulting thread.
    pub const fn new() -> Fault {
        Fault {
            index: AtomicU32::new(0),
            is_write: AtomicBool::new(false),
            block: AtomicU32::new(NO_BLOCK),
            next: AtomicPtr::new(std::ptr::null_mut()),
            state: AtomicU32::new(FREE),
        }
    }

    /// Takes the entry for a thread, if it is free. The thread polls if it `looks`; otherwise it sleeps.
    pub fn begin(&self, index: u32, access: Access, looks: bool) -> bool {
        let state = if looks { LOOKING } else { ASLEEP };
        let is_taken = self.state.compare_exchange(FREE, state, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if is_taken {
            self.index.store(index, Ordering::Relaxed);
            self.is_write.store(access == Access::Write, Ordering::Relaxed);
            self.block.store(NO_BLOCK, Ordering::Relaxed);
        }
        is_taken
    }

    /// Accepts the mapping of the block at `offset_bytes` instead of the page. Called between [`Fault::begin`] and the
    /// request.
    pub fn accept_block(&self, offset_bytes: u32) {
        debug_assert_ne!(offset_bytes, NO_BLOCK, "a page has no block there");
        self.block.store(offset_bytes, Ordering::Relaxed);
    }

    /// The page's index and the access of the fault.
    pub fn wants(&self) -> (u32, Access) {
        let access = if self.is_write.load(Ordering::Relaxed) { Access::Write } else { Access::Read };
        (self.index.load(Ordering::Relaxed), access)
    }

    /// Whether the thread polls itself.
    pub fn looks(&self) -> bool {
        self.state.load(Ordering::Relaxed) == LOOKING
    }

    /// Whether the page is mapped and pinned for this thread.
    pub fn is_served(&self) -> bool {
        self.state.load(Ordering::Acquire) == SERVED
    }

    /// Whether the wait is over: the page or block is mapped. The page is pinned for the thread only if
    /// [`Fault::is_served`].
    pub fn is_over(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), SERVED | RELEASED)
    }

    /// Sleeps until the wait of this thread, which does not poll, is over, or for about `limit`.
    pub fn wait(&self, limit: Option<Duration>) {
        let end = limit.map(|limit| Instant::now() + limit);
        while !self.is_over() && end.is_none_or(|end| Instant::now() < end) {
            // A handler of the client may have returned.
            let _ = self.state.compare_exchange(AWAY, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
            futex::wait_for(&self.state, ASLEEP, limit);
        }
    }

    /// Called when a handler of the client interrupts the sleeping thread. Returns the index of its page if it is
    /// pinned; the caller unpins it.
    pub fn interrupt(&self) -> Option<u32> {
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| match now {
            ASLEEP => Some(AWAY),
            SERVED => Some(RELEASED),
            _ => None,
        });
        (before == Ok(SERVED)).then(|| self.index.load(Ordering::Relaxed))
    }

    /// Frees the entry after the wait.
    pub fn end(&self) {
        self.state.store(FREE, Ordering::Release);
    }

    /// Called when the thread that slept here has jumped elsewhere. Returns the index of its page if it is pinned. The
    /// entry is free once the page has arrived.
    pub fn abandon(&self) -> Option<u32> {
        let index = self.index.load(Ordering::Relaxed);
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            Some(if matches!(now, ASLEEP | AWAY) { ABANDONED } else { FREE })
        });
        (before == Ok(SERVED)).then_some(index)
    }
}

impl Default for Fault {
    fn default() -> Fault {
        Fault::new()
    }
}

/// Names a waiting thread to its servers.
#[derive(Debug)]
pub struct FaultId(NonNull<Fault>);

// SAFETY: the fault stays until it is served, and its fields are atomic.
unsafe impl Send for FaultId {}

impl FaultId {
    /// The name of a thread, which waits until it is served by this name.
    pub fn of(fault: &Fault) -> FaultId {
        FaultId(NonNull::from(fault))
    }

    /// The page's index and the access of the fault.
    pub fn wants(&self) -> (u32, Access) {
        self.fault().wants()
    }

    /// Offset in the page of the block sufficient for the thread; `None` if it needs the page.
    pub fn block(&self) -> Option<u32> {
        Some(self.fault().block.load(Ordering::Relaxed)).filter(|block| *block != NO_BLOCK)
    }

    fn fault(&self) -> &Fault {
        // SAFETY: the fault stays until `end` consumes this, its only name.
        unsafe { self.0.as_ref() }
    }

    /// Releases the thread. Its page `is_pinned` or not.
    fn end(self, is_pinned: bool) -> Waited {
        // SAFETY: the fault exists until the state is stored.
        let state = unsafe { &raw const (*self.0.as_ptr()).state };
        let index = self.wants().0;
        // SAFETY: the fault exists until the state is stored. From then on its address only names the sleeper.
        let before = unsafe { &*state }.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            Some(match now {
                ABANDONED => FREE,
                AWAY => RELEASED,
                _ if !is_pinned => RELEASED,
                _ => SERVED,
            })
        });
        match before {
            Ok(ASLEEP) => {
                futex::wake_one(state);
                Waited::Asleep
            }
            Ok(ABANDONED | AWAY) => Waited::Gone(index),
            _ => Waited::Looking,
        }
    }
}

/// The requests of waiting threads, and read-ahead hints.
#[derive(Debug)]
pub struct Mailbox {
    newest: AtomicPtr<Fault>,
    hints: [AtomicU32; HINTS],
    /// Threads asleep with their requests taken.
    asleep: AtomicU32,
}

impl Default for Mailbox {
    fn default() -> Mailbox {
        Mailbox {
            newest: AtomicPtr::default(),
            hints: [const { AtomicU32::new(NO_HINT) }; HINTS],
            asleep: AtomicU32::new(0),
        }
    }
}

impl Mailbox {
    /// Posts the request of a thread, which then wakes the helper and waits.
    pub fn post(&self, fault: &Fault) {
        debug_assert!(
            matches!(fault.state.load(Ordering::Relaxed), LOOKING | ASLEEP | AWAY),
            "a fault that is posted has begun"
        );
        let this = std::ptr::from_ref(fault).cast_mut();
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            fault.next.store(newest, Ordering::Relaxed);
            match self.newest.compare_exchange_weak(newest, this, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => newest = now,
            }
        }
    }

    /// Notes the first use of a prefetched page, if there is room.
    pub fn hint(&self, index: u32) {
        let leave =
            |hint: &AtomicU32| hint.compare_exchange(NO_HINT, index, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        self.hints.iter().any(leave);
    }

    /// Whether there is a request or a hint.
    pub fn has_any(&self) -> bool {
        !self.newest.load(Ordering::SeqCst).is_null()
            || self.hints.iter().any(|hint| hint.load(Ordering::SeqCst) != NO_HINT)
    }

    /// Whether any thread with a taken request still sleeps.
    pub fn has_sleepers(&self) -> bool {
        self.asleep.load(Ordering::SeqCst) > 0
    }

    /// Turns a polling thread into a sleeping one. Returns false if its page has arrived.
    pub fn fall_asleep(&self, fault: &Fault) -> bool {
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let sleeps = fault.state.compare_exchange(LOOKING, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !sleeps {
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
        sleeps
    }

    /// Releases a thread with its page mapped and pinned.
    pub fn serve(&self, fault: FaultId) -> Waited {
        self.end(fault, true)
    }

    /// As [`Mailbox::serve`], for a thread with its block mapped. The page is not pinned; any index in the result is
    /// not to be unpinned.
    pub fn release(&self, fault: FaultId) -> Waited {
        self.end(fault, false)
    }

    fn end(&self, fault: FaultId, is_pinned: bool) -> Waited {
        let waited = fault.end(is_pinned);
        if waited != Waited::Looking {
            let before = self.asleep.fetch_sub(1, Ordering::SeqCst);
            debug_assert!(before > 0, "a thread that slept was counted");
        }
        waited
    }

    /// Takes the requests, for the engine to fetch the pages.
    pub fn take(&self) -> impl Iterator<Item = FaultId> + '_ {
        let mut next = self.newest.swap(std::ptr::null_mut(), Ordering::SeqCst);
        std::iter::from_fn(move || {
            let fault = FaultId(NonNull::new(next)?);
            next = fault.fault().next.load(Ordering::Relaxed);
            self.asleep.fetch_add(1, Ordering::SeqCst);
            Some(fault)
        })
    }

    /// Takes the hints: page indices.
    pub fn take_hints(&self) -> impl Iterator<Item = u32> + '_ {
        self.hints.iter().map(|hint| hint.swap(NO_HINT, Ordering::SeqCst)).filter(|index| *index != NO_HINT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_thread_that_posts_is_served() {
        const THREADS: usize = 4;
        const EACH: u32 = 2_000;
        let (mailbox, left) = (Mailbox::default(), AtomicUsize::new(THREADS));
        let mut served = 0;
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for index in 0..EACH {
                        let fault = Fault::new();
                        assert!(fault.begin(index, Access::Read, false));
                        mailbox.post(&fault);
                        fault.wait(None);
                        mailbox.hint(index);
                    }
                    left.fetch_sub(1, Ordering::Release);
                });
            }
            while left.load(Ordering::Acquire) > 0 {
                for waiting in mailbox.take() {
                    assert!(waiting.wants().0 < EACH);
                    assert_eq!(mailbox.serve(waiting), Waited::Asleep);
                    served += 1;
                }
                assert!(mailbox.take_hints().all(|index| index < EACH));
                std::thread::yield_now();
            }
        });
        assert_eq!(served, THREADS as u32 * EACH);
        mailbox.take_hints().for_each(drop);
        assert!(!mailbox.has_any());
    }
    #[test]
    fn a_place_that_is_left_is_free_when_its_page_has_come() {
        let (mailbox, fault) = (Mailbox::default(), Fault::new());
        assert!(fault.begin(7, Access::Write, true));
        let looked = FaultId::of(&fault);
        assert!(mailbox.fall_asleep(&fault) && mailbox.has_sleepers());
        assert_eq!(fault.abandon(), None);
        assert!(!fault.begin(8, Access::Read, false), "its page may still come");
        assert_eq!(mailbox.serve(looked), Waited::Gone(7));
        assert!(!mailbox.has_sleepers());

        assert!(fault.begin(8, Access::Read, false));
        mailbox.post(&fault);
        let posted: Vec<_> = mailbox.take().collect();
        posted.into_iter().for_each(|posted| assert_eq!(mailbox.serve(posted), Waited::Asleep));
        assert_eq!(fault.abandon(), Some(8));

        assert!(fault.begin(9, Access::Read, true));
        assert_eq!(mailbox.serve(FaultId::of(&fault)), Waited::Looking);
        assert!(!mailbox.fall_asleep(&fault) && fault.is_served() && !mailbox.has_sleepers());
    }

    #[test]
    fn nothing_is_pinned_for_a_thread_with_a_mapped_block() {
        let (mailbox, fault) = (Mailbox::default(), Fault::new());
        assert!(fault.begin(7, Access::Read, true));
        fault.accept_block(4096);
        let asked = FaultId::of(&fault);
        assert_eq!(asked.block(), Some(4096));
        assert_eq!(mailbox.release(asked), Waited::Looking);
        assert!(fault.is_over() && !fault.is_served() && !mailbox.fall_asleep(&fault));
        assert_eq!(fault.abandon(), None);
        // The next one needs the page.
        assert!(fault.begin(7, Access::Read, true));
        assert_eq!(FaultId::of(&fault).block(), None);
        assert!(mailbox.fall_asleep(&fault));
        assert_eq!(mailbox.release(FaultId::of(&fault)), Waited::Asleep);
        assert!(!mailbox.has_sleepers());
    }

    #[test]
    fn nothing_is_pinned_for_a_thread_interrupted_by_a_handler() {
        let (mailbox, fault) = (Mailbox::default(), Fault::new());
        let ask = |index| {
            assert!(fault.begin(index, Access::Read, false));
            mailbox.post(&fault);
            mailbox.take().next().expect("it was posted")
        };
        // The page arrives while a handler runs.
        let asked = ask(7);
        assert_eq!(fault.interrupt(), None);
        assert_eq!(mailbox.serve(asked), Waited::Gone(7));
        fault.wait(None);
        assert!(fault.is_over() && !fault.is_served());
        assert_eq!((fault.interrupt(), fault.abandon()), (None, None));
        // The handler returns before the page arrives.
        let asked = ask(8);
        assert_eq!((fault.interrupt(), fault.interrupt()), (None, None));
        fault.wait(Some(Duration::from_millis(1)));
        assert_eq!(mailbox.serve(asked), Waited::Asleep);
        assert!(fault.is_served());
        // A handler runs after the page has arrived.
        assert_eq!((fault.interrupt(), fault.interrupt()), (Some(8), None));
        assert!(fault.is_over() && !fault.is_served());
        fault.end();
        // The handler jumps elsewhere before the page arrives.
        let asked = ask(9);
        assert_eq!((fault.interrupt(), fault.abandon()), (None, None));
        assert_eq!(mailbox.serve(asked), Waited::Gone(9));
        assert!(fault.begin(10, Access::Read, true) && !mailbox.has_sleepers());
    }
}
