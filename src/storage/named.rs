//! Files beside the backing file: they have a name, others have them open too, and they grow.

mod syncing;

use super::file::{allocate, reads_directly, size_limit_bytes, transfer};
use super::operation::{FileSlot, IoOperation, Progress, REQUEST_BYTES_MAX, Request, Step};
use super::unsynced::Unsynced;
use super::{BLOCK_BYTES, BlockingReader, MemoryFile, holes};
use crate::settings::IoDirection;
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

/// How a named file is opened. Read or write has to be set.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedOptions {
    /// It is read.
    pub read: bool,
    /// It is written. Parts of blocks need reads as well, so it is opened for both, and both have to be permitted.
    pub write: bool,
    /// It is made where it does not exist.
    pub create: bool,
    /// With `create`: it must not exist.
    pub exclusive: bool,
    /// With `write`: what it holds is dropped.
    pub truncate: bool,
    /// The permissions of a file that is made.
    pub mode: u32,
    /// It goes through the page cache also where the file system can do without.
    pub buffered: bool,
}

impl NamedOptions {
    fn check(&self) -> io::Result<()> {
        let is_sensible = self.write || self.read && !self.truncate;
        if is_sensible { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
    }
}

/// What a host knows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The number that this host has given its file system.
    pub device: u64,
    /// Its number in its file system.
    pub inode: u64,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// When it was changed last, in nanoseconds.
    pub changed_ns: u64,
}

/// An open file of a [`Storage`](super::Storage) beside the backing file. It is closed when the last reference is dropped.
///
/// It bypasses the page cache (`O_DIRECT`) where the file system allows that. Elsewhere writes reach the disk by
/// [`NamedFile::sync`], which reports their errors.
#[derive(Debug)]
pub struct NamedFile {
    kind: Kind,
    can_write: bool,
    is_nameless: bool,
    is_new: bool,
    /// Its name may not be on the disk.
    is_name_new: AtomicBool,
    unsynced: Mutex<Unsynced>,
    /// A sync has failed, and reads are noted, too.
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
    /// Falls from true to false where the file system turns out to need larger blocks.
    is_direct: AtomicBool,
}

