//! vgasnet in this process: whether it runs, its functions, and this rank's number.

use crate::vgasnet::Library;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// vgasnet's functions, if it runs.
static RUNNING: OnceLock<Option<Library>> = OnceLock::new();

/// The number by which lines name this rank when MPI may no longer be asked.
static OWN_RANK: AtomicU32 = AtomicU32::new(0);

/// The rank's process. Its forked children have no part in its files.
static OWN_PROCESS: AtomicU32 = AtomicU32::new(0);

/// Whether the program has called `MPI_Finalize`.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// Starts vgasnet, once, on this rank of `MPI_COMM_WORLD`. Other functions report it afterwards.
pub fn begin(rank: u32, start: impl FnOnce() -> Option<Library>) {
    RUNNING.get_or_init(|| {
        OWN_RANK.store(rank, Ordering::Relaxed);
        start().inspect(|_| OWN_PROCESS.store(std::process::id(), Ordering::Relaxed))
    });
}

/// The program ends MPI, or the process: vgasnet serves no more calls. Returns it, if it ran.
pub fn end() -> Option<&'static Library> {
    let running = library();
    HAS_ENDED.store(true, Ordering::Relaxed);
    running
}

/// Whether the program has ended MPI.
pub fn has_ended() -> bool {
    HAS_ENDED.load(Ordering::Relaxed)
}

/// vgasnet, if it runs and the program has not called `MPI_Finalize`. Without it files are not cached.
pub fn library() -> Option<&'static Library> {
    started().filter(|_| !HAS_ENDED.load(Ordering::Relaxed))
}

/// vgasnet, if it has started.
pub fn started() -> Option<&'static Library> {
    RUNNING.get().and_then(Option::as_ref)
}

/// Whether the ranks of `MPI_COMM_WORLD` know of each other that they have the library. vgasnet may not run nevertheless.
pub fn is_agreed() -> bool {
    RUNNING.get().is_some()
}

/// This rank, even when MPI may not be asked.
pub fn own_rank() -> u32 {
    OWN_RANK.load(Ordering::Relaxed)
}

/// Whether vgasnet runs in this process, and the program has not ended MPI.
pub fn is_running() -> bool {
    std::process::id() == OWN_PROCESS.load(Ordering::Relaxed) && !HAS_ENDED.load(Ordering::Relaxed)
}
