//! a = b + s * c over three arrays in the rank's own segment, by loads and stores: arrays that the pool holds against
//! memory of the allocator, larger ones against the disk.

mod in_pool;
pub mod mapped;
mod out_of_core;

pub use in_pool::InPool;
pub use out_of_core::{OutOfCore, Passes};

use crate::arrays::{ARRAYS, Arrays};
use crate::plan::Spec;
use crate::rank::Rank;
use serde::{Deserialize, Serialize};

/// What rank 0 measured.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Found {
    InPool(InPool),
    OutOfCore(OutOfCore),
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let array_bytes = spec.data_bytes / ARRAYS;
    // SAFETY: the segment begins with the data, page-aligned; this job has one rank, and nothing else in it uses the data.
    let mut arrays = unsafe { Arrays::new(rank.own_segment(), array_bytes, spec.seed) };
    if spec.data_bytes <= rank.pool_bytes {
        Found::InPool(in_pool::run(&mut arrays, array_bytes, spec))
    } else {
        Found::OutOfCore(out_of_core::run(rank, &mut arrays, array_bytes, spec))
    }
}

/// Another one each time, so that a result that is left from before is wrong.
fn scalar(turn: u32) -> f64 {
    f64::from(turn % 13 + 1)
}
