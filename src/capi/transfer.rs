//! Gets, puts and memsets: blocking, with explicit and with implicit handles, and by value.

use super::boundary::{Refusal, attached, enter, entry_points};
use super::sync::{OperationPointer, ValuePointer, to_pointer};
use crate::job::{self, Runtime};
use crate::ops::{Operation, Remote};
use std::ffi::{c_int, c_void};
use vgasnet_memory::{Put, Shortcut};
use vgasnet_settings::UserError;

/// The size of `vgasnet_register_value_t` in bytes.
const VALUE_BYTES: usize = size_of::<u64>();

/// A transfer: its operation and its remote side.
type Transfer = (Operation, Remote);

/// Does a transfer.
///
/// # Safety
/// The client's memory in the operation is valid for the remote length, or null.
#[inline(always)]
unsafe fn transfer((operation, remote): Transfer) -> Result<(), Refusal> {
    // SAFETY: the client's memory is valid for the remote length, or null.
    Ok(unsafe { attached()?.ops().transfer(operation, remote) }?)
}

/// Starts a transfer with an explicit handle.
///
/// # Safety
/// The client's memory in the operation is valid for the remote length, or null, until the handle has been synced. For
/// an [`Operation::PutNow`] it is valid until this returns.
#[inline(always)]
unsafe fn start((operation, remote): Transfer) -> Result<OperationPointer, Refusal> {
    // SAFETY: the client's memory is valid for the remote length, or null, until the handle has been synced. For a
    // `PutNow` it is valid until this returns.
    Ok(to_pointer(unsafe { opened()?.ops().start_explicit(operation, remote) }?))
}

/// Starts an implicit transfer.
///
/// # Safety
/// The client's memory in the operation is valid for the remote length, or null, until the thread has synced its
/// implicit operations. For an [`Operation::PutNow`] it is valid until this returns.
#[inline(always)]
unsafe fn start_implicit((operation, remote): Transfer) -> Result<(), Refusal> {
    // SAFETY: the client's memory is valid for the remote length, or null, until the implicit operations are synced.
    // For a `PutNow` it is valid until this returns.
    Ok(unsafe { opened()?.ops().start_implicit(operation, remote) }?)
}

#[inline(always)]
fn at(rank: u32, address: *mut c_void, len_bytes: usize) -> Remote {
    Remote { rank, address: address.addr(), len_bytes }
}

/// The fast path to resident pages, for gets and puts of numbers. It is private to this file, so that the linker allows
/// addressing it directly.
static SHORTCUT: Shortcut = Shortcut::new();

extern "C" fn clear_shortcut() {
    SHORTCUT.clear();
}

/// The runtime. Opens the shortcut to its pages.
#[inline]
fn opened() -> Result<&'static Runtime, Refusal> {
    let runtime = attached()?;
    SHORTCUT.open(runtime.space().translations(), clear_shortcut);
    Ok(runtime)
}

/// Does a transfer of any length in the function `call`. The shortcut is open from the first transfer on.
///
/// # Safety
/// As [`transfer`].
unsafe fn transfer_any(call: &'static str, operation: impl FnOnce() -> Result<Transfer, Refusal>) {
    enter(call, || {
        opened()?;
        // SAFETY: as the caller says.
        unsafe { transfer(operation()?) }
    });
}

/// Wakes the threads waiting for the end of a put done by the shortcut.
#[cold]
extern "C" fn end_last_put() {
    job::runtime().into_iter().for_each(|runtime| runtime.ops().notify_unpinned());
}

// The functions below handle hits by the shortcut. Every other case is a tail call, so they save no registers. Each
// handles numbers of one length.

/// Defines blocking gets.
macro_rules! gets {
    ($($name:ident)*) => {$(
        /// See `include/vgasnet.h`.
        ///
        /// # Safety
        /// `to` is null, or valid for `len` bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
            #[inline(never)]
            unsafe extern "C" fn slowly(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
                // SAFETY: `to` is null, or valid for `len` bytes.
                unsafe { transfer_any(stringify!($name), || Ok((Operation::Get(to.cast()), at(node, from, len)))) }
            }
            #[inline(never)]
            unsafe extern "C" fn of_4_bytes(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
                // SAFETY: `to` is null, or valid for `len` bytes.
                unsafe {
                    if len != 4 || !SHORTCUT.get_number_to::<u32>(to.cast(), node, from.addr()) {
                        slowly(to, node, from, len);
                    }
                }
            }
            // SAFETY: `to` is null, or valid for `len` bytes.
            unsafe {
                if len != VALUE_BYTES {
                    of_4_bytes(to, node, from, len);
                } else if !SHORTCUT.get_number_to::<u64>(to.cast(), node, from.addr()) {
                    slowly(to, node, from, len);
                }
            }
        }
    )*};
}

