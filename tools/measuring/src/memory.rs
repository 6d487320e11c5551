//! Memory for measurements: a mapping, a file, or memory of the program's allocator.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Alignment of large pages, on processors with large pages.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Memory, freed when this is dropped.
pub struct Memory {
    address: *mut u8,
    len_bytes: usize,
    /// Layout of memory from the allocator; `None` for mapped memory.
    layout: Option<Layout>,
}

impl Memory {
    /// A shared mapping like a pool: aligned for direct I/O and resident from the start.
    ///
    /// # Panics
    /// If the system has no memory left.
    pub fn shared(len_bytes: usize) -> Memory {
        let mut memory = map(len_bytes, None).unwrap_or_else(|error| panic!("{len_bytes} bytes: {error}"));
        memory.bytes().fill(0x5A);
        memory
    }

    /// The first bytes of a file, through the page cache.
    pub fn of_file(file: BorrowedFd<'_>, len_bytes: usize) -> io::Result<Memory> {
        map(len_bytes, Some(file))
    }

    /// Turns off the kernel's read-ahead in a mapped file.
    pub fn use_at_random(&self) {
        // SAFETY: the range is mapped. The advice does not change its content.
        unsafe { libc::madvise(self.address.cast(), self.len_bytes, libc::MADV_RANDOM) };
    }

    /// Zeros from the program's allocator, resident from the start. With `ask_for_large_pages` the kernel is asked for
    /// large pages. It may refuse; see [`large_page_bytes`].
    ///
    /// # Panics
    /// If `len_bytes` is 0 or exceeds the address space.
    pub fn allocated(len_bytes: usize, ask_for_large_pages: bool) -> Memory {
        assert!(len_bytes > 0, "no memory has no address");
        let layout = Layout::from_size_align(len_bytes, LARGE_PAGE_BYTES).expect("a size that fits the address space");
        // SAFETY: the layout has a size.
        let address = unsafe { alloc(layout) };
        if address.is_null() {
            handle_alloc_error(layout);
        }
        if ask_for_large_pages {
            // SAFETY: the range is allocated. The advice does not change its content.
            unsafe { libc::madvise(address.cast(), len_bytes, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: the memory has this length and no other user yet.
        unsafe { address.write_bytes(0, len_bytes) };
        if ask_for_large_pages {
            // Some kernels are configured to ignore MADV_HUGEPAGE. (Linux 6.1 collapses at once, or never.)
            // SAFETY: as for the other advice.
            unsafe { libc::madvise(address.cast(), len_bytes, libc::MADV_COLLAPSE) };
        }
        Memory { address, len_bytes, layout: Some(layout) }
    }

    /// The address of the first byte.
    pub fn start(&self) -> *mut u8 {
        self.address
    }

    /// The whole memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the memory has this length, is initialised and belongs to this value, so borrowing the value guards
        // the bytes.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.len_bytes) }
    }
}

fn map(len_bytes: usize, file: Option<BorrowedFd<'_>>) -> io::Result<Memory> {
    let (protection, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
    let (flags, descriptor) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a mapping at an address chosen by the kernel replaces nothing.
    let memory = unsafe { libc::mmap(none, len_bytes, protection, flags, descriptor, 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(Memory { address: memory.cast(), len_bytes, layout: None })
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.layout {
            // SAFETY: the memory comes from this allocator with this layout. All users of the address have ended.
            Some(layout) => unsafe { dealloc(self.address, layout) },
            // SAFETY: the mapping belongs to this value. Every slice of it has ended.
            None => unsafe {
                libc::munmap(self.address.cast(), self.len_bytes);
            },
        }
    }
}

/// The part of `len_bytes` bytes from `start` currently mapped in large pages; 0 if the kernel does not report it. If
/// the kernel has merged a neighbouring range into the same mapping, the neighbour counts too.
pub fn large_page_bytes(start: *const u8, len_bytes: u64) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let (start, mut is_inside, mut found_bytes) = (start.addr() as u64, false, 0);
    for line in maps.lines() {
        if let Some((from, to)) = range(line) {
            is_inside = from < start + len_bytes && start < to;
        } else if is_inside && LARGE.iter().any(|name| line.starts_with(name)) {
            found_bytes += kib_of(line).unwrap_or(0) << 10;
        }
    }
    found_bytes
}

/// Large pages of private memory, and of shared memory such as a pool.
const LARGE: [&str; 2] = ["AnonHugePages:", "ShmemPmdMapped:"];

/// The address range in a line of `/proc/self/smaps` that starts a mapping.
fn range(line: &str) -> Option<(u64, u64)> {
    let (from, to) = line.split_once(' ')?.0.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

fn kib_of(line: &str) -> Option<u64> {
    line.split_once(':')?.1.trim().strip_suffix(" kB")?.parse().ok()
}

/// This process's proportional share of its mapped memory.
pub fn pss_bytes() -> io::Result<u64> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let kib = rollup.lines().find(|line| line.starts_with("Pss:")).and_then(kib_of);
    kib.map(|kib| kib << 10).ok_or_else(|| io::Error::other("no line Pss"))
}
