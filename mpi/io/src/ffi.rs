//! The functions of `layer.c`, by safe names where possible. Handles are 8 bytes.

use crate::LIBRARY;
use crate::operation::Operation;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};
use vgasnet_mpi_front::kind::{self, File, Info};
use vgasnet_mpi_front::{Handle, RequestRoom, SUCCESS};

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
    pub mode_create: c_int,
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
    fn vgasnet_mpi_io_is_finalized() -> c_int;
    fn vgasnet_mpi_io_world_ranks(comm: u64, ranks: c_int, members: *mut c_int) -> c_int;
    fn vgasnet_mpi_io_meet(comm: u64) -> c_int;
    fn vgasnet_mpi_io_least(comm: u64, numbers: *mut c_int, count: c_int) -> c_int;
    fn vgasnet_mpi_io_least_of_all(number: *mut c_int, on_late: extern "C" fn()) -> c_int;
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
}

// SAFETY: MPI may be called by the handle of a file, and checks the number.
unsafe extern "C" {
    /// Turns mode atomic of MPI's own file on. Collective.
    #[link_name = "vgasnet_mpi_io_set_atomicity"]
    pub safe fn set_atomicity(file: Handle<File>) -> c_int;
    /// Closes MPI's own file. Collective.
    #[link_name = "vgasnet_mpi_io_close"]
    pub safe fn close(file: Handle<File>);
    /// Sets the individual pointer of MPI's own file.
    #[link_name = "vgasnet_mpi_io_seek"]
    pub safe fn seek(file: Handle<File>, offset: i64) -> c_int;
    /// Sets the shared pointer of MPI's own file. Collective.
    #[link_name = "vgasnet_mpi_io_seek_shared"]
    pub safe fn seek_shared(file: Handle<File>, offset: i64) -> c_int;
    /// Passes an error to the file's error handler. Returns its code.
    #[link_name = "vgasnet_mpi_io_raise"]
    pub safe fn raise(file: Handle<File>, code: c_int) -> c_int;
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

/// MPI's null constant for files.
pub fn file_null() -> Handle<File> {
    // SAFETY: MPI has returned the constant.
    unsafe { Handle::new(constants().file_null) }
}

/// Initialises MPI with its highest thread level.
///
/// # Safety
/// MPI's caller has passed `argc` and `argv` to `MPI_Init`: both are null, or addresses of the arguments of `main`. It
/// has room for an integer at `provided`, or `provided` is null.
pub unsafe fn init(argc: usize, argv: usize, provided: *mut c_int) -> c_int {
    let mut level = 0;
    constants();
    // SAFETY: both addresses are null, or of the arguments of `main`, as the caller promises. There is room for the
    // level.
    let code = unsafe { vgasnet_mpi_io_init(argc as *mut c_void, argv as *mut c_void, &mut level) };
    if !provided.is_null() {
        // SAFETY: MPI's caller has room for an integer there, as the caller of this function promises.
        unsafe { *provided = level };
    }
    code
}

/// Whether several threads may call MPI concurrently. MPI has been initialised.
pub fn is_thread_multiple() -> bool {
    let mut level = 0;
    let multiple = constants().thread_multiple;
    // SAFETY: MPI has been initialised, and there is room for the level.
    (unsafe { vgasnet_mpi_io_thread_level(&mut level) }) == SUCCESS && level == multiple
}

/// The rank in `MPI_COMM_WORLD`, and its number of ranks. MPI has been initialised.
fn place_of_all() -> (u32, u32) {
    let (mut rank, mut ranks) = (0, 0);
    // SAFETY: MPI has been initialised, and there is room for both numbers.
    unsafe { vgasnet_mpi_io_place_of_all(&mut rank, &mut ranks) };
    (rank as u32, ranks as u32)
}

/// Whether the process was spawned by others. MPI has been initialised.
pub fn has_parents() -> bool {
    // SAFETY: MPI has been initialised.
    (unsafe { vgasnet_mpi_io_has_parents() }) != 0
}

/// Whether `MPI_Finalize` has ended. Files of sessions remain.
pub fn is_finalized() -> bool {
    // SAFETY: MPI may be asked this at any time.
    (unsafe { vgasnet_mpi_io_is_finalized() }) != 0
}

/// The smallest of the numbers of all ranks, or mine if MPI fails. Collective over `MPI_COMM_WORLD`. `on_late` is called
/// if some rank does not come.
pub fn least_of_all(mine: u32, on_late: extern "C" fn()) -> u32 {
    let mut number = mine as c_int;
    // SAFETY: MPI has been initialised, and there is one number.
    let error = unsafe { vgasnet_mpi_io_least_of_all(&mut number, on_late) };
    if error == SUCCESS { number as u32 } else { mine }
}

/// The number by which lines name this rank.
pub fn world_rank() -> u32 {
    place_of_all().0
}

/// A communicator.
#[derive(Debug)]
pub struct Comm {
    handle: Handle<kind::Comm>,
    pub rank: u32,
    pub ranks: u32,
}

impl Comm {
    /// A communicator of the program, for collective calls; `None` if it cannot open files.
    pub fn of(handle: Handle<kind::Comm>) -> Option<Comm> {
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: MPI may be called by the communicator's handle, and there is room for both numbers.
        let is_one = unsafe { vgasnet_mpi_io_place(handle.bits(), &mut rank, &mut ranks) } == SUCCESS;
        is_one.then_some(Comm { handle, rank: rank as u32, ranks: ranks as u32 })
    }

    /// The communicator of all ranks of the job.
    pub fn world() -> Option<Comm> {
        // SAFETY: MPI has returned the constant.
        Comm::of(unsafe { Handle::new(constants().comm_world) })
    }

    /// A communicator of the library with the ranks of another. Collective.
    pub fn dup(comm: Handle<kind::Comm>) -> Option<Comm> {
        let mut handle = 0;
        // SAFETY: MPI may be called by the communicator's handle, and there is room for the new one.
        let is_made = unsafe { vgasnet_mpi_io_comm_dup(comm.bits(), &mut handle) } == SUCCESS;
        // SAFETY: MPI has returned the handle of a communicator, which is freed by `free` alone.
        is_made.then(|| Comm::of(unsafe { Handle::new(handle) })).flatten()
    }

    /// Whether it has one rank, in a job with more.
    pub fn is_one_of_several(&self) -> bool {
        self.ranks == 1 && place_of_all().1 > 1
    }

    /// Its ranks as ranks of `MPI_COMM_WORLD`, if all are there.
    pub fn world_ranks(&self) -> Option<Vec<u32>> {
        let mut members = vec![0; self.ranks as usize];
        // SAFETY: the communicator exists, and there is room for its ranks.
        let found =
            unsafe { vgasnet_mpi_io_world_ranks(self.handle.bits(), self.ranks as c_int, members.as_mut_ptr()) };
        (found != 0).then(|| members.into_iter().map(|rank| rank as u32).collect())
    }

    /// Waits in MPI until all ranks have arrived. Collective. Precedes all collective calls of vgasnet: a rank that
    /// waits in vgasnet does not serve MPI, and another rank may need this service before it arrives, for instance to
    /// end an epoch of a window.
    pub fn meet(&self) {
        // SAFETY: the communicator exists.
        let _met = unsafe { vgasnet_mpi_io_meet(self.handle.bits()) };
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
        let error = unsafe { vgasnet_mpi_io_least(self.handle.bits(), numbers.as_mut_ptr(), COUNT as c_int) };
        numbers.map(|number| error == SUCCESS && number != 0)
    }

    /// The first rank's number. Collective.
    pub fn of_first(&self, number: u64) -> Result<u64, c_int> {
        self.of_rank(0, number)
    }

    /// A rank's number. Collective.
    pub fn of_rank(&self, rank: u32, mut number: u64) -> Result<u64, c_int> {
        // SAFETY: the communicator exists. MPI checks the rank, and there is room for the number.
        let error = unsafe { vgasnet_mpi_io_of_rank(self.handle.bits(), rank as c_int, &mut number) };
        if error == SUCCESS { Ok(number) } else { Err(error) }
    }

    /// Whether a message of this tag from a rank is waiting.
    pub fn has_message(&self, rank: u32, tag: u16) -> bool {
        // SAFETY: the communicator exists. MPI checks the rank.
        (unsafe { vgasnet_mpi_io_has_message(self.handle.bits(), rank as c_int, c_int::from(tag)) }) != 0
    }

    /// Sends a number to a rank.
    pub fn send(&self, rank: u32, tag: u16, number: u64) {
        // SAFETY: the communicator exists. MPI checks the rank.
        let _sent = unsafe { vgasnet_mpi_io_send(self.handle.bits(), rank as c_int, c_int::from(tag), number) };
    }

    /// Receives a number from a rank. Waits for it.
    pub fn receive(&self, rank: u32, tag: u16) -> Result<u64, c_int> {
        let mut number = 0;
        // SAFETY: the communicator exists. MPI checks the rank, and there is room for the number.
        let error = unsafe { vgasnet_mpi_io_receive(self.handle.bits(), rank as c_int, c_int::from(tag), &mut number) };
        if error == SUCCESS { Ok(number) } else { Err(error) }
    }

    /// The sum of the numbers of lower ranks, and of all ranks. Collective.
    pub fn sums(&self, mine: u64) -> Result<(u64, u64), c_int> {
        let (mut before, mut all) = (0, 0);
        // SAFETY: the communicator exists, and there is room for both sums.
        let error = unsafe { vgasnet_mpi_io_sums(self.handle.bits(), mine, &mut before, &mut all) };
        if error == SUCCESS { Ok((before, all)) } else { Err(error) }
    }

    /// Collective.
    pub fn free(&self) {
        // SAFETY: the communicator exists, and nobody uses it any more.
        let _freed = unsafe { vgasnet_mpi_io_comm_free(self.handle.bits()) };
    }
}

/// Sets a key of an info.
pub fn set_info(info: Handle<Info>, key: &CStr, value: &str) {
    let value = CString::new(value).expect("values of ours have no zeros");
    // SAFETY: MPI may be called by the info's handle, and both texts end with a zero.
    let _set = unsafe { vgasnet_mpi_io_info_set(info.bits(), key.as_ptr(), value.as_ptr()) };
}

/// The same for the error handler of calls without an open file.
pub fn raise_without_file(code: c_int) -> c_int {
    // SAFETY: MPI runs, and takes any code.
    unsafe { vgasnet_mpi_io_raise_without_file(code) };
    code
}

/// A call's status, which receives the number of bytes moved.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// The address of a status, or MPI's constant for none.
    address: usize,
    #[cfg(open_mpi)]
    is_of_fortran: bool,
}