gets! { vgasnet_get vgasnet_get_bulk }

/// Defines blocking puts.
macro_rules! puts {
    ($($name:ident $operation:ident)*) => {$(
        /// See `include/vgasnet.h`.
        ///
        /// # Safety
        /// `from` is null, or valid for `len` bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
            #[inline(never)]
            unsafe extern "C" fn slowly(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
                // SAFETY: `from` is null, or valid for `len` bytes.
                unsafe { transfer_any(stringify!($name), || Ok((Operation::$operation(from.cast()), at(node, to, len)))) }
            }
            #[inline(never)]
            unsafe extern "C" fn of_4_bytes(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
                // SAFETY: `from` is null, or valid for `len` bytes.
                unsafe {
                    if len != 4 {
                        return slowly(node, to, from, len);
                    }
                    match SHORTCUT.put_number_from::<u32>(from.cast(), node, to.addr()) {
                        Put::Missed => slowly(node, to, from, len),
                        Put::Done => {}
                        Put::DoneLast => end_last_put(),
                    }
                }
            }
            // SAFETY: `from` is null, or valid for `len` bytes.
            unsafe {
                if len != VALUE_BYTES {
                    return of_4_bytes(node, to, from, len);
                }
                match SHORTCUT.put_number_from::<u64>(from.cast(), node, to.addr()) {
                    Put::Missed => slowly(node, to, from, len),
                    Put::Done => {}
                    Put::DoneLast => end_last_put(),
                }
            }
        }
    )*};
}

puts! { vgasnet_put PutNow vgasnet_put_bulk Put }

/// Gets a number if its page is resident. Returns whether it did.
///
/// # Safety
/// `to` is null, or valid for `len` bytes.
#[inline(always)]
unsafe fn get_number(to: *mut c_void, node: u32, from: *mut c_void, len: usize) -> bool {
    // SAFETY: `to` is null, or valid for `len` bytes.
    unsafe { SHORTCUT.get_to(to.cast(), node, from.addr(), len) }
}

/// Puts a number if its page is resident. Returns whether it did.
///
/// # Safety
/// `from` is null, or valid for `len` bytes.
#[inline(always)]
unsafe fn put_number(node: u32, to: *mut c_void, from: *const c_void, len: usize) -> bool {
    // SAFETY: `from` is null, or valid for `len` bytes.
    is_done(unsafe { SHORTCUT.put_from(from.cast(), node, to.addr(), len) })
}

/// Like [`put_number`], by value.
#[inline(always)]
fn put_value(node: u32, to: *mut c_void, value: u64, len: usize) -> bool {
    is_done(SHORTCUT.put(value, node, to.addr(), len))
}

/// Whether the shortcut did a put. Wakes the threads waiting for its end.
#[inline(always)]
pub(super) fn is_done(put: Put) -> bool {
    if put == Put::DoneLast {
        end_last_put();
    }
    put != Put::Missed
}

entry_points! {
    unsafe fn vgasnet_get_nb | vgasnet_get_nb_bulk(
        to: *mut c_void, node: u32, from: *mut c_void, len: usize,
    ) -> OperationPointer {
        if get_number(to, node, from, len) {
            return Ok(to_pointer(None));
        }
        start((Operation::Get(to.cast()), at(node, from, len)))
    }

    unsafe fn vgasnet_get_nbi | vgasnet_get_nbi_bulk(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
        if get_number(to, node, from, len) {
            return Ok(());
        }
        start_implicit((Operation::Get(to.cast()), at(node, from, len)))
    }
}

/// Defines the blocking, the explicit and the implicit function of each transfer. The body is the transfer.
macro_rules! transfers {
    ($($blocking:ident, $explicit:ident, $implicit:ident($($argument:ident: $type:ty),* $(,)?) $transfer:block)*) => {
        entry_points! {
            $(
                unsafe fn $blocking($($argument: $type),*) {
                    transfer($transfer)
                }

                unsafe fn $explicit($($argument: $type),*) -> OperationPointer {
                    start($transfer)
                }

                unsafe fn $implicit($($argument: $type),*) {
                    start_implicit($transfer)
                }
            )*
        }
    };
}
pub(super) use transfers;

