//! The kinds of storage, memory for their operations, and ways to wait.

use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use vgasnet_storage::{
    BLOCK_BYTES, BackingFile, Busy, FileSlot, IoDirection, IoOperation, MemoryStorage, RingStorage, Storage,
    ThreadStorage,
};

/// A directory on a disk: the one made by Cargo for this test.
pub fn disk() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Prints that something is not tested, on the real stderr: the test harness hides the output of `eprintln`.
pub fn skip(why: &str) {
    io::stderr().write_all(format!("NOT RUN: {why}\n").as_bytes()).unwrap();
}

const TMPFS: &str = "/dev/shm";

/// Runs `body` on every kind of storage, each with a file of `size_bytes` and `depth` operations in flight.
pub fn each_owned(size_bytes: u64, depth: usize, mut body: impl FnMut(Box<dyn Storage>)) {
    for dir in [disk().as_path(), Path::new(TMPFS)] {
        if dir == Path::new(TMPFS) && nix::unistd::access(dir, nix::unistd::AccessFlags::W_OK).is_err() {
            skip(&format!("storage in {TMPFS}, which this container does not have for this user"));
            continue;
        }
        let file = || BackingFile::create(dir, size_bytes).unwrap();
        match RingStorage::new(file(), depth) {
            Ok(ring) => body(Box::new(ring)),
            Err(refused) => skip(&format!("no io_uring here: {}", refused.error)),
        }
        body(Box::new(ThreadStorage::new(file(), depth).unwrap()));
    }
    for seed in 0..3 {
        body(Box::new(MemoryStorage::new(size_bytes, depth, seed)));
    }
}

/// As [`each_owned`], for a body that does not drop the storage.
pub fn each_storage(size_bytes: u64, depth: usize, mut body: impl FnMut(&mut dyn Storage)) {
    each_owned(size_bytes, depth, |mut storage| body(&mut *storage));
}

/// Whether the doorbell of `storage` becomes readable within `limit`.
pub fn is_readable(storage: &dyn Storage, limit: Duration) -> bool {
    let doorbell = storage.doorbell().expect("this storage has a doorbell");
    let limit = PollTimeout::try_from(limit).unwrap();
    loop {
        match poll(&mut [PollFd::new(doorbell, PollFlags::POLLIN)], limit) {
            Err(nix::Error::EINTR) => {}
            ready => return ready.unwrap() == 1,
        }
    }
}

/// Polls, and first sleeps if there is a doorbell. At least one operation must be in flight.
pub fn settle(storage: &mut dyn Storage, sink: &mut dyn FnMut(u64, io::Result<()>)) {
    if storage.doorbell().is_some() {
        assert!(is_readable(storage, Duration::from_secs(20)), "asleep with {} in flight", storage.in_flight());
    }
    storage.poll(sink);
}

#[repr(align(4096))]
#[derive(Clone)]
struct Block([u8; BLOCK_BYTES]);

/// Memory for pages of one size.
pub struct Pages {
    blocks: Vec<Block>,
    blocks_per_page: usize,
}

impl Pages {
    pub fn new(count: usize, page_bytes: usize) -> Pages {
        let blocks_per_page = page_bytes / BLOCK_BYTES;
        Pages { blocks: vec![Block([0xEE; BLOCK_BYTES]); count * blocks_per_page], blocks_per_page }
    }

    pub fn range(&mut self) -> (*mut u8, usize) {
        (self.blocks.as_mut_ptr().cast(), self.blocks.len() * BLOCK_BYTES)
    }

    /// Starts an operation on `page`. Tests keep the pages until the storage is done or dropped, and look at a page
    /// only after its operation has been handed out.
    pub fn start(
        &mut self,
        storage: &mut dyn Storage,
        direction: IoDirection,
        offset_bytes: u64,
        page: usize,
        token: u64,
    ) -> Result<(), Busy> {
        let operation = IoOperation { token, ..self.operation(direction, offset_bytes, page) };
        // SAFETY: the page is long enough. Tests keep it and leave it alone until the operation has been handed out or
        // the storage dropped.
        unsafe { storage.start(operation) }
    }

    /// An operation on a whole page.
    pub fn operation(&mut self, direction: IoDirection, offset_bytes: u64, page: usize) -> IoOperation {
        let memory: *mut u8 = self.page(page).as_mut_ptr().cast();
        IoOperation {
            file: FileSlot::BACKING,
            direction,
            offset_bytes,
            memory,
            len_bytes: self.blocks_per_page * BLOCK_BYTES,
            token: 0,
            is_urgent: true,
        }
    }

    /// Writes a pattern that depends on `key` and on the place of each block in the page.
    pub fn fill(&mut self, page: usize, key: u64) {
        for (index, block) in self.page(page).iter_mut().enumerate() {
            block.0 = pattern(key, index);
        }
    }

    pub fn clear(&mut self, page: usize) {
        self.page(page).iter_mut().for_each(|block| block.0.fill(0xEE));
    }

    pub fn holds(&mut self, page: usize, key: u64) -> bool {
        self.page(page).iter().enumerate().all(|(index, block)| block.0 == pattern(key, index))
    }

    pub fn is_zero(&mut self, page: usize) -> bool {
        self.page(page).iter().all(|block| block.0 == [0; BLOCK_BYTES])
    }

    fn page(&mut self, page: usize) -> &mut [Block] {
        &mut self.blocks[page * self.blocks_per_page..][..self.blocks_per_page]
    }
}

fn pattern(key: u64, index: usize) -> [u8; BLOCK_BYTES] {
    let word = (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index as u64;
    let mut block = [0; BLOCK_BYTES];
    block.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&word.to_le_bytes()));
    block
}

/// Runs `body` with an empty directory for mounts, in a thread with its own mounts, which end with it.
pub fn own_mounts(name: &str, body: impl FnOnce(&Path) + Send) {
    let dir = disk().join(name);
    fs::create_dir_all(&dir).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let none: Option<&str> = None;
            let unshared = unshare(CloneFlags::CLONE_NEWNS)
                .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none));
            match unshared {
                Ok(()) => body(&dir),
                Err(error) => skip(&format!("{name}: this user cannot mount: {error}")),
            }
        });
    });
    fs::remove_dir(&dir).unwrap();
}
