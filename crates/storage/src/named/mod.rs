//! Named files: other processes may have them open too, and they grow.

mod syncing;

use super::file::{allocate, reads_directly, size_limit_bytes, transfer};
use super::operation::{FileSlot, IoOperation, Progress, REQUEST_BYTES_MAX, Request, Step};
use super::unsynced::Unsynced;
use super::{BLOCK_BYTES, BlockingReader, MemoryFile, holes};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use vgasnet_conduit::blocking_signals;
use vgasnet_settings::IoDirection;

/// The way a named file is opened. `read` or `write` must be set.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedOptions {
    /// Opened for reading.
    pub read: bool,
    /// Opened for writing. Writing a part of a block needs a read, so the file is opened for both and needs permission
    /// for both.
    pub write: bool,
    /// Creates the file if it does not exist.
    pub create: bool,
    /// With `create`: the file must not exist.
    pub exclusive: bool,
    /// With `write`: drops the contents of the file.
    pub truncate: bool,
    /// The permissions of a created file.
    pub mode: u32,
    /// Uses the page cache even if the file system supports direct I/O.
    pub buffered: bool,
}

impl NamedOptions {
    fn check(&self) -> io::Result<()> {
        let is_sensible = self.write || self.read && !self.truncate;
        if is_sensible { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
    }
}

/// A host's knowledge of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// This host's number for the file system.
    pub device: u64,
    /// The file's number in its file system.
    pub inode: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Time of the last modification, in nanoseconds.
    pub changed_ns: u64,
}

/// An open file of a [`Storage`](super::Storage), other than the backing file. Dropping the last reference closes it.
///
/// It bypasses the page cache (`O_DIRECT`) if the file system permits. Otherwise [`NamedFile::sync`] brings writes to
/// the disk and reports their errors.
#[derive(Debug)]
pub struct NamedFile {
    kind: Kind,
    can_write: bool,
    is_nameless: bool,
    is_new: bool,
    /// The name may not be on the disk yet.
    is_name_new: AtomicBool,
    unsynced: Mutex<Unsynced>,
    /// A sync has failed: reads are recorded, too.
    is_doubted: AtomicBool,
}

#[derive(Debug)]
enum Kind {
    Disk(DiskFile),
    Memory(MemoryFile),
}

#[derive(Debug)]
struct DiskFile {
    file: File,
    identity: (u64, u64),
    /// Falls from true to false if the file system needs larger blocks.
    is_direct: AtomicBool,
}

