//! Memory for measurements: a mapping, a file, or the program's allocator.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The alignment of large pages on processors that have them.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Memory that is given back when this is dropped.
pub struct Memory {
    address: *mut u8,
    len_bytes: usize,
    /// Of memory from the allocator; the rest is mapped.
    layout: Option<Layout>,
}

impl Memory {
    /// A shared mapping, as a pool is: aligned for direct I/O, resident from the start.
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

    /// Has the kernel read nothing ahead in a mapped file.
    pub fn use_at_random(&self) {
        // SAFETY: the range is mapped, and the advice changes nothing about its content.
        unsafe { libc::madvise(self.address.cast(), self.len_bytes, libc::MADV_RANDOM) };
    }

    /// Zeros from the program's allocator, resident from the start. With `ask_for_large_pages`, the kernel is asked for
    /// large pages, which it may refuse: see [`large_page_bytes`].
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
            // SAFETY: the range is allocated, and the advice changes nothing about its content.
            unsafe { libc::madvise(address.cast(), len_bytes, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: the memory is that long, and nobody else has it yet.
        unsafe { address.write_bytes(0, len_bytes) };
        if ask_for_large_pages {
            // For kernels that are set to heed no advice (Linux 6.1 does this one at once, or never).
            // SAFETY: as for the other advice.
            unsafe { libc::madvise(address.cast(), len_bytes, libc::MADV_COLLAPSE) };
        }
        Memory { address, len_bytes, layout: Some(layout) }
    }

    /// Where it begins.
    pub fn start(&self) -> *mut u8 {
        self.address
    }

    /// All of it.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the memory is that long, initialised, and this value's own, so the borrow of it guards the bytes.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.len_bytes) }
    }
}

fn map(len_bytes: usize, file: Option<BorrowedFd<'_>>) -> io::Result<Memory> {
    let (protection, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
    let (flags, descriptor) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a mapping at an address that the kernel chooses replaces nothing.
    let memory = unsafe { libc::mmap(none, len_bytes, protection, flags, descriptor, 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(Memory { address: memory.cast(), len_bytes, layout: None })
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.layout {
            // SAFETY: the memory comes from this allocator and layout, and all users of the address have ended.
            Some(layout) => unsafe { dealloc(self.address, layout) },
            // SAFETY: the mapping is this value's own, and every slice of it has ended.
            None => unsafe {
                libc::munmap(self.address.cast(), self.len_bytes);
            },
        }
    }
}

/// How much of `len_bytes` bytes from `start` is mapped in large pages now, 0 where the kernel does not tell. The kernel
/// may take a neighbouring range for the same mapping; that counts too then.
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

/// Large pages of private memory, and of memory shared as a pool is.
const LARGE: [&str; 2] = ["AnonHugePages:", "ShmemPmdMapped:"];

/// The addresses of the mapping that a line of `/proc/self/smaps` begins, if it begins one.
fn range(line: &str) -> Option<(u64, u64)> {
    let (from, to) = line.split_once(' ')?.0.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

fn kib_of(line: &str) -> Option<u64> {
    line.split_once(':')?.1.trim().strip_suffix(" kB")?.parse().ok()
}

/// This process's share of the memory that it has mapped.
pub fn pss_bytes() -> io::Result<u64> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let kib = rollup.lines().find(|line| line.starts_with("Pss:")).and_then(kib_of);
    kib.map(|kib| kib << 10).ok_or_else(|| io::Error::other("no line Pss"))
}
