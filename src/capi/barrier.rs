//! The barrier.

use super::boundary::{Refusal, attached, entry_points};
use super::sync::not_ready;
use super::{ERR_BARRIER_MISMATCH, OK};
use crate::barrier::{Misuse, Name};
use crate::error::UserError;
use std::ffi::c_int;

/// `VGASNET_BARRIERFLAG_ANONYMOUS`.
const ANONYMOUS: c_int = 1;
/// `VGASNET_BARRIERFLAG_MISMATCH`.
const MISMATCH: c_int = 2;

entry_points! {
    fn vgasnet_barrier_notify(id: c_int, flags: c_int) {
        attached()?.barrier_notify(name(id, flags)?).map_err(misuse)
    }

    fn vgasnet_barrier_wait(id: c_int, flags: c_int) -> c_int {
        attached()?.barrier_wait(name(id, flags)?).map(code).map_err(misuse)
    }

    fn vgasnet_barrier_try(id: c_int, flags: c_int) -> c_int {
        let matched = attached()?.barrier_try(name(id, flags)?).map_err(misuse)?;
        Ok(matched.map_or_else(not_ready, code))
    }
}

fn code(matched: bool) -> c_int {
    if matched { OK } else { ERR_BARRIER_MISMATCH }
}

fn name(id: c_int, flags: c_int) -> Result<Name, UserError> {
    match flags {
        0 => Ok(Name::Id(id)),
        ANONYMOUS => Ok(Name::Anonymous),
        _ if flags & !(ANONYMOUS | MISMATCH) == 0 => Ok(Name::Mismatch),
        _ => Err(UserError::new(format!(
            "flags {flags:#x} are unknown; allowed are 0, VGASNET_BARRIERFLAG_ANONYMOUS (1) and \
             VGASNET_BARRIERFLAG_MISMATCH (2)"
        ))),
    }
}

fn misuse(misuse: Misuse) -> Refusal {
    let line = match misuse {
        Misuse::NotifiedTwice => "this rank has notified already; wait for that barrier before you notify again",
        Misuse::NotNotified => "this rank has not notified; call vgasnet_barrier_notify first",
    };
    UserError::new(line).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_the_barrier() {
        assert_eq!(name(7, 0), Ok(Name::Id(7)));
        assert_eq!(name(7, ANONYMOUS), Ok(Name::Anonymous));
        assert_eq!(name(7, MISMATCH), Ok(Name::Mismatch));
        assert_eq!(name(7, ANONYMOUS | MISMATCH), Ok(Name::Mismatch));
        for flags in [4, 5, 6, -1, c_int::MIN] {
            assert!(name(7, flags).is_err(), "{flags}");
        }
    }
}
