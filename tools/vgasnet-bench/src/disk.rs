//! Plain reads and writes of a file, past the page cache where the directory allows that.

use crate::memory::{Allocated, Memory};
use crate::plan::BLOCK_BYTES;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;
use vgasnet::error::UserError;
use vgasnet::storage::{self, BackingFile, DEPTH_DEFAULT, RingStorage, Storage, ThreadStorage};

const BLOCK: usize = BLOCK_BYTES as usize;

/// As many buffers take turns. A single one would stay in the processor's cache, which speeds up a disk that copies.
const BUFFERS: usize = DEPTH_DEFAULT;

/// What the memory of the buffers is like. A disk may be slow with buffers that lie scattered, so it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffers {
    /// As a pool's: where chance puts each page of the processor.
    SmallPages,
    /// In one piece, as far as the kernel has large pages.
    LargePages,
}

/// The memory of the buffers.
enum Memories {
    Small(Memory),
    Large(Allocated),
}

/// A file of its own that is read and written in blocks.
pub struct PlainFile {
    backing: BackingFile,
    file: File,
    /// The same file, for as many operations in flight as a rank has.
    storage: Box<dyn Storage>,
    pub is_direct: bool,
    memory: Memories,
}

/// One read or write: at most a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub is_write: bool,
    pub offset_bytes: u64,
    pub len_bytes: usize,
}

impl PlainFile {
    /// How many steps [`PlainFile::side_by_side`] has in flight.
    pub const IN_FLIGHT_MAX: usize = BUFFERS;

    /// Writes a file of `data_bytes` in whole blocks of the disk, since a disk is not asked for what was never written.
    pub fn new(dir: &Path, data_bytes: u64, buffers: Buffers) -> Result<PlainFile, UserError> {
        let size_bytes = data_bytes.next_multiple_of(storage::BLOCK_BYTES as u64);
        let failed = |error: io::Error| UserError::new(format!("a file in {}: {error}", dir.display()));
        let mut plain = PlainFile::on(BackingFile::create(dir, size_bytes)?, buffers).map_err(failed)?;
        plain.one_at_a_time(blocks(true, 0, size_bytes)).map_err(failed)?;
        Ok(plain)
    }

    /// The same file through other buffers.
    pub fn again(&self, buffers: Buffers) -> io::Result<PlainFile> {
        PlainFile::on(self.backing.try_clone()?, buffers)
    }

    fn on(backing: BackingFile, buffers: Buffers) -> io::Result<PlainFile> {
        let memory = match buffers {
            Buffers::SmallPages => Memories::Small(Memory::new(BUFFERS * BLOCK)),
            Buffers::LargePages => Memories::Large(Allocated::new(BUFFERS * BLOCK, true)),
        };
        Ok(PlainFile {
            file: File::from(backing.as_fd().try_clone_to_owned()?),
            storage: storage_on(backing.try_clone()?, memory.buffer(0))?,
            is_direct: backing.is_direct(),
            backing,
            memory,
        })
    }

    /// Reads it once; seconds.
    pub fn read(&mut self) -> io::Result<f64> {
        self.one_at_a_time(blocks(false, 0, self.size_bytes()))
    }

    pub fn size_bytes(&self) -> u64 {
        self.backing.size_bytes()
    }

    /// Does the steps with a system call each; seconds.
    pub fn one_at_a_time(&mut self, steps: impl Iterator<Item = Step>) -> io::Result<f64> {
        let start = Instant::now();
        for (step, buffer) in steps.zip((0..BUFFERS).cycle()) {
            assert!(step.len_bytes <= BLOCK, "{step:?} is more than a block");
            // SAFETY: the buffer is that long, initialised, and between calls nothing else uses it.
            let bytes = unsafe { std::slice::from_raw_parts_mut(self.memory.buffer(buffer), step.len_bytes) };
            if step.is_write {
                self.file.write_all_at(bytes, step.offset_bytes)?;
            } else {
                self.file.read_exact_at(bytes, step.offset_bytes)?;
            }
        }
        Ok(start.elapsed().as_secs_f64())
    }

    /// Does the steps with as many in flight as a rank may have; seconds. A step waits for another at the same place.
    pub fn side_by_side(&mut self, steps: impl Iterator<Item = Step>) -> io::Result<f64> {
        let start = Instant::now();
        let mut steps = steps.peekable();
        let mut in_flight: [Option<u64>; BUFFERS] = [None; BUFFERS];
        while steps.peek().is_some() || self.storage.in_flight() > 0 {
            while let Some(step) = steps.peek() {
                let is_taken = in_flight.contains(&Some(step.offset_bytes));
                let Some(buffer) = in_flight.iter().position(Option::is_none).filter(|_| !is_taken) else { break };
                self.start(*step, buffer)?;
                in_flight[buffer] = Some(step.offset_bytes);
                steps.next();
            }
            self.sleep()?;
            let mut failed = Ok(());
            self.storage.poll(&mut |buffer, result| {
                in_flight[buffer as usize] = None;
                if let Err(error) = result {
                    failed = Err(error);
                }
            });
            failed?;
        }
        Ok(start.elapsed().as_secs_f64())
    }

    fn start(&mut self, step: Step, buffer: usize) -> io::Result<()> {
        assert!(buffer < BUFFERS && step.len_bytes <= BLOCK, "{step:?} in buffer {buffer}");
        let (memory, token) = (self.memory.buffer(buffer), buffer as u64);
        // SAFETY: the buffer is that long and stays mapped longer than the storage lives, which is dropped first. No other
        // operation has it: the caller gives it to one at a time.
        let started = unsafe {
            if step.is_write {
                self.storage.write(step.offset_bytes, memory, step.len_bytes, token)
            } else {
                self.storage.read(step.offset_bytes, memory, step.len_bytes, token)
            }
        };
        started.map_err(io::Error::other)
    }

    /// Until an operation is complete.
    fn sleep(&self) -> io::Result<()> {
        let Some(doorbell) = self.storage.doorbell() else { return Ok(()) };
        match poll(&mut [PollFd::new(doorbell, PollFlags::POLLIN)], PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Memories {
    fn buffer(&self, index: usize) -> *mut u8 {
        let start = match self {
            Memories::Small(memory) => memory.start(),
            Memories::Large(memory) => memory.start(),
        };
        start.wrapping_add(index * BLOCK)
    }
}

fn storage_on(backing: BackingFile, memory: *mut u8) -> io::Result<Box<dyn Storage>> {
    let range = (memory, BUFFERS * BLOCK);
    match RingStorage::new(backing, DEPTH_DEFAULT) {
        Ok(mut ring) => {
            // A kernel that refuses refuses the ranks too, and they say so.
            ring.register(&[range], BLOCK, |_| ());
            Ok(Box::new(ring))
        }
        Err(refused) => Ok(Box::new(ThreadStorage::new(refused.file, DEPTH_DEFAULT)?)),
    }
}

/// The steps through `len_bytes` bytes of a file, in order.
pub fn blocks(is_write: bool, start_bytes: u64, len_bytes: u64) -> impl Iterator<Item = Step> {
    (0..len_bytes).step_by(BLOCK).map(move |at| Step {
        is_write,
        offset_bytes: start_bytes + at,
        len_bytes: BLOCK_BYTES.min(len_bytes - at) as usize,
    })
}
