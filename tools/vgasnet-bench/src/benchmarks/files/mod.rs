//! Shared files: access patterns from Liao, Coloma, Choudhary and Ward, "Cooperative Client-Side File Caching for MPI
//! Applications", IJHPCA 2007. They run over vgasnet, over MPI-IO, and with plain system calls under locks.
//!
//! Each pattern is one C source, common to all ways (`files/io.h`). The resulting file is compared with a model.

mod measure;
mod model;
mod programs;
mod sequential;

use crate::Stop;
use crate::prelude::*;

/// Bytes of a BT-IO point.
const POINT_BYTES: u64 = 40;

/// The window of the sliding window, two pages of the paper.
const WINDOW_BYTES: u64 = 2 * (256 << 10);

/// Rows of many ranks in each page, with the row size of BT-IO class A for this number of ranks.
const ROW_BYTES: u64 = 640;
const ROW_RANKS: u32 = 16;
const ROWS_FILE_BYTES: u64 = 4 << 20;

/// The file of a single rank, in pools.
const SEQUENTIAL_POOLS: u64 = 4;

/// Shared files over vgasnet, over MPI-IO and under locks: a sliding window, BT-IO, FLASH I/O
#[derive(Args, Serialize, Deserialize)]
#[command(mut_arg("check", |check| check.help(CHECK_ALL)))]
pub struct Files {
    /// The patterns to measure
    #[arg(long, value_enum, value_name = "PATTERN", value_delimiter = ',', default_values_t = Pattern::value_variants().to_vec())]
    patterns: Vec<Pattern>,

    /// Number of ranks, also as -np; several numbers are measured one after another. The patterns of BT-IO need squares
    /// [default: 2,4 for the sliding window, else 4]
    #[arg(short = 'n', value_name = "RANKS", value_delimiter = ',', value_parser = within(1..=64))]
    ranks: Vec<u32>,

    /// Sizes of the file of the sliding window
    #[arg(long, value_name = "SIZE", default_value = "32M", value_delimiter = ',', value_parser = parse_size)]
    size: Vec<u64>,

    /// Classes of BT-IO: cubes of 12, 24, 64 and 102 points a side
    #[arg(long, value_enum, value_name = "CLASS", default_value = "a", value_delimiter = ',', ignore_case = true)]
    class: Vec<Class>,

    /// Dumps of BT-IO
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = within(1..=1000))]
    dumps: u32,

    /// Cells a side of the blocks of FLASH I/O
    #[arg(long, value_name = "N", default_value = "8,16", value_delimiter = ',', value_parser = within(1..=64))]
    edge: Vec<u32>,

    /// The DRAM cache of each rank, counted in its memory
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = parse_size)]
    pool: u64,

    /// Memory of each rank in addition to its pool; ways without a pool leave the rest to the system's page cache
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = parse_size)]
    besides: u64,

    /// Page size
    #[arg(long, value_name = "SIZE", default_value = "256K", value_parser = parse_size)]
    page: u64,

    /// Alternating rounds of all ways; results are their medians
    #[arg(long, visible_alias = "rounds", value_name = "N", default_value_t = 3, value_parser = within(1..=1000))]
    repeat: u32,

    /// Measure only runs that end with a sync, and none that end with the close
    #[arg(long)]
    only_sync: bool,

    /// Directory of the files, and of backing files [default: VGASNET_STORAGE_DIR, else TMPDIR, else /var/tmp]
    #[arg(long, value_name = "DIR")]
    storage_dir: Option<PathBuf>,

    #[command(flatten)]
    by_mpi: ByMpi,

    /// Write the results to this file in JSON; with - they go to stdout, and the table goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    judging: Judging,
}

/// The measurements of MPI-IO.
#[derive(Args, Serialize, Deserialize)]
struct ByMpi {
    /// Do not measure MPI-IO
    #[arg(long)]
    no_mpi: bool,

    /// The C compiler of an MPI; its launcher has the same name with mpiexec for mpicc
    #[arg(long, value_name = "COMMAND", default_value = "mpicc")]
    mpicc: String,

    /// The preloaded library that serves MPI-IO by vgasnet [default: libvgasnet-mpi-io.so next to this program, or in
    /// ../lib]
    #[arg(long, value_name = "FILE")]
    mpi_io_library: Option<PathBuf>,
}

/// A class of the NAS parallel benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum Class {
    S,
    W,
    A,
    B,
}

impl Class {
    /// Points on a side of the cube.
    fn points(self) -> u64 {
        match self {
            Class::S => 12,
            Class::W => 24,
            Class::A => 64,
            Class::B => 102,
        }
    }
}

impl Benchmark for Files {
    const NAME: &'static str = "files";

    fn run(&self) -> Result<Report, Stop> {
        measure::run(self)
    }
}

/// An access pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Pattern {
    /// Ranks take turns to read, modify and write each part of the file
    SlidingWindow,
    /// Dumps of a cube in collective calls with file views, and reading them back
    BtioFull,
    /// The same in a call for each row
    BtioSimple,
    /// A checkpoint and two plot files in collective calls
    Flash,
    /// One rank writes and reads a file of four pools, beside O_DIRECT
    Sequential,
    /// Rows of 640 bytes of 16 ranks, as on several hosts: how many pages move, with and without VGASNET_SHIP=0
    Rows,
}

impl Pattern {
    fn is_btio(self) -> bool {
        matches!(self, Pattern::BtioFull | Pattern::BtioSimple)
    }
}

/// An implementation of file I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    Vgasnet,
    /// MPI-IO with the preloaded library that serves it by vgasnet.
    MpiIoPreloaded,
    MpiIo,
    MpiIoAtomic,
    /// `pread` and `pwrite`, each under a `fcntl` lock on its bytes.
    Locks,
}

