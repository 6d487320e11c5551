//! The burst buffer before named files, against a model: reads return the written bytes, and a drain brings them to
//! their file.

use super::super::faults::SplitMix;
use super::super::{
    BLOCK_BYTES, FileSlot, IoDirection, IoOperation, MemoryFile, MemoryStorage, NamedFile, NamedOptions, Spill, Storage,
};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

const PAGE_BLOCKS: usize = 4;
const FILE_BLOCKS: usize = 8 * PAGE_BLOCKS;
const FILES: usize = 2;
const SEEDS: u64 = 400;

#[repr(align(4096))]
#[derive(Clone)]
struct Block([u8; BLOCK_BYTES]);

/// An operation in flight.
struct Pending {
    file: usize,
    blocks: Range<usize>,
    memory: Vec<Block>,
    direction: IoDirection,
}

struct World {
    seed: u64,
    random: SplitMix,
    spill: Spill,
    slots: Vec<FileSlot>,
    files: Vec<MemoryFile>,
    buffer: MemoryFile,
    /// The bytes of each block of each file; `None` after a failed write.
    model: Vec<Vec<Option<u8>>>,
    pending: HashMap<u64, Pending>,
    last: u64,
    /// A file being drained, without a write since.
    draining: Option<usize>,
    seen: Seen,
}

/// Counts of the rarer events.
#[derive(Debug, Default)]
struct Seen {
    spilled: usize,
    checked: usize,
    refused: usize,
    failed: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = SplitMix(seed);
        let options = NamedOptions { read: true, write: true, ..NamedOptions::default() };
        let memory: Vec<MemoryFile> = (0..=FILES as u64).map(|number| MemoryFile::new(number, seed + number)).collect();
        let named = |file: &MemoryFile| Arc::new(NamedFile::in_memory(file, &options).unwrap());
        let inner = Box::new(MemoryStorage::new(0, 1 + random.below(6) as usize, seed));
        let most = 1 + random.below(12) as u32;
        let mut spill =
            Spill::new(inner, named(&memory[FILES]), PAGE_BLOCKS * BLOCK_BYTES, most, Arc::new(|_: &str| ()));
        let slots = memory[..FILES].iter().map(|file| spill.add_file(named(file))).collect();
        let (files, buffer) = (memory[..FILES].to_vec(), memory[FILES].clone());
        let (model, pending) = (vec![vec![Some(0); FILE_BLOCKS]; FILES], HashMap::new());
        World {
            seed,
            random,
            spill,
            slots,
            files,
            buffer,
            model,
            pending,
            last: 0,
            draining: None,
            seen: Seen::default(),
        }
    }

    /// Starts an operation on blocks of a page not used by another operation.
    fn start(&mut self) {
        let file = self.random.below(FILES as u64) as usize;
        let page = self.random.below((FILE_BLOCKS / PAGE_BLOCKS) as u64) as usize * PAGE_BLOCKS;
        let first = self.random.below(PAGE_BLOCKS as u64) as usize;
        let count = 1 + self.random.below((PAGE_BLOCKS - first) as u64) as usize;
        let blocks = page + first..page + first + count;
        let overlaps =
            |other: &Pending| other.file == file && other.blocks.start < blocks.end && blocks.start < other.blocks.end;
        if self.pending.values().any(overlaps) {
            return;
        }
        let direction = if self.random.below(3) == 0 { IoDirection::Read } else { IoDirection::Write };
        let byte = 1 + self.random.below(250) as u8;
        let mut memory = vec![Block([byte; BLOCK_BYTES]); count];
        self.last += 1;
        let operation = IoOperation {
            file: self.slots[file],
            direction,
            offset_bytes: (blocks.start * BLOCK_BYTES) as u64,
            memory: memory.as_mut_ptr().cast(),
            len_bytes: count * BLOCK_BYTES,
            token: self.last,
            is_urgent: false,
        };
        // SAFETY: the memory stays in `pending` and is left alone until the token comes back. A world drops its storage
        // before `pending`.
        if unsafe { self.spill.start(operation) }.is_ok() {
            if direction == IoDirection::Write {
                self.draining = self.draining.filter(|draining| *draining != file);
            }
            self.pending.insert(self.last, Pending { file, blocks, memory, direction });
        }
    }

    fn poll(&mut self) {
        let mut ended: Vec<(u64, io::Result<()>)> = Vec::new();
        self.spill.poll(&mut |token, result| ended.push((token, result)));
        for (token, result) in ended {
            let Pending { file, blocks, memory, direction } =
                self.pending.remove(&token).expect("each token comes once");
            let model = &mut self.model[file][blocks.clone()];
            self.seen.failed += usize::from(result.is_err());
            match direction {
                IoDirection::Write => model.fill(result.is_ok().then(|| memory[0].0[0])),
                IoDirection::Read if result.is_ok() => {
                    for (should, is) in model.iter().zip(&memory) {
                        let is_right = should.is_none_or(|should| is.0 == [should; BLOCK_BYTES]);
                        assert!(is_right, "seed {}: {blocks:?} of {file}: {} for {should:?}", self.seed, is.0[0]);
                    }
                }
                IoDirection::Read => {}
            }
        }
        self.seen.spilled = self.seen.spilled.max(self.spill.pages());
        self.check_drain();
    }

    /// Requests a drain of a file, as a flush does when no write is in flight.
    fn flush(&mut self) {
        let file = self.random.below(FILES as u64) as usize;
        self.spill.begin_flush(self.slots[file]);
        if !self.pending.values().any(|pending| pending.file == file && pending.direction == IoDirection::Write) {
            self.spill.drain(self.slots[file]);
            self.draining = Some(file);
        }
    }

    /// Checks that drained blocks are in their file.
    fn check_drain(&mut self) {
        let Some(file) = self.draining else { return };
        match self.spill.drained(self.slots[file]) {
            None => {}
            Some(Ok(())) => {
                self.check_file(file);
                self.draining = None;
            }
            Some(Err(_)) => {
                self.seen.refused += 1;
                let named = self.spill.undrained_bytes(self.slots[file]);
                for (at, should) in (0..).zip(&self.model[file]) {
                    let is_there = should.is_none_or(|should| self.files[file].has_block(at, &[should; BLOCK_BYTES]));
                    let is_named = named.iter().any(|range| range.contains(&(at * BLOCK_BYTES as u64)));
                    assert!(
                        is_there || is_named,
                        "seed {}: block {at} of {file} is neither there nor named",
                        self.seed
                    );
                }
                self.draining = None;
            }
        }
    }

    fn check_file(&mut self, file: usize) {
        self.seen.checked += 1;
        for (at, should) in (0..).zip(&self.model[file]) {
            let is_there = should.is_none_or(|should| self.files[file].has_block(at, &[should; BLOCK_BYTES]));
            assert!(is_there, "seed {}: block {at} of file {file} lacks {should:?}", self.seed);
        }
    }

    fn change_faults(&mut self) {
        let which = self.random.below(FILES as u64 + 1) as usize;
        let file = self.files.get(which).unwrap_or(&self.buffer);
        let (one_in, blocks) = (2 + self.random.below(9), self.random.below(FILE_BLOCKS as u64) as usize);
        match self.random.below(5) {
            0 => file.configure(|faults| faults.fail_one_in(one_in)),
            1 => file.limit_space(blocks),
            _ => file.configure(super::super::Faults::heal),
        }
        file.shorten_one_in(1 + self.random.below(5));
    }

    fn heal(&mut self) {
        for file in self.files.iter().chain([&self.buffer]) {
            file.configure(super::super::Faults::heal);
            file.limit_space(usize::MAX);
        }
    }

    /// Lets all operations end, and checks that all files have the written bytes.
    fn end(&mut self) {
        self.heal();
        for _ in 0..5000 {
            self.poll();
        }
        assert!(self.pending.is_empty(), "seed {}: {} operations do not end", self.seed, self.pending.len());
        for file in 0..FILES {
            self.spill.begin_flush(self.slots[file]);
            self.spill.drain(self.slots[file]);
            let is_drained = (0..5000).any(|_| {
                self.poll();
                self.spill.drained(self.slots[file]) == Some(Ok(()))
            });
            assert!(is_drained, "seed {}: file {file} is not drained", self.seed);
            self.check_file(file);
        }
        assert_eq!((self.spill.pages(), self.spill.in_flight()), (0, 0), "seed {}: something is left", self.seed);
        self.slots.iter().for_each(|slot| self.spill.remove_file(*slot));
    }
}

