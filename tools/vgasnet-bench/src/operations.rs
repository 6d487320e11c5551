//! Gets and puts of every kind that hit, at random places, compared with copies of the same size in the same pattern.

mod kinds;
mod timed;

pub use kinds::Kind;

use crate::at_random::mean_of_ranks;
use crate::plan::Spec;
use crate::rank::Rank;
use serde::{Deserialize, Serialize};
use vgasnet_measuring::memory::Memory;
use vgasnet_measuring::progress;

/// Bytes of the operations. Places are multiples of 8, so some of the longer operations span two pages.
const SIZES_BYTES: [usize; 5] = [1, 4, 8, 64, 200];

/// The value of every byte in all segments.
const BYTE: u8 = 0xA7;

/// Processor time of an operation and of a copy, with this number of threads per rank and all ranks at once. Each value
/// is the mean over all ranks in a round. Neither operation sleeps. The slower one would be preempted more often on a
/// busy machine; processor time is not affected.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    pub kind: Kind,
    pub size_bytes: usize,
    pub threads: u32,
    /// Whether the places are in the next rank's segment.
    pub neighbour: bool,
    pub ns_each: Vec<f64>,
    pub copy_ns_each: Vec<f64>,
}

/// Measurements of rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub data_bytes: u64,
    pub cells: Vec<Cell>,
}

/// Measures with one thread and with `spec.count`. Collective.
pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let mut cells = cells(rank, spec);
    // One memory per thread, so no two threads copy in the same memory.
    let memories: Vec<Memory> = (0..spec.count).map(|_| Memory::allocated(spec.data_bytes as usize, true)).collect();
    let starts: Vec<usize> = memories.iter().map(|memory| memory.start().expose_provenance()).collect();
    fill(rank, spec.data_bytes);
    let bar = progress::bar(rank.is_first(), "operations", cells.len() as u64);
    for cell in &mut cells {
        let owner = if cell.neighbour { (rank.me + 1) % rank.ranks } else { rank.me };
        for round in 0..=spec.repeat {
            let copy_ns = mean_of_ranks(rank, cell.threads, |thread| {
                timed::copies(rank, cell, starts[thread as usize], spec.data_bytes, thread)
            });
            let ns = mean_of_ranks(rank, cell.threads, |thread| {
                timed::operations(rank, cell, owner, spec.data_bytes, thread)
            });
            // The first round brings the pages into place.
            if round > 0 {
                cell.copy_ns_each.push(copy_ns);
                cell.ns_each.push(ns);
            }
        }
        bar.inc(1);
    }
    Found { data_bytes: spec.data_bytes, cells }
}

/// Each rank writes its segment, so the pages are in its own pool, for itself and its neighbour.
fn fill(rank: &Rank, data_bytes: u64) {
    let page = vec![BYTE; rank.page_bytes];
    for offset in (0..data_bytes).step_by(rank.page_bytes) {
        let len_bytes = (data_bytes - offset).min(rank.page_bytes as u64) as usize;
        rank.put(rank.me, offset, &page[..len_bytes]);
    }
    rank.barrier();
}

fn cells(rank: &Rank, spec: &Spec) -> Vec<Cell> {
    let mut cells = Vec::new();
    let places: &[bool] = if rank.ranks > 1 { &[false, true] } else { &[false] };
    let threads: &[u32] = if spec.count > 1 { &[1, spec.count] } else { &[1] };
    for kind in Kind::ALL {
        for size_bytes in SIZES_BYTES.into_iter().filter(|size_bytes| *size_bytes <= kind.size_bytes_max()) {
            for &neighbour in places {
                for &threads in threads {
                    let (ns_each, copy_ns_each) = (Vec::new(), Vec::new());
                    cells.push(Cell { kind, size_bytes, threads, neighbour, ns_each, copy_ns_each });
                }
            }
        }
    }
    cells
}
