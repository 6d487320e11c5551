//! MPI's datatypes as layouts. A derived type keeps its layout as an attribute until it is freed.

use crate::ffi::constants;
use crate::ffi_types::{self, About};
use crate::layout::{Kept, Layout, Shape, cyclic};
use crate::named;
use std::sync::Arc;
use vgasnet_mpi_front::Handle;
use vgasnet_mpi_front::kind::Datatype;

/// `enum kind` of `types.c`.
mod kind {
    pub const NAMED: i32 = 0;
    pub const DUP: i32 = 1;
    pub const CONTIGUOUS: i32 = 2;
    pub const VECTOR: i32 = 3;
    pub const HVECTOR: i32 = 4;
    pub const INDEXED: i32 = 5;
    pub const HINDEXED: i32 = 6;
    pub const INDEXED_BLOCK: i32 = 7;
    pub const HINDEXED_BLOCK: i32 = 8;
    pub const STRUCT: i32 = 9;
    pub const SUBARRAY: i32 = 10;
    pub const DARRAY: i32 = 11;
    pub const RESIZED: i32 = 12;
}

/// The layout of a datatype; `None` if it is invalid, not committed, or made in an unknown way.
#[inline]
pub fn layout_of(datatype: Handle<Datatype>) -> Option<Kept> {
    named::find(datatype.bits()).map(Kept::Always).or_else(|| known_or(datatype, ffi_types::is_committed))
}

/// The same for a datatype contained in another, which need not be committed.
fn inner_layout_of(datatype: Handle<Datatype>) -> Option<Kept> {
    named::find(datatype.bits()).map(Kept::Always).or_else(|| known_or(datatype, |_| true))
}

fn known_or(datatype: Handle<Datatype>, may_be_used: impl Fn(Handle<Datatype>) -> bool) -> Option<Kept> {
    if let Some(known) = ffi_types::known_layout(datatype) {
        return Some(Kept::Counted(known));
    }
    if !may_be_used(datatype) {
        return None;
    }
    let about = ffi_types::about(datatype)?;
    let layout = made(datatype, &about)?;
    Some(if about.kind == kind::NAMED {
        named::keep(datatype.bits(), layout)
    } else {
        Kept::Counted(ffi_types::keep_layout(datatype, Arc::new(layout)))
    })
}

fn made(datatype: Handle<Datatype>, about: &About) -> Option<Layout> {
    let shape = if about.kind == kind::NAMED { named(about) } else { derived(datatype, about)? };
    let layout = Layout::new(&shape, about.extent);
    // The layout must have MPI's size, or the type was not understood.
    (layout.size == about.size as u64).then_some(layout)
}

fn named(about: &About) -> Shape {
    if about.is_short_int == 0 {
        return Shape::Bytes(about.size as u64);
    }
    let bytes = |len: u64| Layout::new(&Shape::Bytes(len), len as i64);
    Shape::Struct(vec![(0, 1, bytes(2)), (about.true_extent - 4, 1, bytes(4))])
}

/// Reads the numbers of a type's construction, in order.
struct Numbers<'a>(&'a [i64]);

impl<'a> Numbers<'a> {
    fn next(&mut self) -> Option<i64> {
        Some(self.some(1)?[0])
    }

    fn some(&mut self, count: usize) -> Option<&'a [i64]> {
        let (some, remaining) = self.0.split_at_checked(count)?;
        self.0 = remaining;
        Some(some)
    }
}

