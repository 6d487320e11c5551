//! The job's address space as this rank sees it: the places of the segments, and the mapped memories that may hold
//! their pages.

use super::home_blocks::HomeBlocks;
use super::page_table::part_bytes;
use super::rank_memory::{FILE_POINTER_BYTES, MEETING_BYTES};
use super::{
    Closing, Directory, DirtyBlocks, Lender, Memories, PageMapper, PageTable, Pinned, Pool, RankMemory, Segment,
    SegmentView, Segments, Translations,
};
use std::sync::Arc;
use vgasnet_conduit::{Conduit, Region};
use vgasnet_protocol::coherence::{Access, FrameId, PageId};
use vgasnet_protocol::{Rank, Space};
use vgasnet_settings::UserError;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Minimum number of staging frames, by which a home moves pages of ranks without mapped memory: two for stores, so
/// that one page is fetched while another is written, and one left to loads.
pub const STAGING_FRAMES_MIN: u32 = 3;

/// Maximum bytes of staging frames, beyond the minimum number.
const STAGING_BYTES_MAX: usize = 4 << 20;

/// Maximum number of staging frames: more than the disk and the network work on at a time.
const STAGING_FRAMES_MAX: usize = 64;

/// Number of staging frames of a rank.
pub const fn staging_frames(page_bytes: usize) -> u32 {
    let frames = STAGING_BYTES_MAX / page_bytes;
    let frames = if frames > STAGING_FRAMES_MAX { STAGING_FRAMES_MAX } else { frames } as u32;
    if frames < STAGING_FRAMES_MIN { STAGING_FRAMES_MIN } else { frames }
}

/// One frame in this many is added to a pool for blocks of pages that no rank holds.
const BLOCKS_PART: u32 = 16;

/// Maximum bytes of blocks, unless a frame is larger.
const BLOCKS_BYTES_MAX: usize = 64 << 20;

/// Number of frames of a rank for blocks, besides its pool and the staging frames.
pub const fn block_frames(frames: u32, page_bytes: usize) -> u32 {
    let (wanted, most) = (frames.div_ceil(BLOCKS_PART), (BLOCKS_BYTES_MAX / page_bytes) as u32);
    let frames = if wanted > most { most } else { wanted };
    if frames == 0 { 1 } else { frames }
}

/// Number of all frames of a rank, in the order of its memory: pool, staging, blocks.
pub const fn all_frames(frames: u32, page_bytes: usize) -> u32 {
    frames + staging_frames(page_bytes) + block_frames(frames, page_bytes)
}

/// The sizes of a rank's memory, as it tells the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Shape {
    /// Pages of its segment.
    pub pages: u32,
    /// Frames of its pool, without staging frames.
    pub frames: u32,
}

/// The job's segments, and the memories of ranks mapped here.
#[derive(Debug)]
pub struct AddressSpace {
    /// This rank.
    pub rank: Rank,
    /// Every rank's segment.
    pub segments: Arc<Segments>,
    /// This rank's own memory.
    pub own: RankMemory,
    /// The memories mapped here, the own included.
    pub memories: Memories,
    /// The own segment as memory, if this rank's conduit allows it.
    pub view: Option<Arc<SegmentView>>,
    /// The pools of this host in which each page is.
    directory: Directory,
    /// The last place of each page.
    translations: Translations,
    /// The index of the own pool.
    own_pool: usize,
    page_shift: u32,
}

/// The part of a range in one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The page.
    pub page: PageId,
    /// Its start in the page.
    pub offset_bytes: usize,
    /// Its length.
    pub len_bytes: usize,
    /// Its start in the range.
    pub start_bytes: usize,
}

impl Piece {
    /// No bytes of a page, for uses of the page as a whole.
    pub fn of_page(page: PageId) -> Piece {
        Piece { page, offset_bytes: 0, len_bytes: 0, start_bytes: 0 }
    }
}

impl AddressSpace {
    /// An address space of these segments and memories, the own one included.
    pub fn new(rank: Rank, segments: Segments, memories: Memories) -> AddressSpace {
        let own = *memories.get(rank.index()).expect("a rank's own memory is mapped");
        let page_shift = own.pool.page_bytes().trailing_zeros();
        let mapped = || memories.iter().map(|(_, memory)| memory);
        let own_pool = memories.iter().position(|(mapped, _)| mapped == rank.index()).expect("it was just found");
        AddressSpace {
            rank,
            own,
            view: None,
            directory: Directory::new(mapped().map(|memory| memory.hints)),
            translations: Translations::new(mapped(), &segments, segments.of(rank), page_shift),
            own_pool,
            segments: Arc::new(segments),
            memories,
            page_shift,
        }
    }

