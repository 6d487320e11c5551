//! Writes without space, on disks made for the test and on storages that inject the error.

use crate::support::{Pages, disk, each_owned, is_readable, own_mounts, settle, skip};
use nix::sys::statvfs::statvfs;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vgasnet_settings::{IoDirection, IoFault};
use vgasnet_storage::{BackingFile, Faulty, Patient, SPACE_PATIENCE, Storage, ThreadStorage};

const PAGE_BYTES: usize = 64 << 10;
const COUNT: usize = 8;

/// A storage that counts its waits for space.
fn patient(inner: Box<dyn Storage>, patience: Duration) -> (Patient, Arc<AtomicU32>) {
    let told = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&told);
    let tell = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    (Patient::new(inner, patience, tell).expect("descriptors"), told)
}

fn start(storage: &mut dyn Storage, direction: IoDirection, pages: &mut Pages, page: usize) {
    let offset_bytes = (page * PAGE_BYTES) as u64;
    pages.start(storage, direction, offset_bytes, page, page as u64).expect("less than the bound");
}

/// Finishes all operations. Returns the errno of each failed one.
fn finish(storage: &mut dyn Storage) -> Vec<(u64, Option<i32>)> {
    let mut failed = Vec::new();
    while storage.in_flight() > 0 {
        settle(storage, &mut |token, result| failed.extend(result.err().map(|error| (token, error.raw_os_error()))));
    }
    failed.sort_unstable();
    failed
}

#[test]
fn writes_wait_until_there_is_space() {
    each_owned((COUNT * PAGE_BYTES) as u64, COUNT, |storage| {
        let faulty = Faulty::new(storage, IoFault::full_disk(2, 5));
        let (mut storage, told) = patient(Box::new(faulty), SPACE_PATIENCE);
        let mut pages = Pages::new(COUNT, PAGE_BYTES);
        for page in 0..COUNT {
            pages.fill(page, page as u64);
            start(&mut storage, IoDirection::Write, &mut pages, page);
        }
        assert_eq!(finish(&mut storage), []);
        assert_eq!(told.load(Ordering::Relaxed), 1);
        if storage.doorbell().is_some() {
            assert!(!is_readable(&storage, Duration::ZERO), "nothing is left to do");
        }
        for page in 0..COUNT {
            pages.clear(page);
            start(&mut storage, IoDirection::Read, &mut pages, page);
        }
        assert_eq!(finish(&mut storage), []);
        assert!((0..COUNT).all(|page| pages.holds(page, page as u64)));
    });
}

#[test]
fn reads_go_on_while_writes_wait() {
    each_owned((COUNT * PAGE_BYTES) as u64, 2, |storage| {
        // Dropped after the storage, which has unfinished writes at the end.
        let mut pages = Pages::new(COUNT, PAGE_BYTES);
        let faulty = Faulty::new(storage, IoFault::full_disk(1, u64::MAX));
        let (mut storage, told) = patient(Box::new(faulty), SPACE_PATIENCE);
        start(&mut storage, IoDirection::Write, &mut pages, 0);
        while told.load(Ordering::Relaxed) == 0 {
            settle(&mut storage, &mut |token, _| panic!("{token} waits for space"));
        }
        // More waiting writes than the limit still leave room for reads.
        (1..COUNT - 1).for_each(|page| start(&mut storage, IoDirection::Write, &mut pages, page));
        start(&mut storage, IoDirection::Read, &mut pages, COUNT - 1);
        let mut is_read = false;
        while !is_read {
            settle(&mut storage, &mut |token, result| {
                result.expect("a read needs no space");
                assert_eq!(token, COUNT as u64 - 1);
                is_read = true;
            });
        }
        assert_eq!(storage.in_flight(), COUNT - 1);
    });
}

#[test]
fn writes_fail_when_no_space_comes() {
    const PATIENCE: Duration = Duration::from_millis(60);
    each_owned((COUNT * PAGE_BYTES) as u64, COUNT, |storage| {
        let faulty = Faulty::new(storage, IoFault::full_disk(1, u64::MAX));
        let (mut storage, _) = patient(Box::new(faulty), PATIENCE);
        let mut pages = Pages::new(COUNT, PAGE_BYTES);
        let begin = Instant::now();
        (0..2).for_each(|page| start(&mut storage, IoDirection::Write, &mut pages, page));
        assert_eq!(finish(&mut storage), [(0, Some(libc::ENOSPC)), (1, Some(libc::ENOSPC))]);
        assert!(begin.elapsed() >= PATIENCE);
    });
}

