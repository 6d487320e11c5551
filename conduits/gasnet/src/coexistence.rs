//! Coexistence with a program that calls GASNet itself. There is one GASNet, which the program initialises and ends, and one segment, of
//! which the program and vgasnet have a part each.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use vgasnet_conduit::ConduitError;

use crate::ffi::{self, GasnetError};

static IS_ATTACHED: AtomicBool = AtomicBool::new(false);

/// Attaches GASNet for the program, as `gasnet_attach` does, and for vgasnet. Collective, once, before the network starts.
///
/// # Errors
/// GASNet is not initialised, or it refuses.
///
/// # Safety
/// `table` has `count` entries of `gasnet_handlerentry_t`.
pub unsafe fn attach_both(
    table: *mut c_void,
    count: c_int,
    segment_bytes: usize,
    min_heap_offset: usize,
) -> Result<(), ConduitError> {
    // SAFETY: the caller promises that `table` has `count` entries, which is all that the call asks for.
    let attached = unsafe { ffi::attach_both(table, count, segment_bytes, min_heap_offset) };
    attached.map_err(|GasnetError(text)| ConduitError(text))?;
    IS_ATTACHED.store(true, Ordering::Release);
    Ok(())
}

/// Whether the program has attached GASNet for both.
pub fn is_attached() -> bool {
    IS_ATTACHED.load(Ordering::Acquire)
}
