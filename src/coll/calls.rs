//! Starts collectives, and manages teams.

use super::Coll;
use super::drive::{MISFIT, Memory};
use super::operators::{Operator, Reducer, Reduction};
use std::ffi::c_int;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use vgasnet_engine::Driver;
use vgasnet_engine::request::{CompletionId, Handle};
use vgasnet_protocol::barrier::{Misuse, Name};
use vgasnet_protocol::collectives::plan::{BLOCK_BYTES_MAX, CollectiveKind, Plan, Shape};
use vgasnet_protocol::collectives::{Misfit, TEAM_ALL, Team, Vote, named_team, split, team_of_file};
use vgasnet_settings::UserError;
use vgasnet_stats::{self as stats, Row};
use zerocopy::{FromBytes, IntoBytes};

/// When a collective may begin to move bytes, and when it is complete on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syncs {
    /// No bytes move before every rank has entered. Otherwise a rank's memory is accessed only after this rank has
    /// entered.
    pub all_in: bool,
    /// No rank completes before all bytes have moved. Otherwise a rank completes when its own memory has.
    pub all_out: bool,
}

/// The caller of a collective, as its team counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its rank in the team; or its image, in a team of images.
    pub me: u32,
    /// Index of the image in its rank, from 0.
    pub nth: u32,
}

/// A client's call of a collective.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The operation.
    pub kind: CollectiveKind,
    /// The team.
    pub team: u64,
    /// The caller.
    pub caller: Caller,
    /// The root's rank in the team, or image; 0 if there is no root.
    pub root: u32,
    /// The address of the caller's input; arbitrary if it has none.
    pub source: usize,
    /// The address of the caller's result; arbitrary if it has none.
    pub destination: usize,
    /// Bytes from one rank or image to one other.
    pub block_bytes: usize,
    /// The reduction, for collectives that reduce.
    pub reduce: Option<Reduction>,
    /// When it begins and ends.
    pub sync: Syncs,
}

impl Coll {
    /// Sets the table of functions for reductions.
    pub fn set_reducers(&self, reducers: Box<[Reducer]>) {
        *self.reducers.write().unwrap_or_else(PoisonError::into_inner) = reducers;
    }

    /// Starts a collective. All ranks of a team start the same ones in the same order.
    ///
    /// # Errors
    /// There is no such team or root, or a null pointer for bytes.
    ///
    /// # Safety
    /// Source and destination, if this rank has them, are valid for the blocks of this collective until the handle has
    /// been synced.
    pub unsafe fn start(&self, call: &Call) -> Result<Handle, UserError> {
        // SAFETY: source and destination are valid until the handle of this completion has been synced.
        let completion = unsafe { self.enter(call)? };
        Ok(self.driver().completions().handle(completion))
    }

    /// As [`Coll::start`], for the rank itself, even with several images.
    ///
    /// # Errors
    /// As [`Coll::start`].
    ///
    /// # Safety
    /// As [`Coll::start`].
    pub unsafe fn start_for_rank(&self, call: &Call) -> Result<Handle, UserError> {
        // SAFETY: source and destination are valid until the handle of this completion has been synced.
        let completion = unsafe { self.enter_rank(call)? };
        Ok(self.driver().completions().handle(completion))
    }

    /// Performs a collective.
    ///
    /// # Errors
    /// As [`Coll::start`].
    ///
    /// # Safety
    /// Source and destination, if this rank has them, are valid for the blocks of this collective.
    pub unsafe fn run(&self, call: &Call) -> Result<(), UserError> {
        // SAFETY: source and destination are valid, and this function waits for the completion.
        let completion = unsafe { self.enter(call)? };
        self.driver().finish_because(Row::WaitCollective, completion);
        Ok(())
    }