fn derived(datatype: Handle<Datatype>, about: &About) -> Option<Shape> {
    let contents = ffi_types::contents(datatype, about)?;
    let inner: Vec<Kept> = contents.types().iter().map(|inner| inner_layout_of(*inner)).collect::<Option<_>>()?;
    let first = || inner.first().map(|layout| Layout::clone(layout));
    let mut numbers = Numbers(&contents.numbers);
    match about.kind {
        kind::DUP | kind::RESIZED => Some(Shape::Blocks(vec![(0, 1)], first()?)),
        kind::CONTIGUOUS => Some(Shape::Blocks(vec![(0, numbers.next()? as u64)], first()?)),
        kind::VECTOR | kind::HVECTOR => {
            let (count, len, stride) = (numbers.next()?, numbers.next()?, numbers.next()?);
            let inner = first()?;
            let unit = if about.kind == kind::VECTOR { inner.extent } else { 1 };
            Some(Shape::Blocks((0..count).map(|index| (index * stride * unit, len as u64)).collect(), inner))
        }
        kind::INDEXED | kind::HINDEXED => {
            let count = numbers.next()? as usize;
            let (lens, places) = (numbers.some(count)?, numbers.some(count)?);
            let inner = first()?;
            let unit = if about.kind == kind::INDEXED { inner.extent } else { 1 };
            Some(Shape::Blocks(places.iter().zip(lens).map(|(at, len)| (at * unit, *len as u64)).collect(), inner))
        }
        kind::INDEXED_BLOCK | kind::HINDEXED_BLOCK => {
            let (count, len) = (numbers.next()? as usize, numbers.next()?);
            let inner = first()?;
            let unit = if about.kind == kind::INDEXED_BLOCK { inner.extent } else { 1 };
            Some(Shape::Blocks(numbers.some(count)?.iter().map(|at| (at * unit, len as u64)).collect(), inner))
        }
        kind::STRUCT => {
            let count = numbers.next()? as usize;
            let (lens, places) = (numbers.some(count)?, numbers.some(count)?);
            let parts = places.iter().zip(lens).zip(&inner);
            Some(Shape::Struct(parts.map(|((at, len), layout)| (*at, *len as u64, Layout::clone(layout))).collect()))
        }
        kind::SUBARRAY => subarray(&contents.numbers, about, first()?),
        kind::DARRAY => distributed(&contents.numbers, about, first()?),
        _ => None,
    }
}

/// Orders dimensions with the slowest first.
fn in_order<T>(mut dimensions: Vec<T>, order: i64) -> Vec<T> {
    if order == i64::from(constants().order_fortran) {
        dimensions.reverse();
    }
    dimensions
}

/// Integers are the number of dimensions and, before or after the arrays, the order. The arrays are integers, or counts
/// of MPI 4.
fn subarray(numbers: &[i64], about: &About, inner: Layout) -> Option<Shape> {
    let rank = *numbers.first()? as usize;
    let (order, arrays) = match about.counts {
        0 => (*numbers.get(1 + 3 * rank)?, numbers.get(1..1 + 3 * rank)?),
        _ => (*numbers.get(1)?, numbers.get(2..2 + 3 * rank)?),
    };
    let dimension = |at: usize| (arrays[at] as u64, vec![(arrays[2 * rank + at] as u64, arrays[rank + at] as u64)]);
    Some(Shape::Array(in_order((0..rank).map(dimension).collect(), order), inner))
}

/// Integers are size, rank, number of dimensions, array sizes, distributions, their arguments, process grid, order. The
/// array sizes may instead be counts of MPI 4, after everything else. The grid is in row-major order (MPI 4.0, section
/// 5.1.4).
fn distributed(numbers: &[i64], about: &About, inner: Layout) -> Option<Shape> {
    let mut remaining = Numbers(numbers);
    let (_, mut process, rank) = (remaining.next()?, remaining.next()? as u64, remaining.next()? as usize);
    let before = if about.counts == 0 { Some(remaining.some(rank)?) } else { None };
    let (distributions, arguments, grid) = (remaining.some(rank)?, remaining.some(rank)?, remaining.some(rank)?);
    let order = remaining.next()?;
    let sizes = before.map_or_else(|| remaining.some(rank), Some)?;
    let mut dimensions = Vec::with_capacity(rank);
    for at in (0..rank).rev() {
        let (size, processes) = (sizes[at] as u64, grid[at] as u64);
        let place = process % processes;
        process /= processes;
        dimensions.push((size, owned(size, distributions[at], arguments[at], processes, place)));
    }
    dimensions.reverse();
    Some(Shape::Array(in_order(dimensions, order), inner))
}

/// The indices of a dimension assigned to a process.
fn owned(size: u64, distribution: i64, argument: i64, processes: u64, place: u64) -> Vec<(u64, u64)> {
    let constants = constants();
    let is_default = argument == i64::from(constants.distribute_default);
    if distribution == i64::from(constants.distribute_none) {
        return vec![(0, size)];
    }
    let block = if distribution == i64::from(constants.distribute_block) {
        if is_default { size.div_ceil(processes) } else { argument as u64 }
    } else if is_default {
        1
    } else {
        argument as u64
    };
    cyclic(size, block, processes, place)
}
