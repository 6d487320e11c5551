//! Statistics: the work of a rank, and the causes of its waits.
//!
//! Other rooms count by calls of one line, [`count`], [`add`], [`time`] and [`wait`], in the rows declared by
//! `rows.rs`. Nothing is counted until [`turn_on`]: such a call costs the load of a flag that never changes.
//! `counters.rs` has the numbers, by thread. A [`Snapshot`] has the counts up to a point in time. `table.rs`, `json.rs`
//! and `advice.rs` show snapshots; the room `job` gathers the snapshots of all ranks.

mod advice;
mod counters;
#[cfg(test)]
mod documents;
mod histogram;
mod json;
mod numbers;
mod pending_waits;
mod rows;
mod snapshot;
mod table;

pub use json::json;
pub use rows::{Declared, ROWS, Row};
pub use snapshot::Snapshot;
pub use table::table;

use counters::Counters;
use pending_waits::{Begun, PendingWaits};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

static IS_ON: AtomicBool = AtomicBool::new(false);

static COUNTERS: Counters = Counters::new();

static PENDING_WAITS: PendingWaits = PendingWaits::new();

/// Facts about a rank known without counting.
#[derive(Clone, Copy, Debug)]
struct Setup {
    since: Instant,
    page_bytes: u64,
    pool_bytes: u64,
}

static SETUP: OnceLock<Setup> = OnceLock::new();

/// Starts counting, for the rest of the process. The rank has pages and a pool of these sizes.
pub fn turn_on(page_bytes: u64, pool_bytes: u64) {
    SETUP.get_or_init(|| Setup { since: Instant::now(), page_bytes, pool_bytes });
    IS_ON.store(true, Ordering::Release);
}

/// Whether statistics are on.
#[inline(always)]
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Adds one to a row. May be called in signal handlers, like [`add`] and [`time`].
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

/// Counts an event that began at `since`, in a row of single or summed times.
pub fn time(row: Row, since: Instant) {
    if is_on() {
        let ns = since.elapsed().as_nanos() as u64;
        if row.declared().kind.is_timed() { COUNTERS.time(row, ns) } else { COUNTERS.add(row, ns) }
    }
}

/// A wait of the calling thread, until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct Waiting {
    row: Row,
    since: Option<(Instant, Begun)>,
}

/// Starts a wait of the calling thread. A nested wait counts in both rows.
#[inline]
pub fn wait(row: Row) -> Waiting {
    Waiting { row, since: is_on().then(|| begin_wait(row)) }
}

fn begin_wait(row: Row) -> (Instant, Begun) {
    COUNTERS.note_thread();
    let now = Instant::now();
    // Rounded up, so a pending wait never counts more than a finished one.
    let now_ms = SETUP.get().map_or(0, |setup| now.duration_since(setup.since).as_micros().div_ceil(1000));
    (now, PENDING_WAITS.begin(row, now_ms as u64))
}

impl Drop for Waiting {
    #[inline]
    fn drop(&mut self) {
        if let Some((since, begun)) = self.since.take() {
            PENDING_WAITS.end(self.row, begun);
            time(self.row, since);
        }
    }
}

/// This rank's counts so far, with the time of pending waits; `None` while statistics are off.
pub fn snapshot() -> Option<Snapshot> {
    let setup = SETUP.get().filter(|_| is_on())?;
    let mut snapshot = COUNTERS.read();
    let elapsed = setup.since.elapsed();
    snapshot.set(Row::Elapsed, elapsed.as_nanos() as u64);
    PENDING_WAITS.add_to(&mut snapshot, elapsed.as_millis() as u64);
    snapshot.set(Row::PageSize, setup.page_bytes);
    snapshot.set(Row::PoolSize, setup.pool_bytes);
    Some(snapshot)
}
