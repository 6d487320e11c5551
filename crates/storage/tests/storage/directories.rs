//! Directories that are wrong, full, read-only or on file systems with fewer features than a disk's, and kernels that
//! refuse calls.

use crate::support::{Pages, disk, own_mounts, settle};
use nix::mount::{MsFlags, mount};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use vgasnet_settings::{IoDirection, IoFault};
use vgasnet_storage::{BackingFile, Options, Storage, free_bytes, memory_file_system, open};

const PAGE_BYTES: usize = 64 << 10;

fn refusal(dir: &Path, size_bytes: u64) -> String {
    let line = BackingFile::create(dir, size_bytes).expect_err("this directory cannot do that").to_string();
    assert!(!line.contains('\n') && line.contains("VGASNET_STORAGE_DIR"), "{line}");
    line
}

fn mount_kind(kind: &str, dir: &Path, options: &str) {
    mount(Some("none"), dir, Some(kind), MsFlags::empty(), Some(options)).unwrap();
}

/// The storage made by [`open`] for a file of this many pages. Its warnings go into `warnings`.
fn open_with(
    dir: &Path,
    buffers: &[(*mut u8, usize)],
    pages: usize,
    fault: Option<IoFault>,
    warnings: &Arc<Mutex<Vec<String>>>,
) -> Box<dyn Storage> {
    let warnings = Arc::clone(warnings);
    let warn = Arc::new(move |line: &str| warnings.lock().unwrap().push(line.to_owned()));
    let size_bytes = (pages * PAGE_BYTES) as u64;
    open(&Options {
        dir,
        size_bytes,
        reserved_bytes: size_bytes,
        depth: 4,
        buffers,
        page_bytes: PAGE_BYTES,
        spill_bytes: 0,
        fault,
        tell: warn.clone(),
        warn,
        created: &|_| {},
    })
    .unwrap()
}

/// Writes and reads one page through the storage chosen by [`open`]. Returns the warnings.
fn round_trip(dir: &Path) -> Vec<String> {
    let mut pages = Pages::new(2, PAGE_BYTES);
    let buffers = [pages.range()];
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let mut storage = open_with(dir, &buffers, 2, None, &warnings);
    pages.fill(0, 3);
    for (direction, page) in [(IoDirection::Write, 0), (IoDirection::Read, 1)] {
        pages.start(&mut *storage, direction, PAGE_BYTES as u64, page, 0).unwrap();
        while storage.in_flight() > 0 {
            settle(&mut *storage, &mut |_, result| result.unwrap());
        }
    }
    drop(storage);
    assert!(pages.holds(1, 3));
    let warnings = warnings.lock().unwrap();
    warnings.clone()
}

#[test]
fn a_fault_is_made_on_request() {
    let fault = Some(IoFault::once(IoDirection::Read, 2));
    let mut storage = open_with(&disk(), &[], 1, fault, &Arc::default());
    let mut pages = Pages::new(1, PAGE_BYTES);
    let mut errors = Vec::new();
    for _ in 0..3 {
        pages.start(&mut *storage, IoDirection::Read, 0, 0, 0).unwrap();
        while storage.in_flight() > 0 {
            settle(&mut *storage, &mut |_, result| errors.push(result.err().and_then(|error| error.raw_os_error())));
        }
    }
    assert_eq!(errors, [None, Some(libc::EIO), None]);
}

#[test]
fn each_wrong_directory_has_its_line() {
    assert!(
        refusal(Path::new("/no/such/place"), 4096).starts_with("the directory /no/such/place does not exist; create")
    );
    assert!(refusal(Path::new("/etc/passwd"), 4096).starts_with("/etc/passwd is not a directory"));
    assert!(refusal(Path::new("/etc/passwd/x"), 4096).starts_with("cannot use the directory /etc/passwd/x: Not a dir"));
    let proc = refusal(Path::new("/proc"), 4096);
    assert!(
        proc.starts_with("cannot create a file in /proc: ") || proc.starts_with("/proc cannot be written"),
        "{proc}"
    );
    assert!(refusal(Path::new("/sys"), 4096).starts_with("/sys cannot be written to by this user"));
    assert!(free_bytes(Path::new("/no/such/place")).is_err());
}

#[test]
fn the_file_is_reserved_direct_and_nameless() {
    let dir = disk().join("nameless");
    fs::create_dir_all(&dir).unwrap();
    let file = BackingFile::create(&dir, 8 << 20).unwrap();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    assert_eq!(file.size_bytes(), 8 << 20);
    if memory_file_system(&dir).is_none() {
        assert!(file.is_direct(), "{:?}", file.warnings());
        assert!(file.warnings().is_empty(), "{:?}", file.warnings());
    }
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    use std::os::fd::{AsFd, AsRawFd};
    // SAFETY: the descriptor is open, and `stat` has room and is filled in when the call returns 0.
    let blocks = unsafe {
        assert_eq!(libc::fstat(file.as_fd().as_raw_fd(), stat.as_mut_ptr()), 0);
        stat.assume_init().st_blocks
    };
    assert!(blocks * 512 >= 8 << 20, "{blocks} sectors are allocated");
    fs::remove_dir(&dir).unwrap();
}

