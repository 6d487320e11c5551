//! Collectives and teams.

use super::barrier::{IMAGES, answer, code, misuse, name, place};
use super::boundary::{Refusal, attached, entry_points};
use super::sync::{OperationPointer, not_ready, to_pointer};
use crate::coll::{Call, Caller, ReduceFunction, Reducer, Syncs};
use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use vgasnet_protocol::collectives::TEAM_ALL;
use vgasnet_protocol::collectives::plan::CollectiveKind::{self, *};
use vgasnet_settings::UserError;

use Addresses::{List, One};

/// `VGASNET_COLL_IN_NOSYNC`, and so on.
const IN_NOSYNC: c_int = 1;
const IN_MYSYNC: c_int = 1 << 1;
const IN_ALLSYNC: c_int = 1 << 2;
const OUT_NOSYNC: c_int = 1 << 3;
const OUT_MYSYNC: c_int = 1 << 4;
const OUT_ALLSYNC: c_int = 1 << 5;
const SINGLE: c_int = 1 << 6;
const LOCAL: c_int = 1 << 7;
/// `VGASNET_COLL_AGGREGATE`, `_DST_IN_SEGMENT` and `_SRC_IN_SEGMENT`. They have no effect here.
const HINTS: c_int = 1 << 8 | 1 << 10 | 1 << 11;

thread_local! {
    /// The image number set by this thread.
    static IMAGE: Cell<Option<u32>> = const { Cell::new(None) };
}

/// `struct vgasnet_team` is never defined. Its pointers are numbers of teams and point nowhere.
#[repr(C)]
#[derive(Debug)]
pub struct TeamType {
    _private: [u8; 0],
}

type TeamPointer = *mut TeamType;

/// `vgasnet_coll_fn_entry_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FunctionEntry {
    function: Option<ReduceFunction>,
    flags: c_uint,
}

/// The arguments of a call from C.
struct Asked {
    kind: CollectiveKind,
    team: TeamPointer,
    root: u32,
    to: Addresses,
    from: Addresses,
    block_bytes: usize,
    flags: c_int,
}

/// The caller's memory, as one address or as a list.
enum Addresses {
    One(*mut c_void),
    List(*const *mut c_void),
}

/// The synchronisation requested by flags. The default is all ranks, on entry and on exit.
fn syncs(flags: c_int) -> Result<Syncs, UserError> {
    const ALL: c_int =
        IN_NOSYNC | IN_MYSYNC | IN_ALLSYNC | OUT_NOSYNC | OUT_MYSYNC | OUT_ALLSYNC | SINGLE | LOCAL | HINTS;
    if flags & !ALL != 0 {
        return Err(UserError::new(format!("flags {flags:#x} are unknown; give a combination of VGASNET_COLL_ flags")));
    }
    if flags & (SINGLE | LOCAL) == SINGLE | LOCAL {
        let line = "VGASNET_COLL_SINGLE and VGASNET_COLL_LOCAL exclude each other; give one of them";
        return Err(UserError::new(line));
    }
    let all_in = flags & IN_ALLSYNC != 0 || flags & (IN_NOSYNC | IN_MYSYNC) == 0;
    let all_out = flags & OUT_ALLSYNC != 0 || flags & (OUT_NOSYNC | OUT_MYSYNC) == 0;
    Ok(Syncs { all_in, all_out })
}

impl Addresses {
    /// The address of the caller's memory. With `VGASNET_COLL_SINGLE` a list has an entry for each image of the team,
    /// otherwise for each image of this rank.
    ///
    /// # Safety
    /// A list is null, or has these entries.
    unsafe fn own(&self, caller: Caller, flags: c_int) -> Result<usize, UserError> {
        let address = match *self {
            Addresses::One(address) => address,
            Addresses::List(list) if list.is_null() => {
                return Err(UserError::new("a list of addresses is a null pointer; give one with this rank's address"));
            }
            // SAFETY: the list has an entry for each image of the team, or for each image of this rank.
            Addresses::List(list) => unsafe {
                *list.add((if flags & SINGLE != 0 { caller.me } else { caller.nth }) as usize)
            },
        };
        Ok(address.expose_provenance())
    }
}

