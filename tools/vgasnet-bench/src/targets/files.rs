//! Targets of `files`.

use super::Bound::AtLeast;
use super::{Target, target};
use crate::files::{Pattern, Way};
use crate::report::{CaseFigures, RowFigures, SequentialFigures};

/// Numbers of ranks with targets. Runs that end with the close have no targets.
const RANKS: [u32; 2] = [2, 4];

/// A pattern, the number of ranks, the size if it matters, the way to compare with, the name, the meaning and the
/// minimum ratio.
type Wanted = (Pattern, u32, Option<u64>, Way, &'static str, &'static str, f64);

const WANTED: [Wanted; 8] = [
    (
        Pattern::SlidingWindow,
        RANKS[0],
        None,
        Way::Locks,
        "sliding_2_locks_to_vgasnet",
        "sliding window, 2 ranks, fcntl locks",
        5.0,
    ),
    (Pattern::SlidingWindow, RANKS[1], None, Way::Locks, "sliding_4_locks_to_vgasnet", "the same, 4 ranks", 5.0),
    (
        Pattern::SlidingWindow,
        RANKS[0],
        None,
        Way::MpiIoAtomic,
        "sliding_2_atomic_to_vgasnet",
        "sliding window, 2 ranks, atomic MPI-IO",
        3.0,
    ),
    (Pattern::SlidingWindow, RANKS[1], None, Way::MpiIoAtomic, "sliding_4_atomic_to_vgasnet", "the same, 4 ranks", 3.0),
    (Pattern::BtioFull, RANKS[1], None, Way::MpiIo, "btio_full_mpi_to_vgasnet", "BT-IO full, 4 ranks, MPI-IO", 1.3),
    (
        Pattern::BtioSimple,
        RANKS[1],
        None,
        Way::MpiIo,
        "btio_simple_mpi_to_vgasnet",
        "BT-IO simple, 4 ranks, MPI-IO",
        10.0,
    ),
    (Pattern::Flash, RANKS[1], Some(8), Way::MpiIo, "flash_8_mpi_to_vgasnet", "FLASH 8, 4 ranks, MPI-IO", 2.0),
    (Pattern::Flash, RANKS[1], Some(16), Way::MpiIo, "flash_16_mpi_to_vgasnet", "FLASH 16, 4 ranks, MPI-IO", 1.3),
];

/// The targets of `files`, each at its worst of several sizes.
pub fn judge_files(
    cases: &[CaseFigures],
    sequential: Option<&SequentialFigures>,
    rows: Option<&RowFigures>,
) -> Vec<Target> {
    let judged = WANTED.into_iter().filter_map(|(pattern, ranks, size, way, name, meaning, least)| {
        let is_same = |figures: &&CaseFigures| {
            let case = &figures.case;
            case.pattern == pattern && case.ranks == ranks && size.is_none_or(|size| case.size == size)
        };
        let ratios = cases.iter().filter(is_same).filter_map(|figures| figures.to_vgasnet(way, true));
        Some(target(name, meaning, ratios.min_by(f64::total_cmp)?, AtLeast, least))
    });
    let in_order = sequential.map(|figures| {
        let worse = figures.written_to_vgasnet.min(figures.read_to_vgasnet);
        target("sequential_to_direct", "one rank in order to O_DIRECT", worse, AtLeast, 0.9)
    });
    let moves = rows.map(|figures| {
        let (name, meaning) = ("fewer_moves", "page moves without shipping to those with");
        target(name, meaning, figures.fewer_moves, AtLeast, 20.0)
    });
    judged.chain(in_order).chain(moves).collect()
}
