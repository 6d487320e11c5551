//! A storage in memory, for simulations: the order, the time and the faults of operations are drawn from a seed.

use super::{BLOCK_BYTES, Busy, IoDirection, IoOperation, Storage};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

/// How many polls an operation takes: from 1 to this, unless it is slowed down.
const POLLS_MAX: u64 = 4;

/// The bytes that a read leaves in the memory until it completes, and for good if it fails: they give an early look
/// away.
const POISON: u8 = 0xDB;

/// A sparse file in memory. The seed and the calls alone decide after how many polls and in which order operations
/// complete. Bytes move when an operation completes. Operations can be made to fail.
pub struct MemoryStorage {
    blocks: BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>,
    size_bytes: u64,
    depth: usize,
    pending: Vec<Pending>,
    random: SplitMix,
    polls_max: u64,
    faults: Faults,
}

struct Pending {
    operation: IoOperation,
    /// How many further polls it takes.
    polls_left: u64,
    fails: bool,
}

#[derive(Default)]
struct Faults {
    reads_until: Option<u64>,
    writes_until: Option<u64>,
    ranges: Vec<Range<u64>>,
    one_in: Option<u64>,
}

impl MemoryStorage {
    /// A file of `size_bytes` zeros (whole blocks) that takes `depth` operations at a time, from 1.
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

    /// Lets `count` more reads pass; those started after them fail with `EIO`.
    pub fn fail_reads_after(&mut self, count: u64) {
        self.faults.reads_until = Some(count);
    }

    /// Lets `count` more writes pass; those started after them fail with `EIO`, with some of their blocks written.
    pub fn fail_writes_after(&mut self, count: u64) {
        self.faults.writes_until = Some(count);
    }

    /// From now on operations that touch a byte of `offsets_bytes` fail with `EIO`, like those on a bad sector.
    pub fn fail_at(&mut self, offsets_bytes: Range<u64>) {
        self.faults.ranges.push(offsets_bytes);
    }

    /// From now on each operation fails with `EIO` with the probability 1 in `one_in`, drawn from the seed.
    ///
    /// # Panics
    /// If `one_in` is 0.
    pub fn fail_one_in(&mut self, one_in: u64) {
        assert!(one_in > 0, "a probability has a denominator");
        self.faults.one_in = Some(one_in);
    }

    /// Ends all faults. Operations in flight keep the outcome that was drawn for them.
    pub fn heal(&mut self) {
        self.faults = Faults::default();
    }

    /// Moves the bytes of an operation that completes.
    fn finish(&mut self, operation: &IoOperation, fails: bool) -> io::Result<()> {
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

    fn copy_out(&self, operation: &IoOperation) {
        for (index, memory) in blocks_of(operation) {
            let source = self.blocks.get(&index).map_or(&[0; BLOCK_BYTES], |block| &**block);
            // SAFETY: `memory` is a block of the operation's memory, which is valid for writes and left alone until
            // `poll` has handed out the token, which it does after this.
            unsafe { memory.copy_from_nonoverlapping(source.as_ptr(), BLOCK_BYTES) };
        }
    }

    fn copy_in(&mut self, operation: &IoOperation, count: u64) {
        for (index, memory) in blocks_of(operation).take(count as usize) {
            let block = self.blocks.entry(index).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            // SAFETY: `memory` is a block of the operation's memory, which is valid for reads and not written until
            // `poll` has handed out the token, which it does after this.
            unsafe { block.as_mut_ptr().copy_from_nonoverlapping(memory, BLOCK_BYTES) };
        }
    }
}

/// The operation block by block: its index in the file, its memory.
fn blocks_of(operation: &IoOperation) -> impl Iterator<Item = (u64, *mut u8)> + use<> {
    let (first, memory) = (operation.offset_bytes / BLOCK_BYTES as u64, operation.memory);
    (0..operation.len_bytes / BLOCK_BYTES)
        .map(move |index| (first + index as u64, memory.wrapping_add(index * BLOCK_BYTES)))
}

impl Faults {
    /// Whether this operation, started now, fails.
    fn strike(&mut self, operation: &IoOperation, random: &mut SplitMix) -> bool {
        let until = match operation.direction {
            IoDirection::Read => &mut self.reads_until,
            IoDirection::Write => &mut self.writes_until,
        };
        let is_past = *until == Some(0);
        *until = until.map(|count| count.saturating_sub(1));
        let (start, end) = (operation.offset_bytes, operation.offset_bytes + operation.len_bytes as u64);
        let is_there = self.ranges.iter().any(|range| range.start < end && start < range.end);
        let is_drawn = self.one_in.is_some_and(|one_in| random.below(one_in) == 0);
        is_past || is_there || is_drawn
    }
}

impl Storage for MemoryStorage {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        operation.check(Some(self.size_bytes));
        if self.pending.len() == self.depth {
            return Err(Busy);
        }
        let fails = self.faults.strike(&operation, &mut self.random);
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

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): a small generator whose sequence will never change under us.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number under `bound`, which is positive and small: the bias of the remainder does not matter here.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