    /// Gives a collective to the machine, or to the images of this rank. It counts in the returned completion.
    ///
    /// # Safety
    /// Source and destination, if this rank has them, are valid for the blocks of this collective until nothing is
    /// pending in the completion.
    unsafe fn enter(&self, call: &Call) -> Result<CompletionId, UserError> {
        match self.layout(call.team) {
            // SAFETY: source and destination are valid until nothing is pending in the completion.
            Some(layout) => unsafe { self.enter_image(call, &layout) },
            // SAFETY: source and destination, if this rank has them, are valid for the blocks of this collective until
            // nothing is pending in the completion.
            None => unsafe { self.enter_rank(call) },
        }
    }

    /// Gives a collective of ranks to the machine.
    ///
    /// # Safety
    /// As for [`Coll::enter`].
    unsafe fn enter_rank(&self, call: &Call) -> Result<CompletionId, UserError> {
        let (ranks, me) = self.look_up(call.team, |team| (team.ranks(), team.me))?;
        check(call, ranks, "rank")?;
        let element_bytes = call.reduce.map_or(1, |reduction| reduction.element_bytes);
        let shape = Shape { kind: call.kind, me, ranks, root: call.root, block_bytes: call.block_bytes, element_bytes };
        let plan = Plan { shape, all_in: call.sync.all_in, all_out: call.sync.all_out, for_images: false };
        let completion = self.begin();
        let memory = Memory::of_rank(call.source, call.destination, call.reduce, completion);
        self.with(|machine| machine.start(call.team, plan, memory));
        self.driver().poll();
        Ok(completion)
    }

    /// A completion for one collective.
    pub(super) fn begin(&self) -> CompletionId {
        let completion = self.driver().completions().begin();
        self.driver().completions().add(completion);
        completion
    }

    /// A reduction by a function of the table, with its argument.
    ///
    /// # Errors
    /// There is no such function.
    pub fn registered(&self, element_bytes: usize, function: i32, argument: c_int) -> Result<Reduction, UserError> {
        let reducers = self.reducers.read().unwrap_or_else(PoisonError::into_inner);
        let reducer = usize::try_from(function).ok().and_then(|at| reducers.get(at)).copied();
        let reducer = reducer.ok_or_else(|| {
            let known = reducers.len();
            UserError::new(format!(
                "function {function} of {known}; give the number of an entry in the table of vgasnet_coll_init"
            ))
        })?;
        Ok(Reduction { element_bytes, operator: Operator::Registered { reducer, argument } })
    }

    pub(super) fn look_up<R>(&self, id: u64, read: impl FnOnce(&mut Team<Memory>) -> R) -> Result<R, UserError> {
        let found = self.with(|machine| machine.teams.get_mut(&id).map(read));
        found.ok_or_else(|| {
            UserError::new(format!(
                "team {id:#x} does not exist: it was freed, or never came from vgasnet_coll_team_split"
            ))
        })
    }

    /// The members of a team, as ranks of the job, and this rank's place among them.
    ///
    /// # Errors
    /// There is no such team.
    pub fn team(&self, id: u64) -> Result<(Box<[u32]>, u32), UserError> {
        self.look_up(id, |team| (team.members.clone(), team.me))
    }

    /// Gathers a value from all ranks of a team, in team order. Collective: one thread of each rank calls, even with
    /// several images.
    ///
    /// # Errors
    /// There is no such team.
    pub fn gather_all<T>(&self, team: u64, mine: T) -> Result<Vec<T>, UserError>
    where
        T: Copy + FromBytes + IntoBytes,
    {
        self.gather_all_or_tell(team, mine, None)
    }

