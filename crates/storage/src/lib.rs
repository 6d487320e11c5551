//! The backing file of a rank's segment, the named files, and the I/O on them.
//!
//! [`Storage`] is the interface; [`open`] makes the best one this machine permits. There are three storages and three
//! wrappers:
//!
//! | type | purpose | used |
//! | --- | --- | --- |
//! | [`RingStorage`] | files through io_uring | where the kernel permits it |
//! | [`ThreadStorage`] | files through blocking calls on four threads at most | where io_uring is not permitted |
//! | [`MemoryStorage`] | sparse memory, with delays and faults drawn from a seed | deterministic simulation |
//! | [`Patient`] | makes writes of any storage's backing file wait for space on a full disk | always |
//! | [`Spill`] | puts a burst buffer before the named files of any storage | with `VGASNET_FILE_SPILL=1` |
//! | [`Faulty`] | makes operations of any storage fail | end-to-end tests of I/O errors |
//!
//! A [`NamedFile`] is opened by its path, or stands for a [`MemoryFile`] of the simulation. [`Storage::add_file`] gives
//! it a [`FileSlot`], the name of the file in operations.

mod blocking;
mod buffers;
mod claim;
mod faults;
mod faulty;
mod file;
mod file_system;
mod holes;
mod memory;
mod memory_file;
mod named;
mod operation;
mod patient;
mod ranges;
mod ring;
mod run;
mod shared_file;
mod spill;
mod threads;
mod timer;
mod traces;
mod unsynced;
mod volatile;

pub use buffers::memlock_bytes;
pub use claim::Claim;
pub use faults::Faults;
pub use faulty::Faulty;
pub use file::{BackingFile, reserve_more, size_limit_bytes};
pub use file_system::{free_bytes, memory_file_system};
pub use memory::MemoryStorage;
pub use memory_file::MemoryFile;
pub use named::{About, NamedFile, NamedOptions};
pub use operation::{FileSlot, IoOperation};
pub use patient::{Patient, SPACE_PATIENCE};
pub use ranges::Ranges;
pub use ring::{Refused, RingStorage};
pub use shared_file::SharedFile;
pub use spill::Spill;
pub use threads::ThreadStorage;
pub use traces::Mark;
pub use unsynced::Doubt;

pub use vgasnet_settings::IoDirection;
/// The error number of a system error; `EIO` for an error without one.
pub fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// The maximum number of operations is in flight. Nothing was started: poll, then try again.
pub use vgasnet_conduit::Busy;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vgasnet_settings::IoFault;
use vgasnet_settings::UserError;

/// Alignment in bytes of the offsets, lengths and memory addresses of operations, as `O_DIRECT` requires.
pub const BLOCK_BYTES: usize = 4096;

/// Default bound on operations in flight. A burst of misses can queue in the kernel. One to four operations of 4 MiB
/// already keep a disk busy; with 4 KiB it takes dozens.
pub const DEPTH_DEFAULT: usize = 64;

/// Asynchronous I/O on one backing file and on named files, with a bound on operations in flight set at creation.
///
/// Any thread may call, one at a time. A thread may poll for operations started by another thread, even one that has
/// ended. Operations in flight are not ordered: two overlapping operations, one of them a write, must not be in flight
/// together. Dropping a storage waits for the operations in flight. Their results are lost, and their memory is free
/// afterwards.
///
/// Unwritten parts of a file read as zeros, and so does everything behind the end of a named file, even if the file was
/// truncated meanwhile. A write behind the end extends a named file by whole blocks; the caller truncates the file to
/// its exact size.
pub trait Storage: Send {
    /// Starts reading a part of a file into memory, or writing it from memory. [`poll`] returns the token with the
    /// result. After an error the destination has unspecified contents: the memory of a read, the part of the file of a
    /// write.
    ///
    /// [`poll`]: Storage::poll
    ///
    /// # Errors
    /// [`Busy`] if the bound on operations in flight is reached; the memory is then not touched.
    ///
    /// # Panics
    /// If the offset, the length or the address is not a multiple of [`BLOCK_BYTES`], the length is 0, the range leaves
    /// the backing file, or there is no such file.
    ///
    /// # Safety
    /// Until [`poll`] returns the token or the storage has been dropped, the memory is valid for the length of the
    /// operation. During a read nothing else accesses it; during a write nothing writes to it.
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy>;

