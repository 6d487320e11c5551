//! The directory of the backing files, its disk, and the disk's speed.

use crate::kernel;
use crate::report::{Report, Section};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};
use vgasnet_settings::format_size_about;
use vgasnet_storage::{self as storage, BackingFile, RingStorage};

/// The smallest and largest file used for measuring.
const FILE_BYTES: std::ops::RangeInclusive<u64> = 8 << 20..=256 << 20;
/// Bytes per sequential read or write.
const BLOCK_BYTES: usize = 4 << 20;
/// Bytes per read at a random place.
const SMALL_BYTES: usize = 4 << 10;
/// Time limit of the sequential writes, and of the sequential reads. The last operation of each may exceed it.
const PATIENCE: Duration = Duration::from_millis(1000);
/// Time limit of the random reads.
const PATIENCE_SMALL: Duration = Duration::from_millis(400);

/// An SSD reads 4 KiB in less than this many microseconds, a rotating disk does not.
const SMALL_US_MAX: u64 = 2000;

/// Network file systems.
const OF_NETWORKS: [&str; 12] =
    ["nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "fuse.glusterfs", "fuse.sshfs", "afs", "9p"];

/// Adds the directory of the backing files and its speed. A job's smallest backing file is one page.
pub fn observe(report: &mut Report, dir: &Path, page_bytes: u64) {
    mounted(report, dir);
    let Ok(free_bytes) = storage::free_bytes(dir) else { return };
    report.bytes(Section::Storage, "free_bytes", free_bytes);
    match BackingFile::create(dir, file_bytes(free_bytes, storage::size_limit_bytes())) {
        Ok(file) if file.size_bytes() == 0 => {
            report.advise(format!(
                "{} has too little space, or `ulimit -f` permits too small files, to measure its speed",
                dir.display()
            ));
        }
        Ok(file) => measure(report, file),
        // Smaller files may be possible.
        Err(error) if BackingFile::create(dir, page_bytes).is_ok() => {
            report.advise(format!("the speed of {} is not measured: {error}", dir.display()));
        }
        Err(error) => report.refuse(error.to_string()),
    }
}

/// The size of the file for measuring; 0 if it would be too small.
fn file_bytes(free_bytes: u64, limit_bytes: u64) -> u64 {
    let most_bytes = (free_bytes / 4).min(limit_bytes).min(*FILE_BYTES.end());
    if most_bytes < *FILE_BYTES.start() { 0 } else { most_bytes / BLOCK_BYTES as u64 * BLOCK_BYTES as u64 }
}

/// Adds the directory and its file system.
fn mounted(report: &mut Report, dir: &Path) {
    report.say(Section::Storage, "directory", dir.display().to_string());
    if let Some(mount) = mount_of(dir) {
        report.say(Section::Storage, "file_system", &mount.kind);
        report.say(Section::Storage, "device", &mount.device);
        if let Some(kind) = kind_of_disk(dir) {
            report.say(Section::Storage, "disk", kind);
        }
        if OF_NETWORKS.contains(&mount.kind.as_str()) {
            report.advise(format!(
                "{} is on another machine ({}); set VGASNET_STORAGE_DIR to a directory on a disk of this one",
                dir.display(),
                mount.kind
            ));
        }
    }
}

fn measure(report: &mut Report, backing: BackingFile) {
    report.flag(Section::Storage, "past_the_page_cache", backing.is_direct());
    backing.warnings().iter().for_each(|line| report.advise(line));
    let size_bytes = backing.size_bytes();
    let clone = backing.as_fd().try_clone_to_owned().map(File::from);
    let refused = RingStorage::new(backing, 1).err().map(|refused| refused.error);
    kernel::tell_of_io_uring(report, refused.as_ref());
    let measured = clone.and_then(|file| Speed::of(&file, size_bytes));
    match measured {
        Ok(speed) => {
            for (key, bytes_s) in [("write_bytes_s", speed.write_bytes_s), ("read_bytes_s", speed.read_bytes_s)] {
                report.number_as(Section::Storage, key, bytes_s, format!("{}/s", format_size_about(bytes_s)));
            }
            report.number(Section::Storage, "read_of_4k_us", speed.small_us, "us");
            if speed.small_us > SMALL_US_MAX {
                report.advise(format!(
                    "a read of 4K at a random place takes {} us, as on a disk that turns; set VGASNET_STORAGE_DIR to a directory on an SSD",
                    speed.small_us
                ));
            }
        }
        Err(error) => {
            report.refuse(format!("the disk cannot be written and read: {error}; set VGASNET_STORAGE_DIR to another"))
        }
    }
}

/// The speed of a disk with one operation at a time.
struct Speed {
    write_bytes_s: u64,
    read_bytes_s: u64,
    /// Microseconds for a 4 KiB read at a random place.
    small_us: u64,
}

impl Speed {
    fn of(file: &File, size_bytes: u64) -> io::Result<Speed> {
        let mut room = vec![0_u8; 2 * BLOCK_BYTES];
        let start = room.as_ptr().align_offset(BLOCK_BYTES);
        let block = &mut room[start..start + BLOCK_BYTES];
        // Some disks recognize zeros and repeated data.
        fastrand::Rng::with_seed(2017).fill(block);
        let written =
            timed(PATIENCE, size_bytes / BLOCK_BYTES as u64, |at| file.write_all_at(block, at * BLOCK_BYTES as u64))?;
        let read = timed(PATIENCE, written.count, |at| file.read_exact_at(block, at * BLOCK_BYTES as u64))?;
        let small = &mut block[..SMALL_BYTES];
        let places = written.count * BLOCK_BYTES as u64 / SMALL_BYTES as u64;
        let mut random = fastrand::Rng::with_seed(2017);
        let reads =
            timed(PATIENCE_SMALL, u64::MAX, |_| file.read_exact_at(small, random.u64(..places) * SMALL_BYTES as u64))?;
        let bytes_s = |timed: Timed| (timed.count as f64 * BLOCK_BYTES as f64 / timed.seconds) as u64;
        Ok(Speed {
            write_bytes_s: bytes_s(written),
            read_bytes_s: bytes_s(read),
            small_us: (reads.seconds / reads.count as f64 * 1e6) as u64,
        })
    }
}

/// A number of operations and their total time.
#[derive(Clone, Copy)]
struct Timed {
    count: u64,
    seconds: f64,
}

/// Repeats an operation at least once, until a number of times or a time limit is reached.
fn timed(patience: Duration, count_max: u64, mut operation: impl FnMut(u64) -> io::Result<()>) -> io::Result<Timed> {
    let begin = Instant::now();
    let mut count = 0;
    while count == 0 || count < count_max && begin.elapsed() < patience {
        operation(count)?;
        count += 1;
    }
    Ok(Timed { count, seconds: begin.elapsed().as_secs_f64().max(1e-9) })
}

/// The mount of a directory.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    kind: String,
    device: String,
}

