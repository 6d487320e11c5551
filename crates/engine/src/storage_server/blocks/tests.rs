//! The block cache alone, with a storage in memory.

use super::*;
use crate::request::{Completion, ServedId};
use std::sync::Arc;
use vgasnet_memory::{BlockCopier, BlockMapper};
use vgasnet_protocol::coherence::PageId;
use vgasnet_protocol::{Rank, Space};
use vgasnet_storage::{FileSlot, MemoryFile, MemoryStorage, NamedFile, NamedOptions, Storage, errno_of};

/// Blocks per page.
const EACH: usize = 4;
const PAGE_BYTES: usize = EACH * BLOCK_BYTES;

/// Slots of the cache.
const SLOTS: usize = 8;

/// Memory of a slot.
#[derive(Clone)]
#[repr(align(4096))]
struct Memory {
    _bytes: [u8; BLOCK_BYTES],
}

/// Memory of this many slots.
fn memory_of(slots: usize) -> Vec<Memory> {
    vec![Memory { _bytes: [0; BLOCK_BYTES] }; slots]
}

/// A block cache, its memory, and a storage with one named file.
struct Bench {
    blocks: Blocks,
    storage: MemoryStorage,
    file: MemoryFile,
    slot: u32,
    _memory: Vec<Memory>,
    /// Jobs that have failed.
    failed: Vec<Cause>,
    /// A page of this number is in flight between the file and a frame.
    in_flight: Option<HomePage>,
}

impl Bench {
    fn new() -> Bench {
        let mut memory = memory_of(SLOTS);
        let mut storage = MemoryStorage::new(64 * PAGE_BYTES as u64, 16, 1);
        let file = MemoryFile::new(1, 1);
        let options = NamedOptions { read: true, write: true, create: true, ..NamedOptions::default() };
        let named = NamedFile::in_memory(&file, &options).expect("it is in memory");
        let FileSlot(slot) = storage.add_file(Arc::new(named));
        let blocks = Blocks::new(memory.as_mut_ptr().cast(), 0, SLOTS, PAGE_BYTES);
        Bench { blocks, storage, file, slot, _memory: memory, failed: Vec::new(), in_flight: None }
    }

    fn page(&self, index: u32) -> HomePage {
        HomePage::of_file(self.slot, index)
    }

    /// Starts an operation on the first bytes of a block.
    fn start(&mut self, page: HomePage, block: usize, len_bytes: usize, copy: Copy, is_written: bool) {
        let space = if page.is_of_segment() { Space::of_segment(Rank(0)) } else { Space::of_file(page.slot()) };
        let page_id = PageId { space, index: page.index() };
        let piece = Piece { page: page_id, offset_bytes: block * BLOCK_BYTES, len_bytes, start_bytes: 0 };
        let part = Part { piece, copy, completion: Completion::Served(ServedId { request: 0, piece: 0 }) };
        let ready = self.blocks.start(part, page, is_written);
        self.perform(ready.into_iter().collect());
    }

    fn put(&mut self, page: HomePage, block: usize, byte: u8) {
        self.start(page, block, 10, Copy::Set(byte), true);
    }

    /// Gets the first bytes of a block, which must end with the drives.
    fn get(&mut self, page: HomePage, block: usize) -> [u8; 12] {
        let mut bytes = [0xEE; 12];
        self.start(page, block, bytes.len(), Copy::Get(bytes.as_mut_ptr()), true);
        self.drive();
        bytes
    }

    fn perform(&mut self, mut ready: Vec<BlockCopies>) {
        while let Some(BlockCopies { job, part, places, failed, .. }) = ready.pop() {
            self.failed.extend(failed);
            for BlockPlace { memory, start_bytes, len_bytes } in places {
                // SAFETY: the block belongs to the job, and the client's memory is as long as the piece.
                unsafe { part.copy.run_at(memory, start_bytes, len_bytes) };
            }
            ready.extend(self.blocks.end(job, false).0);
            ready.extend(self.blocks.go_on());
        }
    }

    /// Drives until nothing is in flight.
    fn drive(&mut self) {
        loop {
            let ready = self.blocks.go_on();
            self.perform(ready);
            let in_flight = self.in_flight;
            self.blocks.advance(&mut self.storage, |page| Some(page) != in_flight);
            if self.storage.in_flight() == 0 {
                return;
            }
            let mut completed = Vec::new();
            self.storage.poll(&mut |token, result| completed.push((token, result)));
            for (token, result) in completed {
                let (ready, _) = match result {
                    Ok(()) => self.blocks.on_moved(token),
                    Err(error) => self.blocks.on_failed(token, Cause(errno_of(&error).unsigned_abs())),
                };
                self.perform(ready);
            }
        }
    }

