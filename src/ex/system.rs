//! Positions of ranks. A rank is its own neighbourhood, since no other rank can load from its segment. The ranks of a
//! machine are a host.

use crate::job;
use std::collections::HashMap;
use std::sync::OnceLock;
use vgasnet_protocol::Rank;

/// `gex_RankInfo_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankInfo {
    /// The rank in the job.
    pub jobrank: u32,
}

/// Some ranks of the job in order, including this one.
#[derive(Clone, Copy, Debug)]
pub struct Ranks {
    /// All of them.
    pub all: &'static [RankInfo],
    /// This rank's index among them.
    pub me: usize,
}

/// A place among all neighbourhoods and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The number of neighbourhoods, and the index of this rank's.
    pub nbrhd: (u32, u32),
    /// The number of hosts, and the index of this rank's.
    pub host: (u32, u32),
}

/// This rank's neighbourhood: itself. `None` before init.
pub fn nbrhd() -> Option<Ranks> {
    static NBRHD: OnceLock<[RankInfo; 1]> = OnceLock::new();
    let jobrank = job::job()?.conduit().rank().0;
    Some(Ranks { all: NBRHD.get_or_init(|| [RankInfo { jobrank }]), me: 0 })
}

/// The ranks of this rank's machine. `None` before init.
pub fn host() -> Option<Ranks> {
    static HOST: OnceLock<Box<[RankInfo]>> = OnceLock::new();
    let conduit = job::job()?.conduit();
    let (own, here) = (conduit.rank(), conduit.host_of(conduit.rank()));
    let all = HOST.get_or_init(|| {
        let of_host = (0..conduit.ranks()).filter(|rank| conduit.host_of(Rank(*rank)) == here);
        of_host.map(|jobrank| RankInfo { jobrank }).collect()
    });
    let me = all.iter().position(|info| info.jobrank == own.0).expect("this rank is on its host");
    Some(Ranks { all, me })
}

/// This rank's place. `None` before init.
pub fn position() -> Option<Position> {
    static POSITION: OnceLock<Position> = OnceLock::new();
    let conduit = job::job()?.conduit();
    Some(*POSITION.get_or_init(|| {
        let hosts: Vec<u32> = (0..conduit.ranks()).map(|rank| conduit.host_of(Rank(rank))).collect();
        Position { nbrhd: (conduit.ranks(), conduit.rank().0), host: among(&hosts, conduit.rank().index()) }
    }))
}

/// The number of different values, and the index of the value at `me` in order of first occurrence.
fn among(numbers: &[u32], me: usize) -> (u32, u32) {
    let mut places = HashMap::new();
    for number in numbers {
        let next = places.len() as u32;
        places.entry(number).or_insert(next);
    }
    (places.len() as u32, places[&numbers[me]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_counted_as_they_come() {
        let hosts = [9, 4, 9, 7, 4];
        assert_eq!([0, 1, 2, 3, 4].map(|me| among(&hosts, me)), [(3, 0), (3, 1), (3, 0), (3, 2), (3, 1)]);
        assert_eq!(among(&[5], 0), (1, 0));
    }
}
