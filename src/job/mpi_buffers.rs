//! Access to the own segment for MPI calls with addresses in it.

use super::{Runtime, fail, job, ranks_on_host, refusal_in_child, runtime};
use crate::ops::{Operation, Remote};
use std::panic::{AssertUnwindSafe, catch_unwind};
use vgasnet_settings::Machine;
use vgasnet_settings::UserError;

/// Lets MPI calls use addresses in the own segment.
pub(super) fn offer_segment(runtime: &Runtime) {
    let segment = runtime.space().own_segment();
    let (base, len_bytes) = (segment.base, segment.size_bytes);
    vgasnet_mpi::set_segment(vgasnet_mpi::Segment { base, len_bytes, get, put, refuse, available_bytes });
}

/// # Safety
/// `to` is valid for `len_bytes` bytes.
unsafe fn get(call: &str, address: usize, to: *mut u8, len_bytes: usize) {
    // SAFETY: `to` is valid for `len_bytes` bytes.
    unsafe { transfer(call, Operation::Get(to), address, len_bytes) };
}

/// # Safety
/// `from` is valid for `len_bytes` bytes.
unsafe fn put(call: &str, address: usize, from: *const u8, len_bytes: usize) {
    // SAFETY: `from` is valid for `len_bytes` bytes.
    unsafe { transfer(call, Operation::Put(from), address, len_bytes) };
}

/// Does a transfer of the own segment. A failure ends the job.
///
/// # Safety
/// The memory in the operation is valid for `len_bytes` bytes.
unsafe fn transfer(call: &str, operation: Operation, address: usize, len_bytes: usize) {
    // A panic may leave broken state behind, but the process ends before anything uses it.
    let done = catch_unwind(AssertUnwindSafe(|| {
        let too_early = || refusal_in_child().unwrap_or_else(|| UserError::new("this rank has no segment"));
        let ops = runtime().ok_or_else(too_early)?.ops();
        let remote = Remote { rank: ops.space().rank.0, address, len_bytes };
        // SAFETY: the memory in the operation is valid for `len_bytes` bytes.
        unsafe { ops.transfer(operation, remote) }
    }));
    if let Err(line) = done.unwrap_or_else(|_| Err(UserError::of_panic())) {
        fail(call, &line);
    }
}

fn refuse(call: &str, why: &str) -> ! {
    fail(call, &UserError::new(why))
}

/// This rank's share of the memory available on its host.
fn available_bytes() -> u64 {
    let ranks = job().map_or(1, |job| ranks_on_host(&*job.conduit));
    Machine::observe().memory_available_bytes / u64::from(ranks)
}