fn mount_of(dir: &Path) -> Option<Mount> {
    let dir = dir.canonicalize().ok()?;
    mount_in(&fs::read_to_string("/proc/self/mountinfo").ok()?, &dir)
}

/// The last of the deepest mounts above a directory, from the text of mountinfo: `... ROOT POINT OPTIONS ... - KIND
/// DEVICE ...`.
fn mount_in(mounts: &str, dir: &Path) -> Option<Mount> {
    let found = mounts.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?.replace("\\040", " ");
        let mut source = source.split(' ');
        let mount = Mount { kind: source.next()?.to_owned(), device: source.next()?.to_owned() };
        dir.starts_with(&point).then(|| (Path::new(&point).components().count(), mount))
    });
    found.max_by_key(|(depth, _)| *depth).map(|(_, mount)| mount)
}

/// Whether the disk of a directory reports itself as rotating, if the directory is on a disk.
fn kind_of_disk(dir: &Path) -> Option<&'static str> {
    let device = fs::metadata(dir).ok()?.dev();
    let block = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    // A partition takes the attribute from its disk.
    let rotates = ["queue/rotational", "../queue/rotational"].into_iter();
    let text = rotates.filter_map(|name| fs::read_to_string(Path::new(&block).join(name)).ok()).next()?;
    Some(if text.trim() == "1" { "says that it turns" } else { "says that it does not turn" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_is_found() {
        let mounts = "1 0 254:0 / / rw - ext4 /dev/vda rw\n2 1 0:5 / /tmp rw shared:1 - tmpfs tmpfs rw\n\
                      3 1 8:1 / /with\\040blank rw - xfs /dev/sda1 rw\n4 2 8:2 / /tmp rw - nfs4 server:/x rw\n";
        for (dir, kind, device) in
            [("/var/tmp", "ext4", "/dev/vda"), ("/tmp/a", "nfs4", "server:/x"), ("/with blank", "xfs", "/dev/sda1")]
        {
            let mount = Mount { kind: kind.into(), device: device.into() };
            assert_eq!(mount_in(mounts, Path::new(dir)), Some(mount), "{dir}");
        }
    }

    #[test]
    fn the_file_that_is_measured_has_bounds() {
        const MIB: u64 = 1 << 20;
        for (free, limit, size) in
            [(4096, u64::MAX >> 20, 256), (100, 4096, 24), (4096, 11, 8), (4096, 7, 0), (31, 4096, 0)]
        {
            assert_eq!(file_bytes(free * MIB, limit * MIB), size * MIB, "{free}, {limit}");
        }
    }

    #[test]
    fn operations_are_counted() {
        let timed = timed(Duration::from_secs(60), 3, |_| Ok(())).expect("no error");
        assert_eq!(timed.count, 3);
        assert!(super::timed(Duration::ZERO, 3, |_| Err(io::ErrorKind::Other.into())).is_err());
    }
}
