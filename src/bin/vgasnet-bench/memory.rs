//! Memory for measuring: shared between processes as a pool is, aligned for direct I/O, resident from the start.

use std::io;

/// A mapping that is gone when this is dropped.
pub struct Memory {
    address: *mut u8,
    len_bytes: usize,
}

impl Memory {
    /// # Panics
    /// If the system has no memory left.
    pub fn new(len_bytes: usize) -> Memory {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a mapping at an address that the kernel chooses replaces nothing.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), len_bytes, protection, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED, "{len_bytes} bytes: {}", io::Error::last_os_error());
        let mut memory = Memory { address: memory.cast(), len_bytes };
        memory.bytes().fill(0x5A);
        memory
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is that long, initialised, and this value's own, so the borrow of it guards the bytes.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.len_bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and every slice of it has ended.
        unsafe { libc::munmap(self.address.cast(), self.len_bytes) };
    }
}