    fn flush(&mut self) -> Option<Result<(), Cause>> {
        self.blocks.flush_file(self.slot);
        self.drive();
        self.blocks.is_flushed(self.slot)
    }
}

#[test]
fn bytes_survive_their_block() {
    let (mut bench, page) = (Bench::new(), HomePage::of_segment(3));
    bench.put(page, 1, 7);
    assert!(bench.blocks.has_jobs(page), "the rest of the block is to be read");
    bench.drive();
    assert!(!bench.blocks.has_jobs(page) && !bench.blocks.is_busy(0));
    assert!(!bench.blocks.empty(), "it is dirty");
    bench.drive();
    assert!(bench.blocks.empty() && bench.blocks.in_memory(page, 1).is_none());
    assert_eq!(bench.get(page, 1), [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0]);
}

#[test]
fn a_page_never_written_is_zeros_without_a_read() {
    let (mut bench, page) = (Bench::new(), HomePage::of_segment(3));
    bench.storage.fail_reads_after(0);
    bench.start(page, 0, 10, Copy::Set(7), false);
    assert!(!bench.blocks.has_jobs(page) && bench.blocks.dirty_of(page).len() == 1);
    bench.start(page, 1, BLOCK_BYTES, Copy::Set(8), true);
    assert_eq!((bench.get(page, 0)[9..].to_vec(), bench.get(page, 2)), (vec![7, 0, 0], [0; 12]));
    assert!(bench.failed.is_empty());
}

#[test]
fn more_blocks_than_slots_are_written_behind() {
    let mut bench = Bench::new();
    for index in 0..3 * SLOTS as u32 {
        bench.put(HomePage::of_segment(index), 0, index as u8);
    }
    bench.drive();
    assert_eq!(bench.blocks.jobs(), 0);
    assert!(bench.blocks.take_cleaned() as usize >= 2 * SLOTS);
    for index in 0..3 * SLOTS as u32 {
        assert_eq!(bench.get(HomePage::of_segment(index), 0)[..10], [index as u8; 10]);
    }
}

#[test]
fn a_flush_writes_a_file_and_only_blocks_of_idle_pages() {
    let mut bench = Bench::new();
    let (page, other) = (bench.page(0), bench.page(1));
    [page, other].into_iter().for_each(|page| bench.start(page, 0, BLOCK_BYTES, Copy::Set(7), true));
    assert!(bench.blocks.take_newly_dirty() && !bench.blocks.take_newly_dirty());
    assert_eq!(bench.blocks.of_files(), (2, 2));
    bench.in_flight = Some(other);
    assert_eq!((bench.flush(), bench.blocks.is_writing(other)), (None, false));
    assert_eq!((bench.blocks.dirty_of(page).len(), bench.blocks.dirty_of(other).len()), (0, 1));
    bench.in_flight = None;
    bench.drive();
    assert_eq!((bench.blocks.is_flushed(bench.slot), bench.blocks.of_files()), (Some(Ok(())), (2, 0)));
    assert_eq!(bench.file.bytes()[PAGE_BYTES..PAGE_BYTES + BLOCK_BYTES], [7; BLOCK_BYTES]);
}

#[test]
fn an_unwritable_file_refuses_puts_until_a_flush_succeeds() {
    let mut bench = Bench::new();
    let page = bench.page(2);
    bench.file.limit_space(0);
    bench.start(page, 1, BLOCK_BYTES, Copy::Set(7), true);
    let no_space = Cause(28);
    assert_eq!((bench.flush(), bench.blocks.refusal(page)), (Some(Err(no_space)), Some(no_space)));
    assert_eq!(bench.blocks.take_failures().into_iter().collect::<Vec<_>>(), [(bench.slot, no_space)]);
    let start = (2 * PAGE_BYTES + BLOCK_BYTES) as u64;
    assert_eq!(bench.blocks.unwritten_bytes(bench.slot), vec![start..start + BLOCK_BYTES as u64]);
    // Half of the slots are for blocks of files. Puts in excess fail instead of waiting for ever.
    (0..2).for_each(|index| (0..EACH).for_each(|block| bench.put(HomePage::of_file(bench.slot, index), block, 9)));
    bench.drive();
    assert!(!bench.failed.is_empty() && bench.failed.iter().all(|cause| *cause == no_space));
    bench.file.limit_space(usize::MAX);
    assert_eq!((bench.flush(), bench.blocks.refusal(page)), (Some(Ok(())), None));
    assert!(bench.blocks.unwritten_bytes(bench.slot).is_empty());
}

