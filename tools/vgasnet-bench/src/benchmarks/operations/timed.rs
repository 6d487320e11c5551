//! The work of a thread, and its time.

use super::{BYTE, Cell, Kind};
use crate::at_random::{Places, thread_time_ns};
use crate::calls::{self, values};
use crate::prelude::*;
use std::ptr::with_exposed_provenance_mut;

/// Operations of a thread in one measurement.
const OPERATIONS: usize = 1 << 16;

/// Implicit operations in flight before a wait. All kinds use this number of buffers round robin.
const AT_ONCE: usize = 64;

/// The buffers and places of a thread.
struct Work {
    places: Places,
    data_bytes: usize,
    len_bytes: usize,
    buffers: Vec<u8>,
}

impl Work {
    fn new(rank: &Rank, cell: &Cell, thread: u32, data_bytes: u64) -> Work {
        let (places, len_bytes) = (Places::new(rank, thread, data_bytes), cell.size_bytes);
        // Buffers for gets start with different bytes.
        let byte = if cell.kind.is_get() { !BYTE } else { BYTE };
        Work { places, data_bytes: data_bytes as usize, len_bytes, buffers: vec![byte; AT_ONCE * len_bytes] }
    }

    /// Does `one` at random places. An operation stays inside the data. Returns the processor time of one operation in
    /// ns.
    #[inline(always)]
    fn time(&mut self, mut one: impl FnMut(usize, usize, &mut [u8])) -> f64 {
        let start_ns = thread_time_ns();
        for number in 0..OPERATIONS {
            let place = self.places.next().min(self.data_bytes - self.len_bytes);
            let buffer = number % AT_ONCE * self.len_bytes;
            one(number, place, black_box(&mut self.buffers[buffer..buffer + self.len_bytes]));
        }
        (thread_time_ns() - start_ns) / OPERATIONS as f64
    }
}

/// Operations of a cell on the segment of `owner`.
pub fn operations(rank: &Rank, cell: &Cell, owner: u32, data_bytes: u64, thread: u32) -> f64 {
    let (base, len_bytes) = (rank.segment_base(owner), cell.size_bytes);
    let mut work = Work::new(rank, cell, thread, data_bytes);
    let value = usize::from_ne_bytes([BYTE; size_of::<usize>()]);
    let ns = match cell.kind {
        Kind::Get => work.time(|_, place, bytes| calls::get(bytes, owner, base + place)),
        Kind::Put => work.time(|_, place, bytes| calls::put(owner, base + place, bytes)),
        Kind::GetVal => work.time(|_, place, bytes| {
            let got = values::get_val(owner, base + place, len_bytes);
            bytes.copy_from_slice(&got.to_le_bytes()[..len_bytes]);
        }),
        Kind::PutVal => work.time(|_, place, _| values::put_val(owner, base + place, value, len_bytes)),
        Kind::GetNb => work.time(|_, place, bytes| calls::get_by_handle(bytes, owner, base + place)),
        Kind::PutNb => work.time(|_, place, bytes| calls::put_by_handle(owner, base + place, bytes)),
        Kind::GetNbi | Kind::PutNbi => work.time(|number, place, bytes| {
            // SAFETY: the buffers outlive the wait. The wait precedes the next use of any buffer.
            unsafe {
                match cell.kind {
                    Kind::GetNbi => calls::begin_get(bytes.as_mut_ptr(), owner, base + place, len_bytes),
                    _ => calls::begin_put(owner, base + place, bytes.as_ptr(), len_bytes),
                }
            }
            if number % AT_ONCE == AT_ONCE - 1 {
                calls::wait_for_all();
            }
        }),
    };
    if let Some(at) = work.buffers.iter().position(|byte| *byte != BYTE) {
        let (kind, found) = (name(cell.kind), work.buffers[at]);
        fail(format!("a {kind} of {len_bytes} bytes of rank {owner} has brought {found:#04x}, not {BYTE:#04x}"));
    }
    ns
}

/// Copies from or to memory of this thread, by calls of `memcpy` with a length unknown to the compiler.
pub fn copies(rank: &Rank, cell: &Cell, memory: usize, data_bytes: u64, thread: u32) -> f64 {
    let is_get = cell.kind.is_get();
    Work::new(rank, cell, thread, data_bytes).time(|_, place, bytes| {
        let (here, there) = (bytes.as_mut_ptr(), with_exposed_provenance_mut::<u8>(memory + place));
        let (from, to) = if is_get { (there, here) } else { (here, there) };
        // SAFETY: both places are inside their memories, which are distinct. No other thread uses either.
        unsafe { to.copy_from_nonoverlapping(from, black_box(cell.size_bytes)) };
    })
}
