//! Transfers of many small pieces by lists of addresses, compared with plain copies of the same pieces.

use crate::Stop;
use crate::prelude::*;
use vgasnet::ops::{Direction, Region, runs};

/// Bytes of a piece.
const PIECE_BYTES: usize = 64;

/// Pieces in a list.
const PIECES: usize = 4096;

/// The distance between successive pieces. It leaves a gap, so that two pieces do not form one run.
const DISTANCE_BYTES: usize = 2 * PIECE_BYTES;

/// Lists in one measurement.
const LISTS: usize = 256;

/// Lists of pieces of 64 bytes that hit, compared with plain copies of the pieces, between two ranks
#[derive(Args, Serialize, Deserialize)]
pub struct Lists {
    #[command(flatten)]
    setup: Setup,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    check: bool,
}

impl Benchmark for Lists {
    const NAME: &'static str = "lists";

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let job = Job::new(self, 2, &self.setup)?;
        let data_bytes = job.config.pool_bytes / 2;
        Ok(vec![job.with_data(data_bytes, 0)])
    }

    /// At random places each piece is in a different page than the one before, so these are shown but not judged.
    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
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
            let mut row = Row::labelled(name).keep("name", name);
            if rank.is_first() {
                let memory = Memory::allocated(spec.data_bytes as usize, true);
                for _ in 0..spec.repeat {
                    row.add("list_ns", transfer_ns(rank, direction, &places));
                    row.add("copy_ns", copy_ns(&memory, direction, &places));
                    bar.inc(1);
                }
            }
            rank.barrier();
            row.ratio("to_copy", "list_ns", "copy_ns")
        });
        let names = [
            ("list_get_own_to_copies", "gets from the own pool to copies, times"),
            ("list_put_own_to_copies", "puts to the own pool to copies, times"),
            ("list_get_neighbour_to_copies", "gets from a neighbour's to copies, times"),
            ("list_put_neighbour_to_copies", "puts to a neighbour's to copies, times"),
        ];
        let to_copy = kinds.each_ref().map(|kind| kind.number("to_copy"));
        let figures = Figures::of(Row::default().rows("kinds", kinds.into()));
        names.into_iter().zip(to_copy).fold(figures, |figures, ((name, meaning), to_copy)| {
            figures.target(name, meaning, to_copy, Bound::AtMost, 2.0)
        })
    }
}

/// `holder` writes all data, so the pages are in its pool.
fn fill(rank: &Rank, holder: u32, data_bytes: u64) {
    if rank.me == holder {
        rank.fill(0, data_bytes, |_, page| page.fill(0x33));
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
    seconds(|| (0..LISTS).for_each(|_| do_list())) * 1e9 / (LISTS * PIECES) as f64
}
