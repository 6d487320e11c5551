//! Data larger than the pool, read and written from start to end, compared with plain I/O at its best depth.

use crate::disk::{Buffers, PlainFile, Step, blocks};
use crate::plan::{BLOCK_BYTES, Spec};
use crate::rank::{Rank, block_buffer, disk_bytes, fail};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Instant;
use vgasnet_measuring::progress;

/// Depths of plain I/O. With blocks of 4 MiB, disks gain nothing from more.
const DEPTHS: [usize; 4] = [1, 2, 4, 8];

/// Loads of cold pages: one in each page of the system.
const LOAD_STRIDE: usize = 4096;

/// Blocks between the read of a block in plain I/O and its write, so neither waits.
const WRITE_LAG_BLOCKS: usize = 16;

/// A way to go through the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    Gets,
    Loads,
    /// Of whole pages, until all is on the disk.
    Puts,
    /// In pages with existing data, until all is on the disk.
    Stores,
}

/// The I/O caused by a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Io {
    Reads,
    Writes,
    /// Each block is read, and written later.
    ReadsAndWrites,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Gets, Way::Loads, Way::Puts, Way::Stores];

    /// The plain I/O for comparison.
    pub fn io(self) -> Io {
        match self {
            Way::Gets | Way::Loads => Io::Reads,
            Way::Puts => Io::Writes,
            Way::Stores => Io::ReadsAndWrites,
        }
    }
}

/// Passes through the data by round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Passes {
    pub way: Way,
    pub seconds_each: Vec<f64>,
    /// Bytes read from and written to the disk in the last round.
    pub disk_read_bytes: u64,
    pub disk_written_bytes: u64,
}

/// The same by plain I/O.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plain {
    pub io: Io,
    pub depth: usize,
    pub seconds_each: Vec<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub passes: Vec<Passes>,
    pub plain: Vec<Plain>,
    pub plain_is_direct: bool,
}

pub fn run(rank: &Rank, spec: &Spec) -> Found {
    let mut plain_file = PlainFile::new(rank.storage_dir(), spec.data_bytes, Buffers::LargePages);
    let mut found = Found { passes: Vec::new(), plain: Vec::new(), plain_is_direct: plain_file.is_direct };
    put(rank, spec);
    let ways = Way::ALL.len() as u64 + 3 * DEPTHS.len() as u64;
    let bar = progress::bar(true, "streams", u64::from(spec.repeat) * ways);
    for way in Way::ALL {
        let (seconds_each, disk_read_bytes, disk_written_bytes) = (Vec::new(), 0, 0);
        found.passes.push(Passes { way, seconds_each, disk_read_bytes, disk_written_bytes });
    }
    for io in [Io::Reads, Io::Writes, Io::ReadsAndWrites] {
        found.plain.extend(DEPTHS.map(|depth| Plain { io, depth, seconds_each: Vec::new() }));
    }
    for _ in 0..spec.repeat {
        for passes in &mut found.passes {
            for plain in found.plain.iter_mut().filter(|plain| is_first_of(passes.way, plain.io)) {
                plain.measure(&mut plain_file, spec);
                bar.inc(1);
            }
            passes.measure(rank, spec);
            bar.inc(1);
        }
    }
    found
}

/// Whether this is the first way compared with this plain I/O.
fn is_first_of(way: Way, io: Io) -> bool {
    Way::ALL.into_iter().find(|way| way.io() == io) == Some(way)
}

impl Passes {
    fn measure(&mut self, rank: &Rank, spec: &Spec) {
        rank.empty_pool();
        let [read, written] = disk_bytes();
        let start = Instant::now();
        match self.way {
            Way::Gets => get(rank, spec),
            Way::Loads => load(rank, spec),
            Way::Puts => put(rank, spec),
            Way::Stores => store(rank, spec),
        }
        self.seconds_each.push(start.elapsed().as_secs_f64());
        let [read_now, written_now] = disk_bytes();
        (self.disk_read_bytes, self.disk_written_bytes) = (read_now - read, written_now - written);
    }
}

impl Plain {
    fn measure(&mut self, file: &mut PlainFile, spec: &Spec) {
        let all = |is_write| blocks(is_write, 0, spec.data_bytes);
        let seconds = match self.io {
            Io::Reads => file.at_depth(self.depth, all(false)),
            Io::Writes => file.at_depth(self.depth, all(true)),
            Io::ReadsAndWrites => file.at_depth(self.depth, reads_and_writes(spec).into_iter()),
        };
        self.seconds_each.push(seconds.unwrap_or_else(|error| fail(format!("plain I/O: {error}"))));
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
