//! Belady's policy: evicts the object with the latest next use, and does not cache an object used later than all
//! others. No memory is lost to fragmentation. Optimal for objects of one size.

use crate::traces::Trace;
use std::collections::BTreeSet;
use vgasnet_protocol::get_cache::{UNIT_BYTES, units_of};

/// The number of hits in a cache of `bytes`.
pub fn hits(trace: &Trace, bytes: u64) -> u64 {
    let next = next_uses(trace);
    let (mut kept, mut kept_at) = (BTreeSet::new(), vec![None; trace.sizes.len()]);
    let (mut free, mut hits) = (bytes / u64::from(UNIT_BYTES), 0);
    for (at, object) in trace.gets.iter().map(|object| *object as usize).enumerate() {
        let units = u64::from(units_of(trace.sizes[object]));
        if let Some(use_at) = kept_at[object].take() {
            hits += 1;
            kept.remove(&(use_at, object));
            free += units;
        }
        kept.insert((next[at], object));
        kept_at[object] = Some(next[at]);
        let mut left = free as i64 - units as i64;
        while left < 0 {
            let (_, gone) = kept.pop_last().expect("one at least");
            kept_at[gone] = None;
            left += i64::from(units_of(trace.sizes[gone]));
        }
        free = left as u64;
    }
    hits
}

/// By get, the time of the next get of its object.
fn next_uses(trace: &Trace) -> Vec<u64> {
    let mut next_of = vec![u64::MAX; trace.sizes.len()];
    let mut next = vec![u64::MAX; trace.gets.len()];
    for (at, object) in trace.gets.iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut next_of[*object as usize], at as u64);
    }
    next
}
