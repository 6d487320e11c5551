//! The cache of the process: all that the library does with it. Windows share it, as spaces, so memory goes to those where it pays.

use crate::report::line;
use crate::settings;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use vgasnet_getcache::{Ask, GetCache, Key, Limits, Stats, TellingHeap};

pub use vgasnet_getcache::{Fill, GENERATION_PLACES, Outcome};

/// What gets by atomic operations read is kept apart, by the size of their elements: what another get read may be torn. Keys have this beside
/// the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Atom(u32);

impl Atom {
    /// No operation that is atomic.
    pub const NONE: Atom = Atom(0);

    /// Elements of so many bytes.
    pub fn of_bytes(bytes: u32) -> Option<Atom> {
        matches!(bytes, 1 | 2 | 4 | 8).then(|| Atom(bytes.trailing_zeros() + 1))
    }

    pub fn bytes(self) -> Option<u32> {
        (self != Atom::NONE).then(|| 1 << (self.0 - 1))
    }
}

/// Bits of a key's target that are its rank's.
const RANK_BITS: u32 = 28;

/// There are keys of atomic operations.
static HAS_ATOMS: AtomicBool = AtomicBool::new(false);

/// The targets of a rank's keys.
fn keys(target: u32) -> impl Iterator<Item = u32> {
    let last = if HAS_ATOMS.load(Ordering::Acquire) { 4 } else { 0 };
    (0..=last).map(move |atom| target | atom << RANK_BITS)
}

/// Larger gets are not cached: for them the network's bandwidth counts, and they would drive many small ones out.
pub const GET_BYTES_MAX: usize = 64 << 10;

type Cache = GetCache<TellingHeap<fn()>>;

static CACHE: OnceLock<Option<Cache>> = OnceLock::new();

#[inline]
fn cache() -> Option<&'static Cache> {
    CACHE.get()?.as_ref()
}

/// Makes the cache, unless there is one. Returns whether there is.
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

/// Gets bytes, or says what is to be done about them. A get that joins is known by its destination.
///
/// # Safety
///
/// As of `GetCache::get`.
#[inline]
pub unsafe fn get(space: u32, target: u32, atom: Atom, address: u64, dest: usize, len: usize) -> Outcome {
    let Some(cache) = cache() else { return Outcome::Miss { from: 0, fill: None } };
    if atom != Atom::NONE && !HAS_ATOMS.load(Ordering::Relaxed) {
        HAS_ATOMS.store(true, Ordering::SeqCst);
    }
    let target = target | atom.0 << RANK_BITS;
    let (key, ask) = (Key { space, target, address }, Ask::all(len, 1.0, dest as u64));
    // SAFETY: as the caller says.
    unsafe { cache.get(&key, &ask, dest as *mut u8) }
}

/// The bytes of a get have come to its buffer. Returns the destinations of the gets that joined, which have theirs.
///
/// # Safety
///
/// The buffer has as many bytes as the entry is to have, and nobody writes them meanwhile.
pub unsafe fn fill(fill: Fill, buffer: usize) -> Vec<usize> {
    let Some(cache) = cache() else { return Vec::new() };
    // SAFETY: as the caller says.
    let bytes = unsafe { std::slice::from_raw_parts(buffer as *const u8, fill.size()) };
    cache.fill(fill, bytes).map(|dest| dest as usize).collect()
}

/// The bytes of a get will not be kept. Returns the destinations of the gets that joined, which get none.
pub fn abandon(fill: Fill) -> Vec<usize> {
    cache().map(|cache| cache.abandon(fill).map(|dest| dest as usize).collect()).unwrap_or_default()
}

/// Nothing of a window is served any more that was asked for before.
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

/// What the cache has done.
pub fn stats() -> Stats {
    cache().map(GetCache::stats).unwrap_or_default()
}
