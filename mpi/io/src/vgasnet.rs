//! vgasnet by its C interface. The library is loaded when MPI has started, so programs without MPI do not pay for it.
//!
//! It is loaded with local visibility: none of its names take precedence over names of the program's other libraries.

use crate::view::Extent;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;

/// `VGASNET_OK`, as in types.h.
const OK: c_int = 0;

/// `VGASNET_ERR_BAD_ARG`, as in errors.h.
const ERR_BAD_ARG: c_int = 10003;

/// `VGASNET_ERR_IO`, as in errors.h.
const ERR_IO: c_int = 10006;

/// `VGASNET_FILE_READ` and `VGASNET_FILE_WRITE`, as in files.h.
pub const READ: c_int = 1;
/// See [`READ`].
pub const WRITE: c_int = 2;

/// `vgasnet_memvec_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Piece {
    pub address: usize,
    pub len: usize,
}

/// `vgasnet_file_options_t`.
#[repr(C)]
struct Options {
    struct_bytes: usize,
    stripe_bytes: usize,
    io_ranks: u32,
    flags: c_uint,
}

/// A team and a file of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Team(usize);
/// See [`Team`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct File(usize);

/// `vgasnet_handle_t`: an operation in flight, until it was waited for.
#[derive(Debug)]
#[repr(transparent)]
pub struct OperationHandle(usize);

impl OperationHandle {
    /// Nothing is in flight any more.
    pub fn is_done(&self) -> bool {
        self.0 == 0
    }
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)+) => {
        /// vgasnet's functions.
        #[derive(Debug)]
        #[allow(clippy::type_complexity, reason = "C's own signatures")]
        pub struct Library {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl Library {
            /// Finds the functions in a loaded library.
            ///
            /// # Errors
            /// The name of a missing function.
            fn find(library: *mut c_void) -> Result<Library, &'static str> {
                Ok(Library {
                    $($name: {
                        const NAME: &str = concat!("vgasnet_", stringify!($name), "\0");
                        // SAFETY: the library was loaded, and the name ends with a zero.
                        let found = unsafe { libc::dlsym(library, NAME.as_ptr().cast()) };
                        if found.is_null() {
                            return Err(NAME.trim_end_matches('\0'));
                        }
                        // SAFETY: the function of this name has these arguments, by vgasnet.h.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(found) }
                    },)+
                })
            }
        }
    };
}

functions! {
    init: fn(*mut c_int, *mut *mut *mut c_char) -> c_int;
    attach: fn(*mut c_void, c_int, usize, usize) -> c_int;
    coll_team_of: fn(usize, *const u32, u32) -> Team;
    coll_team_free: fn(Team);
    file_open: fn(Team, *const c_char, c_int, c_uint, *const Options, *mut File) -> c_int;
    file_close: fn(File) -> c_int;
    file_sync: fn(File) -> c_int;
    file_flush: fn(File) -> c_int;
    file_extend: fn(File, u64) -> c_int;
    file_set_size: fn(File, u64) -> c_int;
    file_size: fn(File, *mut u64) -> c_int;
    file_preallocate: fn(File, u64) -> c_int;
    file_set_atomic: fn(File, c_int) -> c_int;
    file_set_pointer: fn(File, u64) -> c_int;
    file_take: fn(File, u64, *mut u64) -> c_int;
    file_read_at: fn(File, u64, *mut c_void, usize, *mut usize) -> c_int;
    file_write_at: fn(File, u64, *const c_void, usize) -> c_int;
    file_readv_at: fn(File, usize, *const Extent, usize, *const Piece, *mut usize) -> c_int;
    file_writev_at: fn(File, usize, *const Extent, usize, *const Piece) -> c_int;
    file_read_at_nb: fn(File, u64, *mut c_void, usize, *mut usize) -> OperationHandle;
    file_write_at_nb: fn(File, u64, *const c_void, usize) -> OperationHandle;
    file_error_count: fn(File, *mut u64) -> c_int;
    wait_syncnb_some: fn(*mut OperationHandle, usize);
    mpi_before_finalize: fn();
    mpi_abandon: fn();
    mpi_file_descriptor: fn(File, *mut c_int) -> c_int;
    mpi_file_hand_over: fn(File) -> c_int;
    mpi_file_note_new_name: fn(File) -> c_int;
    mpi_file_hold_writes: fn(File) -> c_int;
    mpi_file_rescue: fn(File) -> c_int;
    mpi_file_end_write: fn(File) -> c_int;
    mpi_file_want_handed_over: fn(File) -> c_int;
    mpi_file_is_wanted: fn(File, *mut c_int) -> c_int;
    mpi_file_end_sync_alone: fn(File, c_int) -> c_int;
    mpi_pointer_open: fn(Team, *mut File) -> c_int;
    mpi_begin_caching: fn(*mut c_int) -> c_int;
    mpi_end_caching: fn() -> c_int;
    mpi_is_caching_barred: fn(*mut c_int) -> c_int;
    mpi_bar_caching: fn(*mut u64) -> c_int;
    mpi_bar_own_caching: fn() -> c_int;
    mpi_end_job: fn(*mut u64) -> c_int;
    mpi_is_job_ending: fn(*mut c_int) -> c_int;
    mpi_note_rescue: fn() -> c_int;
    mpi_go_on: fn() -> c_int;
}

