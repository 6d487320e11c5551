//! The storage server alone, without an engine, with a storage in memory.

use super::*;
use crate::queue::Queue;
use crate::request::{Completion, Copy, Part, ServedId};
use crate::test_space::{OWN, space};
use crate::work::BlockPlace;
use vgasnet_memory::Piece;
use vgasnet_protocol::Space;
use vgasnet_storage::{MemoryFile, MemoryStorage, NamedFile, NamedOptions};

/// Blocks per page.
const EACH: usize = 4;
const PAGE_BYTES: usize = EACH * BLOCK_BYTES;

/// Frames for pages, then those for staging, then those for blocks.
const FRAMES: u32 = 8;
const STAGING: u32 = 3;
const BLOCK_FRAMES: u32 = 2;

/// A rank without memory here.
const OTHER: Rank = Rank(1);

/// A storage server, and the events and the work that it has left behind.
struct Bench {
    server: StorageServer,
    space: Arc<AddressSpace>,
    queue: Queue,
}

impl Bench {
    /// A server whose backing file fails as `configure` says.
    fn with_faults(configure: impl FnOnce(&mut MemoryStorage)) -> Bench {
        let space = Arc::new(space(FRAMES + STAGING + BLOCK_FRAMES, PAGE_BYTES));
        let mut storage = MemoryStorage::new(64 * PAGE_BYTES as u64, 4, 1);
        configure(&mut storage);
        let staging = (FRAMES..FRAMES + STAGING).map(FrameId).collect();
        let blocks = (FrameId(FRAMES + STAGING), BLOCK_FRAMES as usize * EACH);
        let server = StorageServer::new(Arc::clone(&space), Box::new(storage), staging, blocks)
            .with_gaps(0)
            .with_homes(Spaces::new([64, 64]));
        Bench { server, space, queue: Queue::default() }
    }

    fn new() -> Bench {
        Bench::with_faults(|_| {})
    }

    /// Adds a file in memory.
    fn add_file(&mut self, space: Space) -> MemoryFile {
        let file = MemoryFile::new(1, 1);
        let options = NamedOptions { read: true, write: true, create: true, ..NamedOptions::default() };
        let named = NamedFile::in_memory(&file, &options).expect("it is in memory");
        self.server.add_file(space, Arc::new(named));
        file
    }

    /// Drives the storage until nothing is in flight in it.
    fn drive(&mut self) -> Result<(), UserError> {
        loop {
            self.server.advance(self.queue.todo());
            if self.server.storage().in_flight() == 0 {
                return Ok(());
            }
            self.server.poll(self.queue.todo())?;
        }
    }

    /// Drives, and expects this event alone.
    fn expect(&mut self, expected: &Event) {
        self.drive().expect("no I/O on the backing file fails");
        let event = self.queue.next_event().map(|event| format!("{event:?}"));
        assert_eq!((event, self.queue.has_events()), (Some(format!("{expected:?}")), false));
    }

    /// The transfer that the server has requested, and whether it is a put.
    fn transfer(&mut self) -> (bool, Transfer) {
        match self.queue.next_work() {
            Some(Work::Put(transfer)) => (true, transfer),
            Some(Work::Get(transfer)) => (false, transfer),
            other => panic!("{other:?} is no transfer"),
        }
    }

    fn end_transfer(&mut self, transfer: Transfer) {
        let id = operation_of(transfer.token).expect("the token is the server's");
        self.server.on_transferred(id, self.queue.todo());
    }

    fn load(&mut self, index: u32, frame: u32) {
        self.server.load(page(index), OWN, FrameId(frame), Priority::Now);
        self.expect(&Event::Loaded(page(index)));
    }

    /// Writes a page of these bytes, one a block, of which the `dirty` blocks are marked.
    fn store(&mut self, index: u32, frame: u32, bytes: [u8; EACH], dirty: &[usize]) {
        self.fill(frame, bytes);
        dirty.iter().for_each(|block| self.space.own.blocks.mark(FrameId(frame), block * BLOCK_BYTES, 1));
        self.server.store(page(index), OWN, FrameId(frame), Priority::Now);
        self.expect(&Event::Stored(page(index)));
    }

    fn fill(&self, frame: u32, bytes: [u8; EACH]) {
        for (block, byte) in bytes.into_iter().enumerate() {
            let memory = self.space.own.pool.frame(FrameId(frame)).wrapping_add(block * BLOCK_BYTES);
            // SAFETY: the block lies in the frame, which nothing else uses.
            unsafe { memory.write_bytes(byte, BLOCK_BYTES) };
        }
    }

    /// The first and last byte of each block in a frame.
    fn bytes_in(&self, frame: u32) -> [[u8; 2]; EACH] {
        let memory = self.space.own.pool.frame(FrameId(frame));
        // SAFETY: both bytes lie in the frame, which nothing writes to.
        let byte = |at: usize| unsafe { memory.wrapping_add(at).read() };
        std::array::from_fn(|block| [byte(block * BLOCK_BYTES), byte((block + 1) * BLOCK_BYTES - 1)])
    }

