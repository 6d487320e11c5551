//! Data larger than the pool, read and written from start to end, compared with plain I/O at its best depth.

use crate::Stop;
use crate::disk::{Buffers, PlainFile, Step, blocks};
use crate::prelude::*;

/// Depths of plain I/O. With blocks of 4 MiB, disks gain nothing from more.
const DEPTHS: [usize; 4] = [1, 2, 4, 8];

/// Loads of cold pages: one in each page of the system.
const LOAD_STRIDE: usize = 4096;

/// Blocks between the read of a block in plain I/O and its write, so neither waits.
const WRITE_LAG_BLOCKS: usize = 16;

/// Data larger than the pool, read and written from start to end, compared with plain I/O at its best depth
#[derive(Args, Serialize, Deserialize)]
pub struct Stream {
    #[command(flatten)]
    setup: Setup,

    /// Data read or written in order, or read ahead [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,

    /// Exit with status 1 if a figure is worse than wanted
    #[arg(long)]
    check: bool,
}

/// A way to go through the data.
struct Way {
    name: &'static str,
    run: fn(&Rank, &Spec),
    /// The plain I/O for comparison.
    io: Io,
    /// The target, its meaning and its value: nearly as fast as the disk.
    target: (&'static str, &'static str, f64),
}

/// Puts and stores last until all is on the disk.
const WAYS: [Way; 4] = [
    Way {
        name: "gets",
        run: get,
        io: Io::Reads,
        target: ("cold_gets_to_plain", "cold sequential gets to plain reads", 0.95),
    },
    Way {
        name: "loads",
        run: load,
        io: Io::Reads,
        target: ("cold_loads_to_plain", "cold sequential loads to plain reads", 0.95),
    },
    Way { name: "puts", run: put, io: Io::Writes, target: ("puts_to_plain", "sequential puts to plain writes", 0.9) },
    Way {
        name: "stores",
        run: store,
        io: Io::ReadsAndWrites,
        target: ("stores_to_plain", "sequential stores to plain I/O", 0.9),
    },
];

/// The I/O caused by a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Io {
    Reads,
    Writes,
    /// Each block is read, and written later.
    ReadsAndWrites,
}

impl Benchmark for Stream {
    const NAME: &'static str = "stream";

    fn plan(&self) -> Result<Vec<Job>, Stop> {
        let size = self.size.unwrap_or(DATA_BYTES_DEFAULT);
        let job = |setup| Job::new(self, 1, &setup)?.with_frames(FRAMES_MIN)?.with_pages(size, 1);
        self.setup.in_pages(LARGE_AND_SMALL).into_iter().map(job).collect()
    }

    fn measure(&self, rank: &Rank, spec: &Spec) -> Figures {
        let mut file = PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::LargePages);
        put(rank, spec);
        let bar = progress::bar(true, "streams", u64::from(spec.repeat) * (WAYS.len() + 3 * DEPTHS.len()) as u64);
        let mut passes = WAYS.each_ref().map(|way| Row::labelled(way.name).keep("way", way.name));
        let mut moved_bytes = [[0; 2]; WAYS.len()];
        let plain = |io| DEPTHS.map(|depth| Row::default().keep("io", io).keep("depth", depth));
        let mut plain = [Io::Reads, Io::Writes, Io::ReadsAndWrites].map(plain);
        for _ in 0..spec.repeat {
            for (at, (way, row)) in WAYS.iter().zip(&mut passes).enumerate() {
                // Each kind of plain I/O precedes the first way compared with it.
                if WAYS.iter().position(|other| other.io == way.io) == Some(at) {
                    for (depth, row) in DEPTHS.iter().zip(&mut plain[way.io as usize]) {
                        row.add("seconds", way.io.seconds(&mut file, *depth, spec));
                        bar.inc(1);
                    }
                }
                rank.empty_pool();
                let before = disk_bytes();
                row.add("seconds", seconds(|| (way.run)(rank, spec)));
                let now = disk_bytes();
                moved_bytes[at] = [now[0] - before[0], now[1] - before[1]];
                bar.inc(1);
            }
        }
        let ratios: Vec<Row> = WAYS.iter().zip(&passes).map(|(way, pass)| way.compared(spec, pass, &plain)).collect();
        let moved = |(row, [read, written]): (Row, [u64; 2])| {
            row.show("disk_read_bytes", read).show("disk_written_bytes", written)
        };
        let passes = passes.into_iter().zip(moved_bytes).map(moved).collect();
        let row = Row::default().show("data_bytes", spec.data_bytes).rows("ratios", ratios.clone());
        let row = row.rows("passes", passes).rows("plain", plain.concat());
        let figures = Figures::of(row).with_direct(file.is_direct);
        WAYS.iter().zip(&ratios).fold(figures, |figures, (Way { target: (name, meaning, least), .. }, ratio)| {
            figures.target(name, meaning, ratio.number("to_plain"), AtLeast, *least)
        })
    }
}

