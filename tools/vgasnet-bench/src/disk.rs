//! Plain reads and writes of a file, with direct I/O if the directory supports it.

use crate::plan::BLOCK_BYTES;
use crate::rank::fail;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;
use vgasnet_measuring::memory::Memory;
use vgasnet_storage::{
    self as storage, BackingFile, Busy, FileSlot, IoDirection, IoOperation, RingStorage, Storage, ThreadStorage,
};

const BLOCK: usize = BLOCK_BYTES as usize;

/// Buffers used round robin. A single buffer would stay in the processor's cache, which would speed up a disk that
/// copies.
const BUFFERS: usize = 16;

/// The memory of the buffers. A disk may be slow with scattered buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffers {
    /// Shared memory like a pool's, in scattered physical pages.
    SmallPages,
    /// Contiguous memory, if the kernel has large pages.
    LargePages,
}

/// A private file, read and written in blocks.
pub struct PlainFile {
    backing: BackingFile,
    file: File,
    /// The same file with many operations in flight. Declared before the memory, so it is dropped first.
    storage: Box<dyn Storage>,
    pub is_direct: bool,
    memory: Memory,
    room: Room,
}

/// The buffers of a file. Each serves one operation at a time.
#[derive(Clone, Copy, Debug)]
struct Room {
    buffers: usize,
    buffer_bytes: usize,
}

/// Blocks, as many as a rank has in flight.
const BLOCKS: Room = Room { buffers: BUFFERS, buffer_bytes: BLOCK };

/// One read or write of at most one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub is_write: bool,
    pub offset_bytes: u64,
    pub len_bytes: usize,
}

impl PlainFile {
    /// Maximum steps in flight in [`PlainFile::side_by_side`], equal to a rank's.
    pub const IN_FLIGHT_MAX: usize = BUFFERS;

    /// Writes a file of `data_bytes` in whole disk blocks, since reads of unwritten blocks do not reach the disk. Ends
    /// the job on failure.
    pub fn new(dir: &Path, data_bytes: u64, buffers: Buffers) -> PlainFile {
        let size_bytes = data_bytes.next_multiple_of(storage::BLOCK_BYTES as u64);
        let failed = |error: io::Error| -> ! { fail(format!("a file in {}: {error}", dir.display())) };
        let backing = BackingFile::create(dir, size_bytes).unwrap_or_else(|error| fail(error.to_string()));
        let mut plain = PlainFile::on(backing, buffers, BLOCKS).unwrap_or_else(|error| failed(error));
        plain.one_at_a_time(blocks(true, 0, size_bytes)).unwrap_or_else(|error| failed(error));
        plain
    }

    /// The same file through other buffers. Ends the job on failure.
    pub fn again(&self, buffers: Buffers) -> PlainFile {
        self.again_with(buffers, BLOCKS)
    }

    /// The same file, for steps of at most `step_bytes` with at most `in_flight_max` in flight.
    pub fn for_small_steps(&self, in_flight_max: usize, step_bytes: usize) -> PlainFile {
        self.again_with(Buffers::SmallPages, Room { buffers: in_flight_max, buffer_bytes: step_bytes })
    }

    fn again_with(&self, buffers: Buffers, room: Room) -> PlainFile {
        let again = self.backing.try_clone().and_then(|backing| PlainFile::on(backing, buffers, room));
        again.unwrap_or_else(|error| fail(format!("a second descriptor: {error}")))
    }

    fn on(backing: BackingFile, buffers: Buffers, room: Room) -> io::Result<PlainFile> {
        let memory = match buffers {
            Buffers::SmallPages => Memory::shared(room.buffers * room.buffer_bytes),
            Buffers::LargePages => Memory::allocated(room.buffers * room.buffer_bytes, true),
        };
        Ok(PlainFile {
            file: File::from(backing.as_fd().try_clone_to_owned()?),
            storage: storage_on(backing.try_clone()?, memory.start(), room)?,
            is_direct: backing.is_direct(),
            backing,
            memory,
            room,
        })
    }

    /// Reads the whole file. Returns seconds.
    pub fn read(&mut self) -> f64 {
        self.read_range(0, self.size_bytes())
    }

    /// Reads a part of the file. Returns seconds. Ends the job on failure.
    pub fn read_range(&mut self, start_bytes: u64, len_bytes: u64) -> f64 {
        let read = self.one_at_a_time(blocks(false, start_bytes, len_bytes));
        read.unwrap_or_else(|error| fail(format!("reading plainly: {error}")))
    }

