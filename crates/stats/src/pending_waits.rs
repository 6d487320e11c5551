//! Waits not over yet, for a snapshot taken meanwhile.

use super::rows::{Kind, ROWS, Row, TIMED_COUNT};
use super::snapshot::Snapshot;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a row's number below the count of its waits: room for 50 days of 65,535 waits.
const SUM_BITS: u32 = 48;

/// The pending waits of each timed row: their count, and below it the sum of their start times in milliseconds. A
/// single number keeps both consistent.
pub(super) struct PendingWaits([AtomicU64; TIMED_COUNT]);

/// A started wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun(u64);

impl PendingWaits {
    pub(super) const fn new() -> PendingWaits {
        PendingWaits([const { AtomicU64::new(0) }; TIMED_COUNT])
    }

    /// Starts a wait, `now_ms` after the start of statistics. Safe in signal handlers, like [`PendingWaits::end`].
    pub(super) fn begin(&self, row: Row, now_ms: u64) -> Begun {
        let begun = Begun((1 << SUM_BITS) + now_ms);
        self.0[row.timed_index()].fetch_add(begun.0, Ordering::Relaxed);
        begun
    }

    pub(super) fn end(&self, row: Row, begun: Begun) {
        self.0[row.timed_index()].fetch_sub(begun.0, Ordering::Relaxed);
    }

    /// Adds the time of the pending waits until now.
    pub(super) fn add_to(&self, snapshot: &mut Snapshot, now_ms: u64) {
        for declared in ROWS.iter().filter(|declared| declared.kind == Kind::Wait) {
            let index = declared.row.timed_index();
            let packed = self.0[index].load(Ordering::Relaxed);
            let (waits, begun_ms) = (packed >> SUM_BITS, packed & ((1 << SUM_BITS) - 1));
            snapshot.times[index].sum_ns += (waits * now_ms).saturating_sub(begun_ms) * 1_000_000;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_waits_count_until_they_end() {
        let pending = PendingWaits::new();
        let time_ms = |now_ms| {
            let mut snapshot = Snapshot::default();
            pending.add_to(&mut snapshot, now_ms);
            assert_eq!(snapshot.sum_ns(Row::WaitPage), 0);
            snapshot.sum_ns(Row::WaitBarrier) / 1_000_000
        };
        let first = pending.begin(Row::WaitBarrier, 1000);
        assert_eq!([999, 1000, 1500].map(time_ms), [0, 0, 500]);
        let second = pending.begin(Row::WaitBarrier, 2000);
        assert_eq!(time_ms(6000), 5000 + 4000);
        pending.end(Row::WaitBarrier, first);
        assert_eq!(time_ms(6000), 4000);
        pending.end(Row::WaitBarrier, second);
        assert_eq!(time_ms(9000), 0);
    }
}
