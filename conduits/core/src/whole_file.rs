//! Atomic replacement of a file named by the user.
//!
//! Its directory may be writable for everybody, like `/tmp`. Links possibly created by others there are not followed,
//! and no path is resolved twice: the directory is opened once, and all further operations are relative to it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Error, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

/// Replaces the file at `path` with the output of `write`.
///
/// # Errors
/// It cannot be written. The file is then unchanged, unless only the file itself is writable: a device, a file behind a
/// link, or a file in a directory without write permission.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let place = DirectoryEntry::of(path)?;
    let (mut file, temporary) = place.begin()?;
    let Some(temporary) = temporary else {
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        return write(&mut file);
    };
    // Some file systems report a full disk only here.
    let written = write(&mut file).and_then(|()| file.sync_all()).and_then(|()| place.rename(&temporary));
    if written.is_err() {
        // The earlier error is the one to report.
        let _ = place.remove(&temporary);
    }
    written
}

/// Whether the file can be written, as far as can be checked in advance.
///
/// # Errors
/// It cannot.
pub fn try_path(path: &Path) -> io::Result<()> {
    let place = DirectoryEntry::of(path)?;
    if place.is(SFlag::S_IFIFO) {
        // Opening it would wait for a reader.
        return place.check_owner();
    }
    place.check_replaceable()?;
    let (_, temporary) = place.begin()?;
    temporary.map_or(Ok(()), |temporary| place.remove(&temporary))
}

/// Links in a path.
const LINKS_MAX: usize = 40;

/// Opens a directory. No component is a link that another user has laid in a directory of everybody.
fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut dir = openat(AT_FDCWD, ".", flags, Mode::empty())?;
    let mut pending = components_of(path);
    let mut links = 0;
    while let Some(name) = pending.pop() {
        let found = fstatat(&dir, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        if found.st_mode & SFlag::S_IFMT.bits() != SFlag::S_IFLNK.bits() {
            dir = openat(&dir, name.as_os_str(), flags | OFlag::O_NOFOLLOW, Mode::empty())?;
            continue;
        }
        check_link(&fstat(&dir)?, &found)?;
        links += 1;
        if links > LINKS_MAX {
            return Err(Errno::ELOOP.into());
        }
        pending.extend(components_of(Path::new(&readlinkat(&dir, name.as_os_str())?)));
    }
    Ok(dir)
}

/// The names in a path, the last one first.
fn components_of(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|component| component.as_os_str().to_owned()).collect()
}

