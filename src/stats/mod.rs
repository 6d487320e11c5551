//! Statistics: what a rank does, and where its time goes.
//!
//! Other rooms count by calls of one line, [`count`], [`add`], [`time`] and [`wait`], in rows that `rows.rs` declares.
//! Nothing is counted until [`turn_on`]: such a call costs the look at a flag that never changes. `counters.rs` has the
//! numbers, by thread. A [`Snapshot`] is what was counted up to a moment. `table.rs`, `json.rs` and `advice.rs` show
//! snapshots; the room `job` brings those of all ranks together.

mod advice;
mod counters;
#[cfg(test)]
mod documents;
mod histogram;
mod json;
mod numbers;
mod rows;
mod snapshot;
mod table;
mod under_way;

pub use json::json;
pub use rows::{Declared, ROWS, Row};
pub use snapshot::Snapshot;
pub use table::table;

use counters::Counters;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use under_way::{Begun, UnderWay};

static IS_ON: AtomicBool = AtomicBool::new(false);

static COUNTERS: Counters = Counters::new();

static UNDER_WAY: UnderWay = UnderWay::new();

/// What is known of a rank without counting.
#[derive(Clone, Copy, Debug)]
struct Setup {
    since: Instant,
    page_bytes: u64,
    pool_bytes: u64,
}

static SETUP: OnceLock<Setup> = OnceLock::new();

/// Counts from now on, for the rest of the process. The rank has pages and a pool of these sizes.
pub fn turn_on(page_bytes: u64, pool_bytes: u64) {
    SETUP.get_or_init(|| Setup { since: Instant::now(), page_bytes, pool_bytes });
    IS_ON.store(true, Ordering::Release);
}

/// Whether anything is counted.
#[inline(always)]
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Counts one. May be called in signal handlers, as [`add`] and [`time`] may.
#[inline(always)]
pub fn count(row: Row) {
    add(row, 1);
}

/// Adds to a row.
#[inline(always)]
pub fn add(row: Row, amount: u64) {
    if is_on() {
        add_now(row, amount);
    }
}

#[cold]
fn add_now(row: Row, amount: u64) {
    COUNTERS.add(row, amount);
}

/// Counts something that began then, in a row that is timed or adds up times.
pub fn time(row: Row, since: Instant) {
    if is_on() {
        let ns = since.elapsed().as_nanos() as u64;
        if row.declared().kind.is_timed() { COUNTERS.time(row, ns) } else { COUNTERS.add(row, ns) }
    }
}

/// A wait of the calling thread, until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct Waiting {
    row: Row,
    since: Option<(Instant, Begun)>,
}

/// Begins a wait of the calling thread for a cause. One within another counts in both rows.
#[inline]
pub fn wait(row: Row) -> Waiting {
    Waiting { row, since: is_on().then(|| begin_wait(row)) }
}

fn begin_wait(row: Row) -> (Instant, Begun) {
    COUNTERS.note_thread();
    let now = Instant::now();
    // Rounded up, so that a wait never counts more under way than when it is over.
    let now_ms = SETUP.get().map_or(0, |setup| now.duration_since(setup.since).as_micros().div_ceil(1000));
    (now, UNDER_WAY.begin(row, now_ms as u64))
}

impl Drop for Waiting {
    #[inline]
    fn drop(&mut self) {
        if let Some((since, begun)) = self.since.take() {
            UNDER_WAY.end(self.row, begun);
            time(self.row, since);
        }
    }
}

/// What this rank has counted so far, the time of waits under way included; `None` while statistics are off.
pub fn snapshot() -> Option<Snapshot> {
    let setup = SETUP.get().filter(|_| is_on())?;
    let mut snapshot = COUNTERS.read();
    let elapsed = setup.since.elapsed();
    snapshot.set(Row::Elapsed, elapsed.as_nanos() as u64);
    UNDER_WAY.add_to(&mut snapshot, elapsed.as_millis() as u64);
    snapshot.set(Row::PageSize, setup.page_bytes);
    snapshot.set(Row::PoolSize, setup.pool_bytes);
    Some(snapshot)
}
