//! Starts and ends vgasnet in an MPI program. It starts right after MPI, on all ranks, since some of them may open a
//! file later.

use crate::ffi;
use crate::patterns::Patterns;
use crate::vgasnet::{self, Library};
use crate::{company, ends, ffi_types, rescue, say, settings, signals};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use vgasnet_mpi_front::{environment, is_its_mpi, keeping_handlers};

/// vgasnet's functions, if it runs.
static RUNNING: OnceLock<Option<Library>> = OnceLock::new();

/// vgasnet, if it runs and the program has not called `MPI_Finalize`. Without it files are not cached.
pub fn library() -> Option<&'static Library> {
    RUNNING.get().and_then(Option::as_ref).filter(|_| !HAS_ENDED.load(Ordering::Relaxed))
}

/// Whether the ranks of `MPI_COMM_WORLD` know of each other that they have the library. vgasnet may not run nevertheless.
pub fn is_agreed() -> bool {
    RUNNING.get().is_some()
}

/// MPI has started on this rank: starts vgasnet, once. Collective over all ranks.
pub fn start() {
    RUNNING.get_or_init(|| {
        OWN_RANK.store(ffi::world_rank(), Ordering::Relaxed);
        let library = try_start()?;
        OWN_PROCESS.store(std::process::id(), Ordering::Relaxed);
        company::expect_parents(&library);
        ends::prepare();
        signals::prepare();
        // vgasnet has registered its exit handler by now, so this one runs first.
        // SAFETY: the functions exist until the process ends: libraries possibly needed by MPI are not unloaded.
        unsafe {
            libc::atexit(at_exit);
            at_quick_exit(at_quick_end);
        }
        Some(library)
    });
}

/// A file is to be cached, but the library has not seen MPI start. One line says so.
pub fn tell_if_not_started(is_meant: impl FnOnce() -> bool) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if RUNNING.get().is_some() || HAS_ENDED.load(Ordering::Relaxed) || TOLD.load(Ordering::Relaxed) {
        return;
    }
    if is_its_mpi() && is_meant() && !TOLD.swap(true, Ordering::Relaxed) {
        let line = "MPI was started by a session, or by a library before this one; call MPI_Init, or preload this library first";
        tell_by_launcher("MPI_File_open", line);
    }
}

/// MPI is about to end: vgasnet's threads stop calling it. Files opened from now on are MPI's, such as a tool's output.
/// Collective over all ranks.
pub fn end() {
    let running = library();
    HAS_ENDED.store(true, Ordering::Relaxed);
    if let Some(library) = running {
        Patterns::of_environment().tell_unmatched();
        library.end();
    }
}

/// The number by which lines name this rank when MPI may no longer be asked.
static OWN_RANK: AtomicU32 = AtomicU32::new(0);

/// This rank, even when MPI may not be asked.
pub fn own_rank() -> u32 {
    OWN_RANK.load(Ordering::Relaxed)
}

/// The rank's process. Its forked children have no part in its files.
static OWN_PROCESS: AtomicU32 = AtomicU32::new(0);

/// Whether the program has called `MPI_Finalize`.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// C's function, missing in Rust's library.
    fn at_quick_exit(call: extern "C" fn()) -> std::ffi::c_int;
}

/// Whether vgasnet runs in this process, and the program has not ended MPI.
pub fn is_running() -> bool {
    std::process::id() == OWN_PROCESS.load(Ordering::Relaxed) && !HAS_ENDED.load(Ordering::Relaxed)
}

extern "C" fn at_exit() {
    end_early("exit");
}

extern "C" fn at_quick_end() {
    end_early("quick_exit");
}

/// The process ends. If the program has not ended MPI, the consequences are the same as without the library.
fn end_early(why: &str) {
    if !is_running() {
        return;
    }
    rescue::all(why);
    let running = library();
    HAS_ENDED.store(true, Ordering::Relaxed);
    if let Some(library) = running {
        library.abandon();
    }
}

/// Whether the program has the MPI for which this library was built. Another MPI has other handles, and other names for
/// some functions, so it cannot be called at all.
pub fn has_its_mpi() -> bool {
    let is = is_its_mpi();
    if !is {
        let own = if cfg!(open_mpi) { "Open MPI" } else { "MPICH" };
        let line = format!(
            "the program has another MPI than this library, which was built for {own}; preload the one for its MPI"
        );
        tell_by_launcher("MPI_Init", &line);
    }
    is
}

/// vgasnet runs on all ranks or on none. The lowest rank that cannot start it reports the reason.
fn try_start() -> Option<Library> {
    // No rank may wait in vgasnet for ranks that do not come.
    let library = agreed(prepare())?;
    // vgasnet forwards these signals as SIGQUIT to programs that handle it, and `rescue` does handle it.
    let started = keeping_handlers([libc::SIGTERM, libc::SIGINT, libc::SIGHUP], || library.start());
    agreed(started.map_err(|_| "vgasnet does not start".to_owned()).map(|()| library))
}

fn prepare() -> Result<Library, String> {
    if is_client() {
        return Err("the program calls vgasnet itself; it may use vgasnet_file_open".to_owned());
    }
    if !ffi::is_thread_multiple() {
        return Err("this MPI does not let several threads call it (MPI_THREAD_MULTIPLE)".to_owned());
    }
    if !ffi_types::prepare() {
        return Err("MPI_Type_create_keyval fails".to_owned());
    }
    // SAFETY: MPI starts in the first thread of a program, before it has others of its own.
    unsafe { settings::set_defaults() };
    vgasnet::load()
}

/// The value, if all ranks have one. Collective over them.
fn agreed<T>(own: Result<T, String>) -> Option<T> {
    const NONE: u32 = u32::MAX >> 1;
    let rank = ffi::world_rank();
    let failed = ffi::least_of_all(if own.is_ok() { NONE } else { rank }, tell_late);
    match own {
        Ok(value) if failed == NONE => Some(value),
        Err(line) if failed == rank => {
            tell(&format!("rank {rank}: "), &line);
            None
        }
        _ => None,
    }
}

extern "C" fn tell_late() {
    say(format_args!(
        "rank {}: MPI_Init: waits for all ranks of the job; preload the library for all of its programs, or for none",
        ffi::world_rank()
    ));
}

fn tell(rank: &str, line: &str) {
    tell_of("MPI_Init", rank, line);
}

fn tell_of(call: &str, rank: &str, line: &str) {
    say(format_args!("{rank}{call}: {line}; no file is cached"));
}

/// Shows a line on the launcher's first rank, or on all ranks if the launcher sets no rank.
fn tell_by_launcher(call: &str, line: &str) {
    let rank = ["PMIX_RANK", "PMI_RANK"].iter().find_map(|name| environment::var(name));
    match rank.as_deref() {
        None => tell_of(call, "", line),
        Some("0") => tell_of(call, "rank 0: ", line),
        Some(_) => {}
    }
}

/// Whether the program, or one of its libraries, has vgasnet's names.
fn is_client() -> bool {
    // SAFETY: the name ends with a zero.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"vgasnet_init".as_ptr()) }.is_null()
}