    /// The same. Calls `tell` once if other ranks are late.
    ///
    /// # Errors
    /// As [`Coll::gather_all`].
    pub fn gather_all_or_tell<T>(&self, team: u64, mut mine: T, tell: Option<&dyn Fn()>) -> Result<Vec<T>, UserError>
    where
        T: Copy + FromBytes + IntoBytes,
    {
        let (members, me) = self.team(team)?;
        let mut all = vec![mine; members.len()];
        let call = Call {
            kind: CollectiveKind::GatherAll,
            team,
            caller: Caller { me, nth: 0 },
            root: 0,
            source: mine.as_mut_bytes().as_mut_ptr().expose_provenance(),
            destination: all.as_mut_slice().as_mut_bytes().as_mut_ptr().expose_provenance(),
            block_bytes: size_of::<T>(),
            reduce: None,
            sync: Syncs { all_in: false, all_out: false },
        };
        // SAFETY: the source is one value, and the destination has room for one of each rank. Both outlive the
        // completion.
        let completion = unsafe { self.enter_rank(&call)? };
        match tell {
            Some(tell) => self.driver().finish_or_tell(Row::WaitCollective, completion, tell),
            None => self.driver().finish_because(Row::WaitCollective, completion),
        }
        Ok(all)
    }

    /// Splits a team into one for each color. The ranks of a color are ordered by `order`. Collective: one thread of
    /// each rank calls, even with several images.
    ///
    /// # Errors
    /// There is no such team.
    pub fn split_team(&self, parent: u64, color: u32, order: u32) -> Result<u64, UserError> {
        let (members, me) = self.team(parent)?;
        let votes = self.gather_votes(parent, color, order)?;
        let (id, members, me) = split(&members, &votes, me);
        self.join_team(id, members, me)?;
        Ok(id)
    }

    /// Gathers the votes of all ranks of a team for their new teams. Collective, as [`Coll::split_team`].
    ///
    /// # Errors
    /// There is no such team.
    pub fn gather_votes(&self, parent: u64, color: u32, order: u32) -> Result<Vec<Vote>, UserError> {
        let splits = self.splits.fetch_add(1, Ordering::Relaxed);
        self.gather_all(parent, Vote { color, order, splits })
    }

    /// Adds a team of these ranks of the job under the name agreed by votes. `members[me]` is this rank.
    ///
    /// # Errors
    /// Another rank has sent a message for it that is malformed.
    pub fn join_team(&self, id: u64, members: Box<[u32]>, me: u32) -> Result<(), UserError> {
        let added = self.with(|machine| machine.add_team(id, Team::new(members, me)));
        added.map_err(|Misfit| UserError::new(MISFIT))?;
        self.driver().poll();
        Ok(())
    }

    /// Makes a team of these ranks of the job, in this order. Collective over them alone; `tag` must differ between
    /// teams with the same first rank.
    ///
    /// # Errors
    /// There is no such rank, this rank is none of them, one is there twice, or the tag is too large.
    pub fn team_of(&self, members: &[u32], tag: u32) -> Result<u64, UserError> {
        let (all, me) = self.team(TEAM_ALL)?;
        let own = all[me as usize];
        let (id, me) = named_team(members, own, all.len() as u32, tag).map_err(UserError::new)?;
        self.join_team(id, members.into(), me)?;
        Ok(id)
    }

    /// Makes the team of the ranks that open a file together. `members[me]` is this rank. Collective over them alone;
    /// `number` is the file's space number.
    ///
    /// # Errors
    /// A malformed message of the team has arrived.
    pub fn team_of_file(&self, members: Box<[u32]>, me: u32, number: u32) -> Result<u64, UserError> {
        let id = team_of_file(number);
        let added = self.with(|machine| machine.add_team(id, Team::new(members, me)));
        added.map_err(|Misfit| UserError::new(MISFIT))?;
        Ok(id)
    }

    /// Removes a team.
    ///
    /// # Errors
    /// There is no such team, it is the team of all ranks, or a collective or barrier of it is in progress.
    pub fn free_team(&self, id: u64) -> Result<(), UserError> {
        if id == TEAM_ALL {
            return Err(UserError::new("VGASNET_TEAM_ALL is freed; it stays until the job ends"));
        }
        if !self.look_up(id, |team| team.is_idle())? {
            return Err(UserError::new(
                "a team is freed while a collective or barrier of it is under way; sync them first",
            ));
        }
        self.with(|machine| machine.teams.remove(&id));
        Ok(())
    }

