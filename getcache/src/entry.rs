//! An entry as threads see it that hit: one atomic word that says whether its bytes may be copied.
//!
//! ```text
//!  63        32   31   30    24 23         0
//! ┌────────────┬──────┬────────┬────────────┐
//! │ generation │ open │        │    pins    │
//! └────────────┴──────┴────────┴────────────┘
//! ```
//!
//! The fields beside the word change only while the entry is closed and nobody has it pinned, apart from the length, which grows.
//! A pin succeeds only while the entry is open, except that of who has filled it. So whoever has it pinned compares its key and copies its bytes at leisure. The word does
//! not tell one key from another of the same generation: the key is compared after the pin, not before.

use crate::sync::{AtomicU64, Ordering};
use vgasnet_protocol::get_cache::{Heat, Key};

const PIN: u64 = 1;
const PINS: u64 = (1 << 24) - 1;
const OPEN: u64 = 1 << 31;

/// One entry. All zeros: it is closed. A cache line, so that a hit reads one.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    word: AtomicU64,
    /// The key's space and target.
    owner: AtomicU64,
    address: AtomicU64,
    /// Where its bytes are here.
    data: AtomicU64,
    len: AtomicU64,
    heat: AtomicU64,
}

// SAFETY: it has nothing but atomic integers.
#[cfg(not(all(loom, test)))]
unsafe impl crate::sync::Zeroed for Entry {}

/// The bytes of an entry that is pinned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    pub data: *mut u8,
    pub len: u32,
}

fn owner(key: &Key) -> u64 {
    u64::from(key.space) << 32 | u64::from(key.target)
}

impl Entry {
    /// Pins the entry if it is open and has at least so many bytes of this key, of this generation.
    #[inline]
    pub fn pin_if(&self, key: &Key, generation: u32, len: u32) -> Option<Bytes> {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if seen & OPEN == 0 || (seen >> 32) as u32 != generation {
                return None;
            }
            // Acquire: whoever pins sees what was written before the entry was opened.
            match self.word.compare_exchange_weak(seen, seen + PIN, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let bytes = self.bytes();
        if self.owner.load(Ordering::Relaxed) == owner(key)
            && self.address.load(Ordering::Relaxed) == key.address
            && bytes.len >= len
        {
            return Some(bytes);
        }
        self.unpin();
        None
    }

    /// Pins the entry, which is open, and which nobody else closes meanwhile.
    pub fn pin(&self) {
        let before = self.word.fetch_add(PIN, Ordering::Acquire);
        assert!(before & OPEN != 0, "only an open entry is pinned");
    }

    /// Pins the entry, open or not. Nobody opens or closes it meanwhile, and if it is closed nobody else pins it.
    pub fn hold(&self) {
        self.word.fetch_add(PIN, Ordering::Acquire);
    }

    /// Undoes one pin.
    #[inline]
    pub fn unpin(&self) {
        // Release: whoever finds no pins may write where the bytes were.
        self.word.fetch_sub(PIN, Ordering::Release);
    }

    /// Where its bytes are. The caller has it pinned.
    #[inline]
    pub fn bytes(&self) -> Bytes {
        // Acquire: as many bytes as that were written before.
        let len = self.len.load(Ordering::Acquire) as u32;
        Bytes { data: self.data.load(Ordering::Relaxed) as *mut u8, len }
    }

    /// Opens a closed entry whose bytes are there.
    pub fn open(&self, key: &Key, generation: u32, bytes: Bytes) {
        debug_assert_eq!(
            self.word.load(Ordering::Relaxed) & (OPEN | PINS),
            0,
            "it is closed, and nobody has it pinned"
        );
        self.owner.store(owner(key), Ordering::Relaxed);
        self.address.store(key.address, Ordering::Relaxed);
        self.data.store(bytes.data as u64, Ordering::Relaxed);
        self.len.store(u64::from(bytes.len), Ordering::Relaxed);
        self.word.store(u64::from(generation) << 32 | OPEN, Ordering::Release);
    }

    /// More of its bytes are there.
    pub fn lengthen(&self, len: u32) {
        self.len.store(u64::from(len), Ordering::Release);
    }

    /// Closes the entry unless somebody has it pinned. Returns whether it is closed.
    pub fn try_close(&self) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & PINS == 0 {
            match self.word.compare_exchange_weak(seen, seen & !OPEN, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Closes the entry. Who has it pinned goes on copying.
    pub fn close(&self) {
        self.word.fetch_and(!OPEN, Ordering::Acquire);
    }

    /// Whether somebody has it pinned. Of a closed entry: nobody will, once nobody has.
    pub fn is_pinned(&self) -> bool {
        self.word.load(Ordering::Acquire) & PINS != 0
    }

    /// How much it was used.
    #[inline]
    pub fn heat(&self) -> Heat {
        Heat::from_bits(self.heat.load(Ordering::Relaxed))
    }

    /// Changes that. Of changes at one time some may be lost.
    #[inline]
    pub fn set_heat(&self, heat: Heat) {
        self.heat.store(heat.to_bits(), Ordering::Relaxed);
    }
}
