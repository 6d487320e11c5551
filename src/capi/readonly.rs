//! Ranges declared read-only.

use super::OK;
use super::access::transfer;
use super::boundary::{Refusal, attached, entry_points};
use crate::ops::{EndError, Operation, RangeOptions, Remote};
use std::ffi::{c_int, c_void};
use vgasnet_settings::UserError;

/// `VGASNET_READONLY_KEEP`.
const KEEP: c_int = 1;

/// `vgasnet_readonly_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    struct_bytes: usize,
    cache_bytes_max: usize,
    get_bytes_max: usize,
    object_bytes: usize,
}

/// The client's options, or the defaults.
///
/// # Safety
/// `options` is null, or points to a structure as long as its `struct_bytes`.
unsafe fn options(options: *const Options, keeps: bool) -> Result<RangeOptions, Refusal> {
    // SAFETY: it is null, or points to a structure.
    let Some(given) = (unsafe { options.as_ref() }) else {
        return Ok(RangeOptions { cache_bytes_max: 0, get_bytes_max: 0, object_bytes: 0, keeps });
    };
    if given.struct_bytes != size_of::<Options>() {
        let (bytes, expected) = (given.struct_bytes, size_of::<Options>());
        return Err(Refusal::bad_argument(format!(
            "options of {bytes} bytes; set struct_bytes to sizeof(vgasnet_readonly_options_t), which is {expected}"
        )));
    }
    let Options { cache_bytes_max, get_bytes_max, object_bytes, .. } = *given;
    Ok(RangeOptions { cache_bytes_max, get_bytes_max, object_bytes, keeps })
}

fn range(node: u32, address: *mut c_void, len_bytes: usize) -> Remote {
    Remote { rank: node, address: address.addr(), len_bytes }
}

entry_points! {
    fn vgasnet_readonly_end(node: u32, address: *mut c_void, len_bytes: usize) -> c_int {
        match attached()?.ops().readonly().end(range(node, address, len_bytes)) {
            Ok(()) => Ok(OK),
            Err(EndError::BadArgument(line)) => Err(Refusal::bad_argument(line)),
            // The error ends the job.
            Err(EndError::Broken(line)) => Err(Refusal::from(line)),
        }
    }
}

entry_points! {
    unsafe fn vgasnet_readonly_begin(
        node: u32, address: *mut c_void, len_bytes: usize, flags: c_int, given: *const Options,
    ) -> c_int {
        if flags & !KEEP != 0 {
            let line = format!("flags {flags:#x}; give 0 or VGASNET_READONLY_KEEP ({KEEP})");
            return Err(Refusal::bad_argument(line));
        }
        let (ops, options) = (attached()?.ops(), options(given, flags & KEEP != 0)?);
        ops.readonly().begin(range(node, address, len_bytes), options).map_err(Refusal::bad_argument)?;
        Ok(OK)
    }

    unsafe fn vgasnet_get_weighted(
        dest: *mut c_void [len_bytes], node: u32, src: *mut c_void, len_bytes: usize, weight: f32,
    ) {
        if !(weight > 0.0 && weight.is_finite()) {
            return Err(UserError::new(format!("the weight is {weight}; give a positive number, 1 for a usual get")).into());
        }
        transfer(Operation::GetWeighted(dest.cast(), weight), range(node, src, len_bytes))
    }

    unsafe fn vgasnet_readonly_stats(stats: *mut c_void [struct_bytes], struct_bytes: usize) -> c_int {
        let counts = attached()?.ops().readonly().stats();
        let words = [
            counts.gets, counts.hits, counts.partial, counts.joined, counts.direct, counts.conflicting, counts.capacity,
            counts.failing, counts.evicted, counts.bytes_hit, counts.bytes_fetched, counts.entries, counts.bytes_used,
            counts.bytes_max,
        ];
        if stats.is_null() || struct_bytes == 0 || struct_bytes % size_of::<u64>() != 0 || struct_bytes > size_of_val(&words) {
            return Err(Refusal::bad_argument(format!(
                "a structure of {struct_bytes} bytes at {stats:p}; give the address of a vgasnet_readonly_stats_t, and its size of {}",
                size_of_val(&words)
            )));
        }
        std::ptr::copy_nonoverlapping(words.as_ptr().cast(), stats.cast::<u8>(), struct_bytes);
        Ok(OK)
    }
}
