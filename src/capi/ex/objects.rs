//! Queries of clients, endpoints, segments and teams.

use super::events::EventPointer;
use super::events::pointer;
use crate::am::Description;
use crate::capi::boundary::{Refusal, entry_points, initialised};
use crate::capi::{ERR_BAD_ARG, ERR_RESOURCE, OK};
use crate::ex::{self, Bound, Client, Domain, Endpoint, Object, Primordial, Segment, Team};
use crate::job;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_settings::UserError;

/// Whether to report refusals that clients may handle as "not there".
static IS_VERBOSE: AtomicBool = AtomicBool::new(true);

/// The objects made when the job begins.
pub(super) fn primordial() -> Result<&'static Primordial, Refusal> {
    initialised()?;
    Ok(ex::primordial().expect("the job is initialised"))
}

/// Answers with a code that clients can handle. Also tells the user, unless the client turned verbose errors off.
pub(super) fn refuse(call: &str, code: c_int, line: &str) -> c_int {
    if IS_VERBOSE.load(Ordering::Relaxed) {
        job::report(call, &UserError::new(line));
    }
    code
}

/// `gex_EP_Location_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    pub(super) rank: u32,
    pub(super) endpoint_index: u16,
}

/// Defines the functions for the client's data of each kind of object.
macro_rules! cdata {
    ($($object:ident $set:ident $query:ident)*) => {
        entry_points! {
            $(
                unsafe fn $set(object: *const $object, cdata: *const c_void) {
                    ex::find(object)?.set_cdata(cdata.cast_mut());
                    Ok(())
                }

                unsafe fn $query(object: *const $object) -> *mut c_void {
                    Ok(ex::find(object)?.cdata())
                }
            )*
        }
    };
}

cdata! {
    Client vgasnet_ex_Client_SetCData vgasnet_ex_Client_QueryCData
    Endpoint vgasnet_ex_EP_SetCData vgasnet_ex_EP_QueryCData
    Segment vgasnet_ex_Segment_SetCData vgasnet_ex_Segment_QueryCData
    Team vgasnet_ex_TM_SetCData vgasnet_ex_TM_QueryCData
    Domain vgasnet_ex_AD_SetCData vgasnet_ex_AD_QueryCData
}

