//! Named files without space or beyond a limit, and injected errors.

use crate::support::{Pages, disk, each_owned, own_mounts, settle};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use vgasnet_settings::{IoDirection, IoFault, IoTarget};
use vgasnet_storage::{
    BackingFile, Faulty, FileSlot, IoOperation, MemoryFile, NamedFile, NamedOptions, Patient, RingStorage,
    SPACE_PATIENCE, Storage, ThreadStorage,
};

const PAGE_BYTES: usize = 64 << 10;
const COUNT: usize = 4;
const BOTH: NamedOptions = NamedOptions {
    read: true,
    write: true,
    create: true,
    exclusive: false,
    truncate: false,
    mode: 0o600,
    buffered: false,
};

fn start(storage: &mut dyn Storage, file: FileSlot, direction: IoDirection, pages: &mut Pages, page: usize) {
    let offset_bytes = (page * PAGE_BYTES) as u64;
    let operation = IoOperation { file, token: page as u64, ..pages.operation(direction, offset_bytes, page) };
    // SAFETY: the tests keep the pages longer than the storage, and look at one only after its operation has been
    // handed out.
    unsafe { storage.start(operation) }.expect("less than the bound");
}

/// Polls until `left` operations are in flight. Returns the errno of each ended one, by token.
fn finish(storage: &mut dyn Storage, left: usize) -> Vec<(u64, Option<i32>)> {
    let mut ended = Vec::new();
    while storage.in_flight() > left {
        settle(storage, &mut |token, result| ended.push((token, result.err().and_then(|error| error.raw_os_error()))));
    }
    ended.sort_unstable();
    ended
}

/// Storages on a disk, each with a backing file.
fn each_on_disk(mut body: impl FnMut(Box<dyn Storage>)) {
    let backing = || BackingFile::create(&disk(), (COUNT * PAGE_BYTES) as u64).unwrap();
    if let Ok(ring) = RingStorage::new(backing(), COUNT) {
        body(Box::new(ring));
    }
    body(Box::new(ThreadStorage::new(backing(), COUNT).unwrap()));
}

fn patient(inner: Box<dyn Storage>) -> (Patient, Arc<AtomicU32>) {
    let told = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&told);
    let tell = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    (Patient::new(inner, SPACE_PATIENCE, tell).expect("descriptors"), told)
}

