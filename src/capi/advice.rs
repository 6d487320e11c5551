//! Pins and hints.

use super::boundary::{Refusal, attached, entry_points};
use super::{ERR_RESOURCE, OK};
use crate::ops::{Advice, PinError};
use std::ffi::{c_int, c_void};
use vgasnet_protocol::coherence::Access;

/// The hint with a `VGASNET_ADVISE_` number.
pub(super) fn hint(advice: c_int) -> Result<Advice, Refusal> {
    match advice {
        1 => Ok(Advice::WillNeed),
        2 => Ok(Advice::DontNeed),
        3 => Ok(Advice::Sequential),
        4 => Ok(Advice::ReadMostly),
        _ => {
            let line = format!("advice {advice}; give one of the VGASNET_ADVISE_ constants, 1 to 4");
            Err(Refusal::bad_argument(line))
        }
    }
}

entry_points! {
    fn vgasnet_pin(address: *mut c_void, len_bytes: usize, mode: c_int) -> c_int {
        let access = match mode {
            1 => Access::Read,
            2 => Access::Write,
            _ => {
                let line = format!("mode {mode}; give VGASNET_PIN_READ (1) or VGASNET_PIN_WRITE (2)");
                return Err(Refusal::bad_argument(line));
            }
        };
        match attached()?.ops().pin(address.addr(), len_bytes, access) {
            Ok(()) => Ok(OK),
            Err(PinError::BadArgument(line)) => Err(Refusal::bad_argument(line)),
            Err(PinError::Resource(line)) => Err(Refusal::with_code(ERR_RESOURCE, line)),
        }
    }

    fn vgasnet_unpin(address: *mut c_void, len_bytes: usize) -> c_int {
        attached()?.ops().unpin(address.addr(), len_bytes).map(|()| OK).map_err(Refusal::bad_argument)
    }

    fn vgasnet_advise(address: *mut c_void, len_bytes: usize, advice: c_int) -> c_int {
        let advice = hint(advice)?;
        attached()?.ops().advise(address.addr(), len_bytes, advice).map(|()| OK).map_err(Refusal::bad_argument)
    }
}
