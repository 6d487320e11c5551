//! The way of gets and puts from both interfaces, GASNet-1's and GASNet-EX's, to [`crate::ops`]: numbers by the
//! shortcut, everything else as a transfer that waits or is started.

use super::again::leave_segment;
use super::boundary::{Refusal, attached, enter};
use super::preconditions;
use crate::job::{self, Runtime};
use crate::ops::{Operation, Remote};
use std::ffi::{c_int, c_void};
use vgasnet_engine::request::Handle;
use vgasnet_memory::{Put, Shortcut};
use vgasnet_settings::UserError;

/// The size of `vgasnet_register_value_t` in bytes.
const VALUE_BYTES: usize = size_of::<u64>();

/// The fast path to resident pages, for gets and puts of numbers. It is private to this file, so that the linker allows
/// addressing it directly.
static SHORTCUT: Shortcut = Shortcut::new();

extern "C" fn clear_shortcut() {
    SHORTCUT.clear();
}

/// The runtime. Opens the shortcut to its pages.
#[inline]
pub(super) fn opened() -> Result<&'static Runtime, Refusal> {
    let runtime = attached()?;
    // The shortcut looks at no argument.
    if !preconditions::are_checked() {
        SHORTCUT.open(runtime.space().translations(), clear_shortcut);
    }
    Ok(runtime)
}

/// Does a transfer, of a number without the shortcut.
///
/// # Safety
/// As for `Ops::transfer`.
#[inline(always)]
pub(super) unsafe fn transfer(operation: Operation, remote: Remote) -> Result<(), Refusal> {
    // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null.
    Ok(unsafe { opened()?.ops().transfer(operation, remote) }?)
}

/// Does a get, of a number by the shortcut if its page is resident.
///
/// # Safety
/// `to` is null, or valid for `remote.len_bytes` bytes.
pub(super) unsafe fn get_any(to: *mut u8, remote: Remote) -> Result<(), Refusal> {
    // SAFETY: `to` is null, or valid for `remote.len_bytes` bytes.
    unsafe {
        let Remote { rank, address, len_bytes } = remote;
        if SHORTCUT.get_to(to, rank, address, len_bytes) { Ok(()) } else { transfer(Operation::Get(to), remote) }
    }
}

/// Does a put, of a number by the shortcut if its page is resident.
///
/// # Safety
/// `from` is null, or valid for `remote.len_bytes` bytes.
pub(super) unsafe fn put_any(from: *const u8, remote: Remote) -> Result<(), Refusal> {
    // SAFETY: `from` is null, or valid for `remote.len_bytes` bytes.
    unsafe {
        let Remote { rank, address, len_bytes } = remote;
        let put = SHORTCUT.put_from(from, rank, address, len_bytes);
        if is_done(put) { Ok(()) } else { transfer(Operation::Put(from), remote) }
    }
}

/// Starts a transfer with an explicit handle.
///
/// # Safety
/// As for `Ops::start_explicit`.
#[inline(always)]
pub(super) unsafe fn start(operation: Operation, remote: Remote) -> Result<Option<Handle>, Refusal> {
    // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null, until the handle has been synced.
    Ok(unsafe { opened()?.ops().start_explicit(operation, remote) }?)
}

/// Starts an implicit transfer.
///
/// # Safety
/// As for `Ops::start_implicit`.
#[inline(always)]
pub(super) unsafe fn start_implicit(operation: Operation, remote: Remote) -> Result<(), Refusal> {
    // SAFETY: the client's memory is valid for `remote.len_bytes` bytes, or null, until the thread has synced its
    // implicit operations.
    Ok(unsafe { opened()?.ops().start_implicit(operation, remote) }?)
}

/// Gets a number if its page is resident. Returns whether it did.
///
/// # Safety
/// `to` is null, or valid for `len` bytes.
#[inline(always)]
pub(super) unsafe fn get_number(to: *mut c_void, rank: u32, from: *mut c_void, len: usize) -> bool {
    // SAFETY: `to` is null, or valid for `len` bytes.
    unsafe { SHORTCUT.get_to(to.cast(), rank, from.addr(), len) }
}

/// Puts a number if its page is resident. Returns whether it did.
///
/// # Safety
/// `from` is null, or valid for `len` bytes.
#[inline(always)]
pub(super) unsafe fn put_number(rank: u32, to: *mut c_void, from: *const c_void, len: usize) -> bool {
    // SAFETY: `from` is null, or valid for `len` bytes.
    is_done(unsafe { SHORTCUT.put_from(from.cast(), rank, to.addr(), len) })
}