impl Way {
    const ALL: [Way; 5] = [Way::Vgasnet, Way::MpiIoPreloaded, Way::MpiIo, Way::MpiIoAtomic, Way::Locks];

    fn name(self) -> &'static str {
        match self {
            Way::Vgasnet => "vgasnet",
            Way::MpiIoPreloaded => "MPI-IO by vgasnet",
            Way::MpiIo => "MPI-IO",
            Way::MpiIoAtomic => "MPI-IO, atomic",
            Way::Locks => "pread, pwrite, locks",
        }
    }

    /// Whether a pattern runs this way. Only in the sliding window do ranks read bytes written concurrently by others.
    fn does(self, pattern: Pattern) -> bool {
        self != Way::MpiIoAtomic || pattern == Pattern::SlidingWindow
    }
}

/// A pattern with its sizes.
struct Case {
    pattern: Pattern,
    ranks: u32,
    /// The bytes of the file, points on a side of the cube, or cells on a side of the blocks.
    size: u64,
    /// The bytes of a window, a block or a row, or the number of dumps.
    unit: u64,
    /// The description for users.
    label: String,
    /// Bytes read and written by all ranks together.
    moved_bytes: u64,
}

impl Case {
    /// The cases to run by all ways.
    fn all(options: &Files) -> Result<Vec<Case>, String> {
        let mut cases = Vec::new();
        for &pattern in &options.patterns {
            let ranks: &[u32] = match pattern {
                Pattern::SlidingWindow if options.ranks.is_empty() => &[2, 4],
                _ if options.ranks.is_empty() => &[4],
                _ => &options.ranks,
            };
            for &ranks in ranks {
                cases.extend(Case::of(pattern, ranks, options)?);
            }
        }
        Ok(cases)
    }

    fn of(pattern: Pattern, ranks: u32, options: &Files) -> Result<Vec<Case>, String> {
        if pattern.is_btio() && !ranks.isqrt().pow(2).eq(&ranks) {
            return Err(format!("-n {ranks}: the patterns of BT-IO need a square"));
        }
        let points = options.class.iter().map(|class| class.points());
        Ok(match pattern {
            Pattern::SlidingWindow => {
                let windows = u64::from(ranks) * WINDOW_BYTES;
                let sizes = options.size.iter().map(|size| (*size).max(1).next_multiple_of(windows));
                sizes.map(|size| Case::new(pattern, ranks, size, WINDOW_BYTES)).collect()
            }
            Pattern::BtioFull | Pattern::BtioSimple => {
                points.map(|n| Case::new(pattern, ranks, n, u64::from(options.dumps))).collect()
            }
            Pattern::Flash => options.edge.iter().map(|edge| Case::new(pattern, ranks, u64::from(*edge), 0)).collect(),
            Pattern::Sequential | Pattern::Rows => Vec::new(),
        })
    }

    /// The file of one rank, written and read in order.
    fn sequential(options: &Files) -> Case {
        let unit = crate::plan::BLOCK_BYTES;
        Case::new(Pattern::Sequential, 1, (SEQUENTIAL_POOLS * options.pool).next_multiple_of(unit), unit)
    }

    /// Rows of many ranks in a page.
    fn rows() -> Case {
        Case::new(Pattern::Rows, ROW_RANKS, ROWS_FILE_BYTES, ROW_BYTES)
    }

    fn new(pattern: Pattern, ranks: u32, size: u64, unit: u64) -> Case {
        let mut case = Case { pattern, ranks, size, unit, label: String::new(), moved_bytes: 0 };
        let written_bytes: u64 = case.files().iter().map(|(_, bytes)| bytes).sum();
        let (label, times) = match pattern {
            Pattern::SlidingWindow => (format_size_about(size), 2 * u64::from(ranks)),
            Pattern::BtioFull | Pattern::BtioSimple => (format!("{size} x {size} x {size}, {unit} dumps"), 2),
            Pattern::Flash => (format!("blocks of {size} x {size} x {size}"), 1),
            Pattern::Sequential => (format_size_about(size), 2),
            Pattern::Rows => (format!("rows of {unit} bytes"), 1),
        };
        (case.label, case.moved_bytes) = (label, times * written_bytes);
        case
    }

    fn row(&self) -> Row {
        let label = format!("{}, {} ranks, {}", name(self.pattern), self.ranks, self.label);
        let row = Row::labelled(label).keep("pattern", self.pattern).keep("ranks", self.ranks).keep("size", self.size);
        row.keep("unit", self.unit).keep("label", &self.label).show("moved_bytes", self.moved_bytes)
    }

    /// The suffix of each file's name, and its size.
    fn files(&self) -> Vec<(&'static str, u64)> {
        let size = self.size;
        match self.pattern {
            Pattern::SlidingWindow | Pattern::Sequential => vec![("", size)],
            Pattern::BtioFull | Pattern::BtioSimple => vec![("", size.pow(3) * POINT_BYTES * self.unit)],
            Pattern::Flash => {
                let blocks: u64 = (0..u64::from(self.ranks)).map(|rank| 80 + rank % 3).sum();
                let (cells, corners) = (size.pow(3), (size + 1).pow(3));
                vec![
                    ("", 24 * blocks * cells * 8),
                    (".centres", 4 * blocks * cells * 4),
                    (".corners", 4 * blocks * corners * 4),
                ]
            }
            Pattern::Rows => {
                let round = u64::from(self.ranks) * self.unit;
                vec![("", size / round * round)]
            }
        }
    }
}
