//! The layout of datatypes: the places of their bytes. Pure: MPI's answers come as a [`Shape`].

use std::ops::Deref;
use std::sync::Arc;

/// Contiguous bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Offset of the first one from the type's origin; may be negative.
    pub at: i64,
    pub len: u64,
}

/// The bytes of one element in the order of its type map, and the distance of the next element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub runs: Box<[Run]>,
    /// Bytes of data: the sum of the runs.
    pub size: u64,
    /// Distance from one element to the next, in bytes.
    pub extent: i64,
}

/// A shared layout.
#[derive(Clone, Debug)]
pub enum Kept {
    /// Of a datatype that is never freed.
    Always(&'static Layout),
    Counted(Arc<Layout>),
}

impl Deref for Kept {
    type Target = Layout;

    #[inline]
    fn deref(&self) -> &Layout {
        match self {
            Kept::Always(layout) => layout,
            Kept::Counted(layout) => layout,
        }
    }
}

/// The construction of a datatype.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Contiguous bytes from its origin on.
    Bytes(u64),
    /// Types one after another, each with a displacement in bytes.
    Struct(Vec<(i64, u64, Layout)>),
    /// Blocks of one type: displacements in bytes, and elements.
    Blocks(Vec<(i64, u64)>, Layout),
    /// A part of an array in an order of dimensions, slowest first. Each dimension has its size and the selected ranges
    /// of indices: first index and length.
    Array(Vec<(u64, Vec<(u64, u64)>)>, Layout),
}

/// Collects runs, and merges adjacent ones.
#[derive(Debug, Default)]
struct Runs {
    all: Vec<Run>,
}

impl Runs {
    fn push(&mut self, at: i64, len: u64) {
        match self.all.last_mut() {
            _ if len == 0 => {}
            Some(last) if last.at + last.len as i64 == at => last.len += len,
            _ => self.all.push(Run { at, len }),
        }
    }

    /// Adds elements of a layout, from `at` on.
    fn push_elements(&mut self, at: i64, count: u64, layout: &Layout) {
        if let Some(run) = layout.block_of(count) {
            return self.push(at + run.at, run.len);
        }
        for index in 0..count as i64 {
            layout.runs.iter().for_each(|run| self.push(at + index * layout.extent + run.at, run.len));
        }
    }
}

impl Layout {
    /// The layout of a shape with this distance between elements.
    pub fn new(shape: &Shape, extent: i64) -> Layout {
        let mut runs = Runs::default();
        match shape {
            Shape::Bytes(bytes) => runs.push(0, *bytes),
            Shape::Struct(parts) => parts.iter().for_each(|(at, count, inner)| runs.push_elements(*at, *count, inner)),
            Shape::Blocks(blocks, inner) => {
                blocks.iter().for_each(|(at, count)| runs.push_elements(*at, *count, inner));
            }
            Shape::Array(dimensions, inner) => push_array(&mut runs, 0, dimensions, inner),
        }
        let runs = runs.all.into_boxed_slice();
        Layout { size: runs.iter().map(|run| run.len).sum(), runs, extent }
    }

    /// The single run of `count` elements, if they form one.
    pub fn block_of(&self, count: u64) -> Option<Run> {
        let [run] = *self.runs else { return None };
        let is_block = count == 1 || run.len as i64 == self.extent;
        is_block.then_some(Run { at: run.at, len: run.len * count })
    }

    /// Whether displacements ascend, as views require.
    pub fn is_rising(&self) -> bool {
        self.runs.windows(2).all(|pair| pair[0].at + pair[0].len as i64 <= pair[1].at)
            && self.runs.first().is_none_or(|run| run.at >= 0)
    }

    /// The runs of `count` elements.
    pub fn elements(&self, count: u64) -> impl Iterator<Item = Run> + '_ {
        let block = self.block_of(count).filter(|_| count > 0);
        let each = if block.is_some() { 0 } else { count as i64 };
        let of_each = (0..each)
            .flat_map(move |index| self.runs.iter().map(move |run| Run { at: run.at + index * self.extent, ..*run }));
        block.into_iter().chain(of_each)
    }
}

/// Adds the runs of a part of an array with its first element at `at`.
fn push_array(runs: &mut Runs, at: i64, dimensions: &[(u64, Vec<(u64, u64)>)], inner: &Layout) {
    let Some(((_, blocks), faster)) = dimensions.split_first() else {
        return runs.push_elements(at, 1, inner);
    };
    let stride = faster.iter().map(|(size, _)| *size as i64).product::<i64>() * inner.extent;
    for (first, count) in blocks {
        let at = at + *first as i64 * stride;
        if faster.is_empty() {
            runs.push_elements(at, *count, inner);
        } else {
            (0..*count as i64).for_each(|index| push_array(runs, at + index * stride, faster, inner));
        }
    }
}

/// The indices of a dimension assigned to a process: block-cyclic in blocks of `block`.
pub fn cyclic(size: u64, block: u64, processes: u64, process: u64) -> Vec<(u64, u64)> {
    let mut blocks = Vec::new();
    let mut first = process * block;
    while first < size {
        blocks.push((first, block.min(size - first)));
        first += block * processes;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: u64) -> Layout {
        Layout::new(&Shape::Bytes(len), len as i64)
    }

    fn runs(layout: &Layout) -> Vec<(i64, u64)> {
        layout.runs.iter().map(|run| (run.at, run.len)).collect()
    }

    #[test]
    fn what_is_side_by_side_is_one_run() {
        let vector = Shape::Blocks(vec![(0, 2), (16, 1), (24, 1), (40, 3)], bytes(8));
        let layout = Layout::new(&vector, 64);
        assert_eq!(runs(&layout), [(0, 32), (40, 24)]);
        assert_eq!((layout.size, layout.block_of(1)), (56, None));
        let twice: Vec<_> = layout.elements(2).collect();
        assert_eq!(twice.iter().map(|run| run.at).collect::<Vec<_>>(), [0, 40, 64, 104]);
        assert_eq!(bytes(8).elements(1000).collect::<Vec<_>>(), [Run { at: 0, len: 8000 }]);
        assert_eq!(bytes(8).elements(0).count(), 0);
    }

    #[test]
    fn elements_of_gaps_are_not_one_block() {
        let gapped = Layout::new(&Shape::Bytes(4), 8);
        assert_eq!(gapped.block_of(1), Some(Run { at: 0, len: 4 }));
        assert_eq!(gapped.block_of(2), None);
        let nested = Layout::new(&Shape::Struct(vec![(8, 2, gapped), (-4, 1, bytes(4))]), 32);
        assert_eq!(runs(&nested), [(8, 4), (16, 4), (-4, 4)]);
        assert!(!nested.is_rising());
    }

    #[test]
    fn parts_of_arrays() {
        let part = Shape::Array(vec![(3, vec![(1, 2)]), (4, vec![(1, 1), (3, 1)])], bytes(2));
        assert_eq!(runs(&Layout::new(&part, 24)), [(10, 2), (14, 2), (18, 2), (22, 2)]);
        let whole = Shape::Array(vec![(3, vec![(0, 3)]), (4, vec![(0, 4)])], bytes(2));
        assert_eq!(runs(&Layout::new(&whole, 24)), [(0, 24)]);
        assert_eq!(cyclic(10, 2, 2, 1), [(2, 2), (6, 2)]);
        assert_eq!(cyclic(7, 2, 3, 0), [(0, 2), (6, 1)]);
        assert_eq!(cyclic(3, 2, 3, 2), []);
    }
}
