//! Collectives of teams, as events. A collective begins at a rank when the rank enters, and is complete there when the
//! rank's own memory is.

use super::events::{Event, test};
use super::teams::Team;
use crate::coll::{Call, Caller, Coll, Reduction, Syncs};
use crate::ops::Ops;
use vgasnet_protocol::collectives::plan::CollectiveKind;
use vgasnet_settings::UserError;

/// The kind of a collective.
#[derive(Clone, Copy, Debug)]
pub enum Collective {
    /// Complete when every rank has entered.
    Barrier,
    /// Copies the root's source to every destination.
    Broadcast {
        /// The root's rank in the team.
        root: u32,
    },
    /// Reduces every source, element by element, into the root's destination.
    ReduceToOne {
        /// The root's rank in the team.
        root: u32,
        /// How to combine elements.
        by: Reduction,
    },
    /// Reduces every source, element by element, into every destination.
    ReduceToAll {
        /// How to combine elements.
        by: Reduction,
    },
}

/// A rank's memory in a collective. The address of a source or destination it does not have may be anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// The address of the source.
    pub source: usize,
    /// The address of the destination, which may be the source.
    pub destination: usize,
    /// Bytes of each.
    pub len_bytes: usize,
}

/// Enters a collective. Collective over the team. Many may be in flight; they match in the order of the calls. `None`
/// if it is complete.
///
/// # Errors
/// There is no such root, a pointer to bytes is null, or the team no longer exists.
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
        // A broadcast without bytes is complete when all ranks have entered.
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
    // SAFETY: source and destination, where this rank has them, are valid for the bytes until the event is synced.
    let event = Event::root(unsafe { coll.start_for_rank(&call) }?);
    Ok(if test(event, ops)? { None } else { Some(event) })
}
