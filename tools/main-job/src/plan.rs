//! The data, the memory, and the orders that each process gets.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The unit of reads: a page of vgasnet as it is by default.
pub const BLOCK_BYTES: u64 = 4 << 20;

/// The memory of a rank besides its pool: blocks (a 16th of the pool) and the program itself, of which 8M are used.
const PROGRAM_BYTES: u64 = 12 << 20;

/// A way to reach the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A segment of vgasnet.
    Vgasnet,
    /// A file that is mapped, and paged by the kernel.
    Mmap,
    /// A file that is read through the page cache.
    Read,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Vgasnet, Way::Mmap, Way::Read];

    pub fn name(self) -> &'static str {
        match self {
            Way::Vgasnet => "vgasnet",
            Way::Mmap => "mmap",
            Way::Read => "read()",
        }
    }
}

/// Orders to a process, as JSON on its command line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    pub way: Way,
    /// The file: the input of vgasnet's ranks, and for the other ways a copy that no page cache has.
    pub file: PathBuf,
    pub data_bytes: u64,
    /// A descriptor of the checksums of the blocks.
    pub sums_fd: i32,
    /// The cgroup that the process enters, if this machine lets us make one.
    pub cgroup: Option<PathBuf>,
    pub processes: u32,
    /// The place of a process that is no rank.
    pub me: u32,
    pub seed: u64,
    /// A descriptor for the report of the first rank.
    pub report_fd: i32,
}

impl Orders {
    pub fn blocks(&self) -> u64 {
        self.data_bytes.div_ceil(BLOCK_BYTES)
    }

    pub fn block_bytes(&self, block: u64) -> usize {
        BLOCK_BYTES.min(self.data_bytes - block * BLOCK_BYTES) as usize
    }

    /// All blocks, in an order of process `me`'s own.
    pub fn order(&self, me: u32) -> Vec<u64> {
        let mut blocks: Vec<u64> = (0..self.blocks()).collect();
        fastrand::Rng::with_seed(self.seed.rotate_left(17) ^ u64::from(me)).shuffle(&mut blocks);
        blocks
    }
}

/// The memory that `processes` with pools of `pool_bytes` take.
pub fn memory_bytes(processes: u32, pool_bytes: u64) -> u64 {
    u64::from(processes) * (pool_bytes + pool_bytes / 16 + PROGRAM_BYTES)
}

/// The checksums of a file's blocks.
pub struct Sums(Vec<u64>);

impl Sums {
    /// Reads the whole file, and tells `step` of each block's bytes.
    pub fn of(path: &Path, mut step: impl FnMut(u64)) -> io::Result<(Sums, u64)> {
        let file = File::open(path)?;
        let (mut sums, mut size_bytes) = (Vec::new(), 0);
        let mut block = Vec::with_capacity(BLOCK_BYTES as usize);
        loop {
            block.clear();
            (&file).take(BLOCK_BYTES).read_to_end(&mut block)?;
            if block.is_empty() {
                return Ok((Sums(sums), size_bytes));
            }
            size_bytes += block.len() as u64;
            sums.push(xxh3_64(&block));
            step(block.len() as u64);
        }
    }

    pub fn write(&self, file: &File) -> io::Result<()> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        file.write_all_at(&bytes, 0)
    }

    /// The checksums that [`Sums::write`] left in the file with this descriptor, which this process has inherited.
    pub fn inherited(descriptor: i32) -> io::Result<Sums> {
        let bytes = std::fs::read(format!("/proc/self/fd/{descriptor}"))?;
        Ok(Sums(bytes.chunks_exact(8).map(|sum| u64::from_le_bytes(sum.try_into().expect("8 bytes"))).collect()))
    }

    /// Whether these are the bytes of `block`.
    pub fn is_same(&self, block: u64, bytes: &[u8]) -> bool {
        self.0.get(block as usize) == Some(&xxh3_64(bytes))
    }
}

/// What one process, or all of a way together, have done.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// From the moment when all began to read until the last had read all.
    pub seconds: f64,
    /// How long putting the data into the segments took.
    pub fill_seconds: f64,
    /// Of all processes.
    pub read_bytes: u64,
    pub disk_bytes: u64,
    /// Bytes that ranks found in their own pools.
    pub own_pool_bytes: u64,
}
