//! A process's view of a file: the visible bytes as one sequence, and their places in the file. Pure.
//!
//! A view is a displacement and a file type repeated from there on (MPI 4.0, section 14.3). Positions here count the
//! bytes visible in the view; MPI's offsets count elementary types.

use crate::layout::{Kept, Layout, Run};
use std::sync::Arc;

/// A run of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Extent {
    pub offset: u64,
    pub len: u64,
}

/// A view.
#[derive(Clone, Debug)]
pub struct View {
    displacement: u64,
    /// Bytes of an elementary type.
    pub unit: u64,
    tile: Kept,
    /// The position in its tile at which each run begins.
    starts: Box<[u64]>,
    /// The end of a tile's last byte, from its beginning.
    end: u64,
}

impl View {
    /// A view, possibly empty; `None` if displacements descend, which MPI forbids.
    pub fn new(displacement: u64, unit: u64, tile: Kept) -> Option<View> {
        if unit == 0 || tile.extent < 0 || !tile.is_rising() {
            return None;
        }
        let mut starts = Vec::with_capacity(tile.runs.len());
        let (mut at, mut end) = (0, 0);
        for run in &tile.runs {
            starts.push(at);
            at += run.len;
            end = end.max(run.at.unsigned_abs() + run.len);
        }
        Some(View { displacement, unit, tile, starts: starts.into(), end })
    }

    /// The view of a newly opened file: its bytes.
    pub fn of_bytes() -> View {
        let byte = Layout { runs: [Run { at: 0, len: 1 }].into(), size: 1, extent: 1 };
        View::new(0, 1, Kept::Counted(Arc::new(byte))).expect("a byte is a type")
    }

    /// Whether `bytes` bytes from a position on lie within the maximum file size, given by MPI's offsets.
    pub fn has_places(&self, position: u64, bytes: u64) -> bool {
        let size = u128::from(self.tile.size.max(1));
        let end = u128::from(position) + u128::from(bytes);
        let before = end.saturating_sub(1) / size * self.tile.extent as u128;
        u128::from(self.displacement) + before + u128::from(self.end) <= i64::MAX as u128
    }

    /// The places in the file of `bytes` bytes from a position on, in order.
    pub fn places(&self, position: u64, bytes: u64) -> Places<'_> {
        if self.tile.size == 0 {
            return Places { view: self, tile: 0, run: 0, skipped: 0, left: 0 };
        }
        let (tile, within) = (position / self.tile.size, position % self.tile.size);
        let run = self.starts.partition_point(|start| *start <= within) - 1;
        Places { view: self, tile, run, skipped: within - self.starts[run], left: bytes }
    }

    /// The single place of the bytes, if the view is contiguous.
    #[inline]
    pub fn block(&self, position: u64, bytes: u64) -> Option<Extent> {
        let first = self.tile.runs.first().filter(|_| self.is_block())?;
        Some(Extent { offset: self.displacement + first.at as u64 + position, len: bytes })
    }

    /// Number of bytes of the view before this place of the file.
    pub fn position_at(&self, offset: u64) -> u64 {
        let Some(beyond) = offset.checked_sub(self.displacement) else { return 0 };
        let extent = self.tile.extent as u64;
        // A tile may be longer than its extent, so earlier tiles may reach beyond, too; MPI forbids overlaps.
        let tile = beyond.checked_div(extent).unwrap_or(0);
        let within = (beyond - tile * extent) as i64;
        let shown = |run: &Run| (within - run.at).clamp(0, run.len as i64) as u64;
        tile * self.tile.size + self.tile.runs.iter().map(shown).sum::<u64>()
    }

    fn run_of(&self, tile: u64, run: usize) -> Extent {
        let Run { at, len } = self.tile.runs[run];
        Extent { offset: self.displacement + tile * self.tile.extent as u64 + at as u64, len }
    }

    /// Whether the view is contiguous.
    fn is_block(&self) -> bool {
        self.tile.runs.len() == 1 && self.tile.runs[0].len as i64 == self.tile.extent
    }
}

/// Runs of a file, in order, with adjacent ones merged.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    view: &'a View,
    tile: u64,
    run: usize,
    /// Bytes of the run to skip.
    skipped: u64,
    left: u64,
}

impl Places<'_> {
    fn piece(&mut self) -> Option<Extent> {
        if self.left == 0 {
            return None;
        }
        let whole = self.view.run_of(self.tile, self.run);
        let remaining = if self.view.is_block() { self.left } else { whole.len - self.skipped };
        let piece = Extent { offset: whole.offset + self.skipped, len: remaining.min(self.left) };
        self.left -= piece.len;
        self.skipped = 0;
        self.run += 1;
        if self.run == self.view.tile.runs.len() {
            (self.run, self.tile) = (0, self.tile + 1);
        }
        Some(piece)
    }
}