/// As [`put_number`], by value.
#[inline(always)]
pub(super) fn put_value(rank: u32, to: *mut c_void, value: u64, len: usize) -> bool {
    is_done(SHORTCUT.put(value, rank, to.addr(), len))
}

/// Whether the shortcut did a put. Wakes the threads waiting for its end.
#[inline(always)]
fn is_done(put: Put) -> bool {
    if put == Put::DoneLast {
        end_last_put();
    }
    put != Put::Missed
}

/// Wakes the threads waiting for the end of a put done by the shortcut.
#[cold]
extern "C" fn end_last_put() -> c_int {
    job::runtime().into_iter().for_each(|runtime| runtime.ops().notify_unpinned());
    done()
}

/// 0. A caller that knew the answer of a function would set it itself, and not end with the call.
#[inline(always)]
pub(super) fn done() -> c_int {
    std::hint::black_box(0)
}

// The functions below are inlined into the blocking functions of both interfaces. They handle hits by the shortcut, each
// for numbers of one length. Every other case is a tail call, so a hit saves no registers. A number of 8 bytes that
// misses has a function of its own, so that the hit does not keep the length. They return 0, so that the calls of
// functions with a result are tail calls, too.

/// A blocking function. Its name is part of a type, since passed on it would take a register.
pub(super) trait Function {
    /// The name in the library.
    const NAME: &'static str;
}

/// Gets bytes.
///
/// # Safety
/// `to` is null, or valid for `len` bytes.
#[inline(always)]
pub(super) unsafe fn get<F: Function>(to: *mut c_void, rank: u32, from: *mut c_void, len: usize) -> c_int {
    /// Of other lengths than 8 bytes.
    #[inline(never)]
    unsafe extern "C" fn of_any_bytes<F: Function>(to: *mut c_void, rank: u32, from: *mut c_void, len: usize) -> c_int {
        // SAFETY: `to` is null, or valid for `len` bytes.
        unsafe {
            if len == 4 && SHORTCUT.get_number_to::<u32>(to.cast(), rank, from.addr()) {
                return 0;
            }
            get_slowly::<F>(to, rank, from, len)
        }
    }
    #[inline(never)]
    unsafe extern "C" fn of_8_bytes<F: Function>(to: *mut c_void, rank: u32, from: *mut c_void) -> c_int {
        // SAFETY: `to` is null, or valid for 8 bytes.
        unsafe { get_slowly::<F>(to, rank, from, VALUE_BYTES) }
    }
    // SAFETY: `to` is null, or valid for `len` bytes.
    unsafe {
        if len != VALUE_BYTES {
            return of_any_bytes::<F>(to, rank, from, len);
        }
        if SHORTCUT.get_number_to::<u64>(to.cast(), rank, from.addr()) { 0 } else { of_8_bytes::<F>(to, rank, from) }
    }
}

#[inline(never)]
unsafe extern "C" fn get_slowly<F: Function>(to: *mut c_void, rank: u32, from: *mut c_void, len: usize) -> c_int {
    leave_segment!(get_slowly::<F>, (to: *mut c_void, rank: u32, from: *mut c_void, len: usize) -> c_int);
    let remote = Remote { rank, address: from.addr(), len_bytes: len };
    enter(F::NAME, || {
        preconditions::check_buffer(to, len)?;
        // SAFETY: `to` is null, or valid for `len` bytes.
        Ok(unsafe { opened()?.ops().transfer(Operation::Get(to.cast()), remote) }?)
    });
    done()
}

