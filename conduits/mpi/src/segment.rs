//! This rank's segment, for the interposed MPI calls: its address range, and functions to copy its bytes.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// This rank's segment, and the library's functions for MPI calls with an address in it.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The first address.
    pub base: usize,
    /// The length.
    pub len_bytes: usize,
    /// Copies bytes at an address in the segment to ordinary memory, on behalf of a call.
    pub get: unsafe fn(call: &str, address: usize, to: *mut u8, len_bytes: usize),
    /// Copies ordinary memory to an address in the segment, on behalf of a call.
    pub put: unsafe fn(call: &str, address: usize, from: *const u8, len_bytes: usize),
    /// Reports an impossible call, and ends the job.
    pub refuse: fn(call: &str, why: &str) -> !,
    /// Bytes of memory still available to this rank.
    pub available_bytes: fn() -> u64,
}

static SEGMENT: OnceLock<Segment> = OnceLock::new();

/// The address range of the segment, shared with the C files.
#[repr(C)]
struct Span {
    base: AtomicUsize,
    /// 0 before the segment exists.
    len_bytes: AtomicUsize,
}

type Copy = unsafe extern "C" fn(*const c_char, *mut c_void, *const c_void, usize);

/// Functions for the C files.
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
    // SAFETY: a static of two words, initially zero, written only by `set_segment`. C reads it after a call of this
    // crate has found it written.
    unsafe { &SPAN }
}

/// From now on MPI calls may have addresses in this segment. Once a process.
pub fn set_segment(segment: Segment) {
    if segment.len_bytes == 0 || SEGMENT.set(segment).is_err() {
        return;
    }
    let functions = Functions { get, put, refuse: refuse_call, available_bytes };
    // SAFETY: the functions are static, and nobody calls them before the length is stored. The call copies the table.
    unsafe { vgasnet_mpi_set_functions(&raw const functions) };
    span().base.store(segment.base, Ordering::Relaxed);
    span().len_bytes.store(segment.len_bytes, Ordering::Release);
}

/// Whether an address may lie in the segment: it does, or it is `MPI_BOTTOM`, with the addresses in a datatype.
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
/// The text is zero-terminated and static.
unsafe fn text(text: *const c_char) -> &'static str {
    // SAFETY: the text is zero-terminated and static.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("MPI")
}

/// # Safety
/// `call` is a string of `blocking.h`, `from` is an address of the segment, and `to` is valid for `len_bytes` bytes.
unsafe extern "C" fn get(call: *const c_char, to: *mut c_void, from: *const c_void, len_bytes: usize) {
    // SAFETY: `call` is a string of `blocking.h`, and `to` is valid for `len_bytes` bytes.
    unsafe { (segment().get)(text(call), from.addr(), to.cast(), len_bytes) };
}

/// # Safety
/// `call` is a string of `blocking.h`, `to` is an address of the segment, and `from` is valid for `len_bytes` bytes.
unsafe extern "C" fn put(call: *const c_char, to: *mut c_void, from: *const c_void, len_bytes: usize) {
    // SAFETY: `call` is a string of `blocking.h`, and `from` is valid for `len_bytes` bytes.
    unsafe { (segment().put)(text(call), to.addr(), from.cast(), len_bytes) };
}

/// # Safety
/// Both are string constants of the C files.
unsafe extern "C" fn refuse_call(call: *const c_char, why: *const c_char) {
    // SAFETY: both are string constants of the C files.
    unsafe { refuse(text(call), text(why)) }
}

extern "C" fn available_bytes() -> u64 {
    (segment().available_bytes)()
}
