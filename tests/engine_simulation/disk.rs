//! A rank's disk: a storage in memory, open to inspection by the test.

use crate::files::RankIo;
use crate::job::PAGE_BYTES;
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use vgasnet_storage::{
    BLOCK_BYTES, BlockingReader, Busy, FileSlot, IoDirection, IoOperation, MemoryStorage, NamedFile, Storage,
};

/// The engine's storage, and the test's view of it.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

struct State {
    storage: MemoryStorage,
    pending: HashMap<u64, Pending>,
    /// The written blocks, by offset. All other blocks are zeros.
    written: HashMap<u64, Vec<u8>>,
    failed: Vec<(&'static str, u64)>,
    files: HashMap<FileSlot, Arc<NamedFile>>,
    /// The I/O this rank may do on named files, by their identity.
    expected: HashMap<(u64, u64), RankIo>,
    /// Writes to named files started so far.
    file_writes: u64,
    /// With `Some(n)`, threads may read named files themselves, and one in `n` of these reads fails.
    thread_reads: Option<u64>,
    thread_reads_begun: u64,
    /// The offsets of all reads started so far.
    reads: Vec<u64>,
    /// The offsets and lengths of all writes started so far.
    writes: Vec<(u64, usize)>,
    /// The disk is full, and writes wait.
    is_full: bool,
    /// Waiting writes. They do not count as in flight, so that a simulation with nothing else to do ends.
    waiting: Vec<IoOperation>,
}

/// An operation in flight.
struct Pending {
    file: FileSlot,
    verb: &'static str,
    offset_bytes: u64,
    len_bytes: usize,
    /// For a write, the address of its bytes and their values at the start.
    source: Option<(usize, Vec<u8>)>,
}

#[repr(align(4096))]
struct Page([u8; PAGE_BYTES]);

impl Disk {
    pub fn new(storage: MemoryStorage) -> Disk {
        let (pending, written, failed, waiting) = (HashMap::new(), HashMap::new(), Vec::new(), Vec::new());
        Disk(Arc::new(Mutex::new(State {
            storage,
            pending,
            written,
            failed,
            files: HashMap::new(),
            expected: HashMap::new(),
            file_writes: 0,
            thread_reads: None,
            thread_reads_begun: 0,
            reads: Vec::new(),
            writes: Vec::new(),
            is_full: false,
            waiting,
        })))
    }

    /// From now on writes wait for space.
    pub fn fill_up(&self) {
        self.state().is_full = true;
    }

    /// Writes find space again.
    pub fn give_space(&self) {
        let waiting = {
            let mut state = self.state();
            state.is_full = false;
            std::mem::take(&mut state.waiting)
        };
        for write in waiting {
            // SAFETY: the caller of `start` has left the memory to the operation until the token comes back.
            unsafe { self.clone().start(write) }.expect("there is room for as many writes as there is staging");
        }
    }

    /// The failed operations reported to the engine.
    pub fn failed(&self) -> Vec<(&'static str, u64)> {
        self.state().failed.clone()
    }

    /// The offsets of all reads started so far, in order.
    pub fn reads(&self) -> Vec<u64> {
        self.state().reads.clone()
    }

    /// The offsets and lengths of all writes started so far, in order.
    pub fn writes(&self) -> Vec<(u64, usize)> {
        self.state().writes.clone()
    }

    /// This rank has a named file open, and may do the I/O of its own pages on it.
    pub fn expect_file(&self, file: &NamedFile, io: RankIo) {
        self.state().expected.insert(file.identity(), io);
    }

    /// This rank does no more I/O on a named file.
    pub fn forget_file(&self, file: &NamedFile) {
        self.state().expected.remove(&file.identity());
        assert!(self.state().files.values().all(|open| open.identity() != file.identity()), "a closed file has a slot");
    }

    /// Writes to named files started so far.
    pub fn file_writes(&self) -> u64 {
        self.state().file_writes
    }

    /// Threads may read named files themselves from now on. One in `one_in` of these reads fails.
    pub fn let_threads_read(&self, one_in: u64) {
        self.state().thread_reads = Some(one_in);
    }

    /// Started writes of less than a page.
    pub fn partial(&self) -> u64 {
        self.state().writes.iter().filter(|(_, len_bytes)| *len_bytes < PAGE_BYTES).count() as u64
    }

    /// Whether a block of a page has these bytes now. A block that was never written is zeros.
    pub fn has_block(&self, index: u32, block: usize, bytes: &[u8]) -> bool {
        let written = &self.state().written;
        let block = written.get(&(offset_of(index) + (block * BLOCK_BYTES) as u64));
        block.map_or_else(|| bytes.iter().all(|byte| *byte == 0), |block| block == bytes)
    }

    /// Injects faults into the storage.
    pub fn configure(&self, change: impl FnOnce(&mut MemoryStorage)) {
        change(&mut self.state().storage);
    }

