//! The in-memory twin of a named file, shared by several ranks of a simulation.

use super::BLOCK_BYTES;
use super::faults::{Faults, SplitMix};
use super::operation::{IoOperation, Request};
use super::volatile::{Medium, bytes_of};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A sparse file in memory. A clone is the same file. Its faults are drawn from its seed.
#[derive(Debug, Clone)]
pub struct MemoryFile(Arc<Mutex<Contents>>);

#[derive(Debug)]
struct Contents {
    number: u64,
    /// The last block has zeros behind the end of the file.
    blocks: BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>,
    size_bytes: u64,
    random: SplitMix,
    faults: Faults,
    blocks_max: usize,
    short_one_in: Option<u64>,
    sync_errno: Option<i32>,
    medium: Medium,
    are_syncs_lost: bool,
}

impl MemoryFile {
    /// An empty file. `number` is unique in the simulation.
    pub fn new(number: u64, seed: u64) -> MemoryFile {
        MemoryFile(Arc::new(Mutex::new(Contents {
            number,
            blocks: BTreeMap::new(),
            size_bytes: 0,
            random: SplitMix(seed),
            faults: Faults::default(),
            blocks_max: usize::MAX,
            short_one_in: None,
            sync_errno: None,
            medium: Medium::default(),
            are_syncs_lost: false,
        })))
    }

