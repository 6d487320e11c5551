//! The job of this process: its rank, and the kernel objects shared by the ranks of a host.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use vgasnet_conduit::{ConduitError, Sleeper, end_with_launcher, environment};

use crate::RANKS_MAX;
use crate::arena::Control;
use crate::joining::{Refusal, ask};
use vgasnet_protocol::RankState;

/// The environment variable that makes a process a rank. The launcher sets it; without it, a process is a job of its
/// own.
pub const JOB_VARIABLE: &str = "VGASNET_SMP_JOB";

/// The value of [`JOB_VARIABLE`]: `rank=1,ranks=4,socket=ADDRESS`, with the address of the launcher's
/// [`crate::Rendezvous`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobVariable<'a> {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) socket: &'a str,
}

impl fmt::Display for JobVariable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobVariable { rank, ranks, socket } = self;
        write!(f, "rank={rank},ranks={ranks},socket={socket}")
    }
}

impl<'a> JobVariable<'a> {
    /// Parses exactly the format of `Display`; the error is a description.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        let mut fields = text.split(',');
        let mut field = |key: &str| fields.next().and_then(|field| field.strip_prefix(key)?.strip_prefix('='));
        let number = |key: &str, digits: Option<&str>, min: u32, max: u32| {
            digits
                .filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .filter(|value| (min..=max).contains(value))
                .ok_or_else(|| format!("\"{key}=\" must be followed by a number from {min} to {max}"))
        };
        let rank = number("rank", field("rank"), 0, RANKS_MAX - 1)?;
        let ranks = number("ranks", field("ranks"), 1, RANKS_MAX)?;
        let socket = field("socket").filter(|name| !name.is_empty() && !name.contains(char::is_whitespace));
        let socket = socket.ok_or("\"socket=\" must be followed by the address of a socket")?;
        if fields.next().is_some() {
            return Err("nothing may follow \"socket=\"".to_owned());
        }
        if rank >= ranks {
            return Err(format!("rank {rank} of {ranks} does not exist"));
        }
        Ok(JobVariable { rank, ranks, socket })
    }
}

/// The kernel objects shared by the ranks of a host.
pub(crate) struct Objects {
    pub(crate) arena: OwnedFd,
    /// Two eventfds a rank: the caller's, then the helper's.
    pub(crate) doorbells: Vec<OwnedFd>,
    /// The process that made them, if another one whose number is known here.
    pub(crate) maker: Option<u32>,
}

impl Objects {
    /// Creates the objects, close-on-exec. Raises the limit of open files to the job's need, or to the system's limit.
    pub(crate) fn create(ranks: u32) -> Result<Self, Errno> {
        // Room for the doorbells, and for a launcher's descriptors for each rank.
        raise_descriptor_limit(64 + 8 * u64::from(ranks))?;
        let doorbell = |_| EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map(OwnedFd::from);
        Ok(Objects {
            arena: Control::create(ranks)?,
            doorbells: (0..2 * ranks).map(doorbell).collect::<Result<_, _>>()?,
            maker: None,
        })
    }

    pub(crate) fn doorbell(&self, rank: u32, sleeper: Sleeper) -> &OwnedFd {
        let place = match sleeper {
            Sleeper::Caller => 0,
            Sleeper::Helper => 1,
        };
        &self.doorbells[2 * rank as usize + place]
    }
}

/// Raises this process's limit of open files to `wanted`, or to the system's limit.
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

/// The job of this process.
pub(crate) struct JobMember {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    pub(crate) objects: Objects,
    pub(crate) control: Control,
    /// The launcher's address, if it stays.
    pub(crate) launcher: Option<String>,
}

impl JobMember {
    /// Joins the job named in [`JOB_VARIABLE`], or creates a job of a single rank.
    pub(crate) fn join() -> Result<Self, ConduitError> {
        let Some(value) = environment::var_os(JOB_VARIABLE) else {
            return Self::alone();
        };
        let text = value.to_string_lossy();
        let variable = JobVariable::parse(&text).map_err(Refusal::Misled);
        let launched = variable.and_then(|JobVariable { rank, ranks, socket }| {
            let (objects, connection) = ask(socket.as_bytes(), rank, ranks)?;
            end_with_launcher(connection.into(), objects.maker.unwrap_or(0));
            let job = Self::of(rank, ranks, objects).map_err(Refusal::Misled)?;
            Ok(JobMember { launcher: Some(socket.to_owned()), ..job })
        });
        launched.map_err(|refusal| {
            let advice = "vgasnetrun sets this variable; a program that a rank starts must unset it, and a rank must be in the \
                          network namespace of vgasnetrun";
            ConduitError(match refusal {
                Refusal::Misled(what) => format!("{JOB_VARIABLE}=\"{text}\": {what} ({advice})"),
                Refusal::Late(what) => what,
            })
        })
    }

    /// A job of a single rank.
    pub(crate) fn alone() -> Result<Self, ConduitError> {
        let refused = |error| ConduitError(format!("cannot make shared memory for 1 rank: {error}"));
        let job = Self::of(0, 1, Objects::create(1).map_err(refused)?).map_err(ConduitError)?;
        job.control.block(0).set_state(RankState::Initialised);
        Ok(job)
    }

    /// The job with these objects, with this process as one of its ranks.
    pub(crate) fn of(rank: u32, ranks: u32, objects: Objects) -> Result<Self, String> {
        let control =
            Control::open(objects.arena.as_fd(), ranks).map_err(|what| format!("the shared memory {what}"))?;
        Ok(JobMember { rank, ranks, objects, control, launcher: None })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_variable_survives_its_own_text() {
        let variable = JobVariable { rank: 1, ranks: 4, socket: "vgasnet-5" };
        assert_eq!(variable.to_string(), "rank=1,ranks=4,socket=vgasnet-5");
        assert_eq!(JobVariable::parse(&variable.to_string()), Ok(variable.clone()));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "rank=1",
            "rank=1,ranks=4",
            "rank=1,ranks=4,socket=",
            "rank=1,ranks=4,socket=a,",
            "rank=1,ranks=4,socket=a ",
            "rank=1,ranks=4,arena=5,doorbells=6",
            "rank=+1,ranks=4,socket=a",
            "rank=-1,ranks=4,socket=a",
            "rank=4,ranks=4,socket=a",
            "rank=0,ranks=0,socket=a",
            "rank=0,ranks=4097,socket=a",
            "rank=0,ranks=99999999999,socket=a",
            "ranks=4,rank=1,socket=a",
        ] {
            assert!(JobVariable::parse(text).is_err(), "{text}");
        }
    }
}