    /// Reads a page from the storage while nothing is in flight. Ends all faults.
    pub fn read_page(&self, index: u32) -> Vec<u8> {
        let mut page = Box::new(Page([0xEE; PAGE_BYTES]));
        let storage = &mut self.state().storage;
        assert_eq!(storage.in_flight(), 0);
        storage.heal();
        let (direction, offset_bytes, memory) = (IoDirection::Read, offset_of(index), page.0.as_mut_ptr());
        let read = IoOperation {
            file: FileSlot::BACKING,
            direction,
            offset_bytes,
            memory,
            len_bytes: PAGE_BYTES,
            token: 0,
            is_urgent: true,
        };
        // SAFETY: the page has `PAGE_BYTES` bytes, and is looked at only after the token has come back.
        unsafe { storage.start(read) }.expect("nothing is in flight");
        while storage.in_flight() > 0 {
            storage.poll(&mut |_, result| result.expect("the disk is whole"));
        }
        page.0.to_vec()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with the disk locked")
    }
}

fn offset_of(index: u32) -> u64 {
    u64::from(index) * PAGE_BYTES as u64
}

impl Storage for Disk {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        let mut state = self.state();
        let is_named = operation.file != FileSlot::BACKING;
        if state.is_full && !is_named && operation.direction == IoDirection::Write {
            state.waiting.push(operation);
            return Ok(());
        }
        // SAFETY: the memory is valid. It is left to the operation until the token comes back, and the inner storage
        // hands the token out.
        unsafe { state.storage.start(operation)? };
        let IoOperation { file, direction, offset_bytes, memory, len_bytes, token, .. } = operation;
        let page_bytes = PAGE_BYTES as u64;
        let in_page_bytes = offset_bytes % page_bytes + len_bytes as u64;
        assert!(in_page_bytes <= page_bytes, "{len_bytes} bytes at {offset_bytes} leave their page");
        // A file expected by no rank is a rank's own: a burst buffer.
        if let Some(io) = state.files.get(&file).and_then(|named| state.expected.get(&named.identity())) {
            io.begin(direction, offset_bytes, len_bytes);
        }
        let (verb, source) = match direction {
            IoDirection::Read => {
                if !is_named {
                    state.reads.push(offset_bytes);
                }
                ("read", None)
            }
            IoDirection::Write => {
                if is_named {
                    state.file_writes += 1;
                } else {
                    state.writes.push((offset_bytes, len_bytes));
                }
                // SAFETY: the memory is valid, and no thread writes to it until the token comes back.
                let bytes = unsafe { std::slice::from_raw_parts(memory, len_bytes) };
                ("write", Some((memory.expose_provenance(), bytes.to_vec())))
            }
        };
        let before = state.pending.insert(token, Pending { file, verb, offset_bytes, len_bytes, source });
        assert!(before.is_none(), "a token is used twice");
        Ok(())
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let mut state = self.state();
        let State { storage, pending, written, failed, files, expected, .. } = &mut *state;
        storage.poll(&mut |token, result| {
            let Pending { file, verb, offset_bytes, len_bytes, source } =
                pending.remove(&token).expect("it was started");
            let is_named = file != FileSlot::BACKING;
            if let Some(io) = files.get(&file).and_then(|named| expected.get(&named.identity())) {
                io.end(offset_bytes, len_bytes);
            }
            if result.is_err() && is_named {
                return sink(token, result);
            }
            if result.is_err() {
                failed.push((verb, offset_bytes / PAGE_BYTES as u64 * PAGE_BYTES as u64));
            } else if let Some((source, before)) = source {
                let source = std::ptr::with_exposed_provenance::<u8>(source);
                // SAFETY: the write's memory has this length and is left alone until the sink below gets the token.
                let bytes = unsafe { std::slice::from_raw_parts(source, before.len()) };
                assert!(bytes == before, "the bytes at {offset_bytes} change while they are being written");
                // The tests look at the bytes of named files themselves.
                for (at, block) in bytes.chunks(BLOCK_BYTES).enumerate().filter(|_| !is_named) {
                    written.insert(offset_bytes + (at * BLOCK_BYTES) as u64, block.to_vec());
                }
            }
            sink(token, result);
        });
    }

    fn in_flight(&self) -> usize {
        self.state().storage.in_flight()
    }

    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot {
        let mut state = self.state();
        let slot = state.storage.add_file(Arc::clone(&file));
        state.files.insert(slot, file);
        slot
    }

    fn remove_file(&mut self, slot: FileSlot) {
        let mut state = self.state();
        state.storage.remove_file(slot);
        state.files.remove(&slot);
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn reader(&self, file: FileSlot) -> Option<Arc<dyn BlockingReader>> {
        if file == FileSlot::BACKING {
            return Some(Arc::new(self.clone()));
        }
        let state = self.state();
        state.thread_reads?;
        Some(Arc::new(NamedReader { disk: self.clone(), file: Arc::clone(&state.files[&file]) }))
    }
}

impl BlockingReader for Disk {
    /// Never fails.
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()> {
        let IoOperation { offset_bytes, memory, len_bytes, .. } = *operation;
        let mut state = self.state();
        state.reads.push(offset_bytes);
        for at in (0..len_bytes).step_by(BLOCK_BYTES) {
            let block = state.written.get(&(offset_bytes + at as u64));
            let source = block.map_or(&[0; BLOCK_BYTES][..], |block| &block[..]);
            // SAFETY: the memory has as many bytes, and nothing else accesses it during the call.
            unsafe { memory.wrapping_add(at).copy_from_nonoverlapping(source.as_ptr(), BLOCK_BYTES) };
        }
        Ok(())
    }
}

/// Reads of a named file by threads.
struct NamedReader {
    disk: Disk,
    file: Arc<NamedFile>,
}

impl BlockingReader for NamedReader {
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()> {
        let fails = {
            let mut state = self.disk.state();
            state.thread_reads_begun += 1;
            let io = &state.expected[&self.file.identity()];
            io.begin(IoDirection::Read, operation.offset_bytes, operation.len_bytes);
            io.end(operation.offset_bytes, operation.len_bytes);
            state.thread_reads.is_some_and(|one_in| state.thread_reads_begun % one_in == 0)
        };
        if fails {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        // SAFETY: as the caller promises.
        unsafe { self.file.read(operation) }
    }
}
