//! vgasnet in a program that starts MPI: it starts right after that, on all ranks, since a file may be opened by some of them later.

use crate::vgasnet::{self, Library};
use crate::{LIBRARY, ffi, settings};
use std::sync::OnceLock;
use vgasnet_mpi_front::is_its_mpi;

/// vgasnet's functions, if it runs.
static RUNNING: OnceLock<Option<Library>> = OnceLock::new();

/// vgasnet, if it runs. Files are not cached without it.
pub fn library() -> Option<&'static Library> {
    RUNNING.get().and_then(Option::as_ref)
}

/// MPI has started on this rank: starts vgasnet, once. Collective over all ranks.
pub fn start() {
    RUNNING.get_or_init(|| match try_start() {
        Ok(library) => Some(library),
        Err(line) => {
            eprintln!("{LIBRARY}: MPI_Init: {line}; no file is cached");
            None
        }
    });
}

fn try_start() -> Result<Library, String> {
    if !is_its_mpi() {
        return Err("the program has another MPI than the one that this library was built for".to_owned());
    }
    if is_client() {
        return Err("the program calls vgasnet itself; it may use vgasnet_file_open".to_owned());
    }
    if !ffi::is_thread_multiple() {
        return Err("this MPI does not let several threads call it (MPI_THREAD_MULTIPLE)".to_owned());
    }
    if !ffi::prepare_types() {
        return Err("MPI_Type_create_keyval fails".to_owned());
    }
    // SAFETY: MPI starts in the first thread of a program, before it has others of its own.
    unsafe { settings::set_defaults() };
    let library = vgasnet::load()?;
    library.start().map_err(|_| "vgasnet does not start".to_owned())?;
    Ok(library)
}

/// Whether the program, or a library of its, has vgasnet's names.
fn is_client() -> bool {
    // SAFETY: the name is a string.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"vgasnet_init".as_ptr()) }.is_null()
}
