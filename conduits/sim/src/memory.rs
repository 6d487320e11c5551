//! The memory of pools and tables.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use vgasnet_conduit::Region;

/// Alignment of regions.
const ALIGN_BYTES: usize = 4096;

/// Memory, initially zero. Ranks access it through [`Region`]s, so nobody has references into it.
pub(crate) struct Memory {
    base: NonNull<u8>,
    layout: Layout,
    len_bytes: usize,
}

// SAFETY: this is an address range and the right to free it; accesses through regions have reasons of their own.
unsafe impl Send for Memory {}
// SAFETY: this is an address range; accesses through regions have reasons of their own.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(len_bytes: usize) -> Memory {
        let layout = Layout::from_size_align(len_bytes.max(1), ALIGN_BYTES).expect("a region fits the address space");
        // SAFETY: the layout's size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base).unwrap_or_else(|| handle_alloc_error(layout));
        Memory { base, layout, len_bytes }
    }

    pub(crate) fn region(&self) -> Region {
        Region { address: self.base.as_ptr().expose_provenance(), len_bytes: self.len_bytes }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout. The hub owns it and lives as long as every conduit, and regions
        // are not used after their conduits.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
