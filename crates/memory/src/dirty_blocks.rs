//! The blocks of each frame that the backing file may lack: one bit per block, in memory shared by the ranks of a host.
//!
//! An unmarked block has the same bytes in the frame and in the file. A writer marks a page's blocks while it has the
//! page pinned. A frame mapped for stores, or about to be filled without knowledge of its blocks, has all of them
//! marked. The page's home clears the marks when it has read or written the page; no rank writes to it at that time. A
//! holder that passes the page on passes on its marks, too.
//!
//! Pins and messages order all accesses, so none of the operations here orders anything itself.

use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_conduit::Region;
use vgasnet_protocol::coherence::FrameId;

/// Size of the smallest block in bytes. All others are multiples of it.
pub const DIRTY_BLOCK_BYTES: usize = 4096;

/// Maximum blocks of a frame: their bits take 512 bytes. Pages of more than 16 MiB have larger blocks.
const BLOCKS_MAX: usize = 4096;

/// Blocks per word.
const WORD_BLOCKS: usize = u64::BITS as usize;

/// Alignment of the memory's address and size, so that its cache lines contain nothing else.
const ALIGN_BYTES: usize = 64;

/// The dirty blocks of a rank's frames: this rank's own or a neighbour's.
#[derive(Clone, Copy, Debug)]
pub struct DirtyBlocks {
    address: usize,
    /// Words per frame.
    words: u16,
    page_shift: u8,
    block_shift: u8,
}

/// A range of bytes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the first byte.
    pub start_bytes: usize,
    /// Offset behind the last byte.
    pub end_bytes: usize,
}

impl Extent {
    /// No bytes.
    pub const NONE: Extent = Extent { start_bytes: 0, end_bytes: 0 };

    /// Length in bytes.
    pub fn len_bytes(self) -> usize {
        self.end_bytes - self.start_bytes
    }
}

impl DirtyBlocks {
    /// Bytes of memory for the blocks of `frames` frames; a multiple of 64.
    pub(super) fn bytes(frames: u32, page_bytes: usize) -> usize {
        (frames as usize * words(page_bytes) * size_of::<AtomicU64>()).next_multiple_of(ALIGN_BYTES)
    }

    /// The blocks of `frames` frames of `page_bytes`, all unmarked, in `memory`, which is initially zero.
    pub fn new(memory: Region, frames: u32, page_bytes: usize) -> DirtyBlocks {
        assert!(memory.address % ALIGN_BYTES == 0 && memory.len_bytes >= DirtyBlocks::bytes(frames, page_bytes));
        assert!(page_bytes.is_power_of_two() && page_bytes >= DIRTY_BLOCK_BYTES);
        let shift = |bytes: usize| bytes.trailing_zeros() as u8;
        DirtyBlocks {
            address: memory.address,
            words: words(page_bytes) as u16,
            page_shift: shift(page_bytes),
            block_shift: shift(page_bytes / blocks(page_bytes)),
        }
    }

    /// Marks the blocks of a byte range of a frame.
    #[inline]
    pub fn mark(&self, frame: FrameId, offset_bytes: usize, len_bytes: usize) {
        debug_assert!(offset_bytes + len_bytes <= 1 << self.page_shift);
        if len_bytes == 0 {
            return;
        }
        let (first, last) = (offset_bytes >> self.block_shift, (offset_bytes + len_bytes - 1) >> self.block_shift);
        if first == last {
            set(&self.words(frame)[first / WORD_BLOCKS], 1 << (first % WORD_BLOCKS));
        } else {
            self.mark_blocks(frame, first, last);
        }
    }