impl NamedFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// The system's. `EINVAL` for contradictory options, `EISDIR` for a directory, `EOPNOTSUPP` for any other file that
    /// is not regular.
    pub fn open(path: &Path, options: &NamedOptions) -> io::Result<NamedFile> {
        let NamedOptions { write, create, exclusive, truncate, mode, buffered, .. } = *options;
        options.check()?;
        // Opening a pipe would wait for its other end.
        if let (false, Ok(metadata)) = (create && exclusive, fs::metadata(path)) {
            check_regular(&metadata)?;
        }
        let flag = |is_set: bool, flag: libc::c_int| if is_set { flag } else { 0 };
        // The standard library refuses to create a file opened for reading only. It adds O_CLOEXEC.
        let open = |making| {
            let flags = flag(truncate, libc::O_TRUNC) | making;
            OpenOptions::new().read(true).write(write).custom_flags(flags).mode(mode).open(path)
        };
        let made = create.then(|| open(libc::O_CREAT | libc::O_EXCL));
        let is_new = matches!(made, Some(Ok(_)));
        let file = match made {
            // The name exists: a file, or a link to no file.
            Some(Err(error)) if is_because(&error, libc::EEXIST) && !exclusive => match open(0) {
                Err(error) if is_because(&error, libc::ENOENT) => open(libc::O_CREAT)?,
                found => found?,
            },
            Some(made) => made?,
            None => open(0)?,
        };
        let metadata = file.metadata()?;
        check_regular(&metadata)?;
        let is_direct = AtomicBool::new(!buffered && make_direct(&file));
        let identity = (metadata.dev(), metadata.ino());
        let kind = Kind::Disk(DiskFile { file, identity, is_direct });
        // Another process may have created the file without syncing its name.
        Ok(NamedFile { is_new, is_name_new: AtomicBool::new(create), ..NamedFile::of(kind, write) })
    }

    /// A new file without a name in a directory. It disappears when it is closed. Its writes are not tracked for syncs.
    ///
    /// # Errors
    /// The system's.
    pub fn nameless(dir: &Path) -> io::Result<NamedFile> {
        let (file, is_direct) = super::file::open(dir)?;
        let is_direct = is_direct && (make_direct(&file) || set_direct(&file, false).is_err());
        let metadata = file.metadata()?;
        let (identity, is_direct) = ((metadata.dev(), metadata.ino()), AtomicBool::new(is_direct));
        let kind = Kind::Disk(DiskFile { file, identity, is_direct });
        Ok(NamedFile { is_nameless: true, is_new: true, ..NamedFile::of(kind, true) })
    }

    /// Opens a file in memory, which counts as existing. It serves a [`MemoryStorage`](super::MemoryStorage) or a
    /// [`ThreadStorage`](super::ThreadStorage).
    ///
    /// # Errors
    /// As [`NamedFile::open`]; `EEXIST` with `create` and `exclusive`.
    pub fn in_memory(file: &MemoryFile, options: &NamedOptions) -> io::Result<NamedFile> {
        let NamedOptions { write, create, exclusive, truncate, .. } = *options;
        options.check()?;
        if create && exclusive {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        if truncate {
            file.set_size(0)?;
        }
        let kind = Kind::Memory(file.clone());
        Ok(NamedFile::of(kind, write))
    }

    fn of(kind: Kind, can_write: bool) -> NamedFile {
        NamedFile {
            kind,
            can_write,
            is_nameless: false,
            is_new: false,
            is_name_new: AtomicBool::new(false),
            unsynced: Mutex::default(),
            is_doubted: AtomicBool::new(false),
        }
    }

    /// Whether the open created the file.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Another process may have created the file without syncing its name: the next sync does.
    pub fn note_new_name(&self) {
        self.is_name_new.store(true, Ordering::Relaxed);
    }

    /// Whether it has no name.
    pub(super) fn is_nameless(&self) -> bool {
        self.is_nameless
    }

    /// Whether I/O bypasses the page cache. Without `O_DIRECT` pages are cached twice.
    pub fn is_direct(&self) -> bool {
        match &self.kind {
            Kind::Disk(disk) => disk.is_direct.load(Ordering::Relaxed),
            Kind::Memory(_) => false,
        }
    }

    /// Whether it was opened for writing.
    pub fn can_write(&self) -> bool {
        self.can_write
    }

    /// This host's knowledge of the file. Hosts that see the same file agree on everything but `device`.
    ///
    /// # Errors
    /// The system's.
    pub fn about(&self) -> io::Result<About> {
        let size_bytes = self.size_bytes()?;
        match &self.kind {
            Kind::Disk(disk) => {
                let about = disk.file.metadata()?;
                let changed_ns =
                    (about.mtime() as u64).wrapping_mul(1_000_000_000).wrapping_add(about.mtime_nsec() as u64);
                Ok(About { device: about.dev(), inode: about.ino(), size_bytes, changed_ns })
            }
            Kind::Memory(_) => Ok(About { device: 0, inode: 0, size_bytes, changed_ns: 0 }),
        }
    }

    /// Identifies the file on this host: device and inode.
    pub fn identity(&self) -> (u64, u64) {
        match &self.kind {
            Kind::Disk(disk) => disk.identity,
            Kind::Memory(memory) => memory.identity(),
        }
    }

    /// Current size. A signal handler may call it for a file on disk.
    ///
    /// # Errors
    /// The system's.
    pub fn size_bytes(&self) -> io::Result<u64> {
        match &self.kind {
            Kind::Disk(disk) => Ok(fstat(&disk.file)?.st_size as u64),
            Kind::Memory(memory) => Ok(memory.size_bytes()),
        }
    }

    /// Makes the file at least `size_bytes` long, safely with concurrent writers. An extension takes the space of one
    /// block. Returns false if the file system cannot extend a file this way.
    ///
    /// # Errors
    /// As [`NamedFile::set_size`].
    pub fn extend(&self, size_bytes: u64) -> io::Result<bool> {
        match &self.kind {
            _ if size_bytes <= self.size_bytes()? => Ok(true),
            Kind::Disk(_) if exceeds_limit(size_bytes) => Err(io::Error::from_raw_os_error(libc::EFBIG)),
            Kind::Disk(disk) => allocate(&disk.file, size_bytes - 1..size_bytes),
            Kind::Memory(_) => Ok(false),
        }
    }

    /// Truncates the file, or extends it by zeros without space.
    ///
    /// # Errors
    /// The system's, `EFBIG` beyond `ulimit -f`.
    pub fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        let Kind::Disk(disk) = &self.kind else { return self.memory_to_write()?.set_size(size_bytes) };
        if exceeds_limit(size_bytes) && size_bytes > self.size_bytes()? {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        let size = libc::off_t::try_from(size_bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
        loop {
            match blocking_signals(|| ftruncate(&disk.file, size)) {
                // The process was stopped, or traced.
                Err(nix::Error::EINTR) => {}
                result => return result.map_err(io::Error::from),
            }
        }
    }

    /// Reserves the space of a part now and extends the file to its end if needed. If the file system cannot reserve
    /// space, zeros are written into the holes; nothing else may write there meanwhile.
    ///
    /// # Errors
    /// The system's, `EFBIG` beyond `ulimit -f`.
    pub fn allocate(&self, from_bytes: u64, len_bytes: u64) -> io::Result<()> {
        let too_large = || io::Error::from_raw_os_error(libc::EFBIG);
        let end_bytes = from_bytes.checked_add(len_bytes).ok_or_else(too_large)?;
        let Kind::Disk(disk) = &self.kind else { return self.memory_to_write()?.allocate(from_bytes, end_bytes) };
        if exceeds_limit(end_bytes) {
            return Err(too_large());
        }
        if allocate(&disk.file, from_bytes..end_bytes)? {
            Ok(())
        } else {
            holes::fill(&disk.file, from_bytes..end_bytes)
        }
    }

    fn memory_to_write(&self) -> io::Result<&MemoryFile> {
        let Kind::Memory(memory) = &self.kind else { unreachable!("a file on a disk has been dealt with") };
        if self.can_write { Ok(memory) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
    }

    /// Its descriptor, if it has one.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            Kind::Disk(disk) => Some(disk.file.as_fd()),
            Kind::Memory(_) => None,
        }
    }

    /// The number of its descriptor, if it has one.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        match &self.kind {
            Kind::Disk(disk) => Some(disk.file.as_raw_fd()),
            Kind::Memory(_) => None,
        }
    }

    /// The in-memory twin, if the file is in memory.
    pub(super) fn memory(&self) -> Option<&MemoryFile> {
        match &self.kind {
            Kind::Disk(_) => None,
            Kind::Memory(memory) => Some(memory),
        }
    }

    /// The error of a write beyond `ulimit -f`. Such an operation must not reach the kernel.
    pub(super) fn refusal(&self, operation: &IoOperation) -> Option<io::Error> {
        let Kind::Disk(_) = &self.kind else { return None };
        let end_bytes = operation.offset_bytes + operation.len_bytes as u64;
        let is_refused = operation.direction == IoDirection::Write && exceeds_limit(end_bytes);
        is_refused.then(|| io::Error::from_raw_os_error(libc::EFBIG))
    }

    /// Switches to the page cache for good. Returns whether the switch worked.
    pub(super) fn give_up_direct(&self) -> bool {
        let Kind::Disk(disk) = &self.kind else { return false };
        let is_buffered = set_direct(&disk.file, false).is_ok();
        if is_buffered {
            disk.is_direct.store(false, Ordering::Relaxed);
        }
        is_buffered
    }

    /// Completes an operation with blocking calls of at most `request_bytes_max` (whole blocks).
    ///
    /// # Safety
    /// The conditions of [`NamedFile::transfer`] hold for the memory of the whole operation.
    pub(super) unsafe fn finish(&self, progress: &mut Progress, request_bytes_max: usize) -> io::Result<()> {
        if let Some(error) = self.refusal(&progress.operation) {
            return Err(error);
        }
        loop {
            let request = progress.request(request_bytes_max);
            // SAFETY: the request is a part of the operation.
            let result = unsafe { self.transfer(progress.operation.direction, &request) };
            if let Step::Complete(result) = progress.advance(result, Some(self)) {
                return result;
            }
        }
    }

    /// Executes one request with a blocking call. Returns the number of bytes moved.
    ///
    /// # Safety
    /// The memory of the request is valid for its length: for writes if it is a read, for reads if it is a write.
    /// Nothing else accesses it during the call.
    pub(super) unsafe fn transfer(&self, direction: IoDirection, request: &Request) -> io::Result<usize> {
        // SAFETY: the caller has promised the conditions on the memory, and the file keeps its descriptor open.
        unsafe {
            match (&self.kind, direction) {
                (Kind::Disk(disk), _) => transfer(disk.file.as_raw_fd(), direction, request),
                (Kind::Memory(memory), IoDirection::Read) => memory.read(request),
                (Kind::Memory(memory), IoDirection::Write) if self.can_write => memory.write(request),
                (Kind::Memory(_), IoDirection::Write) => Err(io::Error::from_raw_os_error(libc::EBADF)),
            }
        }
    }
}

