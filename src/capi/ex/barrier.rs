//! The barrier.

use super::events::{EventPointer, pointer};
use crate::capi::barrier::misuse;
use crate::capi::boundary::{attached, entry_points};
use crate::ex::{self, Team, early};
use vgasnet_protocol::barrier::Name;

entry_points! {
    unsafe fn vgasnet_ex_Coll_BarrierNB(team: *const Team, _flags: u32) -> EventPointer {
        let team = ex::find(team)?;
        if early::is_early() {
            early::notify(Name::Anonymous).map_err(misuse)?;
            early::wait(Name::Anonymous)?.map_err(misuse)?;
            return Ok(pointer(None));
        }
        Ok(pointer(Some(ex::start_barrier(team, attached()?.coll())?)))
    }
}
