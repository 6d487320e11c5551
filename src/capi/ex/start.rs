//! Init and attach.

use super::objects::{own_segment, primordial};
use crate::capi::boundary::{Refusal, attached, entry_points, initialised};
use crate::capi::job::{answer, describe, init, note_attached};
use crate::capi::{ERR_BAD_ARG, OK};
use crate::ex::{self, Client, Endpoint, Segment, Team};
use crate::job;
use std::ffi::{CStr, c_char, c_int};
use vgasnet_settings::UserError;

/// The client's page size, `GASNET_PAGESIZE`. Segments are multiples of it.
const PAGE_BYTES: usize = 4096;

/// `GEX_FLAG_USES_GASNET1` and `GEX_FLAG_DEFER_THREADS`.
const CLIENT_FLAGS: u32 = 1 | 1 << 1;

/// Writes the handles of the job's objects to the places that are not null.
///
/// # Safety
/// Each pointer is null, or valid for writes.
unsafe fn tell(client: *mut *mut Client, endpoint: *mut *mut Endpoint, team: *mut *mut Team) -> Result<(), Refusal> {
    let objects = primordial()?;
    // SAFETY: each pointer is null, or valid for writes.
    unsafe {
        if let Some(client) = client.as_mut() {
            *client = (&raw const objects.client).cast_mut();
        }
        if let Some(endpoint) = endpoint.as_mut() {
            *endpoint = (&raw const objects.endpoint).cast_mut();
        }
        if let Some(team) = team.as_mut() {
            *team = (&raw const objects.team).cast_mut();
        }
    }
    Ok(())
}

entry_points! {
    fn vgasnet_ex_ErrorName(code: c_int) -> *const c_char {
        let name = describe(code).0;
        let of_gasnet = name.to_bytes_with_nul().strip_prefix(b"V").and_then(|name| CStr::from_bytes_with_nul(name).ok());
        Ok(of_gasnet.unwrap_or(name).as_ptr())
    }
}

entry_points! {
    unsafe fn vgasnet_ex_Client_Init(
        client: *mut *mut Client, endpoint: *mut *mut Endpoint, team: *mut *mut Team, name: *const c_char, argc: *mut c_int,
        argv: *mut *mut *mut c_char, flags: u32,
    ) -> c_int {
        if name.is_null() || *name == 0 {
            return Err(Refusal::bad_argument("the client has no name; give one, as \"UPCXX\""));
        }
        if flags & !CLIENT_FLAGS != 0 {
            let line = format!("flags {flags:#x}; give GEX_FLAG_USES_GASNET1 and GEX_FLAG_DEFER_THREADS, or neither");
            return Err(Refusal::bad_argument(line));
        }
        let code = init(argc, argv)?;
        if code != OK {
            return Ok(code);
        }
        if let Err(failure) = job::start_without_segment() {
            return answer(failure);
        }
        ex::start(CStr::from_ptr(name), flags);
        tell(client, endpoint, team)?;
        Ok(OK)
    }

    unsafe fn vgasnet_ex_QueryGexObjects(
        client: *mut *mut Client, endpoint: *mut *mut Endpoint, team: *mut *mut Team, segment: *mut *mut Segment,
    ) {
        tell(client, endpoint, team)?;
        if let Some(segment) = segment.as_mut() {
            *segment = own_segment();
        }
        Ok(())
    }

    unsafe fn vgasnet_ex_Segment_Attach(segment: *mut *mut Segment, team: *const Team, size_bytes: usize) -> c_int {
        let most_bytes = initialised()?.max_local_segment_bytes();
        if !std::ptr::eq(team, &primordial()?.team) {
            ex::find(team)?;
            return Err(Refusal::bad_argument("the team lacks ranks; give the one that gex_Client_Init has returned"));
        }
        let rounded_bytes = size_bytes.checked_next_multiple_of(PAGE_BYTES).filter(|bytes| *bytes > 0);
        let wanted = rounded_bytes.map(|bytes| bytes as u64).ok_or_else(|| UserError::new(format!(
            "a segment of {size_bytes} bytes; give 1 to {most_bytes}, see gasnet_getMaxLocalSegmentSize"
        )));
        let runtime = attached()?;
        if let Err(failure) = ex::attach_segment(initialised()?, runtime, wanted) {
            return answer(failure);
        }
        note_attached(runtime);
        if let Some(segment) = segment.as_mut() {
            *segment = own_segment();
        }
        Ok(OK)
    }

    unsafe fn vgasnet_ex_System_QueryProgressThreads(
        client: *const Client, count: *mut u32, info: *mut *const std::ffi::c_void, flags: u32,
    ) -> c_int {
        const DEFERS: u32 = 1 << 1;
        let refused = |what: &str| Refusal::with_code(ERR_BAD_ARG, UserError::new(what));
        let client = ex::find(client)?;
        if count.is_null() || info.is_null() || flags != 0 {
            return Err(refused("a null pointer, or flags that are not 0; give places for the number and the array"));
        }
        if client.flags & DEFERS == 0 {
            let line = UserError::new("the client was not initialised with GEX_FLAG_DEFER_THREADS; do that first");
            return Err(Refusal::with_code(crate::capi::ERR_RESOURCE, line));
        }
        (*count, *info) = (0, std::ptr::null());
        Ok(OK)
    }
}
