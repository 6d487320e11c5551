//! Teams of GASNet-EX: job ranks in an order. A pair of endpoints stands for the team of all ranks.

use super::objects::{Header, Object, find, find_if_any, find_quickly};
use std::sync::atomic::{AtomicPtr, Ordering};
use vgasnet_protocol::collectives::TEAM_ALL;
use vgasnet_settings::UserError;

/// `gex_TM_t`, as this rank's member of the team.
#[repr(C)]
#[derive(Debug)]
pub struct Team {
    header: Header,
    /// This rank's place in the team.
    pub rank: u32,
    /// The number of members.
    pub size: u32,
    /// The flags given when it was made.
    pub flags: u32,
    /// Its number among the teams of collectives.
    pub id: u64,
    /// The memory lent by the client until the team is destroyed. The library needs none.
    pub scratch: Option<Scratch>,
    /// Owned by the team. Null for the team of all ranks in job order, and once the team is destroyed.
    members: AtomicPtr<Members>,
}

/// Memory of the client, in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// The first address.
    pub address: usize,
    /// The size.
    pub size_bytes: usize,
}

/// The members of a team.
#[derive(Debug)]
struct Members {
    /// The job rank of each member.
    jobranks: Box<[u32]>,
    /// The job rank and the team rank of each member, sorted. Its memory grows with the team, not with the job.
    by_jobrank: Box<[(u32, u32)]>,
}

// SAFETY: it begins with its header.
unsafe impl Object for Team {
    const MARK: u64 = 0x7667_7465_616d_5f5f;
    const WHAT: &'static str = "team";
    fn header(&self) -> &Header {
        &self.header
    }
}

impl Team {
    /// The team of all ranks, as seen by this rank.
    pub fn of_all(rank: u32, size: u32) -> Team {
        Team {
            header: Header::of::<Team>(),
            rank,
            size,
            flags: 0,
            id: TEAM_ALL,
            scratch: None,
            members: AtomicPtr::default(),
        }
    }

    /// A team of these job ranks. This rank is the one at `rank`. Collectives know the team by `id`.
    pub fn new(id: u64, rank: u32, jobranks: Box<[u32]>, flags: u32) -> Team {
        let mut by_jobrank: Box<[(u32, u32)]> = jobranks.iter().copied().zip(0..).collect();
        by_jobrank.sort_unstable();
        let size = jobranks.len() as u32;
        let members = AtomicPtr::new(Box::into_raw(Box::new(Members { jobranks, by_jobrank })));
        Team { header: Header::of::<Team>(), rank, size, flags, id, scratch: None, members }
    }

    #[inline(always)]
    fn members(&self) -> Option<&Members> {
        // SAFETY: it is null, or valid until `drop_members`, which nobody calls while others use the team.
        unsafe { self.members.load(Ordering::Acquire).as_ref() }
    }

    /// Whether this is the team of all ranks.
    pub fn is_of_all(&self) -> bool {
        self.id == TEAM_ALL
    }

    /// Destroys the team: its handle is refused from now on.
    ///
    /// # Safety
    /// No other thread uses the team.
    pub unsafe fn end(&self) {
        self.retire();
        // SAFETY: no other thread uses the team.
        unsafe { self.drop_members() };
    }

    /// # Safety
    /// Nobody uses the members, now or later.
    unsafe fn drop_members(&self) {
        let members = self.members.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !members.is_null() {
            // SAFETY: the pointer came from a box, and nobody uses it.
            drop(unsafe { Box::from_raw(members) });
        }
    }

    /// The job rank of a member.
    ///
    /// # Errors
    /// There is no such member.
    #[inline]
    pub fn jobrank(&self, rank: u32) -> Result<u32, UserError> {
        self.jobrank_if_any(rank).ok_or_else(|| self.no_such_rank(rank))
    }

    #[inline(always)]
    fn jobrank_if_any(&self, rank: u32) -> Option<u32> {
        match self.members() {
            _ if rank >= self.size => None,
            None => Some(rank),
            Some(members) => members.jobranks.get(rank as usize).copied(),
        }
    }

    /// The team rank of a job rank, if it is a member.
    #[inline]
    pub fn rank_of(&self, jobrank: u32) -> Option<u32> {
        match self.members() {
            None => (jobrank < self.size).then_some(jobrank),
            Some(Members { by_jobrank, .. }) => {
                let at = by_jobrank.binary_search_by_key(&jobrank, |(jobrank, _)| *jobrank).ok()?;
                Some(by_jobrank[at].1)
            }
        }
    }

