//! The backing file: it has no name, and its space is reserved before use.

use super::BLOCK_BYTES;
use super::file_system::{InPlace, check_directory, free_bytes, memory_file_system, write_in_place};
use super::operation::Request;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::resource::{Resource, getrlimit};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use vgasnet_conduit::blocking_signals;
use vgasnet_settings::UserError;
use vgasnet_settings::{IoDirection, format_size, format_size_about};

/// A file on disk without a name. It disappears when it is closed, however the process ends. Other processes of this
/// user open it by its descriptor only.
#[derive(Debug)]
pub struct BackingFile {
    file: File,
    size_bytes: u64,
    is_direct: bool,
    warnings: Vec<String>,
}

impl BackingFile {
    /// Creates a file of `size_bytes` zeros (whole blocks, or 0) in `dir` and reserves its space.
    ///
    /// It bypasses the page cache (`O_DIRECT`) if the file system permits. Otherwise every write waits for the disk
    /// (`O_DSYNC`), since an error of a later write-back could not be reported. [`BackingFile::warnings`] mentions this
    /// and every other drawback of `dir` against a local disk.
    ///
    /// # Errors
    /// A line with the remedy, if `dir` does not exist, is not a directory, cannot be written to, is on a read-only
    /// file system, has less space than needed, or fails otherwise. A size above the free space is refused before any
    /// space is reserved.
    ///
    /// # Panics
    /// If `size_bytes` is not whole blocks.
    pub fn create(dir: &Path, size_bytes: u64) -> Result<BackingFile, UserError> {
        BackingFile::create_with(dir, size_bytes, size_bytes)
    }

    /// As [`BackingFile::create`], but reserves space for the first `reserved_bytes` (whole blocks) only.
    /// [`reserve_more`] reserves more.
    ///
    /// # Errors
    /// As [`BackingFile::create`].
    ///
    /// # Panics
    /// As [`BackingFile::create`].
    pub(super) fn create_with(dir: &Path, size_bytes: u64, reserved_bytes: u64) -> Result<BackingFile, UserError> {
        assert!(size_bytes % BLOCK_BYTES as u64 == 0, "a file of {size_bytes} bytes is not whole blocks");
        check_directory(dir)?;
        let (file, is_direct) = open(dir).map_err(|error| explain_open(dir, &error))?;
        check_space(dir, reserved_bytes)?;
        // The flag can be set on an empty file only.
        let in_place = write_in_place(&file);
        let is_reserved =
            reserve(&file, reserved_bytes).map_err(|error| explain_reserve(dir, reserved_bytes, &error))?;
        if reserved_bytes < size_bytes {
            file.set_len(size_bytes).map_err(|error| explain_reserve(dir, size_bytes, &error))?;
        }
        let (file, is_direct) = if is_direct && size_bytes > 0 && !reads_directly(&file) {
            (reopen_buffered(&file).map_err(|error| explain_open(dir, &error))?, false)
        } else {
            (file, is_direct)
        };
        Ok(BackingFile { file, size_bytes, is_direct, warnings: warnings(dir, is_direct, is_reserved, in_place) })
    }

    /// The file of another process, opened here.
    pub(super) fn of_other(file: File, size_bytes: u64, is_direct: bool) -> BackingFile {
        BackingFile { file, size_bytes, is_direct, warnings: Vec::new() }
    }

    /// The size in bytes, as requested.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether I/O bypasses the page cache.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Lines for the user about the drawbacks of this directory against a local disk.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A second handle to the same file, for a second storage on it. Dropping the last handle frees the space.
    ///
    /// # Errors
    /// The system's, if it grants no descriptor.
    pub fn try_clone(&self) -> io::Result<BackingFile> {
        let file = self.file.try_clone()?;
        Ok(BackingFile {
            file,
            size_bytes: self.size_bytes,
            is_direct: self.is_direct,
            warnings: self.warnings.clone(),
        })
    }

