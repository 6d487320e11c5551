//! A process that maps a file and has the memory of a rank: paging by the kernel, without vgasnet.
//!
//! A rank starts the process and sends it a byte for each step. The process answers with its measurements so far.

use crate::Stop;
use crate::benchmark::Benchmark;
use crate::options::Setup;
use crate::plan::{FRAMES_MIN, Job, Mapping, Spec};
use crate::rank::fail;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use vgasnet_measuring::cgroup;
use vgasnet_measuring::memory::Memory;
use vgasnet_storage::BackingFile;

/// The baseline, where it is missing.
pub const NO_MAPPED_FILE: &str = "mmap in as much memory";

/// Its memory.
pub const MAPPED_MEMORY: &str =
    "mmap has as much memory as a rank takes, page cache included: the pool, a 16th of it, and 12M";

/// Bytes written to a file at a time.
const BLOCK_BYTES: usize = 1 << 20;

/// The process as seen from the rank, and its measurements so far; `Err` has the reason for having none.
pub struct Process<T> {
    running: Result<Running, String>,
    found: PhantomData<T>,
}

struct Running {
    child: Child,
    turns: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl<T: DeserializeOwned> Process<T> {
    pub fn start(spec: &Spec) -> Process<T> {
        let start = |mapping| Running::start(mapping, spec).map_err(|error| format!("starting a process: {error}"));
        let running = spec.mapping.as_ref().map_err(String::clone).and_then(start);
        Process { running, found: PhantomData }
    }

    /// Lets the process do one step.
    pub fn step(&mut self) -> Result<T, String> {
        let answer = self.running.as_mut().map_err(|reason| reason.clone()).and_then(Running::step);
        if let Err(reason) = &answer {
            self.running = Err(reason.clone());
        }
        answer
    }
}

impl Running {
    fn start(mapping: &Mapping, spec: &Spec) -> io::Result<Running> {
        let spec = Spec { is_mapped: true, mapping: Ok(mapping.clone()), ..spec.clone() };
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("rank").arg(serde_json::to_string(&spec)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (turns, answers) = (child.stdin.take(), child.stdout.take());
        let (turns, answers) = turns.zip(answers).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Running { child, turns, answers: BufReader::new(answers) })
    }

    fn step<T: DeserializeOwned>(&mut self) -> Result<T, String> {
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
        // The process may have ended already. The cgroup has to be empty at the end of the job.
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}

/// The work of the process. It enters the cgroup before it allocates memory, so all its memory is counted there.
/// `begin` is called at the first step. Its result does this step and the following ones.
pub fn serve<T: Serialize, S: FnMut() -> T>(spec: &Spec, begin: impl FnOnce(&Mapping) -> S) {
    // SAFETY: the call touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let mapping = spec.mapping.as_ref().map_err(String::clone);
    let entered = mapping.and_then(|mapping| cgroup::enter(&mapping.cgroup).map(|()| mapping));
    if !has_step() {
        return;
    }
    match entered.map(begin) {
        Ok(mut step) => {
            answer(Ok(step()));
            while has_step() {
                answer(Ok(step()));
            }
        }
        Err(reason) => answer(Err::<T, _>(reason)),
    }
}

/// Waits for a step.
fn has_step() -> bool {
    io::stdin().read_exact(&mut [0]).is_ok()
}

fn answer<T: Serialize>(answer: Result<T, String>) {
    let text = serde_json::to_string(&answer).unwrap_or_else(|error| fail(format!("an answer: {error}")));
    // A rank that has ended needs no answer.
    writeln!(io::stdout(), "{text}").ok();
}

/// A job for each number of ranks and each setup, each rank beside a process that maps as much as the rank has data:
/// at least `size` bytes.
pub fn jobs_beside<B: Benchmark>(
    options: &B,
    ranks: &[u32],
    setups: &[Setup],
    size: impl Fn(&Job) -> u64,
) -> Result<Vec<Job>, Stop> {
    let of_ranks = |&ranks: &u32| setups.iter().map(move |setup| (ranks, setup));
    let job = |(ranks, setup)| {
        let job = Job::new(options, ranks, setup)?.with_frames(FRAMES_MIN)?;
        let data_bytes = file_bytes(size(&job), &job);
        Ok(Job { mapped_processes: ranks, ..job.with_data(data_bytes, u64::from(ranks)) })
    };
    ranks.iter().flat_map(of_ranks).map(job).collect()
}

/// The size of a file written here, or of a segment of the job, for at least `len_bytes`.
pub fn file_bytes(len_bytes: u64, job: &Job) -> u64 {
    let unit_bytes = job.config.page_bytes.max(BLOCK_BYTES as u64);
    len_bytes.checked_next_multiple_of(unit_bytes).unwrap_or(u64::MAX / unit_bytes * unit_bytes)
}

/// Writes a file of [`file_bytes`] by direct I/O, since reads of unwritten blocks do not reach the disk. Calls `fill`
/// with the offset of each part. Maps the file.
pub fn written_file(mapping: &Mapping, len_bytes: u64, fill: impl FnMut(u64, &mut [u8])) -> Memory {
    written_and_open(mapping, len_bytes, fill).memory
}

/// A file, mapped and open for direct I/O if the directory supports it.
pub struct MappedFile {
    pub memory: Memory,
    pub file: File,
}

/// As [`written_file`]; the file stays open.
pub fn written_and_open(mapping: &Mapping, len_bytes: u64, fill: impl FnMut(u64, &mut [u8])) -> MappedFile {
    let written = write_and_map(&mapping.dir, len_bytes, fill);
    written.unwrap_or_else(|error| fail_in(mapping, &error))
}

/// Ends the job because of the file.
pub fn fail_in(mapping: &Mapping, error: &io::Error) -> ! {
    fail(format!("a mapped file in {}: {error}", mapping.dir.display()))
}

fn write_and_map(dir: &Path, len_bytes: u64, mut fill: impl FnMut(u64, &mut [u8])) -> io::Result<MappedFile> {
    let backing = BackingFile::create(dir, len_bytes).unwrap_or_else(|error| fail(error.to_string()));
    let file = File::from(backing.as_fd().try_clone_to_owned()?);
    // Direct I/O needs aligned memory.
    let mut block = Memory::shared(BLOCK_BYTES);
    for offset in (0..len_bytes).step_by(BLOCK_BYTES) {
        fill(offset, block.bytes());
        file.write_all_at(block.bytes(), offset)?;
    }
    file.sync_all()?;
    Ok(MappedFile { memory: Memory::of_file(backing.as_fd(), len_bytes as usize)?, file })
}
