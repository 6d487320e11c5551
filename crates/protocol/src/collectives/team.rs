//! Teams: ordered sets of ranks with collectives of their own.

use super::message::CollectiveKey;
use super::plan::Plan;
use crate::Rank;
use crate::barrier::Barrier;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The name of the team of all ranks.
pub const TEAM_ALL: u64 = 1;

/// A team, from the perspective of one of its ranks.
#[derive(Debug)]
pub struct Team<T> {
    /// Its members' ranks in the job, in team order.
    pub members: Box<[u32]>,
    /// This rank's index in `members`.
    pub me: u32,
    /// Its named barrier.
    pub barrier: Barrier,
    /// Number of the next collective.
    pub(super) next_number: u32,
    /// Number of collectives in flight.
    pub(super) active: usize,
    /// Collectives waiting for their turn.
    pub(super) queued: VecDeque<(CollectiveKey, Plan, T)>,
}

impl<T> Team<T> {
    /// A team of these ranks of the job; `members[me]` is this one.
    pub fn new(members: Box<[u32]>, me: u32) -> Team<T> {
        assert!((me as usize) < members.len(), "rank {me} is one of the {} members", members.len());
        let barrier = Barrier::new(Rank(me), members.len() as u32);
        Team { members, me, barrier, next_number: 0, active: 0, queued: VecDeque::new() }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.members.len() as u32
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.active == 0 && !self.barrier.is_in_phase()
    }
}

/// A rank's contribution to a split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Vote {
    /// Ranks of the same color join the same team.
    pub color: u32,
    /// Sort key in the team; ties keep the parent's order.
    pub order: u32,
    /// Number of this rank's earlier splits, which makes the new team's name unique.
    pub splits: u32,
}

/// The team joined by rank `me` of a parent: its name, its members, and this rank's index. Every rank of the new team
/// computes the same name and members, and no other team of the job ever has the name.
///
/// The parent's rank `at` is rank `parent[at]` of the job and contributed `votes[at]`.
pub fn split(parent: &[u32], votes: &[Vote], me: u32) -> (u64, Box<[u32]>, u32) {
    assert_eq!(parent.len(), votes.len(), "each rank of the parent has voted");
    let color = votes[me as usize].color;
    let mut chosen: Vec<usize> = (0..parent.len()).filter(|at| votes[*at].color == color).collect();
    chosen.sort_by_key(|at| (votes[*at].order, *at));
    let first = chosen[0];
    let id = (u64::from(parent[first]) + 1) << 32 | u64::from(votes[first].splits);
    let place = chosen.iter().position(|at| *at == me as usize).expect("this rank has its own color");
    (id, chosen.into_iter().map(|at| parent[at]).collect(), place as u32)
}

/// A hash of a list of ranks, for use in a vote.
pub fn list_hash(members: &[u32]) -> u32 {
    // FNV-1a.
    let bytes = members.iter().flat_map(|member| member.to_le_bytes());
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The name of the team of these ranks of the job, if each of them voted with the list's first rank as color and its
/// [`list_hash`] as order. The parent's rank `at` is rank `parent[at]` of the job and contributed `votes[at]`. No other
/// team of the job ever has the name.
///
/// # Errors
/// The first rank of the job missing from the parent, or with a vote for another list.
pub fn listed_team(parent: &[u32], votes: &[Vote], members: &[u32]) -> Result<u64, u32> {
    assert_eq!(parent.len(), votes.len(), "each rank of the parent has voted");
    let mut places: Vec<(u32, usize)> = parent.iter().copied().zip(0..).collect();
    places.sort_unstable();
    let vote = |member: u32| {
        let at = places.binary_search_by_key(&member, |place| place.0).ok()?;
        Some(votes[places[at].1])
    };
    let first = *members.first().expect("a list of members");
    let hash = list_hash(members);
    let has_listed = |member: u32| vote(member).is_some_and(|vote| (vote.color, vote.order) == (first, hash));
    if let Some(other) = members.iter().find(|member| !has_listed(**member)) {
        return Err(*other);
    }
    let splits = vote(first).expect("it has listed the same").splits;
    Ok((u64::from(first) + 1) << 32 | u64::from(splits))
}

/// Maximum tag of a team.
pub const TEAM_TAG_MAX: u32 = u32::MAX >> 1;

/// The team formed by these ranks of a job on their own: its name, and the index of rank `own`. A team with the same
/// first rank and tag has the same name; teams from splits never do.
///
/// # Errors
/// Why these ranks form no team.
pub fn named_team(members: &[u32], own: u32, ranks: u32, tag: u32) -> Result<(u64, u32), String> {
    if tag > TEAM_TAG_MAX {
        return Err(format!("tag {tag} is too large; give at most {TEAM_TAG_MAX}"));
    }
    if let Some(rank) = members.iter().find(|rank| **rank >= ranks) {
        return Err(format!("there is no rank {rank} in this job; its ranks are 0 to {}", ranks - 1));
    }
    let mut sorted = Vec::from(members);
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("rank {} is named twice; give each rank of the team once", pair[0]));
    }
    let place = members.iter().position(|rank| *rank == own);
    let place = place.ok_or_else(|| format!("this rank, {own}, is not named; only ranks of the team make it"))?;
    // Splits count from 0 and never reach this bit.
    let id = (u64::from(members[0]) + 1) << 32 | u64::from(tag) | 1 << 31;
    Ok((id, place as u32))
}