impl Status {
    /// A status of C.
    ///
    /// # Safety
    /// MPI's caller has room for a status at the address until `set` is called, or has passed C's constant for none.
    pub const unsafe fn of_c(address: usize) -> Status {
        Status {
            address,
            #[cfg(open_mpi)]
            is_of_fortran: false,
        }
    }

    /// A status of Fortran.
    ///
    /// # Safety
    /// MPI's caller has room for a status at the address until `set` is called, or has passed Fortran's constant for
    /// none.
    #[cfg(open_mpi)]
    pub const unsafe fn of_fortran(address: usize) -> Status {
        Status { address, is_of_fortran: true }
    }

    /// Sets the number of bytes moved.
    pub fn set(self, bytes: u64) {
        #[cfg(open_mpi)]
        if self.is_of_fortran {
            if self.address as u64 != constants().fortran_status_ignore {
                // SAFETY: it is not the constant, so MPI's caller has room for Fortran's status there, by the promise
                // to `of_fortran`.
                unsafe { vgasnet_mpi_io_fortran_status(self.address as *mut c_void, bytes as i64) };
            }
            return;
        }
        // SAFETY: MPI's caller has room for C's status there, or it is the constant, by the promise to `of_c`.
        unsafe { vgasnet_mpi_io_status(self.address as u64, bytes as i64) }
    }
}

