//! `lcc` and `barnes-hut`: examples, with alternating rounds of all ways.

mod runs;

use crate::Stop;
use crate::prelude::*;
use runs::{Examples, Said};

#[derive(Args, Serialize, Deserialize)]
struct ProgramOptions {
    /// Rounds; results are their medians
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = within(1..=1000))]
    repeat: u32,

    /// Seed of the data
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of ranks, also as -np; with two, the other rank has not much more than a pool, and vgasnet moves its
    /// pages here
    #[arg(short = 'n', value_name = "RANKS", default_value_t = 4, value_parser = within(2..=64))]
    ranks: u32,

    /// Number of ranks over MPI; each needs a processor
    #[arg(long, value_name = "RANKS", default_value_t = 2, value_parser = within(2..=64))]
    mpi_ranks: u32,

    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "128K", value_parser = parse_size)]
    page: u64,

    /// Memory for remote bytes, as fractions of the remote bytes
    #[arg(long, value_name = "PART", default_value = "0.25,0.5,1", value_delimiter = ',')]
    parts: Vec<f64>,

    /// Directory of the backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    storage_dir: Option<PathBuf>,

    /// Directory with the programs' sources [default: ../share/vgasnet/examples relative to this program, else the
    /// source tree]
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,

    /// Run the programs on two hosts, network namespaces created for this purpose, over TCP; needs root, and a vgasnet
    /// with MPI
    #[arg(long)]
    two_hosts: bool,

    /// Do not measure the programs by MPI, with and without a library that caches its gets
    #[arg(long)]
    no_mpi: bool,

    #[command(flatten)]
    mpi: MpiOptions,

    /// Write the results to this file in JSON; with - they go to stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    judging: Judging,
}

/// Clustering coefficients of a graph: the example lcc, with and without the cache of gets, over vgasnet and over
/// MPI
#[derive(Args, Serialize, Deserialize)]
#[command(mut_arg("check", |check| check.help(CHECK_ALL)))]
pub struct Lcc {
    #[command(flatten)]
    program: ProgramOptions,

    /// The graph has 2^N vertices
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 15, value_parser = within(6..=28))]
    scale: u32,

    /// Weight cached lists by their degree over the mean
    #[arg(long)]
    weighted: bool,
}

impl Benchmark for Lcc {
    const NAME: &'static str = "lcc";

    fn run(&self) -> Result<Report, Stop> {
        let args = ["--scale", &self.scale.to_string(), "--seed", &self.program.seed.to_string()].map(str::to_owned);
        let program = Program {
            options: &self.program,
            name: "lcc",
            args: args.into(),
            cached_args: self.weighted.then(|| "--weighted".to_owned()).into_iter().collect(),
            mpi_mode: "always",
            ways: &[Way::Uncached, Way::PageCache, Way::Cached, Way::Both, Way::Mpi, Way::MpiCached],
        };
        let names = [
            (0.25, "quarter_to_faster", "time to the faster of both caches, 1/4"),
            (0.5, "half_to_faster", "time to the faster of both caches, 1/2"),
        ];
        program.measure(|rows, mut figures| {
            for (part, name, meaning) in names {
                let [both, pages, gets] = [Way::Both, Way::PageCache, Way::Cached].map(|way| seconds(rows, way, part));
                let ratio = both.zip(pages).zip(gets).map(|((both, pages), gets)| both / pages.min(gets));
                figures = figures.target(name, meaning, ratio, AtMost, 1.05);
            }
            figures.remark(
                "the paper: 5 times as fast as foMPI with 128 MB, 2^20 vertices, 32 nodes of a Cray XC50; this is another machine",
            )
        })
    }
}

/// Gravitation of many bodies: the example barnes_hut, with and without the cache of gets, over vgasnet and over
/// MPI
#[derive(Args, Serialize, Deserialize)]
#[command(mut_arg("check", |check| check.help(CHECK_ALL)))]
pub struct BarnesHut {
    #[command(flatten)]
    program: ProgramOptions,

    /// Number of bodies
    #[arg(long, visible_alias = "size", value_name = "N", default_value_t = 4000, value_parser = within(64..=10_000_000))]
    bodies: u32,