#[test]
fn a_file_that_finds_no_space_says_so_at_once() {
    own_mounts("named-full", |dir| {
        mount(Some("tmpfs"), dir, Some("tmpfs"), MsFlags::empty(), Some("size=128k")).unwrap();
        each_on_disk(|storage| {
            let (mut storage, told) = patient(storage);
            let path = dir.join("file");
            let file = Arc::new(NamedFile::open(&path, &BOTH).unwrap());
            let slot = storage.add_file(Arc::clone(&file));
            let mut pages = Pages::new(COUNT, PAGE_BYTES);
            for page in 0..COUNT {
                pages.fill(page, 1);
                start(&mut storage, slot, IoDirection::Write, &mut pages, page);
                let expected = if page < 2 { None } else { Some(libc::ENOSPC) };
                assert_eq!(finish(&mut storage, 0), [(page as u64, expected)]);
            }
            assert_eq!(told.load(Ordering::Relaxed), 0);
            assert_eq!(file.allocate(0, 1 << 20).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
            file.set_size(0).unwrap();
            start(&mut storage, slot, IoDirection::Write, &mut pages, 3);
            assert_eq!(finish(&mut storage, 0), [(3, None)]);
            fs::remove_file(path).unwrap();
        });
        // A thread of the kernel may still use the file.
        umount2(dir, MntFlags::MNT_DETACH).unwrap();
    });
}

#[test]
fn files_go_on_while_the_backing_file_waits_for_space() {
    each_owned((COUNT * PAGE_BYTES) as u64, COUNT, |storage| {
        let mut pages = Pages::new(COUNT, PAGE_BYTES);
        let (mut storage, told) = patient(Box::new(Faulty::new(storage, IoFault::full_disk(1, u64::MAX))));
        let slot = storage.add_file(file_for(&storage));
        start(&mut storage, FileSlot::BACKING, IoDirection::Write, &mut pages, 0);
        while told.load(Ordering::Relaxed) == 0 {
            settle(&mut storage, &mut |token, _| panic!("{token} waits for space"));
        }
        start(&mut storage, slot, IoDirection::Write, &mut pages, 1);
        let (waits, goes) = (
            pages.operation(IoDirection::Write, 2 * PAGE_BYTES as u64, 2),
            pages.operation(IoDirection::Write, 3 * PAGE_BYTES as u64, 3),
        );
        let (waits, goes) = (IoOperation { token: 2, ..waits }, IoOperation { token: 3, file: slot, ..goes });
        // SAFETY: the pages outlive the storage and are left alone.
        assert_eq!(unsafe { storage.start_runs(&[&[waits], &[goes]]) }, 2);
        assert_eq!(finish(&mut storage, 2), [(1, None), (3, None)]);
    });
}

/// A new file. It is in memory for the storage in memory, which has no doorbell.
fn file_for(storage: &dyn Storage) -> Arc<NamedFile> {
    let path = disk().join(format!("named-{}-{:?}", std::process::id(), std::thread::current().id()));
    let file = if storage.doorbell().is_none() {
        NamedFile::in_memory(&MemoryFile::new(1, 1), &BOTH)
    } else {
        let file = NamedFile::open(&path, &BOTH);
        fs::remove_file(path).unwrap();
        file
    };
    Arc::new(file.unwrap())
}

#[test]
fn faults_hit_named_files_or_the_backing_file() {
    each_owned((COUNT * PAGE_BYTES) as u64, COUNT, |storage| {
        let mut pages = Pages::new(COUNT, PAGE_BYTES);
        let file = file_for(&*storage);
        let fault = IoFault { target: IoTarget::Files, ..IoFault::once(IoDirection::Read, 2) };
        let mut storage = Faulty::new(storage, fault);
        let slot = storage.add_file(file);
        let files = [slot, FileSlot::BACKING, FileSlot::BACKING, slot];
        for (page, file) in files.into_iter().enumerate() {
            start(&mut storage, file, IoDirection::Read, &mut pages, page);
        }
        assert_eq!(finish(&mut storage, 0), [(0, None), (1, None), (2, None), (3, Some(libc::EIO))]);
        assert!(storage.reader(slot).is_none(), "reads that may fail are not done by threads");
    });
}

/// Runs in a process with a limit of 1 MiB.
fn write_beyond_the_limit() {
    each_on_disk(|mut storage| {
        let mut pages = Pages::new(COUNT, PAGE_BYTES);
        let file = file_for(&*storage);
        let slot = storage.add_file(Arc::clone(&file));
        let write = |pages: &mut Pages, page: usize, offset_bytes: usize| {
            let operation = pages.operation(IoDirection::Write, offset_bytes as u64, page);
            IoOperation { file: slot, token: page as u64, ..operation }
        };
        let run = [write(&mut pages, 0, (1 << 20) - PAGE_BYTES), write(&mut pages, 1, 1 << 20)];
        // SAFETY: the pages are kept until the operations are finished.
        let mut started = unsafe { storage.start_run(&run) };
        let alone = write(&mut pages, 2, (1 << 20) - PAGE_BYTES / 2);
        // SAFETY: as above.
        started += usize::from(unsafe { storage.start(alone) }.is_ok());
        assert_eq!(started, 3);
        assert_eq!(finish(&mut *storage, 0), [(0, None), (1, Some(libc::EFBIG)), (2, Some(libc::EFBIG))]);
        assert_eq!(file.size_bytes().unwrap(), 1 << 20);
        assert_eq!(file.set_size((1 << 20) + 1).unwrap_err().raw_os_error(), Some(libc::EFBIG));
        assert_eq!(file.allocate(1 << 20, 1).unwrap_err().raw_os_error(), Some(libc::EFBIG));
    });
}

#[test]
fn a_size_limit_is_an_error_of_the_write() {
    let limited = "VGASNET_STORAGE_TEST_LIMITED";
    if std::env::var_os(limited).is_some() {
        return write_beyond_the_limit();
    }
    // The limit binds the whole process, so this test repeats itself in a process of its own.
    let this: PathBuf = std::env::current_exe().unwrap();
    let script = r#"ulimit -f 1024; exec "$0" --exact named::a_size_limit_is_an_error_of_the_write"#;
    let output = Command::new("bash").args(["-c", script]).arg(this).env(limited, "1").output().unwrap();
    assert!(output.status.success(), "{:?} {}", output.status, String::from_utf8_lossy(&output.stdout));
}

/// A ramfs refuses direct I/O.
#[test]
fn without_direct_io_files_go_through_the_page_cache() {
    own_mounts("named-ramfs", |dir: &Path| {
        mount(Some("ramfs"), dir, Some("ramfs"), MsFlags::empty(), Some("mode=700")).unwrap();
        let path = dir.join("file");
        drop(File::create(&path).unwrap());
        let file = NamedFile::open(&path, &BOTH).unwrap();
        assert!(!file.is_direct());
        // A ramfs cannot reserve space, so the call makes the file longer.
        file.allocate(4096, 1).unwrap();
        assert_eq!(file.size_bytes().unwrap(), 4097);
        file.allocate(0, 1).unwrap();
        assert_eq!(file.size_bytes().unwrap(), 4097);
        file.sync().unwrap();
        drop(file);
        // A thread of the kernel may still use the file.
        umount2(dir, MntFlags::MNT_DETACH).unwrap();
    });
}