#[test]
fn more_than_there_is_is_refused_without_taking_any() {
    let free = free_bytes(&disk()).unwrap();
    let line = refusal(&disk(), (free + (1 << 40)) / 4096 * 4096);
    assert!(line.contains("does not fit into") && line.contains("available there"), "{line}");
    assert!(line.contains("VGASNET_MAX_SEGSIZE"), "{line}");
    refusal(&disk(), u64::MAX / 4096 * 4096);
    assert!(free_bytes(&disk()).unwrap() > free / 10 * 9);
}

#[test]
fn a_full_disk_is_reported_at_creation() {
    own_mounts("full", |dir| {
        mount_kind("tmpfs", dir, "size=8m");
        assert_eq!(free_bytes(dir).unwrap(), 8 << 20);
        let first = BackingFile::create(dir, 5 << 20).unwrap();
        let line = refusal(dir, 4 << 20);
        let shown = dir.display();
        assert_eq!(
            line,
            format!(
                "a segment of 4M does not fit into {shown}: 3M are available there; set VGASNET_STORAGE_DIR to a \
                 directory with more space, or attach a smaller segment (VGASNET_MAX_SEGSIZE)"
            )
        );
        drop(first);
        BackingFile::create(dir, 8 << 20).unwrap();
        mount_kind("tmpfs", dir, "size=8m,nr_inodes=1");
        assert!(refusal(dir, 4096).contains("no room for one more file"));
    });
}

#[test]
fn a_read_only_file_system_is_reported() {
    own_mounts("read-only", |dir| {
        let none: Option<&str> = None;
        mount(Some(dir), dir, none, MsFlags::MS_BIND, none).unwrap();
        let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(none, dir, none, flags, none).unwrap();
        assert!(refusal(dir, 4096).contains("is on a read-only file system"));
    });
}

#[test]
fn a_tmpfs_works_and_is_warned_of() {
    own_mounts("tmpfs", |dir| {
        mount_kind("tmpfs", dir, "size=8m");
        assert_eq!(memory_file_system(dir), Some("tmpfs"));
        let warnings = round_trip(dir);
        assert!(warnings[0].contains("is on tmpfs, which is memory"), "{warnings:?}");
    });
}

/// A ramfs has neither direct I/O nor reservations nor a size.
#[test]
fn a_file_system_with_few_features_works_with_warnings() {
    own_mounts("ramfs", |dir| {
        mount_kind("ramfs", dir, "mode=700");
        assert!(free_bytes(dir).unwrap() > 0);
        assert!(!BackingFile::create(dir, 4096).unwrap().is_direct());
        let warnings = round_trip(dir);
        for part in ["is on ramfs", "does not support O_DIRECT", "cannot reserve space"] {
            assert!(warnings.iter().any(|line| line.contains(part)), "{part}: {warnings:?}");
        }
    });
}

/// Makes `io_uring_setup` fail with `errno` in the calling thread, as a container's seccomp profile does.
fn forbid_rings(errno: i32) {
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let setup = libc::SYS_io_uring_setup as u32;
    let filter = [
        statement((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0),
        libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: 0, jf: 1, k: setup },
        statement((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ERRNO | errno as u32),
        statement((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program during the call, and the filter outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
}

#[test]
fn without_io_uring_threads_take_over() {
    for errno in [libc::EPERM, libc::ENOSYS] {
        let confined = thread::spawn(move || {
            forbid_rings(errno);
            let warnings = round_trip(&disk());
            assert!(warnings.iter().any(|line| line.contains("refused io_uring")), "{warnings:?}");
        });
        confined.join().unwrap();
    }
}

#[test]
fn a_size_limit_is_an_error_and_not_a_signal() {
    let limited = "VGASNET_STORAGE_TEST_LIMITED";
    if std::env::var_os(limited).is_some() {
        let line = BackingFile::create(&disk(), 8 << 20).unwrap_err().to_string();
        assert!(line.contains("ulimit -f") && line.contains("files, 1M;"), "{line}");
        return;
    }
    // The limit binds the whole process, so this test repeats itself in a process of its own.
    let this: PathBuf = std::env::current_exe().unwrap();
    let script = r#"ulimit -f 1024; exec "$0" --exact directories::a_size_limit_is_an_error_and_not_a_signal"#;
    let output = std::process::Command::new("bash").args(["-c", script]).arg(this).env(limited, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