impl Way {
    /// Compares passes with plain I/O at its best depth.
    fn compared(&self, spec: &Spec, pass: &Row, plain: &[[Row; DEPTHS.len()]; 3]) -> Row {
        let rate = |row: &Row| spec.data_bytes as f64 / row.number("seconds");
        let depths = DEPTHS.iter().zip(plain[self.io as usize].iter().map(rate));
        let (depth, plain_rate) = depths.max_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((&0, f64::NAN));
        let row = Row::labelled(self.name).keep("way", self.name).show("bytes_per_second", rate(pass));
        let row = row.show("plain_bytes_per_second", plain_rate).show("plain_io", self.io).show("plain_depth", depth);
        row.ratio("to_plain", "bytes_per_second", "plain_bytes_per_second")
    }
}

impl Io {
    fn seconds(self, file: &mut PlainFile, depth: usize, spec: &Spec) -> f64 {
        let all = |is_write| blocks(is_write, 0, spec.data_bytes);
        let seconds = match self {
            Io::Reads => file.at_depth(depth, all(false)),
            Io::Writes => file.at_depth(depth, all(true)),
            Io::ReadsAndWrites => file.at_depth(depth, reads_and_writes(spec).into_iter()),
        };
        seconds.unwrap_or_else(|error| fail(format!("plain I/O: {error}")))
    }
}

fn reads_and_writes(spec: &Spec) -> Vec<Step> {
    let mut writes = blocks(true, 0, spec.data_bytes);
    let mut steps = Vec::new();
    for (block, read) in blocks(false, 0, spec.data_bytes).enumerate() {
        steps.push(read);
        steps.extend(if block >= WRITE_LAG_BLOCKS { writes.next() } else { None });
    }
    steps.extend(writes);
    steps
}

fn get(rank: &Rank, spec: &Spec) {
    let mut buffer = block_buffer();
    for block in 0..spec.blocks() {
        rank.get(0, block * BLOCK_BYTES, black_box(&mut buffer[..spec.block_bytes(block)]));
    }
}

fn load(rank: &Rank, spec: &Spec) {
    let start = rank.own_segment();
    for at in (0..spec.data_bytes as usize).step_by(LOAD_STRIDE) {
        // SAFETY: the data lies in the own segment, and is not written now.
        black_box(unsafe { start.wrapping_add(at).read_volatile() });
    }
}

fn put(rank: &Rank, spec: &Spec) {
    let buffer = block_buffer();
    for block in 0..spec.blocks() {
        rank.put(0, block * BLOCK_BYTES, black_box(&buffer[..spec.block_bytes(block)]));
    }
    rank.write_back();
}

fn store(rank: &Rank, spec: &Spec) {
    let start = rank.own_segment();
    for block in 0..spec.blocks() {
        let place = start.wrapping_add((block * BLOCK_BYTES) as usize);
        // SAFETY: the data lies in the own segment, and has no other user now.
        unsafe { place.write_bytes(block as u8, spec.block_bytes(block)) };
    }
    rank.write_back();
}
