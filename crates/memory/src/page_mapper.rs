//! Maps frames of the pool a second time, at the places of their pages in the segment.
//!
//! Each frame has two spare mappings besides the pool's, one for reads and one for writes, outside the segment and
//! never accessed. To map a large frame in the segment, `mremap` moves the page table entries of its spare mapping
//! there; to unmap it, they are moved back. Entries once populated are never lost. So mapping a page costs
//! microseconds, whereas a fresh mapping costs a minor fault for each 4 KiB touched. Page tables move as a whole,
//! because frames and pages have the same alignment.
//!
//! Small frames are mapped afresh. This is one system call to map and one to unmap; moving entries takes two to unmap,
//! and interrupts other processors twice as often. One minor fault then populates the entries of 64 KiB.
//!
//! Mappers run in signal handlers, and make their system calls without the C library: other libraries replace its
//! functions. UCX, below MPI, does so with an `mremap` that takes no new address.

use super::block_mapper::CopiesIfAny;
use super::reservation::{cover, reserve};
use super::unmapping::drop_entries;
use super::{RemapBlocks, Segment};
use std::io;
use std::sync::Arc;
use vgasnet_conduit::{Region, map_again};
use vgasnet_protocol::coherence::{Access, FrameId};
use vgasnet_sys::last_errno;

/// Maps a rank's frames in its segment.
///
/// Calls for one frame come one at a time, for several frames concurrently, also in signal handlers: no function
/// allocates or locks.
pub trait PageMapper: Send + Sync {
    /// Maps a frame as page `index` with this access, in place of the same frame with the access `instead`.
    ///
    /// # Errors
    /// The system's errno value, if it has no room for another mapping. The page has not changed.
    fn map(&self, index: u32, frame: FrameId, access: Access, instead: Option<Access>) -> Result<(), i32>;

    /// Maps `count` frames from `frame` on as consecutive pages from `index` on with this access. None of them is
    /// mapped.
    ///
    /// # Errors
    /// As [`PageMapper::map`]: none of them is mapped then.
    fn map_run(&self, index: u32, frame: FrameId, count: u32, access: Access) -> Result<(), i32>;

    /// Prepares the unmapping of pages, so that it costs less for all of them together. They stay mapped. A hint.
    fn prepare_unmapping(&self, _pages: &[u32]) {}

    /// Unmaps page `index`, as which `frame` is mapped with this access. On return no thread loads from it or stores to
    /// it any more.
    ///
    /// # Errors
    /// The system's errno value, if it has no room for another mapping. The page has not changed.
    fn unmap(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32>;
}

/// The page mapper of a real rank, by `mremap`.
pub struct RemapMapper {
    segment: Segment,
    page_bytes: usize,
    /// The first frame's spare mappings, for reads and for writes; the other frames' follow. A neighbour's frames have
    /// none for writes.
    spare: [usize; 2],
    /// Mappings are made by moving the page table entries of spare ones. Small pages have too little to gain, and
    /// kernels before 5.13 cannot do it with a shared mapping and leave the mapping behind. For both each mapping is
    /// made afresh.
    moves_entries: bool,
    copies: CopiesIfAny,
}

/// On a read the kernel populates the page table entries of this many bytes, equally aligned (`fault_around_bytes`); on
/// a write only one entry.
const AROUND_BYTES: usize = 64 << 10;

/// From this size on pages have their page table entries moved, in bytes: populating them takes longer than a system
/// call.
const MOVED_BYTES_MIN: usize = 1 << 20;

fn protection(access: Access) -> i32 {
    match access {
        Access::Read => libc::PROT_READ,
        Access::Write => libc::PROT_READ | libc::PROT_WRITE,
    }
}

impl RemapMapper {
    /// Nothing mapped yet. `segment` is reserved without access; the pool of `frames` frames is a shared mapping and
    /// stays mapped.
    ///
    /// # Errors
    /// The pool cannot be mapped again.
    pub fn new(segment: Segment, page_bytes: usize, pool: Region, frames: u32) -> io::Result<RemapMapper> {
        let len_bytes = frames as usize * page_bytes;
        assert!(len_bytes <= pool.len_bytes, "{frames} frames of {page_bytes} bytes in a pool of {}", pool.len_bytes);
        let spare = |access| make_spare(pool.address, len_bytes, access);
        let spare = [spare(Access::Read)?, spare(Access::Write)?];
        let moves_entries = page_bytes >= MOVED_BYTES_MIN;
        let mut mapper = RemapMapper { segment, page_bytes, spare, moves_entries, copies: CopiesIfAny::default() };
        if !mapper.moves_entries {
            return Ok(mapper);
        }
        // A trial with the first page.
        let moved = mapper.map(0, FrameId(0), Access::Read, None);
        mapper.moves_entries = moved.and_then(|()| mapper.unmap(0, FrameId(0), Access::Read)).is_ok();
        Ok(mapper)
    }

    /// A mapper for blocks in the same pool, if the system allows it.
    pub fn of_blocks(&self) -> Option<RemapBlocks> {
        RemapBlocks::new(self.segment, self.page_bytes, self.spare, Arc::clone(&self.copies))
    }

