//! What a rank inherits from its launcher: the arena, the doorbells, and the variable that says which descriptors they are.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use vgasnet_conduit::{ConduitError, Seat};

use crate::RANKS_MAX;
use crate::arena::Control;

/// The environment variable that makes a process a rank. Its launcher sets it; without it, a process is a job of its own.
pub const JOB_VARIABLE: &str = "VGASNET_SMP_JOB";

/// The value of [`JOB_VARIABLE`]: `rank=1,ranks=4,arena=5,doorbells=6`, the latter two being descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobVariable {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) arena: RawFd,
    /// The first of two a rank, without gaps.
    pub(crate) doorbells: RawFd,
}

impl fmt::Display for JobVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobVariable { rank, ranks, arena, doorbells } = self;
        write!(f, "rank={rank},ranks={ranks},arena={arena},doorbells={doorbells}")
    }
}

impl JobVariable {
    /// Reads exactly what `Display` writes; the error says what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut fields = text.split(',');
        let mut number = |key: &str, min: u32, max: u32| {
            let digits = fields.next().and_then(|field| field.strip_prefix(key)?.strip_prefix('='));
            digits
                .filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .filter(|value| (min..=max).contains(value))
                .ok_or_else(|| format!("\"{key}=\" must be followed by a number from {min} to {max}"))
        };
        let rank = number("rank", 0, RANKS_MAX - 1)?;
        let ranks = number("ranks", 1, RANKS_MAX)?;
        let arena = number("arena", 0, i32::MAX as u32)? as RawFd;
        let doorbells = number("doorbells", 0, (i32::MAX as u32) - 2 * RANKS_MAX)? as RawFd;
        if fields.next().is_some() {
            return Err("nothing may follow \"doorbells=\"".to_owned());
        }
        if rank >= ranks {
            return Err(format!("rank {rank} of {ranks} does not exist"));
        }
        Ok(JobVariable { rank, ranks, arena, doorbells })
    }
}

/// The kernel objects of a job.
pub(crate) struct Objects {
    pub(crate) arena: OwnedFd,
    /// Of each rank its caller's, then its helper's eventfd; without gaps in their numbers.
    pub(crate) doorbells: Vec<OwnedFd>,
}

impl Objects {
    /// Makes them for a new job, closed on exec. Raises the limit of open files as far as the job needs and the system lets.
    pub(crate) fn create(ranks: u32) -> Result<Self, Errno> {
        // Room for the doorbells, and for what a launcher opens for each rank.
        raise_descriptor_limit(64 + 6 * u64::from(ranks))?;
        Ok(Objects { arena: Control::create(ranks)?, doorbells: make_doorbells(2 * ranks as usize)? })
    }

    /// As [`Objects::create`], with the error in words.
    pub(crate) fn for_ranks(ranks: u32) -> Result<Self, ConduitError> {
        Self::create(ranks)
            .map_err(|error| ConduitError(format!("cannot make shared memory for {ranks} ranks: {error}")))
    }

    pub(crate) fn doorbell(&self, rank: u32, seat: Seat) -> &OwnedFd {
        let place = match seat {
            Seat::Caller => 0,
            Seat::Helper => 1,
        };
        &self.doorbells[2 * rank as usize + place]
    }
}

/// Makes `count` eventfds with consecutive numbers, so that one number names them all.
fn make_doorbells(count: usize) -> Result<Vec<OwnedFd>, Errno> {
    let mut doorbells: Vec<OwnedFd> = Vec::with_capacity(count);
    let mut next = 16;
    while doorbells.len() < count {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        // The kernel calls a number beyond the limit invalid.
        let number = fcntl(&event, FcntlArg::F_DUPFD_CLOEXEC(next))
            .map_err(|error| if error == Errno::EINVAL { Errno::EMFILE } else { error })?;
        // SAFETY: `fcntl` just made this descriptor, and nobody else knows of it.
        let doorbell = unsafe { OwnedFd::from_raw_fd(number) };
        if number != next {
            // Somebody else's descriptor is in the way; go beyond it.
            doorbells.clear();
        }
        doorbells.push(doorbell);
        next = number + 1;
    }
    Ok(doorbells)
}

/// Lets this process open so many files, as far as the system allows it.
///
/// # Errors
/// The limit cannot be read or set.
pub fn raise_descriptor_limit(wanted: u64) -> Result<(), Errno> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard)?;
    }
    Ok(())
}

