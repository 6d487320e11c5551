//! Waits that are not over yet, for a snapshot that is taken meanwhile.

use super::rows::{Kind, ROWS, Row, TIMED_COUNT};
use super::snapshot::Snapshot;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bits of a row's number below the count of its waits: room for 50 days of 65,535 waits.
const SUM_BITS: u32 = 48;

/// The waits under way of each timed row: how many, and below that the sum of when they began, in milliseconds. One number,
/// so that both are of the same moment.
pub(super) struct UnderWay([AtomicU64; TIMED_COUNT]);

/// A wait that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun(u64);

impl UnderWay {
    pub(super) const fn new() -> UnderWay {
        UnderWay([const { AtomicU64::new(0) }; TIMED_COUNT])
    }

    /// A wait begins so long after statistics have. Safe in signal handlers, as [`UnderWay::end`] is.
    pub(super) fn begin(&self, row: Row, now_ms: u64) -> Begun {
        let begun = Begun((1 << SUM_BITS) + now_ms);
        self.0[row.timed_index()].fetch_add(begun.0, Ordering::Relaxed);
        begun
    }

    pub(super) fn end(&self, row: Row, begun: Begun) {
        self.0[row.timed_index()].fetch_sub(begun.0, Ordering::Relaxed);
    }

    /// Adds the time that the waits have taken until now.
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
    fn waits_under_way_count_until_they_end() {
        let under_way = UnderWay::new();
        let time_ms = |now_ms| {
            let mut snapshot = Snapshot::default();
            under_way.add_to(&mut snapshot, now_ms);
            assert_eq!(snapshot.sum_ns(Row::WaitPage), 0);
            snapshot.sum_ns(Row::WaitBarrier) / 1_000_000
        };
        let first = under_way.begin(Row::WaitBarrier, 1000);
        assert_eq!([999, 1000, 1500].map(time_ms), [0, 0, 500]);
        let second = under_way.begin(Row::WaitBarrier, 2000);
        assert_eq!(time_ms(6000), 5000 + 4000);
        under_way.end(Row::WaitBarrier, first);
        assert_eq!(time_ms(6000), 4000);
        under_way.end(Row::WaitBarrier, second);
        assert_eq!(time_ms(9000), 0);
    }
}