    /// The same, with the own segment as memory.
    pub fn with_view(self, view: Option<Arc<SegmentView>>) -> AddressSpace {
        AddressSpace { view, ..self }
    }

    /// Memory shared by all ranks of the job and initially zero, if they share any.
    pub fn shared_by_all(&self) -> Option<Region> {
        let do_share = self.memories.pools() == self.segments.ranks() as usize;
        do_share.then(|| self.memories.pool(0).1.meeting)
    }

    /// The own segment.
    #[inline]
    pub fn own_segment(&self) -> Segment {
        self.segments.of(self.rank)
    }

    /// A page of the own segment.
    pub fn own_page(&self, index: u32) -> PageId {
        PageId::of_segment(self.rank, index)
    }

    /// The size of a page in bytes.
    pub fn page_bytes(&self) -> usize {
        1 << self.page_shift
    }

    /// Whether it is a page of the own segment.
    pub fn is_own(&self, page: PageId) -> bool {
        page.space == Space::of_segment(self.rank)
    }

    /// Splits `len_bytes` bytes at `address` of `rank`'s segment into pages. An empty range may have any address.
    ///
    /// # Errors
    /// There is no such rank, or the range leaves its segment.
    #[inline]
    pub fn pieces(&self, rank: u32, address: usize, len_bytes: usize) -> Result<Pieces, UserError> {
        let Some(segment) = self.segments.find(rank) else { return Err(self.no_such_rank(rank)) };
        let start = address.wrapping_sub(segment.base);
        let is_inside = len_bytes <= segment.size_bytes && start <= segment.size_bytes - len_bytes;
        if !is_inside && len_bytes > 0 {
            return Err(self.outside(rank, address, len_bytes));
        }
        Ok(Pieces {
            space: Space::of_segment(Rank(rank)),
            page_shift: self.page_shift,
            at: start,
            end: start.wrapping_add(len_bytes),
            start,
        })
    }

    /// The last place of each page.
    #[inline]
    pub fn translations(&self) -> &Translations {
        &self.translations
    }

    /// The rank and the memory of a pool of this host.
    #[inline]
    pub fn pool(&self, pool: usize) -> (usize, &RankMemory) {
        self.memories.pool(pool)
    }

    /// Pins a page in a frame of a pool of this host, if it is open there, and remembers its place.
    #[inline]
    pub fn pin_in(&self, pool: usize, frame: FrameId, page: PageId, access: Access) -> Option<Pinned> {
        let pinned = self.pool(pool).1.table.pin_in(frame, page, access)?;
        // SAFETY: the frame has an entry in the pool's table, so the pool has it.
        unsafe { self.translations.note(page, pool, frame) };
        Some(pinned)
    }

    /// The index of the own pool on the host.
    #[inline]
    pub fn own_pool(&self) -> usize {
        self.own_pool
    }

