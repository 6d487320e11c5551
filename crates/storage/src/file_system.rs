//! The file system of the backing file: its kind, its free space, and whether it writes blocks in place.

use nix::sys::statfs::{BTRFS_SUPER_MAGIC, FsType, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, fstatfs, statfs};
use nix::sys::statvfs::statvfs;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use vgasnet_settings::Machine;
use vgasnet_settings::UserError;

/// From the kernel's `magic.h` and the file systems' own headers; neither libc nor nix has them.
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);
const BCACHEFS_MAGIC: FsType = FsType(0xca45_1a4e);
const ZFS_MAGIC: FsType = FsType(0x2fc1_2fc1);

/// Whether a file system writes blocks of a file in place. Otherwise each write needs new space, and reserved space may
/// be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InPlace {
    /// In place.
    Yes,
    /// In place for files with a flag set while they are empty.
    OnRequest(&'static str),
    /// Not in place, or unknown.
    No(&'static str),
}

/// Whether this kind of file system writes files in place.
fn in_place(kind: FsType) -> InPlace {
    match kind {
        BTRFS_SUPER_MAGIC => InPlace::OnRequest("btrfs"),
        ZFS_MAGIC => InPlace::No("ZFS"),
        BCACHEFS_MAGIC => InPlace::No("bcachefs"),
        // Overlayfs behaves like the file system below it, which it does not name.
        OVERLAYFS_SUPER_MAGIC => InPlace::No("overlayfs"),
        _ => InPlace::Yes,
    }
}

/// Asks the file system to write an empty file in place, if it needs to be asked. Returns whether it will.
pub(super) fn write_in_place(file: &File) -> InPlace {
    match fstatfs(file).map_or(InPlace::Yes, |stat| in_place(stat.filesystem_type())) {
        InPlace::OnRequest(kind) => set_no_cow(file).map_or(InPlace::No(kind), |()| InPlace::Yes),
        known => known,
    }
}

fn set_no_cow(file: &File) -> io::Result<()> {
    /// From the kernel's `fs.h`.
    const FS_NOCOW_FL: libc::c_int = 0x0080_0000;
    let (descriptor, mut flags) = (file.as_raw_fd(), 0 as libc::c_int);
    // SAFETY: the descriptor is open, and the kernel reads or writes one `int`, although its headers declare a `long`.
    let set = unsafe {
        libc::ioctl(descriptor, libc::FS_IOC_GETFLAGS, &raw mut flags) == 0 && {
            flags |= FS_NOCOW_FL;
            libc::ioctl(descriptor, libc::FS_IOC_SETFLAGS, &raw const flags) == 0
        }
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Bytes an unprivileged process may still store in `dir`; on an in-memory file system at most the available memory.
///
/// # Errors
/// `dir` is not a usable directory, or its file system does not report its free space.
pub fn free_bytes(dir: &Path) -> Result<u64, UserError> {
    check_directory(dir)?;
    let shown = dir.display();
    let stat = statvfs(dir).map_err(|error| {
        UserError::new(format!("cannot find the free space in {shown}: {}", io::Error::from(error)))
    })?;
    let free_bytes = (stat.blocks_available() as u64).saturating_mul(stat.fragment_size() as u64);
    let is_unlimited = stat.blocks() == 0;
    match (memory_file_system(dir).is_some(), is_unlimited) {
        (true, true) => Ok(Machine::observe().memory_available_bytes),
        (true, false) => Ok(free_bytes.min(Machine::observe().memory_available_bytes)),
        (false, false) => Ok(free_bytes),
        (false, true) => Err(UserError::new(format!(
            "the file system of {shown} does not tell its free space; \
             set VGASNET_STORAGE_DIR to a directory on a local disk"
        ))),
    }
}

/// The name of the file system of `dir` if its files lie in memory: a segment there takes the memory it is meant to
/// save.
pub fn memory_file_system(dir: &Path) -> Option<&'static str> {
    match statfs(dir).ok()?.filesystem_type() {
        TMPFS_MAGIC => Some("tmpfs"),
        RAMFS_MAGIC => Some("ramfs"),
        _ => None,
    }
}

/// Refuses any path other than a directory.
///
/// # Errors
/// A line with the remedy.
pub(super) fn check_directory(dir: &Path) -> Result<(), UserError> {
    let shown = dir.display();
    match fs::metadata(dir) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(UserError::new(format!("{shown} is not a directory; set VGASNET_STORAGE_DIR to one"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(UserError::new(format!(
            "the directory {shown} does not exist; create it, or set VGASNET_STORAGE_DIR to one that does"
        ))),
        Err(error) => Err(UserError::new(format!(
            "cannot use the directory {shown}: {error}; set VGASNET_STORAGE_DIR to another"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::statfs::{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC};

    #[test]
    fn file_systems_that_copy_on_write_are_known() {
        assert_eq!(in_place(BTRFS_SUPER_MAGIC), InPlace::OnRequest("btrfs"));
        for (kind, name) in [(0x2fc1_2fc1, "ZFS"), (0xca45_1a4e, "bcachefs"), (0x794c_7630, "overlayfs")] {
            assert_eq!(in_place(FsType(kind)), InPlace::No(name));
        }
        for kind in [EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, FsType(0)] {
            assert_eq!(in_place(kind), InPlace::Yes);
        }
    }
}
