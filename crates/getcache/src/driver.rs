//! The state machine's access to the state shared by all threads.

use crate::barrier;
use crate::entry::Bytes;
use crate::memory::Memory;
use crate::shared::Shared;
use crate::sync::{Ordering, fence};
use crate::threads;
use std::ptr::NonNull;
use std::sync::Arc;
use vgasnet_protocol::get_cache::{Clock, EntryId, Hasher, Heat, Mirror, Opened, Seen, UNIT_BYTES};

/// Carries out the machine's decisions. All calls are made under the cache's lock.
pub(crate) struct Driver<M: Memory> {
    pub shared: Arc<Shared>,
    memory: M,
    chunk_bytes: usize,
    chunks: Vec<NonNull<u8>>,
    hasher: Hasher,
    /// Numbers of the reading threads.
    readers: Vec<u32>,
    /// Closes by threads other than the only reader since the last review of readers.
    closes: u64,
}

/// Readers go unfenced if at most `CLOSES_MAX` closes occurred while one of them hit 2^`HITS_A_LOOK_LOG2` times.
const CLOSES_MAX: u64 = 16;
pub(crate) const HITS_A_LOOK_LOG2: u32 = 14;

// SAFETY: the driver owns the chunks, and memory may be sent.
unsafe impl<M: Memory> Send for Driver<M> {}

impl<M: Memory> Driver<M> {
    pub fn new(shared: Arc<Shared>, memory: M, chunk_bytes: usize, hasher: Hasher) -> Driver<M> {
        Driver { shared, memory, chunk_bytes, chunks: Vec::new(), hasher, readers: Vec::new(), closes: 0 }
    }

    /// Registers a reading thread.
    pub fn add_reader(&mut self, number: u32) {
        let shard = self.shared.readers.shard(number);
        if shard.is_some_and(|shard| !shard.is_known.swap(true, Ordering::Relaxed)) {
            self.readers.push(number);
        }
    }

    /// Lets readers go without barriers, if closes were rare lately.
    pub fn look_at_readers(&mut self) {
        if std::mem::take(&mut self.closes) <= CLOSES_MAX && barrier::is_there() {
            self.shared.readers.set_fenced(false);
        }
    }

    /// Ensures that later readers see earlier closes.
    fn settle(&mut self) {
        // The only reader does not read while it closes, or it set its mark earlier in program order.
        if self.readers.iter().all(|number| *number == threads::known()) {
            return;
        }
        self.closes += 1;
        if self.shared.readers.is_fenced() {
            fence(Ordering::SeqCst);
        } else {
            self.shared.readers.set_fenced(true);
            barrier::everywhere();
        }
    }

    /// Whether an entry's bytes may be in use. Once it is closed and settled, no new use begins.
    fn is_used(&self, entry: EntryId) -> bool {
        let entry = self.shared.entry(entry);
        entry.is_pinned() || self.shared.readers.are_reading(&self.readers, entry.mark())
    }

    /// Address of a place in the arena.
    pub fn data(&self, place: u32) -> NonNull<u8> {
        let at = place as usize * UNIT_BYTES as usize;
        let chunk = self.chunks[at / self.chunk_bytes];
        // SAFETY: a chunk has `chunk_bytes` bytes.
        unsafe { chunk.add(at % self.chunk_bytes) }
    }
}

impl<M: Memory> Mirror for Driver<M> {
    fn slot(&self, at: u32) -> u64 {
        self.shared.slot(at).load(Ordering::Relaxed)
    }

    fn set_slot(&mut self, at: u32, slot: u64) {
        self.shared.slot(at).store(slot, Ordering::Relaxed);
    }

    fn set_buckets(&mut self, buckets: u32) {
        self.shared.buckets.store(buckets, Ordering::Relaxed);
    }

    fn set_generation(&mut self, place: usize, generation: u32) {
        self.shared.generations[place].store(generation, Ordering::Release);
    }

    fn open(&mut self, entry: EntryId, opened: &Opened) {
        let bytes = Bytes { data: self.data(opened.place).as_ptr(), len: opened.len };
        self.shared.entry(entry).open(&opened.key, self.hasher.hash(&opened.key), opened.generation, bytes);
    }

    fn lengthen(&mut self, entry: EntryId, len: u32) {
        self.shared.entry(entry).lengthen(len);
    }

    fn pin(&mut self, entry: EntryId) {
        self.shared.entry(entry).pin();
    }

    fn try_close(&mut self, entry: EntryId) -> bool {
        if self.shared.entry(entry).is_pinned() {
            return false;
        }
        self.close(entry);
        let is_used = self.is_used(entry);
        if is_used {
            self.shared.entry(entry).reopen();
        }
        !is_used
    }

    fn close(&mut self, entry: EntryId) {
        self.shared.entry(entry).close();
        self.settle();
    }

    fn is_pinned(&self, entry: EntryId) -> bool {
        self.is_used(entry)
    }

    fn heat(&self, entry: EntryId) -> Heat {
        self.shared.entry(entry).heat()
    }

    fn set_heat(&mut self, entry: EntryId, heat: Heat) {
        self.shared.entry(entry).set_heat(heat);
    }

    fn set_clock(&mut self, clock: Clock) {
        self.shared.set_clock(clock);
    }

    fn seen(&self) -> Seen {
        self.shared.readers.sum(&self.readers)
    }

    fn set_dormant(&mut self, is_dormant: bool) {
        self.shared.is_dormant.store(is_dormant, Ordering::Relaxed);
    }

    fn add_chunk(&mut self) -> bool {
        let chunk = self.memory.allocate(self.chunk_bytes);
        if chunk.is_none() && self.chunks.is_empty() {
            self.shared.is_off.store(true, Ordering::Relaxed);
            self.memory.on_refused();
        }
        if let Some(chunk) = chunk {
            self.shared.arena.set_chunk(self.chunks.len(), chunk.as_ptr());
            self.chunks.push(chunk);
        }
        chunk.is_some()
    }

    fn remove_chunk(&mut self) {
        let chunk = self.chunks.pop().expect("the arena has a chunk");
        self.memory.free(chunk, self.chunk_bytes);
    }
}

impl<M: Memory> Drop for Driver<M> {
    fn drop(&mut self) {
        self.chunks.drain(..).for_each(|chunk| self.memory.free(chunk, self.chunk_bytes));
    }
}
