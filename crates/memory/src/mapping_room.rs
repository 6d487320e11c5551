//! The number of the system's mappings that a rank may take for the pages of its segment.

use super::{FRAMES_MIN, Shape};
use std::fs;

/// The system's default limit per process (`vm.max_map_count`).
const LIMIT_DEFAULT: u32 = 65_530;

/// One mapping in this many is left to the client and its libraries, besides their mappings at attach.
const CLIENT_PART: u32 = 8;

/// Of the others, one in this many is for loans, if there are any.
const LOANS_PART: u32 = 4;

/// Of the remainder, one in this many is for blocks, if there are any.
const BLOCKS_PART: u32 = 4;

/// Mappings per page of a segment, at most: its own, and the range without access behind it.
const AREAS_OF_PAGE: u32 = 2;

/// The system's mappings that a rank may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingRoom {
    /// Mappings of the process before.
    in_use: u32,
    lends: bool,
    for_blocks: u32,
    /// For frames of the own pool.
    pub areas_max: u32,
    /// Maximum number of mapped frames of neighbours.
    pub loans_max: u32,
}

impl MappingRoom {
    /// The present room of a rank. `lends`: neighbours lend it frames. It maps at most `blocks` blocks.
    pub fn observe(lends: bool, blocks: u32) -> MappingRoom {
        let limit = fs::read_to_string("/proc/sys/vm/max_map_count").ok();
        let limit = limit.and_then(|limit| limit.trim().parse().ok()).unwrap_or(LIMIT_DEFAULT);
        let in_use = fs::read("/proc/self/maps").map_or(0, |maps| maps.iter().filter(|byte| **byte == b'\n').count());
        MappingRoom::of(limit, in_use as u32, lends, blocks)
    }

    fn of(limit: u32, in_use: u32, lends: bool, blocks: u32) -> MappingRoom {
        let remaining = (limit - limit / CLIENT_PART).saturating_sub(in_use);
        let for_loans = if lends { remaining / LOANS_PART } else { 0 };
        let for_blocks = blocks.saturating_mul(AREAS_OF_PAGE).min((remaining - for_loans) / BLOCKS_PART);
        MappingRoom {
            in_use,
            lends,
            for_blocks,
            areas_max: (remaining - for_loans - for_blocks).max(AREAS_OF_PAGE * FRAMES_MIN),
            loans_max: for_loans / AREAS_OF_PAGE,
        }
    }

    /// Maximum number of mapped blocks.
    pub fn blocks_max(&self) -> u32 {
        self.for_blocks / AREAS_OF_PAGE
    }

    /// The value of `vm.max_map_count` needed to map all frames of a rank, wherever their pages lie; `None` if the
    /// present one suffices.
    pub fn limit_for(&self, shape: Shape) -> Option<u64> {
        const STEP: u64 = 1 << 16;
        let [frames, pages] = [shape.frames, shape.pages].map(u64::from);
        let areas = (frames * u64::from(AREAS_OF_PAGE)).min(pages);
        let with_part = |areas: u64, part: u32, is_any: bool| {
            if is_any { areas * u64::from(part) / u64::from(part - 1) } else { areas }
        };
        let with_blocks = with_part(areas, BLOCKS_PART, self.for_blocks > 0);
        let with_loans = with_part(with_blocks, LOANS_PART, self.lends);
        let all = with_part(with_loans + u64::from(self.in_use), CLIENT_PART, true);
        (areas > u64::from(self.areas_max)).then(|| (all + STEP / 8).next_multiple_of(STEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_mappings_are_taken_and_some_left() {
        let alone = MappingRoom::of(65_530, 100, false, 0);
        assert_eq!((alone.areas_max, alone.loans_max), (65_530 - 8191 - 100, 0));
        let lends = MappingRoom::of(65_530, 100, true, 0);
        assert_eq!((lends.areas_max, lends.loans_max), (42_930, 7154));
        assert_eq!(MappingRoom::of(65_530, 100, false, 1000).blocks_max(), 1000);
        let many = MappingRoom::of(65_530, 100, true, 16_384);
        assert_eq!((many.areas_max, many.blocks_max()), (32_198, 5366));
        assert!(lends.areas_max + 2 * lends.loans_max + 100 + 8000 < 65_530);
        assert_eq!(
            MappingRoom::of(100, 1000, true, 0).areas_max,
            8,
            "pages that an instruction needs are mapped whatever it takes"
        );
    }

    #[test]
    fn the_reported_limit_is_enough() {
        let shape = |frames, pages| Shape { frames, pages };
        for (lends, blocks) in [(false, 0), (true, 0), (true, 16_384)] {
            let room = MappingRoom::of(65_530, 300, lends, blocks);
            assert_eq!(room.limit_for(shape(15_000, 1 << 20)), None);
            assert_eq!(
                room.limit_for(shape(1 << 20, 30_000)),
                None,
                "no more than all pages of the segment are mapped"
            );
            for frames in [30_000, 262_144, 1 << 24] {
                let limit = room.limit_for(shape(frames, u32::MAX)).expect("more than there is room for");
                let larger = MappingRoom::of(u32::try_from(limit).expect("small"), 300, lends, blocks);
                assert_eq!(larger.limit_for(shape(frames, u32::MAX)), None, "{frames} frames: {limit}");
            }
        }
    }
}
