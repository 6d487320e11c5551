//! Shared files.

use super::advice::hint;
use super::boundary::{Refusal, attached, entry_points};
use super::coll::TeamType;
use super::lists::{MemoryVector, entries};
use super::sync::{OperationPointer, to_pointer};
use super::{ERR_IO, OK};
use crate::files::{Access, Bytes, FileError, FileRange, Lists, OpenArguments};
use crate::ops::Region;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use vgasnet_protocol::collectives::TEAM_ALL;
use vgasnet_protocol::file_locks::LockMode;

/// `VGASNET_FILE_READ`, and so on.
const READ: c_int = 1;
const WRITE: c_int = 1 << 1;
const CREATE: c_int = 1 << 2;
const EXCLUSIVE: c_int = 1 << 3;
const TRUNCATE: c_int = 1 << 4;
const ATOMIC: c_int = 1 << 5;

/// `struct vgasnet_file` is never defined. Its pointers are numbers of files and point nowhere.
#[repr(C)]
#[derive(Debug)]
pub struct FileType {
    _private: [u8; 0],
}

pub(super) type FilePointer = *mut FileType;

/// `vgasnet_file_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    struct_bytes: usize,
    stripe_bytes: usize,
    io_ranks: u32,
    flags: c_uint,
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Refusal {
        match error {
            FileError::Argument(line) => Refusal::bad_argument(line),
            FileError::Io(errno, line) => Refusal::by_system(errno, line),
            FileError::Again(errno) => Refusal::again(errno),
        }
    }
}

pub(super) fn number(file: FilePointer) -> Result<u32, Refusal> {
    let unknown = || Refusal::bad_argument(format!("file {file:p} is not open; give one that vgasnet_file_open gave"));
    u32::try_from(file.addr()).map_err(|_| unknown())
}

/// The regions of a list of memory pieces.
///
/// # Safety
/// `piece` is null, or points to `pieces` entries.
unsafe fn memory(pieces: usize, piece: *const MemoryVector) -> Result<Vec<Region>, Refusal> {
    // SAFETY: it is null, or points to `pieces` entries.
    Ok(unsafe { entries("piece", piece, pieces) }?.iter().map(MemoryVector::region).collect())
}

/// The stripe size, and the number of ranks doing I/O.
///
/// # Safety
/// `options` is null, or points to a structure as long as its `struct_bytes`.
unsafe fn options(options: *const Options) -> Result<(u64, u32), FileError> {
    // SAFETY: it is null, or points to a structure.
    let Some(given) = (unsafe { options.as_ref() }) else { return Ok((0, 0)) };
    let expected = size_of::<Options>();
    if given.struct_bytes != expected || given.flags != 0 {
        let (bytes, flags) = (given.struct_bytes, given.flags);
        return Err(FileError::argument(format!(
            "options of {bytes} bytes with flags {flags:#x}; set struct_bytes to sizeof(vgasnet_file_options_t), which is {expected}, \
             and flags to 0"
        )));
    }
    Ok((given.stripe_bytes as u64, given.io_ranks))
}

/// The arguments for opening a file.
///
/// # Safety
/// `path` is null or a string, and outlives the answer; `given` is as for [`options`].
unsafe fn open_arguments<'a>(
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
    given: *const Options,
    file: *mut FilePointer,
) -> Result<OpenArguments<'a>, FileError> {
    const ALL: c_int = READ | WRITE | CREATE | EXCLUSIVE | TRUNCATE | ATOMIC;
    if flags & !ALL != 0 {
        return Err(FileError::argument(format!("flags {flags:#x}; give a combination of VGASNET_FILE_ flags")));
    }
    if path.is_null() || file.is_null() {
        return Err(FileError::argument("a null pointer; give a path, and the address of a vgasnet_file_t"));
    }
    // SAFETY: it is null, or points to a structure as long as its `struct_bytes`.
    let (stripe_bytes, io_ranks) = unsafe { options(given) }?;
    Ok(OpenArguments {
        // SAFETY: it is not null, so it is a string outliving the answer.
        path: unsafe { CStr::from_ptr(path) }.to_bytes(),
        access: Access { read: flags & READ != 0, write: flags & WRITE != 0 },
        atomic: flags & ATOMIC != 0,
        create: (flags & CREATE != 0).then_some(mode),
        exclusive: flags & EXCLUSIVE != 0,
        truncate: flags & TRUNCATE != 0,
        stripe_bytes,
        io_ranks,
    })
}

