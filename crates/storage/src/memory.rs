//! A storage in memory, for simulations. The order, the time and the faults of operations are drawn from a seed.

use super::faults::{Faults, SplitMix};
use super::named::Files;
use super::operation::{FileSlot, Progress, REQUEST_BYTES_MAX};
use super::{BLOCK_BYTES, Busy, IoDirection, IoOperation, NamedFile, Storage};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Default maximum number of polls an operation takes; the minimum is 1.
const POLLS_MAX: u64 = 4;

/// Fills the memory of a read until it completes, and for good if it fails, to expose a use of the memory before
/// completion.
const POISON: u8 = 0xDB;

/// A sparse backing file in memory, and named files. Only the seed and the calls determine the order of completions and
/// the number of polls. Bytes move when an operation completes. Faults of operations on the backing file are set here,
/// faults of a named file by its [`MemoryFile`](super::MemoryFile).
pub struct MemoryStorage {
    blocks: BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>,
    size_bytes: u64,
    depth: usize,
    pending: Vec<Pending>,
    random: SplitMix,
    polls_max: u64,
    faults: Faults,
    files: Files,
}

struct Pending {
    operation: IoOperation,
    /// Further polls until it completes.
    polls_left: u64,
    fails: bool,
}

impl MemoryStorage {
    /// A file of `size_bytes` zeros (whole blocks) with at most `depth` operations in flight.
    ///
    /// # Panics
    /// If `depth` is 0.
    pub fn new(size_bytes: u64, depth: usize, seed: u64) -> MemoryStorage {
        assert!(depth > 0, "a storage without operations in flight does nothing");
        MemoryStorage {
            blocks: BTreeMap::new(),
            size_bytes,
            depth,
            pending: Vec::with_capacity(depth),
            random: SplitMix(seed),
            polls_max: POLLS_MAX,
            faults: Faults::default(),
            files: Files::default(),
        }
    }

    /// From now on operations take up to `polls_max` polls.
    ///
    /// # Panics
    /// If `polls_max` is 0.
    pub fn slow_down(&mut self, polls_max: u64) {
        assert!(polls_max > 0, "an operation takes a poll");
        self.polls_max = polls_max;
    }

    /// Lets `count` more reads of the backing file pass; later ones fail with `EIO`.
    pub fn fail_reads_after(&mut self, count: u64) {
        self.faults.fail_reads_after(count);
    }

    /// Lets `count` more writes of the backing file pass; later ones fail with `EIO` after writing some of their
    /// blocks.
    pub fn fail_writes_after(&mut self, count: u64) {
        self.faults.fail_writes_after(count);
    }

    /// From now on operations touching a byte of `offsets_bytes` in the backing file fail with `EIO`, as with a bad
    /// sector.
    pub fn fail_at(&mut self, offsets_bytes: Range<u64>) {
        self.faults.fail_at(offsets_bytes);
    }

    /// From now on each operation on the backing file fails with `EIO` with probability 1 in `one_in`, drawn from the
    /// seed.
    ///
    /// # Panics
    /// If `one_in` is 0.
    pub fn fail_one_in(&mut self, one_in: u64) {
        self.faults.fail_one_in(one_in);
    }

    /// Ends all faults of the backing file. Operations in flight keep the outcome already drawn.
    pub fn heal(&mut self) {
        self.faults.heal();
    }

    /// Moves the bytes of an operation at its completion.
    fn finish(&mut self, operation: &IoOperation, fails: bool) -> io::Result<()> {
        if let Some(file) = self.files.get(operation.file).cloned() {
            return self.finish_named(&file, operation, fails);
        }
        let blocks = (operation.len_bytes / BLOCK_BYTES) as u64;
        match (operation.direction, fails) {
            (IoDirection::Read, true) => {}
            (IoDirection::Read, false) => self.copy_out(operation),
            (IoDirection::Write, true) => {
                let written = self.random.below(blocks + 1);
                self.copy_in(operation, written);
            }
            (IoDirection::Write, false) => self.copy_in(operation, blocks),
        }
        if fails { Err(io::Error::from_raw_os_error(libc::EIO)) } else { Ok(()) }
    }