fn run(seed: u64) -> Seen {
    let mut world = World::new(seed);
    let is_faulty = world.random.below(3) > 0;
    for _ in 0..600 {
        match world.random.below(40) {
            0 => world.flush(),
            1 if is_faulty => world.change_faults(),
            2..20 => world.start(),
            _ => world.poll(),
        }
    }
    world.end();
    world.seen
}

#[test]
fn what_is_spilled_is_read_and_drained() {
    let seeds = std::env::var("SPILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = seeds.map_or(0..SEEDS, |seed: u64| seed..seed + 1);
    let all: Vec<Seen> = seeds.clone().map(run).collect();
    let sum = |count: fn(&Seen) -> usize| all.iter().map(count).sum::<usize>();
    let rare = [sum(|seen| seen.checked), sum(|seen| seen.refused), sum(|seen| seen.failed)];
    assert!(seeds.end - seeds.start < SEEDS || rare.iter().all(|count| *count > 50), "{rare:?}");
    assert!(all.iter().all(|seen| seen.spilled > 0 || seeds.end - seeds.start > 1));
}

/// A file removed while it cannot be written loses its spilled bytes, and its places are free again.
#[test]
fn a_file_may_be_given_up_while_it_cannot_be_written() {
    let mut world = World::new(1);
    world.files.iter().for_each(|file| file.limit_space(0));
    for _ in 0..50 {
        world.start();
        world.poll();
    }
    for _ in 0..100 {
        world.poll();
    }
    assert!(world.pending.is_empty() && world.spill.pages() > 0);
    assert!(!world.spill.take_failures().is_empty());
    for file in 0..FILES {
        world.spill.pause(world.slots[file], true);
        assert!(!world.spill.is_draining(world.slots[file]));
        world.spill.remove_file(world.slots[file]);
    }
    assert_eq!(world.spill.pages(), 0);
}