/// A collective from the arguments of C.
///
/// # Safety
/// A list of addresses is null, or has an entry for each image of the team with `VGASNET_COLL_SINGLE`, otherwise for
/// each image of this rank.
unsafe fn call(asked: Asked, reduce: Option<(usize, i32, c_int)>) -> Result<Call, Refusal> {
    let Asked { kind, team, root, to, from, block_bytes, flags } = asked;
    let (team, coll) = (team.addr() as u64, attached()?.coll());
    let sync = syncs(flags)?;
    let caller = coll.caller(team, IMAGE.get())?;
    let registered = |(element_bytes, function, argument)| coll.registered(element_bytes, function, argument);
    let reduce = reduce.map(registered).transpose()?;
    // SAFETY: a list is null, or has as many entries as the flags require. It is not read if the caller has no such
    // memory.
    let (source, destination) = unsafe {
        let source = if kind.reads(caller.me, root) { from.own(caller, flags)? } else { 0 };
        (source, if kind.writes(caller.me, root) { to.own(caller, flags)? } else { 0 })
    };
    Ok(Call { kind, team, caller, root, source, destination, block_bytes, reduce, sync })
}

/// Does a collective.
///
/// # Safety
/// Source and destination, where this rank has them, are valid for the blocks of the collective.
unsafe fn collective(call: Result<Call, Refusal>) -> Result<(), Refusal> {
    // SAFETY: source and destination are valid for the blocks of the collective.
    Ok(unsafe { attached()?.coll().run(&call?) }?)
}

/// Starts a collective.
///
/// # Safety
/// Source and destination, where this rank has them, are valid for the blocks of the collective until the handle has
/// been synced.
unsafe fn start(call: Result<Call, Refusal>) -> Result<OperationPointer, Refusal> {
    // SAFETY: source and destination are valid for the blocks of the collective until the handle has been synced.
    Ok(to_pointer(Some(unsafe { attached()?.coll().start(&call?) }?)))
}

/// The bytes of a reduction's elements.
fn bytes_of(elements: usize, element_bytes: usize) -> Result<usize, Refusal> {
    elements.checked_mul(element_bytes).ok_or_else(|| {
        let line = format!(
            "{elements} elements of {element_bytes} bytes are more than 2^64 bytes; give the size of one element"
        );
        UserError::new(line).into()
    })
}

/// Defines the blocking and the non-blocking function of each collective. The body is its [`Call`].
macro_rules! collectives {
    ($($blocking:ident, $starting:ident($($argument:ident: $type:ty),* $(,)?) $call:block)*) => {
        entry_points! {
            $(
                unsafe fn $blocking($($argument: $type),*) {
                    collective($call)
                }

                unsafe fn $starting($($argument: $type),*) -> OperationPointer {
                    start($call)
                }
            )*
        }
    };
}

