//! The backing file of a rank's segment, named files beside it, and the I/O on them.
//!
//! [`Storage`] is the interface; [`open`] makes the best one that this machine allows. There are three, and three
//! wrappers:
//!
//! | type | what it is | when |
//! | --- | --- | --- |
//! | [`RingStorage`] | the files through io_uring | wherever the kernel permits |
//! | [`ThreadStorage`] | the files through blocking calls on a few threads | where io_uring is not permitted |
//! | [`MemoryStorage`] | sparse memory, delays and faults drawn from a seed | the deterministic simulation |
//! | [`Patient`] | has writes of the backing file of any of them wait for space on a full disk | always |
//! | [`Spill`] | puts a burst buffer before the named files of any of them | with `VGASNET_FILE_SPILL=1` |
//! | [`Faulty`] | makes operations of any of them fail | tests of I/O errors end to end |
//!
//! A [`NamedFile`] is opened by its path, or stands for a [`MemoryFile`] of the simulation. [`Storage::add_file`] gives it a
//! [`FileSlot`], by which operations name it.

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
pub use spill::Spill;
pub use threads::ThreadStorage;
pub use traces::Mark;
pub use unsynced::Doubt;

pub use crate::settings::IoDirection;
/// The error number of an error of the system.
pub fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// As many operations are in flight as were agreed on. Nothing was started: poll, then try again.
pub use vgasnet_conduit::Busy;

use crate::error::UserError;
use crate::settings::IoFault;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Offsets, lengths and memory addresses of operations are multiples of this many bytes, as `O_DIRECT` needs.
pub const BLOCK_BYTES: usize = 4096;

/// A depth that lets a burst of misses queue in the kernel. One to four operations of 4 MiB already keep a disk busy, of 4 KiB it
/// takes dozens.
pub const DEPTH_DEFAULT: usize = 64;

/// Asynchronous I/O on one backing file and named files beside it, with a bound on operations in flight that is set when it is made.
///
/// Any thread may call, one at a time. The thread that polls need not be the one that started the operation, which may
/// even have ended. Operations in flight are not ordered: two that overlap, one of them a write, must not be in flight
/// together. Dropping a storage waits for the operations in flight. Their results are lost, and their memory is free
/// afterwards.
///
/// A part of a file that was never written reads as zeros, and so does what lies behind the end of a named file, also if that
/// was cut meanwhile. A write behind the end makes a named file longer, by whole blocks: who knows its size cuts it.
pub trait Storage: Send {
    /// Starts reading a part of a file into memory, or writing it from there. The token comes back from [`poll`] with
    /// the result. After an error the contents of what was to be written, memory or part of the file, are unspecified.
    ///
    /// [`poll`]: Storage::poll
    ///
    /// # Errors
    /// [`Busy`] if the bound on operations in flight is reached; the memory is then not touched.
    ///
    /// # Panics
    /// If the offset, the length or the address is not a multiple of [`BLOCK_BYTES`], the length is 0, the range leaves the
    /// backing file, or there is no such file.
    ///
    /// # Safety
    /// Until [`poll`] hands out the token or the storage has been dropped, the memory is valid for the length of the
    /// operation. If it is read into, nothing else accesses it; if it is written from, nothing writes to it.
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy>;

    /// Starts several operations of one direction on one file, each of which begins where the one before it ends: with one
    /// request for all of them, where that is possible. Returns how many of them were started, from the first on; 0 where
    /// [`Storage::start`] would have been [`Busy`].
    ///
    /// # Panics
    /// As [`Storage::start`], or if they are of several files.
    ///
    /// # Safety
    /// That of [`Storage::start`] for each of them.
    unsafe fn start_run(&mut self, run: &[IoOperation]) -> usize {
        // SAFETY: the caller has promised for each what this needs.
        unsafe { self.start_runs(&[run]) }
    }

    /// Starts several runs of one direction, of any files, each as [`Storage::start_run`], and tells the system of all of them at once where that
    /// is possible.
    /// Returns how many operations were started, from the first on.
    ///
    /// # Panics
    /// As [`Storage::start`].
    ///
    /// # Safety
    /// That of [`Storage::start`] for each operation.
    unsafe fn start_runs(&mut self, runs: &[&[IoOperation]]) -> usize {
        let mut operations = runs.iter().copied().flatten();
        // SAFETY: the caller has promised for each what this needs.
        operations.by_ref().take_while(|operation| unsafe { self.start(**operation) }.is_ok()).count()
    }