impl NamedFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// The system's. `EINVAL` for options that make no sense, `EISDIR` for a directory, `EOPNOTSUPP` for what is no regular file
    /// either.
    pub fn open(path: &Path, options: &NamedOptions) -> io::Result<NamedFile> {
        let NamedOptions { write, create, exclusive, truncate, mode, buffered, .. } = *options;
        options.check()?;
        // Opening a pipe would wait for its other end.
        if let (false, Ok(metadata)) = (create && exclusive, fs::metadata(path)) {
            check_regular(&metadata)?;
        }
        let flag = |is_set: bool, flag: libc::c_int| if is_set { flag } else { 0 };
        // The standard library makes no file that is only read. It adds O_CLOEXEC.
        let open = |making| {
            let flags = flag(truncate, libc::O_TRUNC) | making;
            OpenOptions::new().read(true).write(write).custom_flags(flags).mode(mode).open(path)
        };
        let made = create.then(|| open(libc::O_CREAT | libc::O_EXCL));
        let is_new = matches!(made, Some(Ok(_)));
        let file = match made {
            // There is one, or a link to none.
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
        // Who has made a file that was found may not have synced it.
        Ok(NamedFile { is_new, is_name_new: AtomicBool::new(create), ..NamedFile::of(kind, write) })
    }

    /// A new file without a name in a directory, gone when it is closed. It is not synced.
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

    /// A file in memory, which exists. It serves a [`MemoryStorage`](super::MemoryStorage) or a
    /// [`ThreadStorage`](super::ThreadStorage).
    ///
    /// # Errors
    /// As [`NamedFile::open`]; `EEXIST` if it has to be made.
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

    /// Whether it was made when it was opened.
    pub fn is_new(&self) -> bool {
        self.is_new
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

    /// Whether it can be written.
    pub fn can_write(&self) -> bool {
        self.can_write
    }

    /// What this host knows of it. Hosts that see the same file know the same of it but the device.
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

    /// What tells it from all other files: device and inode.
    pub fn identity(&self) -> (u64, u64) {
        match &self.kind {
            Kind::Disk(disk) => disk.identity,
            Kind::Memory(memory) => memory.identity(),
        }
    }

    /// Its size now. A signal handler may ask.
    ///
    /// # Errors
    /// The system's.
    pub fn size_bytes(&self) -> io::Result<u64> {
        match &self.kind {
            Kind::Disk(disk) => Ok(fstat(&disk.file)?.st_size as u64),
            Kind::Memory(memory) => Ok(memory.size_bytes()),
        }
    }

    /// Has it at least so many bytes, whoever writes it meanwhile. That takes the space of a block where there are fewer. Returns false if
    /// it cannot be done so.
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

    /// Cuts it, or makes it longer by zeros that take no space.
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

    /// Takes the space of a part now and makes the file so long, if it is not longer. Where the file system cannot do that, zeros are
    /// written where nothing is; nobody else may write there meanwhile.
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
    pub(crate) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            Kind::Disk(disk) => Some(disk.file.as_fd()),
            Kind::Memory(_) => None,
        }
    }

    /// The number of that.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        match &self.kind {
            Kind::Disk(disk) => Some(disk.file.as_raw_fd()),
            Kind::Memory(_) => None,
        }
    }

    /// The twin that it is.
    pub(super) fn memory(&self) -> Option<&MemoryFile> {
        match &self.kind {
            Kind::Disk(_) => None,
            Kind::Memory(memory) => Some(memory),
        }
    }

    /// The error of an operation that the kernel must not be asked for.
    pub(super) fn refusal(&self, operation: &IoOperation) -> Option<io::Error> {
        let Kind::Disk(_) = &self.kind else { return None };
        let end_bytes = operation.offset_bytes + operation.len_bytes as u64;
        let is_refused = operation.direction == IoDirection::Write && exceeds_limit(end_bytes);
        is_refused.then(|| io::Error::from_raw_os_error(libc::EFBIG))
    }

    /// Goes through the page cache from now on. Returns whether it does.
    pub(super) fn give_up_direct(&self) -> bool {
        let Kind::Disk(disk) = &self.kind else { return false };
        let is_buffered = set_direct(&disk.file, false).is_ok();
        if is_buffered {
            disk.is_direct.store(false, Ordering::Relaxed);
        }
        is_buffered
    }

    /// Does an operation with blocking calls of at most `request_bytes_max` (whole blocks).
    ///
    /// # Safety
    /// That of [`NamedFile::transfer`] for the memory of the whole operation.
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

    /// Does one request with a blocking call. Returns the bytes that it moved.
    ///
    /// # Safety
    /// The memory of the request is valid for its length: for writes if it is a read, for reads if it is a write.
    /// Nothing else accesses it during the call.
    pub(super) unsafe fn transfer(&self, direction: IoDirection, request: &Request) -> io::Result<usize> {
        // SAFETY: the caller has promised what these need, and the file keeps its descriptor open.
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
    /// A file in memory takes a lock.
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

/// Whether an end is behind `ulimit -f`, which may change. The kernel answers a write there with a signal that ends the process.
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

/// Has a file bypass the page cache, if its file system does that in blocks of ours. Returns whether it does.
///
/// An empty file tells only in new kernels. Elsewhere its first operation does: see [`NamedFile::give_up_direct`].
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

/// The blocks that direct I/O needs, in bytes, 0 if it is not possible; `None` where the kernel (before 6.1) or the file system does
/// not tell.
fn direct_block_bytes(file: &File) -> Option<usize> {
    let mut stat = MaybeUninit::<libc::statx>::zeroed();
    let (descriptor, mask) = (file.as_raw_fd(), libc::STATX_DIOALIGN);
    // SAFETY: the path is an empty string, and the kernel writes one `statx`, of which zeros are a valid value.
    let stat = unsafe {
        let told = libc::statx(descriptor, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, stat.as_mut_ptr()) == 0;
        told.then(|| stat.assume_init())?
    };
    let (memory, offset) = (stat.stx_dio_mem_align as usize, stat.stx_dio_offset_align as usize);
    let bytes = if memory == 0 || offset == 0 { 0 } else { memory.max(offset) };
    (stat.stx_mask & mask != 0).then_some(bytes)
}