collectives! {
    vgasnet_coll_broadcast, vgasnet_coll_broadcast_nb(
        team: TeamPointer, to: *mut c_void, root: u32, from: *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: Broadcast, team, root, to: One(to), from: One(from), block_bytes, flags }, None)
    }

    vgasnet_coll_broadcastM, vgasnet_coll_broadcastM_nb(
        team: TeamPointer, to: *const *mut c_void, root: u32, from: *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: Broadcast, team, root, to: List(to), from: One(from), block_bytes, flags }, None)
    }

    vgasnet_coll_scatter, vgasnet_coll_scatter_nb(
        team: TeamPointer, to: *mut c_void, root: u32, from: *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: Scatter, team, root, to: One(to), from: One(from), block_bytes, flags }, None)
    }

    vgasnet_coll_scatterM, vgasnet_coll_scatterM_nb(
        team: TeamPointer, to: *const *mut c_void, root: u32, from: *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: Scatter, team, root, to: List(to), from: One(from), block_bytes, flags }, None)
    }

    vgasnet_coll_gather, vgasnet_coll_gather_nb(
        team: TeamPointer, root: u32, to: *mut c_void, from: *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: Gather, team, root, to: One(to), from: One(from), block_bytes, flags }, None)
    }

    vgasnet_coll_gatherM, vgasnet_coll_gatherM_nb(
        team: TeamPointer, root: u32, to: *mut c_void, from: *const *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: Gather, team, root, to: One(to), from: List(from), block_bytes, flags }, None)
    }

    vgasnet_coll_gather_all, vgasnet_coll_gather_all_nb(
        team: TeamPointer, to: *mut c_void, from: *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: GatherAll, team, root: 0, to: One(to), from: One(from), block_bytes, flags }, None)
    }

    vgasnet_coll_gather_allM, vgasnet_coll_gather_allM_nb(
        team: TeamPointer, to: *const *mut c_void, from: *const *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: GatherAll, team, root: 0, to: List(to), from: List(from), block_bytes, flags }, None)
    }

    vgasnet_coll_exchange, vgasnet_coll_exchange_nb(
        team: TeamPointer, to: *mut c_void, from: *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: Exchange, team, root: 0, to: One(to), from: One(from), block_bytes, flags }, None)
    }

    vgasnet_coll_exchangeM, vgasnet_coll_exchangeM_nb(
        team: TeamPointer, to: *const *mut c_void, from: *const *mut c_void, block_bytes: usize, flags: c_int,
    ) {
        call(Asked { kind: Exchange, team, root: 0, to: List(to), from: List(from), block_bytes, flags }, None)
    }

    vgasnet_coll_reduce, vgasnet_coll_reduce_nb(
        team: TeamPointer, root: u32, to: *mut c_void, from: *mut c_void, _block: usize, _offset: usize,
        element_bytes: usize, elements: usize, function: i32, argument: c_int, flags: c_int,
    ) {
        let (block_bytes, reduce) = (bytes_of(elements, element_bytes)?, Some((element_bytes, function, argument)));
        call(Asked { kind: Reduce, team, root, to: One(to), from: One(from), block_bytes, flags }, reduce)
    }

    vgasnet_coll_reduceM, vgasnet_coll_reduceM_nb(
        team: TeamPointer, root: u32, to: *mut c_void, from: *const *mut c_void, _block: usize, _offset: usize,
        element_bytes: usize, elements: usize, function: i32, argument: c_int, flags: c_int,
    ) {
        let (block_bytes, reduce) = (bytes_of(elements, element_bytes)?, Some((element_bytes, function, argument)));
        call(Asked { kind: Reduce, team, root, to: One(to), from: List(from), block_bytes, flags }, reduce)
    }
}

entry_points! {
    unsafe fn vgasnet_coll_init(
        images: *const u32, my_image: u32, table: *const FunctionEntry [entries], entries: usize, _flags: c_int,
    ) {
        let runtime = attached()?;
        if images.is_null() {
            runtime.coll().set_no_images()?;
            IMAGE.set(None);
        } else {
            let images = std::slice::from_raw_parts(images, runtime.space().segments.ranks() as usize);
            runtime.coll().set_images(images, my_image)?;
            IMAGE.set(Some(my_image));
        }
        if table.is_null() && entries > 0 {
            return Err(UserError::new(format!("the table of {entries} functions is a null pointer")).into());
        }
        let table = if entries == 0 { &[] } else { std::slice::from_raw_parts(table, entries) };
        let reducer = |(at, entry): (usize, &FunctionEntry)| {
            let function = entry.function.ok_or_else(|| UserError::new(format!("function {at} is a null pointer")))?;
            Ok(Reducer { function, flags: entry.flags as c_int })
        };
        let reducers: Result<Box<[Reducer]>, UserError> = table.iter().enumerate().map(reducer).collect();
        runtime.coll().set_reducers(reducers?);
        Ok(())
    }

    unsafe fn vgasnet_coll_barrier_result(team: TeamPointer, number: *mut c_int) -> c_int {
        let place = place(number)?;
        Ok(answer(attached()?.coll().team_barrier_result(id(team))?.map_err(misuse)?, place))
    }
}

fn id(team: TeamPointer) -> u64 {
    team.addr() as u64
}

/// The caller's image, for a barrier of all images of a rank.
fn image(team: TeamPointer, flags: c_int) -> Result<Option<u32>, Refusal> {
    if flags & IMAGES == 0 || id(team) != TEAM_ALL {
        return Ok(None);
    }
    let coll = attached()?.coll();
    Ok(if coll.has_images() { Some(coll.caller(TEAM_ALL, IMAGE.get())?.nth) } else { None })
}

