//! Memory for measuring: mapped, from a file, or as a program's allocator gives it.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What the processor's large pages have to be aligned to, where there are such.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// A shared mapping that is gone when this is dropped.
pub struct Memory {
    address: *mut u8,
    len_bytes: usize,
}

impl Memory {
    /// Memory shared between processes as a pool is, aligned for direct I/O, resident from the start.
    ///
    /// # Panics
    /// If the system has no memory left.
    pub fn new(len_bytes: usize) -> Memory {
        let mut memory = map(len_bytes, None).unwrap_or_else(|error| panic!("{len_bytes} bytes: {error}"));
        memory.bytes().fill(0x5A);
        memory
    }

    /// The first bytes of a file, through the page cache.
    pub fn of_file(file: BorrowedFd<'_>, len_bytes: usize) -> io::Result<Memory> {
        map(len_bytes, Some(file))
    }

    pub fn start(&self) -> *mut u8 {
        self.address
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is that long, initialised, and this value's own, so the borrow of it guards the bytes.
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
    Ok(Memory { address: memory.cast(), len_bytes })
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and every slice of it has ended.
        unsafe { libc::munmap(self.address.cast(), self.len_bytes) };
    }
}

/// Zeros from the program's allocator, resident from the start.
pub struct Allocated {
    address: *mut u8,
    layout: Layout,
}

impl Allocated {
    /// With `ask_for_large_pages`, the kernel is told that large pages are wanted. Whether it has them is another matter:
    /// see [`large_page_bytes`].
    ///
    /// # Panics
    /// If `len_bytes` is 0 or more than addresses there are.
    pub fn new(len_bytes: usize, ask_for_large_pages: bool) -> Allocated {
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
        Allocated { address, layout }
    }

    pub fn start(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: the memory comes from this allocator and layout, and whoever was given the address is through with it.
        unsafe { dealloc(self.address, self.layout) };
    }
}

/// How much of `len_bytes` bytes from `start` is mapped in large pages now, 0 where the kernel does not tell. What lies
/// beside the range counts too if the kernel takes both for one mapping.
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

/// The addresses that a line of `/proc/self/smaps` is about, if it begins a mapping.
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