    /// Executes one request with a blocking call. Returns the number of bytes moved.
    ///
    /// # Safety
    /// The memory of the request is valid for its length: for writes if it is a read, for reads if it is a write.
    /// Nothing else accesses it during the call.
    pub(super) unsafe fn transfer(&self, direction: IoDirection, request: &Request) -> io::Result<usize> {
        // SAFETY: the caller has promised `transfer`'s conditions on the memory, and the file keeps its descriptor
        // open.
        unsafe { transfer(self.file.as_raw_fd(), direction, request) }
    }
}

impl AsFd for BackingFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A new file without a name, and whether it was opened for direct I/O.
pub(super) fn open(dir: &Path) -> io::Result<(File, bool)> {
    match open_nameless(dir, libc::O_DIRECT) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok((open_nameless(dir, libc::O_DSYNC)?, false)),
        result => Ok((result?, true)),
    }
}

fn open_nameless(dir: &Path, flags: i32) -> io::Result<File> {
    // With O_EXCL the file can never be given a name. The standard library adds O_CLOEXEC.
    let options = libc::O_TMPFILE | libc::O_EXCL | flags;
    match OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(options).open(dir) {
        // A kernel without O_TMPFILE answers EISDIR.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            open_and_unlink(dir, flags)
        }
        result => result,
    }
}

/// For file systems without `O_TMPFILE`: the file has a name until it is unlinked right after its creation.
fn open_and_unlink(dir: &Path, flags: i32) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        // The clock distinguishes processes with the same number in different containers.
        let nanos = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!(".vgasnet-{}-{nanos}-{count}", std::process::id()));
        let opened =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).custom_flags(flags).open(&path);
        match &opened {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            // O_DIRECT is refused only after the file has been created.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => drop(fs::remove_file(&path)),
            Err(_) => {}
            Ok(_) => fs::remove_file(&path)?,
        }
        return opened;
    }
}

/// Refuses a size beyond the free space before any space is reserved, and a size beyond `ulimit -f` before the kernel
/// kills the process with a signal.
fn check_space(dir: &Path, size_bytes: u64) -> Result<(), UserError> {
    let free_bytes = free_bytes(dir)?;
    if size_bytes > free_bytes {
        return Err(no_space(dir, size_bytes, free_bytes, ""));
    }
    let limit_bytes = size_limit_bytes();
    if size_bytes > limit_bytes {
        let (size, limit) = (format_size(size_bytes), format_size_about(limit_bytes));
        return Err(UserError::new(format!(
            "a segment of {size} exceeds the limit on the size of files, {limit}; raise `ulimit -f`, \
             or attach a smaller segment (VGASNET_MAX_SEGSIZE)"
        )));
    }
    Ok(())
}

/// The limit on the size of files (`ulimit -f`).
pub fn size_limit_bytes() -> u64 {
    getrlimit(Resource::RLIMIT_FSIZE).map_or(libc::RLIM_INFINITY, |(limit_bytes, _)| limit_bytes)
}

/// Reserves space for the first `size_bytes` of a longer backing file in `dir`. `warn` gets a line if the file system
/// cannot reserve space.
///
/// # Errors
/// As [`BackingFile::create`].
pub fn reserve_more(file: BorrowedFd<'_>, dir: &Path, size_bytes: u64, warn: impl Fn(&str)) -> Result<(), UserError> {
    check_space(dir, size_bytes)?;
    let is_reserved = allocate(&file, 0..size_bytes).map_err(|error| explain_reserve(dir, size_bytes, &error))?;
    if !is_reserved {
        warn(&not_reserved(dir));
    }
    Ok(())
}

/// Reserves the space of the whole file. Returns false if the file system cannot; the file then has its length only.
fn reserve(file: &File, size_bytes: u64) -> io::Result<bool> {
    let is_reserved = allocate(file, 0..size_bytes)?;
    if !is_reserved {
        file.set_len(size_bytes)?;
    }
    Ok(is_reserved)
}