/// A failed call. The user has been told the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The file system's error number.
    System(c_int),
    /// An argument is invalid.
    Argument,
    /// This handle does not support the operation.
    Unsupported,
    /// Something else.
    Otherwise,
}

fn check(code: c_int) -> Result<(), Failed> {
    match code {
        OK => Ok(()),
        // vgasnet leaves the number in errno.
        ERR_IO => Err(Failed::System(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))),
        ERR_BAD_ARG => Err(Failed::Argument),
        _ => Err(Failed::Otherwise),
    }
}

/// The directory of this library.
fn own_dir() -> Option<PathBuf> {
    // SAFETY: all fields may be 0.
    let mut about: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address belongs to this library.
    if unsafe { libc::dladdr(own_dir as *const c_void, &mut about) } == 0 || about.dli_fname.is_null() {
        return None;
    }
    // SAFETY: it is a string of the loader.
    let path = unsafe { CStr::from_ptr(about.dli_fname) }.to_bytes().to_vec();
    Path::new(&OsString::from_vec(path)).canonicalize().ok()?.parent().map(Path::to_path_buf)
}

/// The library's name with the version of its binary interface, as in `packaging/soname.rs`.
const SONAME: &str = "libvgasnet.so.0";

/// Loads the library next to this one, or else one found by the loader.
///
/// # Errors
/// The reason, as a line.
pub fn load() -> Result<Library, String> {
    let adjacent = own_dir().map(|dir| dir.join(SONAME)).filter(|path| path.exists());
    let path = adjacent.unwrap_or_else(|| PathBuf::from(SONAME));
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| "a path with a zero".to_owned())?;
    // SAFETY: the name is a string. The library's initialisers are vgasnet's.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: the loader has just failed, so there is a line, which stays until it is called again.
        let line = unsafe { CStr::from_ptr(libc::dlerror()) }.to_string_lossy().into_owned();
        return Err(format!("{line}; install it beside this library, or set LD_LIBRARY_PATH"));
    }
    Library::find(library).map_err(|name| format!("{} has no {name}; install the two of one version", path.display()))
}

/// The options for opening a file.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    pub path: &'a CStr,
    pub flags: c_int,
    /// Contiguous bytes read and written by one rank; 0 for the default.
    pub stripe_bytes: usize,
    /// Number of ranks that read and write; 0 for all.
    pub io_ranks: u32,
}

