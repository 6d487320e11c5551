//! The optimum evicts the page with the latest next use. Belady, "A study of replacement algorithms" (1966).

use std::collections::{BTreeSet, HashMap};

/// Hits of the optimum on a trace with this number of frames, counted from the access `first`.
pub fn hits(trace: &[u32], frames: usize, first: usize) -> usize {
    let mut next_use = vec![usize::MAX; trace.len()];
    let mut seen = HashMap::new();
    for (at, page) in trace.iter().enumerate().rev() {
        next_use[at] = seen.insert(*page, at).unwrap_or(usize::MAX);
    }
    let (mut by_next, mut next_of, mut hits) = (BTreeSet::new(), HashMap::new(), 0);
    for (at, page) in trace.iter().enumerate() {
        if let Some(next) = next_of.remove(page) {
            by_next.remove(&(next, *page));
            hits += usize::from(at >= first);
        } else if next_of.len() == frames {
            if let Some((_, victim)) = by_next.pop_last() {
                next_of.remove(&victim);
            }
        }
        by_next.insert((next_use[at], *page));
        next_of.insert(*page, next_use[at]);
    }
    hits
}