    /// Number of time steps
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within(1..=1000))]
    steps: u32,

    /// Bodies spread over a cube, instead of a cluster
    #[arg(long)]
    uniform: bool,
}

impl Benchmark for BarnesHut {
    const NAME: &'static str = "barnes-hut";

    /// The examples' own cache is compared at its worst amount of memory.
    fn run(&self) -> Result<Report, Stop> {
        let [bodies, steps] = [self.bodies, self.steps].map(|number| number.to_string());
        let seed = self.program.seed.to_string();
        let mut args: Vec<String> = ["--bodies", &bodies, "--steps", &steps, "--seed", &seed].map(str::to_owned).into();
        args.extend(self.uniform.then(|| "--uniform".to_owned()));
        let program = Program {
            options: &self.program,
            name: "barnes_hut",
            args,
            cached_args: Vec::new(),
            mpi_mode: "phase",
            ways: &[Way::Uncached, Way::DirectMapped, Way::PageCache, Way::Cached, Way::Both, Way::Mpi, Way::MpiCached],
        };
        program.measure(|rows, figures| {
            let ratio = |part: f64| Some(seconds(rows, Way::DirectMapped, part)? / seconds(rows, Way::Cached, part)?);
            let least = parts(rows).filter_map(ratio).min_by(f64::total_cmp);
            let paper = "the paper: up to 5 times as fast as uncached and 3 times as a direct-mapped cache, 20K bodies and more, 16 to \
                         128 nodes of a Cray XC50; this is another machine";
            let (name, meaning) = ("direct_mapped_to_cached", "direct-mapped to cached, least");
            figures.target(name, meaning, least, AtLeast, 1.5).remark(paper)
        })
    }
}

/// A way for an example to get remote bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// By vgasnet, with a pool hardly larger than the own data.
    Uncached,
    /// Through a cache in the example itself.
    DirectMapped,
    /// With a larger pool.
    PageCache,
    /// Through the cache of gets.
    Cached,
    /// Through both: an eighth of the memory is for the cache of gets, as by default, and the remainder for the pool.
    Both,
    Mpi,
    /// With a preloaded library that caches gets.
    MpiCached,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Uncached => "uncached",
            Way::DirectMapped => "direct-mapped cache",
            Way::PageCache => "page cache",
            Way::Cached => "get cache",
            Way::Both => "page and get cache",
            Way::Mpi => "MPI",
            Way::MpiCached => "MPI, cached",
        }
    }

    /// Whether this way uses memory for remote bytes.
    fn has_memory(self) -> bool {
        !matches!(self, Way::Uncached | Way::Mpi)
    }

    /// The minimum amount of memory.
    fn memory_bytes_min(self) -> u64 {
        match self {
            Way::Both => 128 << 10,
            _ => 64 << 10,
        }
    }

    fn baseline(self) -> Way {
        if self == Way::MpiCached || self == Way::Mpi { Way::Mpi } else { Way::Uncached }
    }
}

/// One way with an amount of memory.
struct WayRow {
    way: Way,
    /// The memory divided by the remote bytes.
    part: Option<f64>,
    memory_bytes: u64,
    row: Row,
    /// The output of the last round.
    last: Said,
}

fn seconds(rows: &[WayRow], way: Way, part: f64) -> Option<f64> {
    let same = |row: &&WayRow| row.way == way && row.part.is_none_or(|its| (its - part).abs() < 1e-9);
    rows.iter().find(same).map(|row| row.row.number("seconds"))
}

/// The measured fractions of the remote bytes.
fn parts(rows: &[WayRow]) -> impl Iterator<Item = f64> {
    rows.iter().filter(|row| row.way == Way::Cached).filter_map(|row| row.part)
}

impl WayRow {
    fn new(way: Way, part: Option<f64>, memory_bytes: u64) -> WayRow {
        let part_words = part.map_or_else(String::new, |part| format!(", {part}"));
        let row = Row::labelled(format!("{}{part_words}", way.name())).keep("way", way).keep_some("part", part);
        WayRow { way, part, memory_bytes, row: row.show("memory_bytes", memory_bytes), last: Said::default() }
    }

