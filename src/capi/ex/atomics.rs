//! Atomic domains and their operations.

use super::events::{EventPointer, pointer};
use crate::capi::OK;
use crate::capi::boundary::{Refusal, attached, entry_points};
use crate::coll::ElementType;
use crate::ex::{self, Asked, Domain, Event, Object, Request, Team};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{Ordering, fence};
use vgasnet_settings::UserError;

/// `GEX_FLAG_AD_REL`.
const RELEASE: u32 = 1 << 1;
/// `GEX_FLAG_AD_ACQ`.
const ACQUIRE: u32 = 1 << 2;

/// A number as C passes it.
trait Number: Copy {
    const TYPE: ElementType;
    /// Its bits. A short number's are in the low half.
    fn bits(self) -> u64;
}

macro_rules! numbers {
    ($($number:ty: $type:ident, $bits:expr;)*) => {$(
        impl Number for $number {
            const TYPE: ElementType = ElementType::$type;
            #[inline(always)]
            fn bits(self) -> u64 {
                let bits: fn($number) -> u64 = $bits;
                bits(self)
            }
        }
    )*};
}

numbers! {
    i32: I32, |number| u64::from(number as u32);
    u32: U32, u64::from;
    i64: I64, |number| number as u64;
    u64: U64, |number| number;
    f32: F32, |number| u64::from(number.to_bits());
    f64: F64, f64::to_bits;
}

/// The operation to carry out, and the place for the number's old value. Earlier accesses stay before the operation if
/// the client asks for it.
///
/// # Safety
/// `domain` is null, or has been the handle of an object.
#[inline(always)]
unsafe fn ask<T>(domain: *const Domain, result: *mut T, request: &Request) -> Result<(Asked, *mut u8), Refusal> {
    // SAFETY: `domain` is null, or has been the handle of an object.
    let asked = unsafe { ex::find(domain) }?.ask(request)?;
    if asked.is_fetching && result.is_null() {
        return Err(no_result(request.op));
    }
    if request.flags & RELEASE != 0 {
        fence(Ordering::Release);
    }
    Ok((asked, if asked.is_fetching { result.cast() } else { std::ptr::null_mut() }))
}

#[cold]
fn no_result(op: u32) -> Refusal {
    let line = format!(
        "the place for the result of operation {op:#x} is a null pointer; give one, or an operation without a result"
    );
    UserError::new(line).into()
}

/// Keeps later accesses behind a complete operation if the client asks for it. For a pending operation its sync does.
#[inline]
fn acquire(flags: u32) {
    if flags & ACQUIRE != 0 {
        fence(Ordering::Acquire);
    }
}

/// Defines the explicit and the implicit function for numbers of a type.
macro_rules! operations {
    ($($number:ty: $explicit:ident $implicit:ident)*) => {
        entry_points! {$(
            unsafe fn $explicit(
                domain: *const Domain, result: *mut $number [0], rank: u32, address: *mut c_void, op: u32,
                operand: $number, other: $number, flags: u32,
            ) -> EventPointer {
                let (data_type, operands) = (<$number>::TYPE, (operand.bits(), other.bits()));
                let request = Request { data_type, op, operands, rank, address: address.addr(), flags };
                let (asked, old) = ask(domain, result, &request)?;
                let root = attached()?.ops().start_atomic_explicit(asked.operation, old)?;
                acquire(flags);
                Ok(pointer(root.map(Event::root)))
            }

            unsafe fn $implicit(
                domain: *const Domain, result: *mut $number [0], rank: u32, address: *mut c_void, op: u32,
                operand: $number, other: $number, flags: u32,
            ) -> c_int {
                let (data_type, operands) = (<$number>::TYPE, (operand.bits(), other.bits()));
                let request = Request { data_type, op, operands, rank, address: address.addr(), flags };
                let (asked, old) = ask(domain, result, &request)?;
                attached()?.ops().start_atomic_implicit(asked.operation, old, asked.kind)?;
                acquire(flags);
                Ok(OK)
            }
        )*}
    };
}

operations! {
    i32: vgasnet_ex_AD_OpNB_I32 vgasnet_ex_AD_OpNBI_I32
    u32: vgasnet_ex_AD_OpNB_U32 vgasnet_ex_AD_OpNBI_U32
    i64: vgasnet_ex_AD_OpNB_I64 vgasnet_ex_AD_OpNBI_I64
    u64: vgasnet_ex_AD_OpNB_U64 vgasnet_ex_AD_OpNBI_U64
    f32: vgasnet_ex_AD_OpNB_FLT vgasnet_ex_AD_OpNBI_FLT
    f64: vgasnet_ex_AD_OpNB_DBL vgasnet_ex_AD_OpNBI_DBL
}

entry_points! {
    unsafe fn vgasnet_ex_AD_Create(
        domain: *mut *const Domain, team: *const Team, data_type: u32, ops: u32, flags: u32,
    ) {
        let domain = domain.as_mut().ok_or_else(|| UserError::new("the place for the atomic domain is a null pointer"))?;
        let team = ex::find(team)?;
        let made = Domain::new(team, data_type, ops, flags)?;
        // The call does not synchronise: a rank may enter it only after another rank has left. Comparing needs strict
        // mode.
        if attached()?.ops().is_strict() {
            ex::agree_on_domain(&made, attached()?.coll())?;
        }
        // The domain is never freed, so that handles of destroyed domains are recognised.
        *domain = ex::give_out(Box::leak(Box::new(made)));
        Ok(())
    }

    unsafe fn vgasnet_ex_AD_Destroy(domain: *const Domain) {
        ex::find(domain)?.retire();
        Ok(())
    }

    unsafe fn vgasnet_ex_AD_QueryFlags(domain: *const Domain) -> u32 {
        Ok(ex::find(domain)?.flags)
    }

    unsafe fn vgasnet_ex_AD_QueryTM(domain: *const Domain) -> *mut Team {
        Ok((&raw const *ex::find(domain)?.team).cast_mut())
    }

    unsafe fn vgasnet_ex_AD_QueryDT(domain: *const Domain) -> u32 {
        Ok(ex::find(domain)?.data_type.bit())
    }

    unsafe fn vgasnet_ex_AD_QueryOps(domain: *const Domain) -> u32 {
        Ok(ex::find(domain)?.ops)
    }
}
