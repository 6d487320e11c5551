//! Operations on an open file other than reads and writes.

use crate::cached_files::{self, CachedFile, CallFile};
use crate::claims;
use crate::closing;
use crate::ffi::{self, Constants, constants};
use crate::running;
use crate::types::layout_of;
use crate::view::View;
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use vgasnet_mpi_front::kind::{Datatype, File, Info};
use vgasnet_mpi_front::{Handle, SUCCESS};

/// `MPI_File_set_view`. MPI checks the arguments, and sets the view as well.
pub fn set_view(
    file: Handle<File>,
    displacement: i64,
    [unit, tile]: [Handle<Datatype>; 2],
    representation: &[u8],
    next: impl Fn() -> c_int,
) -> c_int {
    let Some(cached) = cached_files::find_idle(file) else { return next() };
    match next() {
        SUCCESS => {}
        code => return code,
    }
    let view = (|| {
        let unit = layout_of(unit)?.size;
        View::new(u64::try_from(displacement).ok()?, unit, layout_of(tile)?)
    })();
    let is_native = [&b"native"[..], b"internal"].into_iter().any(|name| representation.eq_ignore_ascii_case(name));
    // A file served by MPI on one rank has to be served by MPI on all.
    if !cached.comm.all(view.is_some() && is_native) {
        return leave_to_mpi(file, cached);
    }
    if let Some(view) = view {
        cached.set_view(view);
    }
    *cached.position() = 0;
    cached.code(cached.set_pointer(0))
}

/// Leaves the file to MPI, which has the view already. Accesses of a second handle by MPI would bypass the pages of the
/// first, so the file is handed over before. Collective.
fn leave_to_mpi(file: Handle<File>, cached: CallFile) -> c_int {
    if cached.is_second() {
        if let Err(failed) = cached.have_handed_over() {
            return cached.code(Err::<(), _>(failed));
        }
        cached.guest_claim().into_iter().for_each(|claim| claims::keep(file, claim));
    }
    let is_atomic = cached.is_atomic();
    drop(cached);
    closing::give_up(file, is_atomic)
}

/// `MPI_File_get_size`.
pub fn size(file: Handle<File>, next: impl Fn() -> c_int) -> Result<u64, c_int> {
    let Some(cached) = cached_files::find_idle(file) else { return Err(next()) };
    let size = cached.size();
    size.map_err(|failed| cached.code(Err::<(), _>(failed)))
}

/// `MPI_File_set_size`, or else `MPI_File_preallocate`.
pub fn resize(file: Handle<File>, bytes: i64, is_exact: bool, next: impl Fn() -> c_int) -> c_int {
    let Some(cached) = cached_files::find_idle(file) else { return next() };
    let Ok(bytes) = u64::try_from(bytes) else { return next() };
    if !cached.may_write {
        return next();
    }
    cached.code(cached.resize(bytes, is_exact))
}

/// `MPI_File_sync`.
pub fn sync(file: Handle<File>, next: impl Fn() -> c_int) -> c_int {
    let Some(cached) = cached_files::find_idle(file) else { return next() };
    cached.code(cached.sync())
}

/// `MPI_File_set_atomicity`.
pub fn set_atomicity(file: Handle<File>, flag: c_int, next: impl Fn() -> c_int) -> c_int {
    let Some(cached) = cached_files::find_idle(file) else { return next() };
    let code = cached.code(cached.set_atomic(flag != 0));
    if code == SUCCESS {
        cached.is_atomic.store(flag != 0, Ordering::Relaxed);
    }
    code
}

/// `MPI_File_get_atomicity`.
pub fn atomicity(file: Handle<File>, next: impl Fn() -> c_int) -> Result<c_int, c_int> {
    let Some(cached) = cached_files::find_idle(file) else { return Err(next()) };
    Ok(c_int::from(cached.is_atomic()))
}

/// A pointer of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    Individual,
    Shared,
}

/// `MPI_File_seek`, `MPI_File_seek_shared`.
pub fn seek(file: Handle<File>, offset: i64, whence: c_int, pointer: Pointer, next: impl Fn() -> c_int) -> c_int {
    let Some(cached) = cached_files::find_idle(file) else { return next() };
    let view = cached.view();
    let Constants { seek_set, seek_current, seek_end, .. } = *constants();
    if ![seek_set, seek_current, seek_end].contains(&whence) {
        return next();
    }
    let base = || match whence {
        whence if whence == seek_set => Ok(0),
        whence if whence == seek_current => units(&cached, view, pointer),
        _ => end_in_units(&cached, view),
    };
    // Other ranks may write meanwhile, and move the shared pointer.
    let base = if pointer == Pointer::Shared && whence != seek_set { cached.found_by_first(base) } else { base() };
    let base = match base {
        Ok(base) => base as i64,
        Err(code) => return code,
    };
    let target = base.checked_add(offset).and_then(|target| u64::try_from(target).ok());
    let Some((target, position)) = target.and_then(|target| Some((target, target.checked_mul(view.unit)?))) else {
        return cached.raise(constants().err_arg);
    };
    match pointer {
        Pointer::Individual => {
            *cached.position() = position;
            SUCCESS
        }
        Pointer::Shared => cached.code(cached.set_pointer(target)),
    }
}

/// `MPI_File_get_position`, `MPI_File_get_position_shared`.
pub fn position(file: Handle<File>, pointer: Pointer, next: impl Fn() -> c_int) -> Result<u64, c_int> {
    let Some(cached) = cached_files::find_idle(file) else { return Err(next()) };
    let view = cached.view();
    units(&cached, view, pointer)
}

/// The end of the file in elementary types.
fn end_in_units(cached: &CachedFile, view: &View) -> Result<u64, c_int> {
    let size = cached.size();
    size.map(|size| view.position_at(size).div_ceil(view.unit)).map_err(|failed| cached.code(Err::<(), _>(failed)))
}

/// A pointer in elementary types.
fn units(cached: &CachedFile, view: &View, pointer: Pointer) -> Result<u64, c_int> {
    match pointer {
        Pointer::Individual => Ok(*cached.position() / view.unit),
        Pointer::Shared => {
            let taken = cached.take(0);
            taken.map_err(|failed| cached.code(Err::<(), _>(failed)))
        }
    }
}

/// `MPI_File_get_info`: MPI's hints, and whether the file is cached. `info` reads the new handle, and is called after
/// `next` has succeeded.
pub fn info(file: Handle<File>, next: impl Fn() -> c_int, info: impl Fn() -> Handle<Info>) -> c_int {
    let code = next();
    if code == SUCCESS && running::library().is_some() {
        let cached = cached_files::find_idle(file);
        let is_cached = cached.as_ref().is_some_and(|cached| !cached.through.is_on());
        ffi::set_info(info(), c"vgasnet_cache", if is_cached { "enable" } else { "disable" });
        if let Some(cached) = cached.filter(|cached| !cached.ignored_hints.is_empty()) {
            ffi::set_info(info(), c"vgasnet_ignored", &cached.ignored_hints);
        }
    }
    code
}
