//! Read-only ranges, through the functions of the C interface.

use std::ffi::{c_int, c_void};
use std::ops::Sub;
use std::ptr::{null, with_exposed_provenance_mut};

use serde::{Deserialize, Serialize};

use crate::rank::fail;

/// `vgasnet_readonly_stats_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    pub gets: u64,
    pub hits: u64,
    pub partial: u64,
    pub joined: u64,
    pub direct: u64,
    pub conflicting: u64,
    pub capacity: u64,
    pub failing: u64,
    pub evicted: u64,
    pub bytes_hit: u64,
    pub bytes_fetched: u64,
    pub entries: u64,
    pub bytes_used: u64,
    pub bytes_max: u64,
}

impl Sub for Stats {
    type Output = Stats;

    /// The counts since `before`, and the current values of the others.
    fn sub(self, before: Stats) -> Stats {
        Stats {
            gets: self.gets - before.gets,
            hits: self.hits - before.hits,
            partial: self.partial - before.partial,
            joined: self.joined - before.joined,
            direct: self.direct - before.direct,
            conflicting: self.conflicting - before.conflicting,
            capacity: self.capacity - before.capacity,
            failing: self.failing - before.failing,
            evicted: self.evicted - before.evicted,
            bytes_hit: self.bytes_hit - before.bytes_hit,
            bytes_fetched: self.bytes_fetched - before.bytes_fetched,
            ..self
        }
    }
}

unsafe extern "C" {
    fn vgasnet_readonly_begin(node: u32, at: *mut c_void, len: usize, flags: c_int, options: *const c_void) -> c_int;
    fn vgasnet_readonly_end(node: u32, at: *mut c_void, len: usize) -> c_int;
    fn vgasnet_readonly_stats(stats: *mut Stats, struct_bytes: usize) -> c_int;
}

/// A read-only range, ended when this is dropped.
pub struct ReadOnly {
    node: u32,
    address: usize,
    len_bytes: usize,
}

impl ReadOnly {
    pub fn begin(node: u32, address: usize, len_bytes: usize) -> ReadOnly {
        // SAFETY: there are no options. The library checks the range.
        let code = unsafe { vgasnet_readonly_begin(node, with_exposed_provenance_mut(address), len_bytes, 0, null()) };
        if code != 0 {
            fail(format!("a read-only range of {len_bytes} bytes was refused with code {code}"));
        }
        ReadOnly { node, address, len_bytes }
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        // SAFETY: all gets of this program are blocking, so none is in flight. The library checks the range.
        let code =
            unsafe { vgasnet_readonly_end(self.node, with_exposed_provenance_mut(self.address), self.len_bytes) };
        if code != 0 {
            fail(format!("the end of a read-only range was refused with code {code}"));
        }
    }
}

/// The counters of this rank's caches of gets since the start of the job.
pub fn stats() -> Stats {
    let mut stats = Stats::default();
    // SAFETY: the structure equals the one in the header and has the given length.
    let code = unsafe { vgasnet_readonly_stats(&raw mut stats, size_of::<Stats>()) };
    if code != 0 {
        fail(format!("statistics of gets were refused with code {code}"));
    }
    stats
}
