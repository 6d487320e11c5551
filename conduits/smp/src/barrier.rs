//! A barrier between processes, sleeping in the kernel.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use vgasnet_conduit::SLOW;

/// In shared memory, initially zero.
#[repr(C)]
pub(crate) struct Barrier {
    /// Number of completed barriers.
    generation: AtomicU32,
    /// Number of arrivals in this generation.
    arrived: AtomicU32,
}

impl Barrier {
    /// Returns when all of `ranks` ranks have called it. Earlier writes of every rank are then visible to all. Calls
    /// `tell` if it takes longer than [`SLOW`].
    pub(crate) fn wait(&self, ranks: u32, tell: impl FnOnce()) {
        let generation = self.generation.load(Ordering::Acquire);
        // The last rank resets the count before it opens the barrier, so that a fast rank counts from 0 in the next
        // one. `AcqRel`: the last rank has seen all earlier writes, and passes them on with `generation`.
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

/// Sleeps unless `word` is no longer `expected`, for `limit` at most. May return early: the caller checks again.
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