    fn compared(&self, all: &[WayRow]) -> Row {
        let Said { gets, bytes, hits, .. } = self.last;
        let row = self.row.clone().keep("baseline_seconds", seconds(all, self.way.baseline(), 0.0));
        let row = row.speedup("speedup", "seconds", "baseline_seconds").keep("gets", gets).keep("bytes", bytes);
        row.keep("hits", hits).show("hit_percent", (hits > 0).then_some(100.0 * hits as f64 / gets.max(1) as f64))
    }
}

/// An example, and its measurement.
struct Program<'a> {
    options: &'a ProgramOptions,
    name: &'static str,
    args: Vec<String>,
    /// Additional arguments if gets are cached by vgasnet.
    cached_args: Vec<String>,
    /// The mode of the preloaded MPI library for caching gets, chosen to be correct for the program.
    mpi_mode: &'static str,
    ways: &'static [Way],
}

impl Program<'_> {
    /// `judge` adds targets to those for memory that has room for all remote bytes.
    fn measure(&self, judge: impl FnOnce(&[WayRow], Figures) -> Figures) -> Result<Report, Stop> {
        let options = self.options;
        if let Some(part) = options.parts.iter().find(|part| !(0.001..=100.0).contains(*part)) {
            return Err(Stop::usage(format!("--parts {part}: give parts from 0.001 to 100")));
        }
        let examples = Examples::new(options, self.name, &self.args).map_err(Stop::failure)?;
        let mut rows = self.rows(&examples);
        let bar = progress::bar(true, self.name, u64::from(options.repeat) * rows.len() as u64);
        for _ in 0..options.repeat {
            for row in &mut rows {
                let said = examples.run(row.way, row.memory_bytes, &self.cached_args, self.mpi_mode);
                let said = said.map_err(|why| Stop::failure(format!("{}, {}: {why}", self.name, row.way.name())))?;
                // All ways find the same result.
                if said.checksum != examples.first.checksum {
                    let (found, other) = (said.checksum, &examples.first.checksum);
                    return Err(Stop::failure(format!("{} found {found} and {other} with other memory", self.name)));
                }
                row.row.add("seconds", said.seconds);
                row.last = said;
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        let row = Row::default()
            .show("program", self.name)
            .keep("args", &self.args)
            .show("ranks", options.ranks)
            .show("mpi_ranks", options.mpi_ranks)
            .show("page_bytes", options.page)
            .show("two_hosts", options.two_hosts)
            .keep("repeat", options.repeat)
            .show("remote_bytes", examples.first.remote_bytes)
            .rows("rows", rows.iter().map(|row| row.compared(&rows)).collect());
        let full = parts(&rows).find(|part| *part >= 1.0);
        let ratio = |slow: Way, fast: Way| Some(seconds(&rows, slow, full?)? / seconds(&rows, fast, full?)?);
        let [cached, by_mpi] = [ratio(Way::Uncached, Way::Cached), ratio(Way::Mpi, Way::MpiCached)];
        let figures = Figures::of(row)
            .not_run(examples.mpi.not_run().map(|why| format!("by MPI: {why}")))
            .target("uncached_to_cached", "uncached to cached, memory for all", cached, AtLeast, 5.0)
            .target("mpi_to_cached", "plain MPI to MPI cached, memory for all", by_mpi, AtLeast, 5.0);
        Ok(Report::of_figures(self.name, judge(&rows, figures)))
    }

    /// The measurements: each way once, or with each amount of memory.
    fn rows(&self, examples: &Examples<'_>) -> Vec<WayRow> {
        let mut rows = Vec::new();
        for &way in self.ways.iter().filter(|way| examples.has(**way)) {
            if !way.has_memory() {
                rows.push(WayRow::new(way, None, 0));
                continue;
            }
            for &part in &self.options.parts {
                // Whole pages, so all ways have the same memory.
                let pages = (part * examples.first.remote_bytes as f64 / self.options.page as f64).round() as u64;
                let bytes = pages.max(1) * self.options.page;
                rows.push(WayRow::new(way, Some(part), bytes.max(way.memory_bytes_min())));
            }
        }
        rows
    }
}