fn notify(team: TeamPointer, number: c_int, flags: c_int) -> Result<(), Refusal> {
    let (coll, name) = (attached()?.coll(), name(number, flags)?);
    match image(team, flags)? {
        Some(nth) => coll.image_barrier_notify(nth, name).map_err(misuse),
        None => coll.team_barrier_notify(id(team), name)?.map_err(misuse),
    }
}

fn wait(team: TeamPointer, number: c_int, flags: c_int) -> Result<c_int, Refusal> {
    let (coll, name) = (attached()?.coll(), name(number, flags)?);
    let matched = match image(team, flags)? {
        Some(nth) => coll.image_barrier_wait(nth, name),
        None => coll.team_barrier_wait(id(team), name)?,
    };
    matched.map(code).map_err(misuse)
}

entry_points! {
    fn vgasnet_coll_barrier_notify(team: TeamPointer, number: c_int, flags: c_int) {
        notify(team, number, flags)
    }

    fn vgasnet_coll_barrier_try(team: TeamPointer, number: c_int, flags: c_int) -> c_int {
        let (coll, name) = (attached()?.coll(), name(number, flags)?);
        let matched = match image(team, flags)? {
            Some(nth) => coll.image_barrier_try(nth, name),
            None => coll.team_barrier_try(id(team), name)?,
        };
        Ok(matched.map_err(misuse)?.map_or_else(not_ready, code))
    }

    fn vgasnet_coll_barrier_wait(team: TeamPointer, number: c_int, flags: c_int) -> c_int {
        wait(team, number, flags)
    }

    fn vgasnet_coll_barrier(team: TeamPointer, number: c_int, flags: c_int) -> c_int {
        notify(team, number, flags)?;
        wait(team, number, flags)
    }

    fn vgasnet_coll_team_split(parent: TeamPointer, color: u32, order: u32, _client_data: *mut c_void) -> TeamPointer {
        Ok(std::ptr::without_provenance_mut(attached()?.coll().split_team(id(parent), color, order)? as usize))
    }

    fn vgasnet_coll_team_free(team: TeamPointer) {
        Ok(attached()?.coll().free_team(id(team))?)
    }

    fn vgasnet_coll_team_size(team: TeamPointer) -> u32 {
        Ok(attached()?.coll().team(id(team))?.0.len() as u32)
    }

    fn vgasnet_coll_team_rank2node(team: TeamPointer, rank: u32) -> u32 {
        let (members, _) = attached()?.coll().team(id(team))?;
        let last = members.len() - 1;
        let node = members.get(rank as usize).copied();
        Ok(node.ok_or_else(|| {
            UserError::new(format!("there is no rank {rank} in this team; its ranks are 0 to {last}"))
        })?)
    }

    fn vgasnet_coll_team_node2rank(team: TeamPointer, node: u32) -> u32 {
        let (members, _) = attached()?.coll().team(id(team))?;
        let rank = members.iter().position(|member| *member == node);
        Ok(rank.ok_or_else(|| UserError::new(format!("rank {node} of the job is not in this team")))? as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_when_a_collective_begins_and_ends() {
        let both = |all_in, all_out| Ok(Syncs { all_in, all_out });
        assert_eq!(syncs(IN_NOSYNC | OUT_MYSYNC | SINGLE), both(false, false));
        assert_eq!(syncs(IN_ALLSYNC | OUT_NOSYNC | LOCAL | HINTS), both(true, false));
        assert_eq!(syncs(IN_MYSYNC | OUT_ALLSYNC), both(false, true));
        assert_eq!(syncs(0), both(true, true));
        assert!([1 << 9, 1 << 12, -1, SINGLE | LOCAL].into_iter().all(|flags| syncs(flags).is_err()));
    }
}

entry_points! {
    unsafe fn vgasnet_coll_team_of(ranks: usize, rank: *const u32 [ranks], tag: u32) -> TeamPointer {
        if rank.is_null() || ranks == 0 {
            return Err(UserError::new("a team of no ranks; give the address of their numbers, and how many there are").into());
        }
        let members = std::slice::from_raw_parts(rank, ranks);
        Ok(std::ptr::without_provenance_mut(attached()?.coll().team_of(members, tag)? as usize))
    }
}