    /// Hands the token and the result of every operation that has completed to `sink`, each exactly once, and continues
    /// operations that got only half way. Never blocks; extra calls are harmless and cheap.
    ///
    /// A result is an error with the errno of the kernel, or [`io::ErrorKind::UnexpectedEof`] where the backing file turned
    /// out shorter than it was made.
    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>));

    /// How many operations were started and not yet handed out by [`Storage::poll`].
    fn in_flight(&self) -> usize;

    /// A descriptor that is readable (`POLLIN`, level-triggered) while [`Storage::poll`] has anything to do, so that
    /// its caller can sleep. [`Storage::poll`] clears it; nothing else reads from it. `None` if operations complete
    /// only inside [`Storage::poll`].
    fn doorbell(&self) -> Option<BorrowedFd<'_>>;

    /// The doorbell rings after so long, until this is called again; not for that any more without a time. Where there is no doorbell,
    /// nobody sleeps on it.
    fn ring_in(&mut self, time: Option<Duration>) {
        let _ = time;
    }

    /// Takes a named file, until [`Storage::remove_file`]. Slots of files that were removed are given again.
    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot;

    /// The burst buffer before named files, if there is one.
    fn spill(&self) -> Option<&Spill> {
        None
    }

    /// The same, to be asked to do something.
    fn spill_mut(&mut self) -> Option<&mut Spill> {
        None
    }

    /// Gives a named file up, of which no operation is in flight.
    ///
    /// # Panics
    /// If there is no such file, it is the backing file, or an operation of it is seen in flight.
    fn remove_file(&mut self, slot: FileSlot);

    /// What reads a file with blocking calls, beside the operations in flight and without counting among them; it keeps a named file
    /// open. `None` where that is not possible.
    ///
    /// # Panics
    /// If there is no such file.
    fn reader(&self, file: FileSlot) -> Option<Arc<dyn BlockingReader>> {
        let _ = file;
        None
    }
}

/// Reads one file of a storage while the calling thread waits: several threads at a time.
pub trait BlockingReader: Send + Sync {
    /// Does a read of the file. It allocates nothing and takes no lock, so a signal handler may call it.
    ///
    /// # Errors
    /// As the results that [`Storage::poll`] hands out.
    ///
    /// # Panics
    /// As [`Storage::start`], or if it is a write.
    ///
    /// # Safety
    /// During the call the memory is valid for the length of the operation, nothing else accesses it, and no operation in flight
    /// writes to that part of the file.
    unsafe fn read(&self, operation: &IoOperation) -> io::Result<()>;
}

/// Takes a line for the user: a warning of what works less well than it could, or what is going on.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// The arguments of [`open`].
pub struct Options<'a> {
    /// The directory on whose file system the backing file lives.
    pub dir: &'a Path,
    /// The size of the file: a multiple of [`BLOCK_BYTES`].
    pub size_bytes: u64,
    /// For how many of its first bytes space is taken at once: also a multiple. [`reserve_more`] takes more.
    pub reserved_bytes: u64,
    /// The bound on operations in flight, 1 to 4096.
    pub depth: usize,
    /// Address and length in bytes of the memory that most operations use, which is the pool. It stays mapped as long
    /// as the storage lives. Where the kernel allows, a page of it is pinned by its first operation and not by each.
    pub buffers: &'a [(*mut u8, usize)],
    /// The length in bytes of most operations; each range of `buffers` begins with a page.
    pub page_bytes: usize,
    /// The bytes of named files, in whole pages, that a burst buffer in the directory may have; 0 for none.
    pub spill_bytes: u64,
    /// An I/O error to make, for tests.
    pub fault: Option<IoFault>,
    /// Called by [`open`], and by operations on the storage when the kernel refuses to pin more.
    pub warn: Warn,
    /// Called when writes begin to wait for space.
    pub tell: Warn,
    /// Called with the new file.
    pub created: &'a dyn Fn(BorrowedFd<'_>),
}

/// Creates a backing file and the best storage for it that this machine permits.
///
/// # Errors
/// The directory cannot hold the file (see [`BackingFile::create`]), or there is neither io_uring nor threads.
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
