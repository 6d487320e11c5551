//! One program over GASNet-EX, run with this library and with another installation, in alternating rounds.

use crate::Stop;
use crate::prelude::*;
use crate::programs::{Folder, compile, include_dir, own_dir, said, with_vgasnet};
use std::collections::BTreeMap;
use std::process::Command;

/// Bytes filled at a time by the program.
const SPREAD_UNIT_BYTES: u64 = 64 << 10;

/// Numbers of ranks judged: for operations between two ranks, and for the barrier.
const JUDGED_RANKS: u32 = 2;
const JUDGED_RANKS_OF_BARRIER: u32 = 4;

/// The resolution of the clock. A ratio needs a value above 0.
const LEAST_NS: f64 = 0.1;

/// Small operations of GASNet-EX, all in memory, compared with another installed GASNet-EX
#[derive(Args, Serialize, Deserialize)]
#[command(mut_arg("check", |check| check.help(CHECK_ALL)))]
pub struct GasnetEx {
    /// Number of ranks, also as -np; several numbers are measured one after another
    #[arg(short = 'n', value_name = "RANKS", default_value = "2,4", value_delimiter = ',', value_parser = within(2..=64))]
    ranks: Vec<u32>,

    /// The prefix of another GASNet-EX, for threads (par), with its packages in lib/pkgconfig
    #[arg(long, value_name = "DIR")]
    other: Option<PathBuf>,

    /// The network of the other GASNet-EX
    #[arg(long, value_enum, default_value_t = Network::Smp)]
    network: Network,

    /// Size of the part of a segment with random places
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size)]
    spread: u64,

    /// DRAM cache of each rank of vgasnet, with room for all places
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    pool: u64,

    /// Alternating rounds of both; results are their medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = within(1..=1000))]
    repeat: u32,

    /// Directory of the backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    storage_dir: Option<PathBuf>,

    /// Write the results to this file in JSON; with - they go to stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    judging: Judging,
}

/// GASNet-EX's name for the transport between ranks of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Network {
    /// Shared memory
    Smp,
    /// UDP, and shared memory
    Udp,
}

impl Benchmark for GasnetEx {
    const NAME: &'static str = "gasnet-ex";

    fn run(&self) -> Result<Report, Stop> {
        let most = self.pool / 2 / SPREAD_UNIT_BYTES * SPREAD_UNIT_BYTES;
        if !(SPREAD_UNIT_BYTES..=most).contains(&self.spread) || self.spread % SPREAD_UNIT_BYTES != 0 {
            let [spread, unit, most] = [self.spread, SPREAD_UNIT_BYTES, most].map(format_size);
            return Err(Stop::usage(format!("--spread {spread}: give a multiple of {unit} up to half a pool, {most}")));
        }
        let programs = Programs::new(self).map_err(Stop::failure)?;
        let mut rows = Vec::new();
        for ranks in &self.ranks {
            rows.extend(self.measure(&programs, *ranks)?);
        }
        let row = Row::default().keep_some("other", self.other.as_deref()).show("network", self.network);
        let row = row.show("spread_bytes", self.spread).show("pool_bytes", self.pool).keep("repeat", self.repeat);
        let figures = judged(Figures::of(row.rows("rows", rows.clone())), &rows);
        let not_run = programs.other_not_run().map(|why| format!("the other GASNet-EX: {why}"));
        Ok(Report::of_figures(Self::NAME, figures.not_run(not_run)))
    }
}

