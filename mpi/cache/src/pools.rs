//! Words shared by the windows of the same processes: a program may have hundreds of windows, and MPICH has 2,048
//! communicators.
//!
//! The first rank of a window chooses its words, since threads may create windows in any order. All ranks use its pool
//! numbers. Behind the words there are as many by which ranks are stopped.

use crate::ffi::{self, WordsOfAll};
use crate::locking::lock;
use crate::store::WINDOWS_MAX;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use vgasnet_mpi_front::Handle;
use vgasnet_mpi_front::kind::Comm;

/// Words of one group of processes.
#[derive(Debug)]
struct Pool {
    words: WordsOfAll,
    /// Its number, the same at all ranks of the group.
    number: u64,
    /// Number of windows with words in it.
    windows: AtomicUsize,
    /// At the first rank: the words in use.
    taken: Mutex<Vec<bool>>,
}

/// The words of a window.
#[derive(Debug)]
pub struct Words {
    pool: Arc<Pool>,
    at: u32,
}

/// The words chosen for a window.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Choice {
    pool: u64,
    at: u32,
    /// None exist yet: all ranks create them.
    is_new: u32,
}

static POOLS: Mutex<Vec<Arc<Pool>>> = Mutex::new(Vec::new());

/// Maximum number of process groups with words. Each takes two communicators.
const POOLS_MAX: usize = 256;

/// The first rank's choice for a window of a communicator.
pub fn choose(comm: Handle<Comm>) -> Option<Choice> {
    let pools = lock(&POOLS);
    for pool in pools.iter().filter(|pool| pool.words.are_of(comm)) {
        let mut taken = lock(&pool.taken);
        if let Some(at) = taken.iter().position(|is_taken| !is_taken) {
            taken[at] = true;
            return Some(Choice { pool: pool.number, at: at as u32, is_new: 0 });
        }
    }
    (pools.len() < POOLS_MAX).then_some(Choice { pool: new_number(), at: 0, is_new: 1 })
}

/// A number unique among the pools of the job, whichever process has chosen it. All processes end their pools in
/// numeric order.
fn new_number() -> u64 {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let mixed = (now << 20 ^ u64::from(std::process::id())).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed.wrapping_add(MADE.fetch_add(1, Ordering::Relaxed))
}

/// Undoes the first rank's choice.
pub fn give_back(choice: Choice, comm: Handle<Comm>) {
    let is_it = |pool: &&Arc<Pool>| pool.number == choice.pool && pool.words.are_of(comm);
    if let Some(pool) = lock(&POOLS).iter().find(is_it).filter(|_| choice.is_new == 0) {
        lock(&pool.taken)[choice.at as usize] = false;
    }
}

/// Collective: takes the words chosen by the first rank.
pub fn take(choice: Choice, comm: Handle<Comm>) -> Result<Words, c_int> {
    if choice.is_new != 0 {
        let mut taken = vec![false; WINDOWS_MAX];
        taken[0] = true;
        let words = WordsOfAll::create(comm, 2 * WINDOWS_MAX)?;
        let windows = AtomicUsize::new(1);
        let pool = Arc::new(Pool { words, number: choice.pool, windows, taken: Mutex::new(taken) });
        lock(&POOLS).push(pool.clone());
        return Ok(Words { pool, at: 0 });
    }
    loop {
        let is_it = |pool: &&Arc<Pool>| pool.number == choice.pool && pool.words.are_of(comm);
        if let Some(pool) = lock(&POOLS).iter().find(is_it) {
            pool.windows.fetch_add(1, Ordering::Relaxed);
            return Ok(Words { pool: pool.clone(), at: choice.at });
        }
        // Another thread has created them, and is about to publish them.
        std::thread::yield_now();
    }
}

impl Words {
    /// The word of a rank.
    pub fn read(&self, target: u32) -> Option<u64> {
        self.pool.words.read(self.at, target)
    }

    /// Raises the word of a rank, and returns when every rank sees it.
    pub fn raise(&self, target: u32) -> bool {
        self.pool.words.raise(self.at, target)
    }

    /// Whether this rank is stopped.
    pub fn is_stopped(&self) -> bool {
        self.pool.words.own(self.at + WINDOWS_MAX as u32) != 0
    }

    /// Has a rank stop caching the window, and returns when it sees that.
    pub fn stop(&self, rank: u32) -> bool {
        self.pool.words.raise(self.at + WINDOWS_MAX as u32, rank)
    }

    /// The window is gone at all ranks: MPI has freed it. Collective for the last window of the words, unless MPI is
    /// called by several threads: they might disagree on the last one.
    pub fn free(self) {
        // A stopped window leaves its word to no other.
        lock(&self.pool.taken)[self.at as usize] = self.is_stopped();
        let is_last = self.pool.windows.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && !ffi::is_thread_multiple() {
            lock(&POOLS).retain(|pool| pool.number != self.pool.number);
            end(self.pool);
        }
    }
}

fn end(pool: Arc<Pool>) {
    // MPI's refusal cannot be reported.
    _ = Arc::into_inner(pool).map(|pool| pool.words.free());
}

/// Collective: MPI ends.
pub fn at_end() {
    let mut pools = std::mem::take(&mut *lock(&POOLS));
    pools.sort_by_key(|pool| pool.number);
    // If a window still exists, so do its words: MPI frees both or neither.
    pools.into_iter().for_each(end);
}
