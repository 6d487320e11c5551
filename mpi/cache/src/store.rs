//! The process's cache. Windows share it, each as a space, so memory goes where it pays.

use crate::atoms::Atom;
use crate::buffers::GetBuffer;
use crate::lines::line;
use crate::settings;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_getcache::{Ask, GENERATION_PLACES, GetCache, Key, Limits, Stats, TellingHeap};

pub use vgasnet_getcache::{Fill, Outcome};

/// Maximum number of windows at a time. Each needs a generation of the cache.
pub const WINDOWS_MAX: usize = GENERATION_PLACES as usize;

/// Bits of the rank in a key's target. The number of the atomic unit is behind them.
const RANK_BITS: u32 = 28;

/// Whether there are keys of atomic operations.
static HAS_ATOMS: AtomicBool = AtomicBool::new(false);

/// The key targets of a rank.
fn keys(target: u32) -> impl Iterator<Item = u32> {
    let last = if HAS_ATOMS.load(Ordering::Acquire) { 4 } else { 0 };
    (0..=last).map(move |atom| target | atom << RANK_BITS)
}

/// Larger gets are not cached. They are bound by the network's bandwidth, and would evict many small entries.
pub const GET_BYTES_MAX: usize = 64 << 10;

type Cache = GetCache<TellingHeap<fn()>>;

static CACHE: OnceLock<Option<Cache>> = OnceLock::new();

#[inline]
fn cache() -> Option<&'static Cache> {
    CACHE.get()?.as_ref()
}

/// Creates the cache, unless it exists. Returns whether it exists.
pub fn prepare(call: &str) -> bool {
    let new = || {
        let bytes = settings::cache_bytes(call);
        let limits = Limits::of_memory(bytes, GET_BYTES_MAX as u32, u64::from(std::process::id()));
        (bytes > 0).then(|| GetCache::new(limits, TellingHeap(tell_refused as fn())))
    };
    CACHE.get_or_init(new).is_some()
}

fn tell_refused() {
    line("MPI_Get", "there is no memory for the cache; nothing is cached");
}

/// Gets bytes, or returns the action needed to get them. A joining get is identified by its buffer's address. It is not
/// complete before its entry is filled or abandoned.
#[inline]
pub fn get(space: u32, target: u32, atom: Atom, address: u64, buffer: GetBuffer) -> Outcome {
    let Some(cache) = cache() else { return Outcome::Miss { from: 0, fill: None } };
    if atom != Atom::NONE && !HAS_ATOMS.load(Ordering::Relaxed) {
        HAS_ATOMS.store(true, Ordering::SeqCst);
    }
    let target = target | atom.number() << RANK_BITS;
    let (key, ask) = (Key { space, target, address }, Ask::all(buffer.len(), 1.0, buffer.address() as u64));
    // SAFETY: the buffer is the get's until it is complete, so as many bytes may be written now. After joining they may
    // be until the entry is filled or abandoned: `pending` lets no completion return before.
    unsafe { cache.get(&key, &ask, buffer.address() as *mut u8) }
}

/// The bytes of a get have arrived in its buffer. Returns the destinations of the joined gets, which have their bytes
/// now.
///
/// # Safety
///
/// MPI has completed the get, and its completion has not returned to the program: MPI has written all bytes of the
/// buffer, and nobody writes them any more.
pub unsafe fn fill(fill: Fill, buffer: GetBuffer) -> Vec<usize> {
    let Some(cache) = cache() else { return Vec::new() };
    assert!(fill.size() <= buffer.len(), "the entry of this get");
    // SAFETY: the buffer has as many bytes. They are written, and stay as they are until this returns, as the caller
    // promises.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.address() as *const u8, fill.size()) };
    cache.fill(fill, bytes).map(|dest| dest as usize).collect()
}

/// The bytes of a get will not be kept. Returns the destinations of the joined gets, which get none.
pub fn abandon(fill: Fill) -> Vec<usize> {
    cache().map(|cache| cache.abandon(fill).map(|dest| dest as usize).collect()).unwrap_or_default()
}

/// Entries of a window requested before this call are served no more.
pub fn invalidate(space: u32) {
    if let Some(cache) = cache() {
        cache.invalidate(space);
    }
}

/// A window is gone.
pub fn forget(space: u32) {
    if let Some(cache) = cache() {
        cache.forget(space);
    }
}

/// Bytes of a window are overwritten.
pub fn drop_range(space: u32, target: u32, start: u64, len: u64) {
    if let Some(cache) = cache() {
        keys(target).for_each(|target| cache.drop_range(space, target, start, len));
    }
}

/// All of a target's bytes may be overwritten.
pub fn drop_target(space: u32, target: u32) {
    if let Some(cache) = cache() {
        keys(target).for_each(|target| cache.invalidate_target(space, target));
    }
}

/// Statistics of the cache.
pub fn stats() -> Stats {
    cache().map(GetCache::stats).unwrap_or_default()
}
