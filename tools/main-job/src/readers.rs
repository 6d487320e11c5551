//! Processes that read the file by mmap or read(), as a program without vgasnet would.

use crate::plan::{BLOCK_BYTES, Done, Orders, Sums, Way};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use vgasnet_measuring::cgroup;
use vgasnet_measuring::disk::disk_bytes;
use vgasnet_measuring::memory::Memory;
use vgasnet_measuring::progress::Bytes;

/// Waits for a byte on standard input, reads all blocks and compares them. Then prints its report as a line on standard
/// output.
pub fn run(orders: &Orders) -> Result<(), String> {
    // The kernel kills a reader whose parent has died.
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).map_err(|error| error.to_string())?;
    if let Some(cgroup) = &orders.cgroup {
        cgroup::enter(cgroup)?;
    }
    let path = orders.file.display().to_string();
    let told = |error: io::Error| format!("{path}: {error}");
    let sums = Sums::inherited(orders.sums_fd).map_err(told)?;
    // The shared mapping is writable, so the file must be open for writing, although nothing is written.
    let file = File::options().read(true).write(true).open(&orders.file).map_err(told)?;
    let mut source = match orders.way {
        Way::Mmap => Source::Mapped(Memory::of_file(file.as_fd(), orders.data_bytes as usize).map_err(told)?),
        _ => Source::Read(file, vec![0; BLOCK_BYTES as usize]),
    };
    io::stdin().read_exact(&mut [0]).map_err(told)?;
    let [before, _] = disk_bytes();
    let mut progress = Bytes::new(orders.me == 0, &format!("  {} reads", orders.way.name()), orders.data_bytes);
    for block in orders.order(orders.me) {
        let bytes = source.block(block, orders.block_bytes(block)).map_err(told)?;
        if !sums.is_same(block, bytes) {
            return Err(format!("{path}: block {block} has other bytes than before"));
        }
        progress.add(bytes.len() as u64);
    }
    drop(progress);
    let done = Done { read_bytes: orders.data_bytes, disk_bytes: disk_bytes()[0] - before, ..Done::default() };
    println!("{}", serde_json::to_string(&done).map_err(|error| error.to_string())?);
    Ok(())
}

enum Source {
    Mapped(Memory),
    Read(File, Vec<u8>),
}

impl Source {
    fn block(&mut self, block: u64, len_bytes: usize) -> io::Result<&[u8]> {
        match self {
            Source::Mapped(memory) => Ok(&memory.bytes()[(block * BLOCK_BYTES) as usize..][..len_bytes]),
            Source::Read(file, buffer) => {
                file.read_exact_at(&mut buffer[..len_bytes], block * BLOCK_BYTES)?;
                Ok(&buffer[..len_bytes])
            }
        }
    }
}

/// Writes the first rank's report to the file read by the parent.
pub fn leave_report(orders: &Orders, done: &Done) -> io::Result<()> {
    let file = File::options().write(true).open(format!("/proc/self/fd/{}", orders.report_fd))?;
    Ok(serde_json::to_writer(file, done)?)
}