/// The rule of Linux's `protected_symlinks`, which a system need not have turned on.
fn check_link(dir: &FileStat, link: &FileStat) -> io::Result<()> {
    let is_for_everybody = dir.st_mode & Mode::S_IWOTH.bits() != 0;
    if is_for_everybody && !is_trusted(link.st_uid) && link.st_uid != dir.st_uid {
        let why =
            "a directory in the path is another user's link in a directory of everybody; name the directory itself";
        return Err(Error::new(ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

fn is_for_lack_of_permission(error: &Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied || error.raw_os_error() == Some(Errno::EROFS as i32)
}

/// A name in a directory.
struct DirectoryEntry {
    dir: OwnedFd,
    name: OsString,
    /// The existing file of this name, if any.
    found: Option<FileStat>,
}

impl DirectoryEntry {
    fn of(path: &Path) -> io::Result<DirectoryEntry> {
        let name = path.file_name().ok_or(Errno::EISDIR)?.to_owned();
        let dir = open_directory(path.parent().unwrap_or(Path::new("")))?;
        let found = match fstatat(&dir, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::ENOENT) => None,
            found => Some(found?),
        };
        Ok(DirectoryEntry { dir, name, found })
    }

    /// Whether a file of this type has the name.
    fn is(&self, kind: SFlag) -> bool {
        self.found.is_some_and(|found| SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == kind)
    }

    /// Opens a file for writing; a new file gets a temporary name.
    fn begin(&self) -> io::Result<(File, Option<OsString>)> {
        if self.is(SFlag::S_IFLNK) {
            return self.open_behind_link().map(|file| (file, None));
        }
        if self.found.is_none() || self.is(SFlag::S_IFREG) {
            match self.create() {
                Ok((file, temporary)) => return Ok((file, Some(temporary))),
                Err(error) if self.found.is_none() || !is_for_lack_of_permission(&error) => return Err(error),
                Err(_) => {}
            }
        }
        self.check_owner()?;
        let file = self.open(&self.name, OFlag::O_WRONLY | OFlag::O_NOFOLLOW)?;
        let opened = fstat(&file)?;
        // Its other name may be a trap: the file is cut here.
        if opened.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFREG.bits() && opened.st_nlink > 1 {
            return Err(Error::new(ErrorKind::PermissionDenied, "it has another name, a hard link; name another file"));
        }
        Ok((file, None))
    }

    /// Whether the file can be replaced by another one: in a directory such as `/tmp` only its owner may do so.
    fn check_replaceable(&self) -> io::Result<()> {
        let dir = fstat(&self.dir)?;
        let is_sticky = dir.st_mode & Mode::S_ISVTX.bits() != 0;
        if is_sticky && dir.st_uid != geteuid().as_raw() { self.check_owner() } else { Ok(()) }
    }

    /// A new file, and its unpredictable name.
    fn create(&self) -> io::Result<(File, OsString)> {
        const ATTEMPTS: usize = 100;
        for _ in 0..ATTEMPTS {
            let mut temporary = OsString::from(".");
            temporary.push(&self.name);
            temporary.push(format!(".{:016x}.tmp", RandomState::new().hash_one(std::process::id())));
            match self.open(&temporary, OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                opened => return Ok((opened?, temporary)),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn open(&self, name: &OsStr, flags: OFlag) -> io::Result<File> {
        let opened = openat(&self.dir, name, flags | OFlag::O_CLOEXEC, Mode::from_bits_truncate(0o666))?;
        Ok(File::from(opened))
    }

    /// Follows a link in a directory where nobody else can create one, such as `/dev/stdout`.
    fn open_behind_link(&self) -> io::Result<File> {
        let dir = fstat(&self.dir)?;
        let is_for_others = dir.st_mode & (Mode::S_IWGRP | Mode::S_IWOTH).bits() != 0;
        if is_for_others || !is_trusted(dir.st_uid) {
            let why = "it is a symbolic link in a directory in which others can lay links; name the file itself";
            return Err(Error::new(ErrorKind::PermissionDenied, why));
        }
        self.open(&self.name, OFlag::O_WRONLY)
    }

    /// Rejects a file to be written in place if its owner could delay or read this process through it.
    fn check_owner(&self) -> io::Result<()> {
        if self.found.is_some_and(|found| !is_trusted(found.st_uid)) {
            return Err(Error::new(ErrorKind::PermissionDenied, "it is another user's; name another file"));
        }
        Ok(())
    }

    fn rename(&self, temporary: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.dir, temporary, &self.dir, self.name.as_os_str())?)
    }

    fn remove(&self, temporary: &OsStr) -> io::Result<()> {
        Ok(unlinkat(self.dir.as_fd(), temporary, UnlinkatFlags::NoRemoveDir)?)
    }
}

fn is_trusted(uid: u32) -> bool {
    uid == geteuid().as_raw() || uid == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn directory(name: &str, mode: u32) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("vgasnet-whole-file-{name}-{}", std::process::id()));
        fs::create_dir(&dir).expect("a directory");
        fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("a directory of ours");
        dir
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let dir = directory("whole", 0o755);
        let (path, link) = (dir.join("file"), dir.join("link"));
        let files = || fs::read_dir(&dir).expect("a directory").count();
        try_path(&path).expect("it can be written");
        assert_eq!(files(), 0);
        replace(&path, |file| file.write_all(b"first")).expect("it can be written");
        let full = |file: &mut File| file.write_all(b"sec").and_then(|()| Err(io::ErrorKind::StorageFull.into()));
        assert!(replace(&path, full).is_err());
        assert_eq!((fs::read(&path).expect("a file"), files()), (b"first".to_vec(), 1));
        // Our own link stays.
        symlink("file", &link).expect("a link");
        replace(&link, |file| file.write_all(b"2nd")).expect("it can be written");
        assert_eq!((fs::read(&path).expect("a file"), files()), (b"2nd".to_vec(), 2));
        assert!(try_path(&dir.join("none").join("file")).is_err() && try_path(&dir).is_err());
        assert!(try_path(Path::new("/")).is_err());
        assert!(try_path(Path::new("/dev/null")).is_ok());
        assert!(replace(Path::new("/dev/full"), |file| file.write_all(b"more")).is_err());
        fs::remove_dir_all(dir).expect("a directory of ours");
    }

    /// In a directory like `/tmp` another user may create links and guess names.
    #[test]
    fn a_link_in_a_directory_of_everybody_leads_nowhere() {
        let (dir, home) = (directory("sticky", 0o1777), directory("home", 0o700));
        let (file, fresh) = (home.join(".bashrc"), home.join("fresh"));
        fs::write(&file, "mine").expect("a file");
        for (name, target) in [("stats", &file), ("dangling", &fresh)] {
            let link = dir.join(name);
            symlink(target, &link).expect("a link");
            for done in [try_path(&link), replace(&link, |file| file.write_all(b"{}"))] {
                let why = done.expect_err("it is a link").to_string();
                assert!(why.contains("symbolic link") && !why.contains('\n'), "{why}");
            }
            assert!(fs::symlink_metadata(&link).expect("it stays").is_symlink());
        }
        assert_eq!((fs::read(&file).expect("a file"), fresh.exists()), (b"mine".to_vec(), false));
        // The former name of the temporary file.
        let (path, trap) = (dir.join("file"), dir.join(format!("file.{}.tmp", std::process::id())));
        symlink(&file, &trap).expect("a link");
        replace(&path, |file| file.write_all(b"{}")).expect("it can be written");
        assert_eq!(
            (fs::read(&file).expect("a file"), fs::read(&path).expect("a file")),
            (b"mine".into(), b"{}".into())
        );
        fs::remove_dir_all(dir).expect("a directory of ours");
        fs::remove_dir_all(home).expect("a directory of ours");
    }

    /// Another user may have laid links and hard links in a directory of everybody, and own files there. Root tries it.
    #[test]
    fn what_another_user_has_laid_is_refused() {
        if !geteuid().is_root() {
            return println!("NOT RUN: another user's links: this user is not root");
        }
        let (dir, home) = (directory("laid", 0o1777), directory("own", 0o700));
        let (link, file) = (dir.join("link"), home.join("file"));
        fs::write(&file, "mine").expect("a file");
        symlink(&home, &link).expect("a link");
        let write = |path: &Path| replace(path, |file| file.write_all(b"{}"));
        write(&link.join("file")).expect("the link is our own");
        fs::write(&file, "mine").expect("a file");
        std::os::unix::fs::lchown(&link, Some(65534), None).expect("root may");
        for path in [link.join("file"), dir.join("x/../link/file"), link.join("../own/file")] {
            fs::create_dir_all(dir.join("x")).expect("a directory");
            let why = write(&path).expect_err("it is another user's link").to_string();
            assert!(why.contains("another user's link"), "{why}");
        }
        assert_eq!(fs::read(&file).expect("a file"), b"mine");
        fs::remove_dir_all(dir).expect("a directory of ours");
        fs::remove_dir_all(home).expect("a directory of ours");
    }
}
