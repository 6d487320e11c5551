//! Vector, indexed and strided transfers.

use super::events::{EventPointer, pointer};
use crate::am::CLIENT_FIRST;
use crate::capi::OK;
use crate::capi::boundary::{Refusal, attached, entry_points};
use crate::capi::lists::{self, MemoryVector, entries, indexed, vectors};
use crate::ex::{self, Event, PEER_COMPLETION_BYTES_MAX, PeerCompletion, Team};
use crate::ops::{Direction, Region, Run, Strided, runs};
use std::ffi::{c_int, c_void};
use vgasnet_settings::UserError;

/// `GEX_FLAG_ENABLE_LEAF_LC`.
const LEAF_OF_SOURCE: u32 = 1 << 11;

/// The client's arguments for a transfer.
struct Asked<R> {
    direction: Direction,
    team: *const Team,
    rank: u32,
    /// `None` if there is nothing to transfer. The rank need not exist then.
    runs: Option<R>,
}

fn put<T: Iterator<Item = Region>, F: Iterator<Item = Region>>(
    (team, rank): (*const Team, u32),
    sides: Option<(T, F)>,
) -> Asked<impl Iterator<Item = Run>> {
    Asked { direction: Direction::Put, team, rank, runs: sides.map(|(to, from)| runs(from, to)) }
}

fn get<T: Iterator<Item = Region>, F: Iterator<Item = Region>>(
    (team, rank): (*const Team, u32),
    sides: Option<(T, F)>,
) -> Asked<impl Iterator<Item = Run>> {
    Asked { direction: Direction::Get, team, rank, runs: sides.map(|(to, from)| runs(to, from)) }
}

impl<R> Asked<R> {
    /// Whether the transfer is complete when the call returns: there is nothing to do, or it is a put with peer
    /// completion.
    fn is_done_at_once(&self) -> bool {
        self.runs.is_none() || self.direction == Direction::Put && ex::has_peer_completion()
    }
}

/// Does a transfer. A put sends the thread's peer completion, if one is set.
///
/// # Safety
/// The team is null, a pair, or has been the handle of an object. The local side of each run is valid for its length,
/// or null.
unsafe fn transfer(asked: Asked<impl Iterator<Item = Run>>) -> Result<(), Refusal> {
    let (runtime, Asked { direction, team, rank, runs }) = (attached()?, asked);
    let told = if direction == Direction::Put { ex::take_peer_completion() } else { None };
    if runs.is_none() && told.is_none() {
        return Ok(());
    }
    // SAFETY: the local sides are valid until this returns, and the payload until the put is done (GASNet-EX, VIS).
    unsafe {
        let rank = ex::jobrank(team, rank)?;
        if let Some(runs) = runs {
            runtime.ops().transfer_runs(direction, rank, runs)?;
        }
        if let Some(PeerCompletion { handler, payload, payload_bytes }) = told {
            runtime.am().complete_at_peer(rank, handler, payload, payload_bytes)?;
        }
    }
    Ok(())
}

/// Starts a transfer with an event.
///
/// # Safety
/// As for [`transfer`], until the event has been synced.
unsafe fn start(asked: Asked<impl Iterator<Item = Run>>) -> Result<EventPointer, Refusal> {
    // SAFETY: the local sides are valid until the event has been synced.
    unsafe {
        if asked.is_done_at_once() {
            transfer(asked)?;
            return Ok(pointer(None));
        }
        let Asked { direction, team, rank, runs } = asked;
        let runs = runs.expect("there is something to do");
        let root = attached()?.ops().start_runs_explicit(direction, ex::jobrank(team, rank)?, runs)?;
        Ok(pointer(root.map(Event::root)))
    }
}

/// Starts an implicit transfer.
///
/// # Safety
/// As for [`transfer`], until the thread has synced its implicit operations, or only their sources if the flags say so.
unsafe fn start_implicit(asked: Asked<impl Iterator<Item = Run>>, flags: u32) -> Result<(), Refusal> {
    // SAFETY: the local sides are valid until the thread has synced its implicit operations, or, of a put with
    // `LEAF_OF_SOURCE`, its sources.
    unsafe {
        if asked.is_done_at_once() {
            return transfer(asked);
        }
        let Asked { direction, team, rank, runs } = asked;
        let (ops, rank) = (attached()?.ops(), ex::jobrank(team, rank)?);
        let runs = runs.expect("there is something to do");
        if direction == Direction::Put && flags & LEAF_OF_SOURCE != 0 {
            ops.start_runs_implicit_put(rank, runs)?;
        } else {
            ops.start_runs_implicit(direction, rank, runs)?;
        }
    }
    Ok(())
}

