//! Vector, indexed and strided transfers.

use super::boundary::{Refusal, attached, entry_points};
use super::sync::{OperationPointer, to_pointer};
use crate::ops::{Direction, Region, Run, Strided, runs};
use std::ffi::c_void;
use vgasnet_settings::UserError;

/// `vgasnet_memvec_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryVector {
    address: *mut c_void,
    len_bytes: usize,
}

/// The entries of a client's list.
///
/// # Safety
/// `list` is null, or points to `count` entries, unchanged during the call.
pub(super) unsafe fn entries<'a, T>(what: &str, list: *const T, count: usize) -> Result<&'a [T], Refusal> {
    if count == 0 {
        return Ok(&[]);
    }
    if list.is_null() {
        let line = format!("the {what} list of {count} entries is a null pointer; give the list, or 0 entries");
        return Err(UserError::new(line).into());
    }
    // SAFETY: the list is not null, so it points to `count` entries, unchanged during the call.
    Ok(unsafe { std::slice::from_raw_parts(list, count) })
}

/// Refuses sides of different lengths. `None` means more than 2^64 bytes.
fn check_totals(destination: Option<usize>, source: Option<usize>) -> Result<(), Refusal> {
    if destination.is_some() && destination == source {
        return Ok(());
    }
    let bytes = |total: Option<usize>| total.map_or_else(|| "more than 2^64".to_owned(), |total| total.to_string());
    let line = format!(
        "the destination list has {} bytes and the source list {}; give both the same",
        bytes(destination),
        bytes(source)
    );
    Err(UserError::new(line).into())
}

/// The regions of a vector. A named type, so that its `next` is inlined into the loop pairing two of them.
pub(super) struct Regions<'a>(std::slice::Iter<'a, MemoryVector>);

impl MemoryVector {
    /// The entry's region.
    pub(super) fn region(&self) -> Region {
        Region { address: self.address.expose_provenance(), len_bytes: self.len_bytes }
    }
}

impl Iterator for Regions<'_> {
    type Item = Region;

    #[inline(always)]
    fn next(&mut self) -> Option<Region> {
        Some(self.0.next()?.region())
    }
}

/// The regions of two vectors.
///
/// # Safety
/// Each list is null, or points to as many entries as its count, unchanged during the call.
pub(super) unsafe fn vectors<'a>(
    (to_count, to): (usize, *const MemoryVector),
    (from_count, from): (usize, *const MemoryVector),
) -> Result<(Regions<'a>, Regions<'a>), Refusal> {
    // SAFETY: each list is null, or points to as many entries as its count.
    let (to, from) = unsafe { (entries("destination", to, to_count)?, entries("source", from, from_count)?) };
    let total = |list: &[MemoryVector]| list.iter().try_fold(0_usize, |sum, entry| sum.checked_add(entry.len_bytes));
    check_totals(total(to), total(from))?;
    Ok((Regions(to.iter()), Regions(from.iter())))
}

/// The number of addresses, the addresses, and the bytes at each.
pub(super) type Indexed = (usize, *const *mut c_void, usize);

/// The regions of two arrays of addresses.
///
/// # Safety
/// Each array is null, or has as many addresses as its count, unchanged during the call.
pub(super) unsafe fn indexed<'a>(
    (to_count, to, to_bytes): Indexed,
    (from_count, from, from_bytes): Indexed,
) -> Result<(impl Iterator<Item = Region> + use<'a>, impl Iterator<Item = Region> + use<'a>), Refusal> {
    let to_total = to_count.checked_mul(to_bytes);
    check_totals(to_total, from_count.checked_mul(from_bytes))?;
    // Empty regions need no addresses.
    let (to_count, from_count) = if to_total == Some(0) { (0, 0) } else { (to_count, from_count) };
    // SAFETY: each array is null, or has as many addresses as its count.
    let (to, from): (&'a [_], &'a [_]) =
        unsafe { (entries("destination", to, to_count)?, entries("source", from, from_count)?) };
    let regions = |list: &'a [*mut c_void], len_bytes| {
        list.iter().map(move |address| Region { address: address.expose_provenance(), len_bytes })
    };
    Ok((regions(to, to_bytes), regions(from, from_bytes)))
}

/// The regions of two strided sides: `len_bytes` each, `counts` of them at each level.
///
/// # Safety
/// Each list of strides is null, or has as many entries as `counts`, unchanged during the call.
pub(super) unsafe fn strided<'a>(
    (to, to_strides): (*mut c_void, *const usize),
    (from, from_strides): (*mut c_void, *const usize),
    len_bytes: usize,
    counts: &'a [usize],
) -> Result<(Strided<'a>, Strided<'a>), Refusal> {
    // SAFETY: the strides are null, or have as many entries as `counts`.
    let (to_strides, from_strides) = unsafe {
        let to_strides = entries("destination stride", to_strides, counts.len())?;
        (to_strides, entries("source stride", from_strides, counts.len())?)
    };
    let total = counts.iter().try_fold(len_bytes, |all, count| all.checked_mul(*count));
    if total.is_none() && !counts.contains(&0) {
        let line = format!(
            "{len_bytes} bytes times counts {counts:?} are more than 2^64 bytes; give counts whose product is the bytes to move"
        );
        return Err(UserError::new(line).into());
    }
    let side = |base: *mut c_void, strides| Strided::new(base.expose_provenance(), len_bytes, strides, counts);
    Ok((side(to, to_strides), side(from, from_strides)))
}

