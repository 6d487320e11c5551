//! Runs the ways one after another in each round.

use crate::plan::{Done, Orders, Sums, Way, memory_bytes};
use crate::results::Results;
use crate::{Options, chart};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use vgasnet_launch::Launch;
use vgasnet_measuring::cgroup::MemoryLimit;
use vgasnet_measuring::progress::Bytes;
use vgasnet_settings::{Config, Machine, environment, format_size, format_size_about};
use vgasnet_storage as storage;

/// Reads the data by all ways and prints the result.
pub fn run(options: &Options) -> Result<(), String> {
    let path = options.file.as_deref().unwrap_or(Path::new(""));
    let (pool_bytes, ranks) = (options.pool << 20, options.ranks);
    let memory_bytes = memory_bytes(ranks, pool_bytes);
    let told = |error: io::Error| format!("{}: {error}", path.display());
    let size_bytes = std::fs::metadata(path).map_err(told)?.len();
    if size_bytes <= memory_bytes {
        let (size, memory) = (format_size_about(size_bytes), format_size_about(memory_bytes));
        return Err(format!("{} has {size}, and the memory is {memory}; give a larger file", path.display()));
    }
    println!(
        "{ranks} ranks share {} of {}. Together they may use {} of memory: the data are {:.1} times as large.\n\
         Each rank reads all data, 4 MiB at a time, in a random order of its own, and compares every byte.\n\
         Then {ranks} processes do the same by mmap and by read(), with the same memory. {} rounds.\n",
        format_size_about(size_bytes),
        path.display(),
        format_size_about(memory_bytes),
        size_bytes as f64 / memory_bytes as f64,
        options.rounds,
    );
    let setting = Setting::new(options, path, memory_bytes)?;
    let mut results = Results::new(ranks, size_bytes, memory_bytes, setting.limit.as_ref().err().cloned());
    for round in 0..options.rounds {
        for way in Way::ALL.into_iter().filter(|way| *way == Way::Vgasnet || setting.limit.is_ok()) {
            let done = setting.run(way, round)?;
            println!("  round {} of {}, {}", round + 1, options.rounds, results.add(way, done));
        }
    }
    print!("\n{}", results.text());
    let failed = |path: &PathBuf, error: io::Error| format!("{}: {error}", path.display());
    if let Some(path) = &options.svg {
        std::fs::write(path, chart::svg(&results)).map_err(|error| failed(path, error))?;
    }
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&results).map_err(|error| failed(path, error.into()))? + "\n";
        std::fs::write(path, json).map_err(|error| failed(path, error))?;
    }
    Ok(())
}

/// State common to all rounds.
struct Setting {
    orders: Orders,
    pool_bytes: u64,
    storage_dir: PathBuf,
    /// The memory limit for all processes of a way together, or the reason for not having one.
    limit: Result<MemoryLimit, String>,
    report: File,
    copy: Copy,
    _sums: File,
}

impl Setting {
    fn new(options: &Options, path: &Path, memory_bytes: u64) -> Result<Setting, String> {
        let told = |error: io::Error| format!("{}: {error}", path.display());
        let config =
            Config::from_env(environment(), options.ranks, &Machine::observe()).map_err(|line| line.to_string())?;
        let size_bytes = std::fs::metadata(path).map_err(told)?.len();
        let free_bytes = storage::free_bytes(&config.storage_dir).map_err(|line| line.to_string())?;
        if free_bytes < 3 * size_bytes {
            return Err(format!(
                "the segments and a copy of the data take {} in {}, which has {} free; set VGASNET_STORAGE_DIR to a larger disk",
                format_size_about(3 * size_bytes),
                config.storage_dir.display(),
                format_size_about(free_bytes),
            ));
        }
        let mut progress = Bytes::new(true, "  reading the file for its checksums", size_bytes);
        let (sums, data_bytes) = Sums::of(path, |bytes| progress.add(bytes)).map_err(told)?;
        drop(progress);
        let (sums_file, report) = (inherited_memory().map_err(told)?, inherited_memory().map_err(told)?);
        sums.write(&sums_file).map_err(told)?;
        let copy = Copy::new(path, &config.storage_dir)?;
        let limit = MemoryLimit::new(memory_bytes);
        let orders = Orders {
            way: Way::Vgasnet,
            file: path.canonicalize().map_err(told)?,
            data_bytes,
            sums_fd: sums_file.as_raw_fd(),
            cgroup: limit.as_ref().ok().map(|limit| limit.path().to_owned()),
            processes: options.ranks,
            me: 0,
            seed: 0,
            report_fd: report.as_raw_fd(),
        };
        let (pool_bytes, storage_dir) = (options.pool << 20, config.storage_dir);
        Ok(Setting { orders, pool_bytes, storage_dir, limit, report, copy, _sums: sums_file })
    }

