//! The functions of `layer.c` and `types.c`, by safe names where possible. Handles are 8 bytes.

use crate::LIBRARY;
use crate::layout::Layout;
use crate::operation::Operation;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use vgasnet_mpi_front::SUCCESS;

/// MPI's constants.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Constants {
    pub status_ignore: u64,
    pub fortran_status_ignore: u64,
    pub fortran_bottom: u64,
    pub file_null: u64,
    pub comm_world: u64,
    pub thread_multiple: c_int,
    pub mode_read_only: c_int,
    pub mode_write_only: c_int,
    pub mode_read_write: c_int,
    pub mode_append: c_int,
    pub mode_sequential: c_int,
    pub seek_set: c_int,
    pub seek_current: c_int,
    pub seek_end: c_int,
    pub order_fortran: c_int,
    pub distribute_none: c_int,
    pub distribute_block: c_int,
    pub distribute_default: c_int,
    pub err_access: c_int,
    pub err_arg: c_int,
    pub err_bad_file: c_int,
    pub err_file_exists: c_int,
    pub err_file_in_use: c_int,
    pub err_io: c_int,
    pub err_no_space: c_int,
    pub err_no_such_file: c_int,
    pub err_quota: c_int,
    pub err_read_only: c_int,
    pub err_other: c_int,
    pub err_unsupported: c_int,
}

/// MPI's description of a datatype: `struct about` of `types.c`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    pub size: i64,
    pub low: i64,
    pub extent: i64,
    pub true_low: i64,
    pub true_extent: i64,
    pub kind: i32,
    pub is_short_int: i32,
    pub integers: i32,
    pub addresses: i32,
    pub counts: i32,
    pub types: i32,
}

unsafe extern "C" {
    fn vgasnet_mpi_io_resolve() -> *const c_char;
    fn vgasnet_mpi_io_constants(constants: *mut Constants);
    fn vgasnet_mpi_io_init(argc: *mut c_void, argv: *mut c_void, provided: *mut c_int) -> c_int;
    fn vgasnet_mpi_io_thread_level(level: *mut c_int) -> c_int;
    fn vgasnet_mpi_io_comm_dup(comm: u64, own: *mut u64) -> c_int;
    fn vgasnet_mpi_io_comm_free(comm: u64) -> c_int;
    fn vgasnet_mpi_io_place(comm: u64, rank: *mut c_int, ranks: *mut c_int) -> c_int;
    fn vgasnet_mpi_io_place_of_all(rank: *mut c_int, ranks: *mut c_int) -> c_int;
    fn vgasnet_mpi_io_has_parents() -> c_int;
    fn vgasnet_mpi_io_world_ranks(comm: u64, ranks: c_int, members: *mut c_int) -> c_int;
    fn vgasnet_mpi_io_meet(comm: u64) -> c_int;
    fn vgasnet_mpi_io_least(comm: u64, numbers: *mut c_int, count: c_int) -> c_int;
    fn vgasnet_mpi_io_of_rank(comm: u64, rank: c_int, number: *mut u64) -> c_int;
    fn vgasnet_mpi_io_has_message(comm: u64, rank: c_int, tag: c_int) -> c_int;
    fn vgasnet_mpi_io_send(comm: u64, rank: c_int, tag: c_int, number: u64) -> c_int;
    fn vgasnet_mpi_io_receive(comm: u64, rank: c_int, tag: c_int, number: *mut u64) -> c_int;
    fn vgasnet_mpi_io_sums(comm: u64, mine: u64, before: *mut u64, all: *mut u64) -> c_int;
    fn vgasnet_mpi_io_info_set(info: u64, key: *const c_char, value: *const c_char) -> c_int;
    fn vgasnet_mpi_io_raise_without_file(code: c_int);
    fn vgasnet_mpi_io_status(place: u64, bytes: i64);
    fn vgasnet_mpi_io_request(operation: *mut c_void, place: *mut c_void, handle: *mut u64) -> c_int;
    fn vgasnet_mpi_io_complete(request: u64) -> c_int;
    fn vgasnet_mpi_io_type_about(handle: u64, about: *mut About) -> c_int;
    fn vgasnet_mpi_io_type_contents(handle: u64, about: *const About, numbers: *mut i64, types: *mut u64) -> c_int;
    fn vgasnet_mpi_io_type_done(handle: u64);
    fn vgasnet_mpi_io_prepare_types() -> c_int;
    fn vgasnet_mpi_io_type_is_committed(handle: u64) -> c_int;
    fn vgasnet_mpi_io_known_layout(handle: u64) -> *mut c_void;
    fn vgasnet_mpi_io_keep_layout(handle: u64, layout: *mut c_void) -> c_int;
}