    #[cold]
    fn no_such_rank(&self, rank: u32) -> UserError {
        UserError::new(format!("there is no rank {rank} in this team; its ranks are 0 to {}", self.size - 1))
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // SAFETY: nobody uses a team that is dropped.
        unsafe { self.drop_members() };
    }
}

/// The pair of this process's one endpoint and the others' endpoints of the same index. Bit 0 tells a pair from a team.
const PAIR: usize = 1;

/// `gex_TM_Pair` of endpoints with these indices.
///
/// # Errors
/// There is no such endpoint.
pub fn pair(local_index: u16, remote_index: u16) -> Result<*mut Team, UserError> {
    if (local_index, remote_index) != (0, 0) {
        return Err(no_such_endpoint(remote_index));
    }
    Ok(std::ptr::without_provenance_mut(PAIR))
}

#[cold]
fn no_such_endpoint(index: u16) -> UserError {
    UserError::new(format!("there is no endpoint {index}; each process has one, with index 0 (GASNET_MAXEPS is 1)"))
}

/// The job rank named by a team, or a pair, and a rank in it. With a pair the rank may be any number; the operation
/// checks it.
///
/// # Errors
/// There is no such team, or no such rank in it.
///
/// # Safety
/// `team` is null, a pair, or has been the handle of an object.
#[inline(always)]
pub unsafe fn jobrank(team: *const Team, rank: u32) -> Result<u32, UserError> {
    if team.addr() == PAIR {
        return Ok(rank);
    }
    // SAFETY: the handle is null, or has been an object's. `find` refuses one with bit 0 set.
    unsafe { find(team) }?.jobrank(rank)
}

/// Like [`jobrank`], with `None` for a refusal.
///
/// # Safety
/// As for [`jobrank`].
#[inline(always)]
pub unsafe fn jobrank_if_any(team: *const Team, rank: u32) -> Option<u32> {
    if team.addr() == PAIR {
        return Some(rank);
    }
    // SAFETY: `team` is null, a pair, or has been the handle of an object.
    unsafe { find_if_any(team) }?.jobrank_if_any(rank)
}

/// Like [`jobrank_if_any`], with `None` also if handles are checked.
///
/// # Safety
/// As for [`jobrank`].
#[inline(always)]
pub unsafe fn jobrank_quickly(team: *const Team, rank: u32) -> Option<u32> {
    if team.addr() == PAIR {
        return Some(rank);
    }
    // SAFETY: `team` is null, a pair, or has been the handle of an object.
    unsafe { find_quickly(team) }?.jobrank_if_any(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_team_and_of_the_job_name_each_other() {
        let all = Team::of_all(1, 3);
        assert_eq!((all.jobrank(2).ok(), all.rank_of(2), all.rank_of(3)), (Some(2), Some(2), None));
        assert!(all.jobrank(3).is_err());
        let some = Team::new(7, 0, [4, 1].into(), 0);
        assert_eq!((some.jobrank(0).ok(), some.jobrank(1).ok()), (Some(4), Some(1)));
        assert_eq!(
            some.jobrank(2).expect_err("two members").to_string(),
            "there is no rank 2 in this team; its ranks are 0 to 1"
        );
        assert_eq!([0, 1, 4, 5, 6].map(|rank| some.rank_of(rank)), [None, Some(1), Some(0), None, None]);
    }

    #[test]
    fn a_team_that_has_ended_is_refused() {
        let some = Team::new(7, 0, [4, 1].into(), 0);
        // SAFETY: nobody else has the team, and its memory stays.
        unsafe {
            assert!(find(&raw const some).is_ok());
            some.end();
            assert!(find(&raw const some).is_err() && jobrank_if_any(&some, 0).is_none());
        }
    }

    #[test]
    fn a_pair_stands_for_all_ranks() {
        let both = pair(0, 0).expect("the one endpoint");
        assert!(pair(0, 1).is_err() && pair(1, 0).is_err());
        // SAFETY: a pair, a null pointer, and an object's handle.
        unsafe {
            assert_eq!(jobrank(both, 9).ok(), Some(9));
            assert!(jobrank(std::ptr::null(), 0).is_err());
            assert!(jobrank(both.wrapping_byte_add(2), 0).is_err());
            let some = Team::new(7, 0, [4, 1].into(), 0);
            assert_eq!(jobrank(&some, 1).ok(), Some(1));
        }
    }
}