    /// Marks the block containing this byte of a frame.
    #[inline(always)]
    pub(super) fn mark_one(&self, frame: FrameId, offset_bytes: usize) {
        let block = offset_bytes >> self.block_shift;
        let word =
            self.address + (frame.0 as usize * usize::from(self.words) + block / WORD_BLOCKS) * size_of::<AtomicU64>();
        // SAFETY: as in `words`. The byte is inside the frame, so its block's word is one of the frame's.
        set(unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(word) }, 1 << (block % WORD_BLOCKS));
    }

    #[inline(never)]
    fn mark_blocks(&self, frame: FrameId, first: usize, last: usize) {
        let words = &self.words(frame)[first / WORD_BLOCKS..=last / WORD_BLOCKS];
        let end = words.len() - 1;
        for (at, word) in words.iter().enumerate() {
            let from = if at == 0 { first % WORD_BLOCKS } else { 0 };
            let to = if at == end { last % WORD_BLOCKS } else { WORD_BLOCKS - 1 };
            set(word, (u64::MAX << from) & (u64::MAX >> (WORD_BLOCKS - 1 - to)));
        }
    }

    /// Marks all blocks of a frame.
    pub fn mark_all(&self, frame: FrameId) {
        self.mark(frame, 0, 1 << self.page_shift);
    }

    /// Whether all blocks of a frame are marked.
    pub(super) fn are_all_marked(&self, frame: FrameId) -> bool {
        let marked = self.words(frame).iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize);
        marked.sum::<usize>() == blocks(1 << self.page_shift)
    }

    /// Unmarks all blocks of a frame: the file has its page.
    pub fn clear(&self, frame: FrameId) {
        self.words(frame).iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Sets another frame's marks to this one's: both contain the same page.
    pub fn pass_on(&self, frame: FrameId, to: &DirtyBlocks, its: FrameId) {
        for (from, to) in self.words(frame).iter().zip(to.words(its)) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Whether the block containing this byte of a frame is marked.
    pub fn is_marked(&self, frame: FrameId, offset_bytes: usize) -> bool {
        let block = offset_bytes >> self.block_shift;
        self.words(frame)[block / WORD_BLOCKS].load(Ordering::Relaxed) >> (block % WORD_BLOCKS) & 1 != 0
    }

    /// The extents to write for the file to have a frame's page, in order: large ones are preferred to many small ones.
    /// Gaps are at least `gap_bytes`. If more than half of the blocks are marked, a single extent covers the first to
    /// the last.
    pub fn extents(&self, frame: FrameId, gap_bytes: usize) -> Vec<Extent> {
        let words = self.words(frame);
        let marked: usize = words.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum();
        let gap_bytes = if 2 * marked > blocks(1 << self.page_shift) { usize::MAX } else { gap_bytes };
        let mut extents: Vec<Extent> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let mut left = word.load(Ordering::Relaxed);
            while left != 0 {
                let start_bytes = (at * WORD_BLOCKS + left.trailing_zeros() as usize) << self.block_shift;
                let end_bytes = start_bytes + (1 << self.block_shift);
                left &= left - 1;
                match extents.last_mut() {
                    Some(last) if start_bytes == last.end_bytes || start_bytes - last.end_bytes < gap_bytes => {
                        last.end_bytes = end_bytes;
                    }
                    _ => extents.push(Extent { start_bytes, end_bytes }),
                }
            }
        }
        extents
    }

    #[inline]
    fn words(&self, frame: FrameId) -> &'static [AtomicU64] {
        let count = usize::from(self.words);
        let address = self.address + frame.0 as usize * count * size_of::<AtomicU64>();
        // SAFETY: frames of this pool have their words inside the memory (`bytes`), aligned. It stays mapped until the
        // process ends, and is only used as these atomics, for which zero is valid.
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), count) }
    }
}

/// Blocks per page.
fn blocks(page_bytes: usize) -> usize {
    (page_bytes / DIRTY_BLOCK_BYTES).min(BLOCKS_MAX)
}

/// Words per frame.
fn words(page_bytes: usize) -> usize {
    blocks(page_bytes).div_ceil(WORD_BLOCKS)
}