    /// The pools of neighbours that may have the page, with its frame.
    pub fn elsewhere(&self, page: PageId) -> impl Iterator<Item = (usize, FrameId)> + use<'_> {
        let is_other = |(pool, _): &(usize, FrameId)| *pool != self.own_pool && *pool < self.memories.pools();
        self.directory.find(page).filter(is_other)
    }

    /// The neighbours with a mapper, which lend frames, by the indices of their pools.
    pub fn lenders(&self, mapper: impl Fn(Rank) -> Option<Box<dyn PageMapper>>) -> Box<[Option<Lender>]> {
        let lender = |(rank, memory): (usize, &RankMemory)| {
            let rank = Some(Rank(rank as u32)).filter(|rank| *rank != self.rank)?;
            Some(Lender { rank, table: memory.table, pool: memory.pool, mapper: mapper(rank)? })
        };
        self.memories.iter().map(lender).collect()
    }

    /// Maps a page of the own segment for loads in a neighbour's frame. Returns whether it did. Runs in signal
    /// handlers.
    pub fn borrow(&self, index: u32) -> bool {
        self.view.as_ref().is_some_and(|view| view.borrow(index, self.elsewhere(self.own_page(index))))
    }

    /// Whether the page may be read in some pool of this host.
    pub fn is_on_host(&self, page: PageId) -> bool {
        let in_frame = |(pool, frame)| self.pool(pool).1.table.is_open_in(frame, page, Access::Read);
        self.own.table.is_open(page, Access::Read) || self.elsewhere(page).any(in_frame)
    }

    /// Opens a page in the own pool as [`PageTable::open`] does, and tells the neighbours. For the engine only.
    pub fn open(&self, page: PageId, frame: FrameId, access: Access, pin: bool) {
        // Spaces other than segments have no addresses.
        let rank = page.space.number();
        let segment = self.segments.find(rank);
        let (rank, start) =
            segment.map_or((u32::MAX, 0), |at| (rank, at.base + ((page.index as usize) << self.page_shift)));
        self.own.table.begins_at(frame, rank, start);
        self.own.table.open(page, frame, access, pin);
        self.directory.note(page, self.own_pool, frame);
    }

    /// Closes a page in the own pool as [`PageTable::close`] does. For the engine only.
    pub fn close(&self, page: PageId) -> Closing {
        let closing = self.own.table.close(page);
        if let Closing::Done(frame) = closing {
            self.directory.forget(page, self.own_pool, frame);
        }
        closing
    }

    /// Ends the closing of a page as [`PageTable::poll_closed`] does. For the engine only.
    pub fn poll_closed(&self, page: PageId) -> Option<FrameId> {
        let closed = self.own.table.poll_closed(page);
        closed.inspect(|frame| self.directory.forget(page, self.own_pool, *frame))
    }

    /// The frame of a rank, if its memory is mapped here.
    pub fn frame(&self, rank: Rank, frame: FrameId) -> Option<*mut u8> {
        self.memories.get(rank.index()).map(|memory| memory.pool.frame(frame))
    }

    /// The dirty blocks of a rank's frames, if its memory is mapped here.
    pub fn blocks(&self, rank: Rank) -> Option<&DirtyBlocks> {
        self.memories.get(rank.index()).map(|memory| &memory.blocks)
    }

    #[cold]
    fn no_such_rank(&self, rank: u32) -> UserError {
        UserError::new(format!("there is no rank {rank}; ranks are 0 to {}", self.segments.ranks() - 1))
    }

    #[cold]
    fn outside(&self, rank: u32, address: usize, len_bytes: usize) -> UserError {
        let Segment { base, size_bytes } = self.segments.of(Rank(rank));
        if size_bytes == 0 {
            return UserError::new(format!(
                "{len_bytes} bytes at {address:#x}: rank {rank} attached no segment; give it one in vgasnet_attach"
            ));
        }
        let end = base + size_bytes;
        UserError::new(format!(
            "{len_bytes} bytes at {address:#x} are not inside the segment of rank {rank}, {base:#x} to {end:#x} \
             ({size_bytes} bytes); use addresses inside, or attach a larger segment"
        ))
    }
}

/// The memories mapped here, after the conduit has attached.
pub fn memories(conduit: &dyn Conduit, shapes: &[Shape], page_bytes: usize, share: bool) -> Memories {
    let memory = |(rank, shape): (usize, &Shape)| {
        let is_own = conduit.rank().index() == rank;
        let rank = Rank(rank as u32);
        let (pool, table) = (conduit.pool(rank)?, conduit.table(rank)?);
        let mark_bytes = Pool::mark_bytes(shape.frames + staging_frames(page_bytes));
        let marks = Region { address: table.address, len_bytes: mark_bytes };
        let entries = Region { address: table.address + mark_bytes, len_bytes: PageTable::bytes(shape.frames) };
        let hints = Region { address: entries.address + entries.len_bytes, len_bytes: part_bytes(shape.frames) };
        let block_bytes = DirtyBlocks::bytes(shape.frames, page_bytes);
        let blocks = Region { address: hints.address + hints.len_bytes, len_bytes: block_bytes };
        let meeting = Region { address: blocks.address + block_bytes, len_bytes: MEETING_BYTES };
        let file_pointers = Region { address: meeting.address + MEETING_BYTES, len_bytes: FILE_POINTER_BYTES };
        let shown_at = file_pointers.address + FILE_POINTER_BYTES;
        let shown = Region { address: shown_at, len_bytes: HomeBlocks::bytes(*shape, page_bytes) };
        (is_own || share).then(|| {
            let memory = RankMemory {
                table: PageTable::new(entries, shape.frames),
                pool: Pool::new(pool, marks, page_bytes),
                hints,
                blocks: DirtyBlocks::new(blocks, shape.frames, page_bytes),
                meeting,
                file_pointers,
                shown: HomeBlocks::new(shown, *shape, page_bytes),
            };
            (rank.0, memory)
        })
    };
    Memories::new(shapes.iter().enumerate().filter_map(memory))
}

/// Bytes of shared memory of a rank: for its marks, its page table, the host's directory, its dirty blocks, its meeting
/// point, its file pointers, and what it shows its neighbours.
pub fn table_bytes(own: Shape, page_bytes: usize) -> usize {
    Pool::mark_bytes(own.frames + staging_frames(page_bytes))
        + PageTable::bytes(own.frames)
        + part_bytes(own.frames)
        + DirtyBlocks::bytes(own.frames, page_bytes)
        + MEETING_BYTES
        + FILE_POINTER_BYTES
        + HomeBlocks::bytes(own, page_bytes)
}

