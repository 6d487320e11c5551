//! Atomic operations.

use super::boundary::{Refusal, attached, entry_points};
use super::sync::{OperationPointer, to_pointer};
use crate::ops::{AtomicOperation, Kind, Remote};
use std::ffi::{c_int, c_void};
use vgasnet_protocol::byte_message::{AtomicOp, Operands};

/// The operation with a number of the header, in the order of its constants.
fn op(number: c_int) -> Result<AtomicOp, Refusal> {
    use AtomicOp::{Add, And, CompareSwap, Max, MaxSigned, Min, MinSigned, Or, Swap, Xor};
    const OPS: [AtomicOp; 10] = [Add, And, Or, Xor, Swap, CompareSwap, Min, Max, MinSigned, MaxSigned];
    let known = usize::try_from(number).ok().and_then(|number| OPS.get(number)).copied();
    known.ok_or_else(|| {
        let line =
            format!("there is no atomic operation {number}; give one of VGASNET_ATOMIC_ADD to VGASNET_ATOMIC_IMAX");
        Refusal::from(vgasnet_settings::UserError::new(line))
    })
}

/// The operation on a number of `len_bytes`.
fn operation(
    (node, address): (u32, *mut c_void),
    number: c_int,
    (operand, compare): (u64, u64),
    len_bytes: usize,
) -> Result<AtomicOperation, Refusal> {
    let remote = Remote { rank: node, address: address.addr(), len_bytes };
    Ok(AtomicOperation { op: op(number)?, operands: Operands { operand, compare }, remote })
}

/// Defines the blocking, the explicit and the implicit function for numbers of a type.
macro_rules! atomics {
    ($($type:ident: $blocking:ident $explicit:ident $implicit:ident)*) => {
        entry_points! {$(
            fn $blocking(node: u32, address: *mut c_void, op: c_int, operand: $type, compare: $type) -> $type {
                let operands = (operand.into(), compare.into());
                let asked = operation((node, address), op, operands, size_of::<$type>())?;
                Ok(attached()?.ops().atomic(asked)? as $type)
            }
        )*}
        entry_points! {$(
            unsafe fn $explicit(
                old: *mut $type, node: u32, address: *mut c_void, op: c_int, operand: $type, compare: $type,
            ) -> OperationPointer {
                let operands = (operand.into(), compare.into());
                let asked = operation((node, address), op, operands, size_of::<$type>())?;
                Ok(to_pointer(attached()?.ops().start_atomic_explicit(asked, old.cast())?))
            }

            unsafe fn $implicit(
                old: *mut $type, node: u32, address: *mut c_void, op: c_int, operand: $type, compare: $type,
            ) {
                let operands = (operand.into(), compare.into());
                let asked = operation((node, address), op, operands, size_of::<$type>())?;
                Ok(attached()?.ops().start_atomic_implicit(asked, old.cast(), Kind::Put)?)
            }
        )*}
    };
}

atomics! {
    u32: vgasnet_atomic_u32 vgasnet_atomic_u32_nb vgasnet_atomic_u32_nbi
    u64: vgasnet_atomic_u64 vgasnet_atomic_u64_nb vgasnet_atomic_u64_nbi
}