    /// Starts a run: operations of one direction on one file, each beginning at the end of the one before. A storage
    /// may use one request for the whole run, and may count it as one operation in its bound. Returns the number of
    /// started operations, from the first on; 0 where [`Storage::start`] would have been [`Busy`].
    ///
    /// # Panics
    /// As [`Storage::start`], or if the operations are on several files.
    ///
    /// # Safety
    /// The conditions of [`Storage::start`] hold for each operation.
    unsafe fn start_run(&mut self, run: &[IoOperation]) -> usize {
        // SAFETY: the caller has promised `start`'s conditions for each operation.
        unsafe { self.start_runs(&[run]) }
    }

    /// Starts several runs of one direction, of any files, each as [`Storage::start_run`]. A storage may submit all of
    /// them with one system call. Returns the number of started operations, from the first on.
    ///
    /// # Panics
    /// As [`Storage::start`].
    ///
    /// # Safety
    /// The conditions of [`Storage::start`] hold for each operation.
    unsafe fn start_runs(&mut self, runs: &[&[IoOperation]]) -> usize {
        let mut operations = runs.iter().copied().flatten();
        // SAFETY: the caller has promised `start`'s conditions for each operation.
        operations.by_ref().take_while(|operation| unsafe { self.start(**operation) }.is_ok()).count()
    }

    /// Passes the token and the result of every completed operation to `sink`, each exactly once, and continues partly
    /// done operations. Never blocks; extra calls are harmless and cheap.
    ///
    /// A failed result carries the errno of the kernel, or [`io::ErrorKind::UnexpectedEof`] if the backing file has
    /// become shorter than its size.
    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>));

    /// Number of operations started and not yet returned by [`Storage::poll`].
    fn in_flight(&self) -> usize;

    /// A descriptor that is readable (`POLLIN`, level-triggered) while [`Storage::poll`] has work, so that the caller
    /// can sleep on it. [`Storage::poll`] clears it; nothing else reads from it. `None` if operations complete only
    /// inside [`Storage::poll`].
    fn doorbell(&self) -> Option<BorrowedFd<'_>>;

    /// Makes the doorbell ring after `time`, in place of any earlier time; `None` cancels it. Does nothing in a storage
    /// without a doorbell, since no thread can sleep on it.
    fn ring_in(&mut self, time: Option<Duration>) {
        let _ = time;
    }

    /// Adds a named file, until [`Storage::remove_file`]. Slots of removed files are reused.
    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot;

    /// The burst buffer before the named files, if there is one.
    fn spill(&self) -> Option<&Spill> {
        None
    }

    /// The burst buffer for changes, if there is one.
    fn spill_mut(&mut self) -> Option<&mut Spill> {
        None
    }

    /// Removes a named file without operations in flight.
    ///
    /// # Panics
    /// If there is no such file, it is the backing file, or the storage sees an operation on it in flight.
    fn remove_file(&mut self, slot: FileSlot);

    /// A reader of one file by blocking calls, outside of the bound on operations in flight. It keeps a named file
    /// open. `None` if the storage has no such reader.
    ///
    /// # Panics
    /// If there is no such file.
    fn reader(&self, file: FileSlot) -> Option<Arc<dyn BlockingReader>> {
        let _ = file;
        None
    }
}

/// Reads one file of a storage while the calling thread waits. Several threads may read at a time.
pub trait BlockingReader: Send + Sync {
    /// Reads a part of the file. It allocates nothing and takes no lock, so a signal handler may call it. Exceptions
    /// are a file in memory, and a named file after a failed sync: both take a lock.
    ///
    /// # Errors
    /// As the results of [`Storage::poll`].
    ///
    /// # Panics
    /// As [`Storage::start`], or if the operation is a write.
    ///
    /// # Safety
    /// During the call the memory is valid for the length of the operation, nothing else accesses it, and no operation
    /// in flight writes to the same part of the file.
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()>;

    /// Where other processes of this host find the file, if they may read it.
    fn shared(&self) -> Option<SharedFile> {
        None
    }
}