entry_points! {
    unsafe fn vgasnet_put_nb(node: u32, to: *mut c_void, from: *mut c_void, len: usize) -> OperationPointer {
        if put_number(node, to, from, len) {
            return Ok(to_pointer(None));
        }
        start((Operation::PutNow(from.cast()), at(node, to, len)))
    }

    unsafe fn vgasnet_put_nb_bulk(node: u32, to: *mut c_void, from: *mut c_void, len: usize) -> OperationPointer {
        if put_number(node, to, from, len) {
            return Ok(to_pointer(None));
        }
        start((Operation::Put(from.cast()), at(node, to, len)))
    }
}

entry_points! {
    unsafe fn vgasnet_put_nbi(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
        if put_number(node, to, from, len) {
            return Ok(());
        }
        start_implicit((Operation::PutNow(from.cast()), at(node, to, len)))
    }

    unsafe fn vgasnet_put_nbi_bulk(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
        if put_number(node, to, from, len) {
            return Ok(());
        }
        start_implicit((Operation::Put(from.cast()), at(node, to, len)))
    }
}

transfers! {
    // Like memset, these take the value as an unsigned char.
    vgasnet_memset, vgasnet_memset_nb, vgasnet_memset_nbi(node: u32, to: *mut c_void, value: c_int, len: usize) {
        (Operation::Set(value as u8), at(node, to, len))
    }
}

/// A put of a value. The value is read before the put has begun.
#[inline(always)]
fn put_of(node: u32, to: *mut c_void, value: &u64, len: usize) -> Result<Transfer, Refusal> {
    Ok((Operation::PutNow(low_order_bytes(std::ptr::from_ref(value).cast_mut(), len)?), at(node, to, len)))
}

entry_points! {
    unsafe fn vgasnet_put_val(node: u32, to: *mut c_void, value: u64, len: usize) {
        if put_value(node, to, value, len) {
            return Ok(());
        }
        opened()?;
        transfer(put_of(node, to, &value, len)?)
    }

    unsafe fn vgasnet_put_nb_val(node: u32, to: *mut c_void, value: u64, len: usize) -> OperationPointer {
        if put_value(node, to, value, len) {
            return Ok(to_pointer(None));
        }
        start(put_of(node, to, &value, len)?)
    }

    unsafe fn vgasnet_put_nbi_val(node: u32, to: *mut c_void, value: u64, len: usize) {
        if put_value(node, to, value, len) {
            return Ok(());
        }
        start_implicit(put_of(node, to, &value, len)?)
    }
}

/// See `include/vgasnet.h`.
///
/// # Safety
/// If `from` is memory of this rank outside the segment, it is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vgasnet_get_val(node: u32, from: *mut c_void, len: usize) -> u64 {
    #[inline(never)]
    unsafe extern "C" fn slowly(node: u32, from: *mut c_void, len: usize) -> u64 {
        let mut value = 0;
        let operation = || Ok((Operation::Get(low_order_bytes(&raw mut value, len)?), at(node, from, len)));
        // SAFETY: the value has `len` bytes, which was checked.
        unsafe { transfer_any("vgasnet_get_val", operation) };
        value
    }
    #[inline(never)]
    unsafe extern "C" fn of_4_bytes(node: u32, from: *mut c_void, len: usize) -> u64 {
        let hit = if len == 4 { SHORTCUT.get_number::<u32>(node, from.addr()) } else { None };
        // SAFETY: as the caller says.
        hit.map_or_else(|| unsafe { slowly(node, from, len) }, u64::from)
    }
    // SAFETY: as the caller says.
    unsafe {
        if len != VALUE_BYTES {
            return of_4_bytes(node, from, len);
        }
        SHORTCUT.get_number::<u64>(node, from.addr()).unwrap_or_else(|| slowly(node, from, len))
    }
}

entry_points! {
    fn vgasnet_get_nb_val(node: u32, from: *mut c_void, len: usize) -> ValuePointer {
        check_value_bytes(len)?;
        Ok(to_pointer(Some(attached()?.ops().start_value(at(node, from, len))?)))
    }
}

/// The `len_bytes` low-order bytes of a value.
#[inline(always)]
pub(super) fn low_order_bytes(value: *mut u64, len_bytes: usize) -> Result<*mut u8, Refusal> {
    check_value_bytes(len_bytes)?;
    let skipped = if cfg!(target_endian = "big") { VALUE_BYTES - len_bytes } else { 0 };
    Ok(value.cast::<u8>().wrapping_add(skipped))
}

#[inline(always)]
fn check_value_bytes(len_bytes: usize) -> Result<(), Refusal> {
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