/// Iterates over the pages of a range.
#[derive(Clone, Debug)]
pub struct Pieces {
    space: Space,
    page_shift: u32,
    start: usize,
    at: usize,
    end: usize,
}

impl Iterator for Pieces {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.at == self.end {
            return None;
        }
        let page_bytes = 1 << self.page_shift;
        let offset_bytes = self.at & (page_bytes - 1);
        let len_bytes = (page_bytes - offset_bytes).min(self.end - self.at);
        let page = PageId { space: self.space, index: (self.at >> self.page_shift) as u32 };
        let piece = Piece { page, offset_bytes, len_bytes, start_bytes: self.at - self.start };
        self.at += len_bytes;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const PAGE: usize = 1 << 16;
    const BASE: usize = 1 << 40;

    fn space() -> AddressSpace {
        let memory = vec![0u128; (PAGE + 64) / size_of::<u128>()].leak();
        let address = memory.as_mut_ptr().expose_provenance().next_multiple_of(64);
        let region = Region { address, len_bytes: 4096 };
        let memory = RankMemory {
            table: PageTable::new(region, 4),
            pool: Pool::new(Region { len_bytes: PAGE, ..region }, region, PAGE),
            hints: region,
            blocks: DirtyBlocks::new(region, 4, PAGE),
            meeting: region,
            file_pointers: region,
            shown: HomeBlocks::default(),
        };
        let segments = [Segment { base: BASE, size_bytes: 4 * PAGE }, Segment::default()];
        AddressSpace::new(Rank(0), Segments::new(segments), Memories::new([(0, memory)]))
    }

    #[test]
    fn a_range_is_split_at_page_borders() {
        let pieces: Vec<_> = space().pieces(0, BASE + PAGE - 10, PAGE + 30).expect("inside").collect();
        let piece = |index, offset_bytes, len_bytes, start_bytes| Piece {
            page: PageId::of_segment(Rank(0), index),
            offset_bytes,
            len_bytes,
            start_bytes,
        };
        assert_eq!(pieces, [piece(0, PAGE - 10, 10, 0), piece(1, 0, PAGE, 10), piece(2, 0, 20, PAGE + 10)]);
    }

    #[test]
    fn the_whole_segment_and_nothing_more_is_inside() {
        let space = space();
        assert_eq!(space.pieces(0, BASE, 4 * PAGE).expect("all of it").count(), 4);
        assert_eq!(space.pieces(0, 0, 0).expect("nothing, nowhere").count(), 0);
        assert_eq!(space.pieces(1, 0, 0).expect("nothing of nothing").count(), 0);
        for (address, len_bytes) in
            [(BASE, 4 * PAGE + 1), (BASE - 1, 1), (BASE + 4 * PAGE, 1), (BASE, usize::MAX), (0, 8)]
        {
            let error = space.pieces(0, address, len_bytes).expect_err("outside").to_string();
            assert!(error.contains("0x10000000000 to 0x10000040000"), "{error}");
        }
        assert!(space.pieces(1, BASE, 1).expect_err("no segment").to_string().contains("attached no segment"));
        assert!(space.pieces(2, BASE, 1).expect_err("no rank").to_string().contains("ranks are 0 to 1"));
    }

    #[test]
    fn small_pages_have_more_staging_frames() {
        let sizes = [4 << 10, 64 << 10, 256 << 10, 4 << 20, 64 << 20];
        assert_eq!(sizes.map(staging_frames), [64, 64, 16, 3, 3]);
    }

    #[test]
    fn a_sixteenth_of_a_pool_is_added_for_blocks() {
        let of = |frames| block_frames(frames, 4 << 20);
        assert_eq!([1, 16, 17, 160, 100_000].map(of), [1, 1, 2, 10, 16]);
        assert_eq!(block_frames(100, 64 << 20), 1);
    }

    #[test]
    fn a_segment_is_where_it_can_be() {
        let segment = |base, size_bytes| Segment { base, size_bytes };
        assert!(segment(BASE, 3 * PAGE).is_of(3, PAGE) && segment(0, 0).is_of(0, PAGE));
        assert!(!segment(BASE, 3 * PAGE).is_of(4, PAGE) && !segment(BASE + 1, PAGE).is_of(1, PAGE));
        assert!(!segment(usize::MAX - PAGE + 1, PAGE).is_of(1, PAGE));
    }

    #[test]
    fn overlap_counts_any_byte() {
        let segment = Segment { base: 100, size_bytes: 50 };
        assert!(segment.overlaps(149, 1) && segment.overlaps(90, 11) && segment.overlaps(0, usize::MAX));
        assert!(!segment.overlaps(150, 10) && !segment.overlaps(90, 10) && !segment.overlaps(120, 0));
    }
}
