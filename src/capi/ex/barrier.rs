//! The barrier.

use super::events::{EventPointer, pointer};
use crate::capi::boundary::{attached, entry_points};
use crate::ex::{self, Team};

entry_points! {
    unsafe fn vgasnet_ex_Coll_BarrierNB(team: *const Team, _flags: u32) -> EventPointer {
        let team = ex::find(team)?;
        Ok(pointer(Some(ex::start_barrier(team, attached()?.coll())?)))
    }
}