    /// Arrives at a team's barrier. The barrier of the team of all ranks is the job's.
    ///
    /// # Errors
    /// There is no such team; or, inside, the client has notified already.
    pub fn team_barrier_notify(&self, id: u64, name: Name) -> Result<Result<(), Misuse>, UserError> {
        self.look_up(id, |_| ())?;
        if id == TEAM_ALL {
            return Ok(self.driver().barrier_notify(name));
        }
        let notified = self.with(|machine| machine.notify(id, name));
        self.driver().poll();
        Ok(notified)
    }

    /// Whether the names match, once every rank of the team has arrived; `None` before.
    ///
    /// # Errors
    /// There is no such team; or, inside, the client has not notified.
    pub fn team_barrier_try(&self, id: u64, name: Name) -> Result<Result<Option<bool>, Misuse>, UserError> {
        if id == TEAM_ALL {
            return Ok(self.driver().barrier_try(name));
        }
        self.driver().poll();
        self.look_up(id, |team| team.barrier.finish(name))
    }

    /// Waits until every rank of the team has arrived. Returns whether the names match.
    ///
    /// # Errors
    /// There is no such team; or, inside, the client has not notified.
    pub fn team_barrier_wait(&self, id: u64, name: Name) -> Result<Result<bool, Misuse>, UserError> {
        if id == TEAM_ALL {
            return Ok(self.driver().barrier_wait(name));
        }
        loop {
            match self.look_up(id, |team| team.barrier.finish(name))? {
                Ok(Some(matched)) => return Ok(Ok(matched)),
                Err(misuse) => return Ok(Err(misuse)),
                Ok(None) => {}
            }
            let _waiting = stats::wait(Row::WaitBarrier);
            self.driver().wait_until(&|| self.look_up(id, |team| team.barrier.is_released()).unwrap_or(true));
        }
    }

    /// The name of the team's last barrier.
    ///
    /// # Errors
    /// There is no such team; or, inside, no barrier has just ended, or the names did not match.
    pub fn team_barrier_result(&self, id: u64) -> Result<Result<Name, Misuse>, UserError> {
        if id == TEAM_ALL {
            return Ok(self.driver().barrier_result());
        }
        self.look_up(id, |team| team.barrier.result())
    }

    pub(super) fn driver(&self) -> &Driver {
        self.am.driver()
    }
}

/// Checks a collective among `count` ranks or images.
pub(super) fn check(call: &Call, count: u32, what: &str) -> Result<(), UserError> {
    let Call { kind, caller, root, source, destination, block_bytes, .. } = *call;
    if root >= count {
        return Err(UserError::new(format!(
            "there is no {what} {root} in this team; its {what}s are 0 to {}",
            count - 1
        )));
    }
    check_bytes(block_bytes, count, what)?;
    let sides =
        [(kind.reads(caller.me, root), source, "source"), (kind.writes(caller.me, root), destination, "destination")];
    for (used, address, side) in sides {
        if used && address == 0 && block_bytes > 0 {
            return Err(UserError::new(format!(
                "the {side} is a null pointer; give the address of memory for {block_bytes} bytes a {what}"
            )));
        }
    }
    Ok(())
}

pub(super) fn check_bytes(block_bytes: usize, count: u32, what: &str) -> Result<(), UserError> {
    // The sum of scratch and a rank's memory for its images then cannot overflow.
    let is_countable = block_bytes.checked_mul(count as usize).is_some_and(|all| all <= isize::MAX as usize / 4);
    if !is_countable || block_bytes > BLOCK_BYTES_MAX {
        return Err(UserError::new(format!("{block_bytes} bytes a {what}; at most {BLOCK_BYTES_MAX} are allowed")));
    }
    Ok(())
}