/// The regions of two strided sides; `None` if there are none. Strides wrap, so they may be negative.
///
/// # Safety
/// Each list is null, or has an entry for each level, and nobody changes it during the call.
unsafe fn strided<'a>(
    (to, to_strides): (*mut c_void, *const isize),
    (from, from_strides): (*mut c_void, *const isize),
    len_bytes: usize,
    counts: *const usize,
    levels: usize,
) -> Result<Option<(Strided<'a>, Strided<'a>)>, Refusal> {
    if len_bytes == 0 {
        return Ok(None);
    }
    // SAFETY: each list is null, or has an entry for each level.
    unsafe {
        let counts = entries("count", counts, levels)?;
        if counts.contains(&0) {
            return Ok(None);
        }
        lists::strided((to, to_strides.cast()), (from, from_strides.cast()), len_bytes, counts).map(Some)
    }
}

/// Defines the blocking, the explicit and the implicit function of a transfer. Their last argument is the flags.
macro_rules! transfers {
    ($($blocking:ident, $explicit:ident, $implicit:ident(
        $($argument:ident: $type:ty $([$items:expr])?),* $(,)?
    ) $asked:block)*) => {
        entry_points! {
            $(
                unsafe fn $blocking($($argument: $type $([$items])?,)* _flags: u32) -> c_int {
                    transfer($asked)?;
                    Ok(OK)
                }

                unsafe fn $explicit($($argument: $type $([$items])?,)* _flags: u32) -> EventPointer {
                    start($asked)
                }

                unsafe fn $implicit($($argument: $type $([$items])?,)* flags: u32) -> c_int {
                    start_implicit($asked, flags)?;
                    Ok(OK)
                }
            )*
        }
    };
}

transfers! {
    vgasnet_ex_VIS_VectorPutBlocking, vgasnet_ex_VIS_VectorPutNB, vgasnet_ex_VIS_VectorPutNBI(
        team: *const Team, rank: u32, to_count: usize, to: *const MemoryVector [to_count], from_count: usize,
        from: *const MemoryVector [from_count],
    ) {
        put((team, rank), Some(vectors((to_count, to), (from_count, from))?))
    }

    vgasnet_ex_VIS_VectorGetBlocking, vgasnet_ex_VIS_VectorGetNB, vgasnet_ex_VIS_VectorGetNBI(
        team: *const Team, to_count: usize, to: *const MemoryVector [to_count], rank: u32, from_count: usize,
        from: *const MemoryVector [from_count],
    ) {
        get((team, rank), Some(vectors((to_count, to), (from_count, from))?))
    }

    vgasnet_ex_VIS_IndexedPutBlocking, vgasnet_ex_VIS_IndexedPutNB, vgasnet_ex_VIS_IndexedPutNBI(
        team: *const Team, rank: u32, to_count: usize, to: *const *mut c_void [to_count], to_len: usize,
        from_count: usize, from: *const *mut c_void [from_count], from_len: usize,
    ) {
        put((team, rank), Some(indexed((to_count, to, to_len), (from_count, from, from_len))?))
    }

    vgasnet_ex_VIS_IndexedGetBlocking, vgasnet_ex_VIS_IndexedGetNB, vgasnet_ex_VIS_IndexedGetNBI(
        team: *const Team, to_count: usize, to: *const *mut c_void [to_count], to_len: usize, rank: u32,
        from_count: usize, from: *const *mut c_void [from_count], from_len: usize,
    ) {
        get((team, rank), Some(indexed((to_count, to, to_len), (from_count, from, from_len))?))
    }

    vgasnet_ex_VIS_StridedPutBlocking, vgasnet_ex_VIS_StridedPutNB, vgasnet_ex_VIS_StridedPutNBI(
        team: *const Team, rank: u32, to: *mut c_void, to_strides: *const isize [levels], from: *mut c_void,
        from_strides: *const isize [levels], len_bytes: usize, counts: *const usize [levels], levels: usize,
    ) {
        put((team, rank), strided((to, to_strides), (from, from_strides), len_bytes, counts, levels)?)
    }

    vgasnet_ex_VIS_StridedGetBlocking, vgasnet_ex_VIS_StridedGetNB, vgasnet_ex_VIS_StridedGetNBI(
        team: *const Team, to: *mut c_void, to_strides: *const isize [levels], rank: u32, from: *mut c_void,
        from_strides: *const isize [levels], len_bytes: usize, counts: *const usize [levels], levels: usize,
    ) {
        get((team, rank), strided((to, to_strides), (from, from_strides), len_bytes, counts, levels)?)
    }
}

entry_points! {
    fn vgasnet_ex_VIS_SetPeerCompletionHandler(handler: u8, payload: *const c_void, payload_bytes: usize, _flags: u32) {
        if handler == 0 {
            ex::set_peer_completion(None);
            return Ok(());
        }
        if handler < CLIENT_FIRST {
            return Err(UserError::new(format!("handler {handler} is not a client's; give {CLIENT_FIRST} to 255, or 0")).into());
        }
        if payload_bytes > PEER_COMPLETION_BYTES_MAX || payload_bytes > 0 && payload.is_null() {
            return Err(UserError::new(format!(
                "a payload of {payload_bytes} bytes at {payload:?}; give at most {PEER_COMPLETION_BYTES_MAX}, not at a null pointer"
            )).into());
        }
        ex::set_peer_completion(Some(PeerCompletion { handler, payload: payload.cast(), payload_bytes }));
        Ok(())
    }
}