    /// Starts a small operation on a block.
    fn start(&mut self, page: PageId, block: usize, len_bytes: usize, copy: Copy) {
        let piece = Piece { page, offset_bytes: block * BLOCK_BYTES, len_bytes, start_bytes: 0 };
        let part = Part { piece, copy, completion: Completion::Served(ServedId { request: 0, piece: 0 }) };
        assert!(self.server.takes_on_blocks(&part));
        self.server.start_on_blocks(part, true, self.queue.todo());
    }

    /// Performs the copies of a small operation. Returns its page if the page has no other one.
    fn end_job(&mut self) -> Option<PageId> {
        let Some(Work::Blocks(copies)) = self.queue.next_work() else { panic!("a job has its blocks") };
        for BlockPlace { memory, start_bytes, len_bytes } in copies.places {
            // SAFETY: the block belongs to the job, and the client's memory is as long as the piece.
            unsafe { copies.part.copy.run_at(memory, start_bytes, len_bytes) };
        }
        self.server.end_on_blocks(copies.job, false, self.queue.todo())
    }
}

fn page(index: u32) -> PageId {
    PageId::of_segment(OWN, index)
}

#[test]
fn a_stored_page_is_loaded_into_any_frame() {
    let mut bench = Bench::new();
    bench.store(3, 0, [1, 2, 3, 4], &[0, 1, 2, 3]);
    assert!(!bench.server.is_busy() && bench.server.operations() == 0);
    bench.load(3, 1);
    assert_eq!(bench.bytes_in(1), [[1, 1], [2, 2], [3, 3], [4, 4]]);
    bench.load(4, 1);
    assert_eq!(bench.bytes_in(1), [[0, 0]; EACH], "the next page was never written");
}

#[test]
fn a_store_writes_the_dirty_blocks_alone_and_leaves_none_dirty() {
    let mut bench = Bench::new();
    bench.store(3, 0, [1; EACH], &[0, 1, 2, 3]);
    bench.store(3, 0, [9; EACH], &[0, 2]);
    assert!((0..EACH).all(|block| !bench.space.own.blocks.is_marked(FrameId(0), block * BLOCK_BYTES)));
    bench.load(3, 1);
    assert_eq!(bench.bytes_in(1), [[9, 9], [1, 1], [9, 9], [1, 1]]);
}

#[test]
fn a_page_in_a_frame_elsewhere_passes_through_staging() {
    let mut bench = Bench::new();
    bench.server.store(page(3), OTHER, FrameId(5), Priority::Now);
    bench.drive().expect("nothing is in the storage");
    let (is_put, fetch) = bench.transfer();
    assert!(!is_put && bench.server.is_busy() && !bench.queue.has_events(), "the page is fetched before it is written");
    let offset_bytes = 5 * PAGE_BYTES;
    assert_eq!((fetch.peer, fetch.peer_offset_bytes, fetch.len_bytes), (OTHER, offset_bytes, PAGE_BYTES));
    let staging = (fetch.own_offset_bytes / PAGE_BYTES) as u32;
    assert!((FRAMES..FRAMES + STAGING).contains(&staging));
    bench.fill(staging, [1, 2, 3, 4]);
    bench.end_transfer(fetch);
    bench.expect(&Event::Stored(page(3)));
    bench.fill(staging, [0; EACH]);

    bench.server.load(page(3), OTHER, FrameId(6), Priority::Now);
    bench.drive().expect("the page is read");
    let (is_put, delivery) = bench.transfer();
    assert!(is_put && !bench.queue.has_events(), "the page is loaded once it is in the frame");
    let staging = (delivery.own_offset_bytes / PAGE_BYTES) as u32;
    assert_eq!((bench.bytes_in(staging), delivery.peer), ([[1, 1], [2, 2], [3, 3], [4, 4]], OTHER));
    bench.end_transfer(delivery);
    bench.expect(&Event::Loaded(page(3)));
    assert!(!bench.server.is_busy());
}

#[test]
fn more_pages_than_staging_frames_wait_for_one() {
    let mut bench = Bench::new();
    let pages = STAGING + 2;
    (0..pages).for_each(|index| bench.server.load(page(index), OTHER, FrameId(index), Priority::Now));
    bench.drive().expect("the pages are read");
    let mut waiting: Vec<Transfer> = (0..STAGING).map(|_| bench.transfer().1).collect();
    assert!(!bench.queue.has_work() && bench.server.operations() == pages as usize);
    let mut loaded = 0;
    while let Some(transfer) = waiting.pop() {
        bench.end_transfer(transfer);
        bench.drive().expect("the next page is read");
        loaded += u32::from(matches!(bench.queue.next_event(), Some(Event::Loaded(_))));
        waiting.extend(bench.queue.has_work().then(|| bench.transfer().1));
    }
    assert_eq!((loaded, bench.server.operations()), (pages, 0));
}