impl GasnetEx {
    /// Times of all operations with this number of ranks, in nanoseconds. A name has the operation, the owner of the
    /// word, and the kind of place: for example `get_own_random`.
    fn measure(&self, programs: &Programs<'_>, ranks: u32) -> Result<Vec<Row>, Stop> {
        let failed = |whose: &str, why: String| Stop::failure(format!("gasnet-ex, {ranks} ranks, {whose}: {why}"));
        let bar = progress::bar(true, "gasnet-ex", u64::from(self.repeat));
        let mut all: BTreeMap<String, Row> = BTreeMap::new();
        for _ in 0..self.repeat {
            let ours = programs.run_ours(ranks).map_err(|why| failed("vgasnet", why))?;
            let other = match programs.other_not_run() {
                Some(_) => Times::new(),
                None => programs.run_other(ranks).map_err(|why| failed("the other", why))?,
            };
            for (name, times) in ours {
                let row = all.entry(name.clone()).or_insert_with(|| {
                    let row = Row::labelled(name.replace('_', " ")).in_group(format!("{ranks} ranks"));
                    row.keep("name", &name).show("ranks", ranks)
                });
                row.add("ns", median(&times));
                if let Some(times) = other.get(&name) {
                    row.add("other_ns", median(times));
                }
            }
            bar.inc(1);
        }
        let compared = |row: Row| {
            let more = row.number("ns") - row.number("other_ns");
            if more.is_nan() { row } else { row.show("more_ns", more).ratio("to_other", "ns", "other_ns") }
        };
        Ok(all.into_values().map(compared).collect())
    }
}

/// The targets, each at its worst place.
fn judged(figures: Figures, rows: &[Row]) -> Figures {
    let worst = |begins: &[&str], ranks: u32, value: &str| {
        let is_meant =
            |row: &&Row| row.is("ranks", ranks) && begins.iter().any(|begin| row.text("name").starts_with(begin));
        let values = rows.iter().filter(is_meant).map(|row| row.number(value)).filter(|value| !value.is_nan());
        values.max_by(f64::total_cmp)
    };
    let two = |begins: &[&str], value: &str| worst(begins, JUDGED_RANKS, value);
    let round_trip_ns = two(&["message_neighbour"], "ns");
    let add_ns = two(&["add_neighbour"], "ns");
    let add_to_message = add_ns.zip(round_trip_ns).map(|(add, round_trip)| add / round_trip);
    let more_ns = two(&["get_", "put_"], "more_ns").map(|more| more.max(LEAST_NS));
    let barrier = worst(&["barrier"], JUDGED_RANKS_OF_BARRIER, "to_other");
    let message = two(&["message_neighbour"], "to_other");
    let most = Bound::AtMost;
    figures
        .target("rma_more_ns", "gets and puts, more than the other's, ns", more_ns, most, 40.0)
        .target("message_to_other", "round trip of a message to the other's", message, most, 2.0)
        .target("add_own_ns", "fetch-add of an own word, ns", two(&["add_own"], "ns"), most, 100.0)
        .target(
            "add_neighbour_to_message",
            "fetch-add of a neighbour's word to a round trip",
            add_to_message,
            most,
            2.0,
        )
        .target("event_test_ns", "a look at an event that has happened, ns", two(&["event_test"], "ns"), most, 10.0)
        .target("barrier_to_other", "barrier of 4 ranks to the other's", barrier, most, 2.0)
}

/// Measurements of each operation by the program.
const TIMES: u32 = 21;

/// Nanoseconds of each operation, by name.
type Times = BTreeMap<String, Vec<f64>>;

struct Programs<'a> {
    options: &'a GasnetEx,
    ours: PathBuf,
    vgasnetrun: PathBuf,
    other: Result<PathBuf, String>,
    _folder: Folder,
}