impl BlockingReader for NamedFile {
    /// Takes a lock if the file is in memory, or to record the read after a failed sync.
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()> {
        assert!(operation.direction == IoDirection::Read, "a blocking reader does not write");
        let mut progress = Progress::new(*operation, 0);
        // SAFETY: the caller leaves the memory to this call.
        unsafe { self.finish(&mut progress, REQUEST_BYTES_MAX) }
    }
}

/// The named files of a storage, by slot.
#[derive(Default)]
pub(super) struct Files(Vec<Option<Arc<NamedFile>>>);

impl Files {
    /// Puts a file into the first free slot.
    pub(super) fn add(&mut self, file: Arc<NamedFile>) -> FileSlot {
        let at = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push(None);
        }
        self.0[at] = Some(file);
        FileSlot(at as u32 + 1)
    }

    /// # Panics
    /// If there is no such file.
    pub(super) fn remove(&mut self, slot: FileSlot) {
        let place = (slot.0 as usize).checked_sub(1).and_then(|at| self.0.get_mut(at));
        let file = place.and_then(Option::take);
        assert!(file.is_some(), "there is no {slot:?} to remove");
    }

    /// The file in a slot; `None` for the backing file.
    ///
    /// # Panics
    /// If there is no such file.
    pub(super) fn get(&self, slot: FileSlot) -> Option<&Arc<NamedFile>> {
        let at = (slot.0 as usize).checked_sub(1)?;
        let file = self.0.get(at).and_then(Option::as_ref);
        assert!(file.is_some(), "there is no {slot:?}");
        file
    }
}