entry_points! {
    unsafe fn vgasnet_ex_Client_QueryFlags(client: *const Client) -> u32 {
        Ok(ex::find(client)?.flags)
    }

    unsafe fn vgasnet_ex_Client_QueryName(client: *const Client) -> *const c_char {
        Ok(ex::find(client)?.name.as_ptr())
    }

    unsafe fn vgasnet_ex_EP_QueryClient(endpoint: *const Endpoint) -> *mut Client {
        ex::find(endpoint)?;
        Ok((&raw const primordial()?.client).cast_mut())
    }

    unsafe fn vgasnet_ex_EP_QueryFlags(endpoint: *const Endpoint) -> u32 {
        ex::find(endpoint).map(|_| 0).map_err(Refusal::from)
    }

    unsafe fn vgasnet_ex_EP_QueryIndex(endpoint: *const Endpoint) -> u16 {
        Ok(ex::find(endpoint)?.index)
    }

    unsafe fn vgasnet_ex_EP_QuerySegment(endpoint: *const Endpoint) -> *mut Segment {
        ex::find(endpoint)?;
        Ok(own_segment())
    }

    unsafe fn vgasnet_ex_EP_RegisterHandlers(
        endpoint: *const Endpoint, table: *mut Description [entries], entries: usize,
    ) -> c_int {
        ex::find(endpoint)?;
        if table.is_null() && entries > 0 {
            return Err(Refusal::bad_argument(format!("the table of {entries} handlers is a null pointer")));
        }
        let table = if entries == 0 { &mut [] } else { std::slice::from_raw_parts_mut(table, entries) };
        let registered = initialised()?.handlers().register_described(table);
        registered.map(|()| OK).map_err(|bad| Refusal::bad_argument(job::bad_table(bad)))
    }

    unsafe fn vgasnet_ex_Segment_QueryClient(segment: *const Segment) -> *mut Client {
        ex::find(segment)?;
        Ok((&raw const primordial()?.client).cast_mut())
    }

    unsafe fn vgasnet_ex_Segment_QueryFlags(segment: *const Segment) -> u32 {
        ex::find(segment).map(|_| 0).map_err(Refusal::from)
    }

    unsafe fn vgasnet_ex_Segment_QueryAddr(segment: *const Segment) -> *mut c_void {
        Ok(std::ptr::without_provenance_mut(ex::find(segment)?.bound.address))
    }

    unsafe fn vgasnet_ex_Segment_QuerySize(segment: *const Segment) -> usize {
        Ok(ex::find(segment)?.bound.size_bytes)
    }

    unsafe fn vgasnet_ex_TM_QueryClient(team: *const Team) -> *mut Client {
        ex::find(team)?;
        Ok((&raw const primordial()?.client).cast_mut())
    }

    unsafe fn vgasnet_ex_TM_QueryEP(team: *const Team) -> *mut Endpoint {
        ex::find(team)?;
        Ok((&raw const primordial()?.endpoint).cast_mut())
    }

    unsafe fn vgasnet_ex_TM_QueryFlags(team: *const Team) -> u32 {
        Ok(ex::find(team)?.flags)
    }

    unsafe fn vgasnet_ex_TM_QueryRank(team: *const Team) -> u32 {
        Ok(ex::find(team)?.rank)
    }

    unsafe fn vgasnet_ex_TM_QuerySize(team: *const Team) -> u32 {
        Ok(ex::find(team)?.size)
    }

    unsafe fn vgasnet_ex_TM_TranslateRankToJobrank(team: *const Team, rank: u32) -> u32 {
        Ok(ex::find(team)?.jobrank(rank)?)
    }

    unsafe fn vgasnet_ex_TM_TranslateJobrankToRank(team: *const Team, jobrank: u32) -> u32 {
        Ok(ex::find(team)?.rank_of(jobrank).unwrap_or(u32::MAX))
    }

    unsafe fn vgasnet_ex_TM_Pair(endpoint: *const Endpoint, remote_index: u16) -> *mut Team {
        Ok(ex::pair(ex::find(endpoint)?.index, remote_index)?)
    }

    unsafe fn vgasnet_ex_EP_QueryBoundSegmentNB(
        team: *const Team, rank: u32, owner: *mut *mut c_void, local: *mut *mut c_void, size: *mut usize, _flags: u32,
    ) -> EventPointer {
        let bound = bound_of(team, rank)?;
        tell(bound.unwrap_or(Told::NOTHING), owner, local, size);
        Ok(pointer(None))
    }

    unsafe fn vgasnet_ex_Segment_QueryBound(
        team: *const Team, rank: u32, owner: *mut *mut c_void, local: *mut *mut c_void, size: *mut usize,
    ) -> c_int {
        let Some(bound) = bound_of(team, rank)? else { return Ok(ERR_RESOURCE) };
        tell(bound, owner, local, size);
        Ok(OK)
    }
}

/// The answer to a query of a bound segment.
#[derive(Clone, Copy)]
struct Told {
    owner: usize,
    local: usize,
    size_bytes: usize,
}

impl Told {
    const NOTHING: Told = Told { owner: 0, local: 0, size_bytes: 0 };
}

/// The segment of a rank in a team. Only the rank itself can load from it.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object.
unsafe fn bound_of(team: *const Team, rank: u32) -> Result<Option<Told>, Refusal> {
    let conduit = initialised()?.conduit();
    // SAFETY: `team` is null, a pair, or has been the handle of an object.
    let jobrank = unsafe { ex::jobrank(team, rank) }?;
    if jobrank >= conduit.ranks() {
        let last = conduit.ranks() - 1;
        return Err(UserError::new(format!("there is no rank {jobrank}; ranks are 0 to {last}")).into());
    }
    let tell = |Bound { address, size_bytes }| {
        let local = if jobrank == conduit.rank().0 { address } else { 0 };
        Told { owner: address, local, size_bytes }
    };
    Ok(ex::bound_of_rank(jobrank).map(tell))
}

