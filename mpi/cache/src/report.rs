//! Counts, and statistics for the user at the end.

use crate::lines::{line, tell};
use crate::settings::{Statistics, statistics};
use crate::store;
use crate::{ffi, windows};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use vgasnet_mpi_front::whole_file;

/// Counts unknown to the cache itself.
#[derive(Debug, Default)]
pub struct Counts {
    /// Flushes that called nothing, since nothing was in flight.
    pub flushes_saved: AtomicU64,
    /// Gets of cached windows passed on to MPI unchanged.
    pub gets_passed: AtomicU64,
    /// Words read, and the changed ones among them.
    pub words_read: AtomicU64,
    pub words_changed: AtomicU64,
    /// Words raised.
    pub words_raised: AtomicU64,
    /// How often a window entered a mode other than off.
    pub windows: AtomicU64,
}

/// The counts of this process.
pub static COUNTS: Counts = Counts {
    flushes_saved: AtomicU64::new(0),
    gets_passed: AtomicU64::new(0),
    words_read: AtomicU64::new(0),
    words_changed: AtomicU64::new(0),
    words_raised: AtomicU64::new(0),
    windows: AtomicU64::new(0),
};

/// Adds one.
#[inline]
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The same without an atomic operation, in a call that adds hardly any work. Concurrent counts may get lost.
#[inline]
pub fn count_alone(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// All numbers of this rank.
fn numbers(rank: u32) -> Value {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut all = Map::new();
    let mut put = |name: &str, value: Value| _ = all.insert(name.to_owned(), value);
    put("rank", json!(rank));
    put("mode", json!(windows::modes_seen()));
    put("windows", json!(get(&COUNTS.windows)));
    let stats = store::stats();
    let flushes_saved = get(&COUNTS.flushes_saved);
    put("mpi_calls_saved", json!(stats.hits + stats.joined + flushes_saved));
    put("flushes_saved", json!(flushes_saved));
    put("gets_passed", json!(get(&COUNTS.gets_passed)));
    put("words_read", json!(get(&COUNTS.words_read)));
    put("words_changed", json!(get(&COUNTS.words_changed)));
    put("words_raised", json!(get(&COUNTS.words_raised)));
    let of_cache = [
        ("gets", stats.gets),
        ("hits", stats.hits),
        ("partial", stats.partial),
        ("joined", stats.joined),
        ("direct", stats.direct),
        ("conflicting", stats.conflicting),
        ("capacity", stats.capacity),
        ("failing", stats.failing),
        ("dormant", stats.dormant),
        ("evicted", stats.evicted),
        ("bytes_hit", stats.bytes_hit),
        ("bytes_fetched", stats.bytes_fetched),
        ("entries", stats.entries),
        ("bytes_used", stats.bytes_used),
        ("bytes_held", stats.bytes_held),
        ("bytes_max", stats.bytes_max),
    ];
    of_cache.into_iter().for_each(|(name, value)| put(name, json!(value)));
    Value::Object(all)
}

/// Shows statistics, if requested.
pub fn at_end() {
    let wanted = statistics();
    if wanted == Statistics::None {
        return;
    }
    ffi::constants();
    let Some(rank) = ffi::world_rank() else { return };
    let text = format!("{}\n", numbers(rank));
    match wanted {
        Statistics::None => {}
        Statistics::Shown => tell(&text),
        Statistics::File(mut path) => {
            path.push(format!(".{rank}"));
            if let Err(error) = whole_file::replace(path.as_ref(), |file| file.write_all(text.as_bytes())) {
                let place = std::path::Path::new(&path).display().to_string();
                line("MPI_Finalize", &format!("VGASNET_MPI_CACHE_STATS: {place}: {error}; there are no statistics"));
            }
        }
    }
}
