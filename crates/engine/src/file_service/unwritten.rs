//! Data of a file that could not be written.

use std::ops::Range;
use vgasnet_protocol::coherence::Cause;

/// The part of a file that could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The cause.
    pub cause: Cause,
    /// The bytes: sorted ranges that do not touch.
    pub ranges: Vec<Range<u64>>,
}

/// Sorts ranges and merges touching ones.
pub fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    debug_assert!(joined.windows(2).all(|two| two[0].end < two[1].start), "the ranges are sorted and do not touch");
    joined
}
