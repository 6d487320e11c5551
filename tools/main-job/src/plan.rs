//! The data, the memory, and the orders for each process.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The unit of reads, equal to vgasnet's default page size.
pub const BLOCK_BYTES: u64 = 4 << 20;

/// Memory of a rank outside its pool: I/O blocks (a 16th of the pool) and the program itself, about 8M.
const PROGRAM_BYTES: u64 = 12 << 20;

/// A way to reach the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A segment of vgasnet.
    Vgasnet,
    /// A file mapped and paged by the kernel.
    Mmap,
    /// A file read through the page cache.
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

/// Orders to a process, passed as JSON on its command line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Orders {
    pub way: Way,
    /// The input file for vgasnet's ranks; for the other ways a copy not in the page cache.
    pub file: PathBuf,
    pub data_bytes: u64,
    /// Descriptor of a file with the checksums of the blocks.
    pub sums_fd: i32,
    /// The cgroup for the process to enter, if this machine allows creating one.
    pub cgroup: Option<PathBuf>,
    pub processes: u32,
    /// Index of the process, for processes other than ranks.
    pub me: u32,
    pub seed: u64,
    /// Descriptor of the file for the first rank's report.
    pub report_fd: i32,
}

impl Orders {
    pub fn blocks(&self) -> u64 {
        self.data_bytes.div_ceil(BLOCK_BYTES)
    }

    pub fn block_bytes(&self, block: u64) -> usize {
        BLOCK_BYTES.min(self.data_bytes - block * BLOCK_BYTES) as usize
    }

    /// All blocks, in an order specific to process `me`.
    pub fn order(&self, me: u32) -> Vec<u64> {
        let mut blocks: Vec<u64> = (0..self.blocks()).collect();
        fastrand::Rng::with_seed(self.seed.rotate_left(17) ^ u64::from(me)).shuffle(&mut blocks);
        blocks
    }
}

/// The memory of `processes` processes with pools of `pool_bytes`.
pub fn memory_bytes(processes: u32, pool_bytes: u64) -> u64 {
    u64::from(processes) * (pool_bytes + pool_bytes / 16 + PROGRAM_BYTES)
}

/// The checksums of a file's blocks.
pub struct Sums(Vec<u64>);

impl Sums {
    /// Reads the whole file and calls `step` with the size of each block.
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

    /// The checksums stored by [`Sums::write`] in a file with this inherited descriptor.
    pub fn inherited(descriptor: i32) -> io::Result<Sums> {
        let bytes = std::fs::read(format!("/proc/self/fd/{descriptor}"))?;
        Ok(Sums(bytes.chunks_exact(8).map(|sum| u64::from_le_bytes(sum.try_into().expect("8 bytes"))).collect()))
    }

    /// Whether `bytes` have the checksum of `block`.
    pub fn is_same(&self, block: u64, bytes: &[u8]) -> bool {
        self.0.get(block as usize) == Some(&xxh3_64(bytes))
    }
}

/// The result of one process, or of all processes of a way together.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// From the common start of the reads to the end of the last one.
    pub seconds: f64,
    /// The time for putting the data into the segments.
    pub fill_seconds: f64,
    /// Sum over all processes.
    pub read_bytes: u64,
    pub disk_bytes: u64,
    /// Bytes found by ranks in their own pools.
    pub own_pool_bytes: u64,
}