/// A request made by this library, until it is completed.
#[derive(Debug)]
pub struct OwnRequest(u64);

/// Makes the request of an operation.
pub fn request(operation: Arc<Operation>, room: &RequestRoom<'_>) -> Result<OwnRequest, c_int> {
    let mut handle = 0;
    let state = Arc::into_raw(operation).cast_mut().cast();
    // SAFETY: there is room for the request and for its handle. The state stays until `vgasnet_mpi_io_drop`.
    let error = unsafe { vgasnet_mpi_io_request(state, room.as_ptr(), &mut handle) };
    if error == SUCCESS {
        return Ok(OwnRequest(handle));
    }
    // SAFETY: the state came from `Arc::into_raw`. MPI has refused the request, so nobody else has the state.
    drop(unsafe { Arc::from_raw(state.cast_const().cast::<Operation>()) });
    Err(error)
}

impl OwnRequest {
    /// The operation is done.
    pub fn complete(self) {
        // SAFETY: MPI has made the request for this library, and keeps it until this, its one completion, even if the
        // program has freed it.
        let _done = unsafe { vgasnet_mpi_io_complete(self.0) };
    }
}

/// Called by the layer for a request's status.
///
/// # Safety
/// `operation` is the state passed to MPI by [`request`], and has not been dropped. There is room for a number at
/// `bytes`.
#[unsafe(no_mangle)]
unsafe extern "C" fn vgasnet_mpi_io_outcome(operation: *mut c_void, bytes: *mut i64) -> c_int {
    // SAFETY: the state came from an `Arc` of an operation, which still has a count for it, as the caller promises.
    let outcome = unsafe { &*operation.cast::<Operation>() }.outcome();
    // SAFETY: the layer has room for a number there, as it promises.
    unsafe { *bytes = outcome.bytes as i64 };
    outcome.code
}

/// Called by the layer when MPI frees a request.
///
/// # Safety
/// `operation` is the state passed to MPI by [`request`]. This is the one call for it, and the last use.
#[unsafe(no_mangle)]
unsafe extern "C" fn vgasnet_mpi_io_drop(operation: *mut c_void) {
    // SAFETY: the state came from `Arc::into_raw`, and is taken back once, as the caller promises.
    drop(unsafe { Arc::from_raw(operation.cast_const().cast::<Operation>()) });
}