/// Writes the answer to the places that are not null.
///
/// # Safety
/// Each pointer is null, or valid for writes.
unsafe fn tell(told: Told, owner: *mut *mut c_void, local: *mut *mut c_void, size: *mut usize) {
    // SAFETY: each pointer is null, or valid for writes.
    unsafe {
        if let Some(owner) = owner.as_mut() {
            *owner = std::ptr::without_provenance_mut(told.owner);
        }
        if let Some(local) = local.as_mut() {
            *local = std::ptr::without_provenance_mut(told.local);
        }
        if let Some(size) = size.as_mut() {
            *size = told.size_bytes;
        }
    }
}

/// This rank's segment, or null.
pub(super) fn own_segment() -> *mut Segment {
    ex::bound().map_or(std::ptr::null_mut(), |segment| std::ptr::from_ref(segment).cast_mut())
}

entry_points! {
    unsafe fn vgasnet_ex_TM_TranslateRankToEP(team: *const Team, rank: u32, location: *mut Location) {
        let rank = ex::find(team)?.jobrank(rank)?;
        let location = location.as_mut().ok_or_else(|| UserError::new("the place for the answer is a null pointer"))?;
        *location = Location { rank, endpoint_index: 0 };
        Ok(())
    }

    unsafe fn vgasnet_ex_EP_Create(
        _endpoint: *mut *mut Endpoint, client: *const Client, capabilities: u32, _flags: u32,
    ) -> c_int {
        const ALL: u32 = 31;
        ex::find(client)?;
        if capabilities == 0 || capabilities & !ALL != 0 {
            let line = format!("capabilities {capabilities:#x}; give some of GEX_EP_CAPABILITY_");
            return Ok(refuse("gex_EP_Create", ERR_BAD_ARG, &line));
        }
        let line = "a process has one endpoint, that of gex_Client_Init (GASNET_MAXEPS is 1)";
        Ok(refuse("gex_EP_Create", ERR_RESOURCE, line))
    }

    unsafe fn vgasnet_ex_Segment_Create(
        _segment: *mut *mut Segment, client: *const Client, _address: *mut c_void, _len_bytes: usize, _kind: *mut c_void,
        _flags: u32,
    ) -> c_int {
        ex::find(client)?;
        let line = "a process has one segment, that of gex_Segment_Attach";
        Ok(refuse("gex_Segment_Create", ERR_RESOURCE, line))
    }

    unsafe fn vgasnet_ex_EP_BindSegment(endpoint: *const Endpoint, _segment: *const Segment, _flags: u32) -> c_int {
        ex::find(endpoint)?;
        let line = "the endpoint keeps the segment of gex_Segment_Attach";
        Ok(refuse("gex_EP_BindSegment", ERR_BAD_ARG, line))
    }

    unsafe fn vgasnet_ex_EP_PublishBoundSegment(
        team: *const Team, endpoints: *const *const Endpoint [count], count: usize, _flags: u32,
    ) -> c_int {
        ex::find(team)?;
        if endpoints.is_null() && count > 0 {
            return Err(Refusal::bad_argument(format!("the array of {count} endpoints is a null pointer")));
        }
        for at in 0..count {
            ex::find(*endpoints.add(at))?;
        }
        Ok(OK)
    }

    unsafe fn vgasnet_ex_MK_Create(_kind: *mut *mut c_void, client: *const Client, _args: *const c_void, _flags: u32) -> c_int {
        ex::find(client)?;
        Ok(refuse("gex_MK_Create", ERR_BAD_ARG, "segments are memory of this machine: there is no kind but GEX_MK_HOST"))
    }
}

entry_points! {
    fn vgasnet_ex_System_GetVerboseErrors() -> c_int {
        Ok(c_int::from(IS_VERBOSE.load(Ordering::Relaxed)))
    }

    fn vgasnet_ex_System_SetVerboseErrors(enable: c_int) {
        IS_VERBOSE.store(enable != 0, Ordering::Relaxed);
        Ok(())
    }
}