/// The job that this process belongs to.
pub(crate) struct Job {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) objects: Objects,
    pub(crate) control: Control,
}

impl Job {
    /// Joins the job that [`JOB_VARIABLE`] names, or makes one of a single rank.
    pub(crate) fn join() -> Result<Self, ConduitError> {
        let Some(value) = std::env::var_os(JOB_VARIABLE) else {
            return Self::alone();
        };
        let text = value.to_string_lossy();
        Self::launched(&text).map_err(|what| {
            let advice = "vgasnetrun sets this variable; a program that a rank starts must unset it";
            ConduitError(format!("{JOB_VARIABLE}=\"{text}\": {what} ({advice})"))
        })
    }

    /// A job of a single rank.
    pub(crate) fn alone() -> Result<Self, ConduitError> {
        Self::of(0, 1, Objects::for_ranks(1)?)
    }

    /// The job that these objects are for, with this process as one of its ranks.
    pub(crate) fn of(rank: u32, ranks: u32, objects: Objects) -> Result<Self, ConduitError> {
        let control = Control::open(objects.arena.as_fd(), ranks)
            .map_err(|what| ConduitError(format!("what should be shared memory {what}")))?;
        Ok(Job { rank, ranks, objects, control })
    }

    fn launched(text: &str) -> Result<Self, String> {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        let variable = JobVariable::parse(text)?;
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Err("this process is a rank already".to_owned());
        }
        let arena = adopt(variable.arena, "/memfd:")?;
        let control = Control::open(arena.as_fd(), variable.ranks)
            .map_err(|what| format!("descriptor {} {what}", variable.arena))?;
        let last = variable.doorbells + 2 * variable.ranks as RawFd;
        let doorbells =
            (variable.doorbells..last).map(|number| adopt(number, "anon_inode:[eventfd]")).collect::<Result<_, _>>()?;
        let JobVariable { rank, ranks, .. } = variable;
        Ok(Job { rank, ranks, objects: Objects { arena, doorbells }, control })
    }
}

/// Takes over an inherited descriptor, after making sure that it is what the launcher put there, and closes it on exec.
fn adopt(number: RawFd, kind: &str) -> Result<OwnedFd, String> {
    let target = std::fs::read_link(format!("/proc/self/fd/{number}"))
        .map_err(|error| format!("descriptor {number} was not inherited: {error}"))?;
    if !target.to_string_lossy().starts_with(kind) {
        return Err(format!("descriptor {number} is {}, not the job's", target.display()));
    }
    // SAFETY: the launcher opened this descriptor for us and nothing else in this process knows its number; `launched`
    // comes here once a process.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl(&owned, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|error| format!("descriptor {number}: {error}"))?;
    debug_assert_eq!(owned.as_raw_fd(), number);
    Ok(owned)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_variable_survives_its_own_text() {
        let variable = JobVariable { rank: 1, ranks: 4, arena: 5, doorbells: 6 };
        assert_eq!(variable.to_string(), "rank=1,ranks=4,arena=5,doorbells=6");
        assert_eq!(JobVariable::parse(&variable.to_string()), Ok(variable));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "rank=1",
            "rank=1,ranks=4,arena=5",
            "rank=1,ranks=4,arena=5,doorbells=",
            "rank=1,ranks=4,arena=5,doorbells=6,",
            "rank=1,ranks=4,arena=5,doorbells=6 ",
            "rank=+1,ranks=4,arena=5,doorbells=6",
            "rank=-1,ranks=4,arena=5,doorbells=6",
            "rank=4,ranks=4,arena=5,doorbells=6",
            "rank=0,ranks=0,arena=5,doorbells=6",
            "rank=0,ranks=4097,arena=5,doorbells=6",
            "rank=0,ranks=99999999999,arena=5,doorbells=6",
            "ranks=4,rank=1,arena=5,doorbells=6",
        ] {
            assert!(JobVariable::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn doorbells_have_consecutive_numbers() {
        let objects = Objects::create(3).expect("a small job");
        let first = objects.doorbells[0].as_raw_fd();
        assert_eq!(objects.doorbells.len(), 6);
        assert!(objects.doorbells.iter().zip(first..).all(|(doorbell, number)| doorbell.as_raw_fd() == number));
    }
}