#[test]
fn a_failed_read_ends_the_job_unless_the_page_is_read_ahead() {
    let mut bench = Bench::with_faults(|storage| storage.fail_reads_after(0));
    bench.server.load(page(3), OWN, FrameId(0), Priority::Later);
    bench.expect(&Event::LoadFailed { page: page(3), cause: None });
    assert_eq!((bench.server.forgotten(), bench.server.operations()), (1, 0));
    bench.server.load(page(3), OWN, FrameId(0), Priority::Later);
    bench.server.advance(bench.queue.todo());
    bench.server.raise_priority(page(3), Priority::Now);
    let line = bench.drive().expect_err("a thread waits for the page by now").to_string();
    assert!(line.contains(&format!("cannot read the page at offset {}", 3 * PAGE_BYTES)), "{line}");
    assert!(!bench.queue.has_events(), "the page is not loaded");
}

#[test]
fn a_failed_write_of_a_segments_page_ends_the_job() {
    let mut bench = Bench::with_faults(|storage| storage.fail_writes_after(0));
    bench.server.store(page(2), OWN, FrameId(0), Priority::Now);
    let line = bench.drive().expect_err("no other copy is accounted for").to_string();
    assert!(line.contains(&format!("cannot write the page at offset {}", 2 * PAGE_BYTES)), "{line}");
    assert!(!bench.queue.has_events(), "the page is not stored");
}

#[test]
fn failed_io_on_a_file_fails_its_page_and_the_server_goes_on() {
    let mut bench = Bench::new();
    let space = Space::of_file(0);
    let (file, page) = (bench.add_file(space), PageId { space, index: 1 });
    file.limit_space(0);
    bench.space.own.blocks.mark_all(FrameId(0));
    bench.server.store(page, OWN, FrameId(0), Priority::Now);
    bench.expect(&Event::StoreFailed { page, cause: Cause(libc::ENOSPC.unsigned_abs()) });
    assert!(bench.space.own.blocks.is_marked(FrameId(0), 0), "the file still lacks the block");
    file.limit_space(usize::MAX);
    bench.server.store(page, OWN, FrameId(0), Priority::Now);
    bench.expect(&Event::Stored(page));
    file.configure(|faults| faults.fail_reads_after(0));
    bench.server.load(page, OWN, FrameId(1), Priority::Now);
    bench.expect(&Event::LoadFailed { page, cause: Some(Cause(libc::EIO.unsigned_abs())) });
    bench.load(3, 1);
    assert!(bench.server.is_quiet_about(space));
    bench.server.remove_file(space);
}

#[test]
fn a_small_operation_uses_a_block_that_overlays_the_file() {
    let mut bench = Bench::new();
    bench.store(3, 0, [1, 2, 3, 4], &[0, 1, 2, 3]);
    bench.start(page(3), 1, 10, Copy::Set(7));
    assert!(!bench.queue.has_work() && bench.server.has_jobs(page(3)), "the rest of the block is to be read");
    bench.drive().expect("the block is read");
    assert_eq!(bench.end_job(), Some(page(3)), "the page has no other job");
    assert!(!bench.server.has_jobs(page(3)) && bench.server.block_in_memory(page(3), 1).is_some());
    assert!(bench.server.block_in_memory(page(3), 0).is_none(), "a single block moves");

    let mut bytes = [0_u8; 12];
    bench.start(page(3), 1, bytes.len(), Copy::Get(bytes.as_mut_ptr()));
    assert_eq!((bench.end_job(), bytes), (Some(page(3)), [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 2, 2]));

    bench.server.load(page(3), OWN, FrameId(1), Priority::Now);
    bench.drive().expect("the page is read");
    assert!(!bench.queue.has_events(), "the page still lacks the dirty block");
    let Some(Work::LayOver { operation, blocks }) = bench.queue.next_work() else { panic!("the block is dirty") };
    blocks.run();
    bench.server.on_whole(operation, bench.queue.todo());
    bench.expect(&Event::Loaded(page(3)));
    assert_eq!(bench.bytes_in(1), [[1, 1], [7, 2], [3, 3], [4, 4]]);
}

#[test]
fn a_stored_page_supersedes_its_blocks() {
    let mut bench = Bench::new();
    [1, 2].into_iter().for_each(|block| bench.start(page(3), block, BLOCK_BYTES, Copy::Set(7)));
    assert_eq!((bench.end_job(), bench.end_job()), (None, Some(page(3))));
    bench.store(3, 0, [5; EACH], &[1]);
    assert!(bench.server.block_in_memory(page(3), 1).is_none(), "the file is newer");
    assert!(bench.server.block_in_memory(page(3), 2).is_some(), "this block was not in the store");
    while !bench.server.empty_blocks() {
        bench.drive().expect("the block is written");
    }
    bench.load(3, 1);
    assert_eq!(bench.bytes_in(1), [[0, 0], [5, 5], [7, 7], [0, 0]]);
}