// SAFETY: MPI checks the file, or the file is open.
unsafe extern "C" {
    /// Turns mode atomic of MPI's own file on. Collective.
    #[link_name = "vgasnet_mpi_io_set_atomicity"]
    pub safe fn set_atomicity(file: u64) -> c_int;
    /// Closes MPI's own file. Collective.
    #[link_name = "vgasnet_mpi_io_close"]
    pub safe fn close(file: u64);
    /// Sets the individual pointer of MPI's own file.
    #[link_name = "vgasnet_mpi_io_seek"]
    pub safe fn seek(file: u64, offset: i64) -> c_int;
    /// Sets the shared pointer of MPI's own file. Collective.
    #[link_name = "vgasnet_mpi_io_seek_shared"]
    pub safe fn seek_shared(file: u64, offset: i64) -> c_int;
    /// Passes an error to the file's error handler. Returns its code.
    #[link_name = "vgasnet_mpi_io_raise"]
    pub safe fn raise(file: u64, code: c_int) -> c_int;
}

#[cfg(open_mpi)]
unsafe extern "C" {
    fn vgasnet_mpi_io_fortran_status(place: *mut c_void, bytes: i64);
}

/// MPI's constants. Must be called before all other functions here: it has the layer find the functions it calls.
pub fn constants() -> &'static Constants {
    static CONSTANTS: OnceLock<Constants> = OnceLock::new();
    CONSTANTS.get_or_init(|| {
        // SAFETY: nobody calls the functions found by the layer before this has ended. The struct matches the one of
        // `layer.c`.
        unsafe { vgasnet_mpi_front::resolve(LIBRARY, vgasnet_mpi_io_resolve, vgasnet_mpi_io_constants) }
    })
}

/// Initialises MPI with its highest thread level. `provided` is null, or points to an integer.
///
/// # Safety
/// As for `MPI_Init_thread`.
pub unsafe fn init(argc: usize, argv: usize, provided: *mut c_int) -> c_int {
    let mut level = 0;
    constants();
    // SAFETY: as the caller says.
    let code = unsafe { vgasnet_mpi_io_init(argc as *mut c_void, argv as *mut c_void, &mut level) };
    if !provided.is_null() {
        // SAFETY: as the caller says.
        unsafe { *provided = level };
    }
    code
}

/// Whether several threads may call MPI concurrently. MPI has been initialised.
pub fn is_thread_multiple() -> bool {
    let mut level = 0;
    let multiple = constants().thread_multiple;
    // SAFETY: MPI has been initialised.
    (unsafe { vgasnet_mpi_io_thread_level(&mut level) }) == SUCCESS && level == multiple
}

/// The rank in `MPI_COMM_WORLD`, and its number of ranks. MPI has been initialised.
fn place_of_all() -> (u32, u32) {
    let (mut rank, mut ranks) = (0, 0);
    // SAFETY: there is room for both.
    unsafe { vgasnet_mpi_io_place_of_all(&mut rank, &mut ranks) };
    (rank as u32, ranks as u32)
}

/// Whether the process was spawned by others. MPI has been initialised.
pub fn has_parents() -> bool {
    // SAFETY: MPI runs.
    (unsafe { vgasnet_mpi_io_has_parents() }) != 0
}

/// The number by which lines name this rank.
pub fn world_rank() -> u32 {
    place_of_all().0
}

/// A communicator.
#[derive(Debug)]
pub struct Comm {
    handle: u64,
    pub rank: u32,
    pub ranks: u32,
}

impl Comm {
    /// A communicator of the program, for collective calls; `None` if it cannot open files.
    pub fn of(handle: u64) -> Option<Comm> {
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: the communicator is the program's, and there is room for both.
        let is_one = unsafe { vgasnet_mpi_io_place(handle, &mut rank, &mut ranks) } == SUCCESS;
        is_one.then_some(Comm { handle, rank: rank as u32, ranks: ranks as u32 })
    }

