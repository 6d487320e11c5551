//! Events, and implicit operations.

use super::Outcome;
use crate::capi::boundary::{Refusal, attached, entry_points};
use crate::capi::sync::{Operation, not_ready};
use crate::ex::{self, Category, Event, EventCounts};
use crate::ops::Implicit;
use std::ffi::c_uint;
use vgasnet_settings::UserError;

/// `gex_Event_t`. Like a handle of GASNet-1, it points nowhere.
pub(super) type EventPointer = *mut Operation;

/// `GEX_EVENT_NO_OP`, and the arguments `GEX_EVENT_NOW`, `GEX_EVENT_DEFER` and `GEX_EVENT_GROUP`.
pub(super) const NO_OP: usize = 1;
pub(super) const NOW: usize = 1;
pub(super) const DEFER: usize = 2;
pub(super) const GROUP: usize = 3;

/// `GEX_EC_GET`, and so on.
const GETS: c_uint = 1;
const PUTS: c_uint = 1 << 1;
const MESSAGES: c_uint = 1 << 2;
const SOURCES: c_uint = 1 << 3;
const ATOMICS: c_uint = 1 << 4;

/// An event as C keeps it.
pub(super) fn pointer(event: Option<Event>) -> EventPointer {
    std::ptr::without_provenance_mut(event.map_or(0, Event::to_bits) as usize)
}

fn event(pointer: EventPointer) -> Result<Option<Event>, UserError> {
    if pointer.addr() == NO_OP {
        return Err(UserError::new(
            "GEX_EVENT_NO_OP is no event: the call that returned it has done nothing; repeat it",
        ));
    }
    Ok(Event::from_bits(pointer.addr() as u64))
}

/// The events of an array, as numbers.
///
/// # Safety
/// `events` is null, or points to `count` events used by nothing else during the call.
unsafe fn array<'a>(events: *mut EventPointer, count: usize) -> Result<&'a mut [u64], Refusal> {
    const { assert!(size_of::<EventPointer>() == size_of::<u64>()) };
    if count == 0 {
        return Ok(&mut []);
    }
    if events.is_null() {
        return Err(UserError::new(format!("the array of {count} events is a null pointer")).into());
    }
    // SAFETY: the array is not null, so it has `count` events, used by nothing else. They point nowhere, so they are
    // plain numbers.
    let events = unsafe { std::slice::from_raw_parts_mut(events.cast::<u64>(), count) };
    match events.iter().position(|bits| *bits == NO_OP as u64) {
        None => Ok(events),
        Some(at) => {
            Err(UserError::new(format!("event {at} of the array is GEX_EVENT_NO_OP, which is no event")).into())
        }
    }
}

/// The answer of a test. An unsuccessful test yields to other threads.
fn answer(is_done: bool) -> Outcome {
    if is_done {
        return Outcome::DONE;
    }
    not_ready();
    Outcome::NOT_READY
}

fn is_some(found: EventCounts) -> bool {
    found.complete > 0 || found.pending == 0
}

/// The implicit operations selected by a mask. Active Messages are complete once sent.
fn implicit(mask: c_uint) -> Result<Implicit, UserError> {
    const KNOWN: c_uint = GETS | PUTS | MESSAGES | SOURCES | ATOMICS;
    if mask != 0 && mask & KNOWN == 0 {
        return Err(UserError::new(format!(
            "the mask {mask:#x} names no category; give GEX_EC_ALL, or others of GEX_EC_"
        )));
    }
    let has = |category| mask & category != 0;
    Ok(Implicit { gets: has(GETS), puts: has(PUTS), atomics: has(ATOMICS), sources: has(SOURCES) })
}

entry_points! {
    fn vgasnet_ex_Event_Test(pointer: EventPointer) -> Outcome {
        let Some(event) = event(pointer)? else { return Ok(Outcome::DONE) };
        Ok(answer(ex::test(event, attached()?.ops())?))
    }

    fn vgasnet_ex_Event_Wait(pointer: EventPointer) {
        let Some(event) = event(pointer)? else { return Ok(()) };
        Ok(ex::wait(event, attached()?.ops())?)
    }

    fn vgasnet_ex_Event_QueryLeaf(root: EventPointer, category: c_uint) -> EventPointer {
        let Some(root) = event(root)? else { return Ok(pointer(None)) };
        let category = match category {
            GETS => Category::Get,
            PUTS => Category::Put,
            MESSAGES => Category::Message,
            SOURCES => Category::Source,
            ATOMICS => Category::Atomic,
            _ => {
                let line = format!("category {category:#x} is unknown; give one of GEX_EC_GET, _PUT, _AM, _LC and _RMW");
                return Err(UserError::new(line).into());
            }
        };
        Ok(pointer(root.leaf(category, attached()?.ops().completions())?))
    }

    fn vgasnet_ex_NBI_Test(mask: c_uint, _flags: u32) -> Outcome {
        Ok(answer(attached()?.ops().test_implicit(implicit(mask)?, false)?))
    }

    fn vgasnet_ex_NBI_Wait(mask: c_uint, _flags: u32) {
        Ok(attached()?.ops().wait_implicit(implicit(mask)?)?)
    }

    fn vgasnet_ex_NBI_BeginAccessRegion(_flags: u32) {
        Ok(attached()?.ops().begin_region()?)
    }

    fn vgasnet_ex_NBI_EndAccessRegion(_flags: u32) -> EventPointer {
        Ok(pointer(attached()?.ops().end_region()?.map(Event::root)))
    }
}

entry_points! {
    unsafe fn vgasnet_ex_Event_TestSome(events: *mut EventPointer [count], count: usize, _flags: u32) -> Outcome {
        Ok(answer(is_some(ex::sweep(array(events, count)?, attached()?.ops())?)))
    }

    unsafe fn vgasnet_ex_Event_TestAll(events: *mut EventPointer [count], count: usize, _flags: u32) -> Outcome {
        Ok(answer(ex::sweep(array(events, count)?, attached()?.ops())?.pending == 0))
    }

    unsafe fn vgasnet_ex_Event_WaitSome(events: *mut EventPointer [count], count: usize, _flags: u32) {
        let (events, ops) = (array(events, count)?, attached()?.ops());
        if !is_some(ex::sweep(events, ops)?) {
            ex::wait_any(events, ops)?;
            ex::sweep(events, ops)?;
        }
        Ok(())
    }

    unsafe fn vgasnet_ex_Event_WaitAll(events: *mut EventPointer [count], count: usize, _flags: u32) {
        let (events, ops) = (array(events, count)?, attached()?.ops());
        Ok(ex::wait_all(events, ops)?)
    }
}