/// Reserves space for a part of a file and extends the file if needed. Returns false if the file system cannot.
///
/// On some file systems a signal undoes the progress of a call, so signals are blocked during each call.
pub(super) fn allocate(file: &impl AsFd, part_bytes: Range<u64>) -> io::Result<bool> {
    const PIECE_BYTES: i64 = 1 << 30;
    let too_large = |_| io::Error::from_raw_os_error(libc::EFBIG);
    let mut start = i64::try_from(part_bytes.start).map_err(too_large)?;
    let end = i64::try_from(part_bytes.end).map_err(too_large)?;
    while start < end {
        let piece = PIECE_BYTES.min(end - start);
        match blocking_signals(|| fallocate(file, FallocateFlags::empty(), start, piece)) {
            Ok(()) => start += piece,
            // The process was stopped, or traced.
            Err(nix::Error::EINTR) => {}
            Err(nix::Error::EOPNOTSUPP | nix::Error::ENOSYS) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Executes one request on an open file with a blocking call. Returns the number of bytes moved. A signal handler may
/// call it.
///
/// # Safety
/// The memory of the request is valid for its length: for writes if it is a read, for reads if it is a write. Nothing
/// else accesses it during the call. The descriptor stays open.
pub(super) unsafe fn transfer(descriptor: RawFd, direction: IoDirection, request: &Request) -> io::Result<usize> {
    let Request { offset_bytes, pointer, len_bytes } = *request;
    let number = match direction {
        IoDirection::Read => libc::SYS_pread64,
        IoDirection::Write => libc::SYS_pwrite64,
    };
    // A raw system call, since the C library's function is a cancellation point and other libraries interpose it.
    // SAFETY: the memory of the request is valid, as the caller promises.
    let moved = unsafe { libc::syscall(number, descriptor, pointer, len_bytes, offset_bytes) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Whether direct I/O works. Some file systems accept the flag but refuse the reads, or need larger blocks.
pub(super) fn reads_directly(file: &File) -> bool {
    #[repr(align(4096))]
    struct Block([u8; BLOCK_BYTES]);
    let mut block = Box::new(Block([0; BLOCK_BYTES]));
    let read = std::os::unix::fs::FileExt::read_at(file, &mut block.0, 0);
    !read.is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
}

/// Opens the same file, with its space, through the page cache. The file has no name, so it is opened by its
/// descriptor.
fn reopen_buffered(file: &File) -> io::Result<File> {
    let same = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_DSYNC).open(same)
}

fn warnings(dir: &Path, is_direct: bool, is_reserved: bool, in_place: InPlace) -> Vec<String> {
    let shown = dir.display();
    let mut lines = Vec::new();
    if let Some(kind) = memory_file_system(dir) {
        lines.push(format!(
            "{shown} is on {kind}, which is memory and not a disk; \
             set VGASNET_STORAGE_DIR to a directory on a local disk"
        ));
    }
    if !is_direct {
        lines.push(format!(
            "{shown} does not support O_DIRECT: pages are cached twice and each write waits for the disk; \
             set VGASNET_STORAGE_DIR to a directory on a local disk"
        ));
    }
    if !is_reserved {
        lines.push(not_reserved(dir));
    } else if let InPlace::No(kind) = in_place {
        lines.push(format!(
            "{shown} is on {kind}, where space cannot be reserved for good: if it fills up, the job waits and then ends when \
             a page is written; set VGASNET_STORAGE_DIR to a directory on ext4 or XFS"
        ));
    }
    lines
}

fn not_reserved(dir: &Path) -> String {
    format!(
        "{} cannot reserve space: if it fills up, the job waits and then ends when a page is written; \
         set VGASNET_STORAGE_DIR to a directory on a local disk",
        dir.display()
    )
}

fn explain_open(dir: &Path, error: &io::Error) -> UserError {
    let shown = dir.display();
    let line = match error.raw_os_error() {
        Some(libc::EROFS) => {
            format!(
                "{shown} is on a read-only file system; set VGASNET_STORAGE_DIR to a directory that can be written to"
            )
        }
        Some(libc::EACCES | libc::EPERM) => format!(
            "{shown} cannot be written to by this user ({error}); \
             set VGASNET_STORAGE_DIR to a directory that can"
        ),
        Some(libc::ENOSPC | libc::EDQUOT) => format!(
            "{shown} has no room for one more file ({error}); set VGASNET_STORAGE_DIR to a directory with more space"
        ),
        _ => format!("cannot create a file in {shown}: {error}; set VGASNET_STORAGE_DIR to another directory"),
    };
    UserError::new(line)
}

fn explain_reserve(dir: &Path, size_bytes: u64, error: &io::Error) -> UserError {
    let cause = match error.raw_os_error() {
        Some(libc::ENOSPC) => "",
        Some(libc::EDQUOT) => " on the disk, but this user's quota is less",
        Some(libc::EFBIG) => " on the disk, but its file system does not take files that large",
        _ => {
            let (shown, size) = (dir.display(), format_size(size_bytes));
            return UserError::new(format!(
                "cannot reserve {size} in {shown}: {error}; set VGASNET_STORAGE_DIR to another directory"
            ));
        }
    };
    no_space(dir, size_bytes, free_bytes(dir).unwrap_or(0), cause)
}

fn no_space(dir: &Path, size_bytes: u64, free_bytes: u64, cause: &str) -> UserError {
    let (shown, size, free) = (dir.display(), format_size(size_bytes), format_size_about(free_bytes));
    UserError::new(format!(
        "a segment of {size} does not fit into {shown}: {free} are available there{cause}; \
         set VGASNET_STORAGE_DIR to a directory with more space, or attach a smaller segment (VGASNET_MAX_SEGSIZE)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, fcntl};

    #[test]
    fn a_file_that_had_a_name_has_none_left() {
        let dir = std::env::temp_dir().join(format!("vgasnet-file-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let file = open_and_unlink(&dir, libc::O_DSYNC).unwrap();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        fs::remove_dir(&dir).unwrap();
        assert!(reserve(&file, 8192).is_ok());
        assert_eq!(file.metadata().unwrap().len(), 8192);
    }

    #[test]
    fn a_file_reopened_is_the_same_file_without_direct_io() {
        use std::os::unix::fs::FileExt;
        let (file, is_direct) = open(&std::env::temp_dir()).unwrap();
        assert!(reserve(&file, 8192).is_ok());
        assert!(!is_direct || reads_directly(&file));
        let buffered = reopen_buffered(&file).unwrap();
        assert_eq!(buffered.metadata().unwrap().len(), 8192);
        buffered.write_all_at(b"unaligned", 4095).unwrap();
        let flags = fcntl(&buffered, FcntlArg::F_GETFL).unwrap();
        assert_eq!(flags & (libc::O_DIRECT | libc::O_DSYNC), libc::O_DSYNC);
    }

    #[test]
    fn each_cause_of_a_failed_reservation_has_its_line() {
        let line = |errno| explain_reserve(Path::new("/"), 4 << 30, &io::Error::from_raw_os_error(errno)).to_string();
        for errno in [libc::ENOSPC, libc::EDQUOT, libc::EFBIG] {
            let line = line(errno);
            assert!(line.starts_with("a segment of 4G does not fit into /: "), "{line}");
            assert!(line.contains("VGASNET_STORAGE_DIR") && line.ends_with("(VGASNET_MAX_SEGSIZE)"), "{line}");
        }
        assert!(line(libc::EDQUOT).contains("quota"));
        assert!(line(libc::EFBIG).contains("files that large"));
        assert!(line(libc::EIO).starts_with("cannot reserve 4G in /: "));
    }
}