/// The name of the team of an open file, from the number of the file's space. No other team has it.
pub fn team_of_file(number: u32) -> u64 {
    // Names of other teams have their first rank above bit 31; it never reaches this bit.
    1 << 63 | u64::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_color_make_a_team_in_the_order_they_ask_for() {
        let parent = [4, 5, 6, 7, 8];
        let vote = |color, order, splits| Vote { color, order, splits };
        let votes = [vote(1, 9, 3), vote(0, 0, 1), vote(1, 2, 5), vote(1, 9, 0), vote(7, 7, 7)];
        let teams = [0, 2, 3].map(|me| split(&parent, &votes, me));
        let id = 7 << 32 | 5;
        assert_eq!(teams.clone().map(|team| team.0), [id; 3]);
        assert_eq!(teams.clone().map(|team| team.2), [1, 0, 2]);
        assert!(teams.iter().all(|team| *team.1 == [6, 4, 7]));
        assert_eq!(split(&parent, &votes, 4), (9 << 32 | 7, [8].into(), 0));
        assert_ne!(split(&parent, &votes, 1).0, TEAM_ALL);
    }

    #[test]
    fn the_team_of_a_file_is_no_other() {
        let last = u32::MAX - 1;
        let (split, _, _) = split(&[last], &[Vote { color: 0, order: 0, splits: 7 }], 0);
        let (named, _) = named_team(&[last], last, u32::MAX, 7).expect("it is one");
        let ids = [team_of_file(7), team_of_file(8), split, named, TEAM_ALL];
        assert!((1..ids.len()).all(|at| !ids[..at].contains(&ids[at])), "{ids:x?}");
    }

    #[test]
    fn ranks_that_list_the_same_make_a_team() {
        let (parent, list) = ([9, 4, 6, 5], [6, 9]);
        let vote = |list: &[u32], splits| Vote { color: list[0], order: list_hash(list), splits };
        let votes = [vote(&list, 3), vote(&[4, 5], 0), vote(&list, 7), vote(&[5, 4], 1)];
        assert_eq!(listed_team(&parent, &votes, &list), Ok(7 << 32 | 7));
        assert_eq!(listed_team(&parent, &votes, &[4, 5]), Err(5));
        assert_eq!(listed_team(&parent, &votes, &[6, 9, 4]), Err(6));
        assert_eq!(listed_team(&parent, &[votes[0]; 4], &[6, 9, 7]), Err(6));
        assert_eq!(listed_team(&parent, &[vote(&[6, 7], 0); 4], &[6, 7]), Err(7), "it is not in the parent");
    }

    #[test]
    fn ranks_that_name_each_other_make_a_team() {
        let team = |own| named_team(&[5, 0, 2], own, 6, 9);
        assert_eq!([team(5), team(0), team(2)].map(Result::unwrap), [0, 1, 2].map(|me| (6 << 32 | 1 << 31 | 9, me)));
        assert_eq!(named_team(&[0], 0, 1, TEAM_TAG_MAX), Ok((1 << 32 | u64::from(u32::MAX), 0)));
        let refused =
            [team(1), named_team(&[], 0, 6, 0), named_team(&[0, 6], 0, 6, 0), named_team(&[0, 1, 0], 0, 6, 0)];
        assert!(refused.iter().all(Result::is_err));
        assert!(named_team(&[0], 0, 6, TEAM_TAG_MAX + 1).is_err());
    }
}
