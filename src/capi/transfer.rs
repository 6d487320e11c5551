//! Gets, puts and memsets: blocking, with explicit and with implicit handles, and by value.

use super::boundary::{Refusal, attached, enter, entry_points};
use super::sync::{OperationPointer, ValuePointer, to_pointer};
use crate::error::UserError;
use crate::job;
use crate::ops::{Operation, Remote};
use std::ffi::{c_int, c_void};

/// The size of `vgasnet_register_value_t` in bytes.
const VALUE_BYTES: usize = size_of::<u64>();

/// A transfer: what it does, and where.
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
/// The client's memory in the operation is valid for the remote length, or null, until the handle has been synced; that
/// of an [`Operation::PutNow`] until this returns.
unsafe fn start((operation, remote): Transfer) -> Result<OperationPointer, Refusal> {
    // SAFETY: the client's memory is valid for the remote length, or null, until the handle has been synced; that of a
    // `PutNow` until this returns.
    Ok(to_pointer(unsafe { attached()?.ops().start_explicit(operation, remote) }?))
}

/// Starts an implicit transfer.
///
/// # Safety
/// The client's memory in the operation is valid for the remote length, or null, until the thread has synced its
/// implicit operations; that of an [`Operation::PutNow`] until this returns.
unsafe fn start_implicit((operation, remote): Transfer) -> Result<(), Refusal> {
    // SAFETY: the client's memory is valid for the remote length, or null, until the implicit operations are synced;
    // that of a `PutNow` until this returns.
    Ok(unsafe { attached()?.ops().start_implicit(operation, remote) }?)
}

#[inline(always)]
fn at(rank: u32, address: *mut c_void, len_bytes: usize) -> Remote {
    Remote { rank, address: address.addr(), len_bytes }
}

/// Does a get of a number that hits, with nothing else on the way. Returns whether it did.
///
/// # Safety
/// `to` is valid for `len_bytes` bytes, or null.
#[inline(always)]
unsafe fn get_at_once(to: *mut c_void, node: u32, from: *mut c_void, len_bytes: usize) -> bool {
    let Some(runtime) = job::runtime() else { return false };
    // SAFETY: `to` is valid for `len_bytes` bytes, or null.
    len_bytes == VALUE_BYTES && unsafe { runtime.space().translations().get_to::<u64>(to.cast(), node, from.addr()) }
}

/// Does any get.
///
/// # Safety
/// `to` is valid for `len_bytes` bytes, or null.
#[inline(never)]
unsafe fn get_slowly(to: *mut c_void, node: u32, from: *mut c_void, len_bytes: usize, call: &'static str) {
    // SAFETY: `to` is valid for `len_bytes` bytes, or null.
    enter(call, || unsafe { transfer((Operation::Get(to.cast()), at(node, from, len_bytes))) });
}

/// Defines blocking gets.
macro_rules! gets {
    ($($name:ident)*) => {$(
        /// See `include/vgasnet.h`.
        ///
        /// # Safety
        /// `to` is null, or valid for `len` bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
            // SAFETY: `to` is null, or valid for `len` bytes.
            unsafe {
                if !get_at_once(to, node, from, len) {
                    get_slowly(to, node, from, len, stringify!($name));
                }
            }
        }
    )*};
}

gets! { vgasnet_get vgasnet_get_bulk }

entry_points! {
    unsafe fn vgasnet_get_nb | vgasnet_get_nb_bulk(
        to: *mut c_void, node: u32, from: *mut c_void, len: usize,
    ) -> OperationPointer {
        start((Operation::Get(to.cast()), at(node, from, len)))
    }

    unsafe fn vgasnet_get_nbi | vgasnet_get_nbi_bulk(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
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

// Blocking puts may be `PutNow`, too: they are complete when they return.
transfers! {
    vgasnet_put, vgasnet_put_nb, vgasnet_put_nbi(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
        (Operation::PutNow(from.cast()), at(node, to, len))
    }

    vgasnet_put_bulk, vgasnet_put_nb_bulk, vgasnet_put_nbi_bulk(
        node: u32, to: *mut c_void, from: *mut c_void, len: usize,
    ) {
        (Operation::Put(from.cast()), at(node, to, len))
    }

    // As memset does, these take the value as an unsigned char.
    vgasnet_memset, vgasnet_memset_nb, vgasnet_memset_nbi(node: u32, to: *mut c_void, value: c_int, len: usize) {
        (Operation::Set(value as u8), at(node, to, len))
    }

    vgasnet_put_val, vgasnet_put_nb_val, vgasnet_put_nbi_val(node: u32, to: *mut c_void, value: u64, len: usize) {
        (Operation::PutNow(low_order_bytes((&raw const value).cast_mut(), len)?), at(node, to, len))
    }
}

entry_points! {
    unsafe fn vgasnet_get_val(node: u32, from: *mut c_void, len: usize) -> u64 {
        if len == VALUE_BYTES && let Some(value) = attached()?.space().translations().get(node, from.addr()) {
            return Ok(value);
        }
        let mut value = 0;
        transfer((Operation::Get(low_order_bytes(&raw mut value, len)?), at(node, from, len)))?;
        Ok(value)
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
fn low_order_bytes(value: *mut u64, len_bytes: usize) -> Result<*mut u8, Refusal> {
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
        "a value of {len_bytes} bytes; a value has 1 to {VALUE_BYTES} bytes, use vgasnet_get or _put"
    ))
    .into()
}
