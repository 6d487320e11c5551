//! `MPI_Get` and `MPI_Win_flush` by size, over TCP and shared memory, with and without a library that caches gets.

use crate::options::{MpiOptions, Setup};
use crate::programs::mpi::{Mpi, Network};
use crate::programs::{Folder, compile};
use serde::Serialize;

/// One size over one network. Times are medians of a run in microseconds, for the first get of the bytes and for later
/// ones.
#[derive(Clone, Debug, Serialize)]
pub struct MpiRow {
    pub network: Network,
    pub size_bytes: u64,
    pub plain_us_each: Vec<f64>,
    pub cached_first_us_each: Vec<f64>,
    pub cached_us_each: Vec<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ByMpi {
    pub mpi: String,
    /// The mode of the library.
    pub mode: &'static str,
    pub rows: Vec<MpiRow>,
    /// The reason for missing cached results or a missing network.
    pub not_run: Vec<String>,
}

/// The library's mode: cached bytes are never dropped.
const MODE: &str = "always";

/// Measures. The error has the reason why this is not possible.
pub fn measure(options: &MpiOptions, setup: &Setup) -> Result<ByMpi, String> {
    let folder = Folder::new()?;
    let mpi = Mpi::find(options)?;
    let source = folder.path().join("get.c");
    std::fs::write(&source, include_str!("get.c")).map_err(|error| format!("{}: {error}", source.display()))?;
    let program = compile(&mpi.mpicc, &source, &[], &folder, "get")?;
    let mut by_mpi = ByMpi {
        mpi: mpi.mpicc.clone(),
        mode: MODE,
        rows: Vec::new(),
        not_run: mpi.preload.clone().err().into_iter().collect(),
    };
    for network in [Network::Tcp, Network::SharedMemory] {
        let mut rows: Vec<MpiRow> = Vec::new();
        for _ in 0..setup.repeat {
            let plain = mpi.run(None, network, 2, &program, &[], None).and_then(|said| times(&said));
            let cached = match &mpi.preload {
                Ok(_) => mpi.run(None, network, 2, &program, &[], Some((MODE, 64 << 20))).and_then(|said| times(&said)),
                Err(_) => Ok(Vec::new()),
            };
            match (plain, cached) {
                (Ok(plain), Ok(cached)) => add(&mut rows, network, &plain, &cached),
                (Err(why), _) | (_, Err(why)) => {
                    by_mpi.not_run.push(format!("{}: {why}", network.name()));
                    break;
                }
            }
        }
        by_mpi.rows.append(&mut rows);
    }
    Ok(by_mpi)
}

/// Parses the lines of the program: a size, and microseconds of the first get and of later ones.
fn times(said: &str) -> Result<Vec<[f64; 3]>, String> {
    let line = |line: &str| {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().map_err(|_| format!("the program said {line:?}"))
    };
    said.lines().map(line).collect()
}

fn add(rows: &mut Vec<MpiRow>, network: Network, plain: &[[f64; 3]], cached: &[[f64; 3]]) {
    for (at, [size, _, again]) in plain.iter().enumerate() {
        if rows.len() == at {
            let none = Vec::new;
            rows.push(MpiRow {
                network,
                size_bytes: *size as u64,
                plain_us_each: none(),
                cached_first_us_each: none(),
                cached_us_each: none(),
            });
        }
        rows[at].plain_us_each.push(*again);
        if let Some([_, first, again]) = cached.get(at) {
            rows[at].cached_first_us_each.push(*first);
            rows[at].cached_us_each.push(*again);
        }
    }
}
