//! Frames of the pool, mapped a second time where their pages lie in the segment.
//!
//! Each frame has two spare mappings besides the pool's: one to read and one to write, outside the segment, which
//! nobody accesses. To map a large frame in the segment, the page table entries of its spare mapping are moved there by
//! `mremap`; to unmap it, they are moved back. Entries that were filled in once are never lost. So mapping a page costs
//! microseconds, where a fresh mapping costs a minor fault for each 4 KiB that is touched. Page tables move as a whole,
//! because frames and pages are aligned alike.
//!
//! Small frames are mapped anew, which is one system call to map and one to unmap, where moving entries takes two to unmap, and
//! interrupts other processors twice as often. One minor fault then fills in the entries of 64 KiB.
//!
//! Mappers run in signal handlers, and make their system calls without the C library: other libraries replace its
//! functions. UCX, below MPI, does so with an `mremap` that takes no new address.

use super::reservation::reserve;
use super::{RemapBlocks, Segment};
use crate::sys::last_errno;
use std::io;
use vgasnet_conduit::{Region, map_again};
use vgasnet_protocol::coherence::{Access, FrameId};

/// Maps a rank's frames in its segment.
///
/// Calls for one frame come one at a time, those for several side by side, also in signal handlers: neither function allocates
/// or locks.
pub trait PageMapper: Send + Sync {
    /// Maps a frame as page `index` with these rights, in place of the same frame with the rights `instead`.
    ///
    /// # Errors
    /// The system's error number, if it has no room for another mapping. The page is as it was.
    fn map(&self, index: u32, frame: FrameId, access: Access, instead: Option<Access>) -> Result<(), i32>;

    /// Maps `count` frames from `frame` on as as many pages from `index` on with these rights. None of them is mapped.
    ///
    /// # Errors
    /// As [`PageMapper::map`]: none of them is mapped then.
    fn map_run(&self, index: u32, frame: FrameId, count: u32, access: Access) -> Result<(), i32>;

    /// Unmaps page `index`, as which `frame` is mapped with these rights. From now on nobody loads from it or stores to
    /// it.
    ///
    /// # Errors
    /// The system's error number, if it has no room for another mapping. The page is as it was.
    fn unmap(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32>;
}

/// The page mapper of a real rank, by `mremap`.
pub struct RemapMapper {
    segment: Segment,
    page_bytes: usize,
    /// The first frame's spare mappings, to read and to write; those of the other frames come after them. There is none to
    /// write of a neighbour's frames.
    spare: [usize; 2],
    /// Mappings are made by moving the page table entries of spare ones. Small pages have too few entries for that to be
    /// worth it. Kernels before 5.13 cannot do it with a shared mapping and leave the mapping behind. There each is made anew.
    moves_entries: bool,
}

/// The kernel fills in the page table entries of so many bytes, aligned alike, when one of them is read (`fault_around_bytes`),
/// and only one entry when one is written.
const AROUND_BYTES: usize = 64 << 10;

/// Pages from this size on have their page table entries moved, in bytes: filling them in takes longer than a system call.
const MOVED_BYTES_MIN: usize = 1 << 20;

fn protection(access: Access) -> i32 {
    match access {
        Access::Read => libc::PROT_READ,
        Access::Write => libc::PROT_READ | libc::PROT_WRITE,
    }
}

impl RemapMapper {
    /// A mapper that has mapped nothing yet. `segment` is reserved without access; the pool of `frames` frames is a
    /// shared mapping and stays mapped.
    ///
    /// # Errors
    /// The pool cannot be mapped again.
    pub fn new(segment: Segment, page_bytes: usize, pool: Region, frames: u32) -> io::Result<RemapMapper> {
        let len_bytes = frames as usize * page_bytes;
        assert!(len_bytes <= pool.len_bytes, "{frames} frames of {page_bytes} bytes in a pool of {}", pool.len_bytes);
        let spare = |access| make_spare(pool.address, len_bytes, access);
        let spare = [spare(Access::Read)?, spare(Access::Write)?];
        let mut mapper = RemapMapper { segment, page_bytes, spare, moves_entries: page_bytes >= MOVED_BYTES_MIN };
        if !mapper.moves_entries {
            return Ok(mapper);
        }
        // Tries it with the first page.
        let moved = mapper.map(0, FrameId(0), Access::Read, None);
        mapper.moves_entries = moved.and_then(|()| mapper.unmap(0, FrameId(0), Access::Read)).is_ok();
        Ok(mapper)
    }

