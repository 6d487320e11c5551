//! Shared mappings of the arena's file.

use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use vgasnet_conduit::page_bytes;

/// A part of the arena, mapped readable and writable. Costs memory only where it is touched.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: a mapping is an address range; accesses inside it have reasons of their own.
unsafe impl Send for Mapping {}
// SAFETY: this is an address range; accesses inside it have reasons of their own.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len_bytes` of `file` from `offset_bytes` on, aligned to `align_bytes`, a power of two of at least the
    /// system's page size. The file must have this length and never shrink.
    pub(crate) fn new(
        file: BorrowedFd<'_>,
        offset_bytes: u64,
        len_bytes: usize,
        align_bytes: usize,
    ) -> Result<Self, Errno> {
        let reserved_bytes = len_bytes.checked_add(align_bytes).and_then(NonZeroUsize::new).ok_or(Errno::ENOMEM)?;
        let len = NonZeroUsize::new(len_bytes).ok_or(Errno::EINVAL)?;
        let offset = i64::try_from(offset_bytes).map_err(|_| Errno::EOVERFLOW)?;
        let lazily = MapFlags::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice disturbs no other memory.
        let reserved =
            unsafe { mmap_anonymous(None, reserved_bytes, ProtFlags::PROT_NONE, MapFlags::MAP_PRIVATE | lazily)? };
        let start = reserved.as_ptr().addr();
        let aligned = start.next_multiple_of(align_bytes);
        // SAFETY: the target lies inside the range just reserved, unknown to others.
        let mapped = unsafe {
            mmap(
                NonZeroUsize::new(aligned),
                len,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED | MapFlags::MAP_FIXED | lazily,
                file,
                offset,
            )
        };
        let unused = match mapped {
            Ok(_) => {
                [(start, aligned), (aligned + len_bytes.next_multiple_of(page_bytes()), start + reserved_bytes.get())]
            }
            Err(_) => [(start, start + reserved_bytes.get()), (0, 0)],
        };
        for (from, to) in unused {
            if from < to {
                // SAFETY: this part of the reserved range holds nothing.
                let unmapped = unsafe { unmap(from, to - from) };
                debug_assert_eq!(unmapped, Ok(()));
            }
        }
        let mapping = Mapping { base: mapped?.cast(), len_bytes };
        mapping.keep_from_children();
        Ok(mapping)
    }

    /// Excludes the mapping from forked children. Every kernel with the other required features supports this.
    fn keep_from_children(&self) {
        // SAFETY: the range is this mapping, unchanged in this process.
        let _refused = unsafe { madvise(self.base.cast(), self.len_bytes, MmapAdvise::MADV_DONTFORK) };
    }

    /// Asks the system to back a part of the mapping with large pages; optional.
    pub(crate) fn request_large_pages(&self, offset_bytes: usize, len_bytes: usize) {
        assert!(offset_bytes + len_bytes <= self.len_bytes, "{len_bytes} bytes at {offset_bytes} of a mapping");
        let start = NonNull::new(self.at(offset_bytes).cast());
        if let Some(start) = start.filter(|_| len_bytes > 0) {
            // SAFETY: the range is inside the mapping, and its contents do not change.
            let _refused = unsafe { madvise(start, len_bytes, MmapAdvise::MADV_HUGEPAGE) };
        }
    }

    /// The first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The byte at `offset_bytes`.
    pub(crate) fn at(&self, offset_bytes: usize) -> *mut u8 {
        assert!(offset_bytes <= self.len_bytes, "offset {offset_bytes} in a mapping of {} bytes", self.len_bytes);
        self.base().wrapping_add(offset_bytes)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: references into the mapping borrow it, so none is left.
        let unmapped = unsafe { unmap(self.base().addr(), self.len_bytes) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

/// # Safety
/// Nothing in the range is used any more.
unsafe fn unmap(address: usize, len_bytes: usize) -> Result<(), Errno> {
    let start = NonNull::new(std::ptr::with_exposed_provenance_mut(address)).ok_or(Errno::EINVAL)?;
    // SAFETY: the caller guarantees that nothing in the range is used any more.
    unsafe { munmap(start, len_bytes) }
}
