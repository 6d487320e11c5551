//! `MPI_Get` and `MPI_Win_flush` by size, over TCP and shared memory, with and without a library that caches gets.

use super::Gets;
use crate::programs::mpi::{Mpi, Network};
use crate::programs::{Folder, compile};
use crate::report::{Bound, Figures};
use crate::rows::Row;

/// The library's mode: cached bytes are never dropped.
const MODE: &str = "always";

/// Medians of runs for one size over one network, in microseconds: the first get of the bytes, and later ones.
struct Times {
    network: Network,
    size_bytes: u64,
    plain: Vec<f64>,
    cached_first: Vec<f64>,
    cached: Vec<f64>,
}

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
    let (mpicc, times, not_run) = match measured {
        Ok(measured) => measured,
        Err(why) => {
            let figures = sizes(figures, &|row| row.keep("mpi_not_run", &why));
            return figures.not_run([format!("MPI_Get and MPI_Win_flush: {why}")]);
        }
    };
    let rows: Vec<Row> = times.iter().map(Times::row).collect();
    let by_mpi = Row::labelled(format!("MPI_Get and MPI_Win_flush, {mpicc}, cached in mode {MODE}"));
    let by_mpi = by_mpi.keep("mpi", mpicc).keep("mode", MODE).rows("rows", rows.clone()).keep("not_run", &not_run);
    let figures = sizes(figures, &|row| row.row("by_mpi", by_mpi.clone()));
    let figures = figures.not_run(not_run.into_iter().map(|why| format!("MPI: {why}")));
    WANTED.into_iter().fold(figures, |figures, (network, size_bytes, name, meaning, least)| {
        let at = times.iter().position(|times| (times.network, times.size_bytes) == (network, size_bytes));
        let ratio = at.map(|at| rows[at].number("plain_to_cached")).filter(|ratio| !ratio.is_nan());
        figures.target(name, meaning, ratio, Bound::AtLeast, least)
    })
}

impl Times {
    fn row(&self) -> Row {
        let row = Row::labelled(format!("{}, {} bytes", self.network.name(), self.size_bytes));
        let row = row.keep("network", self.network).keep("size_bytes", self.size_bytes);
        let row = row.median("plain_us", &self.plain).keep("cached_first_us_each", &self.cached_first);
        row.median("cached_us", &self.cached).ratio("plain_to_cached", "plain_us", "cached_us")
    }
}

/// Measures. Returns the compiler, the times, and the reasons for missing cached results or a missing network.
fn measure(options: &Gets) -> Result<(String, Vec<Times>, Vec<String>), String> {
    let folder = Folder::new()?;
    let mpi = Mpi::find(&options.mpi)?;
    let source = folder.path().join("get.c");
    std::fs::write(&source, include_str!("get.c")).map_err(|error| format!("{}: {error}", source.display()))?;
    let program = compile(&mpi.mpicc, &source, &[], &folder, "get")?;
    let (mut rows, mut not_run): (Vec<Times>, Vec<String>) =
        (Vec::new(), mpi.preload.clone().err().into_iter().collect());
    for network in [Network::Tcp, Network::SharedMemory] {
        let mut of_network: Vec<Times> = Vec::new();
        for _ in 0..options.setup.repeat {
            let run = |cached| mpi.run(None, network, 2, &program, &[], cached).and_then(|said| times(&said));
            let cached = if mpi.preload.is_ok() { run(Some((MODE, 64 << 20))) } else { Ok(Vec::new()) };
            match (run(None), cached) {
                (Ok(plain), Ok(cached)) => add_round(&mut of_network, network, &plain, &cached),
                (Err(why), _) | (_, Err(why)) => {
                    not_run.push(format!("{}: {why}", network.name()));
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

fn add_round(rows: &mut Vec<Times>, network: Network, plain: &[[f64; 3]], cached: &[[f64; 3]]) {
    for (at, [size, _, again]) in plain.iter().enumerate() {
        if rows.len() == at {
            let (plain, cached_first, cached) = Default::default();
            rows.push(Times { network, size_bytes: *size as u64, plain, cached_first, cached });
        }
        rows[at].plain.push(*again);
        if let Some([_, first, again]) = cached.get(at) {
            rows[at].cached_first.push(*first);
            rows[at].cached.push(*again);
        }
    }
}