    fn run(&self, way: Way, round: u32) -> Result<Done, String> {
        let orders = Orders { way, seed: u64::from(round) + 1, ..self.orders.clone() };
        match way {
            Way::Vgasnet => self.by_vgasnet(&orders),
            Way::Mmap | Way::Read => self.by_kernel(&Orders { file: self.copy.path.clone(), ..orders }),
        }
    }

    fn by_vgasnet(&self, orders: &Orders) -> Result<Done, String> {
        let orders = serde_json::to_string(orders).map_err(|error| error.to_string())?;
        let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
        self.report.set_len(0).map_err(|error| format!("a report: {error}"))?;
        let outcome = Launch::new(self.orders.processes, program)
            .args(["process".to_owned(), orders])
            .env("VGASNET_POOL_SIZE", format_size(self.pool_bytes))
            .env("VGASNET_STORAGE_DIR", &self.storage_dir)
            .run();
        if outcome.status != 0 {
            return Err(String::new());
        }
        let (mut text, mut report) = (String::new(), &self.report);
        report
            .rewind()
            .and_then(|()| report.read_to_string(&mut text))
            .map_err(|error| format!("a report: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("the report of rank 0: {error}"))
    }

    /// Starts the readers. The clock starts after all of them have opened the file.
    fn by_kernel(&self, orders: &Orders) -> Result<Done, String> {
        self.copy.forget().map_err(|error| format!("{}: {error}", self.copy.path.display()))?;
        let readers = (0..orders.processes).map(|me| Reader::start(&Orders { me, ..orders.clone() }));
        let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
        let start = Instant::now();
        for reader in &mut readers {
            reader.begin()?;
        }
        let mut all = Done::default();
        for reader in &mut readers {
            let done = reader.end()?;
            all.read_bytes += done.read_bytes;
            all.disk_bytes += done.disk_bytes;
        }
        Ok(Done { seconds: start.elapsed().as_secs_f64(), ..all })
    }
}

/// A file in memory, inherited by child processes.
fn inherited_memory() -> io::Result<File> {
    Ok(File::from(memfd_create("vgasnet-main-job", MFdFlags::empty())?))
}

/// A process that reads the file. It is killed when this is dropped.
struct Reader {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Reader {
    fn start(orders: &Orders) -> Result<Reader, String> {
        let failed = |error: io::Error| format!("starting a process: {error}");
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("process").arg(serde_json::to_string(orders).map_err(|error| failed(error.into()))?);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        Ok(Reader { child, answers: BufReader::new(stdout) })
    }

    fn begin(&mut self) -> Result<(), String> {
        let begun = self.child.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(b"\n"));
        begun.map_err(|error| format!("a reader: {error}"))
    }

    fn end(&mut self) -> Result<Done, String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).map_err(|error| format!("a reader: {error}"))?;
        if read == 0 {
            let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(format!("a reader ended early: {status}"));
        }
        serde_json::from_str(&line).map_err(|error| format!("a reader's answer: {error}"))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}

/// A copy of the data, dropped from the page cache before each round.
struct Copy {
    path: PathBuf,
    file: File,
}

impl Copy {
    fn new(from: &Path, dir: &Path) -> Result<Copy, String> {
        let path = dir.join(format!("vgasnet-main-job-{}", std::process::id()));
        let told = |error: io::Error| format!("{}: {error}", path.display());
        let mut source = File::open(from).map_err(|error| format!("{}: {error}", from.display()))?;
        let file = File::options().read(true).write(true).create_new(true).open(&path).map_err(told)?;
        let copy = Copy { path: path.clone(), file };
        io::copy(&mut source, &mut &copy.file).map_err(told)?;
        Ok(copy)
    }

    fn forget(&self) -> io::Result<()> {
        self.file.sync_all()?;
        Ok(posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).ok();
    }
}
