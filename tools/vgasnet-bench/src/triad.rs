//! a = b + s * c over three arrays in the rank's own segment, by loads and stores. Arrays that fit the pool are
//! compared with the allocator's memory, larger ones with the disk.

mod in_pool;
pub mod mapped;
mod out_of_core;

pub use in_pool::InPool;
pub use out_of_core::{InSegment, OutOfCore, Passes, Plain};

use crate::arrays::{ARRAYS, Arrays};
use crate::plan::Spec;
use crate::rank::Rank;
use serde::{Deserialize, Serialize};

/// Measurements of rank 0.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Found {
    InPool(InPool),
    OutOfCore(OutOfCore),
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let array_bytes = spec.data_bytes / ARRAYS;
    // SAFETY: the segment starts with the data, page-aligned. The job has one rank, which uses the data only here.
    let mut arrays = unsafe { Arrays::new(rank.own_segment(), array_bytes, spec.seed) };
    if spec.data_bytes <= rank.pool_bytes {
        Found::InPool(in_pool::run(&mut arrays, array_bytes, spec))
    } else {
        Found::OutOfCore(out_of_core::run(rank, &mut arrays, array_bytes, spec))
    }
}

/// A value that differs from turn to turn, so the result of an earlier turn is wrong.
fn scalar(turn: u32) -> f64 {
    f64::from(turn % 13 + 1)
}
