//! Bytes of a file that could not be written: their exchange between the ranks of a team, and words for them.

use std::ops::Range;
use vgasnet_engine::{Unwritten, joined};
use vgasnet_protocol::coherence::Cause;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Maximum ranges told to other ranks.
const TOLD_MAX: usize = 16;

/// Maximum ranges named in a line.
const NAMED_MAX: usize = 4;

/// A rank's report of the bytes it could not write.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Told {
    /// The error number, or 0.
    errno: u32,
    /// Number of further ranges.
    more: u32,
    /// Start and end; equal for an unused entry.
    ranges: [[u64; 2]; TOLD_MAX],
}

impl Told {
    pub(super) fn new(unwritten: Option<&Unwritten>) -> Told {
        let mut told = Told::default();
        let Some(Unwritten { cause, ranges }) = unwritten else { return told };
        told.errno = cause.0;
        told.ranges.iter_mut().zip(ranges).for_each(|(told, range)| *told = [range.start, range.end]);
        told.more = ranges.len().saturating_sub(TOLD_MAX) as u32;
        told
    }
}

/// The bytes of a file of this size that all ranks together could not write, if any: the first cause, and words for a
/// line.
pub(super) fn of_all(all: &[Told], size_bytes: u64) -> Option<(Cause, String)> {
    let cause = all.iter().map(|told| told.errno).find(|errno| *errno != 0)?;
    // Blocks are written whole, even at the end.
    let ranges = all.iter().flat_map(|told| told.ranges).map(|[start, end]| start..end.min(size_bytes));
    let ranges = joined(ranges.filter(|range| !range.is_empty()).collect());
    // Beyond this offset some rank has further ranges, not reported.
    let untold = all.iter().filter(|told| told.more > 0).map(|told| told.ranges[TOLD_MAX - 1][1]).min();
    let known = ranges.iter().take_while(|range| untold.is_none_or(|untold| range.start < untold)).count();
    let more: u64 = all.iter().map(|told| u64::from(told.more)).sum();
    Some((Cause(cause), named(&ranges[..known], more + (ranges.len() - known) as u64)))
}

/// Words for ranges and `more` unnamed ones: "bytes 0 to 4095 and 3 more ranges".
pub(super) fn named(ranges: &[Range<u64>], more: u64) -> String {
    let shown = ranges.iter().take(NAMED_MAX).map(|range| format!("{} to {}", range.start, range.end - 1));
    let shown: Vec<String> = shown.collect();
    match (shown.is_empty(), more + ranges.len().saturating_sub(NAMED_MAX) as u64) {
        (true, _) => "some bytes".to_owned(),
        (false, 0) => format!("bytes {}", shown.join(", ")),
        (false, 1) => format!("bytes {} and 1 more range", shown.join(", ")),
        (false, more) => format!("bytes {} and {more} more ranges", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(ranges: &[Range<u64>]) -> Told {
        Told::new(Some(&Unwritten { cause: Cause(28), ranges: ranges.to_vec() }))
    }

    #[test]
    fn ranges_of_all_ranks_are_named_in_order() {
        assert_eq!(of_all(&[Told::default(); 3], 100), None);
        let all = [told(&[0..10, 8192..12288]), Told::default(), told(&[0..4096, 4096..8192])];
        assert_eq!(of_all(&all, 10_000), Some((Cause(28), "bytes 0 to 9999".to_owned())));
        let apart: Vec<Range<u64>> = (0..7).map(|at| at * 10..at * 10 + 5).collect();
        let words = "bytes 0 to 4, 10 to 14, 20 to 24, 30 to 34 and 3 more ranges";
        assert_eq!(of_all(&[told(&apart)], 100), Some((Cause(28), words.to_owned())));
        // An unreported range may lie before others.
        let many: Vec<Range<u64>> = (0..18).map(|at| at * 10..at * 10 + 5).collect();
        let first = "bytes 0 to 4, 10 to 14, 20 to 24, 30 to 34 and";
        let words = format!("{first} 16 more ranges");
        assert_eq!(of_all(&[told(&many), told(&[175..180, 300..305])], 400), Some((Cause(28), words)));
        let words = "bytes 0 to 4, 10 to 14, 20 to 24, 30 to 34 and 1 more range";
        assert_eq!(of_all(&[told(&apart[..4]), told(&apart[4..5])], 100), Some((Cause(28), words.to_owned())));
        assert_eq!(of_all(&[told(&[])], 100), Some((Cause(28), "some bytes".to_owned())));
    }
}
