//! What is known of a window: its targets, which epochs are open, what is under way.

use crate::near::Nearness;
use crate::pools::Words;
use crate::settings::Mode;
use crate::worth::Worth;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The epochs that let operations go to a target.
pub mod access {
    pub const LOCKED: u32 = 1;
    pub const STARTED: u32 = 2;
    /// Of the window.
    pub const ALL_LOCKED: u32 = 4;
    pub const FENCED: u32 = 8;
    /// The passive ones, in which flushes are allowed.
    pub const PASSIVE: u32 = LOCKED | ALL_LOCKED;
}

/// How far operations have come. Each number is that of operations so far.
///
/// Operations are counted after MPI was asked for them. A completion notes the counts, asks MPI, and raises what is done to what it noted.
/// So a thread whose operation another one is about to complete finds it not done yet.
#[derive(Debug, Default)]
pub struct Progress {
    pub issued: AtomicU64,
    /// Of those, complete at the origin.
    pub done_here: AtomicU64,
    /// Complete at the target, too.
    pub done_there: AtomicU64,
}

/// What an operation does to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Read,
    Write,
    /// It writes, and its answer says what was there.
    Fetch,
}

/// A rank of a window.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Target {
    /// What displacements are multiples of.
    pub unit: i64,
    pub access: AtomicU32,
    is_touched: AtomicBool,
    /// The interval without news in which it was made sure last that what is kept of it is not old.
    pub looked_at: AtomicU64,
    pub progress: Progress,
    pub nearness: Nearness,
    /// Operations that write: issued, done at the target, and told by the target's word.
    pub writes: AtomicU64,
    pub writes_done: AtomicU64,
    pub writes_told: AtomicU64,
    /// Of those, operations that fetch: issued, and told. Their answer proves that they were applied.
    pub fetches: AtomicU64,
    pub fetches_told: AtomicU64,
    /// Its word as it was last seen.
    pub word: AtomicU64,
}

/// Where a target was when a completion began.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub target: u32,
    issued: u64,
    writes: u64,
    fetches: u64,
}

/// A window that may be cached.
#[derive(Debug)]
pub struct Window {
    pub handle: u64,
    /// Its number.
    pub space: u32,
    pub rank: u32,
    mode: AtomicU8,
    /// It was never cached: nobody counts what is under way.
    is_plain: AtomicBool,
    pub access: AtomicU32,
    /// Targets that are locked one by one.
    pub locks: AtomicU32,
    pub targets: Box<[Target]>,
    pub progress: Progress,
    /// Targets with operations under way, and some whose operations were completed one by one.
    touched: Mutex<Vec<u32>>,
    /// The targets of the access epoch that `MPI_Win_start` began.
    pub started: Mutex<Vec<u32>>,
    pub worth: Worth,
    /// In mode told, or if it was that before.
    pub words: Option<Words>,
    /// Whether others may put in the exposure epoch.
    pub is_exposed_to_puts: AtomicBool,
}

/// A lock whose holders do not panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Raises a count, and a sum of such counts by as much. Who finds it so has the bytes that were copied before.
fn raise(count: &AtomicU64, sum: &AtomicU64, to: u64) {
    let before = count.fetch_max(to, Ordering::Release);
    if to > before {
        sum.fetch_add(to - before, Ordering::Release);
    }
}

impl Window {
    /// A window with these targets.
    pub fn new(handle: u64, space: u32, rank: u32, units: &[i64], mode: Mode, words: Option<Words>) -> Window {
        let targets = units.iter().map(|unit| Target { unit: *unit, ..Target::default() }).collect();
        Window {
            handle,
            space,
            rank,
            mode: AtomicU8::new(mode as u8),
            is_plain: AtomicBool::new(mode == Mode::Off),
            access: AtomicU32::new(0),
            locks: AtomicU32::new(0),
            targets,
            progress: Progress::default(),
            touched: Mutex::default(),
            started: Mutex::default(),
            worth: Worth::default(),
            words,
            is_exposed_to_puts: AtomicBool::new(true),
        }
    }

    /// What the cache relies on.
    #[inline]
    pub fn mode(&self) -> Mode {
        Mode::from_number(self.mode.load(Ordering::Relaxed))
    }