/// Takes a line for the user: a warning about reduced performance, or a progress note.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// The arguments of [`open`].
pub struct Options<'a> {
    /// The directory for the backing file.
    pub dir: &'a Path,
    /// Size of the backing file: a multiple of [`BLOCK_BYTES`].
    pub size_bytes: u64,
    /// Number of its first bytes to reserve space for at once: also a multiple. [`reserve_more`] reserves more.
    pub reserved_bytes: u64,
    /// The bound on operations in flight, 1 to 4096.
    pub depth: usize,
    /// Address and length in bytes of the memory used by most operations: the pool. It stays mapped during the lifetime
    /// of the storage. Where the kernel permits, a page of it is pinned once, by its first operation.
    pub buffers: &'a [(*mut u8, usize)],
    /// The length in bytes of most operations. Each range of `buffers` begins with a page.
    pub page_bytes: usize,
    /// Maximum bytes of named files, in whole pages, in a burst buffer in the directory; 0 for no burst buffer.
    pub spill_bytes: u64,
    /// An I/O error to inject, for tests.
    pub fault: Option<IoFault>,
    /// Called by [`open`], and by an operation if the kernel refuses to pin more memory.
    pub warn: Warn,
    /// Called when writes begin to wait for space, and when the burst buffer fails.
    pub tell: Warn,
    /// Called with each new file: the backing file and the burst buffer.
    pub created: &'a dyn Fn(BorrowedFd<'_>),
}

/// Creates a backing file and the best storage this machine permits for it.
///
/// # Errors
/// The directory cannot hold the file (see [`BackingFile::create`]), neither io_uring nor threads are available, or the
/// timer or the file of the burst buffer cannot be created.
pub fn open(options: &Options<'_>) -> Result<Box<dyn Storage>, UserError> {
    let file = BackingFile::create_with(options.dir, options.size_bytes, options.reserved_bytes)?;
    (options.created)(file.as_fd());
    file.warnings().iter().for_each(|line| (options.warn)(line));
    let storage: Box<dyn Storage> = match RingStorage::new(file, options.depth) {
        Ok(mut ring) => {
            let warn = Arc::clone(&options.warn);
            ring.register(options.buffers, options.page_bytes, move |line| warn(line));
            Box::new(ring)
        }
        Err(Refused { file, error }) => {
            let hint = match error.raw_os_error() {
                Some(libc::ENOMEM) => "raise `ulimit -l`",
                _ => "allow it in sysctl kernel.io_uring_disabled or in the container's seccomp profile",
            };
            (options.warn)(&format!(
                "the kernel refused io_uring ({error}): storage uses threads with blocking calls, which is slower; {hint}"
            ));
            let threads = ThreadStorage::new(file, options.depth);
            Box::new(threads.map_err(|error| UserError::new(format!("cannot start threads for storage: {error}")))?)
        }
    };
    let storage = match options.fault {
        Some(fault) => Box::new(Faulty::new(storage, fault)),
        None => storage,
    };
    let (tell, seconds, dir) = (Arc::clone(&options.tell), SPACE_PATIENCE.as_secs(), options.dir.display());
    let line = format!("the disk of {dir} is full; waiting up to {seconds} s for space");
    let patient = Patient::new(storage, SPACE_PATIENCE, move || tell(&line));
    let patient = patient.map_err(|error| UserError::new(format!("cannot open a timer for storage: {error}")))?;
    if options.spill_bytes == 0 { Ok(Box::new(patient)) } else { with_spill(Box::new(patient), options) }
}

/// Puts a burst buffer before the named files.
fn with_spill(inner: Box<dyn Storage>, options: &Options<'_>) -> Result<Box<dyn Storage>, UserError> {
    let file = NamedFile::nameless(options.dir).map_err(|error| {
        let dir = options.dir.display();
        UserError::new(format!(
            "cannot create a file for VGASNET_FILE_SPILL in {dir}: {error}; set VGASNET_STORAGE_DIR to another directory"
        ))
    })?;
    file.as_fd().into_iter().for_each(|file| (options.created)(file));
    let pages = (options.spill_bytes / options.page_bytes as u64).try_into().unwrap_or(u32::MAX);
    Ok(Box::new(Spill::new(inner, Arc::new(file), options.page_bytes, pages, Arc::clone(&options.tell))))
}

#[cfg(test)]
mod tests;
