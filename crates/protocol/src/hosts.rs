//! Placement of ranks on hosts.

use crate::Rank;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// Consecutive ranks on one host, as ranges. A host with non-consecutive ranks counts as several.
///
/// Empty if of no use: each rank on a host of its own, or all on one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hosts {
    /// The first rank of each host, ascending, followed by the number of ranks.
    firsts: Arc<[Rank]>,
}

impl Hosts {
    /// The ranges of ranks, given each rank's host number in rank order.
    pub fn of(hosts: impl IntoIterator<Item = u32>) -> Hosts {
        let (mut firsts, mut ranks, mut last) = (Vec::new(), 0, None);
        for host in hosts {
            if last.replace(host) != Some(host) {
                firsts.push(Rank(ranks));
            }
            ranks += 1;
        }
        if firsts.len() < 2 || firsts.len() == ranks as usize {
            return Hosts::default();
        }
        firsts.push(Rank(ranks));
        debug_assert!(firsts.windows(2).all(|two| two[0] < two[1]), "each host has ranks");
        Hosts { firsts: firsts.into() }
    }

    /// The ranks of a rank's host, if known and of use.
    pub fn around(&self, rank: Rank) -> Option<Range<Rank>> {
        let behind = self.firsts.partition_point(|first| *first <= rank);
        let first = self.firsts.get(behind.checked_sub(1)?)?;
        let host = *first..*self.firsts.get(behind)?;
        debug_assert!(host.contains(&rank), "a rank is of its own host");
        Some(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn around_gives_the_ranks_of_a_host() {
        let hosts = Hosts::of([7, 7, 7, 2, 2, 9]);
        let around: Vec<_> =
            (0..7).map(|rank| hosts.around(Rank(rank)).map(|host| (host.start.0, host.end.0))).collect();
        assert_eq!(around[..6], [(0, 3), (0, 3), (0, 3), (3, 5), (3, 5), (5, 6)].map(Some));
        assert_eq!(around[6], None);
    }

    #[test]
    fn hosts_of_no_use_are_unknown() {
        assert_eq!(
            [Hosts::of([3, 3, 3]), Hosts::of([0, 1, 2]), Hosts::of([])],
            [const { None::<()> }; 3].map(|_| Hosts::default())
        );
    }
}