    /// From now on the cache relies on this.
    pub fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Whether it was never cached.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain.load(Ordering::Relaxed)
    }

    /// It is about to be cached. What may be under way of a window that never was has not been counted.
    pub fn count_from_now(&self) {
        if self.is_plain.swap(false, Ordering::Relaxed) {
            (0..self.targets.len() as u32).for_each(|number| self.on_issued(number, Effect::Fetch));
        }
    }

    /// A target, unless the number is none: a null process, say.
    #[inline]
    pub fn target(&self, target: i32) -> Option<&Target> {
        self.targets.get(usize::try_from(target).ok()?)
    }

    /// Whether an epoch is open in which operations may go to a target.
    #[inline]
    pub fn is_accessible(&self, target: &Target) -> bool {
        self.access.load(Ordering::Relaxed) | target.access.load(Ordering::Relaxed) != 0
    }

    /// Whether an epoch is open in which a target may be flushed.
    #[inline]
    pub fn is_passive(&self, target: &Target) -> bool {
        (self.access.load(Ordering::Relaxed) | target.access.load(Ordering::Relaxed)) & access::PASSIVE != 0
    }

    /// Whether an epoch is open in which all targets may be flushed.
    #[inline]
    pub fn is_any_passive(&self) -> bool {
        self.access.load(Ordering::Relaxed) & access::ALL_LOCKED != 0 || self.locks.load(Ordering::Relaxed) != 0
    }

    /// MPI was asked for an operation.
    pub fn on_issued(&self, number: u32, effect: Effect) {
        let target = &self.targets[number as usize];
        if effect != Effect::Read {
            target.writes.fetch_add(1, Ordering::Relaxed);
        }
        if effect == Effect::Fetch {
            target.fetches.fetch_add(1, Ordering::Relaxed);
        }
        // The sum first: it is never less than what it is the sum of, so if all of it is done, everything is.
        self.progress.issued.fetch_add(1, Ordering::Relaxed);
        // Both in one order with `forget_done`, which looks in the other order.
        target.progress.issued.fetch_add(1, Ordering::SeqCst);
        if !target.is_touched.load(Ordering::SeqCst) {
            let mut touched = lock(&self.touched);
            if !target.is_touched.swap(true, Ordering::SeqCst) {
                touched.push(number);
            }
        }
    }

    /// Where a target is, before MPI is asked to complete its operations.
    pub fn mark(&self, number: u32) -> Mark {
        let target = &self.targets[number as usize];
        // First the operations: what is known of those that are counted, as a write or as pending, was noted before.
        let issued = target.progress.issued.load(Ordering::Acquire);
        let (writes, fetches) = (target.writes.load(Ordering::Relaxed), target.fetches.load(Ordering::Relaxed));
        Mark { target: number, issued, writes, fetches }
    }

    /// Where all targets are that have operations under way.
    pub fn mark_all(&self) -> Vec<Mark> {
        lock(&self.touched).iter().map(|number| self.mark(*number)).collect()
    }

    /// Targets whose operations are done need not be looked at by the next completion of all. Until then that of another thread, which
    /// must not return before, looks at them, too.
    pub fn forget_done(&self) {
        lock(&self.touched).retain(|number| {
            let target = &self.targets[*number as usize];
            target.is_touched.store(false, Ordering::SeqCst);
            let issued = target.progress.issued.load(Ordering::SeqCst);
            let is_left = target.progress.done_there.load(Ordering::Relaxed) != issued;
            if is_left {
                target.is_touched.store(true, Ordering::SeqCst);
            }
            is_left
        });
    }

    /// MPI has completed what was under way to a target: at the origin, or at the target as well.
    pub fn on_done(&self, mark: &Mark, is_there: bool) {
        let target = &self.targets[mark.target as usize];
        if is_there {
            target.writes_done.fetch_max(mark.writes, Ordering::Relaxed);
        }
        let (here, there) = (&self.progress.done_here, &self.progress.done_there);
        raise(&target.progress.done_here, here, mark.issued);
        // Gets are complete as soon as their bytes are at the origin.
        if is_there || target.writes_done.load(Ordering::Relaxed) >= mark.writes {
            raise(&target.progress.done_there, there, mark.issued);
        }
    }
}

impl Mark {
    /// Operations that write, so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Those of them that fetch.
    pub fn fetches(&self) -> u64 {
        self.fetches
    }
}

impl Progress {
    /// Nothing is under way at the origin; nothing is at the target either.
    #[inline]
    pub fn is_done(&self, is_there: bool) -> bool {
        let done = if is_there { &self.done_there } else { &self.done_here };
        done.load(Ordering::Acquire) == self.issued.load(Ordering::Relaxed)
    }
}
