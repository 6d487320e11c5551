//! Queries of the job.

use crate::capi::boundary::{Refusal, entry_points, initialised};
use crate::ex::{self, RankInfo, Ranks};

/// Writes the answer to the places that are not null.
///
/// # Safety
/// Each pointer is null, or valid for writes.
unsafe fn tell(ranks: Option<Ranks>, info: *mut *const RankInfo, count: *mut u32, me: *mut u32) -> Result<(), Refusal> {
    initialised()?;
    let ranks = ranks.expect("the job is initialised");
    // SAFETY: each pointer is null, or valid for writes.
    unsafe {
        if let Some(info) = info.as_mut() {
            *info = ranks.all.as_ptr();
        }
        if let Some(count) = count.as_mut() {
            *count = ranks.all.len() as u32;
        }
        if let Some(me) = me.as_mut() {
            *me = ranks.me as u32;
        }
    }
    Ok(())
}

entry_points! {
    unsafe fn vgasnet_ex_System_QueryNbrhdInfo(info: *mut *const RankInfo, count: *mut u32, me: *mut u32) {
        tell(ex::nbrhd(), info, count, me)
    }

    unsafe fn vgasnet_ex_System_QueryHostInfo(info: *mut *const RankInfo, count: *mut u32, me: *mut u32) {
        tell(ex::host(), info, count, me)
    }

    unsafe fn vgasnet_ex_System_QueryMyPosition(
        nbrhds: *mut u32, my_nbrhd: *mut u32, hosts: *mut u32, my_host: *mut u32,
    ) {
        initialised()?;
        let place = ex::position().expect("the job is initialised");
        for (to, value) in [(nbrhds, place.nbrhd.0), (my_nbrhd, place.nbrhd.1), (hosts, place.host.0), (my_host, place.host.1)] {
            if let Some(to) = to.as_mut() {
                *to = value;
            }
        }
        Ok(())
    }
}