/// Sets bits of a word. If all are set already, it is not written.
#[inline]
fn set(word: &AtomicU64, bits: u64) {
    if word.load(Ordering::Relaxed) & bits != bits {
        word.fetch_or(bits, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP_BYTES: usize = 64 << 10;

    fn frames(count: u32, page_bytes: usize) -> DirtyBlocks {
        let len_bytes = DirtyBlocks::bytes(count, page_bytes);
        let memory = vec![0_u64; len_bytes / 8 + 8].leak();
        let address = memory.as_mut_ptr().expose_provenance().next_multiple_of(ALIGN_BYTES);
        DirtyBlocks::new(Region { address, len_bytes }, count, page_bytes)
    }

    /// The extents of a frame, in blocks of 4 KiB.
    fn extents(blocks: &DirtyBlocks, frame: u32) -> Vec<(usize, usize)> {
        let in_blocks = |extent: Extent| (extent.start_bytes >> 12, extent.end_bytes >> 12);
        blocks.extents(FrameId(frame), GAP_BYTES).into_iter().map(in_blocks).collect()
    }

    #[test]
    fn bits_of_a_frame_take_at_most_512_bytes() {
        let sizes = [4 << 10, 64 << 10, 4 << 20, 16 << 20, 64 << 20, 1 << 30];
        assert_eq!(sizes.map(|page_bytes| DirtyBlocks::bytes(64, page_bytes) / 64), [8, 8, 128, 512, 512, 512]);
        let large = frames(1, 64 << 20);
        large.mark(FrameId(0), 20 << 10, 8);
        assert_eq!(extents(&large, 0), [(4, 8)], "a block is 16 KiB");
    }

    #[test]
    fn small_gaps_are_written_too_and_large_ones_are_not() {
        let blocks = frames(3, 4 << 20);
        let mark =
            |block: usize, offset_bytes, len_bytes| blocks.mark(FrameId(1), (block << 12) + offset_bytes, len_bytes);
        assert_eq!(extents(&blocks, 1), []);
        mark(7, 4095, 1);
        mark(7, 4095, 2);
        mark(30, 0, 0);
        assert_eq!(extents(&blocks, 1), [(7, 9)]);
        mark(24, 8, 8);
        mark(41, 8, 8);
        mark(1023, 0, 4096);
        assert_eq!(extents(&blocks, 1), [(7, 25), (41, 42), (1023, 1024)], "of 15 blocks, of 16 and of many");
        assert_eq!((extents(&blocks, 0), extents(&blocks, 2)), (vec![], vec![]));
        mark(100, 0, 513 << 12);
        assert_eq!(extents(&blocks, 1), [(7, 1024)], "more than half is dirty");
        blocks.clear(FrameId(1));
        assert_eq!(extents(&blocks, 1), []);
    }

    #[test]
    fn marks_are_where_bytes_were_written() {
        let page_bytes = 1 << 20;
        let blocks = frames(2, page_bytes);
        let mut random = fastrand::Rng::with_seed(4);
        for _ in 0..200 {
            let start = random.usize(0..page_bytes);
            let len_bytes = random.usize(1..=page_bytes - start);
            blocks.clear(FrameId(1));
            blocks.mark(FrameId(1), start, len_bytes);
            for at in (0..page_bytes).step_by(4096) {
                let is_in = at + 4096 > start && at < start + len_bytes;
                assert_eq!(blocks.is_marked(FrameId(1), at + 17), is_in, "{at}: {len_bytes} bytes at {start}");
            }
        }
        blocks.mark_all(FrameId(1));
        assert_eq!((extents(&blocks, 0), extents(&blocks, 1)), (vec![], vec![(0, 256)]));
    }

    #[test]
    fn a_page_that_is_passed_on_has_its_marks_and_no_others() {
        let (from, to) = (frames(2, 64 << 10), frames(4, 64 << 10));
        from.mark(FrameId(1), 5 << 12, 1);
        to.mark_all(FrameId(3));
        from.pass_on(FrameId(1), &to, FrameId(3));
        assert_eq!((extents(&to, 3), extents(&to, 2)), (vec![(5, 6)], vec![]));
    }
}
