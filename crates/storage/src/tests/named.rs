//! Named files on every storage that serves them: with the page cache, with direct I/O, and in memory.

use super::super::faults::SplitMix;
use super::super::operation::{Progress, Step};
use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK: u64 = BLOCK_BYTES as u64;
const DEPTH: usize = 4;

/// A storage with a named file in a slot, and a second open of the same file.
struct World {
    what: String,
    storage: Box<dyn Storage>,
    file: Arc<NamedFile>,
    slot: FileSlot,
    other: NamedFile,
}

pub(super) const BOTH: NamedOptions = NamedOptions {
    read: true,
    write: true,
    create: true,
    exclusive: false,
    truncate: false,
    mode: 0o600,
    buffered: false,
};

pub(super) fn new_path(dir: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    dir.join(format!("vgasnet-named-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
}

/// A new file, opened twice and without a name.
fn pair(dir: &Path, buffered: bool) -> [NamedFile; 2] {
    let (path, options) = (new_path(dir), NamedOptions { buffered, ..BOTH });
    let files = [(); 2].map(|()| NamedFile::open(&path, &options).unwrap());
    std::fs::remove_file(path).unwrap();
    files
}

fn pair_in_memory(seed: u64) -> [NamedFile; 2] {
    let file = MemoryFile::new(seed, seed);
    file.shorten_one_in(3);
    [(); 2].map(|()| NamedFile::in_memory(&file, &BOTH).unwrap())
}

fn threads() -> Box<dyn Storage> {
    Box::new(ThreadStorage::with_requests_of(super::file(), DEPTH, 3 * BLOCK_BYTES).unwrap())
}

fn memory(seed: u64) -> Box<dyn Storage> {
    Box::new(MemoryStorage::new(1 << 20, DEPTH, seed))
}

/// A ring with short requests; without io_uring prints a line.
fn ring() -> Option<Box<dyn Storage>> {
    match RingStorage::new(super::file(), DEPTH) {
        Ok(mut ring) => {
            ring.request_bytes_max = 3 * BLOCK_BYTES;
            Some(Box::new(ring))
        }
        Err(refused) => {
            let line = format!("NOT RUN: named files by io_uring: {}\n", refused.error);
            io::stderr().write_all(line.as_bytes()).unwrap();
            None
        }
    }
}

/// Runs `body` in every world, each with an empty file.
fn each(mut body: impl FnMut(&mut World)) {
    let mut run = |what: String, storage: Option<Box<dyn Storage>>, [file, other]: [NamedFile; 2]| {
        let (Some(mut storage), file) = (storage, Arc::new(file)) else { return };
        let slot = storage.add_file(Arc::clone(&file));
        body(&mut World { what, storage, file, slot, other });
    };
    let disk = std::env::temp_dir();
    for (dir, buffered) in [(disk.as_path(), false), (&disk, true), (Path::new("/dev/shm"), false)] {
        let what = |kind| format!("{kind} in {} buffered {buffered}", dir.display());
        run(what("ring"), ring(), pair(dir, buffered));
        run(what("threads"), Some(threads()), pair(dir, buffered));
        run(what("memory"), Some(memory(0)), pair(dir, buffered));
    }
    for seed in 1..4 {
        run(format!("memory, seed {seed}"), Some(memory(seed)), pair_in_memory(seed));
    }
    run("threads in memory".into(), Some(threads()), pair_in_memory(7));
}

impl World {
    fn operation(&self, direction: IoDirection, block: u64, blocks: &mut [Block], token: u64) -> IoOperation {
        IoOperation {
            file: self.slot,
            direction,
            offset_bytes: block * BLOCK,
            memory: blocks.as_mut_ptr().cast(),
            len_bytes: blocks.len() * BLOCK_BYTES,
            token,
            is_urgent: true,
        }
    }

    /// Executes operations without overlap, one by one or all as a run. Returns their results by token.
    fn go(&mut self, operations: &[IoOperation], is_run: bool) -> Vec<io::Result<()>> {
        let mut results: Vec<_> = operations.iter().map(|_| None).collect();
        let mut left = operations;
        while !left.is_empty() || self.storage.in_flight() > 0 {
            let count = if is_run { left.len() } else { left.len().min(1) };
            // SAFETY: the callers keep the memory until this returns, and leave it alone until then.
            let started = if count == 0 { 0 } else { unsafe { self.storage.start_run(&left[..count]) } };
            left = &left[started..];
            if started == 0 {
                self.storage.poll(&mut |token, result| results[token as usize] = Some(result));
                std::thread::yield_now();
            }
        }
        results.into_iter().map(|result| result.expect("each comes back")).collect()
    }

    fn write(&mut self, block: u64, byte: u8, count: usize) {
        let mut blocks = vec![Block([byte; BLOCK_BYTES]); count];
        let operation = self.operation(IoDirection::Write, block, &mut blocks, 0);
        self.go(&[operation], false).remove(0).unwrap_or_else(|error| panic!("{}: {error}", self.what));
    }

    fn read(&mut self, block: u64, count: usize) -> Vec<u8> {
        let mut blocks = vec![Block([0xFF; BLOCK_BYTES]); count];
        let operation = self.operation(IoDirection::Read, block, &mut blocks, 0);
        self.go(&[operation], false).remove(0).unwrap_or_else(|error| panic!("{}: {error}", self.what));
        bytes_of(&blocks)
    }

    /// Asserts that a read of `count` blocks returns `bytes`, then zeros.
    fn sees(&mut self, block: u64, count: usize, bytes: &[u8]) {
        let read = self.read(block, count);
        let (is, zeros) = read.split_at(bytes.len());
        assert!(is == bytes && zeros.iter().all(|byte| *byte == 0), "{}: block {block}", self.what);
    }
}

fn bytes_of(blocks: &[Block]) -> Vec<u8> {
    blocks.iter().flat_map(|block| block.0).collect()
}

#[test]
fn behind_its_end_a_file_reads_as_zeros() {
    each(|world| {
        world.sees(0, 3, &[]);
        world.write(0, 7, 9);
        assert_eq!(world.file.size_bytes().unwrap(), 9 * BLOCK);
        world.sees(0, 9, &[7; 9 * BLOCK_BYTES]);
        world.sees(0, 20, &[7; 9 * BLOCK_BYTES]);
        world.sees(9, 2, &[]);
        world.sees(1 << 30, 2, &[]);
        for end_bytes in [8 * BLOCK + 1, 8 * BLOCK, 6 * BLOCK + 513, BLOCK - 1] {
            world.file.set_size(end_bytes).unwrap();
            world.sees(0, 20, &vec![7; end_bytes as usize]);
            let last = end_bytes / BLOCK;
            world.sees(last, 1, &vec![7; (end_bytes % BLOCK) as usize]);
            world.sees(last + 1, 1, &[]);
        }
        assert_eq!(world.file.size_bytes().unwrap(), BLOCK - 1);
        world.file.sync().unwrap();
    });
}

#[test]
fn writes_make_a_file_longer_and_leave_holes() {
    each(|world| {
        world.write(5, 1, 2);
        assert_eq!(world.file.size_bytes().unwrap(), 7 * BLOCK);
        world.sees(0, 5, &[]);
        world.sees(5, 3, &[1; 2 * BLOCK_BYTES]);
        // The truncated part does not come back.
        world.file.set_size(5 * BLOCK + 100).unwrap();
        world.file.set_size(7 * BLOCK).unwrap();
        world.sees(5, 3, &[1; 100]);
        world.write(100, 2, 1);
        world.sees(100, 3, &[2; BLOCK_BYTES]);
        assert_eq!(world.other.size_bytes().unwrap(), 101 * BLOCK);
        world.file.allocate(100 * BLOCK + 1, 2 * BLOCK).unwrap();
        assert_eq!(world.file.size_bytes().unwrap(), 102 * BLOCK + 1);
        world.sees(100, 3, &[2; BLOCK_BYTES]);
        world.file.allocate(0, BLOCK).unwrap();
        assert_eq!(world.file.size_bytes().unwrap(), 102 * BLOCK + 1);
    });
}

#[test]
fn somebody_else_may_cut_a_file() {
    each(|world| {
        world.write(0, 3, 12);
        world.other.set_size(4 * BLOCK + 10).unwrap();
        world.sees(0, 12, &[3; 4 * BLOCK_BYTES + 10]);
        world.other.set_size(0).unwrap();
        world.sees(3, 5, &[]);
        assert_eq!(world.file.identity(), world.other.identity());
    });
}

#[test]
fn runs_end_behind_the_end() {
    each(|world| {
        let mut written: Vec<Block> = (1..=6).map(|byte| Block([byte; BLOCK_BYTES])).collect();
        let writes: Vec<_> = (0..)
            .zip(written.chunks_mut(2))
            .map(|(at, blocks)| world.operation(IoDirection::Write, 2 * at, blocks, at))
            .collect();
        assert!(world.go(&writes, true).iter().all(Result::is_ok), "{}", world.what);
        world.file.set_size(3 * BLOCK + 5).unwrap();
        let mut read = vec![Block([0xFF; BLOCK_BYTES]); 6];
        let reads: Vec<_> = (0..)
            .zip(read.chunks_mut(2))
            .map(|(at, blocks)| world.operation(IoDirection::Read, 2 * at, blocks, at))
            .collect();
        assert!(world.go(&reads, true).iter().all(Result::is_ok), "{}", world.what);
        let mut expected = bytes_of(&written);
        expected[3 * BLOCK_BYTES + 5..].fill(0);
        assert!(bytes_of(&read) == expected, "{}", world.what);
    });
}

#[test]
fn a_slot_is_given_again() {
    each(|world| {
        world.write(0, 1, 1);
        let first = world.slot;
        let [second, third] =
            if world.file.descriptor().is_some() { pair(&std::env::temp_dir(), true) } else { pair_in_memory(99) };
        world.slot = world.storage.add_file(Arc::new(second));
        assert!(first != world.slot && first != FileSlot::BACKING);
        world.write(0, 2, 1);
        let is_closed = Arc::downgrade(&world.file);
        world.file = Arc::new(third);
        world.storage.remove_file(first);
        assert!(is_closed.upgrade().is_none());
        world.sees(0, 1, &[2; BLOCK_BYTES]);
        let again = world.storage.add_file(Arc::clone(&world.file));
        assert_eq!(again, first);
        world.storage.remove_file(again);
        for slot in [again, FileSlot::BACKING, FileSlot(17)] {
            assert!(catch_unwind(AssertUnwindSafe(|| world.storage.remove_file(slot))).is_err());
        }
    });
}

#[test]
fn misuse_of_files_is_caught() {
    each(|world| {
        let mut blocks = vec![Block([0; BLOCK_BYTES]); 2];
        let (one, other) = blocks.split_at_mut(1);
        let one = world.operation(IoDirection::Read, 0, one, 0);
        let other = IoOperation { file: FileSlot::BACKING, ..world.operation(IoDirection::Read, 1, other, 1) };
        let nowhere = IoOperation { file: FileSlot(9), ..one };
        let behind = IoOperation { offset_bytes: 1 << 63, ..one };
        for run in [&[one, other][..], &[nowhere], &[behind]] {
            // SAFETY: nothing is started; the memory would outlive it.
            let start = AssertUnwindSafe(|| unsafe { world.storage.start_run(run) });
            let is_caught = catch_unwind(start).is_err();
            // `MemoryStorage` starts a run one by one and does not check it.
            assert!(is_caught || world.what.starts_with("memory") && run.len() == 2, "{}", world.what);
            while world.storage.in_flight() > 0 {
                world.storage.poll(&mut |_, _| ());
            }
        }
    });
}

#[test]
fn threads_read_files_that_were_added_later() {
    each(|world| {
        world.write(1, 4, 5);
        world.file.set_size(5 * BLOCK + 9).unwrap();
        let reader = world.storage.reader(world.slot);
        let mut blocks = vec![Block([0xFF; BLOCK_BYTES]); 8];
        let operation = world.operation(IoDirection::Read, 1, &mut blocks, 0);
        let Some(reader) = reader else {
            assert!(world.what.starts_with("memory"));
            return;
        };
        world.storage.remove_file(world.slot);
        // SAFETY: the memory is left alone until this returns.
        unsafe { reader.read(&operation) }.unwrap();
        let bytes = bytes_of(&blocks);
        assert!(bytes[..4 * BLOCK_BYTES + 9].iter().all(|byte| *byte == 4), "{}", world.what);
        assert!(bytes[4 * BLOCK_BYTES + 9..].iter().all(|byte| *byte == 0), "{}", world.what);
    });
}

#[test]
fn files_in_memory_fail_as_set() {
    let twin = MemoryFile::new(1, 5);
    let file = Arc::new(NamedFile::in_memory(&twin, &BOTH).unwrap());
    let (mut storage, other) = (memory(5), NamedFile::in_memory(&twin, &BOTH).unwrap());
    let slot = storage.add_file(Arc::clone(&file));
    let mut world = World { what: "memory".into(), storage, file, slot, other };
    let mut errno = |direction, block, count| {
        let mut blocks = vec![Block([1; BLOCK_BYTES]); count];
        let operation = world.operation(direction, block, &mut blocks, 0);
        world.go(&[operation], false).remove(0).err().and_then(|error| error.raw_os_error())
    };
    twin.limit_space(3);
    assert_eq!(errno(IoDirection::Write, 8, 2), None);
    assert_eq!(errno(IoDirection::Write, 0, 2), Some(libc::ENOSPC));
    assert_eq!(errno(IoDirection::Write, 8, 2), None, "these have their space");
    twin.limit_space(usize::MAX);
    twin.configure(|faults| faults.fail_at(5 * BLOCK..5 * BLOCK + 1));
    assert_eq!(errno(IoDirection::Read, 4, 3), Some(libc::EIO));
    assert_eq!(errno(IoDirection::Write, 3, 3), Some(libc::EIO));
    assert_eq!(errno(IoDirection::Read, 0, 5), None);
    twin.configure(Faults::heal);
    assert_eq!(errno(IoDirection::Read, 4, 3), None);
    twin.fail_syncs(Some(libc::EIO));
    assert_eq!(world.file.sync().unwrap_err().raw_os_error(), Some(libc::EIO));
    let read_only = NamedFile::in_memory(&twin, &NamedOptions { write: false, ..BOTH }).unwrap();
    assert_eq!(read_only.set_size(0).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    assert_eq!(twin.bytes().len() as u64, world.file.size_bytes().unwrap());
}

#[test]
fn a_file_that_refuses_a_block_goes_through_the_page_cache() {
    let [file, _other] = pair(&std::env::temp_dir(), false);
    let mut block = vec![Block([0; BLOCK_BYTES]); 1];
    let memory = block.as_mut_ptr().cast();
    let read = IoOperation {
        file: FileSlot(1),
        direction: IoDirection::Read,
        offset_bytes: 0,
        memory,
        len_bytes: BLOCK_BYTES,
        token: 0,
        is_urgent: true,
    };
    let refused = || Err(io::Error::from_raw_os_error(libc::EINVAL));
    // Both operations in flight are refused, and each tries again once.
    let [mut one, mut other] = [(); 2].map(|()| Progress::new(read, 0));
    assert!(matches!(one.advance(refused(), Some(&file)), Step::Continue));
    assert!(!file.is_direct());
    assert!(matches!(other.advance(refused(), Some(&file)), Step::Continue));
    let Step::Complete(Err(error)) = one.advance(refused(), Some(&file)) else { panic!("it fails for another reason") };
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn a_part_of_a_block_is_read_again_unless_the_file_ends() {
    let twin = MemoryFile::new(1, 1);
    let file = NamedFile::in_memory(&twin, &BOTH).unwrap();
    file.set_size(3 * BLOCK).unwrap();
    let mut blocks = vec![Block([0xFF; BLOCK_BYTES]); 4];
    let read = IoOperation {
        file: FileSlot(1),
        direction: IoDirection::Read,
        offset_bytes: 0,
        memory: blocks.as_mut_ptr().cast(),
        len_bytes: 4 * BLOCK_BYTES,
        token: 0,
        is_urgent: true,
    };
    let mut progress = Progress::new(read, 0);
    assert!(matches!(progress.advance(Ok(BLOCK_BYTES + 5), Some(&file)), Step::Continue));
    assert_eq!(progress.request(1 << 20).offset_bytes, BLOCK);
    // The attempts are bounded.
    let steps = (0..100).position(|_| matches!(progress.advance(Ok(5), Some(&file)), Step::Complete(Err(_))));
    assert!(steps.is_some_and(|steps| steps > 2));
    let mut progress = Progress::new(read, 0);
    file.set_size(BLOCK + 5).unwrap();
    assert!(matches!(progress.advance(Ok(BLOCK_BYTES + 5), Some(&file)), Step::Complete(Ok(()))));
    let bytes = bytes_of(&blocks);
    assert!(bytes[..BLOCK_BYTES + 5].iter().all(|byte| *byte == 0xFF));
    assert!(bytes[BLOCK_BYTES + 5..].iter().all(|byte| *byte == 0));
}

/// The expected contents of a file.
struct Model(Vec<u8>);

impl Model {
    fn write(&mut self, start_bytes: usize, bytes: &[u8]) {
        self.0.resize(self.0.len().max(start_bytes + bytes.len()), 0);
        self.0[start_bytes..][..bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, start_bytes: usize, len_bytes: usize) -> Vec<u8> {
        let mut bytes = self.0.get(start_bytes..).unwrap_or_default().to_vec();
        bytes.resize(len_bytes, 0);
        bytes
    }
}

/// Concurrent operations, some of them runs, on parts without overlap.
fn some_operations(world: &mut World, model: &mut Model, random: &mut SplitMix) {
    const PART_BLOCKS: u64 = 8;
    let direction = |random: &mut SplitMix| [IoDirection::Read, IoDirection::Write][random.below(2) as usize];
    let is_run = random.below(3) == 0;
    let of_run = direction(random);
    let mut parts: Vec<(u64, IoDirection, Vec<Block>)> = Vec::new();
    let mut next = random.below(20);
    for _ in 0..=random.below(2 * DEPTH as u64) {
        let count = 1 + random.below(PART_BLOCKS);
        let blocks = (0..count).map(|_| Block([random.below(256) as u8; BLOCK_BYTES])).collect();
        parts.push((next, if is_run { of_run } else { direction(random) }, blocks));
        next += count + if is_run { 0 } else { random.below(PART_BLOCKS) };
    }
    let written: Vec<Vec<u8>> = parts.iter().map(|part| bytes_of(&part.2)).collect();
    let operations: Vec<IoOperation> = (0..)
        .zip(&mut parts)
        .map(|(token, (block, direction, blocks))| world.operation(*direction, *block, blocks, token))
        .collect();
    assert!(world.go(&operations, is_run).iter().all(Result::is_ok), "{}", world.what);
    for ((block, direction, blocks), written) in parts.iter().zip(written) {
        let start_bytes = *block as usize * BLOCK_BYTES;
        match direction {
            IoDirection::Write => model.write(start_bytes, &written),
            IoDirection::Read => {
                let is_right = bytes_of(blocks) == model.read(start_bytes, written.len());
                assert!(is_right, "{}: {} blocks at {block}", world.what, blocks.len());
            }
        }
    }
}

#[test]
fn every_storage_does_to_a_file_what_the_model_does() {
    for seed in 0..4 {
        each(|world| {
            world.what += &format!(", sequence {seed}");
            let (mut model, mut random) = (Model(Vec::new()), SplitMix(seed));
            for _ in 0..60 {
                let size_bytes = random.below(40 * BLOCK);
                match random.below(8) {
                    0 => {
                        let by = if random.below(2) == 0 { &*world.file } else { &world.other };
                        by.set_size(size_bytes).unwrap();
                        model.0.resize(size_bytes as usize, 0);
                    }
                    1 => {
                        let len_bytes = 1 + random.below(3 * BLOCK);
                        world.file.allocate(size_bytes, len_bytes).unwrap();
                        model.0.resize(model.0.len().max((size_bytes + len_bytes) as usize), 0);
                    }
                    _ => some_operations(world, &mut model, &mut random),
                }
                assert_eq!(world.other.size_bytes().unwrap(), model.0.len() as u64, "{}", world.what);
            }
            world.file.sync().unwrap();
            let blocks = model.0.len().div_ceil(BLOCK_BYTES).max(1);
            world.sees(0, blocks, &model.0);
        });
    }
}