#[test]
fn a_failed_read_fails_the_jobs_of_its_block_and_leaves_nothing() {
    let mut bench = Bench::new();
    let page = bench.page(2);
    bench.start(page, 1, BLOCK_BYTES, Copy::Set(7), true);
    assert_eq!(bench.flush(), Some(Ok(())));
    assert!(bench.blocks.empty());
    bench.file.configure(|faults| faults.fail_reads_after(0));
    let mut bytes = [0; 10];
    for _ in 0..2 {
        bench.start(page, 1, bytes.len(), Copy::Get(bytes.as_mut_ptr()), true);
    }
    bench.drive();
    assert_eq!((bench.failed.len(), bench.blocks.in_memory(page, 1)), (2, None));
    assert!(bench.blocks.is_quiet_about(bench.slot));
    bench.file.configure(|faults| faults.heal());
    assert_eq!(bench.get(page, 1), [7; 12]);
}

#[test]
fn a_frame_leaves_once_its_dirty_blocks_are_written() {
    let mut memory = memory_of(SLOTS + EACH);
    let mut bench = Bench::new();
    // Frame 2 of the memory lies behind the permanent slots.
    bench.blocks = Blocks::new(memory.as_mut_ptr().cast(), 0, SLOTS, PAGE_BYTES);
    bench.blocks.take_frame(FrameId((SLOTS / EACH) as u32));
    for index in 0..(SLOTS + EACH) as u32 {
        bench.start(HomePage::of_segment(index), 0, BLOCK_BYTES, Copy::Set(index as u8 + 1), true);
    }
    bench.blocks.release_frame();
    assert!(bench.blocks.take_returned().is_none(), "its blocks are dirty");
    bench.drive();
    assert_eq!((bench.blocks.take_returned(), bench.blocks.serving_frames()), (Some(FrameId(2)), 0));
    for index in 0..(SLOTS + EACH) as u32 {
        assert_eq!(bench.get(HomePage::of_segment(index), 0), [index as u8 + 1; 12]);
    }
}

#[test]
fn blocks_that_the_file_supersedes_are_dropped() {
    let (mut bench, page) = (Bench::new(), HomePage::of_segment(3));
    (0..EACH).for_each(|block| bench.start(page, block, BLOCK_BYTES, Copy::Set(7), true));
    bench.blocks.forget(page, BLOCK_BYTES, 3 * BLOCK_BYTES);
    let left: Vec<usize> = bench.blocks.dirty_of(page).into_iter().map(|(offset_bytes, _)| offset_bytes).collect();
    assert_eq!(left, [0, 3 * BLOCK_BYTES]);
    let page = bench.page(5);
    (0..2).for_each(|block| bench.start(page, block, BLOCK_BYTES, Copy::Set(7), true));
    bench.blocks.forget_from(bench.page(5));
    assert_eq!(bench.blocks.of_files(), (0, 0));
}

/// Maps nothing, and copies nothing.
struct NoMapper;

impl BlockMapper for NoMapper {
    fn map(&self, _index: u32, _block: u32, _offset_bytes: usize, _access: Access) -> Result<(), i32> {
        Ok(())
    }

    fn unmap(&self, _index: u32, _block: u32) -> Result<(), i32> {
        Ok(())
    }

    fn unmap_page(&self, _index: u32) -> Result<(), i32> {
        Ok(())
    }

    fn copier(&self) -> Option<Arc<dyn BlockCopier>> {
        Some(Arc::new(NoCopier))
    }
}

struct NoCopier;

impl BlockCopier for NoCopier {
    fn open_page(&self, _index: u32) -> Result<(), i32> {
        Ok(())
    }

    fn drop_page(&self, _index: u32) -> Result<(), i32> {
        Ok(())
    }

    unsafe fn copy(&self, _index: u32, _block: u32, _from: *const u8) -> bool {
        false
    }

    fn close(&self, _index: u32, _block: u32) -> Result<(), i32> {
        Ok(())
    }

    fn reopen(&self, _index: u32, _block: u32) {}
}

/// Nobody would keep copies away from a put that began before.
#[test]
fn a_page_is_not_opened_for_copies_while_puts_or_mappings_use_it() {
    let mut bench = Bench::new();
    bench.blocks.map_by(Box::new(NoMapper), 4);
    let page = HomePage::of_segment(0);
    assert!(bench.blocks.may_copy(page), "all pages are open at first");
    bench.blocks.unmap_page(0);
    bench.put(page, 1, 7);
    assert!(!bench.blocks.may_copy(page), "the block is being read for the put");
    bench.drive();
    assert!(bench.blocks.may_copy(page));
    bench.start(page, 2, BLOCK_BYTES, Copy::MakeResident(Access::Write), true);
    bench.drive();
    assert!(bench.blocks.may_copy(page), "the page is open");
    bench.blocks.unmap_page(0);
    bench.start(page, 2, BLOCK_BYTES, Copy::MakeResident(Access::Write), true);
    bench.drive();
    assert!(!bench.blocks.may_copy(page), "a block is mapped");
    bench.blocks.unmap_page(0);
    assert!(bench.blocks.may_copy(page));
}
