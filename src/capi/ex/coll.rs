//! Collectives.

use super::events::{EventPointer, pointer};
use crate::capi::boundary::{Refusal, attached, entry_points};
use crate::coll::{CombineFunction, Combining, ElementType, Operator, Reduction, built_in};
use crate::ex::{self, Collective, Moved, Team};
use std::ffi::c_void;
use vgasnet_settings::UserError;

/// `GEX_DT_USER`. [`ElementType`] has the other types.
const USER_TYPE: u32 = 1 << 6;

/// `GEX_OP_USER` and `GEX_OP_USER_NC`. [`combining`] has the other operations.
const USER: u32 = 1 << 30;
const USER_IN_ORDER: u32 = 1 << 31;

/// `GEX_OP_AND`, and so on.
fn combining(operation: u32) -> Option<Combining> {
    Some(match ex::operation_name(operation)? {
        "AND" => Combining::And,
        "OR" => Combining::Or,
        "XOR" => Combining::Xor,
        "ADD" => Combining::Add,
        "MULT" => Combining::Multiply,
        "MIN" => Combining::Min,
        "MAX" => Combining::Max,
        _ => return None,
    })
}

/// The client's arguments for a reduction.
struct Reducing {
    data_type: u32,
    element_bytes: usize,
    count: usize,
    operation: u32,
    function: Option<CombineFunction>,
    cdata: *mut c_void,
}

impl Reducing {
    /// The reduction, and the bytes of all its elements.
    fn check(&self) -> Result<(Reduction, usize), UserError> {
        let &Reducing { data_type, element_bytes, count, .. } = self;
        let of = ElementType::of_bit(data_type);
        if of.is_none() && data_type != USER_TYPE {
            return Err(UserError::new(format!("data type {data_type:#x} is unknown; give one of GEX_DT_")));
        }
        if element_bytes == 0 || of.is_some_and(|of| of.bytes() != element_bytes) {
            let allowed = of.map_or_else(|| "at least 1".to_owned(), |of| of.bytes().to_string());
            let line = format!("elements of data type {data_type:#x} have {element_bytes} bytes; give {allowed}");
            return Err(UserError::new(line));
        }
        let len_bytes = count.checked_mul(element_bytes).ok_or_else(|| {
            UserError::new(format!("{count} elements of {element_bytes} bytes are more than 2^64 bytes; give fewer"))
        })?;
        Ok((self.reduction(of)?, len_bytes))
    }

    fn reduction(&self, of: Option<ElementType>) -> Result<Reduction, UserError> {
        let &Reducing { data_type, element_bytes, operation, cdata, .. } = self;
        if let USER | USER_IN_ORDER = operation {
            let function = self.function.ok_or_else(|| {
                UserError::new(
                    "operation GEX_OP_USER comes with a null pointer; give a function that combines elements",
                )
            })?;
            let (cdata, commutes) = (cdata.expose_provenance(), operation == USER);
            return Ok(Reduction { element_bytes, operator: Operator::OfCall { function, cdata, commutes } });
        }
        let combining = combining(operation).ok_or_else(|| {
            UserError::new(format!(
                "operation {operation:#x} is not a reduction; give one of GEX_OP_ADD, _MULT, _MIN, _MAX, _AND, _OR, _XOR and _USER"
            ))
        })?;
        of.and_then(|of| built_in(of, combining)).ok_or_else(|| {
            UserError::new(format!(
                "operation {operation:#x} does not go with data type {data_type:#x}: GEX_OP_AND, _OR and _XOR take integers, \
                 and GEX_DT_USER takes only GEX_OP_USER"
            ))
        })
    }
}

/// Enters a collective.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object. Source and destination, where this rank has them, are
/// valid for the bytes until the event is synced.
unsafe fn start(what: Collective, team: *const Team, moved: Moved) -> Result<EventPointer, Refusal> {
    // SAFETY: `team` is null, a pair, or has been the handle of an object.
    let team = unsafe { ex::find(team) }?;
    let runtime = attached()?;
    // SAFETY: source and destination, where this rank has them, are valid for the bytes until the event is synced.
    Ok(pointer(unsafe { ex::start_collective(what, team, moved, runtime.coll(), runtime.ops()) }?))
}

fn moved(source: *const c_void, destination: *mut c_void, len_bytes: usize) -> Moved {
    Moved { source: source.expose_provenance(), destination: destination.expose_provenance(), len_bytes }
}

entry_points! {
    unsafe fn vgasnet_ex_Coll_BarrierNB(team: *const Team, _flags: u32) -> EventPointer {
        start(Collective::Barrier, team, Moved::default())
    }

    unsafe fn vgasnet_ex_Coll_BroadcastNB(
        team: *const Team, root: u32, destination: *mut c_void, source: *const c_void, len_bytes: usize, _flags: u32,
    ) -> EventPointer {
        start(Collective::Broadcast { root }, team, moved(source, destination, len_bytes))
    }

    unsafe fn vgasnet_ex_Coll_ReduceToOneNB(
        team: *const Team, root: u32, destination: *mut c_void, source: *const c_void, data_type: u32, element_bytes: usize,
        count: usize, operation: u32, function: Option<CombineFunction>, cdata: *mut c_void, _flags: u32,
    ) -> EventPointer {
        let (by, len_bytes) = Reducing { data_type, element_bytes, count, operation, function, cdata }.check()?;
        start(Collective::ReduceToOne { root, by }, team, moved(source, destination, len_bytes))
    }

    unsafe fn vgasnet_ex_Coll_ReduceToAllNB(
        team: *const Team, destination: *mut c_void, source: *const c_void, data_type: u32, element_bytes: usize, count: usize,
        operation: u32, function: Option<CombineFunction>, cdata: *mut c_void, _flags: u32,
    ) -> EventPointer {
        let (by, len_bytes) = Reducing { data_type, element_bytes, count, operation, function, cdata }.check()?;
        start(Collective::ReduceToAll { by }, team, moved(source, destination, len_bytes))
    }
}