entry_points! {
    fn vgasnet_file_close(file: FilePointer) -> c_int {
        attached()?.files().close(number(file)?)?;
        Ok(OK)
    }

    fn vgasnet_file_sync(file: FilePointer) -> c_int {
        let files = attached()?.files();
        files.sync(&files.get_beside(number(file)?)?)?;
        Ok(OK)
    }

    fn vgasnet_file_flush(file: FilePointer) -> c_int {
        let files = attached()?.files();
        files.flush(&*files.get(number(file)?)?)?;
        Ok(OK)
    }

    fn vgasnet_file_lock(file: FilePointer, offset: u64, len: u64, exclusive: c_int) -> c_int {
        let files = attached()?.files();
        let mode = if exclusive != 0 { LockMode::Exclusive } else { LockMode::Shared };
        files.lock(&*files.get_beside(number(file)?)?, offset, len, mode)?;
        Ok(OK)
    }

    fn vgasnet_file_unlock(file: FilePointer, offset: u64, len: u64) -> c_int {
        let files = attached()?.files();
        files.unlock(&*files.get_beside(number(file)?)?, offset, len)?;
        Ok(OK)
    }

    fn vgasnet_file_advise(file: FilePointer, offset: u64, len: u64, advice: c_int) -> c_int {
        let (files, advice) = (attached()?.files(), hint(advice)?);
        let bytes = Bytes { offset, len: usize::try_from(len).unwrap_or(usize::MAX) };
        files.advise(&*files.get(number(file)?)?, bytes, advice)?;
        Ok(OK)
    }

    fn vgasnet_file_set_atomic(file: FilePointer, atomic: c_int) -> c_int {
        let files = attached()?.files();
        files.set_atomic(&files.get_beside(number(file)?)?, atomic != 0)?;
        Ok(OK)
    }

    fn vgasnet_file_set_pointer(file: FilePointer, value: u64) -> c_int {
        let files = attached()?.files();
        files.set_pointer(&*files.get_beside(number(file)?)?, value)?;
        Ok(OK)
    }

    fn vgasnet_file_set_size(file: FilePointer, size_bytes: u64) -> c_int {
        let files = attached()?.files();
        files.set_size(&files.get_beside(number(file)?)?, size_bytes)?;
        Ok(OK)
    }

    fn vgasnet_file_extend(file: FilePointer, size_bytes: u64) -> c_int {
        let files = attached()?.files();
        files.extend(&*files.get(number(file)?)?, size_bytes)?;
        Ok(OK)
    }

    fn vgasnet_file_preallocate(file: FilePointer, size_bytes: u64) -> c_int {
        let files = attached()?.files();
        files.preallocate(&files.get_beside(number(file)?)?, size_bytes)?;
        Ok(OK)
    }
}

