//! Belady's policy: the object whose next use is the last goes, and an object whose next use is later than those of all others is not
//! kept. No memory is lost between objects. Of objects of one size nobody does better.

use crate::traces::Trace;
use std::collections::BTreeSet;
use vgasnet_protocol::get_cache::{UNIT_BYTES, units_of};

/// How many gets hit in a cache of so many bytes.
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

/// When the object of each get is asked for next.
fn next_uses(trace: &Trace) -> Vec<u64> {
    let mut next_of = vec![u64::MAX; trace.sizes.len()];
    let mut next = vec![u64::MAX; trace.gets.len()];
    for (at, object) in trace.gets.iter().enumerate().rev() {
        next[at] = std::mem::replace(&mut next_of[*object as usize], at as u64);
    }
    next
}