    /// The communicator of all ranks of the job.
    pub fn world() -> Option<Comm> {
        Comm::of(constants().comm_world)
    }

    /// A communicator of the library with the ranks of another. Collective.
    pub fn dup(comm: u64) -> Option<Comm> {
        let mut handle = 0;
        // SAFETY: the communicator is the program's.
        let is_made = unsafe { vgasnet_mpi_io_comm_dup(comm, &mut handle) } == SUCCESS;
        is_made.then(|| Comm::of(handle)).flatten()
    }

    /// Whether it has one rank, in a job with more.
    pub fn is_one_of_several(&self) -> bool {
        self.ranks == 1 && place_of_all().1 > 1
    }

    /// Its ranks as ranks of `MPI_COMM_WORLD`, if all are there.
    pub fn world_ranks(&self) -> Option<Vec<u32>> {
        let (members, are_all_there) = self.places();
        are_all_there.then(|| members.into_iter().map(|rank| rank as u32).collect())
    }

    /// Whether this is the first of its ranks in this `MPI_COMM_WORLD`.
    pub fn is_first_of_world(&self) -> bool {
        self.rank == 0 || self.places().0.iter().position(|rank| *rank >= 0) == Some(self.rank as usize)
    }

    /// Its ranks as ranks of `MPI_COMM_WORLD`, or -1, and whether all are there.
    fn places(&self) -> (Vec<c_int>, bool) {
        let mut members = vec![0; self.ranks as usize];
        // SAFETY: there is room for all of them.
        let found = unsafe { vgasnet_mpi_io_world_ranks(self.handle, self.ranks as c_int, members.as_mut_ptr()) };
        (members, found != 0)
    }

    /// Waits in MPI until all ranks have arrived. Collective. Precedes all collective calls of vgasnet: a rank that
    /// waits in vgasnet does not serve MPI, and another rank may need this service before it arrives, for instance to
    /// end an epoch of a window.
    pub fn meet(&self) {
        // SAFETY: the communicator exists.
        let _met = unsafe { vgasnet_mpi_io_meet(self.handle) };
    }

    /// Whether this holds on all ranks. Collective.
    pub fn all(&self, holds: bool) -> bool {
        self.agree([holds])[0]
    }

    /// Which of these hold on all ranks. Collective.
    pub fn agree<const COUNT: usize>(&self, holds: [bool; COUNT]) -> [bool; COUNT] {
        if self.ranks == 1 {
            return holds;
        }
        let mut numbers = holds.map(c_int::from);
        // SAFETY: the communicator exists, and there are COUNT numbers.
        let error = unsafe { vgasnet_mpi_io_least(self.handle, numbers.as_mut_ptr(), COUNT as c_int) };
        numbers.map(|number| error == SUCCESS && number != 0)
    }

    /// The smallest of the ranks' numbers, or mine if MPI fails. Collective.
    pub fn least(&self, mine: u32) -> u32 {
        let mut number = mine as c_int;
        // SAFETY: the communicator exists, and there is one number.
        let error = unsafe { vgasnet_mpi_io_least(self.handle, &mut number, 1) };
        if error == SUCCESS { number as u32 } else { mine }
    }

    /// The first rank's number. Collective.
    pub fn of_first(&self, number: u64) -> Result<u64, c_int> {
        self.of_rank(0, number)
    }

    /// A rank's number. Collective.
    pub fn of_rank(&self, rank: u32, mut number: u64) -> Result<u64, c_int> {
        // SAFETY: the communicator exists, and has the rank.
        let error = unsafe { vgasnet_mpi_io_of_rank(self.handle, rank as c_int, &mut number) };
        if error == SUCCESS { Ok(number) } else { Err(error) }
    }

    /// Whether a message of this tag from a rank is waiting.
    pub fn has_message(&self, rank: u32, tag: u16) -> bool {
        // SAFETY: the communicator exists, and has the rank.
        (unsafe { vgasnet_mpi_io_has_message(self.handle, rank as c_int, c_int::from(tag)) }) != 0
    }