/// The regions of two strided sides. The first of `counts` is the length of a region.
///
/// # Safety
/// As for [`strided`]; `counts` is null or has one entry more than `levels`.
unsafe fn strided_of_1<'a>(
    to: (*mut c_void, *const usize),
    from: (*mut c_void, *const usize),
    counts: *const usize,
    levels: usize,
) -> Result<(Strided<'a>, Strided<'a>), Refusal> {
    // SAFETY: `counts` is null, or has one entry more than `levels`. There are as many strides as levels.
    unsafe {
        let counts: &'a [usize] = entries("count", counts, levels.saturating_add(1))?;
        let (len_bytes, counts) = counts.split_first().expect("one more than levels");
        strided(to, from, *len_bytes, counts)
    }
}

/// A transfer: its direction, the rank, and its runs.
type Transfer<R> = (Direction, u32, R);

fn put<T: Iterator<Item = Region>, F: Iterator<Item = Region>>(
    node: u32,
    sides: Result<(T, F), Refusal>,
) -> Result<Transfer<impl Iterator<Item = Run>>, Refusal> {
    sides.map(|(to, from)| (Direction::Put, node, runs(from, to)))
}

fn get<T: Iterator<Item = Region>, F: Iterator<Item = Region>>(
    node: u32,
    sides: Result<(T, F), Refusal>,
) -> Result<Transfer<impl Iterator<Item = Run>>, Refusal> {
    sides.map(|(to, from)| (Direction::Get, node, runs(to, from)))
}

/// Does a transfer.
///
/// # Safety
/// The local side of each run is valid for its length, or null.
unsafe fn transfer(transfer: Result<Transfer<impl Iterator<Item = Run>>, Refusal>) -> Result<(), Refusal> {
    let (ops, (direction, node, runs)) = (attached()?.ops(), transfer?);
    // SAFETY: the local side of each run is valid for its length, or null.
    Ok(unsafe { ops.transfer_runs(direction, node, runs) }?)
}

/// Starts a transfer with an explicit handle.
///
/// # Safety
/// The local side of each run is valid for its length, or null, until the handle has been synced.
unsafe fn start(transfer: Result<Transfer<impl Iterator<Item = Run>>, Refusal>) -> Result<OperationPointer, Refusal> {
    let (ops, (direction, node, runs)) = (attached()?.ops(), transfer?);
    // SAFETY: the local side of each run is valid for its length, or null, until the handle has been synced.
    Ok(to_pointer(unsafe { ops.start_runs_explicit(direction, node, runs) }?))
}

/// Starts an implicit transfer.
///
/// # Safety
/// The local side of each run is valid for its length, or null, until the thread has synced its implicit operations.
unsafe fn start_implicit(transfer: Result<Transfer<impl Iterator<Item = Run>>, Refusal>) -> Result<(), Refusal> {
    let (ops, (direction, node, runs)) = (attached()?.ops(), transfer?);
    // SAFETY: the local side of each run is valid for its length, or null, until the implicit operations are synced.
    Ok(unsafe { ops.start_runs_implicit(direction, node, runs) }?)
}

/// Defines the blocking, the explicit and the implicit function of each transfer. The body is the transfer.
macro_rules! transfers {
    ($($blocking:ident, $explicit:ident, $implicit:ident(
        $($argument:ident: $type:ty $([$items:expr])?),* $(,)?
    ) $transfer:block)*) => {
        entry_points! {
            $(
                unsafe fn $blocking($($argument: $type $([$items])?),*) {
                    transfer($transfer)
                }

                unsafe fn $explicit($($argument: $type $([$items])?),*) -> OperationPointer {
                    start($transfer)
                }

                unsafe fn $implicit($($argument: $type $([$items])?),*) {
                    start_implicit($transfer)
                }
            )*
        }
    };
}

transfers! {
    vgasnet_putv_bulk, vgasnet_putv_nb_bulk, vgasnet_putv_nbi_bulk(
        node: u32, to_count: usize, to: *const MemoryVector [to_count], from_count: usize,
        from: *const MemoryVector [from_count],
    ) {
        put(node, vectors((to_count, to), (from_count, from)))
    }

    vgasnet_getv_bulk, vgasnet_getv_nb_bulk, vgasnet_getv_nbi_bulk(
        to_count: usize, to: *const MemoryVector [to_count], node: u32, from_count: usize,
        from: *const MemoryVector [from_count],
    ) {
        get(node, vectors((to_count, to), (from_count, from)))
    }

    vgasnet_puti_bulk, vgasnet_puti_nb_bulk, vgasnet_puti_nbi_bulk(
        node: u32, to_count: usize, to: *const *mut c_void [to_count], to_len: usize, from_count: usize,
        from: *const *mut c_void [from_count], from_len: usize,
    ) {
        put(node, indexed((to_count, to, to_len), (from_count, from, from_len)))
    }

    vgasnet_geti_bulk, vgasnet_geti_nb_bulk, vgasnet_geti_nbi_bulk(
        to_count: usize, to: *const *mut c_void [to_count], to_len: usize, node: u32, from_count: usize,
        from: *const *mut c_void [from_count], from_len: usize,
    ) {
        get(node, indexed((to_count, to, to_len), (from_count, from, from_len)))
    }

    vgasnet_puts_bulk, vgasnet_puts_nb_bulk, vgasnet_puts_nbi_bulk(
        node: u32, to: *mut c_void, to_strides: *const usize [levels], from: *mut c_void,
        from_strides: *const usize [levels], counts: *const usize [levels.saturating_add(1)], levels: usize,
    ) {
        put(node, strided_of_1((to, to_strides), (from, from_strides), counts, levels))
    }

    vgasnet_gets_bulk, vgasnet_gets_nb_bulk, vgasnet_gets_nbi_bulk(
        to: *mut c_void, to_strides: *const usize [levels], node: u32, from: *mut c_void,
        from_strides: *const usize [levels], counts: *const usize [levels.saturating_add(1)], levels: usize,
    ) {
        get(node, strided_of_1((to, to_strides), (from, from_strides), counts, levels))
    }
}
