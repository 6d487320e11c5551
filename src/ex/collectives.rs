//! Collectives of teams, as events. They begin at a rank when it enters, and are over there when its own memory is.

use super::events::{Event, test};
use super::teams::Team;
use crate::coll::{Call, Caller, Coll, Reduction, Syncs};
use crate::error::UserError;
use crate::ops::Ops;
use vgasnet_protocol::collectives::plan::CollectiveKind;

/// What a collective does.
#[derive(Clone, Copy, Debug)]
pub enum Collective {
    /// Is over when every rank has entered.
    Barrier,
    /// The root's source to every destination.
    Broadcast {
        /// Its rank in the team.
        root: u32,
    },
    /// Every source, reduced element by element, to the root's destination.
    ReduceToOne {
        /// Its rank in the team.
        root: u32,
        /// What combines elements.
        by: Reduction,
    },
    /// The same to every destination.
    ReduceToAll {
        /// What combines elements.
        by: Reduction,
    },
}

/// The memory of a rank in a collective: where it has no source or destination, the address may be anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// The address of the source.
    pub source: usize,
    /// The address of the destination, which may be the source.
    pub destination: usize,
    /// Bytes of each.
    pub len_bytes: usize,
}

/// Enters a collective. Collective over the team; many may be under way, and match by the order of the calls. `None` if it is over.
///
/// # Errors
/// There is no such root, a null pointer for bytes, or the team does not exist any more.
///
/// # Safety
/// Source and destination, where this rank has them, are valid for the bytes until the event is synced.
pub unsafe fn start(
    what: Collective,
    team: &Team,
    moved: Moved,
    coll: &Coll,
    ops: &Ops,
) -> Result<Option<Event>, UserError> {
    if matches!(what, Collective::Barrier) && team.size == 1 {
        return Ok(None);
    }
    if matches!(what, Collective::Barrier) && team.is_of_all() {
        ops.driver().flush_before_barrier();
        if let Some(awaited) = ops.driver().begin_host_barrier() {
            ops.driver().poll();
            return Ok(awaited.map(|id| Event::root(ops.completions().handle(id))));
        }
    }
    let Moved { source, destination, len_bytes: block_bytes } = moved;
    let (kind, root, reduce) = match what {
        // Without bytes, that all have entered is all there is.
        Collective::Barrier => (CollectiveKind::Broadcast, 0, None),
        Collective::Broadcast { root } => (CollectiveKind::Broadcast, root, None),
        Collective::ReduceToOne { root, by } => (CollectiveKind::Reduce, root, Some(by)),
        Collective::ReduceToAll { by } => (CollectiveKind::ReduceToAll, 0, Some(by)),
    };
    let call = Call {
        kind,
        team: team.id,
        caller: Caller { me: team.rank, nth: 0 },
        root,
        source,
        destination,
        block_bytes,
        reduce,
        sync: Syncs { all_in: matches!(what, Collective::Barrier), all_out: false },
    };
    // SAFETY: as the caller says.
    let event = Event::root(unsafe { coll.start_for_rank(&call) }?);
    Ok(if test(event, ops)? { None } else { Some(event) })
}