    /// Changes the faults of operations.
    pub fn configure(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state().faults);
    }

    /// From now on the file has space for `blocks_max` blocks, holes not counted. A write without space fails with
    /// `ENOSPC` after writing the blocks that fit.
    pub fn limit_space(&self, blocks_max: usize) {
        self.state().blocks_max = blocks_max;
    }

    /// From now on one in `one_in` requests longer than a block moves fewer bytes than requested, as a kernel may.
    ///
    /// # Panics
    /// If `one_in` is 0.
    pub fn shorten_one_in(&self, one_in: u64) {
        assert!(one_in > 0, "a probability has a denominator");
        self.state().short_one_in = Some(one_in);
    }

    /// From now on syncs fail with `errno`, or succeed with `None`.
    pub fn fail_syncs(&self, errno: Option<i32>) {
        self.state().sync_errno = errno;
    }

    /// From now on a sync does nothing and reports success. A test has to detect it.
    pub fn lose_syncs(&self) {
        self.state().are_syncs_lost = true;
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let state = self.state();
        bytes_of(&state.blocks, state.size_bytes)
    }

    /// The bytes of the file after a crash at this time: some unsynced sectors of 512 bytes, drawn from the seed, are
    /// lost.
    pub fn after_crash(&self, seed: u64) -> Vec<u8> {
        let state = self.state();
        state.medium.after_crash(&state.blocks, state.size_bytes, &mut SplitMix(seed))
    }

    /// Whether a block of the file has these bytes. Unwritten blocks and blocks behind the end have zeros.
    pub fn has_block(&self, index: u64, bytes: &[u8; BLOCK_BYTES]) -> bool {
        self.state().blocks.get(&index).map_or(&[0; BLOCK_BYTES], |block| &**block) == bytes
    }

    pub(super) fn identity(&self) -> (u64, u64) {
        (0, self.state().number)
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.state().size_bytes
    }

    pub(super) fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        if i64::try_from(size_bytes).is_err() {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        let mut state = self.state();
        let (last, kept_bytes) = (size_bytes / BLOCK_BYTES as u64, size_bytes as usize % BLOCK_BYTES);
        drop(state.blocks.split_off(&size_bytes.div_ceil(BLOCK_BYTES as u64)));
        if let Some(block) = state.blocks.get_mut(&last) {
            block[kept_bytes..].fill(0);
        }
        state.size_bytes = size_bytes;
        let Contents { medium, blocks, .. } = &mut *state;
        medium.note_cut(last + u64::from(kept_bytes > 0));
        if blocks.contains_key(&last) {
            medium.note_changed(last);
        }
        Ok(())
    }

    pub(super) fn allocate(&self, from_bytes: u64, end_bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        for index in from_bytes / BLOCK_BYTES as u64..end_bytes.div_ceil(BLOCK_BYTES as u64) {
            state.block(index).ok_or_else(no_space)?;
        }
        state.medium.note_grown();
        state.size_bytes = state.size_bytes.max(end_bytes);
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        let Contents { sync_errno, medium, blocks, size_bytes, random, are_syncs_lost, .. } = &mut *self.state();
        match sync_errno {
            None if *are_syncs_lost => Ok(()),
            Some(errno) => {
                medium.forget(blocks, *size_bytes, random);
                Err(io::Error::from_raw_os_error(*errno))
            }
            None => {
                medium.sync(blocks, *size_bytes);
                Ok(())
            }
        }
    }

    /// Whether this operation, started now, fails.
    pub(super) fn strike(&self, operation: &IoOperation) -> bool {
        let Contents { faults, random, .. } = &mut *self.state();
        faults.strike(operation, random)
    }

    /// # Safety
    /// The memory of the request is valid for writes, and nothing else accesses it during the call.
    pub(super) unsafe fn read(&self, request: &Request) -> io::Result<usize> {
        let mut state = self.state();
        let asked_bytes = state.shorten(request.len_bytes);
        let len_bytes = state.size_bytes.saturating_sub(request.offset_bytes).min(asked_bytes as u64) as usize;
        for start_bytes in (0..len_bytes).step_by(BLOCK_BYTES) {
            let index = (request.offset_bytes + start_bytes as u64) / BLOCK_BYTES as u64;
            let block = state.blocks.get(&index).map_or(&[0; BLOCK_BYTES], |block| &**block);
            let count_bytes = BLOCK_BYTES.min(len_bytes - start_bytes);
            let memory = request.pointer.wrapping_add(start_bytes);
            // SAFETY: this is a part of the request's memory, and the block has `count_bytes` bytes.
            unsafe { memory.copy_from_nonoverlapping(block.as_ptr(), count_bytes) };
        }
        Ok(len_bytes)
    }

    /// # Safety
    /// The memory of the request is valid for reads, and nothing writes to it during the call.
    pub(super) unsafe fn write(&self, request: &Request) -> io::Result<usize> {
        let mut state = self.state();
        let len_bytes = state.shorten(request.len_bytes) / BLOCK_BYTES * BLOCK_BYTES;
        let mut done_bytes = 0;
        while done_bytes < len_bytes {
            let end_bytes = request.offset_bytes + done_bytes as u64;
            let Some(block) = state.block(end_bytes / BLOCK_BYTES as u64) else { break };
            let memory = request.pointer.wrapping_add(done_bytes);
            // SAFETY: this is a block of the request's memory.
            unsafe { block.as_mut_ptr().copy_from_nonoverlapping(memory, BLOCK_BYTES) };
            done_bytes += BLOCK_BYTES;
            state.medium.note_changed(end_bytes / BLOCK_BYTES as u64);
            state.medium.note_grown();
            state.size_bytes = state.size_bytes.max(end_bytes + BLOCK_BYTES as u64);
        }
        if done_bytes == 0 { Err(no_space()) } else { Ok(done_bytes) }
    }

    fn state(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().expect("nothing panics under this lock")
    }
}

impl Contents {
    /// A block of the file, allocated if missing; `None` if there is no space.
    fn block(&mut self, index: u64) -> Option<&mut [u8; BLOCK_BYTES]> {
        let has_space = self.blocks.contains_key(&index) || self.blocks.len() < self.blocks_max;
        has_space.then(|| &mut **self.blocks.entry(index).or_insert_with(|| Box::new([0; BLOCK_BYTES])))
    }

    /// Bytes done of a request of `len_bytes`: at least a block.
    fn shorten(&mut self, len_bytes: usize) -> usize {
        let is_long = len_bytes > BLOCK_BYTES;
        let Some(one_in) = self.short_one_in.filter(|_| is_long) else { return len_bytes };
        let is_short = self.random.below(one_in) == 0;
        if is_short { BLOCK_BYTES + self.random.below((len_bytes - BLOCK_BYTES) as u64) as usize } else { len_bytes }
    }
}

fn no_space() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOSPC)
}
