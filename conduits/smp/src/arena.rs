//! The arena: the file shared by the ranks of a job, and its layout.
//!
//! ```text
//! 0          Header: magic, version, number of ranks, barrier
//! 4096       RankBlock of rank 0, 1, …
//! (page)     inbox ring of rank 0, 1, …                     each a multiple of the system's page
//! (4 MiB)    after attach: table of rank 0, 1, …            each a multiple of the system's page
//! (4 MiB)    pool of rank 0; (4 MiB) pool of rank 1; …
//! ```
//!
//! Initially zero, except the header. The file only grows: it is sealed against shrinking, so that no mapped byte within
//! its length ever disappears.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use vgasnet_conduit::{EXCHANGE_BYTES_MAX, RegionSizes, page_bytes};

use crate::barrier::Barrier;
use crate::bell::Bell;
use crate::mapping::Mapping;
use crate::ring::{INBOX_LINES, Ring};
use vgasnet_protocol::{PROTOCOL_VERSION, RankState};

/// The arena's name as shown by the system (`/proc/<pid>/maps`).
const NAME: &CStr = c"vgasnet-smp";
/// The last byte identifies the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"vgasnet\x01");
const BLOCKS_OFFSET_BYTES: usize = 4096;

/// Keeps inboxes from sharing a cache line, or a page of the usual size.
const INBOX_ALIGN_BYTES: usize = 4096;

/// Alignment of pools in the file and in memory, for huge pages.
pub(crate) const POOL_ALIGN_BYTES: usize = 4 << 20;

#[repr(C, align(64))]
pub(crate) struct Header {
    magic: AtomicU64,
    version: AtomicU64,
    ranks: AtomicU32,
    pub(crate) barrier: Barrier,
}

/// The block of one rank.
#[repr(C, align(64))]
pub(crate) struct RankBlock {
    state: AtomicU64,
    /// The process of this rank; 0 before it joins.
    pid: AtomicU32,
    bulletin_len_bytes: AtomicU32,
    /// Number of collective steps it has taken.
    steps: AtomicU32,
    bulletin: UnsafeCell<[u8; EXCHANGE_BYTES_MAX]>,
    pub(crate) bell: Bell,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Header>() <= BLOCKS_OFFSET_BYTES && align_of::<RankBlock>() == 64);

impl RankBlock {
    pub(crate) fn state(&self) -> RankState {
        RankState::decode(self.state.load(Ordering::Acquire))
    }

    pub(crate) fn set_state(&self, state: RankState) {
        self.state.store(state.encode(), Ordering::Release);
    }

