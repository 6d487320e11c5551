//! Mapped memory of the job.
#![allow(unsafe_code, reason = "what is mapped where is the system's business")]

use std::ffi::c_void;
use std::io;

/// Memory mapped in this process until it ends.
///
/// Other threads and processes access it at any time, so it is used through raw pointers and atomics, never through
/// references to plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Address of the first byte, a multiple of the system's page size.
    pub address: usize,
    /// Length in bytes.
    pub len_bytes: usize,
}

impl Region {
    /// The byte at `offset_bytes`, inside the region or at its end.
    pub fn at(self, offset_bytes: usize) -> *mut u8 {
        assert!(offset_bytes <= self.len_bytes, "offset {offset_bytes} in a region of {} bytes", self.len_bytes);
        std::ptr::with_exposed_provenance_mut(self.address + offset_bytes)
    }

    /// The first of `len_bytes` bytes from `offset_bytes` on, inside the region: one end of a [`crate::Transfer`] in
    /// this pool.
    pub fn part(self, offset_bytes: usize, len_bytes: usize) -> *mut u8 {
        self.get(offset_bytes, len_bytes).unwrap_or_else(|| {
            panic!("a transfer of {len_bytes} bytes at {offset_bytes} in a pool of {} bytes", self.len_bytes)
        })
    }

    /// As [`Region::part`]; `None` if the bytes do not lie inside the region.
    pub fn get(self, offset_bytes: usize, len_bytes: usize) -> Option<*mut u8> {
        let is_inside = offset_bytes <= self.len_bytes && len_bytes <= self.len_bytes - offset_bytes;
        is_inside.then(|| self.at(offset_bytes))
    }

    /// Whether [`map_again`] works here: the region is a shared mapping.
    pub fn is_shared_mapping(self) -> bool {
        self.second()
            .inspect(|second| {
                let second = std::ptr::with_exposed_provenance_mut::<c_void>(*second);
                // SAFETY: it was mapped just now and is not in use.
                unsafe { libc::munmap(second, self.len_bytes) };
            })
            .is_ok()
    }

    /// Maps the region a second time at any address, until the process ends.
    ///
    /// # Errors
    /// It is not a shared mapping, or there is no room for another one.
    pub fn second(self) -> io::Result<usize> {
        // SAFETY: the kernel chooses free addresses, so nothing else is disturbed.
        unsafe { remap(self.address, self.len_bytes, libc::MREMAP_MAYMOVE, 0) }
    }
}

/// Maps `len_bytes` of the shared mapping at `from` a second time at `at`, replacing the mapping there, for the same
/// accesses. It neither allocates nor locks.
///
/// # Errors
/// It is not a shared mapping, or there is no room for another one.
///
/// # Safety
/// The mapping at `at` is not in use, and the mapping at `from` has at least `len_bytes`.
pub unsafe fn map_again(from: usize, len_bytes: usize, at: usize) -> io::Result<()> {
    // SAFETY: the caller guarantees that the mapping at `at`, the only one to change, is not in use.
    unsafe { remap(from, len_bytes, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, at) }.map(drop)
}

/// The system's page size.
pub fn page_bytes() -> usize {
    // SAFETY: the call has no precondition.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every Linux system knows its page size")
}

/// With an old size of 0 the old mapping stays (mremap(2)), which the kernel allows for shared ones. A direct system
/// call, because libraries override `mremap`: UCX's loses the last argument.
unsafe fn remap(from: usize, len_bytes: usize, flags: i32, at: usize) -> io::Result<usize> {
    let [from, at] = [from, at].map(std::ptr::with_exposed_provenance_mut::<c_void>);
    // SAFETY: the caller guarantees that the mapping at `at` is not in use, if the flags fix it; `from` keeps its own.
    let mapped = unsafe { libc::syscall(libc::SYS_mremap, from, 0_usize, len_bytes, flags, at) };
    if mapped == -1 { Err(io::Error::last_os_error()) } else { Ok(mapped as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(flags: i32) -> Region {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs no other memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), 8192, rights, flags | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        Region { address: base.expose_provenance(), len_bytes: 8192 }
    }

    #[test]
    fn shared_mappings_only_are_mapped_again() {
        let (shared, private) = (map(libc::MAP_SHARED), map(libc::MAP_PRIVATE));
        assert!(shared.is_shared_mapping() && !private.is_shared_mapping());
        let second = Region { address: shared.second().expect("a mapping"), ..shared };
        // SAFETY: both are mapped, and only this thread uses them.
        unsafe {
            shared.at(5000).write(7);
            assert_eq!(second.at(5000).read(), 7);
            map_again(shared.address + 4096, 4096, private.address).expect("a mapping");
            assert_eq!(private.at(904).read(), 7);
        }
    }
}