    /// What maps blocks that lie in the same pool, if the system can.
    pub fn of_blocks(&self) -> Option<RemapBlocks> {
        RemapBlocks::new(self.segment, self.page_bytes, self.spare)
    }

    /// As this one, for the pool of a neighbour: it maps frames to read only.
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
        // SAFETY: both places belong to this mapper: they are in the segment's range, or spare mappings, which nobody
        // else unmaps. The target is another mapping of the same frame, or a range without access.
        let moved = unsafe { libc::syscall(libc::SYS_mremap, from, self.page_bytes, self.page_bytes, flags, to) };
        if moved == -1 { Err(last_errno()) } else { Ok(()) }
    }

    /// Maps frames that follow each other anew, in place of what is there.
    fn map_anew(&self, at: usize, frame: FrameId, count: u32, access: Access) -> Result<(), i32> {
        let len_bytes = count as usize * self.page_bytes;
        // SAFETY: from `at` on there are so many pages of the segment's range, which belongs to this mapper; the spare mapping
        // has whole frames.
        let mapped = unsafe { map_again(self.spare_of(frame, access), len_bytes, at) };
        mapped.map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))?;
        let mut next = at;
        while next < at + len_bytes {
            let start = std::ptr::with_exposed_provenance::<u8>(next);
            // SAFETY: the page is mapped, and its caller has it pinned. The byte does not matter.
            unsafe { start.read_volatile() };
            next = (next + 1).next_multiple_of(AROUND_BYTES);
        }
        Ok(())
    }
}

impl PageMapper for RemapMapper {
    fn map(&self, index: u32, frame: FrameId, access: Access, instead: Option<Access>) -> Result<(), i32> {
        if !self.moves_entries {
            return self.map_anew(self.page(index), frame, 1, access);
        }
        if let Some(before) = instead {
            self.move_entries(self.page(index), self.spare_of(frame, before))?;
        }
        self.move_entries(self.spare_of(frame, access), self.page(index))
    }

    fn map_run(&self, index: u32, frame: FrameId, count: u32, access: Access) -> Result<(), i32> {
        if count == 1 {
            return self.map(index, frame, access, None);
        }
        debug_assert!(!self.moves_entries, "large pages are mapped one by one");
        self.map_anew(self.page(index), frame, count, access)
    }

    fn unmap(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32> {
        if self.moves_entries {
            // The mapping that stays has no entries, but an access would fill them in again, until the page is covered.
            self.move_entries(self.page(index), self.spare_of(frame, access))?;
        }
        cover(self.page(index), self.page_bytes)
    }
}

/// Takes all access to a range of a segment away, of whole pages of the system, which has nothing but mappings of frames.
///
/// # Errors
/// The system's error number, if it has no room for another mapping.
pub(super) fn cover(at: usize, len_bytes: usize) -> Result<(), i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let at = std::ptr::with_exposed_provenance_mut::<libc::c_void>(at);
    // SAFETY: the range lies in that of the segment, which belongs to the mappers, and has nothing but mappings of frames.
    let mapped = unsafe { libc::syscall(libc::SYS_mmap, at, len_bytes, libc::PROT_NONE, flags, -1, 0_u64) };
    if mapped == -1 { Err(last_errno()) } else { Ok(()) }
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
    // Children do not get it, nor what is moved from it to the segment.
    for advice in [libc::MADV_HUGEPAGE, libc::MADV_DONTFORK] {
        // SAFETY: the range was mapped just now, and nobody knows of it. The advice changes no bytes, and may be refused.
        unsafe { libc::madvise(mapped, len_bytes, advice) };
    }
    Ok(start)
}
