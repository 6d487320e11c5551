//! The disk of a file in memory: unsynced sectors may be lost.

use super::BLOCK_BYTES;
use super::faults::SplitMix;
use std::collections::{BTreeMap, BTreeSet};

/// A disk writes this many bytes atomically.
const SECTOR_BYTES: usize = 512;

const SECTORS: usize = BLOCK_BYTES / SECTOR_BYTES;

type Block = [u8; BLOCK_BYTES];

/// The part of a file that is on the disk; the newest bytes are in a cache.
#[derive(Debug, Default)]
pub(super) struct Medium {
    blocks: BTreeMap<u64, Box<Block>>,
    size_bytes: u64,
    /// Sectors that are newer in the cache.
    dirty: BTreeSet<u64>,
    /// The size is newer in the cache.
    is_resized: bool,
}

impl Medium {
    /// Notes a block changed or removed in the cache.
    pub(super) fn note_changed(&mut self, index: u64) {
        self.dirty.extend((0..SECTORS as u64).map(|sector| index * SECTORS as u64 + sector));
    }

    /// Notes a new size in the cache, without blocks from `first` on.
    pub(super) fn note_cut(&mut self, first: u64) {
        self.is_resized = true;
        let cut: Vec<u64> = self.blocks.range(first..).map(|(index, _)| *index).collect();
        cut.into_iter().for_each(|index| self.note_changed(index));
    }

    pub(super) fn note_grown(&mut self) {
        self.is_resized = true;
    }

    /// Brings the disk up to date with the cache.
    pub(super) fn sync(&mut self, cache: &BTreeMap<u64, Box<Block>>, size_bytes: u64) {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().for_each(|sector| write_sector(&mut self.blocks, cache, sector));
        (self.size_bytes, self.is_resized) = (size_bytes, false);
    }

    /// Handles a failed sync: the cache marks all sectors clean, and only some of them reach the disk.
    pub(super) fn forget(&mut self, cache: &BTreeMap<u64, Box<Block>>, size_bytes: u64, random: &mut SplitMix) {
        let dirty = std::mem::take(&mut self.dirty);
        for sector in dirty.into_iter().filter(|_| random.below(2) == 0) {
            write_sector(&mut self.blocks, cache, sector);
        }
        if std::mem::take(&mut self.is_resized) && random.below(2) == 0 {
            self.size_bytes = size_bytes;
        }
    }

    /// The bytes of the file after a crash now: a random part of the unsynced sectors, and the old size or the new one.
    pub(super) fn after_crash(
        &self,
        cache: &BTreeMap<u64, Box<Block>>,
        size_bytes: u64,
        random: &mut SplitMix,
    ) -> Vec<u8> {
        let mut blocks = self.blocks.clone();
        for sector in self.dirty.iter().filter(|_| random.below(2) == 0) {
            write_sector(&mut blocks, cache, *sector);
        }
        let is_new = self.is_resized && random.below(2) == 0;
        bytes_of(&blocks, if is_new { size_bytes } else { self.size_bytes })
    }
}

/// The bytes of a file with these blocks.
pub(super) fn bytes_of(blocks: &BTreeMap<u64, Box<Block>>, size_bytes: u64) -> Vec<u8> {
    let mut bytes = vec![0; size_bytes as usize];
    for (index, chunk) in (0..).zip(bytes.chunks_mut(BLOCK_BYTES)) {
        if let Some(block) = blocks.get(&index) {
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }
    bytes
}

fn write_sector(blocks: &mut BTreeMap<u64, Box<Block>>, cache: &BTreeMap<u64, Box<Block>>, sector: u64) {
    let (index, place) = (sector / SECTORS as u64, sector as usize % SECTORS * SECTOR_BYTES);
    let block = blocks.entry(index).or_insert_with(|| Box::new([0; BLOCK_BYTES]));
    let newer = cache.get(&index).map_or(&[0; BLOCK_BYTES], |block| &**block);
    block[place..place + SECTOR_BYTES].copy_from_slice(&newer[place..place + SECTOR_BYTES]);
}
