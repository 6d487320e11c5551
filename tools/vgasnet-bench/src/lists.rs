//! Transfers of many small pieces by lists of addresses, compared with plain copies of the same pieces.

use crate::plan::Spec;
use crate::rank::{Rank, fail};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;
use vgasnet::ops::{Direction, Region, runs};
use vgasnet_measuring::memory::Memory;
use vgasnet_measuring::progress;

/// Bytes of a piece.
pub const PIECE_BYTES: usize = 64;

/// Pieces in a list.
const PIECES: usize = 4096;

/// The distance between successive pieces. It leaves a gap, so that two pieces do not form one run.
const DISTANCE_BYTES: usize = 2 * PIECE_BYTES;

/// Lists in one measurement.
const LISTS: usize = 256;

/// A kind of transfer, and nanoseconds per piece by round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kind {
    pub name: String,
    pub list_ns_each: Vec<f64>,
    pub copy_ns_each: Vec<f64>,
}

/// Measurements of rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub kinds: Vec<Kind>,
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let kinds = [
        ("get, own pool, in order", Direction::Get, 0, true),
        ("put, own pool, in order", Direction::Put, 0, true),
        ("get, neighbour's pool, in order", Direction::Get, 1, true),
        ("put, neighbour's pool, in order", Direction::Put, 1, true),
        ("get, own pool, at random places", Direction::Get, 0, false),
    ];
    let bar = progress::bar(rank.is_first(), "lists", kinds.len() as u64 * u64::from(spec.repeat));
    let kinds = kinds.map(|(name, direction, holder, in_order)| {
        fill(rank, holder, spec.data_bytes);
        let places = places(in_order, spec);
        let mut kind = Kind { name: name.to_owned(), list_ns_each: vec![], copy_ns_each: vec![] };
        if rank.is_first() {
            let memory = Memory::allocated(spec.data_bytes as usize, true);
            for _ in 0..spec.repeat {
                kind.list_ns_each.push(transfer_ns(rank, direction, &places));
                kind.copy_ns_each.push(copy_ns(&memory, direction, &places));
                bar.inc(1);
            }
        }
        rank.barrier();
        kind
    });
    Found { kinds: kinds.into() }
}

/// `holder` writes all data, so the pages are in its pool.
fn fill(rank: &Rank, holder: u32, data_bytes: u64) {
    if rank.me == holder {
        for page in (0..data_bytes).step_by(rank.page_bytes) {
            rank.put(0, page, &vec![0x33; rank.page_bytes.min((data_bytes - page) as usize)]);
        }
    }
    rank.barrier();
}

/// The offsets of the pieces.
fn places(in_order: bool, spec: &Spec) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(spec.seed);
    let all = spec.data_bytes as usize / DISTANCE_BYTES;
    (0..PIECES).map(|piece| if in_order { piece % all } else { random.usize(0..all) } * DISTANCE_BYTES).collect()
}

fn transfer_ns(rank: &Rank, direction: Direction, places: &[usize]) -> f64 {
    let local = Memory::allocated(PIECES * DISTANCE_BYTES, false);
    let (base, here) = (rank.segment_base(0), local.start().expose_provenance());
    let region = |address| Region { address, len_bytes: PIECE_BYTES };
    let transfer = || {
        let locals = (0..PIECES).map(|piece| region(here + piece * DISTANCE_BYTES));
        let remotes = black_box(places).iter().map(|place| region(base + place));
        // SAFETY: the local side of each run is a piece of `local`, which has no other user.
        let done = unsafe { rank.runtime.ops().transfer_runs(direction, 0, runs(locals, remotes)) };
        done.unwrap_or_else(|error| fail(error.to_string()));
    };
    ns_a_piece(transfer)
}

/// Copies the pieces one by one, by calls of `memcpy` with a length unknown to the compiler.
fn copy_ns(memory: &Memory, direction: Direction, places: &[usize]) -> f64 {
    let local = Memory::allocated(PIECES * DISTANCE_BYTES, false);
    let copy = || {
        for (piece, place) in black_box(places).iter().enumerate() {
            let here = local.start().wrapping_add(piece * DISTANCE_BYTES);
            let there = memory.start().wrapping_add(*place);
            let (from, to) = if direction == Direction::Get { (there, here) } else { (here, there) };
            // SAFETY: both places are inside their memories, which are distinct.
            unsafe { black_box(to).copy_from_nonoverlapping(from, black_box(PIECE_BYTES)) };
        }
    };
    ns_a_piece(copy)
}

fn ns_a_piece(do_list: impl Fn()) -> f64 {
    do_list();
    let start = Instant::now();
    (0..LISTS).for_each(|_| do_list());
    start.elapsed().as_secs_f64() * 1e9 / (LISTS * PIECES) as f64
}
