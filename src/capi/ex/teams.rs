//! Making and destroying teams.

use super::objects::Location;
use crate::capi::boundary::{attached, entry_points};
use crate::ex::{self, Scratch, Team};
use std::ffi::{c_int, c_void};
use vgasnet_settings::UserError;

/// `GEX_FLAG_TM_SCRATCH_SIZE_MIN` and `GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED`.
const ASKS_SIZE: u32 = 1 | 1 << 1;

/// `GEX_FLAG_TM_GLOBAL_SCRATCH`, and so on.
const GLOBAL: u32 = 1 << 2;
const LOCAL: u32 = 1 << 3;
const SYMMETRIC: u32 = 1 << 4;
const NO_SCRATCH: u32 = 1 << 5;

/// `GEX_FLAG_SCRATCH_SEG_OFFSET`.
const BY_OFFSET: u32 = 1 << 6;

/// `GEX_FLAG_RANK_IS_JOBRANK`.
const BY_JOBRANK: u32 = 1 << 13;

/// The recommended scratch size of a team, in bytes. The library needs none, but clients take 0 for a failure.
const SCRATCH_BYTES: usize = 64;

/// `gex_Memvec_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Memvec {
    address: *mut c_void,
    len_bytes: usize,
}

/// The scratch given by a client.
fn scratch(address: usize, size_bytes: usize, flags: u32) -> Result<Option<Scratch>, UserError> {
    if flags & NO_SCRATCH != 0 {
        return Ok(None);
    }
    let base = ex::bound().map_or(0, |segment| segment.bound.address);
    let address = if flags & BY_OFFSET != 0 { base.wrapping_add(address) } else { address };
    let is_inside = ex::bound().is_some_and(|segment| {
        let offset = address.wrapping_sub(segment.bound.address);
        offset.checked_add(size_bytes).is_some_and(|end| end <= segment.bound.size_bytes)
    });
    if !is_inside || size_bytes == 0 {
        return Err(UserError::new(format!(
            "the scratch, {size_bytes} bytes at {address:#x}, is not in this rank's segment; give some, or GEX_FLAG_TM_NO_SCRATCH"
        )));
    }
    Ok(Some(Scratch { address, size_bytes }))
}

/// The job ranks named by a list.
fn jobranks(parent: &Team, list: &[Location], flags: u32) -> Result<Box<[u32]>, UserError> {
    let jobrank = |(at, location): (usize, &Location)| {
        if location.endpoint_index != 0 {
            let index = location.endpoint_index;
            let line = format!("entry {at} of the list names endpoint {index}; each process has one, with index 0");
            return Err(UserError::new(line));
        }
        if flags & BY_JOBRANK != 0 { Ok(location.rank) } else { parent.jobrank(location.rank) }
    };
    list.iter().enumerate().map(jobrank).collect()
}

/// This rank's address in a list of addresses. `rank` is its place among the members.
///
/// # Safety
/// The list is null, or has as many entries as the flags require.
unsafe fn own_address(list: *const *mut c_void, rank: u32, flags: u32) -> Result<usize, UserError> {
    if flags & NO_SCRATCH != 0 {
        return Ok(0);
    }
    if list.is_null() {
        return Err(UserError::new("the list of scratch is a null pointer; give one, or GEX_FLAG_TM_NO_SCRATCH"));
    }
    let at = if flags & GLOBAL != 0 { rank as usize } else { 0 };
    // SAFETY: with `GLOBAL` the list has an entry for each member, otherwise one.
    Ok(unsafe { *list.add(at) }.addr())
}

entry_points! {
    unsafe fn vgasnet_ex_TM_Split(
        new_team: *mut *const Team, parent: *const Team, color: c_int, key: c_int, address: *mut c_void, size_bytes: usize,
        flags: u32,
    ) -> usize {
        let parent = ex::find(parent)?;
        let color = if new_team.is_null() { None } else { Some(color) };
        let as_given = |color: c_int| {
            let line = format!("the color is {color}; give 0 or more, or a null pointer for the new team to take no part");
            u32::try_from(color).map_err(|_| UserError::new(line))
        };
        let color = color.map(as_given).transpose()?;
        if flags & ASKS_SIZE != 0 {
            return Ok(if color.is_some() { SCRATCH_BYTES } else { 0 });
        }
        let scratch = match color {
            Some(_) => scratch(address.addr(), size_bytes, flags)?,
            None => None,
        };
        let made = ex::split(parent, color, key, scratch, flags, attached()?.coll())?;
        if let (Some(to), Some(made)) = (new_team.as_mut(), made) {
            *to = made;
        }
        Ok(0)
    }

    unsafe fn vgasnet_ex_TM_Create(
        new_teams: *mut *const Team [new_count], new_count: usize, parent: *const Team, list: *const Location [count],
        count: usize, addresses: *const *mut c_void, size_bytes: usize, flags: u32,
    ) -> usize {
        let parent = ex::find(parent)?;
        if flags & ASKS_SIZE != 0 {
            return Ok(if count > 0 { SCRATCH_BYTES } else { 0 });
        }
        let coll = attached()?.coll();
        if count == 0 {
            ex::create(parent, Box::default(), None, flags, coll)?;
            return Ok(0);
        }
        if list.is_null() {
            return Err(UserError::new(format!("the list of {count} members is a null pointer")).into());
        }
        if (flags & (GLOBAL | LOCAL | SYMMETRIC | NO_SCRATCH)).count_ones() != 1 {
            let line = format!("flags {flags:#x}; give one of GEX_FLAG_TM_GLOBAL_SCRATCH, _LOCAL_, _SYMMETRIC_ and _NO_SCRATCH");
            return Err(UserError::new(line).into());
        }
        let jobranks = jobranks(parent, std::slice::from_raw_parts(list, count), flags)?;
        let own = parent.jobrank(parent.rank)?;
        let rank = jobranks.iter().position(|jobrank| *jobrank == own);
        if new_count != usize::from(rank.is_some()) || (new_teams.is_null() && new_count > 0) {
            let line = format!("{new_count} new teams at {new_teams:?}; give a place for each member of this rank that is listed");
            return Err(UserError::new(line).into());
        }
        let scratch = match rank {
            Some(rank) => scratch(own_address(addresses, rank as u32, flags)?, size_bytes, flags)?,
            None => None,
        };
        if let Some(made) = ex::create(parent, jobranks, scratch, flags, coll)? {
            *new_teams = made;
        }
        Ok(0)
    }

    unsafe fn vgasnet_ex_TM_Destroy(team: *const Team, scratch: *mut Memvec, flags: u32) -> c_int {
        let had = ex::destroy(ex::find(team)?, attached()?.coll())?;
        let (Some(to), Some(Scratch { address, size_bytes })) = (scratch.as_mut(), had) else { return Ok(0) };
        let base = if flags & BY_OFFSET != 0 { ex::bound().map_or(0, |segment| segment.bound.address) } else { 0 };
        *to = Memvec { address: std::ptr::without_provenance_mut(address.wrapping_sub(base)), len_bytes: size_bytes };
        Ok(1)
    }
}