/// Puts bytes.
///
/// # Safety
/// `from` is null, or valid for `len` bytes.
#[inline(always)]
pub(super) unsafe fn put<F: Function>(rank: u32, to: *mut c_void, from: *const c_void, len: usize) -> c_int {
    #[inline(never)]
    unsafe extern "C" fn of_4_bytes<F: Function>(rank: u32, to: *mut c_void, from: *const c_void) -> c_int {
        // SAFETY: `from` is null, or valid for 4 bytes.
        unsafe {
            match SHORTCUT.put_number_from::<u32>(from.cast(), rank, to.addr()) {
                Put::Missed => put_slowly::<F>(rank, to, from, size_of::<u32>()),
                Put::Done => 0,
                Put::DoneLast => end_last_put(),
            }
        }
    }
    #[inline(never)]
    unsafe extern "C" fn of_8_bytes<F: Function>(rank: u32, to: *mut c_void, from: *const c_void) -> c_int {
        // SAFETY: `from` is null, or valid for 8 bytes.
        unsafe { put_slowly::<F>(rank, to, from, VALUE_BYTES) }
    }
    // SAFETY: `from` is null, or valid for `len` bytes.
    unsafe {
        if len == 4 {
            return of_4_bytes::<F>(rank, to, from);
        }
        if len != VALUE_BYTES {
            return put_slowly::<F>(rank, to, from, len);
        }
        match SHORTCUT.put_number_from::<u64>(from.cast(), rank, to.addr()) {
            Put::Missed => of_8_bytes::<F>(rank, to, from),
            Put::Done => 0,
            Put::DoneLast => end_last_put(),
        }
    }
}

#[inline(never)]
unsafe extern "C" fn put_slowly<F: Function>(rank: u32, to: *mut c_void, from: *const c_void, len: usize) -> c_int {
    leave_segment!(put_slowly::<F>, (rank: u32, to: *mut c_void, from: *const c_void, len: usize) -> c_int);
    let remote = Remote { rank, address: to.addr(), len_bytes: len };
    enter(F::NAME, || {
        preconditions::check_buffer(from, len)?;
        // SAFETY: `from` is null, or valid for `len` bytes.
        Ok(unsafe { opened()?.ops().transfer(Operation::Put(from.cast()), remote) }?)
    });
    done()
}

/// Gets a value.
///
/// # Safety
/// If `from` is memory of this rank outside the segment, it is valid for `len` bytes.
#[inline(always)]
pub(super) unsafe fn get_value<F: Function>(rank: u32, from: *mut c_void, len: usize) -> u64 {
    #[inline(never)]
    unsafe extern "C" fn of_4_bytes<F: Function>(rank: u32, from: *mut c_void) -> u64 {
        let hit = SHORTCUT.get_number::<u32>(rank, from.addr());
        // SAFETY: if `from` is memory of this rank outside the segment, it is valid for `len` bytes.
        hit.map_or_else(|| unsafe { slowly::<F>(rank, from, size_of::<u32>()) }, u64::from)
    }
    #[inline(never)]
    unsafe extern "C" fn slowly<F: Function>(rank: u32, from: *mut c_void, len: usize) -> u64 {
        leave_segment!(slowly::<F>, (rank: u32, from: *mut c_void, len: usize) -> u64);
        enter(F::NAME, || {
            opened()?;
            let mut value = 0;
            let get = Operation::Get(low_order_bytes(&raw mut value, len)?);
            // SAFETY: the value has `len` bytes, which was checked.
            unsafe { transfer(get, Remote { rank, address: from.addr(), len_bytes: len }) }?;
            Ok(value)
        })
    }
    // SAFETY: if `from` is memory of this rank outside the segment, it is valid for `len` bytes.
    unsafe {
        match len {
            VALUE_BYTES => SHORTCUT.get_number(rank, from.addr()).unwrap_or_else(|| slowly::<F>(rank, from, len)),
            4 => of_4_bytes::<F>(rank, from),
            _ => slowly::<F>(rank, from, len),
        }
    }
}

/// The `len_bytes` low-order bytes of a value.
#[inline(always)]
pub(super) fn low_order_bytes(value: *mut u64, len_bytes: usize) -> Result<*mut u8, Refusal> {
    check_value_bytes(len_bytes)?;
    let skipped = if cfg!(target_endian = "big") { VALUE_BYTES - len_bytes } else { 0 };
    Ok(value.cast::<u8>().wrapping_add(skipped))
}

/// Refuses values of other lengths than 1 to [`VALUE_BYTES`].
#[inline(always)]
pub(super) fn check_value_bytes(len_bytes: usize) -> Result<(), Refusal> {
    if !(1..=VALUE_BYTES).contains(&len_bytes) {
        return Err(wrong_value_bytes(len_bytes));
    }
    Ok(())
}

#[cold]
fn wrong_value_bytes(len_bytes: usize) -> Refusal {
    UserError::new(format!(
        "a value of {len_bytes} bytes; a value has 1 to {VALUE_BYTES} bytes, get or put more by address"
    ))
    .into()
}
