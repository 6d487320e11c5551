//! Which ranks are on one host.

use crate::Rank;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// Ranks with consecutive numbers that are on one host, as ranges. A host whose ranks have other numbers counts as several.
///
/// None are known where that is no use: each rank is on a host of its own, or all are on one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hosts {
    /// The first rank of each host, ascending, and behind them how many ranks there are.
    firsts: Arc<[Rank]>,
}

impl Hosts {
    /// Those of ranks that are on hosts of these numbers, in order.
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
        Hosts { firsts: firsts.into() }
    }

    /// The ranks of the host of a rank, if that is known and of use.
    pub fn around(&self, rank: Rank) -> Option<Range<Rank>> {
        let behind = self.firsts.partition_point(|first| *first <= rank);
        let first = self.firsts.get(behind.checked_sub(1)?)?;
        Some(*first..*self.firsts.get(behind)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_host_are_those_beside() {
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
