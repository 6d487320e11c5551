//! The statistics of this rank.

use super::boundary::{Refusal, attached, entry_points};
use super::{ERR_NOT_READY, OK};
use crate::job;
use std::ffi::{c_int, c_void};
use vgasnet_stats::{self as stats, ROWS, Snapshot};

entry_points! {
    unsafe fn vgasnet_stats(stats: *mut c_void [size], size: usize) -> c_int {
        attached()?;
        if stats.is_null() || size < size_of::<u64>() {
            return Err(Refusal::bad_argument(format!(
                "a structure of {size} bytes at {stats:p}; give the address of a vgasnet_stats_t, and its size"
            )));
        }
        let Some(snapshot) = job::own_statistics() else { return Ok(ERR_NOT_READY) };
        let mut words = words(&snapshot);
        words.truncate(size / size_of::<u64>());
        words[0] = size_of_val(&*words) as u64;
        std::ptr::copy_nonoverlapping(words.as_ptr().cast(), stats.cast::<u8>(), size_of_val(&*words));
        Ok(OK)
    }
}

/// The words of a `vgasnet_stats_t`. The first is for its size.
fn words(snapshot: &Snapshot) -> Vec<u64> {
    let of_row = |declared: &stats::Declared| match snapshot.times_of(declared.row) {
        None => vec![snapshot.get(declared.row)],
        Some(times) => {
            let percentiles = [50, 90, 99].map(|percent| times.percentile_ns(percent));
            [&[times.count(), times.sum_ns], percentiles.as_slice(), &[times.max_ns]].concat()
        }
    };
    std::iter::once(0).chain(ROWS.iter().flat_map(of_row)).collect()
}
