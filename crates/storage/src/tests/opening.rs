//! The options of opening named files.

use super::named::{BOTH, new_path};
use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn errno(path: &Path, options: &NamedOptions) -> Option<i32> {
    NamedFile::open(path, options).err().and_then(|error| error.raw_os_error())
}

#[test]
fn a_file_is_made_found_and_refused_as_asked() {
    let path = new_path(&std::env::temp_dir());
    let found = NamedOptions { create: false, ..BOTH };
    assert_eq!(errno(&path, &found), Some(libc::ENOENT));
    // A file opened for reading only is created, too.
    let file = NamedFile::open(&path, &NamedOptions { write: false, mode: 0o640, ..BOTH }).unwrap();
    assert!(!file.can_write());
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(file.identity(), (metadata.dev(), metadata.ino()));
    assert_eq!(metadata.permissions().mode() & 0o7777 & !0o022, 0o640);
    assert_eq!(file.set_size(1).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    assert_eq!(errno(&path, &NamedOptions { exclusive: true, ..BOTH }), Some(libc::EEXIST));
    fs::write(&path, b"bytes").unwrap();
    assert_eq!(NamedFile::open(&path, &found).unwrap().size_bytes().unwrap(), 5);
    assert_eq!(NamedFile::open(&path, &NamedOptions { truncate: true, ..found }).unwrap().size_bytes().unwrap(), 0);
    fs::remove_file(&path).unwrap();
    assert!(NamedFile::open(&path, &NamedOptions { exclusive: true, ..BOTH }).is_ok());
    fs::remove_file(&path).unwrap();
    for options in [NamedOptions::default(), NamedOptions { write: false, truncate: true, ..BOTH }] {
        assert_eq!(errno(&path, &options), Some(libc::EINVAL));
    }
}

#[test]
fn what_an_open_leaves_behind_is_undone() {
    let path = new_path(&std::env::temp_dir());
    let found = NamedOptions { create: false, ..BOTH };
    let file = NamedFile::open(&path, &BOTH).unwrap();
    assert!(file.is_new());
    let again = NamedFile::open(&path, &BOTH).unwrap();
    assert!(!again.is_new());
    let before = file.about().unwrap();
    let mark = Mark::put(&file).expect("it is ours");
    let marked = again.about().unwrap();
    assert_ne!(marked.changed_ns, before.changed_ns);
    let other = Mark::put(&again).expect("it is ours");
    assert_ne!(again.about().unwrap().changed_ns, marked.changed_ns, "no two marks are alike");
    other.take_off(&again);
    mark.take_off(&file);
    assert_eq!(file.about().unwrap(), before);
    file.deny(0o200).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o600, 0o400);
    file.remove(&path);
    assert_eq!(errno(&path, &found), Some(libc::ENOENT));
    // Another file has the name now.
    fs::write(&path, b"bytes").unwrap();
    file.remove(&path);
    assert_eq!(NamedFile::open(&path, &found).unwrap().size_bytes().unwrap(), 5);
    // A link to no file is followed. The file created for it is not removed by the link's name.
    let link = new_path(&std::env::temp_dir());
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(!NamedFile::open(&link, &BOTH).unwrap().is_new());
    assert!(path.exists());
    [link, path].iter().for_each(|path| fs::remove_file(path).unwrap());
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let path = new_path(&std::env::temp_dir());
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let read = NamedOptions { read: true, ..NamedOptions::default() };
    assert_eq!(errno(&path, &read), Some(libc::EOPNOTSUPP));
    fs::remove_file(&path).unwrap();
    assert_eq!(errno(&std::env::temp_dir(), &read), Some(libc::EISDIR));
}

#[test]
fn a_file_bypasses_the_page_cache_unless_told() {
    for dir in [std::env::temp_dir().as_path(), Path::new("/dev/shm")] {
        let path = new_path(dir);
        let is_direct = NamedFile::open(&path, &BOTH).unwrap().is_direct();
        let flags = OpenFlags { path: &path };
        assert!(!flags.are_direct(NamedOptions { buffered: true, ..BOTH }));
        // An empty file and a file with bytes give the same answer.
        assert_eq!(flags.are_direct(BOTH), is_direct);
        fs::write(&path, [1; 5000]).unwrap();
        assert_eq!(flags.are_direct(BOTH), is_direct);
        fs::remove_file(&path).unwrap();
        let backing = BackingFile::create(dir, 4096).unwrap();
        assert_eq!(backing.is_direct(), is_direct, "{}", dir.display());
    }
}

struct OpenFlags<'a> {
    path: &'a Path,
}

impl OpenFlags<'_> {
    /// Whether the file is direct; asserts that its flags agree.
    fn are_direct(&self, options: NamedOptions) -> bool {
        use nix::fcntl::{FcntlArg, OFlag, fcntl};
        let file = NamedFile::open(self.path, &options).unwrap();
        // SAFETY: the file is open until this returns.
        let descriptor = unsafe { BorrowedFd::borrow_raw(file.descriptor().unwrap()) };
        let flags = OFlag::from_bits_retain(fcntl(descriptor, FcntlArg::F_GETFL).unwrap());
        assert_eq!(flags.contains(OFlag::O_DIRECT), file.is_direct());
        assert_eq!(fcntl(descriptor, FcntlArg::F_GETFD).unwrap() & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
        file.is_direct()
    }
}

/// Parts of its blocks could not be read. Root may read everything, so a thread gives up root for its file accesses.
#[test]
fn a_file_that_may_only_be_written_is_refused() {
    let path = new_path(&std::env::temp_dir());
    fs::write(&path, b"bytes").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o222)).unwrap();
    let only_write = NamedOptions { write: true, ..NamedOptions::default() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: the call changes the user for file accesses of this thread, and nothing else.
            unsafe { libc::setfsuid(65534) };
            assert_eq!([only_write, BOTH].map(|options| errno(&path, &options)), [Some(libc::EACCES); 2]);
        });
    });
    assert!(NamedFile::open(&path, &only_write).is_ok());
    fs::remove_file(&path).unwrap();
}
