//! Gets, puts and memsets: blocking, with explicit and with implicit handles, and by value.

use super::boundary::{Refusal, attached, entry_points};
use super::sync::{OperationPointer, ValuePointer, to_pointer};
use crate::error::UserError;
use crate::ops::{Operation, Remote};
use std::ffi::{c_int, c_void};

/// The size of `vgasnet_register_value_t` in bytes.
const VALUE_BYTES: usize = size_of::<u64>();

/// Does an operation.
///
/// # Safety
/// The client's memory in `operation` is valid for `len_bytes` bytes, or null.
#[inline(always)]
unsafe fn transfer(operation: Operation, node: u32, address: *mut c_void, len_bytes: usize) -> Result<(), Refusal> {
    let remote = Remote { rank: node, address: address.addr(), len_bytes };
    // SAFETY: the client's memory is valid for `len_bytes` bytes, or null.
    Ok(unsafe { attached()?.ops().transfer(operation, remote) }?)
}

/// Starts an operation with an explicit handle.
///
/// # Safety
/// The client's memory in `operation` is valid for `len_bytes` bytes, or null, until the handle has been synced; that
/// of an [`Operation::PutNow`] until this returns.
unsafe fn start(
    operation: Operation,
    node: u32,
    address: *mut c_void,
    len_bytes: usize,
) -> Result<OperationPointer, Refusal> {
    let remote = Remote { rank: node, address: address.addr(), len_bytes };
    // SAFETY: the client's memory is valid for `len_bytes` bytes, or null, until the handle has been synced; that of a
    // `PutNow` until this returns.
    Ok(to_pointer(unsafe { attached()?.ops().start_explicit(operation, remote) }?))
}

/// Starts an implicit operation.
///
/// # Safety
/// The client's memory in `operation` is valid for `len_bytes` bytes, or null, until the thread has synced its implicit
/// operations; that of an [`Operation::PutNow`] until this returns.
unsafe fn start_implicit(
    operation: Operation,
    node: u32,
    address: *mut c_void,
    len_bytes: usize,
) -> Result<(), Refusal> {
    let remote = Remote { rank: node, address: address.addr(), len_bytes };
    // SAFETY: the client's memory is valid for `len_bytes` bytes, or null, until the implicit operations are synced;
    // that of a `PutNow` until this returns.
    Ok(unsafe { attached()?.ops().start_implicit(operation, remote) }?)
}

fn put(source: *mut c_void) -> Operation {
    Operation::Put(source.cast())
}

fn put_now(source: *mut c_void) -> Operation {
    Operation::PutNow(source.cast())
}

fn get(destination: *mut c_void) -> Operation {
    Operation::Get(destination.cast())
}

/// As memset does, takes the value as an unsigned char.
fn set(value: c_int) -> Operation {
    Operation::Set(value as u8)
}

entry_points! {
    unsafe fn vgasnet_get(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
        transfer(get(to), node, from, len)
    }

    unsafe fn vgasnet_put(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
        transfer(put(from), node, to, len)
    }

    unsafe fn vgasnet_get_bulk(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
        transfer(get(to), node, from, len)
    }

    unsafe fn vgasnet_put_bulk(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
        transfer(put(from), node, to, len)
    }

    unsafe fn vgasnet_memset(node: u32, to: *mut c_void, value: c_int, len: usize) {
        transfer(set(value), node, to, len)
    }

    unsafe fn vgasnet_get_nb(to: *mut c_void, node: u32, from: *mut c_void, len: usize) -> OperationPointer {
        start(get(to), node, from, len)
    }

    unsafe fn vgasnet_put_nb(node: u32, to: *mut c_void, from: *mut c_void, len: usize) -> OperationPointer {
        start(put_now(from), node, to, len)
    }

    unsafe fn vgasnet_get_nb_bulk(to: *mut c_void, node: u32, from: *mut c_void, len: usize) -> OperationPointer {
        start(get(to), node, from, len)
    }

    unsafe fn vgasnet_put_nb_bulk(node: u32, to: *mut c_void, from: *mut c_void, len: usize) -> OperationPointer {
        start(put(from), node, to, len)
    }

    unsafe fn vgasnet_memset_nb(node: u32, to: *mut c_void, value: c_int, len: usize) -> OperationPointer {
        start(set(value), node, to, len)
    }

    unsafe fn vgasnet_get_nbi(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
        start_implicit(get(to), node, from, len)
    }

    unsafe fn vgasnet_put_nbi(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
        start_implicit(put_now(from), node, to, len)
    }

    unsafe fn vgasnet_get_nbi_bulk(to: *mut c_void, node: u32, from: *mut c_void, len: usize) {
        start_implicit(get(to), node, from, len)
    }

    unsafe fn vgasnet_put_nbi_bulk(node: u32, to: *mut c_void, from: *mut c_void, len: usize) {
        start_implicit(put(from), node, to, len)
    }

    unsafe fn vgasnet_memset_nbi(node: u32, to: *mut c_void, value: c_int, len: usize) {
        start_implicit(set(value), node, to, len)
    }

    unsafe fn vgasnet_put_val(node: u32, to: *mut c_void, value: u64, len: usize) {
        let mut value = value;
        transfer(put(low_order_bytes(&mut value, len)?), node, to, len)
    }

    unsafe fn vgasnet_put_nb_val(node: u32, to: *mut c_void, value: u64, len: usize) -> OperationPointer {
        let mut value = value;
        start(put_now(low_order_bytes(&mut value, len)?), node, to, len)
    }

    unsafe fn vgasnet_put_nbi_val(node: u32, to: *mut c_void, value: u64, len: usize) {
        let mut value = value;
        start_implicit(put_now(low_order_bytes(&mut value, len)?), node, to, len)
    }

    unsafe fn vgasnet_get_val(node: u32, from: *mut c_void, len: usize) -> u64 {
        let mut value = 0;
        transfer(get(low_order_bytes(&mut value, len)?), node, from, len)?;
        Ok(value)
    }
}

entry_points! {
    fn vgasnet_get_nb_val(node: u32, from: *mut c_void, len: usize) -> ValuePointer {
        check_value_bytes(len)?;
        let remote = Remote { rank: node, address: from.addr(), len_bytes: len };
        Ok(to_pointer(Some(attached()?.ops().start_value(remote)?)))
    }
}

/// The `len_bytes` low-order bytes of a value.
#[inline(always)]
fn low_order_bytes(value: &mut u64, len_bytes: usize) -> Result<*mut c_void, Refusal> {
    check_value_bytes(len_bytes)?;
    let skipped = if cfg!(target_endian = "big") { VALUE_BYTES - len_bytes } else { 0 };
    Ok(std::ptr::from_mut(value).cast::<u8>().wrapping_add(skipped).cast())
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
