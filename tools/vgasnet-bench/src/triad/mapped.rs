//! The triad over a file that a process maps, with the memory of a rank: paging by the kernel, without vgasnet.
//!
//! The rank starts the process and sends it a byte for each turn. The process answers with its measurements so far.

use super::Passes;
use crate::arrays::{ARRAYS, Arrays};
use crate::cgroup;
use crate::memory::Memory;
use crate::plan::{Mapping, Spec, Workload};
use crate::rank::fail;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use vgasnet::storage::BackingFile;

/// The measurements of the process so far, or why the kernel does not let it run as it should.
type Answer = Result<Passes, String>;

/// The process, seen from the rank; `Err` says why there is none.
pub struct Process(Result<Running, String>);

struct Running {
    child: Child,
    turns: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(spec: &Spec) -> Process {
        let start = |mapping| Running::start(mapping, spec).map_err(|error| format!("starting a process: {error}"));
        Process(spec.mapping.as_ref().map_err(String::clone).and_then(start))
    }

    /// Lets the process write its arrays at the first call, and run a triad at each further one.
    pub fn step(&mut self) -> Answer {
        let answer = self.0.as_mut().map_err(|reason| reason.clone()).and_then(Running::step);
        if let Err(reason) = &answer {
            self.0 = Err(reason.clone());
        }
        answer
    }
}

impl Running {
    fn start(mapping: &Mapping, spec: &Spec) -> io::Result<Running> {
        let spec = Spec { workload: Workload::MappedTriad, mapping: Ok(mapping.clone()), ..spec.clone() };
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("rank").arg(serde_json::to_string(&spec)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (turns, answers) = (child.stdin.take(), child.stdout.take());
        let (turns, answers) = turns.zip(answers).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Running { child, turns, answers: BufReader::new(answers) })
    }

    fn step(&mut self) -> Answer {
        let mut line = String::new();
        let asked = self.turns.write_all(b"\n").and_then(|()| self.answers.read_line(&mut line));
        match asked {
            Ok(_) if line.ends_with('\n') => {
                serde_json::from_str(&line).unwrap_or_else(|error| Err(format!("its answer {line}: {error}")))
            }
            _ => Err(self.child.wait().map_or_else(
                |error| format!("waiting for its process: {error}"),
                |status| format!("its process ended with {status}; with signal 9 the memory was too little for it"),
            )),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already, and the cgroup has to be empty when the job ends.
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}

/// The work of the process. It enters the cgroup before it touches memory, so that all its memory counts there.
pub fn serve(spec: &Spec) {
    // SAFETY: the call touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let turn = || io::stdin().read_exact(&mut [0]).is_ok();
    let mapping = spec.mapping.as_ref().map_err(String::clone);
    let entered = mapping.and_then(|mapping| cgroup::enter(&mapping.cgroup).map(|()| mapping));
    if !turn() {
        return;
    }
    let mapping = match entered {
        Ok(mapping) => mapping,
        Err(reason) => return answer(Err(reason)),
    };
    let file = BackingFile::create(&mapping.dir, spec.data_bytes).unwrap_or_else(|error| fail(error.to_string()));
    let failed = |error: io::Error| format!("mapping a file in {}: {error}", mapping.dir.display());
    let memory = Memory::of_file(file.as_fd(), spec.data_bytes as usize);
    let memory = memory.unwrap_or_else(|error| fail(failed(error)));
    // SAFETY: the mapping is page-aligned, as long as the arrays, of a file that nobody else has, and outlives them.
    let mut arrays = unsafe { Arrays::new(memory.start(), spec.data_bytes / ARRAYS, spec.seed) };
    let write_back = || write_back(file.as_fd()).unwrap_or_else(|error| fail(failed(error)));
    let mut passes = Passes::default();
    passes.initialise(&mut arrays, write_back);
    answer(Ok(&passes));
    while turn() {
        passes.run(&mut arrays, write_back);
        answer(Ok(&passes));
    }
}

fn answer(answer: Result<&Passes, String>) {
    let text = serde_json::to_string(&answer).unwrap_or_else(|error| fail(format!("an answer: {error}")));
    // A rank that is gone needs no answer.
    writeln!(io::stdout(), "{text}").ok();
}

/// Waits until the disk has all stores. Unlike `msync` this does not flush the disk's own cache: the other ways do not either.
fn write_back(file: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open; the call touches no memory of ours.
    let synced = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    if synced == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