#[test]
fn other_errors_do_not_wait() {
    each_owned((COUNT * PAGE_BYTES) as u64, COUNT, |storage| {
        let mut pages = Pages::new(COUNT, PAGE_BYTES);
        let (mut storage, told) =
            patient(Box::new(Faulty::new(storage, IoFault::once(IoDirection::Write, 1))), SPACE_PATIENCE);
        start(&mut storage, IoDirection::Write, &mut pages, 0);
        assert_eq!(finish(&mut storage), [(0, Some(libc::EIO))]);
        assert_eq!(told.load(Ordering::Relaxed), 0);
    });
}

/// Mounts a new file system of this size, in a thread with its own mounts. Prints a line if this is impossible.
fn mount_image(name: &str, dir: &Path, make: &[&str], size_bytes: u64) -> bool {
    let image = disk().join(format!("{name}.image"));
    let path = image.to_str().expect("a path that is text");
    File::create(&image).and_then(|file| file.set_len(size_bytes)).expect("room for an image");
    let mut steps = [Command::new(make[0]), Command::new("mount")];
    steps[0].args(&make[1..]).arg(path);
    steps[1].args(["-o", "loop", path]).arg(dir);
    let failed = steps.iter_mut().find_map(|step| match step.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("{step:?}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Some(format!("{step:?}: {error}")),
    });
    // The mount keeps the file.
    fs::remove_file(&image).expect("an image of ours");
    if let Some(why) = &failed {
        skip(&format!("{name}: {}", why.trim().replace('\n', " ")));
    }
    failed.is_none()
}

/// Takes all the space left.
fn fill(dir: &Path) -> File {
    let mut file = File::create(dir.join("filler")).expect("room for a name");
    let block = vec![1; 64 << 10];
    while file.write_all(&block).is_ok() {}
    while file.write_all(&block[..512]).is_ok() {}
    // The file system finds its promised space now, or reports its lack.
    let _ = file.sync_all();
    file
}

#[test]
fn a_full_disk_is_waited_for() {
    own_mounts("full-ext2", |dir| {
        // ext2 cannot reserve space.
        if !mount_image("full-ext2", dir, &["mke2fs", "-q", "-F", "-t", "ext2"], 16 << 20) {
            return;
        }
        let file = BackingFile::create(dir, (COUNT * PAGE_BYTES) as u64).unwrap();
        assert!(file.warnings().iter().any(|line| line.contains("cannot reserve space")), "{:?}", file.warnings());
        let filler = fill(dir);
        let (mut storage, told) = patient(Box::new(ThreadStorage::new(file, COUNT).unwrap()), SPACE_PATIENCE);
        let mut pages = Pages::new(COUNT, PAGE_BYTES);
        for page in 0..COUNT {
            pages.fill(page, 7);
            start(&mut storage, IoDirection::Write, &mut pages, page);
        }
        while told.load(Ordering::Relaxed) == 0 {
            settle(&mut storage, &mut |_, result| result.expect("it waits"));
        }
        filler.set_len(0).unwrap();
        assert_eq!(finish(&mut storage), []);
    });
}

#[test]
fn reserved_space_holds_on_btrfs() {
    own_mounts("full-btrfs", |dir| {
        if !mount_image("full-btrfs", dir, &["mkfs.btrfs", "-q"], 256 << 20) {
            return;
        }
        const LARGE_BYTES: usize = 4 << 20;
        let file = BackingFile::create(dir, (COUNT * LARGE_BYTES) as u64).unwrap();
        assert_eq!(file.warnings(), [""; 0]);
        let mut storage = ThreadStorage::new(file, COUNT).unwrap();
        let mut pages = Pages::new(COUNT, LARGE_BYTES);
        for round in 0..3 {
            for page in 0..COUNT {
                pages.fill(page, round);
                pages
                    .start(&mut storage, IoDirection::Write, (page * LARGE_BYTES) as u64, page, page as u64)
                    .expect("less than the bound");
            }
            assert_eq!(finish(&mut storage), [], "round {round}, on a disk that has been full since the first");
            if round == 0 {
                fill(dir);
                assert!(statvfs(dir).unwrap().blocks_available() * 4096 < LARGE_BYTES as u64 / 2);
            }
        }
    });
}
