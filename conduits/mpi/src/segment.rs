//! The own segment, as the interposed calls of MPI know it: where it is, and how its bytes are copied.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The own segment, and what the library does for calls of MPI that have an address in it.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The first address.
    pub base: usize,
    /// The length.
    pub len_bytes: usize,
    /// Copies bytes of the segment at the address to ordinary memory, for the call.
    pub get: unsafe fn(call: &str, address: usize, to: *mut u8, len_bytes: usize),
    /// Copies ordinary memory to the address in the segment, for the call.
    pub put: unsafe fn(call: &str, address: usize, from: *const u8, len_bytes: usize),
    /// Reports that the call cannot be done, and ends the job.
    pub refuse: fn(call: &str, why: &str) -> !,
    /// The bytes of memory that this rank may still take.
    pub available_bytes: fn() -> u64,
}

static SEGMENT: OnceLock<Segment> = OnceLock::new();

/// Where the segment is, for the C files, too.
#[repr(C)]
struct Span {
    base: AtomicUsize,
    /// None before the segment is there.
    len_bytes: AtomicUsize,
}

type Copy = unsafe extern "C" fn(*const c_char, *mut c_void, *const c_void, usize);

/// What the C files call.
#[repr(C)]
struct Functions {
    get: Copy,
    put: Copy,
    refuse: unsafe extern "C" fn(*const c_char, *const c_char),
    available_bytes: extern "C" fn() -> u64,
}

unsafe extern "C" {
    #[link_name = "vgasnet_mpi_segment"]
    static SPAN: Span;
    fn vgasnet_mpi_set_functions(its: *const Functions);
}

/// The span in `stand_in.c`.
#[inline(always)]
fn span() -> &'static Span {
    // SAFETY: it is there for ever, of two words, zero at first, which only `set_segment` writes. C reads them after a call of
    // this crate has found that they are written.
    unsafe { &SPAN }
}

/// From now on calls of MPI may have addresses in this segment. Once a process.
pub fn set_segment(segment: Segment) {
    if segment.len_bytes == 0 || SEGMENT.set(segment).is_err() {
        return;
    }
    let functions = Functions { get, put, refuse: refuse_call, available_bytes };
    // SAFETY: the functions are there for ever, and nobody calls them before the length is stored. The call copies the table.
    unsafe { vgasnet_mpi_set_functions(&raw const functions) };
    span().base.store(segment.base, Ordering::Relaxed);
    span().len_bytes.store(segment.len_bytes, Ordering::Release);
}

/// Whether an address may lie in the segment: it does, or it is `MPI_BOTTOM`, and a datatype has the addresses.
#[inline(always)]
pub(crate) fn is_suspect(address: usize) -> bool {
    let len_bytes = span().len_bytes.load(Ordering::Acquire);
    address.wrapping_sub(span().base.load(Ordering::Relaxed)) < len_bytes || address == 0 && len_bytes > 0
}

/// Whether an address lies in the segment.
pub(crate) fn contains(address: usize) -> bool {
    let len_bytes = span().len_bytes.load(Ordering::Acquire);
    address.wrapping_sub(span().base.load(Ordering::Relaxed)) < len_bytes
}

/// Ends the job because a call cannot take an address in the segment.
pub(crate) fn refuse(call: &str, why: &str) -> ! {
    (segment().refuse)(call, why)
}

fn segment() -> &'static Segment {
    SEGMENT.get().expect("an address lies in the segment, so that is there")
}

/// # Safety
/// The text ends with a zero byte and lives for ever.
unsafe fn text(text: *const c_char) -> &'static str {
    // SAFETY: the text ends with a zero byte and lives for ever.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("MPI")
}

/// # Safety
/// `call` is a string of `blocking.h`, `from` is an address of the segment, and `to` is valid for so many bytes.
unsafe extern "C" fn get(call: *const c_char, to: *mut c_void, from: *const c_void, len_bytes: usize) {
    // SAFETY: as above.
    unsafe { (segment().get)(text(call), from.addr(), to.cast(), len_bytes) };
}

/// # Safety
/// `call` is a string of `blocking.h`, `to` is an address of the segment, and `from` is valid for so many bytes.
unsafe extern "C" fn put(call: *const c_char, to: *mut c_void, from: *const c_void, len_bytes: usize) {
    // SAFETY: as above.
    unsafe { (segment().put)(text(call), to.addr(), from.cast(), len_bytes) };
}

/// # Safety
/// Both are string constants of the C files.
unsafe extern "C" fn refuse_call(call: *const c_char, why: *const c_char) {
    // SAFETY: as above.
    unsafe { refuse(text(call), text(why)) }
}

extern "C" fn available_bytes() -> u64 {
    (segment().available_bytes)()
}