    /// Assigns the rank to process `pid`, or returns the process already assigned.
    pub(crate) fn take(&self, pid: u32) -> Result<(), u32> {
        self.pid.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    /// Counts a collective step.
    pub(crate) fn note_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of collective steps the rank has taken.
    pub(crate) fn steps(&self) -> u32 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Writes this rank's contribution to an exchange.
    ///
    /// # Safety
    /// Only the block's own rank calls this, one thread at a time, and a barrier separates this from every read.
    pub(crate) unsafe fn post_bulletin(&self, bytes: &[u8]) {
        assert!(bytes.len() <= EXCHANGE_BYTES_MAX, "a contribution of {} bytes to an exchange", bytes.len());
        self.bulletin_len_bytes.store(bytes.len() as u32, Ordering::Relaxed);
        // SAFETY: the length fits, and the caller has put a barrier between this write and every other access.
        unsafe { self.bulletin.get().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Reads a rank's contribution to an exchange; `None` if its length is invalid.
    ///
    /// # Safety
    /// A barrier separates this from every [`RankBlock::post_bulletin`].
    pub(crate) unsafe fn bulletin(&self) -> Option<Vec<u8>> {
        let len_bytes = self.bulletin_len_bytes.load(Ordering::Relaxed) as usize;
        // SAFETY: the length fits, and the caller has put a barrier between this read and every write.
        let bytes = || unsafe { std::slice::from_raw_parts(self.bulletin.get().cast::<u8>(), len_bytes) }.to_vec();
        (len_bytes <= EXCHANGE_BYTES_MAX).then(bytes)
    }
}

/// Sets the length of a shared-memory file. Beyond the limit on file sizes it fails with `EFBIG`: the system would end
/// the process by SIGXFSZ.
pub(crate) fn set_len(file: BorrowedFd<'_>, len_bytes: usize) -> Result<(), Errno> {
    let (limit_bytes, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
    if len_bytes as u64 > limit_bytes {
        return Err(Errno::EFBIG);
    }
    nix::unistd::ftruncate(file, len_bytes as i64)
}

/// The fixed part of the arena, mapped: header, rank blocks and inboxes.
pub(crate) struct Control {
    mapping: Mapping,
    ranks: u32,
}

impl Control {
    /// Creates the arena's file for `ranks` ranks, with a valid header.
    pub(crate) fn create(ranks: u32) -> Result<OwnedFd, Errno> {
        let file = memfd_create(NAME, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
        set_len(file.as_fd(), Self::bytes(ranks))?;
        fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK))?;
        let control = Control::map(file.as_fd(), ranks)?;
        let header = control.header();
        header.ranks.store(ranks, Ordering::Relaxed);
        header.version.store(PROTOCOL_VERSION, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(file)
    }

    /// Maps the fixed part of an existing arena, after checking `file` against this number of ranks.
    pub(crate) fn open(file: BorrowedFd<'_>, ranks: u32) -> Result<Self, String> {
        let what = |error: Errno| format!("is not the job's arena: {error}");
        let seals = fcntl(file, FcntlArg::F_GET_SEALS).map_err(what)?;
        let file_bytes = nix::sys::stat::fstat(file).map_err(what)?.st_size;
        if !SealFlag::from_bits_truncate(seals).contains(SealFlag::F_SEAL_SHRINK)
            || usize::try_from(file_bytes).is_ok_and(|bytes| bytes < Self::bytes(ranks))
        {
            return Err("is not the job's arena".to_owned());
        }
        let control = Control::map(file, ranks).map_err(|error| format!("cannot be mapped: {error}"))?;
        let header = control.header();
        let (magic, version) = (header.magic.load(Ordering::Acquire), header.version.load(Ordering::Relaxed));
        let (arena_ranks, expected) = (header.ranks.load(Ordering::Relaxed), (MAGIC, PROTOCOL_VERSION, ranks));
        if (magic, version, arena_ranks) != expected {
            return Err(format!(
                "is not the job's arena: magic {magic:#x}, version {version:#x}, {arena_ranks} ranks; expected {MAGIC:#x}, \
                 {PROTOCOL_VERSION:#x}, {ranks} (were launcher and program built from the same vgasnet?)"
            ));
        }
        Ok(control)
    }

    fn map(file: BorrowedFd<'_>, ranks: u32) -> Result<Self, Errno> {
        let mapping = Mapping::new(file, 0, Self::bytes(ranks), page_bytes())?;
        Ok(Control { mapping, ranks })
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header, page-aligned, and lives as long as `self`; every bit pattern is a valid
        // value of its atomics.
        unsafe { &*self.mapping.base().cast::<Header>() }
    }

    pub(crate) fn block(&self, rank: u32) -> &RankBlock {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        let offset_bytes = BLOCKS_OFFSET_BYTES + rank as usize * size_of::<RankBlock>();
        // SAFETY: inside the mapping, which lives as long as `self`; the offset is a multiple of 64, the block's alignment;
        // every bit pattern is a valid value of atomics and of bytes in a cell.
        unsafe { &*self.mapping.at(offset_bytes).cast::<RankBlock>() }
    }

    #[cfg(not(all(loom, test)))]
    #[inline]
    pub(crate) fn inbox(&self, rank: u32) -> Ring<'_> {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        let offset_bytes = Self::inboxes_offset_bytes(self.ranks) + rank as usize * Self::inbox_bytes();
        // SAFETY: the ring lies inside the mapping, which lives as long as `self`; the offset suits a ring;
        // the file was zero there, and every process of the job uses the same number of lines.
        unsafe { Ring::at(self.mapping.at(offset_bytes), INBOX_LINES) }
    }

    #[cfg(all(loom, test))]
    pub(crate) fn inbox(&self, _rank: u32) -> Ring<'_> {
        unreachable!("the model checker's atomics do not live in shared memory")
    }

    fn inbox_bytes() -> usize {
        Ring::bytes(INBOX_LINES).next_multiple_of(INBOX_ALIGN_BYTES)
    }

    fn inboxes_offset_bytes(ranks: u32) -> usize {
        (BLOCKS_OFFSET_BYTES + ranks as usize * size_of::<RankBlock>()).next_multiple_of(INBOX_ALIGN_BYTES)
    }

    /// The length of the fixed part.
    fn bytes(ranks: u32) -> usize {
        Self::inboxes_offset_bytes(ranks) + ranks as usize * Self::inbox_bytes()
    }
}

/// Offsets of tables and pools in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Their start: a multiple of [`POOL_ALIGN_BYTES`].
    pub(crate) start_bytes: usize,
    /// Offset of each rank's table in the file.
    pub(crate) tables: Vec<usize>,
    /// Offset of each rank's pool in the file.
    pub(crate) pools: Vec<usize>,
    /// The length of the whole file.
    pub(crate) end_bytes: usize,
}

impl Placement {
    /// Places the regions of all ranks. `None` if they exceed a file or an address space.
    pub(crate) fn of(sizes: &[RegionSizes]) -> Option<Self> {
        let start_bytes = Control::bytes(sizes.len() as u32).next_multiple_of(POOL_ALIGN_BYTES);
        let mut end_bytes = start_bytes;
        let mut take = |len_bytes: usize, align_bytes: usize| {
            let offset_bytes = end_bytes.checked_next_multiple_of(align_bytes)?;
            // At least one byte each, so that no two regions have the same address.
            end_bytes = offset_bytes.checked_add(len_bytes.max(1)).filter(|&end| end < 1 << 47)?;
            Some(offset_bytes)
        };
        let tables = sizes.iter().map(|s| take(s.table_bytes, page_bytes())).collect::<Option<_>>()?;
        let pools = sizes.iter().map(|s| take(s.pool_bytes, POOL_ALIGN_BYTES)).collect::<Option<_>>()?;
        let end_bytes = end_bytes.checked_next_multiple_of(page_bytes())?;
        Some(Placement { start_bytes, tables, pools, end_bytes })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn regions_are_aligned_and_do_not_overlap() {
        let sizes = [(0, 0), (4096, 8192), (9 << 20, 1), (4 << 20, 4096)]
            .map(|(pool_bytes, table_bytes)| RegionSizes { pool_bytes, table_bytes });
        let placement = Placement::of(&sizes).expect("small");
        let mut regions: Vec<(usize, usize)> = Vec::new();
        for (rank, size) in sizes.iter().enumerate() {
            assert_eq!(placement.tables[rank] % page_bytes(), 0);
            assert_eq!(placement.pools[rank] % POOL_ALIGN_BYTES, 0);
            regions.push((placement.tables[rank], size.table_bytes));
            regions.push((placement.pools[rank], size.pool_bytes));
        }
        regions.sort_unstable();
        assert!(regions[0].0 >= placement.start_bytes);
        assert!(regions.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 && pair[0].0 < pair[1].0));
        assert!(regions.iter().all(|region| region.0 + region.1 <= placement.end_bytes));
    }

    #[test]
    fn sizes_beyond_the_address_space_are_refused() {
        for pool_bytes in [usize::MAX, usize::MAX / 2, 1 << 47] {
            assert_eq!(Placement::of(&[RegionSizes { pool_bytes, table_bytes: 4096 }]), None);
        }
    }
}
