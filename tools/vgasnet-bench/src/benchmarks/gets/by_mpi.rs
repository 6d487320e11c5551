//! `MPI_Get` and `MPI_Win_flush` by size, over TCP and shared memory, with and without a library that caches gets.

use super::Gets;
use crate::prelude::*;
use crate::programs::mpi::{Mpi, Network};
use crate::programs::{Folder, compile};

/// The library's mode: cached bytes are never dropped.
const MODE: &str = "always";

/// A network, a size, the name of a target, its meaning and its value.
type Wanted = (Network, u64, &'static str, &'static str, f64);

const WANTED: [Wanted; 3] = [
    (Network::Tcp, 4 << 10, "mpi_tcp_4_kib_to_hit", "MPI_Get + flush of 4 KiB, TCP, to a hit", 9.3),
    (Network::Tcp, 16 << 10, "mpi_tcp_16_kib_to_hit", "MPI_Get + flush of 16 KiB, TCP, to a hit", 3.7),
    (Network::SharedMemory, 4 << 10, "mpi_shared_4_kib_to_hit", "the same, 4 KiB, shared memory", 2.0),
];

/// Adds the figures over MPI, or the reason for having none.
pub fn add(figures: Figures, options: &Gets) -> Figures {
    let measured = if options.no_mpi { Err("--no-mpi".to_owned()) } else { measure(options) };
    let sizes =
        |figures: Figures, change: &dyn Fn(Row) -> Row| Figures { row: figures.row.amend("sizes", change), ..figures };
    let (mpicc, rows, not_run) = match measured {
        Ok(measured) => measured,
        Err(why) => {
            let figures = sizes(figures, &|row| row.keep("mpi_not_run", &why));
            return figures.not_run([format!("MPI_Get and MPI_Win_flush: {why}")]);
        }
    };
    let speedup = |row: Row| row.speedup("plain_to_cached", "cached_us", "plain_us");
    let rows: Vec<Row> = rows.into_iter().map(speedup).collect();
    let by_mpi = Row::labelled(format!("MPI_Get and MPI_Win_flush, {mpicc}, cached in mode {MODE}"));
    let by_mpi = by_mpi.keep("mpi", mpicc).keep("mode", MODE).rows("rows", rows.clone()).keep("not_run", &not_run);
    let figures = sizes(figures, &|row| row.row("by_mpi", by_mpi.clone()));
    let figures = figures.not_run(not_run.into_iter().map(|why| format!("MPI: {why}")));
    WANTED.into_iter().fold(figures, |figures, (network, size_bytes, target, meaning, least)| {
        let is_same = |row: &&Row| row.is("network", name(network)) && row.is("size_bytes", size_bytes);
        let ratio = rows.iter().find(is_same).map(|row| row.number("plain_to_cached")).filter(|ratio| !ratio.is_nan());
        figures.target(target, meaning, ratio, Bound::AtLeast, least)
    })
}

/// Measures. Returns the compiler, the times, and the reasons for missing cached results or a missing network.
fn measure(options: &Gets) -> Result<(String, Vec<Row>, Vec<String>), String> {
    let folder = Folder::new()?;
    let mpi = Mpi::find(&options.mpi)?;
    let source = folder.path().join("get.c");
    std::fs::write(&source, include_str!("get.c")).map_err(|error| format!("{}: {error}", source.display()))?;
    let program = compile(&mpi.mpicc, &source, &[], &folder, "get")?;
    let (mut rows, mut not_run): (Vec<Row>, Vec<String>) =
        (Vec::new(), mpi.preload.clone().err().into_iter().collect());
    for network in [Network::Tcp, Network::SharedMemory] {
        let mut of_network: Vec<Row> = Vec::new();
        for _ in 0..options.setup.repeat {
            let run = |cached| mpi.run(None, network, 2, &program, &[], cached).and_then(|said| times(&said));
            let cached = if mpi.preload.is_ok() { run(Some((MODE, 64 << 20))) } else { Ok(Vec::new()) };
            match (run(None), cached) {
                (Ok(plain), Ok(cached)) => add_round(&mut of_network, network, &plain, &cached),
                (Err(why), _) | (_, Err(why)) => {
                    not_run.push(format!("{}: {why}", words(network)));
                    break;
                }
            }
        }
        rows.append(&mut of_network);
    }
    Ok((mpi.mpicc, rows, not_run))
}

/// Parses the lines of the program: a size, and microseconds of the first get and of later ones.
fn times(said: &str) -> Result<Vec<[f64; 3]>, String> {
    let line = |line: &str| {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().map_err(|_| format!("the program said {line:?}"))
    };
    said.lines().map(line).collect()
}

/// Adds microseconds of the first get of the bytes, and of later ones.
fn add_round(rows: &mut Vec<Row>, network: Network, plain: &[[f64; 3]], cached: &[[f64; 3]]) {
    for (at, [size, _, again]) in plain.iter().enumerate() {
        if rows.len() == at {
            let row = Row::labelled(format!("{}, {size} bytes", words(network))).keep("network", network);
            rows.push(row.keep("size_bytes", *size as u64));
        }
        rows[at].add("plain_us", *again);
        if let Some([_, first, again]) = cached.get(at) {
            rows[at].add("cached_first_us", *first);
            rows[at].add("cached_us", *again);
        }
    }
}
