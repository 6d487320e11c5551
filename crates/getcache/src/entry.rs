//! An entry, as accessed by hitting threads.
//!
//! Its word is even while it is closed and odd while it is open, with a new value at each opening. The other fields
//! change only while it is closed, except the length, which grows. A thread that reads the same odd word before and
//! after the fields has therefore read the fields of one opening. It has announced the key beforehand
//! ([`crate::readers`]): once it finds the entry open with this key, the bytes stay until it announces the end of its
//! read.
//!
//! Code under the cache's lock pins an entry by a count instead: for answered gets, and for fills copying to waiters.

use crate::readers::mark;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};
use vgasnet_protocol::get_cache::{Hash, Heat, Key};

const OPEN: u64 = 1;

/// One entry; all zeros is closed. One cache line, so that a hit reads one.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    word: AtomicU64,
    /// The key's space and target.
    owner: AtomicU64,
    address: AtomicU64,
    /// Address of its bytes.
    data: AtomicU64,
    /// The generation, and the number of bytes.
    extent: AtomicU64,
    heat: AtomicU64,
    /// The mark of its key's readers.
    mark: AtomicU64,
    pins: AtomicU32,
}

// SAFETY: it consists of atomic integers.
#[cfg(not(all(loom, test)))]
unsafe impl crate::table::Zeroed for Entry {}

/// The bytes of an entry, valid while it is read or pinned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    pub data: *mut u8,
    pub len: u32,
}

fn owner(key: &Key) -> u64 {
    u64::from(key.space) << 32 | u64::from(key.target)
}

fn extent(generation: u32, len: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(len)
}

impl Entry {
    /// Its bytes, if it is open with this key and generation and at least `len` bytes. The caller has begun to read the
    /// key; the bytes stay until it ends.
    #[inline]
    pub fn find(&self, key: &Key, generation: u32, len: u32) -> Option<Bytes> {
        // Acquire: the fields are of this opening or a later one.
        let word = self.word.load(Ordering::Acquire);
        let other_owner = self.owner.load(Ordering::Relaxed) ^ owner(key);
        let other_address = self.address.load(Ordering::Relaxed) ^ key.address;
        let data = self.data.load(Ordering::Relaxed) as *mut u8;
        let extent = self.extent.load(Ordering::Relaxed);
        // Acquire: if a field was of a later opening, so is the word; and the bytes within the length were written
        // before.
        fence(Ordering::Acquire);
        let other_word = self.word.load(Ordering::Relaxed) ^ word;
        let other_generation = (extent >> 32) ^ u64::from(generation);
        let is_other = other_owner | other_address | other_word | other_generation | (word & OPEN ^ OPEN) != 0;
        (!is_other && extent as u32 >= len).then_some(Bytes { data, len: extent as u32 })
    }

    /// Its bytes. The caller has it pinned.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        // Acquire: the bytes within the length were written before.
        let len = self.extent.load(Ordering::Acquire) as u32;
        Bytes { data: self.data.load(Ordering::Relaxed) as *mut u8, len }
    }

    /// Pins the entry, under the cache's lock.
    pub fn pin(&self) {
        self.pins.fetch_add(1, Ordering::Relaxed);
    }

    /// Undoes one pin.
    pub fn unpin(&self) {
        // Release: a thread finding no pins may overwrite the bytes.
        self.pins.fetch_sub(1, Ordering::Release);
    }

    /// Whether it is pinned. Called under the lock.
    pub fn is_pinned(&self) -> bool {
        self.pins.load(Ordering::Acquire) != 0
    }

    /// The mark of its key's readers.
    pub fn mark(&self) -> u64 {
        self.mark.load(Ordering::Relaxed)
    }

    /// Whether it may be found.
    pub fn is_open(&self) -> bool {
        self.word.load(Ordering::Relaxed) & OPEN != 0
    }

    /// Opens a closed entry with its bytes present.
    pub fn open(&self, key: &Key, hash: Hash, generation: u32, bytes: Bytes) {
        debug_assert!(!self.is_open());
        // Release: a reader of one of these fields finds the word closed, or of this opening.
        fence(Ordering::Release);
        self.owner.store(owner(key), Ordering::Relaxed);
        self.address.store(key.address, Ordering::Relaxed);
        self.data.store(bytes.data as u64, Ordering::Relaxed);
        self.extent.store(extent(generation, bytes.len), Ordering::Relaxed);
        self.mark.store(mark(hash), Ordering::Relaxed);
        self.word.store(self.word.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Extends the present bytes.
    pub fn lengthen(&self, len: u32) {
        let generation = (self.extent.load(Ordering::Relaxed) >> 32) as u32;
        self.extent.store(extent(generation, len), Ordering::Release);
    }

    /// Closes the entry. Earlier readers continue.
    pub fn close(&self) {
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(word + (word & OPEN), Ordering::Relaxed);
    }

    /// Undoes a close if nothing has changed since.
    pub fn reopen(&self) {
        // Release: as after it was opened.
        self.word.store(self.word.load(Ordering::Relaxed) - 1, Ordering::Release);
    }

    /// Its heat.
    #[inline]
    pub fn heat(&self) -> Heat {
        Heat::from_bits(self.heat.load(Ordering::Relaxed))
    }

    /// Sets the heat. Concurrent updates may be lost.
    #[inline]
    pub fn set_heat(&self, heat: Heat) {
        self.heat.store(heat.to_bits(), Ordering::Relaxed);
    }
}
