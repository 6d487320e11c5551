//! Barriers of teams that are events: a collective without bytes, which is over when every rank has entered it.

use super::events::Event;
use super::teams::Team;
use crate::coll::{Call, Caller, Coll, Syncs};
use crate::error::UserError;
use vgasnet_protocol::collectives::plan::CollectiveKind;

/// Enters a barrier. Collective over the team; many may be under way, and match by the order of the calls.
///
/// # Errors
/// The team does not exist any more.
pub fn start(team: &Team, coll: &Coll) -> Result<Event, UserError> {
    let call = Call {
        kind: CollectiveKind::Broadcast,
        team: team.id,
        caller: Caller { me: team.rank, nth: 0 },
        root: 0,
        source: 0,
        destination: 0,
        block_bytes: 0,
        reduce: None,
        sync: Syncs { all_in: true, all_out: true },
    };
    // SAFETY: there are no bytes.
    unsafe { coll.start_for_rank(&call) }.map(Event::root)
}
