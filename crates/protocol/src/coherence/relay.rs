//! The tree by which many ranks tell each other to give up a page.

use super::share::{SHARE_MAX, Share};
use super::{Action, CopyVersion, PageId, ToCache, send_cache};
use crate::Rank;
use alloc::vec::Vec;

/// Maximum number of holders a home tells itself. In a small job all of them answer sooner than through a relaying rank.
pub(super) const TOLD_ITSELF_MAX: usize = 16;

/// Tells `ranks` to give up the page: about as many directly as each of them tells in turn.
///
/// In two steps, the busiest rank has at least the square root of their number to tell. Each share is halved on its way
/// ([`tell_halves`]), so a rank with many shares sends two messages for each.
pub(super) fn tell_all(ranks: &[Rank], page: PageId, version: CopyVersion, actions: &mut Vec<Action>) {
    let told = ranks.len().isqrt().max(1);
    ranks.chunks(ranks.len().div_ceil(told).max(1)).for_each(|group| tell(group, page, version, actions));
}

/// Tells the ranks of a share: the first of each half, which tells the remainder of its half.
pub(super) fn tell_halves(share: Share, page: PageId, version: CopyVersion, actions: &mut Vec<Action>) {
    let ranks = share.ranks();
    let (first, second) = ranks.split_at(ranks.len().div_ceil(2));
    [first, second].into_iter().for_each(|half| tell(half, page, version, actions));
}

/// Tells the first of a group, and gives it the remainder to tell. It receives the relay first, so it usually answers
/// for all at once.
fn tell(group: &[Rank], page: PageId, version: CopyVersion, actions: &mut Vec<Action>) {
    let Some((first, others)) = group.split_first() else { return };
    let relay = |ranks| send_cache(*first, page, ToCache::Relay { version, to: Share::new(ranks) });
    actions.extend(others.chunks(SHARE_MAX).map(relay));
    actions.push(send_cache(*first, page, ToCache::Invalidate { version }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coherence::CoherenceBody;
    use alloc::collections::BTreeMap;
    use alloc::vec;

    /// The number of times each rank is told to give up its copy, and the maximum number of messages one rank sends.
    fn told(ranks: u32) -> (BTreeMap<Rank, u32>, usize) {
        let all: Vec<Rank> = (1..=ranks).map(Rank).collect();
        let (page, version) = (PageId::of_segment(Rank(0), 0), CopyVersion(1));
        let (mut told, mut sent) = (BTreeMap::new(), BTreeMap::new());
        let mut in_flight = vec![];
        tell_all(&all, page, version, &mut in_flight);
        sent.insert(Rank(0), in_flight.len());
        while let Some(action) = in_flight.pop() {
            let Action::Send { to, message } = action else { panic!("{action:?}") };
            match message.body {
                CoherenceBody::Cache(ToCache::Invalidate { .. }) => *told.entry(to).or_default() += 1,
                CoherenceBody::Cache(ToCache::Relay { to: share, .. }) => {
                    let before = in_flight.len();
                    tell_halves(share, page, version, &mut in_flight);
                    *sent.entry(to).or_default() += in_flight.len() - before;
                }
                other => panic!("{other:?}"),
            }
        }
        (told, sent.into_values().max().unwrap_or(0))
    }

    #[test]
    fn each_rank_is_told_once() {
        for ranks in [1, 2, 3, 8, 17, 63, 64, 65, 1000, 4096] {
            let (told, _) = told(ranks);
            assert!(told.len() == ranks as usize && told.values().all(|times| *times == 1), "{ranks} ranks");
        }
    }

    #[test]
    fn nobody_has_much_to_tell() {
        // Ten messages for each of 64 ranks, in two bundles.
        assert_eq!(told(4096).1, 640);
    }
}
