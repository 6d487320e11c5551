//! Data with known bytes: a pattern generated from a seed, or the contents of a file.

use crate::Stop;
use crate::plan::{BLOCK_BYTES, Spec};
use crate::rank::{Rank, block_buffer, fail, words};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Display, Path};
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// The data in the segment of rank 0.
pub enum Data<'a> {
    Pattern { seed: u64 },
    File { file: File, path: Display<'a>, sums: Vec<u64> },
}

/// A file, and a descriptor of a file in memory with the checksum of each of its blocks.
pub struct Input<'a> {
    pub path: &'a Path,
    pub sums_fd: i32,
}

/// The checked bytes, and the time for their checksums.
#[derive(Default)]
pub struct Checked {
    pub bytes: u64,
    pub seconds: f64,
}

impl<'a> Data<'a> {
    /// Opens the input, or else generates a pattern. Ends the job if the file cannot be read.
    pub fn open(seed: u64, input: Option<Input<'a>>) -> Data<'a> {
        let Some(Input { path, sums_fd }) = input else { return Data::Pattern { seed } };
        let sums = std::fs::read(format!("/proc/self/fd/{sums_fd}"));
        let opened = sums.and_then(|sums| Ok((sums, File::open(path)?)));
        let path = path.display();
        let (sums, file) = opened.unwrap_or_else(|error| fail(format!("{path}: {error}")));
        Data::File { file, path, sums: words(&sums).collect() }
    }

    /// Fills `bytes` with the start of `block`.
    fn produce(&self, block: u64, bytes: &mut [u8]) {
        match self {
            Data::Pattern { seed } => {
                let key = pattern_key(*seed, block);
                for (index, chunk) in (0u64..).zip(bytes.chunks_mut(8)) {
                    chunk.copy_from_slice(&pattern_word(key, index)[..chunk.len()]);
                }
            }
            Data::File { file, path, .. } => {
                if let Err(error) = file.read_exact_at(bytes, block * BLOCK_BYTES) {
                    fail(format!("{path} at offset {}: {error}", block * BLOCK_BYTES));
                }
            }
        }
    }

    /// Puts this rank's share of the blocks into rank 0's segment.
    pub fn fill(&self, rank: &Rank, spec: &Spec, mut step: impl FnMut()) {
        let mut buffer = block_buffer();
        for block in (0..spec.blocks()).filter(|block| block % u64::from(rank.ranks) == u64::from(rank.me)) {
            let bytes = &mut buffer[..spec.block_bytes(block)];
            self.produce(block, bytes);
            rank.put(0, block * BLOCK_BYTES, bytes);
            step();
        }
    }

    /// Checks bytes read from `block`: three words of a pattern, which takes negligible time, or the checksum of a
    /// block of a file. Ends the job if they differ.
    pub fn check(&self, block: u64, bytes: &[u8], checked: &mut Checked) {
        match self {
            Data::Pattern { seed } => {
                let key = pattern_key(*seed, block);
                let words = bytes.len() / 8;
                for index in [0, words / 3, words.saturating_sub(1)].into_iter().filter(|_| words > 0) {
                    let expected = pattern_word(key, index as u64);
                    if bytes[index * 8..][..8] != expected {
                        let offset = block * BLOCK_BYTES + index as u64 * 8;
                        fail(format!("the 8 bytes at offset {offset} of rank 0's segment are not what was put there"));
                    }
                }
                checked.bytes += words.min(3) as u64 * 8;
            }
            Data::File { sums, .. } => {
                let start = Instant::now();
                let is_same = sums.get(block as usize) == Some(&xxh3_64(bytes));
                checked.seconds += start.elapsed().as_secs_f64();
                checked.bytes += bytes.len() as u64;
                if !is_same {
                    self.fail_at_difference(block, bytes);
                }
            }
        }
    }

    fn fail_at_difference(&self, block: u64, bytes: &[u8]) -> ! {
        let Data::File { path, .. } = self else { unreachable!("only files have checksums") };
        let mut expected = vec![0; bytes.len()];
        self.produce(block, &mut expected);
        let start = block * BLOCK_BYTES;
        match bytes.iter().zip(&expected).position(|(read, expected)| read != expected) {
            Some(at) => fail(format!(
                "rank 0's segment differs from {path} at offset {}: read {:#04x}, the file has {:#04x}",
                start + at as u64,
                bytes[at],
                expected[at],
            )),
            None => fail(format!(
                "{path} was changed during the run: its {} bytes at offset {start} had another checksum before",
                bytes.len()
            )),
        }
    }
}

fn pattern_key(seed: u64, block: u64) -> u64 {
    xxh3_64(&[seed.to_le_bytes(), block.to_le_bytes()].concat())
}

/// Differs from place to place within one run.
fn pattern_word(key: u64, index: u64) -> [u8; 8] {
    key.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_le_bytes()
}

/// The checksum of each block of a file, in a memory file inherited by the ranks, and the size of the file. So the
/// checksums never pass through the measured library.
pub fn checksums(path: &Path) -> Result<(OwnedFd, u64), Stop> {
    let failed = |error: io::Error| Stop::usage(format!("--input {}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Stop::usage(format!("--input {} is not a file", path.display())));
    }
    // Without close-on-exec, so the ranks inherit the file.
    let memory = memfd_create("vgasnet-bench-sums", MFdFlags::empty()).map_err(|error| failed(error.into()))?;
    let mut memory = File::from(memory);
    let mut size_bytes = 0;
    let mut block = Vec::with_capacity(BLOCK_BYTES as usize);
    loop {
        block.clear();
        (&file).take(BLOCK_BYTES).read_to_end(&mut block).map_err(failed)?;
        if block.is_empty() {
            return Ok((memory.into(), size_bytes));
        }
        size_bytes += block.len() as u64;
        memory.write_all(&xxh3_64(&block).to_le_bytes()).map_err(failed)?;
    }
}