    /// Sends a number to a rank.
    pub fn send(&self, rank: u32, tag: u16, number: u64) {
        // SAFETY: as above.
        let _sent = unsafe { vgasnet_mpi_io_send(self.handle, rank as c_int, c_int::from(tag), number) };
    }

    /// Receives a number from a rank. Waits for it.
    pub fn receive(&self, rank: u32, tag: u16) -> Result<u64, c_int> {
        let mut number = 0;
        // SAFETY: as above, and there is room for the number.
        let error = unsafe { vgasnet_mpi_io_receive(self.handle, rank as c_int, c_int::from(tag), &mut number) };
        if error == SUCCESS { Ok(number) } else { Err(error) }
    }

    /// The sum of the numbers of lower ranks, and of all ranks. Collective.
    pub fn sums(&self, mine: u64) -> Result<(u64, u64), c_int> {
        let (mut before, mut all) = (0, 0);
        // SAFETY: the communicator exists.
        let error = unsafe { vgasnet_mpi_io_sums(self.handle, mine, &mut before, &mut all) };
        if error == SUCCESS { Ok((before, all)) } else { Err(error) }
    }

    /// Collective.
    pub fn free(&self) {
        // SAFETY: the communicator exists, and nobody uses it any more.
        let _freed = unsafe { vgasnet_mpi_io_comm_free(self.handle) };
    }
}

/// Sets a key of an info.
pub fn set_info(info: u64, key: &CStr, value: &str) {
    let value = CString::new(value).expect("values of ours have no zeros");
    // SAFETY: MPI has just made the info.
    let _set = unsafe { vgasnet_mpi_io_info_set(info, key.as_ptr(), value.as_ptr()) };
}

/// The same for the error handler of calls without an open file.
pub fn raise_without_file(code: c_int) -> c_int {
    // SAFETY: MPI runs.
    unsafe { vgasnet_mpi_io_raise_without_file(code) };
    code
}

/// Stores a number at an address supplied by the caller of an MPI function. Returns MPI's code.
pub fn put<T>(place: usize, value: Result<T, c_int>) -> c_int {
    match value {
        Ok(value) => {
            // SAFETY: the caller has room for it.
            unsafe { *(place as *mut T) = value };
            SUCCESS
        }
        Err(code) => code,
    }
}

/// A call's status, which receives the number of bytes moved.
#[derive(Clone, Copy, Debug)]
pub enum Status {
    /// A status of C, or its constant for none.
    C(usize),
    /// A status of Fortran.
    #[cfg(open_mpi)]
    Fortran(usize),
}

impl Status {
    /// Sets the number of bytes moved.
    pub fn set(self, bytes: u64) {
        match self {
            // SAFETY: the caller has a status there, or MPI's constant.
            Status::C(place) => unsafe { vgasnet_mpi_io_status(place as u64, bytes as i64) },
            #[cfg(open_mpi)]
            Status::Fortran(place) if place as u64 == constants().fortran_status_ignore => {}
            #[cfg(open_mpi)]
            // SAFETY: the caller has a status there.
            Status::Fortran(place) => unsafe { vgasnet_mpi_io_fortran_status(place as *mut c_void, bytes as i64) },
        }
    }
}

/// Makes the request of an operation at `place`, which may have room for 8 bytes. Returns its handle.
///
/// # Safety
/// There is room for a request.
pub unsafe fn request(operation: Arc<Operation>, place: *mut c_void) -> Result<u64, c_int> {
    let mut handle = 0;
    let state = Arc::into_raw(operation).cast_mut().cast();
    // SAFETY: there is room for the request; the state stays until `vgasnet_mpi_io_drop`.
    let error = unsafe { vgasnet_mpi_io_request(state, place, &mut handle) };
    if error == SUCCESS {
        return Ok(handle);
    }
    // SAFETY: MPI has refused the request, so nobody else has the state.
    drop(unsafe { Arc::from_raw(state.cast_const().cast::<Operation>()) });
    Err(error)
}

/// The operation of a request is done.
pub fn complete(request: u64) {
    // SAFETY: the request is the library's, and is completed once.
    let _done = unsafe { vgasnet_mpi_io_complete(request) };
}