/// Whether `end_bytes` is beyond `ulimit -f`, which may change. The kernel answers such a write with a signal that ends
/// the process.
fn exceeds_limit(end_bytes: u64) -> bool {
    end_bytes > size_limit_bytes()
}

fn is_because(error: &io::Error, errno: i32) -> bool {
    error.raw_os_error() == Some(errno)
}

fn check_regular(metadata: &fs::Metadata) -> io::Result<()> {
    let errno = match metadata {
        _ if metadata.is_file() => return Ok(()),
        _ if metadata.is_dir() => libc::EISDIR,
        _ => libc::EOPNOTSUPP,
    };
    Err(io::Error::from_raw_os_error(errno))
}

/// Makes a file bypass the page cache if its file system supports direct I/O in blocks of [`BLOCK_BYTES`]. Returns
/// whether it does.
///
/// Only new kernels answer for an empty file. On others the first operation shows it: see
/// [`NamedFile::give_up_direct`].
fn make_direct(file: &File) -> bool {
    if set_direct(file, true).is_err() {
        return false;
    }
    let fits =
        direct_block_bytes(file).map_or_else(|| reads_directly(file), |bytes| (1..=BLOCK_BYTES).contains(&bytes));
    fits || set_direct(file, false).is_err()
}

fn set_direct(file: &File, is_direct: bool) -> nix::Result<()> {
    let mut flags = OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?);
    flags.set(OFlag::O_DIRECT, is_direct);
    fcntl(file, FcntlArg::F_SETFL(flags)).map(drop)
}

/// Block size of direct I/O in bytes, 0 if it is not supported; `None` if the kernel (before 6.1) or the file system
/// does not report it.
fn direct_block_bytes(file: &File) -> Option<usize> {
    let mut stat = MaybeUninit::<libc::statx>::zeroed();
    let (descriptor, mask) = (file.as_raw_fd(), libc::STATX_DIOALIGN);
    // SAFETY: the path is an empty string. The kernel writes one `statx`, for which zeros are a valid value.
    let stat = unsafe {
        let told = libc::statx(descriptor, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, stat.as_mut_ptr()) == 0;
        told.then(|| stat.assume_init())?
    };
    let (memory, offset) = (stat.stx_dio_mem_align as usize, stat.stx_dio_offset_align as usize);
    let bytes = if memory == 0 || offset == 0 { 0 } else { memory.max(offset) };
    (stat.stx_mask & mask != 0).then_some(bytes)
}
