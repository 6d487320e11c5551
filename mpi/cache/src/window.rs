//! The state of a window: its targets, open epochs, operations in flight.

use crate::left::{Left, LeftMark};
use crate::locking::lock;
use crate::near::Nearness;
use crate::pools::Words;
use crate::settings::Mode;
use crate::trial::Trial;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use vgasnet_mpi_front::Handle;
use vgasnet_mpi_front::kind::Win;

/// The epochs in which operations may access a target.
pub mod access {
    pub const LOCKED: u32 = 1;
    pub const STARTED: u32 = 2;
    /// Of the window.
    pub const ALL_LOCKED: u32 = 4;
    pub const FENCED: u32 = 8;
    /// The passive ones, in which flushes are allowed.
    pub const PASSIVE: u32 = LOCKED | ALL_LOCKED;
}

/// Progress of operations. Each number counts all operations so far.
///
/// An operation is counted after MPI was asked for it. A completion notes the counts, calls MPI, and raises the done
/// counts to the noted ones. While one thread completes another's operation, the other therefore finds it not done yet.
#[derive(Debug, Default)]
pub struct Progress {
    pub issued: AtomicU64,
    /// Of these, complete at the origin.
    pub done_here: AtomicU64,
    /// Complete at the target, too.
    pub done_there: AtomicU64,
}

/// The effect of an operation on its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Read,
    Write,
    /// It writes, and returns the former value.
    Fetch,
}

/// A rank of a window.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Target {
    /// Unit of displacements, or 0 if unknown.
    pub unit: i64,
    pub access: AtomicU32,
    is_touched: AtomicBool,
    /// Whether gets that were left to MPI, and not counted, may be in flight ([`Left`]).
    pub left: LeftMark,
    /// The last interval without news in which the target's entries were verified.
    pub looked_at: AtomicU64,
    pub progress: Progress,
    pub nearness: Nearness,
    /// Writing operations: issued, done at the target, and told by the target's word.
    pub writes: AtomicU64,
    pub writes_done: AtomicU64,
    pub writes_told: AtomicU64,
    /// Fetching operations among them: issued, done at the origin, and told. Their answer proves their application.
    pub fetches: AtomicU64,
    fetches_done: AtomicU64,
    pub fetches_told: AtomicU64,
    /// Its word as last read.
    pub word: AtomicU64,
}

/// The state of a target when a completion began.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub target: u32,
    issued: u64,
    writes: u64,
    fetches: u64,
}

impl Target {
    /// The key of a displacement: the address, or the displacement itself if the unit is unknown.
    #[inline]
    pub fn address(&self, displacement: i64) -> Option<u64> {
        displacement.checked_mul(self.unit.max(1)).and_then(|address| u64::try_from(address).ok())
    }

    /// Keys and a length that contain these bytes at a displacement. `low` is relative to it. If the unit is unknown,
    /// each byte may be a unit away from the next, or in the same.
    pub fn span(&self, displacement: i64, low: i64, bytes: i64) -> Option<(u64, u64)> {
        let end = low.checked_add(bytes)?;
        let (low, end) = if self.unit == 0 { (low.min(0), end.max(1)) } else { (low, end) };
        let at = displacement.checked_mul(self.unit.max(1))?;
        let start = u64::try_from(at.checked_add(low)?).ok()?;
        Some((start, u64::try_from(end - low).ok()?))
    }
}

/// Operations that fetch.
#[derive(Debug, Default)]
struct Fetches {
    begun: AtomicU64,
    done: AtomicU64,
}

/// A window that may be cached.
#[derive(Debug)]
pub struct Window {
    pub handle: Handle<Win>,
    /// Its number.
    pub space: u32,
    pub rank: u32,
    mode: AtomicU8,
    /// It was never cached: operations in flight are not counted.
    is_plain: AtomicBool,
    pub access: AtomicU32,
    /// Number of targets locked one by one.
    pub locks: AtomicU32,
    pub targets: Box<[Target]>,
    pub progress: Progress,
    /// Targets with operations in flight, and some with operations already completed one by one.
    touched: Mutex<Vec<u32>>,
    /// The targets of the access epoch begun by `MPI_Win_start`.
    pub started: Mutex<Vec<u32>>,
    /// Fetching operations, to all targets.
    fetches: Fetches,
    pub left: Left,
    pub trial: Trial,
    /// Present if the window was created in mode told.
    pub words: Option<Words>,
    /// Whether others may put in the exposure epoch.
    pub is_exposed_to_puts: AtomicBool,
}

/// Raises a count, and a sum of such counts by as much. A thread that reads the new count also sees the bytes copied
/// before.
fn raise(count: &AtomicU64, sum: &AtomicU64, to: u64) {
    let before = count.fetch_max(to, Ordering::Release);
    if to > before {
        sum.fetch_add(to - before, Ordering::Release);
    }
}

