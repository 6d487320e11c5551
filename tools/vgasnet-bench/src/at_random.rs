//! Threads of all ranks that access random places at the same time.

use crate::rank::Rank;

/// Runs `work` with the thread's number in this many threads of each rank at once. Returns the mean of the results.
pub fn mean_of_ranks(rank: &Rank, threads: u32, work: impl Fn(u32) -> f64 + Sync) -> f64 {
    rank.barrier();
    let start = std::sync::Barrier::new(threads as usize);
    let total: f64 = std::thread::scope(|scope| {
        let begin = |thread| {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                work(thread)
            })
        };
        let threads: Vec<_> = (0..threads).map(begin).collect();
        threads.into_iter().map(|thread| thread.join().expect("it only measures")).sum()
    });
    let all = rank.gather([(total / f64::from(threads)).to_bits(), 0, 0, 0]);
    all.iter().map(|told| f64::from_bits(told[0])).sum::<f64>() / f64::from(rank.ranks)
}

/// The combinations to measure: own pool and neighbour's, with one thread and with `threads`.
pub fn owners_and_threads(rank: &Rank, threads: u32) -> Vec<(bool, u32)> {
    let owners: &[bool] = if rank.ranks > 1 { &[false, true] } else { &[false] };
    let threads = if threads > 1 { vec![1, threads] } else { vec![1] };
    owners.iter().flat_map(|neighbour| threads.iter().map(move |threads| (*neighbour, *threads))).collect()
}

/// Multiples of 8 below a power of two, independent of the loaded values.
pub struct Places {
    state: u64,
    mask: u64,
}

impl Places {
    /// Places below `bytes`, a power of two. Each thread of each rank has its own sequence.
    pub fn new(rank: &Rank, thread: u32, bytes: u64) -> Places {
        let seed = u64::from(rank.me * 64 + thread + 1);
        Places { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), mask: bytes - 8 }
    }

    #[inline(always)]
    pub fn next(&mut self) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 29 & self.mask) as usize
    }
}

/// The processor time used by this thread.
pub fn thread_time_ns() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a variable. The clock exists on all supported systems.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
