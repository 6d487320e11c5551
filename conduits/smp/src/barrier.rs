//! A barrier between processes that sleeps in the kernel.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use vgasnet_conduit::SLOW;

/// In shared memory, all zero at first.
#[repr(C)]
pub(crate) struct Barrier {
    /// Counts the times that all have arrived.
    generation: AtomicU32,
    /// How many have arrived in this generation.
    arrived: AtomicU32,
}

impl Barrier {
    /// Returns when all of `ranks` ranks have called it. What a rank wrote before, every rank sees after. Calls `tell` when
    /// that takes longer than [`SLOW`].
    pub(crate) fn wait(&self, ranks: u32, tell: impl FnOnce()) {
        let generation = self.generation.load(Ordering::Acquire);
        // The last one resets the count before it opens the barrier, so that a rank that runs ahead into the next one
        // counts from 0. `AcqRel`: the last one has seen what all before it wrote, and passes it on with `generation`.
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == ranks {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.fetch_add(1, Ordering::Release);
            futex_wake_all(&self.generation);
            return;
        }
        let (late, mut tell) = (Instant::now() + SLOW, Some(tell));
        while self.generation.load(Ordering::Acquire) == generation {
            let left = tell.is_some().then(|| late.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                tell.take().into_iter().for_each(|tell| tell());
            } else {
                futex_wait(&self.generation, generation, left);
            }
        }
    }
}

/// Sleeps unless `word` is no longer `expected`, for `limit` at most. May return early: the caller looks again.
fn futex_wait(word: &AtomicU32, expected: u32, limit: Option<Duration>) {
    let limit = limit
        .map(|limit| libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel only reads the word and the limit, which outlive the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, limit);
    }
}

fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: the kernel uses the address as a key and touches no memory.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nobody_runs_ahead_of_a_barrier() {
        const RANKS: u32 = 5;
        let barrier = Barrier { generation: AtomicU32::new(0), arrived: AtomicU32::new(0) };
        let entered = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..RANKS {
                scope.spawn(|| {
                    for round in 1..=500 {
                        entered.fetch_add(1, Ordering::Relaxed);
                        barrier.wait(RANKS, || {});
                        assert!(entered.load(Ordering::Relaxed) >= round * RANKS);
                        barrier.wait(RANKS, || {});
                    }
                });
            }
        });
    }
}
