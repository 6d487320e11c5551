//! The functions of `layer.c`, `handles.c` and `words.c`, by safe names where possible. Handles are 8 bytes.

use crate::LIBRARY;
use crate::store::Atom;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

pub use vgasnet_mpi_front::SUCCESS;

/// MPI's constants.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Constants {
    pub request_null: u64,
    pub no_store: c_int,
    pub no_put: c_int,
    pub no_succeed: c_int,
}

unsafe extern "C" {
    fn vgasnet_mpi_cache_resolve() -> *const c_char;
    fn vgasnet_mpi_cache_constants(constants: *mut Constants);
    fn vgasnet_mpi_cache_prepare_types() -> c_int;
    fn vgasnet_mpi_cache_world_rank() -> c_int;
    fn vgasnet_mpi_cache_place(comm: u64, rank: *mut c_int, ranks: *mut c_int) -> c_int;
    fn vgasnet_mpi_cache_gather(
        comm: u64,
        mine: *const c_void,
        all: *mut c_void,
        bytes: c_int,
        on_late: extern "C" fn(),
    ) -> c_int;
    fn vgasnet_mpi_cache_members(group: u64, win: u64, ranks: *mut c_int, ranks_max: c_int) -> c_int;
    fn vgasnet_mpi_cache_get_bytes(
        origin: *mut c_void,
        bytes: c_int,
        target: c_int,
        displacement: i64,
        win: u64,
        atom_bytes: c_int,
    ) -> c_int;
    fn vgasnet_mpi_cache_completed(place: *mut c_void) -> c_int;
    fn vgasnet_mpi_cache_is_complete(request: u64) -> c_int;
    fn vgasnet_mpi_cache_is_complete_now(request: u64) -> c_int;
    fn vgasnet_mpi_cache_is_thread_multiple() -> c_int;
    fn vgasnet_mpi_cache_element(handle: u64, is_named: *mut c_int) -> c_int;
    fn vgasnet_mpi_cache_span(handle: u64, count: i64, low: *mut i64, bytes: *mut i64) -> c_int;
    fn vgasnet_mpi_cache_is_no_op(op: u64) -> c_int;
    fn vgasnet_mpi_cache_words_create(comm: u64, count: c_int, words: *mut *mut c_void) -> c_int;
    fn vgasnet_mpi_cache_words_free(words: *mut c_void) -> c_int;
    fn vgasnet_mpi_cache_words_are_of(words: *mut c_void, comm: u64) -> c_int;
    fn vgasnet_mpi_cache_words_read(words: *mut c_void, at: c_int, target: c_int, word: *mut u64) -> c_int;
    fn vgasnet_mpi_cache_words_own(words: *mut c_void, at: c_int) -> u64;
    fn vgasnet_mpi_cache_words_raise(words: *mut c_void, at: c_int, target: c_int) -> c_int;
}

// SAFETY: the windows are the program's, so MPI is initialised.
unsafe extern "C" {
    /// Completes the operations in flight to a target, in a passive epoch.
    #[link_name = "vgasnet_mpi_cache_flush"]
    pub safe fn flush(win: u64, target: u32) -> c_int;
    /// As [`flush`], locally.
    #[link_name = "vgasnet_mpi_cache_flush_local"]
    pub safe fn flush_local(win: u64, target: u32) -> c_int;
    /// Lets MPI serve the requests of other processes. The caller is within a call of MPI.
    #[link_name = "vgasnet_mpi_cache_look"]
    pub safe fn look_at_messages();
}

/// MPI's constants. Must be called before all other functions here: it has the layer find the functions it calls.
pub fn constants() -> &'static Constants {
    static CONSTANTS: OnceLock<Constants> = OnceLock::new();
    CONSTANTS.get_or_init(|| {
        // SAFETY: nobody calls the functions found by the layer before this has ended. The struct matches the one of
        // `layer.c`.
        unsafe { vgasnet_mpi_front::resolve(LIBRARY, vgasnet_mpi_cache_resolve, vgasnet_mpi_cache_constants) }
    })
}

/// Prepares the attribute of types that are not MPI's own. Once, while MPI runs.
pub fn prepare_types() -> bool {
    static IS_DONE: OnceLock<bool> = OnceLock::new();
    // SAFETY: the caller has had the functions found before, and MPI runs, since it has made a window.
    *IS_DONE.get_or_init(|| unsafe { vgasnet_mpi_cache_prepare_types() } == SUCCESS)
}

/// The rank in `MPI_COMM_WORLD`, while MPI runs.
pub fn world_rank() -> Option<u32> {
    // SAFETY: it asks MPI whether it runs, if its functions are known.
    u32::try_from(unsafe { vgasnet_mpi_cache_world_rank() }).ok()
}

/// The rank in a communicator, and its number of ranks.
pub fn place(comm: u64) -> Option<(u32, u32)> {
    let (mut rank, mut ranks) = (0, 0);
    // SAFETY: the program has made a window with this communicator.
    let error = unsafe { vgasnet_mpi_cache_place(comm, &mut rank, &mut ranks) };
    (error == SUCCESS).then_some((rank as u32, ranks as u32))
}

/// Collective: the values of all ranks. `on_late` is called if some rank does not come. `all` has as many elements as there are ranks.
pub fn gather<T: Copy>(comm: u64, mine: &T, all: &mut [T], on_late: extern "C" fn()) -> bool {
    let (from, to) = (std::ptr::from_ref(mine).cast(), all.as_mut_ptr().cast());
    // SAFETY: both have as many bytes as passed on; the element type consists of integers.
    unsafe { vgasnet_mpi_cache_gather(comm, from, to, size_of::<T>() as c_int, on_late) == SUCCESS }
}

