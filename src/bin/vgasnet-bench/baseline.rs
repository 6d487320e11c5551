//! What is compared with: plain reads of a file, and copies in memory.

use crate::memory::Memory;
use crate::plan::BLOCK_BYTES;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;
use vgasnet::error::UserError;
use vgasnet::storage::{self, BackingFile};

const BLOCK: usize = BLOCK_BYTES as usize;

/// As many buffers take turns. A single one would stay in the processor's cache, which speeds up a disk that copies.
const BUFFERS: usize = 16;

/// How many copies one measurement makes.
const COPIES: usize = 64;

/// A file of its own that is read in blocks with plain system calls.
pub struct PlainFile {
    file: File,
    size_bytes: u64,
    pub is_direct: bool,
    memory: Memory,
}

impl PlainFile {
    /// Writes a file of `data_bytes` in whole blocks of the disk, since a disk is not asked for what was never written.
    pub fn new(dir: &Path, data_bytes: u64) -> Result<PlainFile, UserError> {
        let size_bytes = data_bytes.next_multiple_of(storage::BLOCK_BYTES as u64);
        let backing = BackingFile::create(dir, size_bytes)?;
        let failed = |error: io::Error| UserError::new(format!("a file in {}: {error}", dir.display()));
        let file = File::from(backing.as_fd().try_clone_to_owned().map_err(failed)?);
        let memory = Memory::new(BUFFERS * BLOCK);
        let mut plain = PlainFile { file, size_bytes, is_direct: backing.is_direct(), memory };
        plain.each_block(|file, bytes, offset| file.write_all_at(bytes, offset)).map_err(failed)?;
        Ok(plain)
    }

    /// Reads it once; seconds.
    pub fn read(&mut self) -> io::Result<f64> {
        let start = Instant::now();
        self.each_block(|file, bytes, offset| file.read_exact_at(bytes, offset))?;
        Ok(start.elapsed().as_secs_f64())
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn each_block(&mut self, mut act: impl FnMut(&File, &mut [u8], u64) -> io::Result<()>) -> io::Result<()> {
        let mut buffers = (0..BUFFERS).cycle();
        for offset in (0..self.size_bytes).step_by(BLOCK) {
            let buffer = buffers.next().unwrap_or(0) * BLOCK;
            let len_bytes = BLOCK_BYTES.min(self.size_bytes - offset) as usize;
            act(&self.file, &mut self.memory.bytes()[buffer..buffer + len_bytes], offset)?;
        }
        Ok(())
    }
}

/// Copies of 4 MiB from as many sources in turn as [`Copies::new`] was told, always to the same destination.
pub struct Copies {
    sources: Memory,
    count: usize,
}

impl Copies {
    pub fn new(count: usize) -> Copies {
        Copies { sources: Memory::new(count * BLOCK), count }
    }

    /// Seconds for one copy.
    pub fn run(&mut self, to: &mut [u8]) -> f64 {
        let start = Instant::now();
        for copy in 0..COPIES {
            let from = copy % self.count * BLOCK;
            black_box(&mut *to).copy_from_slice(&self.sources.bytes()[from..from + BLOCK]);
        }
        start.elapsed().as_secs_f64() / COPIES as f64
    }
}

/// Seconds for one copy of 4 MiB with the source not in the nearest caches.
pub fn copy_seconds(to: &mut [u8]) -> f64 {
    Copies::new(BUFFERS).run(to)
}

/// The middle one; of an even number the lower.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len().max(1) - 1) / 2).copied().unwrap_or(f64::NAN)
}
