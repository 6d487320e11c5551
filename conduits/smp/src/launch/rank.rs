//! Starting one rank of a job on this machine.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};

use super::output::{LabelledPipe, Stream};
use super::process::Process;
use super::{Launch, StartError, advice, cannot_run_status};
use crate::job::{JOB_VARIABLE, JobVariable, Objects};

/// Starts `rank` with this signal mask. With labelled output there are pipes to read.
pub(super) fn spawn(
    launch: &Launch,
    rank: u32,
    objects: &Objects,
    mask: SigSet,
) -> Result<(Process, Vec<LabelledPipe>), StartError> {
    let variable = JobVariable {
        rank,
        ranks: launch.ranks,
        arena: objects.arena.as_raw_fd(),
        doorbells: objects.doorbells[0].as_raw_fd(),
    };
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.env(JOB_VARIABLE, variable.to_string());
    if rank > 0 {
        command.stdin(Stdio::null());
    }
    if launch.label_output {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    let bells = variable.doorbells..variable.doorbells + objects.doorbells.len() as RawFd;
    let inherited = std::iter::once(variable.arena).chain(bells);
    let mut process =
        Process::spawn(command, mask, Signal::SIGKILL, inherited).map_err(|error| explain(launch, rank, &error))?;
    let child = process.child().expect("it was started here");
    let out = child.stdout.take().map(|pipe| (OwnedFd::from(pipe), Stream::Out));
    let err = child.stderr.take().map(|pipe| (OwnedFd::from(pipe), Stream::Err));
    let pipes = out.into_iter().chain(err).map(|(pipe, stream)| LabelledPipe::new(rank, pipe, stream)).collect();
    Ok((process, pipes))
}

fn explain(launch: &Launch, rank: u32, error: &io::Error) -> StartError {
    let program = launch.program.to_string_lossy();
    let advice = error.raw_os_error().map_or_else(String::new, |code| advice(Errno::from_raw(code)));
    let text = format!("cannot start rank {rank} of {}, \"{program}\": {error}{advice}", launch.ranks);
    StartError { status: cannot_run_status(error), text }
}
