//! The copies that a rank keeps of small gets: the copy that a get asks for, and the handling of fetched bytes.

use super::ranges::Declared;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use vgasnet_engine::request::{CompletionId, Continuation, Copy};
use vgasnet_getcache::{Ask, CacheState, Fill, GetCache, Key, Limits, Locked, TellingHeap};
use vgasnet_memory::Piece;
use vgasnet_settings::UserError;
use vgasnet_sys::Signalproof;

/// Index of one of the caches of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheId(pub(super) u32);

/// The lock of a cache. It defers the client's signal handlers, since they might get bytes, too.
pub(super) struct CacheLock<T>(Mutex<T>);

impl<T> Locked<T> for CacheLock<T> {
    fn new(value: T) -> CacheLock<T> {
        CacheLock(Mutex::new(value))
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut Signalproof::lock(&self.0))
    }
}

/// Reports a line about a rank.
pub type Report = fn(&str, &UserError);

/// A cache. It reports once if the system has no memory for it.
pub(super) type Cache = GetCache<Memory, CacheLock<CacheState<Memory>>>;
type Memory = TellingHeap<Box<dyn FnMut() + Send>>;

/// An empty cache of at most `bytes` bytes.
pub(super) fn new_cache(bytes: usize, get_bytes_max: usize, seed: u64, report: Report) -> Arc<Cache> {
    let tell = move || {
        let line = "the system has no memory for copies of small gets, which go on without; lower VGASNET_GET_CACHE_SIZE or \
                    VGASNET_POOL_SIZE";
        report("vgasnet_readonly_begin", &UserError::new(line));
    };
    let limits = Limits::of_memory(bytes as u64, get_bytes_max as u32, seed);
    Arc::new(GetCache::new(limits, TellingHeap(Box::new(tell))))
}

/// Bytes of a declared range as the cache names them: the get's own, or the enclosing object's.
pub(super) struct CacheLookup {
    pub(super) key: Key,
    /// Offset of the get's bytes.
    pub(super) skip: u32,
    /// Number of bytes to fetch, from the key on.
    fetch_bytes: u32,
}

impl CacheLookup {
    /// The place of a get's piece in a declared range, at an address of the range's rank.
    pub(super) fn of(range: &Declared, address: usize, piece: &Piece, page_bytes: usize) -> CacheLookup {
        let (start, end) =
            CacheLookup::object(range, address, piece, page_bytes).unwrap_or((address, address + piece.len_bytes));
        CacheLookup {
            key: Key { space: range.space, target: range.rank, address: start as u64 },
            skip: (address - start) as u32,
            fetch_bytes: (end - start) as u32,
        }
    }

    /// Begin and end of the piece's object within the range; `None` if it is not in the page.
    fn object(range: &Declared, address: usize, piece: &Piece, page_bytes: usize) -> Option<(usize, usize)> {
        let before = (address - range.start).checked_rem(range.object_bytes as usize)?;
        let start = address - before;
        let end = (start + range.object_bytes as usize).min(range.end);
        let is_in_page = before <= piece.offset_bytes && end - address <= page_bytes - piece.offset_bytes;
        (is_in_page && address + piece.len_bytes <= end).then_some((start, end))
    }

    /// The request to the cache, for `len_bytes` bytes.
    pub(super) fn ask(&self, len_bytes: usize, weight: f32, waiter: CompletionId) -> Ask {
        let (skip, fetch) = (self.skip, self.fetch_bytes);
        Ask { skip, len: len_bytes as u32, fetch, weight, waiter: u64::from(waiter.number()) }
    }

    /// The bytes still to be fetched for a copy, `there` of which are present. `piece` is the get's.
    pub(super) fn missing(&self, piece: &Piece, there: usize) -> Piece {
        Piece {
            offset_bytes: piece.offset_bytes - self.skip as usize + there,
            len_bytes: self.fetch_bytes as usize - there,
            start_bytes: 0,
            ..*piece
        }
    }
}

/// Continuation of a fetch for a copy: delivers the bytes to the get and to the gets that have joined.
pub(super) struct KeepCopy {
    cache: Arc<Cache>,
    /// Taken when the bytes have arrived.
    fill: Option<Fill>,
    /// Offset of the get's bytes in the copy.
    skip: usize,
    /// The client's memory, the number of bytes already in it, and its length.
    dest: *mut u8,
    there: usize,
    len_bytes: usize,
}

// SAFETY: the client's memory belongs to the get until it has been synced, from any thread.
unsafe impl Send for KeepCopy {}

impl KeepCopy {
    /// For a get of `len_bytes` to `dest`, `there` of which are present already.
    pub(super) fn new(
        cache: &Arc<Cache>,
        fill: Fill,
        skip: u32,
        (dest, there, len_bytes): (*mut u8, usize, usize),
    ) -> KeepCopy {
        KeepCopy { cache: Arc::clone(cache), fill: Some(fill), skip: skip as usize, dest, there, len_bytes }
    }
}

impl Continuation for KeepCopy {
    fn run(mut self: Box<Self>, done: &mut dyn FnMut(CompletionId)) -> Option<(Piece, Copy)> {
        let fill = self.fill.take()?;
        let remaining = self.len_bytes - self.there;
        // SAFETY: all bytes of the copy are present, and stay until it is filled. The client's memory belongs to the
        // get until it has been synced.
        unsafe {
            let bytes = fill.bytes().add(self.skip + self.there);
            bytes.copy_to_nonoverlapping(NonNull::new_unchecked(self.dest.add(self.there)), remaining);
        }
        self.cache.fill_in_place(fill).for_each(|waiter| done(CompletionId::of_number(waiter as u32)));
        None
    }
}

impl Drop for KeepCopy {
    /// Drops a get refused before its parts were submitted.
    fn drop(&mut self) {
        if let Some(fill) = self.fill.take() {
            // Gets that have joined wait in vain, but the job ends.
            drop(self.cache.abandon(fill));
        }
    }
}

impl fmt::Debug for KeepCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepCopy").field("len_bytes", &self.len_bytes).finish_non_exhaustive()
    }
}
