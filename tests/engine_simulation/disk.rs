//! A rank's disk: a storage in memory, into which the test can look.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use vgasnet::storage::{BLOCK_BYTES, Busy, MemoryStorage, Storage};

/// The engine's storage, and the test's view of it.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

struct State {
    storage: MemoryStorage,
    pending: HashMap<u64, Pending>,
    /// The blocks that were written, by offset.
    written: HashMap<u64, Vec<u8>>,
    failed: Option<(&'static str, u64)>,
}

/// An operation in flight.
#[derive(Clone, Copy)]
struct Pending {
    verb: &'static str,
    offset_bytes: u64,
    /// The address of the bytes of a write.
    source: Option<usize>,
}

#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

impl Disk {
    pub fn new(storage: MemoryStorage) -> Disk {
        Disk(Arc::new(Mutex::new(State { storage, pending: HashMap::new(), written: HashMap::new(), failed: None })))
    }

    /// The first failed operation of which the engine was told.
    pub fn failed(&self) -> Option<(&'static str, u64)> {
        self.state().failed
    }

    /// The bytes of a block that was written, as of now.
    pub fn written(&self, index: u32) -> Option<Vec<u8>> {
        self.state().written.get(&offset_of(index)).cloned()
    }

    /// Makes the storage fail.
    pub fn configure(&self, change: impl FnOnce(&mut MemoryStorage)) {
        change(&mut self.state().storage);
    }

    /// Reads a block from the storage, when nothing is in flight. Ends all faults.
    pub fn read_block(&self, index: u32) -> Vec<u8> {
        let mut block = Box::new(Block([0xEE; BLOCK_BYTES]));
        let storage = &mut self.state().storage;
        assert_eq!(storage.in_flight(), 0);
        storage.heal();
        // SAFETY: the block has `BLOCK_BYTES` bytes, and is looked at only after the token has come back.
        unsafe { storage.read(offset_of(index), block.0.as_mut_ptr(), BLOCK_BYTES, 0) }.expect("nothing is in flight");
        while storage.in_flight() > 0 {
            storage.poll(&mut |_, result| result.expect("the disk is whole"));
        }
        block.0.to_vec()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with the disk locked")
    }
}

fn offset_of(index: u32) -> u64 {
    u64::from(index) * BLOCK_BYTES as u64
}

impl State {
    fn note(&mut self, token: u64, pending: Pending, len_bytes: usize) {
        assert_eq!(len_bytes, BLOCK_BYTES, "a page is a block here");
        assert!(self.pending.insert(token, pending).is_none(), "a token is used twice");
    }
}

impl Storage for Disk {
    unsafe fn read(&mut self, offset_bytes: u64, memory: *mut u8, len_bytes: usize, token: u64) -> Result<(), Busy> {
        let mut state = self.state();
        // SAFETY: `memory` is valid for writes, and left alone until the token comes back, which the inner storage
        // hands out.
        unsafe { state.storage.read(offset_bytes, memory, len_bytes, token)? };
        state.note(token, Pending { verb: "read", offset_bytes, source: None }, len_bytes);
        Ok(())
    }

    unsafe fn write(&mut self, offset_bytes: u64, memory: *const u8, len_bytes: usize, token: u64) -> Result<(), Busy> {
        let mut state = self.state();
        // SAFETY: `memory` is valid for reads, and not written until the token comes back, which the inner storage
        // hands out.
        unsafe { state.storage.write(offset_bytes, memory, len_bytes, token)? };
        let source = Some(memory.expose_provenance());
        state.note(token, Pending { verb: "write", offset_bytes, source }, len_bytes);
        Ok(())
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let mut state = self.state();
        let State { storage, pending, written, failed } = &mut *state;
        storage.poll(&mut |token, result| {
            let Pending { verb, offset_bytes, source } = pending.remove(&token).expect("it was started");
            if result.is_err() {
                failed.get_or_insert((verb, offset_bytes));
            } else if let Some(source) = source {
                let source = std::ptr::with_exposed_provenance::<u8>(source);
                // SAFETY: the write's memory has a block and is left alone until the sink below has the token.
                let bytes = unsafe { std::slice::from_raw_parts(source, BLOCK_BYTES) };
                written.insert(offset_bytes, bytes.to_vec());
            }
            sink(token, result);
        });
    }

    fn in_flight(&self) -> usize {
        self.state().storage.in_flight()
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