    fn finish_named(&mut self, file: &NamedFile, operation: &IoOperation, fails: bool) -> io::Result<()> {
        let mut progress = Progress::new(*operation, self.size_bytes);
        if !fails {
            // SAFETY: the memory is valid for the direction of the operation and left alone until `poll` returns the
            // token, which happens later.
            return unsafe { file.finish(&mut progress, REQUEST_BYTES_MAX) };
        }
        let written = self.random.below((operation.len_bytes / BLOCK_BYTES) as u64 + 1) as usize;
        if operation.direction == IoDirection::Write && written > 0 {
            // SAFETY: as above. A failing write may write any number of its blocks.
            let _ = unsafe { file.transfer(IoDirection::Write, &progress.request(written * BLOCK_BYTES)) };
        }
        Err(io::Error::from_raw_os_error(libc::EIO))
    }

    fn copy_out(&self, operation: &IoOperation) {
        for (index, memory) in blocks_of(operation) {
            let source = self.blocks.get(&index).map_or(&[0; BLOCK_BYTES], |block| &**block);
            // SAFETY: `memory` is a block of the operation's memory. It is valid for writes and left alone until `poll`
            // returns the token, which happens later.
            unsafe { memory.copy_from_nonoverlapping(source.as_ptr(), BLOCK_BYTES) };
        }
    }

    fn copy_in(&mut self, operation: &IoOperation, count: u64) {
        for (index, memory) in blocks_of(operation).take(count as usize) {
            let block = self.blocks.entry(index).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            // SAFETY: `memory` is a block of the operation's memory. It is valid for reads and not written until `poll`
            // returns the token, which happens later.
            unsafe { block.as_mut_ptr().copy_from_nonoverlapping(memory, BLOCK_BYTES) };
        }
    }
}

/// The blocks of an operation: the index in the file and the memory of each.
fn blocks_of(operation: &IoOperation) -> impl Iterator<Item = (u64, *mut u8)> + use<> {
    let (first, memory) = (operation.offset_bytes / BLOCK_BYTES as u64, operation.memory);
    (0..operation.len_bytes / BLOCK_BYTES)
        .map(move |index| (first + index as u64, memory.wrapping_add(index * BLOCK_BYTES)))
}

impl Storage for MemoryStorage {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        operation.check(self.size_bytes);
        if self.pending.len() == self.depth {
            return Err(Busy);
        }
        let fails = match self.files.get(operation.file) {
            Some(file) => file.memory().is_some_and(|memory| memory.strike(&operation)),
            None => self.faults.strike(&operation, &mut self.random),
        };
        let polls_left = self.random.below(self.polls_max);
        self.pending.push(Pending { operation, polls_left, fails });
        if operation.direction == IoDirection::Read {
            // SAFETY: the memory is valid for writes of the whole length, and left alone from this call on.
            unsafe { operation.memory.write_bytes(POISON, operation.len_bytes) };
        }
        Ok(())
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let (mut due, waiting): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(|pending| pending.polls_left == 0);
        self.pending = waiting;
        for pending in &mut self.pending {
            pending.polls_left -= 1;
        }
        while !due.is_empty() {
            let chosen = self.random.below(due.len() as u64) as usize;
            let Pending { operation, fails, .. } = due.swap_remove(chosen);
            let result = self.finish(&operation, fails);
            sink(operation.token, result);
        }
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }

    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot {
        self.files.add(file)
    }

    fn remove_file(&mut self, slot: FileSlot) {
        let is_idle = self.pending.iter().all(|pending| pending.operation.file != slot);
        assert!(is_idle, "{slot:?} is removed with operations in flight");
        self.files.remove(slot);
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
