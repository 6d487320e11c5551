//! The state machine's side of what all threads look at.

use crate::entry::Bytes;
use crate::memory::Memory;
use crate::shared::Shared;
use crate::sync::Ordering;
use std::ptr::NonNull;
use std::sync::Arc;
use vgasnet_protocol::get_cache::{Clock, EntryId, Heat, Mirror, Opened, Seen, UNIT_BYTES};

/// Carries out what the machine decides. All of this is called under the cache's lock.
pub(crate) struct Driver<M: Memory> {
    pub shared: Arc<Shared>,
    memory: M,
    chunk_bytes: usize,
    chunks: Vec<NonNull<u8>>,
}

// SAFETY: the chunks are the driver's own, and memory may be sent.
unsafe impl<M: Memory> Send for Driver<M> {}

impl<M: Memory> Driver<M> {
    pub fn new(shared: Arc<Shared>, memory: M, chunk_bytes: usize) -> Driver<M> {
        Driver { shared, memory, chunk_bytes, chunks: Vec::new() }
    }

    /// Where a place of the arena is.
    pub fn data(&self, place: u32) -> NonNull<u8> {
        let at = place as usize * UNIT_BYTES as usize;
        let chunk = self.chunks[at / self.chunk_bytes];
        // SAFETY: a chunk has `chunk_bytes` bytes.
        unsafe { chunk.add(at % self.chunk_bytes) }
    }
}

impl<M: Memory> Mirror for Driver<M> {
    fn slot(&self, at: u32) -> u64 {
        self.shared.slots[at as usize].load(Ordering::Relaxed)
    }

    fn set_slot(&mut self, at: u32, slot: u64) {
        self.shared.slots[at as usize].store(slot, Ordering::Relaxed);
    }

    fn set_buckets(&mut self, buckets: u32) {
        self.shared.buckets.store(buckets, Ordering::Relaxed);
    }

    fn set_generation(&mut self, place: usize, generation: u32) {
        self.shared.generations[place].store(generation, Ordering::Release);
    }

    fn open(&mut self, entry: EntryId, opened: &Opened) {
        let bytes = Bytes { data: self.data(opened.place).as_ptr(), len: opened.len };
        self.shared.entry(entry).open(&opened.key, opened.generation, bytes);
    }

    fn lengthen(&mut self, entry: EntryId, len: u32) {
        self.shared.entry(entry).lengthen(len);
    }

    fn pin(&mut self, entry: EntryId) {
        self.shared.entry(entry).pin();
    }

    fn hold(&mut self, entry: EntryId) {
        self.shared.entry(entry).hold();
    }

    fn try_close(&mut self, entry: EntryId) -> bool {
        self.shared.entry(entry).try_close()
    }

    fn close(&mut self, entry: EntryId) {
        self.shared.entry(entry).close();
    }

    fn is_pinned(&self, entry: EntryId) -> bool {
        self.shared.entry(entry).is_pinned()
    }

    fn heat(&self, entry: EntryId) -> Heat {
        self.shared.heat(entry)
    }

    fn set_heat(&mut self, entry: EntryId, heat: Heat) {
        self.shared.entry(entry).set_heat(heat);
    }

    fn set_clock(&mut self, clock: Clock) {
        self.shared.set_clock(clock);
    }

    fn seen(&self) -> Seen {
        self.shared.counters.sum()
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
        self.chunks.extend(chunk);
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
