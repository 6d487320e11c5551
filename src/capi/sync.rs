//! Waiting for operations, and testing them.

use super::boundary::{Refusal, attached, entry_points};
use super::{ERR_NOT_READY, OK};
use crate::job;
use crate::ops::{Implicit, Ops};
use std::ffi::c_int;
use vgasnet_engine::request::Handle;
use vgasnet_settings::UserError;

/// `struct vgasnet_operation` is never defined. Its pointers are the bits of a [`Handle`] and point nowhere.
#[repr(C)]
#[derive(Debug)]
pub struct Operation {
    _private: [u8; 0],
}

/// `struct vgasnet_value_operation` is never defined either.
#[repr(C)]
#[derive(Debug)]
pub struct ValueOperation {
    _private: [u8; 0],
}

/// `vgasnet_handle_t`; null for `VGASNET_INVALID_HANDLE`.
pub type OperationPointer = *mut Operation;

/// `vgasnet_valget_handle_t`.
pub type ValuePointer = *mut ValueOperation;

const _: () = assert!(size_of::<usize>() == size_of::<Handle>(), "a pointer has to have room for a handle");

/// A handle as C keeps it.
pub(super) fn to_pointer<T>(handle: Option<Handle>) -> *mut T {
    std::ptr::without_provenance_mut(handle.map_or(0, Handle::to_bits) as usize)
}

fn from_pointer<T>(pointer: *mut T) -> Option<Handle> {
    Handle::from_bits(pointer.addr() as u64)
}

/// Counts of the operations in an array of handles.
#[derive(Clone, Copy, Default)]
struct HandleCounts {
    complete: usize,
    pending: usize,
}

impl HandleCounts {
    fn all(self) -> bool {
        self.pending == 0
    }

    fn some(self) -> bool {
        self.complete > 0 || self.pending == 0
    }
}

/// Waits for all operations, and invalidates their handles.
fn wait_all(handles: &mut [OperationPointer]) -> Result<(), Refusal> {
    let ops = attached()?.ops();
    for pointer in handles {
        if let Some(handle) = from_pointer(*pointer) {
            ops.wait_explicit(handle)?;
            *pointer = to_pointer(None);
        }
    }
    Ok(())
}

/// Waits for at least one operation, and invalidates the handles of complete ones.
fn wait_some(handles: &mut [OperationPointer]) -> Result<(), Refusal> {
    let ops = attached()?.ops();
    if !sweep(ops, handles)?.some() {
        ops.wait_any(handles.iter().copied().filter_map(from_pointer))?;
        sweep(ops, handles)?;
    }
    Ok(())
}

/// Invalidates the handles of complete operations.
fn sweep(ops: &Ops, handles: &mut [OperationPointer]) -> Result<HandleCounts, UserError> {
    let mut found = HandleCounts::default();
    for pointer in handles {
        let Some(handle) = from_pointer(*pointer) else { continue };
        if ops.test_explicit(handle)? {
            *pointer = to_pointer(None);
            found.complete += 1;
        } else {
            found.pending += 1;
        }
    }
    Ok(found)
}

/// Sweeps until `enough`: once, or at most twice if the call `polls`, with a step of the engine in between.
fn try_sweep(
    handles: &mut [OperationPointer],
    enough: fn(HandleCounts) -> bool,
    polls: bool,
) -> Result<c_int, Refusal> {
    let ops = attached()?.ops();
    let mut found = sweep(ops, handles)?;
    if polls && !enough(found) {
        ops.driver().poll();
        found = sweep(ops, handles)?;
    }
    Ok(if enough(found) { OK } else { not_ready() })
}

/// The answer of an unsuccessful try. Yields to other threads.
#[cold]
pub(super) fn not_ready() -> c_int {
    job::runtime().into_iter().for_each(|runtime| runtime.driver().back_off());
    ERR_NOT_READY
}

/// The caller's handles.
///
/// # Safety
/// `handles` is null, or points to `count` handles, used by nothing else during the call.
unsafe fn array<'a>(handles: *mut OperationPointer, count: usize) -> Result<&'a mut [OperationPointer], Refusal> {
    if count == 0 {
        return Ok(&mut []);
    }
    if handles.is_null() {
        return Err(Refusal::bad_argument(format!("the array of {count} handles is a null pointer")));
    }
    // SAFETY: the array is not null, so it has `count` handles, used by nothing else during the call.
    Ok(unsafe { std::slice::from_raw_parts_mut(handles, count) })
}

