//! Address ranges for the memory of a job's ranks.

use std::io;
use vgasnet_conduit::Region;

/// Alignment of the parts.
const ALIGN_BYTES: usize = 4096;

/// A range handed out part by part. Dropping this unmaps all parts.
pub struct Addresses {
    base: usize,
    len_bytes: usize,
    taken_bytes: usize,
}

impl Addresses {
    /// Reserves addresses without memory, for parts of these sizes. Nothing is written there. Engines read one byte of
    /// a pool and ask for large pages; the mapping refuses these.
    ///
    /// # Errors
    /// The system has too few addresses.
    pub fn to_read(parts: impl Iterator<Item = usize>) -> io::Result<Addresses> {
        let addresses = Addresses::map(parts, libc::PROT_READ)?;
        let start = std::ptr::with_exposed_provenance_mut(addresses.base);
        // SAFETY: the range was just mapped.
        unsafe { libc::madvise(start, addresses.len_bytes, libc::MADV_NOHUGEPAGE) };
        Ok(addresses)
    }

    /// Reserves parts of these sizes, zero at first. Only written pages take memory.
    ///
    /// # Errors
    /// The system has too little memory.
    pub fn to_write(parts: impl Iterator<Item = usize>) -> io::Result<Addresses> {
        Addresses::map(parts, libc::PROT_READ | libc::PROT_WRITE)
    }

    fn map(parts: impl Iterator<Item = usize>, protection: i32) -> io::Result<Addresses> {
        let len_bytes = parts.map(|bytes| bytes.next_multiple_of(ALIGN_BYTES)).sum();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new range at an address chosen by the kernel replaces nothing.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len_bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Addresses { base: base.expose_provenance(), len_bytes, taken_bytes: 0 })
    }

    /// Hands out the next part.
    pub fn take(&mut self, len_bytes: usize) -> Region {
        let address = self.base + self.taken_bytes;
        self.taken_bytes += len_bytes.next_multiple_of(ALIGN_BYTES);
        assert!(self.taken_bytes <= self.len_bytes, "{len_bytes} bytes are more than is left");
        Region { address, len_bytes }
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by this value. Its job drops this value after the ranks that use it.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(self.base), self.len_bytes) };
    }
}
