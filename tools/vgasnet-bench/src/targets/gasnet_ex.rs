//! Targets of `gasnet-ex`.

use super::Bound::AtMost;
use super::{Target, target};
use crate::report::OperationRow;

/// Numbers of ranks judged: for operations between two ranks, and for the barrier.
const RANKS: u32 = 2;
const RANKS_OF_BARRIER: u32 = 4;

/// The resolution of the clock. A ratio needs a value above 0.
const LEAST_NS: f64 = 0.1;

/// The targets of `gasnet-ex`, each at its worst place.
pub fn judge_gasnet_ex(rows: &[OperationRow]) -> Vec<Target> {
    let worst = |begins: &[&str], ranks: u32, value: &dyn Fn(&OperationRow) -> Option<f64>| {
        let is_meant =
            |row: &&OperationRow| row.ranks == ranks && begins.iter().any(|begin| row.name.starts_with(begin));
        rows.iter().filter(is_meant).filter_map(value).max_by(f64::total_cmp)
    };
    let time = |row: &OperationRow| Some(row.ns);
    let more = |row: &OperationRow| row.other_ns.map(|other_ns| (row.ns - other_ns).max(LEAST_NS));
    let times = |row: &OperationRow| row.other_ns.map(|other_ns| row.ns / other_ns);
    let round_trip_ns = worst(&["message_neighbour"], RANKS, &time);
    let found = [
        (worst(&["get_", "put_"], RANKS, &more), "rma_more_ns", "gets and puts, more than the other's, ns", 40.0),
        (
            worst(&["message_neighbour"], RANKS, &times),
            "message_to_other",
            "round trip of a message to the other's",
            2.0,
        ),
        (worst(&["add_own"], RANKS, &time), "add_own_ns", "fetch-add of an own word, ns", 100.0),
        (
            worst(&["add_neighbour"], RANKS, &time).zip(round_trip_ns).map(|(add, round_trip)| add / round_trip),
            "add_neighbour_to_message",
            "fetch-add of a neighbour's word to a round trip",
            2.0,
        ),
        (worst(&["event_test"], RANKS, &time), "event_test_ns", "a look at an event that has happened, ns", 10.0),
        (worst(&["barrier"], RANKS_OF_BARRIER, &times), "barrier_to_other", "barrier of 4 ranks to the other's", 2.0),
    ];
    let judged = found
        .into_iter()
        .filter_map(|(measured, name, meaning, most)| Some(target(name, meaning, measured?, AtMost, most)));
    judged.collect()
}