impl Window {
    /// A window with these targets.
    pub fn new(handle: Handle<Win>, space: u32, rank: u32, units: &[i64], mode: Mode, words: Option<Words>) -> Window {
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
            fetches: Fetches::default(),
            left: Left::default(),
            trial: Trial::new(mode),
            words,
            is_exposed_to_puts: AtomicBool::new(true),
        }
    }

    /// Takes targets with gets that were left to MPI, see [`Left::take`].
    pub fn take_left(&self, is_taken: impl Fn(u32) -> bool, note: impl FnMut(u32)) {
        self.left.take(|number| &self.targets[number as usize].left, is_taken, note);
    }

    /// The current mode.
    #[inline]
    pub fn mode(&self) -> Mode {
        Mode::from_number(self.mode.load(Ordering::Relaxed))
    }

    /// Changes the mode.
    pub fn set_mode(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// Whether it was never cached.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain.load(Ordering::Relaxed)
    }

    /// The window is about to be cached. If it was never cached, uncounted operations may be in flight, so one is
    /// assumed at each target with an open epoch.
    pub fn count_from_now(&self) {
        if self.is_plain.swap(false, Ordering::Relaxed) {
            let is_open = |number: &u32| self.is_accessible(&self.targets[*number as usize]);
            (0..self.targets.len() as u32).filter(is_open).for_each(|number| self.on_issued(number, Effect::Fetch));
        }
    }

    /// The target of a rank; `None` for any other number, such as the null process.
    #[inline]
    pub fn target(&self, target: i32) -> Option<&Target> {
        self.targets.get(usize::try_from(target).ok()?)
    }

    /// Whether operations may access a target in an open epoch.
    #[inline]
    pub fn is_accessible(&self, target: &Target) -> bool {
        self.access.load(Ordering::Relaxed) | target.access.load(Ordering::Relaxed) != 0
    }

    /// Whether a target may be flushed in an open epoch.
    #[inline]
    pub fn is_passive(&self, target: &Target) -> bool {
        (self.access.load(Ordering::Relaxed) | target.access.load(Ordering::Relaxed)) & access::PASSIVE != 0
    }

    /// Whether all targets may be flushed in an open epoch.
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
            // The sum first, as below.
            self.fetches.begun.fetch_add(1, Ordering::Relaxed);
            target.fetches.fetch_add(1, Ordering::Relaxed);
        }
        // The sum first. It is never less than the sum of its parts, so if all of it is done, every part is.
        self.progress.issued.fetch_add(1, Ordering::Relaxed);
        // `forget_done` accesses these two in the opposite order, so both are in one total order.
        target.progress.issued.fetch_add(1, Ordering::SeqCst);
        if !target.is_touched.load(Ordering::SeqCst) {
            let mut touched = lock(&self.touched);
            if !target.is_touched.swap(true, Ordering::SeqCst) {
                touched.push(number);
            }
        }
    }

    /// Whether results of fetching operations may be under way to buffers of the program.
    pub fn has_fetches(&self) -> bool {
        self.fetches.done.load(Ordering::Relaxed) != self.fetches.begun.load(Ordering::Relaxed)
    }

    /// The state of a target, before MPI is asked to complete its operations.
    pub fn mark(&self, number: u32) -> Mark {
        let target = &self.targets[number as usize];
        // The operations first: a counted operation was noted before, as a write or as pending.
        let issued = target.progress.issued.load(Ordering::Acquire);
        let (writes, fetches) = (target.writes.load(Ordering::Relaxed), target.fetches.load(Ordering::Relaxed));
        Mark { target: number, issued, writes, fetches }
    }

    /// The states of all targets with operations in flight.
    pub fn mark_all(&self) -> Vec<Mark> {
        lock(&self.touched).iter().map(|number| self.mark(*number)).collect()
    }

    /// Removes the targets without operations in flight, so that the next completion of all skips them. Until then a
    /// completion by another thread looks at them too: it must not return before they are done.
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

    /// MPI has completed the operations in flight to a target: at the origin, or at the target as well.
    pub fn on_done(&self, mark: &Mark, is_there: bool) {
        let target = &self.targets[mark.target as usize];
        if is_there {
            target.writes_done.fetch_max(mark.writes, Ordering::Relaxed);
        }
        raise(&target.fetches_done, &self.fetches.done, mark.fetches);
        let (here, there) = (&self.progress.done_here, &self.progress.done_there);
        raise(&target.progress.done_here, here, mark.issued);
        // A get is complete as soon as its bytes are at the origin.
        if is_there || target.writes_done.load(Ordering::Relaxed) >= mark.writes {
            raise(&target.progress.done_there, there, mark.issued);
        }
    }
}

impl Mark {
    /// Number of writing operations so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Number of fetching operations among them.
    pub fn fetches(&self) -> u64 {
        self.fetches
    }
}

impl Progress {
    /// Whether nothing is in flight at the origin and, if `is_there`, at the target.
    #[inline]
    pub fn is_done(&self, is_there: bool) -> bool {
        let done = if is_there { &self.done_there } else { &self.done_here };
        done.load(Ordering::Acquire) == self.issued.load(Ordering::Relaxed)
    }
}
