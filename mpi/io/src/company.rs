//! Processes of another `MPI_COMM_WORLD` that the program spawns, connects to, or was spawned by. They may write its
//! files, and may lack the library: then they have no claims. So from then on no rank of the job caches a file that it
//! may write.

use crate::ffi::{self, Comm};
use crate::patterns::Patterns;
use crate::running;
use crate::say;
use crate::vgasnet::Library;
use std::ffi::c_int;
use std::time::{Duration, Instant};
use vgasnet_mpi_front::{Handle, kind};

/// Timeout of a call that waits for cached files to be handed over.
const PATIENCE: Duration = Duration::from_secs(60);

const BETWEEN_QUESTIONS: Duration = Duration::from_millis(2);

/// The right to cache a file and write it, at the first rank of its handle.
#[derive(Debug)]
pub struct Permit(&'static Library);

impl Permit {
    /// `None` after the job got company.
    pub fn of(library: &'static Library) -> Option<Permit> {
        library.begin_caching().then(|| Permit(library))
    }

    /// Whether the file has to be handed over.
    pub fn is_revoked(&self) -> bool {
        self.0.is_caching_barred()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.end_caching();
    }
}

/// This process was spawned: its parents may have its files open.
pub fn expect_parents(library: &Library) {
    if ffi::has_parents() {
        library.bar_own_caching();
    }
}

/// The ranks of a communicator spawn processes or connect to some. `root` is the rank that does it for all.
pub fn come(call: &str, comm: Handle<kind::Comm>, root: c_int, next: impl Fn() -> c_int) -> c_int {
    if Comm::of(comm).is_some_and(|comm| i64::from(comm.rank) == i64::from(root)) {
        expect(call);
    }
    next()
}

/// Returns when no rank of the job caches a file for writing.
pub fn expect(call: &str) {
    let Some(library) = running::library() else { return };
    let start = Instant::now();
    let before = library.bar_caching();
    let rank = ffi::world_rank();
    if before > 0 || !Patterns::of_environment().is_empty() {
        say(format_args!(
            "rank {rank}: {call}: processes of another MPI_COMM_WORLD may write the same files without this library; from now on MPI serves \
             all files that are open for writing"
        ));
    }
    let mut cached = before;
    while cached > 0 && start.elapsed() < PATIENCE {
        std::thread::sleep(BETWEEN_QUESTIONS);
        cached = library.bar_caching();
    }
    if cached > 0 {
        say(format_args!(
            "rank {rank}: {call}: {cached} files are still cached after {} s, and their bytes may overwrite those of other processes; close \
             them before",
            PATIENCE.as_secs()
        ));
    }
}