impl Iterator for Places<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let mut place = self.piece()?;
        loop {
            let before = self.clone();
            match self.piece() {
                Some(next) if place.offset + place.len == next.offset => place.len += next.len,
                Some(_) => {
                    *self = before;
                    return Some(place);
                }
                None => return Some(place),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Shape;

    /// The file offsets of the bytes visible in a view.
    fn shown(view: &View, position: u64, bytes: u64) -> Vec<u64> {
        view.places(position, bytes).flat_map(|place| place.offset..place.offset + place.len).collect()
    }

    fn made(displacement: u64, unit: u64, tile: Layout) -> Option<View> {
        View::new(displacement, unit, Kept::Counted(Arc::new(tile)))
    }

    fn view(displacement: u64, runs: &[(i64, u64)], extent: i64) -> View {
        let byte = Layout::new(&Shape::Bytes(1), 1);
        made(displacement, 2, Layout::new(&Shape::Blocks(runs.to_vec(), byte), extent)).expect("a view")
    }

    #[test]
    fn positions_are_counted_in_tiles() {
        let view = view(100, &[(2, 4), (8, 2)], 12);
        let all: Vec<u64> = vec![102, 103, 104, 105, 108, 109, 114, 115, 116, 117, 120, 121];
        assert_eq!(shown(&view, 0, 12), all);
        for from in 0..12 {
            for to in from..12 {
                assert_eq!(shown(&view, from as u64, (to - from) as u64), all[from..to]);
            }
        }
        assert_eq!(view.places(0, 12).count(), 4);
    }

    #[test]
    fn tiles_side_by_side_are_one_run() {
        let view = view(4, &[(0, 6), (8, 2)], 10);
        let runs: Vec<Extent> = view.places(6, 10).collect();
        assert_eq!(runs, [Extent { offset: 12, len: 8 }, Extent { offset: 22, len: 2 }]);
        let bytes = View::of_bytes();
        assert_eq!(bytes.places(7, 1 << 40).collect::<Vec<_>>(), [Extent { offset: 7, len: 1 << 40 }]);
        assert_eq!(bytes.block(7, 1 << 40), Some(Extent { offset: 7, len: 1 << 40 }));
        let shifted = made(100, 1, Layout::new(&Shape::Blocks(vec![(8, 4)], Layout::new(&Shape::Bytes(1), 1)), 4))
            .expect("a view");
        assert_eq!(shifted.block(3, 9), shifted.places(3, 9).next());
        assert_eq!(view.block(0, 4), None);
    }

    #[test]
    fn the_position_of_the_end() {
        let view = view(100, &[(2, 4), (8, 2)], 12);
        let positions = [0, 100, 102, 103, 106, 107, 109, 110, 112, 115].map(|offset| view.position_at(offset));
        assert_eq!(positions, [0, 0, 0, 1, 4, 4, 5, 6, 6, 7]);
        assert_eq!(View::of_bytes().position_at(77), 77);
    }

    #[test]
    fn what_lies_behind_all_files_has_no_place() {
        let far =
            |displacement: i64, position| view(displacement as u64, &[(2, 4), (8, 2)], 12).has_places(position, 6);
        assert!(far(0, 0) && far(i64::MAX - 10, 0) && !far(i64::MAX - 9, 0) && !far(i64::MAX - 20, 12));
        assert!(!far(0, u64::MAX) && !far(100, u64::MAX / 2) && far(100, u64::MAX / 8));
        let bytes = View::of_bytes();
        assert!(bytes.has_places(i64::MAX as u64 - 8, 8) && !bytes.has_places(i64::MAX as u64 - 7, 8));
    }

    #[test]
    fn what_goes_back_is_no_view() {
        let byte = || Layout::new(&Shape::Bytes(1), 1);
        let view = |runs: &[(i64, u64)]| made(0, 1, Layout::new(&Shape::Blocks(runs.to_vec(), byte()), 12));
        assert!(view(&[(4, 1), (2, 1)]).is_none() && view(&[(-1, 1)]).is_none());
        assert!(view(&[(4, 1), (5, 1)]).is_some());
    }

    #[test]
    fn ranks_without_a_part_of_the_file_see_nothing() {
        let nothing = made(8, 4, Layout::new(&Shape::Bytes(0), 0)).expect("a view");
        assert_eq!(nothing.places(0, 100).count() + nothing.places(12, 0).count(), 0);
        assert_eq!((nothing.position_at(0), nothing.position_at(1000)), (0, 0));
    }
}
