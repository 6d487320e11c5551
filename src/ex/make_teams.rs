//! Making teams by color or by list, and destroying them.

use super::objects::give_out;
use super::teams::{Scratch, Team};
use crate::coll::Coll;
use vgasnet_protocol::collectives::{Vote, list_hash, listed_team, split as divide};
use vgasnet_settings::UserError;

/// The color of ranks taking no part. Clients' colors are smaller.
const NO_COLOR: u32 = 1 << 31;

/// A team kept until it is destroyed. Its memory stays even after.
fn keep(id: u64, rank: u32, jobranks: Box<[u32]>, coll: &Coll, flags: u32) -> Result<Box<Team>, UserError> {
    coll.join_team(id, jobranks.clone(), rank)?;
    Ok(Box::new(Team::new(id, rank, jobranks, flags)))
}

/// Splits a team into one team for each color. Ranks of a color are ordered by key, ranks of equal keys as in the
/// parent. A rank without a color joins none. Collective over the parent.
///
/// # Errors
/// The parent no longer exists.
pub fn split(
    parent: &Team,
    color: Option<u32>,
    key: i32,
    scratch: Option<Scratch>,
    flags: u32,
    coll: &Coll,
) -> Result<Option<&'static Team>, UserError> {
    // Flips the sign bit, so that negative keys come first.
    let order = key as u32 ^ 1 << 31;
    let votes: Vec<Vote> = coll.gather_votes(parent.id, color.unwrap_or(NO_COLOR), order)?;
    if color.is_none() {
        return Ok(None);
    }
    let (members, me) = coll.team(parent.id)?;
    let (id, jobranks, rank) = divide(&members, &votes, me);
    let mut team = keep(id, rank, jobranks, coll, flags)?;
    team.scratch = scratch;
    Ok(Some(give_out(Box::leak(team))))
}

/// Makes a team of these job ranks, in this order. The ranks are in the parent, and all of them give the same list. A
/// rank giving an empty list joins none. Collective over the parent.
///
/// # Errors
/// A rank is not in the parent, is listed twice or has given another list, or the parent no longer exists.
pub fn create(
    parent: &Team,
    jobranks: Box<[u32]>,
    scratch: Option<Scratch>,
    flags: u32,
    coll: &Coll,
) -> Result<Option<&'static Team>, UserError> {
    let (members, me) = coll.team(parent.id)?;
    let rank = jobranks.iter().position(|jobrank| *jobrank == members[me as usize]);
    let mut sorted = jobranks.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(UserError::new(format!("rank {} is listed twice; list each member of the team once", pair[0])));
    }
    let color = if rank.is_some() { jobranks[0] } else { NO_COLOR };
    let votes = coll.gather_votes(parent.id, color, list_hash(&jobranks))?;
    let Some(rank) = rank else { return Ok(None) };
    let id = listed_team(&members, &votes, &jobranks).map_err(|other| {
        UserError::new(format!(
            "rank {other} of the job is listed, and is not in the parent or lists others; all members of a team list the same \
             members of the parent, in the same order"
        ))
    })?;
    let mut team = keep(id, rank as u32, jobranks, coll, flags)?;
    team.scratch = scratch;
    Ok(Some(give_out(Box::leak(team))))
}

/// Destroys a team, and returns the scratch lent by the client. Collective over the team, but no rank waits for
/// another. A rank that has synced its collectives has sent and received all their messages.
///
/// # Errors
/// It is the team of all ranks, or its collectives are in flight.
///
/// # Safety
/// No other thread uses the team.
pub unsafe fn destroy(team: &Team, coll: &Coll) -> Result<Option<Scratch>, UserError> {
    if team.is_of_all() {
        return Err(UserError::new("the team of all ranks is destroyed; it stays until the job ends"));
    }
    coll.free_team(team.id)?;
    // SAFETY: no other thread uses the team.
    unsafe { team.end() };
    Ok(team.scratch)
}