/// Tests implicit operations, with a step of the engine if the call `polls`.
fn test_implicit(which: Implicit, polls: bool) -> Result<c_int, Refusal> {
    Ok(if attached()?.ops().test_implicit(which, polls)? { OK } else { not_ready() })
}

entry_points! {
    fn vgasnet_wait_syncnb | vgasnet_coll_wait_sync(pointer: OperationPointer) {
        let ops = attached()?.ops();
        Ok(from_pointer(pointer).map_or(Ok(()), |handle| ops.wait_explicit(handle))?)
    }

    fn vgasnet_try_syncnb | vgasnet_coll_try_sync(pointer: OperationPointer) -> c_int {
        try_sweep(&mut [pointer], HandleCounts::all, true)
    }

    fn vgasnet_wait_syncnb_valget(pointer: ValuePointer) -> u64 {
        let ops = attached()?.ops();
        let Some(handle) = from_pointer(pointer) else {
            return Err(UserError::new("a null handle; give what vgasnet_get_nb_val returned").into());
        };
        Ok(ops.wait_value(handle)?)
    }

    fn vgasnet_wait_syncnbi_gets() {
        Ok(attached()?.ops().wait_implicit(Implicit::GETS)?)
    }

    fn vgasnet_wait_syncnbi_puts() {
        Ok(attached()?.ops().wait_implicit(Implicit::PUTS)?)
    }

    fn vgasnet_wait_syncnbi_all() {
        Ok(attached()?.ops().wait_implicit(Implicit::ALL)?)
    }

    fn vgasnet_try_syncnbi_gets() -> c_int {
        test_implicit(Implicit::GETS, true)
    }

    fn vgasnet_try_syncnbi_puts() -> c_int {
        test_implicit(Implicit::PUTS, true)
    }

    fn vgasnet_try_syncnbi_all() -> c_int {
        test_implicit(Implicit::ALL, true)
    }

    fn vgasnet_try_syncnb_nopoll(pointer: OperationPointer) -> c_int {
        try_sweep(&mut [pointer], HandleCounts::all, false)
    }

    fn vgasnet_try_syncnbi_gets_nopoll() -> c_int {
        test_implicit(Implicit::GETS, false)
    }

    fn vgasnet_try_syncnbi_puts_nopoll() -> c_int {
        test_implicit(Implicit::PUTS, false)
    }

    fn vgasnet_try_syncnbi_all_nopoll() -> c_int {
        test_implicit(Implicit::ALL, false)
    }

    fn vgasnet_begin_nbi_accessregion() {
        Ok(attached()?.ops().begin_region()?)
    }

    fn vgasnet_end_nbi_accessregion() -> OperationPointer {
        Ok(to_pointer(attached()?.ops().end_region()?))
    }
}

entry_points! {
    unsafe fn vgasnet_wait_syncnb_all | vgasnet_coll_wait_sync_all(handles: *mut OperationPointer [count], count: usize) {
        wait_all(array(handles, count)?)
    }

    unsafe fn vgasnet_try_syncnb_all | vgasnet_coll_try_sync_all(handles: *mut OperationPointer [count],
    count: usize) -> c_int {
        try_sweep(array(handles, count)?, HandleCounts::all, true)
    }

    unsafe fn vgasnet_wait_syncnb_some | vgasnet_coll_wait_sync_some(handles: *mut OperationPointer [count],
    count: usize) {
        wait_some(array(handles, count)?)
    }

    unsafe fn vgasnet_try_syncnb_some | vgasnet_coll_try_sync_some(handles: *mut OperationPointer [count],
    count: usize) -> c_int {
        try_sweep(array(handles, count)?, HandleCounts::some, true)
    }

    unsafe fn vgasnet_try_syncnb_all_nopoll(handles: *mut OperationPointer [count], count: usize) -> c_int {
        try_sweep(array(handles, count)?, HandleCounts::all, false)
    }

    unsafe fn vgasnet_try_syncnb_some_nopoll(handles: *mut OperationPointer [count], count: usize) -> c_int {
        try_sweep(array(handles, count)?, HandleCounts::some, false)
    }
}
