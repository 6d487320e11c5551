//! The copies that a rank keeps of small gets: which copy a get asks for, and what becomes of bytes that come for one.

use super::ranges::Declared;
use crate::error::UserError;
use crate::memory::Piece;
use crate::request::{CompletionId, Sequel};
use crate::sys::Signalproof;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use vgasnet_getcache::{Ask, Fill, GetCache, Heap, Key, Limits, Locked, Memory, State};

/// Names one of the caches of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheId(pub(super) u32);

/// The most memory that is asked for at a time.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// A cache has at least so many chunks, if they are not too small then: what is less than one is lost.
const CHUNKS: usize = 16;

/// The least memory of a copy.
const ENTRY_BYTES_MIN: usize = 64;

/// More copies than these no cache has.
const ENTRIES_MAX: usize = 1 << 24;

/// Copies for which the index of an empty cache has room.
const ENTRIES_START: u32 = 1024;

/// The lock of a cache. No handler of the client runs while it is held, since that might get bytes, too.
pub(super) struct Guarded<T>(Mutex<T>);

impl<T> Locked<T> for Guarded<T> {
    fn new(value: T) -> Guarded<T> {
        Guarded(Mutex::new(value))
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut Signalproof::lock(&self.0))
    }
}

/// Says a line about a rank.
pub type Report = fn(&str, &UserError);

/// The library's heap, which says once that it has nothing.
pub(super) struct Chunks {
    report: Report,
}

// SAFETY: the chunks are the heap's.
unsafe impl Memory for Chunks {
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        Heap.allocate(bytes)
    }

    fn free(&mut self, chunk: NonNull<u8>, bytes: usize) {
        Heap.free(chunk, bytes);
    }

    fn on_refused(&mut self) {
        let line = "the system has no memory for copies of small gets, which go on without; lower VGASNET_GET_CACHE_SIZE or \
                    VGASNET_POOL_SIZE";
        (self.report)("vgasnet_readonly_begin", &UserError::new(line));
    }
}

/// A cache, and how large it may be.
pub(super) type Cache = GetCache<Chunks, Guarded<State<Chunks>>>;

/// An empty cache of at most so many bytes.
pub(super) fn new_cache(bytes: usize, get_bytes_max: usize, seed: u64, report: Report) -> Arc<Cache> {
    let chunk_bytes = (1 << (bytes / CHUNKS).max(1).ilog2()).clamp(get_bytes_max, CHUNK_BYTES_MAX);
    let limits = Limits {
        chunk_bytes: chunk_bytes as u32,
        chunks_max: (bytes / chunk_bytes).max(1) as u32,
        chunks_start: 1,
        entries_max: (bytes / ENTRY_BYTES_MIN).clamp(1, ENTRIES_MAX) as u32,
        entries_start: ENTRIES_START,
        len_max: get_bytes_max as u32,
        seed,
    };
    Arc::new(GetCache::new(limits, Chunks { report }))
}

/// Bytes of a declared range as the cache names them: those of a get, or of an object that has them.
pub(super) struct Place {
    pub(super) key: Key,
    /// The bytes of the get begin here.
    skip: u32,
    /// The bytes of the object, as far as they lie in the range and in the page.
    object_bytes: u32,
}

impl Place {
    /// Where a piece of a get is that lies in a declared range, at an address of the range's rank.
    pub(super) fn of(range: &Declared, address: usize, piece: &Piece, page_bytes: usize) -> Place {
        let plain = |address: usize, skip: usize, object_bytes: usize| Place {
            key: Key { space: range.space, target: range.rank, address: address as u64 },
            skip: skip as u32,
            object_bytes: object_bytes as u32,
        };
        let object_bytes = range.object_bytes as usize;
        let skip = if object_bytes == 0 { 0 } else { (address - range.start) % object_bytes };
        let object_end = (address - skip + object_bytes).min(range.end);
        let (before, behind) = (piece.offset_bytes >= skip, page_bytes - piece.offset_bytes);
        if object_bytes == 0 || !before || object_end < address + piece.len_bytes || object_end - address > behind {
            return plain(address, 0, piece.len_bytes);
        }
        plain(address - skip, skip, object_end - (address - skip))
    }

    /// What to ask the cache for, of so many bytes.
    pub(super) fn ask(&self, len_bytes: usize, weight: f32, waiter: CompletionId) -> Ask {
        let fetch = self.object_bytes;
        Ask { skip: self.skip, len: len_bytes as u32, fetch, weight, waiter: u64::from(waiter.number()) }
    }

    pub(super) fn skip(&self) -> u32 {
        self.skip
    }

    /// Where the bytes lie that are fetched for a copy, so many of which are there already. `piece` is the get's.
    pub(super) fn missing(&self, piece: &Piece, there: usize) -> Piece {
        Piece {
            offset_bytes: piece.offset_bytes - self.skip as usize + there,
            len_bytes: self.object_bytes as usize - there,
            start_bytes: 0,
            ..*piece
        }
    }
}

/// What follows when the bytes have come that a copy lacks: the get has its own, and those that have joined theirs.
pub(super) struct KeepCopy {
    cache: Arc<Cache>,
    /// Taken when the bytes have come.
    fill: Option<Fill>,
    /// Where the bytes of the get begin in the copy.
    skip: usize,
    /// The client's memory, how many bytes of it are there already, and how many there are.
    dest: *mut u8,
    there: usize,
    len_bytes: usize,
}

// SAFETY: the client leaves its memory to the get until it has synced that, from whichever thread.
unsafe impl Send for KeepCopy {}

impl KeepCopy {
    /// For a get of `len_bytes` to `dest`, where `there` of them are already.
    pub(super) fn new(
        cache: &Arc<Cache>,
        fill: Fill,
        skip: u32,
        (dest, there, len_bytes): (*mut u8, usize, usize),
    ) -> KeepCopy {
        KeepCopy { cache: Arc::clone(cache), fill: Some(fill), skip: skip as usize, dest, there, len_bytes }
    }
}

impl Sequel for KeepCopy {
    fn run(mut self: Box<Self>, done: &mut dyn FnMut(CompletionId)) {
        let Some(fill) = self.fill.take() else { return };
        let rest = self.len_bytes - self.there;
        // SAFETY: all bytes of the copy are there, and stay until it is filled. The client leaves its memory to the get until that is
        // synced.
        unsafe {
            let bytes = fill.bytes().add(self.skip + self.there);
            bytes.copy_to_nonoverlapping(NonNull::new_unchecked(self.dest.add(self.there)), rest);
        }
        self.cache.fill_in_place(fill).for_each(|waiter| done(CompletionId::of_number(waiter as u32)));
    }
}

impl Drop for KeepCopy {
    /// A get that was refused before its parts went to the engine.
    fn drop(&mut self) {
        if let Some(fill) = self.fill.take() {
            // Whoever has joined waits in vain, but the job ends.
            drop(self.cache.abandon(fill));
        }
    }
}

impl fmt::Debug for KeepCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepCopy").field("len_bytes", &self.len_bytes).finish_non_exhaustive()
    }
}
