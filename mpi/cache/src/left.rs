//! Operations of a window while its gets are left to MPI ([`crate::trial`]). Gets are neither noted nor counted, so that
//! they cost what they cost without the library, and writes drop no copies. Before the cache serves the window again,
//! it catches up: gets possibly in flight are noted, and the copies are dropped if anything was written.

use crate::locking::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Whether gets that were left to MPI may be in flight to a target.
#[derive(Debug, Default)]
pub struct LeftMark(AtomicU8);

impl LeftMark {
    const CLEAR: u8 = 0;
    const MARKED: u8 = 1;
    /// A thread is about to note the gets. A further get may be none of them, so it marks its target anew.
    const TAKEN: u8 = 2;

    /// Whether there are none. Gets are noted before their mark is gone: read afterwards, the target's progress has
    /// them.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.0.load(Ordering::SeqCst) == LeftMark::CLEAR
    }

    #[inline]
    fn is_marked(&self) -> bool {
        self.0.load(Ordering::SeqCst) == LeftMark::MARKED
    }

    fn set(&self, state: u8) {
        self.0.store(state, Ordering::SeqCst);
    }
}

/// What the cache of a window has not seen.
#[derive(Debug, Default)]
pub struct Left {
    /// Whether there are targets.
    has_gets: AtomicBool,
    /// Targets with gets possibly in flight.
    targets: Mutex<Vec<u32>>,
    writes: AtomicU64,
    writes_seen: AtomicU64,
}

impl Left {
    /// MPI was asked for a get.
    #[inline]
    pub fn on_get(&self, mark: &LeftMark, target: u32) {
        // After the call: a get that a completion may miss is marked behind it.
        if !mark.is_marked() {
            self.add(mark, target);
        }
    }

    #[cold]
    fn add(&self, mark: &LeftMark, target: u32) {
        let mut targets = lock(&self.targets);
        if mark.is_clear() {
            targets.push(target);
            // First: a thread that finds its target marked relies on both.
            self.has_gets.store(true, Ordering::SeqCst);
            mark.set(LeftMark::MARKED);
        }
    }

    /// MPI is about to be asked for a write, or was.
    #[inline]
    pub fn on_write(&self) {
        self.writes.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether the cache has to catch up before it serves a get.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.has_gets.load(Ordering::SeqCst)
            || self.writes.load(Ordering::SeqCst) != self.writes_seen.load(Ordering::Relaxed)
    }

    /// Whether gets may be in flight to any target.
    #[inline]
    pub fn has_gets(&self) -> bool {
        self.has_gets.load(Ordering::SeqCst)
    }

    /// Drops the copies if there were writes. `writes_seen` is raised last: until then other threads drop them as well.
    pub fn see_writes(&self, drop_copies: impl FnOnce()) {
        let writes = self.writes.load(Ordering::SeqCst);
        if writes != self.writes_seen.load(Ordering::Relaxed) {
            drop_copies();
            self.writes_seen.fetch_max(writes, Ordering::Release);
        }
    }

    /// Takes the targets that `is_taken` accepts. Each is passed to `note` before its mark is gone, so other threads
    /// always find one of both.
    pub fn take<'a>(
        &self,
        mark_of: impl Fn(u32) -> &'a LeftMark,
        is_taken: impl Fn(u32) -> bool,
        mut note: impl FnMut(u32),
    ) {
        if !self.has_gets.load(Ordering::SeqCst) {
            return;
        }
        let mut targets = lock(&self.targets);
        targets.retain(|number| {
            let is_taken = is_taken(*number);
            if is_taken {
                let mark = mark_of(*number);
                mark.set(LeftMark::TAKEN);
                note(*number);
                mark.set(LeftMark::CLEAR);
            }
            !is_taken
        });
        self.has_gets.store(!targets.is_empty(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks() -> [LeftMark; 3] {
        [(); 3].map(|()| LeftMark::default())
    }

    #[test]
    fn gets_are_in_flight_until_their_target_is_taken() {
        let (left, all) = (Left::default(), marks());
        for number in [2, 0, 2] {
            left.on_get(&all[number], number as u32);
        }
        let mut taken = Vec::new();
        left.take(|number| &all[number as usize], |number| number == 2, |number| taken.push(number));
        assert!(taken == [2] && left.has_gets() && left.is_behind());
        left.take(|number| &all[number as usize], |_| true, |number| taken.push(number));
        assert!(taken == [2, 0] && !left.has_gets() && !left.is_behind());
        left.on_get(&all[2], 2);
        assert!(left.has_gets());
    }

    /// A completion may miss a get that comes while others are noted.
    #[test]
    fn a_get_that_comes_while_others_are_noted_stays_marked() {
        let (left, all) = (Left::default(), marks());
        left.on_get(&all[1], 1);
        std::thread::scope(|scope| {
            let note = |_| {
                // It is marked anew then, once the others are noted.
                assert!(!all[1].is_clear() && !all[1].is_marked() && left.has_gets());
                scope.spawn(|| left.on_get(&all[1], 1));
            };
            left.take(|number| &all[number as usize], |_| true, note);
        });
        assert!(all[1].is_marked() && left.has_gets());
    }

    #[test]
    fn copies_are_dropped_once_for_any_number_of_writes() {
        let (left, mut drops) = (Left::default(), 0);
        left.see_writes(|| drops += 1);
        left.on_write();
        left.on_write();
        assert!(left.is_behind());
        left.see_writes(|| {
            drops += 1;
            // Another thread writes meanwhile.
            left.on_write();
        });
        assert!(left.is_behind() && drops == 1);
    }
}