impl<'a> Programs<'a> {
    fn new(options: &'a GasnetEx) -> Result<Programs<'a>, String> {
        let (dir, folder) = (own_dir()?, Folder::new()?);
        let source = folder.path().join("operations.c");
        std::fs::write(&source, include_str!("gasnet_ex/operations.c"))
            .map_err(|error| format!("{}: {error}", source.display()))?;
        let ours = compile("cc", &source, &of_vgasnet(&dir), &folder, "vgasnet")?;
        let other = match &options.other {
            Some(prefix) => Ok(of_other(prefix, options.network, &source, &folder)?),
            None => Err("give --other the prefix of an installed GASNet-EX".to_owned()),
        };
        Ok(Programs { options, ours, vgasnetrun: dir.join("vgasnetrun"), other, _folder: folder })
    }

    /// The reason for having no other installation.
    fn other_not_run(&self) -> Option<&str> {
        self.other.as_ref().err().map(String::as_str)
    }

    fn run_ours(&self, ranks: u32) -> Result<Times, String> {
        let mut command = Command::new(&self.vgasnetrun);
        command.args(["-n", &ranks.to_string()]).arg(&self.ours);
        command.env("VGASNET_POOL_SIZE", self.options.pool.to_string());
        if let Some(dir) = &self.options.storage_dir {
            let dir = dir.canonicalize().map_err(|error| format!("--storage-dir {}: {error}", dir.display()))?;
            command.env("VGASNET_STORAGE_DIR", dir);
        }
        self.times(command)
    }

    fn run_other(&self, ranks: u32) -> Result<Times, String> {
        let program = self.other.as_ref().map_err(Clone::clone)?;
        let mut command = match (self.options.network, &self.options.other) {
            (Network::Udp, Some(prefix)) => {
                let mut command = Command::new(prefix.join("bin/amudprun"));
                command.args(["-np", &ranks.to_string()]).arg(program).env("GASNET_SPAWNFN", "L");
                command
            }
            _ => {
                let mut command = Command::new(program);
                command.env("GASNET_PSHM_NODES", ranks.to_string());
                command
            }
        };
        command.env("GASNET_QUIET", "1");
        self.times(command)
    }

    fn times(&self, mut command: Command) -> Result<Times, String> {
        parse(&said(command.args([TIMES.to_string(), self.options.spread.to_string()]))?)
    }
}

/// Compiler arguments for GASNet-EX by this library.
fn of_vgasnet(dir: &Path) -> Vec<String> {
    let include = include_dir(dir);
    // An installation has these headers in one directory.
    let installed = dir.join("../gasnet-ex/include");
    let of_gasnet = if installed.is_dir() {
        vec![installed]
    } else {
        vec![include.join("gasnet-ex"), include.join("gasnet-compat")]
    };
    let of_gasnet = of_gasnet.iter().map(|dir| format!("-I{}", dir.display()));
    of_gasnet.chain(["-DGASNET_PAR".to_owned()]).chain(with_vgasnet(&include, dir)).collect()
}

/// Compiles the program for another installation, with flags from its package.
fn of_other(prefix: &Path, network: Network, source: &Path, folder: &Folder) -> Result<PathBuf, String> {
    let prefix = prefix.canonicalize().map_err(|error| format!("--other {}: {error}", prefix.display()))?;
    let package = format!("gasnet-{}-par", name(network));
    let ask = |options: &[&str]| {
        let mut command = Command::new("pkg-config");
        said(command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args(options).arg(&package))
    };
    // MPI may start its jobs; then the package's linker is MPI's compiler.
    let linker = ask(&["--variable=GASNET_LD"])?;
    let flags = ask(&["--cflags", "--libs"])?;
    let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
    compile(linker.trim(), source, &flags, folder, "other")
}

/// Parses the lines of the program: a name, and times.
fn parse(text: &str) -> Result<Times, String> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let times: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
        times.filter(|times| times.len() == TIMES as usize).map(|times| (name, times))
    };
    let found: Option<Times> = text.lines().map(line).collect();
    found.filter(|times| !times.is_empty()).ok_or_else(|| format!("the program said {:?}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::{TIMES, parse};

    #[test]
    fn lines_have_a_name_and_all_times() {
        let times = vec!["1.5"; TIMES as usize].join(" ");
        let found = parse(&format!("get_own {times}\nbarrier {times}\n")).unwrap();
        assert_eq!((found.len(), found["barrier"].len(), found["get_own"][0]), (2, TIMES as usize, 1.5));
        assert!(parse("").is_err() && parse("get_own 1.5").is_err() && parse(&format!("get_own {times} x")).is_err());
    }
}