    pub fn size_bytes(&self) -> u64 {
        self.backing.size_bytes()
    }

    fn buffer(&self, index: usize) -> *mut u8 {
        self.memory.start().wrapping_add(index * self.room.buffer_bytes)
    }

    /// Does the steps one after another, with one system call each. Returns seconds.
    pub fn one_at_a_time(&mut self, steps: impl Iterator<Item = Step>) -> io::Result<f64> {
        let start = Instant::now();
        for (step, buffer) in steps.zip((0..self.room.buffers).cycle()) {
            assert!(step.len_bytes <= self.room.buffer_bytes, "{step:?} is more than a buffer");
            // SAFETY: the buffer has this length, is initialised, and between calls has no other user.
            let bytes = unsafe { std::slice::from_raw_parts_mut(self.buffer(buffer), step.len_bytes) };
            if step.is_write {
                self.file.write_all_at(bytes, step.offset_bytes)?;
            } else {
                self.file.read_exact_at(bytes, step.offset_bytes)?;
            }
        }
        Ok(start.elapsed().as_secs_f64())
    }

    /// Does the steps with as many in flight as a rank may have. Returns seconds. A step waits for another at the same
    /// offset.
    pub fn side_by_side(&mut self, steps: impl Iterator<Item = Step>) -> io::Result<f64> {
        self.at_depth(PlainFile::IN_FLIGHT_MAX, steps)
    }

    /// The same with at most `depth` in flight.
    pub fn at_depth(&mut self, depth: usize, steps: impl Iterator<Item = Step>) -> io::Result<f64> {
        let start = Instant::now();
        let mut steps = steps.peekable();
        let buffers = self.room.buffers;
        let (mut next, mut in_flight): (usize, Vec<Option<u64>>) = (0, vec![None; buffers]);
        while steps.peek().is_some() || self.storage.in_flight() > 0 {
            while let Some(step) = steps.peek() {
                let is_taken = in_flight.contains(&Some(step.offset_bytes));
                let has_room = !is_taken && in_flight.iter().flatten().count() < depth;
                // Buffers are used round robin.
                let free = (0..buffers).map(|at| (next + at) % buffers).find(|at| in_flight[*at].is_none());
                let Some(buffer) = free.filter(|_| has_room) else { break };
                next = buffer + 1;
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

    /// Waits until the written data is on the disk. Returns seconds.
    pub fn sync(&self) -> io::Result<f64> {
        let start = Instant::now();
        self.file.sync_all()?;
        Ok(start.elapsed().as_secs_f64())
    }

    fn start(&mut self, step: Step, buffer: usize) -> io::Result<()> {
        assert!(buffer < self.room.buffers && step.len_bytes <= self.room.buffer_bytes, "{step:?} in buffer {buffer}");
        let direction = if step.is_write { IoDirection::Write } else { IoDirection::Read };
        let (offset_bytes, len_bytes) = (step.offset_bytes, step.len_bytes);
        let (memory, token) = (self.buffer(buffer), buffer as u64);
        let operation =
            IoOperation { file: FileSlot::BACKING, direction, offset_bytes, memory, len_bytes, token, is_urgent: true };
        // SAFETY: the buffer has this length and outlives the storage, which is dropped first. The caller gives a
        // buffer to only one operation at a time.
        unsafe { self.storage.start(operation) }.map_err(|Busy| io::ErrorKind::WouldBlock.into())
    }

    /// Sleeps until an operation completes.
    fn sleep(&self) -> io::Result<()> {
        let Some(doorbell) = self.storage.doorbell() else { return Ok(()) };
        match poll(&mut [PollFd::new(doorbell, PollFlags::POLLIN)], PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn storage_on(backing: BackingFile, memory: *mut u8, room: Room) -> io::Result<Box<dyn Storage>> {
    let range = (memory, room.buffers * room.buffer_bytes);
    match RingStorage::new(backing, room.buffers) {
        Ok(mut ring) => {
            // A kernel that refuses the registration refuses it to ranks, too, and they print a line about it.
            ring.register(&[range], room.buffer_bytes, |_| ());
            Ok(Box::new(ring))
        }
        Err(refused) => Ok(Box::new(ThreadStorage::new(refused.file, room.buffers)?)),
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
