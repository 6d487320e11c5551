//! The functions of `layer.c`, `handles.c` and `words.c`, by safe names where possible. Handles are 8 bytes.

use crate::LIBRARY;
use crate::atoms::Atom;
use crate::buffers::GetBuffer;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;
use vgasnet_mpi_front::kind::{Comm, Datatype, Group, Op, Request, Win};
use vgasnet_mpi_front::{Handle, RequestRoom};

pub use vgasnet_mpi_front::SUCCESS;

/// MPI's constants.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Constants {
    pub request_null: u64,
    pub no_store: c_int,
    pub no_put: c_int,
    pub no_succeed: c_int,
    pub seek_end: c_int,
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

// SAFETY: MPI may be called by the handle of a window, and is initialised if there is one. It checks the target.
unsafe extern "C" {
    /// Completes the operations in flight to a target, in a passive epoch.
    #[link_name = "vgasnet_mpi_cache_flush"]
    pub safe fn flush(win: Handle<Win>, target: u32) -> c_int;
    /// As [`flush`], locally.
    #[link_name = "vgasnet_mpi_cache_flush_local"]
    pub safe fn flush_local(win: Handle<Win>, target: u32) -> c_int;
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
    // SAFETY: a window is being made, so MPI runs, and the layer's functions were found before.
    *IS_DONE.get_or_init(|| unsafe { vgasnet_mpi_cache_prepare_types() } == SUCCESS)
}

/// The rank in `MPI_COMM_WORLD`, while MPI runs.
pub fn world_rank() -> Option<u32> {
    // SAFETY: it asks MPI whether it runs, if its functions are known.
    u32::try_from(unsafe { vgasnet_mpi_cache_world_rank() }).ok()
}

/// The rank in a communicator, and its number of ranks.
pub fn place(comm: Handle<Comm>) -> Option<(u32, u32)> {
    let (mut rank, mut ranks) = (0, 0);
    // SAFETY: MPI may be called by the communicator's handle, and there is room for both numbers.
    let error = unsafe { vgasnet_mpi_cache_place(comm.bits(), &mut rank, &mut ranks) };
    (error == SUCCESS).then_some((rank as u32, ranks as u32))
}

/// Collective: the values of all ranks. `on_late` is called if some rank does not come.
///
/// # Safety
///
/// `all` has an element for each rank of the communicator. `T` consists of integers, without gaps between them.
pub unsafe fn gather<T: Copy>(comm: Handle<Comm>, mine: &T, all: &mut [T], on_late: extern "C" fn()) -> bool {
    let (from, to) = (std::ptr::from_ref(mine).cast(), all.as_mut_ptr().cast());
    // SAFETY: MPI reads one element, and writes one for each rank, for which the caller promises room. Any bytes are
    // integers.
    unsafe { vgasnet_mpi_cache_gather(comm.bits(), from, to, size_of::<T>() as c_int, on_late) == SUCCESS }
}

/// The ranks of a group's members in a window.
pub fn members(group: Handle<Group>, win: Handle<Win>, ranks: usize) -> Option<Vec<u32>> {
    let mut found = vec![0; ranks];
    // SAFETY: MPI may be called by both handles, and there is room for `ranks` numbers.
    let count = unsafe { vgasnet_mpi_cache_members(group.bits(), win.bits(), found.as_mut_ptr(), ranks as c_int) };
    let count = usize::try_from(count).ok()?;
    Some(found[..count].iter().map(|rank| *rank as u32).collect())
}

/// Gets bytes, by atomic operations if `atom` is one.
pub fn get_bytes(buffer: GetBuffer, target: u32, displacement: i64, win: Handle<Win>, atom: Atom) -> c_int {
    let atom_bytes = atom.bytes().unwrap_or(0) as c_int;
    let (origin, bytes) = (buffer.address() as *mut c_void, buffer.len() as c_int);
    // SAFETY: the bytes are the get's until it is complete, so MPI may write them. MPI may be called by the window's
    // handle, and checks target and displacement as in the program's own call.
    unsafe { vgasnet_mpi_cache_get_bytes(origin, bytes, target as c_int, displacement, win.bits(), atom_bytes) }
}

/// Stores a completed request.
pub fn completed_request(room: &RequestRoom<'_>) -> c_int {
    // SAFETY: there is room for a request.
    unsafe { vgasnet_mpi_cache_completed(room.as_ptr()) }
}

/// Whether several threads may call MPI concurrently.
pub fn is_thread_multiple() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    // SAFETY: a window was made, so MPI is initialised, and the layer's functions were found.
    *IS.get_or_init(|| unsafe { vgasnet_mpi_cache_is_thread_multiple() != 0 })
}

