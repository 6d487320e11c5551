//! Starts and ends vgasnet in an MPI program. It starts right after MPI, on all ranks, since some of them may open a
//! file later.

use crate::ffi;
use crate::patterns::Patterns;
use crate::vgasnet::{self, Library};
use crate::{LIBRARY, company, ends, ffi_types, rescue, running, say, settings};
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_mpi_front::{is_its_mpi, keeping_handlers, say_by_launcher, say_other_mpi};

/// The end of lines.
const UNCACHED: &str = "no file is cached";

/// MPI has started on this rank: starts vgasnet, once. Collective over all ranks.
pub fn start() {
    running::begin(ffi::world_rank(), || {
        let library = try_start()?;
        company::expect_parents(&library);
        ends::prepare();
        // vgasnet has registered its exit handler by now, so this one runs first.
        // SAFETY: the functions exist until the process ends: libraries possibly needed by MPI are not unloaded.
        unsafe {
            libc::atexit(at_exit);
            at_quick_exit(at_quick_end);
        }
        Some(library)
    });
    // A rank may end the job before it opens a file, while others have files open.
    if running::is_running() && !Patterns::of_environment().is_empty() {
        rescue::prepare();
    }
}

/// A file is to be cached, but the library has not seen MPI start. One line says so.
pub fn tell_if_not_started(is_meant: impl FnOnce() -> bool) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if running::is_agreed() || running::has_ended() || TOLD.load(Ordering::Relaxed) {
        return;
    }
    if is_its_mpi() && is_meant() && !TOLD.swap(true, Ordering::Relaxed) {
        let line = "MPI was started by a session, or by a library before this one; call MPI_Init, or preload this library first";
        say_by_launcher(LIBRARY, format_args!("MPI_File_open: {line}; {UNCACHED}"));
    }
}

/// MPI is about to end: vgasnet's threads stop calling it. Files opened from now on are MPI's, such as a tool's output.
/// Collective over all ranks.
pub fn end() {
    if running::end().is_some() {
        Patterns::of_environment().tell_unmatched();
    }
    // Also if an exit handler of the program ends MPI: MPICH ends while threads wait for its locks.
    running::started().into_iter().for_each(Library::end);
}

unsafe extern "C" {
    /// C's function, missing in Rust's library.
    fn at_quick_exit(call: extern "C" fn()) -> std::ffi::c_int;
}

extern "C" fn at_exit() {
    end_early("exit");
}

extern "C" fn at_quick_end() {
    end_early("quick_exit");
}

/// The process ends. If the program has not ended MPI, the consequences are the same as without the library.
fn end_early(why: &str) {
    if !running::is_running() {
        return;
    }
    rescue::all(why);
    if let Some(library) = running::end() {
        library.abandon();
    }
}

/// Whether the program has the MPI for which this library was built. Another MPI has other handles, and other names for
/// some functions, so it cannot be called at all.
pub fn has_its_mpi() -> bool {
    let is = is_its_mpi();
    if !is {
        say_other_mpi(LIBRARY, "MPI_Init", UNCACHED);
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
            say(format_args!("rank {rank}: MPI_Init: {line}; {UNCACHED}"));
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

/// Whether the program, or one of its libraries, has vgasnet's names.
fn is_client() -> bool {
    // SAFETY: the name ends with a zero.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"vgasnet_init".as_ptr()) }.is_null()
}
