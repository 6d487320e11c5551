//! Keeps pages pinned until the instruction that needs them has completed, on x86-64.
//!
//! The fault handler (`fault/mod.rs` says when) returns with the trap flag set: the processor runs one instruction and
//! raises SIGTRAP, which ends the single step. So the instruction completes, however many ranks contend for the page.
//! Until then the thread handles no other signal, so that the next instruction is this one.
//!
//! An instruction may need several pages. A resident page is added to the step. Before a missing one is fetched, the
//! others are unpinned: no thread has a page pinned while it waits for another. To get all its pages together in a
//! small pool, such a thread takes the turn: until its instruction has completed, other threads wait before they fetch
//! pages.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use vgasnet_sys::futex;
use vgasnet_sys::signal_mask::{ASYNCHRONOUS, Mask, mask_in};

/// Maximum number of threads in a single step. One more waits briefly.
const THREADS: usize = 256;

/// Pinned pages of one instruction; it may need more only if it can be resumed (gathers and scatters).
const PAGES: usize = 8;

const TRAP_FLAG: i64 = 1 << 8;

/// One thread's single step.
struct Step {
    /// The thread's number, or 0 if the entry is free. The other fields belong to this thread.
    thread: AtomicU32,
    pages: Cell<[u32; PAGES]>,
    count: Cell<usize>,
    /// Its signal mask outside the step.
    mask: Cell<Mask>,
}

struct Steps([Step; THREADS]);

// SAFETY: an entry belongs to the thread with its number. Only this thread's signal handlers access it, and do not
// interrupt each other.
unsafe impl Sync for Steps {}

static STEPS: Steps = Steps(
    [const { Step { thread: AtomicU32::new(0), pages: Cell::new([0; PAGES]), count: Cell::new(0), mask: Cell::new(0) } };
        THREADS],
);

/// An instruction nearly always gets its pages sooner.
const TURN_PATIENCE: Duration = Duration::from_millis(20);

/// The thread with the turn to fetch pages; 0 if all threads may.
static TURN: AtomicU32 = AtomicU32::new(0);

/// Number of entries in use.
static TAKEN: AtomicU32 = AtomicU32::new(0);

fn this_thread() -> u32 {
    // SAFETY: the call has no conditions.
    unsafe { libc::gettid() as u32 }
}

/// This thread's single step, if it is in one.
fn current() -> Option<&'static Step> {
    if TAKEN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let thread = this_thread();
    STEPS.0.iter().find(|step| step.thread.load(Ordering::Relaxed) == thread)
}

fn begin(thread: u32) -> &'static Step {
    loop {
        let take = |step: &&Step| step.thread.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if let Some(step) = STEPS.0.iter().find(take) {
            TAKEN.fetch_add(1, Ordering::Relaxed);
            return step;
        }
        std::thread::yield_now();
    }
}

impl Step {
    fn take_pages(&self) -> impl Iterator<Item = u32> + use<> {
        let (pages, count) = (self.pages.get(), self.count.replace(0));
        pages.into_iter().take(count)
    }

    /// Adds a page. Returns whether there was room.
    fn add(&self, page: u32) -> bool {
        let (mut pages, count) = (self.pages.get(), self.count.get());
        let has_room = count < PAGES;
        if has_room {
            pages[count] = page;
            self.pages.set(pages);
            self.count.set(count + 1);
        }
        has_room
    }

    /// Gives the entry back, and the turn. Returns the thread's mask outside the step.
    fn end(&self) -> Mask {
        let mask = self.mask.get();
        if TURN.load(Ordering::Relaxed) == self.thread.load(Ordering::Relaxed) {
            TURN.store(0, Ordering::Release);
            futex::wake_all(&TURN);
        }
        self.thread.store(0, Ordering::Release);
        TAKEN.fetch_sub(1, Ordering::Relaxed);
        mask
    }
}

/// Whether this thread is in a single step.
pub(super) fn is_in_flight() -> bool {
    current().is_some()
}

/// Keeps a page pinned until the interrupted instruction has completed. Returns whether it does; if not, the caller
/// unpins the page.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler.
pub(super) unsafe fn keep(page: u32, context: *mut c_void) -> bool {
    let step = current().unwrap_or_else(|| begin(this_thread()));
    // SAFETY: `context` is the ucontext of the calling handler, and nobody else touches it while the handler runs.
    unsafe {
        let flags = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_EFL as usize];
        // A client handler that jumped out of an instruction has left its step to the next one.
        if *flags & TRAP_FLAG == 0 {
            let mask = mask_in(context);
            step.mask.set(mask.read());
            mask.write(ASYNCHRONOUS);
            *flags |= TRAP_FLAG;
        }
    }
    step.add(page)
}

/// Takes the pages out of this thread's step, which continues. The caller unpins them.
pub(super) fn release_pages() -> impl Iterator<Item = u32> {
    current().into_iter().flat_map(Step::take_pages)
}

/// Called before a page is fetched: a thread in a single step takes the turn; another one waits while the turn is
/// taken. The thread must not have a page pinned.
///
/// The wait is bounded by [`TURN_PATIENCE`]: the thread may have a page pinned for the client, and the owner of the
/// turn may wait for it.
pub(super) fn take_turn() {
    let own = current().map(|step| step.thread.load(Ordering::Relaxed));
    let mut has_waited = false;
    loop {
        let owner = TURN.load(Ordering::Acquire);
        let goes_on = match owner {
            0 => {
                own.is_none_or(|thread| TURN.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed).is_ok())
            }
            owner => Some(owner) == own || has_waited,
        };
        if goes_on {
            return;
        }
        if owner != 0 {
            futex::wait_for(&TURN, owner, Some(TURN_PATIENCE));
            has_waited = true;
        }
    }
}

/// Ends the step of the interrupted thread. Its instruction has completed, or will not continue. Returns the step's
/// pages, which the caller unpins; `None` if the thread was in no step.
///
/// # Safety
/// `context` is the ucontext of the calling signal handler.
pub(super) unsafe fn end(context: *mut c_void) -> Option<impl Iterator<Item = u32>> {
    let step = current()?;
    let pages = step.take_pages();
    // SAFETY: `context` is the ucontext of the calling handler, and nobody else touches it while the handler runs.
    unsafe {
        (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG;
        mask_in(context).write(step.end());
    }
    Some(pages)
}