entry_points! {
    unsafe fn vgasnet_file_open(
        team: *mut TeamType, path: *const c_char, flags: c_int, mode: c_uint, given: *const Options, file: *mut FilePointer,
    ) -> c_int {
        let arguments = open_arguments(path, flags, mode, given, file);
        let team = if team.is_null() { TEAM_ALL } else { team.addr() as u64 };
        let number = attached()?.files().open(team, arguments)?;
        file.write(std::ptr::without_provenance_mut(number as usize));
        Ok(OK)
    }

    unsafe fn vgasnet_file_read_at(
        file: FilePointer, offset: u64, dest: *mut c_void [nbytes], nbytes: usize, nread: *mut usize,
    ) -> c_int {
        let files = attached()?.files();
        let read = files.read(&*files.get(number(file)?)?, Bytes { offset, len: nbytes }, dest.cast())?;
        if !nread.is_null() {
            nread.write(read);
        }
        Ok(OK)
    }

    unsafe fn vgasnet_file_write_at(file: FilePointer, offset: u64, src: *const c_void [nbytes], nbytes: usize) -> c_int {
        let files = attached()?.files();
        files.write(&*files.get(number(file)?)?, Bytes { offset, len: nbytes }, src.cast())?;
        Ok(OK)
    }

    unsafe fn vgasnet_file_readv_at(
        file: FilePointer, runs: usize, run: *const FileRange [runs], pieces: usize,
        piece: *const MemoryVector [pieces], nread: *mut usize,
    ) -> c_int {
        let (files, memory) = (attached()?.files(), memory(pieces, piece).map_err(Refusal::into_bad_argument)?);
        let lists = Lists { places: entries("run", run, runs).map_err(Refusal::into_bad_argument)?, memory: &memory };
        let read = files.read_lists(&*files.get(number(file)?)?, &lists)?;
        if !nread.is_null() {
            nread.write(read);
        }
        Ok(OK)
    }

    unsafe fn vgasnet_file_writev_at(
        file: FilePointer, runs: usize, run: *const FileRange [runs], pieces: usize, piece: *const MemoryVector [pieces],
    ) -> c_int {
        let (files, memory) = (attached()?.files(), memory(pieces, piece).map_err(Refusal::into_bad_argument)?);
        let lists = Lists { places: entries("run", run, runs).map_err(Refusal::into_bad_argument)?, memory: &memory };
        files.write_lists(&*files.get(number(file)?)?, &lists)?;
        Ok(OK)
    }

    unsafe fn vgasnet_file_take(file: FilePointer, amount: u64, before: *mut u64) -> c_int {
        let files = attached()?.files();
        let was = files.take(&*files.get_beside(number(file)?)?, amount);
        if !before.is_null() {
            before.write(was);
        }
        Ok(OK)
    }

    unsafe fn vgasnet_file_size(file: FilePointer, size_bytes: *mut u64) -> c_int {
        let files = attached()?.files();
        if size_bytes.is_null() {
            return Err(Refusal::bad_argument("a null pointer; give the address for the size"));
        }
        size_bytes.write(files.size(&*files.get(number(file)?)?));
        Ok(OK)
    }

    unsafe fn vgasnet_file_error(file: FilePointer, errno_value: *mut c_int) -> c_int {
        let files = attached()?.files();
        let errno = files.get_beside(number(file)?)?.first_error();
        if !errno_value.is_null() {
            errno_value.write(errno.unwrap_or(0));
        }
        Ok(if errno.is_some() { ERR_IO } else { OK })
    }

    unsafe fn vgasnet_file_error_count(file: FilePointer, errors: *mut u64) -> c_int {
        let files = attached()?.files();
        if errors.is_null() {
            return Err(Refusal::bad_argument("a null pointer; give the address for the number"));
        }
        errors.write(files.get_beside(number(file)?)?.errors());
        Ok(OK)
    }
}

/// The answer of a call without error codes. A refusal by the file system is printed and answered by `nothing`; the
/// file keeps the error.
fn or_noted<T>(call: &str, result: Result<T, FileError>, nothing: T) -> Result<T, Refusal> {
    match result {
        Err(FileError::Io(_, line)) => {
            crate::job::report(call, &line);
            Ok(nothing)
        }
        Err(FileError::Again(..)) => Ok(nothing),
        Err(FileError::Argument(line)) => Err(Refusal::from(line)),
        Ok(value) => Ok(value),
    }
}

entry_points! {
    unsafe fn vgasnet_file_read_at_nb(
        file: FilePointer, offset: u64, dest: *mut c_void [nbytes], nbytes: usize, nread: *mut usize,
    ) -> OperationPointer {
        let files = attached()?.files();
        let file = files.get(number(file)?)?;
        let started = files.start_read(&file, Bytes { offset, len: nbytes }, dest.cast());
        let (read, handle) = or_noted("vgasnet_file_read_at_nb", started, (0, None))?;
        if !nread.is_null() {
            nread.write(read);
        }
        Ok(to_pointer(handle))
    }

    unsafe fn vgasnet_file_write_at_nb(
        file: FilePointer, offset: u64, src: *const c_void [nbytes], nbytes: usize,
    ) -> OperationPointer {
        let files = attached()?.files();
        let file = files.get(number(file)?)?;
        let started = files.start_write(&file, Bytes { offset, len: nbytes }, src.cast());
        let handle = or_noted("vgasnet_file_write_at_nb", started, None)?;
        Ok(to_pointer(handle))
    }
}
