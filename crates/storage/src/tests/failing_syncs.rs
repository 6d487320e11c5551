//! Syncs of real files that fail on request. This program defines two functions of the C library, and its own
//! definitions precede the library's.

use super::super::holes;
use super::named::{BOTH, new_path};
use super::*;
use std::cell::Cell;
use std::ffi::{c_int, c_long};

thread_local! {
    /// The system call that fails in this thread.
    static FAILING: Cell<Option<c_long>> = const { Cell::new(None) };
}

fn sync_by(number: c_long, file: c_int) -> c_int {
    if FAILING.get() == Some(number) {
        // SAFETY: each thread has an errno.
        unsafe { *libc::__errno_location() = libc::EIO };
        return -1;
    }
    // SAFETY: both calls take a descriptor only, and refuse one that is not open.
    unsafe { libc::syscall(number, file) as c_int }
}

// SAFETY: it has the arguments and the effect of the C library's function.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: c_int) -> c_int {
    sync_by(libc::SYS_fdatasync, file)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn syncfs(file: c_int) -> c_int {
    sync_by(libc::SYS_syncfs, file)
}

/// The outcome while a system call of this thread fails.
fn errno_while_failing(number: c_long, body: impl FnOnce() -> io::Result<()>) -> Option<i32> {
    FAILING.set(Some(number));
    let outcome = body();
    FAILING.set(None);
    outcome.err().and_then(|error| error.raw_os_error())
}

#[test]
fn zeros_that_do_not_reach_the_disk_are_an_error() {
    let path = new_path(&std::env::temp_dir());
    let file = NamedFile::open(&path, &BOTH).unwrap();
    let file = std::fs::File::from(file.as_fd().expect("it is on a disk").try_clone_to_owned().unwrap());
    std::fs::remove_file(&path).unwrap();
    let fill = || holes::fill(&file, 0..3 * BLOCK_BYTES as u64);
    assert_eq!(errno_while_failing(libc::SYS_fdatasync, fill), Some(libc::EIO));
    fill().unwrap();
}

/// The directory by which the file was opened is gone, and the file has another name.
#[test]
fn a_new_name_outside_any_known_directory_is_synced_with_its_file_system() {
    let (dir, other) = (new_path(&std::env::temp_dir()), new_path(&std::env::temp_dir()));
    std::fs::create_dir(&dir).unwrap();
    let file = NamedFile::open(&dir.join("file"), &BOTH).unwrap();
    std::fs::hard_link(dir.join("file"), &other).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(errno_while_failing(libc::SYS_syncfs, || file.sync()), Some(libc::EIO));
    // The name stays new.
    assert_eq!(errno_while_failing(libc::SYS_syncfs, || file.sync()), Some(libc::EIO));
    file.sync().unwrap();
    assert_eq!(errno_while_failing(libc::SYS_syncfs, || file.sync()), None, "the name is synced once");
    std::fs::remove_file(&other).unwrap();
}