/// Functions of a file that take any numbers, without and with an answer.
macro_rules! of_file {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $type:ty)?) = $function:ident;)+) => {$(
        $(#[$about])*
        pub fn $name(&self, file: File $(, $argument: $type)?) -> Result<(), Failed> {
            // SAFETY: it takes any number.
            check(unsafe { (self.$function)(file $(, $argument)?) })
        }
    )+};
    ($($(#[$about:meta])* $name:ident($($argument:ident: $type:ty)?) -> $answer:ty = $function:ident;)+) => {$(
        $(#[$about])*
        pub fn $name(&self, file: File $(, $argument: $type)?) -> Result<$answer, Failed> {
            let mut answer = 0;
            // SAFETY: there is room for the answer.
            check(unsafe { (self.$function)(file $(, $argument)?, &mut answer) })?;
            Ok(answer)
        }
    )+};
}

impl Library {
    of_file! {
        /// Closes a file.
        close() = file_close;
        /// The file has been synced on all ranks, and no rank caches it any more: closing it has no further effect. Not
        /// collective.
        hand_over() = mpi_file_hand_over;
        /// MPI has created the file: the next sync also syncs its directory. Not collective.
        note_new_name() = mpi_file_note_new_name;
        /// Has further writes of any rank wait for the end of the job. Not collective.
        hold_writes() = mpi_file_hold_writes;
        /// Flushes any rank's writes to the file system. Not collective.
        rescue() = mpi_file_rescue;
        /// A write that was started is complete. Once a rank ends the job this does not return. Not collective.
        end_write() = mpi_file_end_write;
        /// Has the file's team hand it over. Not collective.
        want_handed_over() = mpi_file_want_handed_over;
        /// This rank has synced the file alone; the error number of a failure, or 0. Fails if bytes of this sync or an
        /// earlier one are doubtful. Not collective.
        end_sync_alone(errno: c_int) = mpi_file_end_sync_alone;
        /// Syncs all writes to the disk.
        sync() = file_sync;
        /// Flushes this rank's writes to the file system. Not collective.
        flush() = file_flush;
        /// Extends the file to at least this size. Not collective.
        extend(bytes: u64) = file_extend;
        /// Cuts the file, or adds zeros.
        set_size(bytes: u64) = file_set_size;
        /// Reserves space for this many bytes, and extends the file to at least this size.
        preallocate(bytes: u64) = file_preallocate;
        /// Sets the shared pointer.
        set_pointer(value: u64) = file_set_pointer;
    }

    of_file! {
        /// The descriptor that vgasnet has of a file until it closes it. Not collective.
        descriptor() -> c_int = mpi_file_descriptor;
        /// At the first rank: whether a rank wants the file handed over, or 0. Not collective.
        is_wanted() -> c_int = mpi_file_is_wanted;
        /// Bytes of the file.
        size() -> u64 = file_size;
        /// Adds to the shared pointer. Returns its former value. Not collective; nor are reads and writes.
        take(amount: u64) -> u64 = file_take;
    }

    /// Starts vgasnet with an empty segment, in a program with MPI started. Collective over all ranks.
    pub fn start(&self) -> Result<(), Failed> {
        // SAFETY: null pointers stand for the process's own arguments.
        check(unsafe { (self.init)(ptr::null_mut(), ptr::null_mut()) })?;
        // SAFETY: a null pointer stands for no handlers.
        check(unsafe { (self.attach)(ptr::null_mut(), 0, 0, 0) })
    }

    /// The program ends MPI: waits until the programs of all ranks do. No other function of vgasnet is called
    /// afterwards.
    pub fn end(&self) {
        // SAFETY: it may be called once vgasnet runs.
        unsafe { (self.mpi_before_finalize)() }
    }

    /// The process ends without the program having ended MPI: vgasnet ends without waiting for other ranks.
    pub fn abandon(&self) {
        // SAFETY: it may be called once vgasnet runs.
        unsafe { (self.mpi_abandon)() }
    }

    /// A team of these ranks. Collective over them.
    pub fn team_of(&self, members: &[u32], tag: u32) -> Team {
        // SAFETY: the list has as many numbers.
        unsafe { (self.coll_team_of)(members.len(), members.as_ptr(), tag) }
    }

    /// Forgets a team.
    pub fn free_team(&self, team: Team) {
        // SAFETY: the team came from `team_of`.
        unsafe { (self.coll_team_free)(team) }
    }

    /// Collective over the team, as are close, sync and all setters.
    pub fn open(&self, team: Team, opening: &Opening<'_>) -> Result<File, Failed> {
        let &Opening { path, flags, stripe_bytes, io_ranks } = opening;
        let options = Options { struct_bytes: size_of::<Options>(), stripe_bytes, io_ranks, flags: 0 };
        let mut file = File(0);
        // SAFETY: the path is a string, and there is room for a file.
        check(unsafe { (self.file_open)(team, path.as_ptr(), flags, 0, &options, &mut file) })?;
        Ok(file)
    }

    /// A shared pointer for the ranks of a team, as a file without bytes. Collective.
    pub fn open_pointer(&self, team: Team) -> Result<File, Failed> {
        let mut file = File(0);
        // SAFETY: the team came from `team_of`, and there is room for a file.
        check(unsafe { (self.mpi_pointer_open)(team, &mut file) })?;
        Ok(file)
    }

    /// Whether this rank may cache one more file for writing. If so, the file is counted until `end_caching`.
    pub fn begin_caching(&self) -> bool {
        let mut is_counted = 0;
        // SAFETY: there is room for the answer.
        let code = unsafe { (self.mpi_begin_caching)(&mut is_counted) };
        code == OK && is_counted != 0
    }

    /// A counted file is cached no more.
    pub fn end_caching(&self) {
        // SAFETY: it may be called once vgasnet runs.
        let _code = unsafe { (self.mpi_end_caching)() };
    }

    /// Whether this rank's cached files have to be handed over.
    pub fn is_caching_barred(&self) -> bool {
        let mut is_barred = 0;
        // SAFETY: there is room for the answer.
        let code = unsafe { (self.mpi_is_caching_barred)(&mut is_barred) };
        code == OK && is_barred != 0
    }

    /// Has no rank of the job cache further files for writing. Returns the number of files still cached. Not
    /// collective.
    pub fn bar_caching(&self) -> u64 {
        let mut still_cached = 0;
        // SAFETY: there is room for the number.
        let _code = unsafe { (self.mpi_bar_caching)(&mut still_cached) };
        still_cached
    }

    /// The same for this rank alone.
    pub fn bar_own_caching(&self) {
        // SAFETY: it may be called once vgasnet runs.
        let _code = unsafe { (self.mpi_bar_own_caching)() };
    }

    /// Has all ranks of the job rescue their files. Returns the number of files that are not rescued. Not collective.
    pub fn end_job(&self) -> u64 {
        let mut not_rescued = 0;
        // SAFETY: there is room for the number.
        let _code = unsafe { (self.mpi_end_job)(&mut not_rescued) };
        not_rescued
    }

    /// Whether a rank is about to end the job, and this one has to rescue its files.
    pub fn is_job_ending(&self) -> bool {
        let mut is_ending = 0;
        // SAFETY: there is room for the answer.
        let code = unsafe { (self.mpi_is_job_ending)(&mut is_ending) };
        code == OK && is_ending != 0
    }

    /// This rank's files are rescued.
    pub fn note_rescue(&self) {
        // SAFETY: it may be called once vgasnet runs.
        let _code = unsafe { (self.mpi_note_rescue)() };
    }

    /// This rank has not ended the job after all. Not collective.
    pub fn go_on(&self) {
        // SAFETY: it may be called once vgasnet runs.
        let _code = unsafe { (self.mpi_go_on)() };
    }

    /// Turns mode atomic on or off.
    pub fn set_atomic(&self, file: File, is_atomic: bool) -> Result<(), Failed> {
        // SAFETY: it takes any number.
        check(unsafe { (self.file_set_atomic)(file, c_int::from(is_atomic)) })
    }

    /// Reads bytes from places into pieces. Returns the number of bytes before the end of the file.
    ///
    /// # Safety
    /// The pieces are writable, and nobody else accesses them, until this returns.
    pub unsafe fn read(&self, file: File, places: &[Extent], pieces: &[Piece]) -> Result<u64, Failed> {
        let mut read = 0;
        // SAFETY: the pieces are writable until this returns, as the caller promises. The lists have these lengths, and
        // there is room for the number.
        check(unsafe {
            match (places, pieces) {
                ([place], [piece]) => {
                    let (to, len) = (piece.address as *mut c_void, piece.len.min(place.len as usize));
                    (self.file_read_at)(file, place.offset, to, len, &mut read)
                }
                _ => {
                    let (runs, to) = (places.len(), pieces.len());
                    (self.file_readv_at)(file, runs, places.as_ptr(), to, pieces.as_ptr(), &mut read)
                }
            }
        })?;
        Ok(read as u64)
    }

    /// Writes bytes from pieces to places.
    ///
    /// # Safety
    /// The pieces are readable, and nobody writes them, until this returns.
    pub unsafe fn write(&self, file: File, places: &[Extent], pieces: &[Piece]) -> Result<(), Failed> {
        // SAFETY: the pieces are readable until this returns, as the caller promises. The lists have these lengths.
        check(unsafe {
            match (places, pieces) {
                ([place], [piece]) => {
                    let (from, len) = (piece.address as *const c_void, piece.len.min(place.len as usize));
                    (self.file_write_at)(file, place.offset, from, len)
                }
                _ => (self.file_writev_at)(file, places.len(), places.as_ptr(), pieces.len(), pieces.as_ptr()),
            }
        })
    }

    /// Begins to read bytes from a place into a piece. Returns the number of bytes before the end of the file. A
    /// failure counts as an error of the file.
    ///
    /// # Safety
    /// The piece is writable, and nobody else accesses it, until the operation was waited for.
    pub unsafe fn start_read(&self, file: File, place: Extent, piece: Piece) -> (OperationHandle, u64) {
        let mut read = 0;
        // SAFETY: the piece is writable until the operation was waited for, as the caller promises. The number is
        // stored before the call returns.
        let handle =
            unsafe { (self.file_read_at_nb)(file, place.offset, piece.address as *mut c_void, piece.len, &mut read) };
        (handle, read as u64)
    }

    /// Begins to write bytes from a piece to a place. A failure counts as an error of the file.
    ///
    /// # Safety
    /// The piece is readable, and nobody writes it, until the operation was waited for.
    pub unsafe fn start_write(&self, file: File, place: Extent, piece: Piece) -> OperationHandle {
        // SAFETY: the piece is readable until the operation was waited for, as the caller promises.
        unsafe { (self.file_write_at_nb)(file, place.offset, piece.address as *const c_void, piece.len) }
    }

    /// Waits until at least one operation is done. The handles of done operations show it.
    pub fn wait_some(&self, handles: &mut [OperationHandle]) {
        // SAFETY: the list has this length, and no handle was waited for.
        unsafe { (self.wait_syncnb_some)(handles.as_mut_ptr(), handles.len()) }
    }

    /// Number of errors of the file on this rank.
    pub fn errors(&self, file: File) -> u64 {
        let mut errors = 0;
        // SAFETY: there is room for the number.
        let _open = unsafe { (self.file_error_count)(file, &mut errors) };
        errors
    }
}