#[unsafe(no_mangle)]
extern "C" fn vgasnet_mpi_io_outcome(operation: *mut c_void, bytes: *mut i64) -> c_int {
    // SAFETY: `request` gave it to MPI, and it has not been dropped.
    let outcome = unsafe { &*operation.cast::<Operation>() }.outcome();
    // SAFETY: the layer has room for it.
    unsafe { *bytes = outcome.bytes as i64 };
    outcome.code
}

#[unsafe(no_mangle)]
extern "C" fn vgasnet_mpi_io_drop(operation: *mut c_void) {
    // SAFETY: `request` gave it to MPI, which frees it once.
    drop(unsafe { Arc::from_raw(operation.cast_const().cast::<Operation>()) });
}

/// MPI's description of a datatype.
pub fn type_about(datatype: u64) -> Option<About> {
    let mut about = About::default();
    // SAFETY: the program passes the type to MPI.
    (unsafe { vgasnet_mpi_io_type_about(datatype, &mut about) } == SUCCESS).then_some(about)
}

/// Whether data may be moved with a datatype.
pub fn is_committed(datatype: u64) -> bool {
    // SAFETY: the program passes the handle to MPI, which checks it.
    (unsafe { vgasnet_mpi_io_type_is_committed(datatype) }) != 0
}

/// The arguments with which a derived datatype was made.
#[derive(Debug)]
pub struct Contents {
    pub numbers: Vec<i64>,
    pub types: Vec<u64>,
}

impl Drop for Contents {
    fn drop(&mut self) {
        // SAFETY: MPI has returned these types.
        self.types.iter().for_each(|inner| unsafe { vgasnet_mpi_io_type_done(*inner) });
    }
}

/// The arguments with which a derived datatype was made.
pub fn type_contents(datatype: u64, about: &About) -> Option<Contents> {
    let numbers = (about.integers + about.addresses + about.counts) as usize;
    let mut contents = Contents { numbers: vec![0; numbers], types: Vec::new() };
    let mut types = vec![0; about.types as usize];
    // SAFETY: there is room for the numbers and types announced by MPI.
    let error =
        unsafe { vgasnet_mpi_io_type_contents(datatype, about, contents.numbers.as_mut_ptr(), types.as_mut_ptr()) };
    (error == SUCCESS).then(|| {
        contents.types = types;
        contents
    })
}

/// Prepares the attribute that keeps layouts. Once, while MPI runs.
pub fn prepare_types() -> bool {
    // SAFETY: MPI runs.
    unsafe { vgasnet_mpi_io_prepare_types() == SUCCESS }
}

/// The layout kept by a type.
pub fn known_layout(datatype: u64) -> Option<Arc<Layout>> {
    // SAFETY: the program passes the type to MPI.
    let layout = unsafe { vgasnet_mpi_io_known_layout(datatype) }.cast_const().cast::<Layout>();
    if layout.is_null() {
        return None;
    }
    // SAFETY: `keep_layout` made it from an `Arc`. The type holds it until it is freed, and nobody frees a type in use.
    unsafe {
        Arc::increment_strong_count(layout);
        Some(Arc::from_raw(layout))
    }
}

/// Makes a type keep a layout, unless it has one. Returns the type's layout.
pub fn keep_layout(datatype: u64, layout: Arc<Layout>) -> Arc<Layout> {
    // A replaced layout is dropped, although another thread may have just found it.
    static KEEPING: Mutex<()> = Mutex::new(());
    let _keeping = KEEPING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known_layout(datatype) {
        return known;
    }
    let kept = Arc::into_raw(Arc::clone(&layout)).cast_mut().cast();
    // SAFETY: the type is the program's; `vgasnet_mpi_io_drop_layout` takes the layout back.
    if unsafe { vgasnet_mpi_io_keep_layout(datatype, kept) } != SUCCESS {
        vgasnet_mpi_io_drop_layout(kept);
    }
    layout
}

#[unsafe(no_mangle)]
extern "C" fn vgasnet_mpi_io_drop_layout(layout: *mut c_void) {
    // SAFETY: it came from `keep_layout`, and is dropped once.
    drop(unsafe { Arc::from_raw(layout.cast_const().cast::<Layout>()) });
}