/// The ranks of a group's members in a window.
pub fn members(group: u64, win: u64, ranks: usize) -> Option<Vec<u32>> {
    let mut found = vec![0; ranks];
    // SAFETY: both are the program's, and there is room for `ranks` numbers.
    let count = unsafe { vgasnet_mpi_cache_members(group, win, found.as_mut_ptr(), ranks as c_int) };
    let count = usize::try_from(count).ok()?;
    Some(found[..count].iter().map(|rank| *rank as u32).collect())
}

/// Gets bytes, by atomic operations if `atom` is one.
///
/// # Safety
///
/// As for `MPI_Get`.
pub unsafe fn get_bytes(origin: usize, bytes: usize, target: u32, displacement: i64, win: u64, atom: Atom) -> c_int {
    let atom_bytes = atom.bytes().unwrap_or(0) as c_int;
    let origin = origin as *mut c_void;
    // SAFETY: as the caller says.
    unsafe { vgasnet_mpi_cache_get_bytes(origin, bytes as c_int, target as c_int, displacement, win, atom_bytes) }
}

/// Stores a completed request.
///
/// # Safety
///
/// There is room for a request.
pub unsafe fn completed_request(place: usize) -> c_int {
    // SAFETY: as the caller says.
    unsafe { vgasnet_mpi_cache_completed(place as *mut c_void) }
}

/// Whether several threads may call MPI concurrently.
pub fn is_thread_multiple() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    // SAFETY: a window was made, so MPI is initialised.
    *IS.get_or_init(|| unsafe { vgasnet_mpi_cache_is_thread_multiple() != 0 })
}

/// Whether this is MPI's request for all operations complete from the beginning.
pub fn is_complete_request(handle: u64) -> bool {
    // SAFETY: it compares.
    unsafe { vgasnet_mpi_cache_is_complete(handle) != 0 }
}

/// Whether the operation of a request is already complete. The request stays to be waited for.
pub fn is_complete(request: u64) -> bool {
    // SAFETY: MPI has made the request.
    unsafe { vgasnet_mpi_cache_is_complete_now(request) != 0 }
}

/// Bytes of a contiguous element, else 0; and whether the type is one of MPI's own.
pub fn element(datatype: u64) -> (u32, bool) {
    let mut is_named = 0;
    // SAFETY: the program passes the type to MPI.
    let bytes = unsafe { vgasnet_mpi_cache_element(datatype, &mut is_named) };
    (bytes as u32, is_named != 0)
}

/// The bytes elements of a type may touch: where they begin, and how many.
pub fn span(datatype: u64, count: i64) -> Option<(i64, i64)> {
    let (mut low, mut bytes) = (0, 0);
    // SAFETY: the program passes the type to MPI.
    let is_known = unsafe { vgasnet_mpi_cache_span(datatype, count, &mut low, &mut bytes) };
    (is_known != 0).then_some((low, bytes))
}

/// Whether an operation is `MPI_NO_OP`.
pub fn is_no_op(op: u64) -> bool {
    // SAFETY: it compares.
    unsafe { vgasnet_mpi_cache_is_no_op(op) != 0 }
}

/// The hidden window of mode told.
#[derive(Debug)]
pub struct WordsOfAll(NonNull<c_void>);

// SAFETY: any thread may call MPI's functions. For concurrent calls the program has to ask at MPI's start.
unsafe impl Send for WordsOfAll {}
// SAFETY: as above.
unsafe impl Sync for WordsOfAll {}

impl WordsOfAll {
    /// Collective.
    pub fn create(comm: u64, count: usize) -> Result<WordsOfAll, c_int> {
        let mut words = std::ptr::null_mut();
        // SAFETY: there is room for the address.
        let error = unsafe { vgasnet_mpi_cache_words_create(comm, count as c_int, &mut words) };
        NonNull::new(words).filter(|_| error == SUCCESS).map(WordsOfAll).ok_or(error)
    }

    /// Collective.
    pub fn free(self) -> bool {
        // SAFETY: nobody uses the window any more.
        unsafe { vgasnet_mpi_cache_words_free(self.0.as_ptr()) == SUCCESS }
    }

    /// Whether a communicator has the same processes in the same order.
    pub fn are_of(&self, comm: u64) -> bool {
        // SAFETY: the window exists, and the program makes a window with the communicator.
        unsafe { vgasnet_mpi_cache_words_are_of(self.0.as_ptr(), comm) != 0 }
    }

    /// A word of a rank.
    pub fn read(&self, at: u32, target: u32) -> Option<u64> {
        let mut word = 0;
        // SAFETY: the window exists, and has the word.
        let error = unsafe { vgasnet_mpi_cache_words_read(self.0.as_ptr(), at as c_int, target as c_int, &mut word) };
        (error == SUCCESS).then_some(word)
    }

    /// A word of this rank.
    pub fn own(&self, at: u32) -> u64 {
        // SAFETY: the window exists, and has the word.
        unsafe { vgasnet_mpi_cache_words_own(self.0.as_ptr(), at as c_int) }
    }

    /// Raises a word of a rank, and returns when every rank sees it.
    pub fn raise(&self, at: u32, target: u32) -> bool {
        // SAFETY: the window exists, and has the word.
        unsafe { vgasnet_mpi_cache_words_raise(self.0.as_ptr(), at as c_int, target as c_int) == SUCCESS }
    }
}