    /// The same for the pool of a neighbour: it maps frames for reads only.
    ///
    /// # Errors
    /// The pool cannot be mapped again.
    pub fn of_neighbour(&self, pool: Region, frames: u32) -> io::Result<RemapMapper> {
        let RemapMapper { segment, page_bytes, moves_entries, .. } = *self;
        let len_bytes = frames as usize * page_bytes;
        assert!(len_bytes <= pool.len_bytes, "{frames} frames of {page_bytes} bytes in a pool of {}", pool.len_bytes);
        Ok(RemapMapper {
            segment,
            page_bytes,
            spare: [make_spare(pool.address, len_bytes, Access::Read)?, 0],
            moves_entries,
            copies: Arc::clone(&self.copies),
        })
    }

    fn page(&self, index: u32) -> usize {
        self.segment.base + index as usize * self.page_bytes
    }

    fn spare_of(&self, frame: FrameId, access: Access) -> usize {
        debug_assert!(self.spare[usize::from(access == Access::Write)] != 0, "a neighbour's frame is mapped to write");
        self.spare[usize::from(access == Access::Write)] + frame.0 as usize * self.page_bytes
    }

    /// Moves the page table entries of a mapping of a whole frame. The mapping stays, without entries.
    fn move_entries(&self, from: usize, to: usize) -> Result<(), i32> {
        let [from, to] = [from, to].map(std::ptr::with_exposed_provenance_mut::<libc::c_void>);
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
        // SAFETY: both places belong to this mapper: they are in the segment's range, or spare mappings, which nothing
        // else unmaps. The target is another mapping of the same frame, or a range without access.
        let moved = unsafe { libc::syscall(libc::SYS_mremap, from, self.page_bytes, self.page_bytes, flags, to) };
        if moved == -1 { Err(last_errno()) } else { Ok(()) }
    }

    fn note_mapped(&self, index: u32, count: u32) {
        if let Some(copies) = self.copies.get() {
            (index..index + count).for_each(|index| copies.on_mapped(index));
        }
    }

    /// Maps consecutive frames afresh, in place of any mapping.
    fn map_anew(&self, index: u32, frame: FrameId, count: u32, access: Access) -> Result<(), i32> {
        let at = self.page(index);
        let len_bytes = count as usize * self.page_bytes;
        // SAFETY: from `at` on there are as many pages of the segment's range, which belongs to this mapper; the spare
        // mapping has whole frames.
        let mapped = unsafe { map_again(self.spare_of(frame, access), len_bytes, at) };
        mapped.map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))?;
        self.note_mapped(index, count);
        let mut next = at;
        while next < at + len_bytes {
            let start = std::ptr::with_exposed_provenance::<u8>(next);
            // SAFETY: the page is mapped, and its caller has it pinned. Any byte will do.
            unsafe { start.read_volatile() };
            next = (next + 1).next_multiple_of(AROUND_BYTES);
        }
        Ok(())
    }
}

impl PageMapper for RemapMapper {
    fn map(&self, index: u32, frame: FrameId, access: Access, instead: Option<Access>) -> Result<(), i32> {
        if !self.moves_entries {
            return self.map_anew(index, frame, 1, access);
        }
        if let Some(before) = instead {
            self.move_entries(self.page(index), self.spare_of(frame, before))?;
        }
        self.move_entries(self.spare_of(frame, access), self.page(index))?;
        self.note_mapped(index, 1);
        Ok(())
    }

    fn map_run(&self, index: u32, frame: FrameId, count: u32, access: Access) -> Result<(), i32> {
        if count == 1 {
            return self.map(index, frame, access, None);
        }
        debug_assert!(!self.moves_entries, "large pages are mapped one by one");
        self.map_anew(index, frame, count, access)
    }

    fn prepare_unmapping(&self, pages: &[u32]) {
        // Entries that are moved must not be lost.
        if !self.moves_entries {
            drop_entries(pages.iter().map(|index| (self.page(*index), self.page_bytes)));
        }
    }

    fn unmap(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32> {
        if self.moves_entries {
            // The old mapping has no entries, but an access would populate them again until the page is covered.
            self.move_entries(self.page(index), self.spare_of(frame, access))?;
        }
        cover(self.page(index), self.page_bytes)?;
        if let Some(copies) = self.copies.get() {
            copies.on_covered(index);
        }
        Ok(())
    }
}

/// Maps the pool a second time, at a multiple of 4 MiB, so that page tables can be moved as a whole.
fn make_spare(pool: usize, len_bytes: usize, access: Access) -> io::Result<usize> {
    const ALIGN_BYTES: usize = 4 << 20;
    // Frames of 4 MiB then fill whole page tables.
    let start = reserve(0, len_bytes + ALIGN_BYTES, 0)?.next_multiple_of(ALIGN_BYTES);
    // SAFETY: the place lies in the range reserved just now, which stays ours until the process ends.
    unsafe { map_again(pool, len_bytes, start) }?;
    let mapped = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
    // SAFETY: the range was mapped just now, and nobody knows of it.
    if unsafe { libc::mprotect(mapped, len_bytes, protection(access)) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Forked children do not inherit it, nor entries moved from it to the segment.
    for advice in [libc::MADV_HUGEPAGE, libc::MADV_DONTFORK] {
        // SAFETY: the range was mapped just now, and nobody knows of it. The advice changes no bytes, and may be refused.
        unsafe { libc::madvise(mapped, len_bytes, advice) };
    }
    Ok(start)
}