/// Whether this is MPI's request for all operations complete from the beginning.
pub fn is_complete_request(handle: Handle<Request>) -> bool {
    // SAFETY: it only compares the handle.
    unsafe { vgasnet_mpi_cache_is_complete(handle.bits()) != 0 }
}

/// Whether the operation of a request is already complete. The request stays to be waited for.
pub fn is_complete(request: Handle<Request>) -> bool {
    // SAFETY: MPI may be called by the request's handle, and leaves the request as it is.
    unsafe { vgasnet_mpi_cache_is_complete_now(request.bits()) != 0 }
}

/// Bytes of a contiguous element, else 0; and whether the type is one of MPI's own.
pub fn element(datatype: Handle<Datatype>) -> (u32, bool) {
    let mut is_named = 0;
    // SAFETY: MPI may be called by the type's handle, and there is room for the answer.
    let bytes = unsafe { vgasnet_mpi_cache_element(datatype.bits(), &mut is_named) };
    (bytes as u32, is_named != 0)
}

/// The bytes elements of a type may touch: where they begin, and how many.
pub fn span(datatype: Handle<Datatype>, count: i64) -> Option<(i64, i64)> {
    let (mut low, mut bytes) = (0, 0);
    // SAFETY: MPI may be called by the type's handle, and there is room for both numbers.
    let is_known = unsafe { vgasnet_mpi_cache_span(datatype.bits(), count, &mut low, &mut bytes) };
    (is_known != 0).then_some((low, bytes))
}

/// Whether an operation is `MPI_NO_OP`.
pub fn is_no_op(op: Handle<Op>) -> bool {
    // SAFETY: it only compares the handle.
    unsafe { vgasnet_mpi_cache_is_no_op(op.bits()) != 0 }
}

/// The hidden window of mode told.
#[derive(Debug)]
pub struct WordsOfAll {
    words: NonNull<c_void>,
    /// Number of words of each rank.
    count: usize,
}

// SAFETY: MPI's windows belong to no thread.
unsafe impl Send for WordsOfAll {}
// SAFETY: threads call MPI concurrently only if the program has asked for it at MPI's start. MPI then allows concurrent
// calls for one window.
unsafe impl Sync for WordsOfAll {}

impl WordsOfAll {
    /// Collective.
    pub fn create(comm: Handle<Comm>, count: usize) -> Result<WordsOfAll, c_int> {
        let mut words = std::ptr::null_mut();
        // SAFETY: MPI may be called by the communicator's handle, and there is room for the address.
        let error = unsafe { vgasnet_mpi_cache_words_create(comm.bits(), count as c_int, &mut words) };
        NonNull::new(words).filter(|_| error == SUCCESS).map(|words| WordsOfAll { words, count }).ok_or(error)
    }

    /// Collective.
    pub fn free(self) -> bool {
        // SAFETY: the window exists, and this is the last use of it.
        unsafe { vgasnet_mpi_cache_words_free(self.words.as_ptr()) == SUCCESS }
    }

    /// The number of a word, for the layer.
    fn checked(&self, at: u32) -> c_int {
        assert!((at as usize) < self.count, "a word of the window");
        at as c_int
    }

    /// Whether a communicator has the same processes in the same order.
    pub fn are_of(&self, comm: Handle<Comm>) -> bool {
        // SAFETY: the window exists, and MPI may be called by the communicator's handle.
        unsafe { vgasnet_mpi_cache_words_are_of(self.words.as_ptr(), comm.bits()) != 0 }
    }

    /// A word of a rank.
    pub fn read(&self, at: u32, target: u32) -> Option<u64> {
        let mut word = 0;
        let at = self.checked(at);
        // SAFETY: the window exists, and has the word; there is room for it.
        let error = unsafe { vgasnet_mpi_cache_words_read(self.words.as_ptr(), at, target as c_int, &mut word) };
        (error == SUCCESS).then_some(word)
    }

    /// A word of this rank.
    pub fn own(&self, at: u32) -> u64 {
        // SAFETY: the window exists, and has the word.
        unsafe { vgasnet_mpi_cache_words_own(self.words.as_ptr(), self.checked(at)) }
    }

    /// Raises a word of a rank, and returns when every rank sees it.
    pub fn raise(&self, at: u32, target: u32) -> bool {
        // SAFETY: the window exists, and has the word.
        unsafe { vgasnet_mpi_cache_words_raise(self.words.as_ptr(), self.checked(at), target as c_int) == SUCCESS }
    }
}
