//! A page mapper without memory, which records its mappings.

use crate::copies::{Copies, CopiesTwin};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use vgasnet_memory::{BlockCopier, BlockMapper, MAPPED_BLOCK_BYTES, PageMapper, RankMemory};
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, FrameId, PageId};

/// The limits of a job's mappers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Mappings of the system in use at a time.
    pub areas_max: u32,
    /// Mappings for which the system has room. Beyond this number the first attempt fails and the second succeeds.
    pub room: usize,
    /// Blocks mapped at a time. 0 means no blocks.
    pub blocks_max: u32,
    /// Copies of blocks at a time. 0 means that all are mapped.
    pub copies_max: usize,
    /// The processor has single steps: a page stays pinned until its instruction has finished.
    pub steps: bool,
    /// The processor reports whether a load or a store has faulted. Processors with single steps do.
    pub tells: bool,
}

impl Settings {
    /// Mappers without limits.
    pub const WIDE: Settings = Settings {
        areas_max: u32::MAX,
        room: usize::MAX,
        blocks_max: u32::MAX,
        copies_max: 0,
        steps: true,
        tells: true,
    };
}

/// The frame and rights of a mapped page of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub frame: FrameId,
    pub access: Access,
}

/// The slot and rights of a mapped block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedBlock {
    /// The slot's position in the pool's memory.
    pub offset_bytes: usize,
    pub access: Access,
}

/// The engine's mapper, and the test's view of it.
#[derive(Clone)]
pub struct Mapper(Arc<Inner>);

struct Inner {
    rank: Rank,
    memory: RankMemory,
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    pages: BTreeMap<u32, Mapping>,
    /// By page, the neighbour and its frame.
    lent: BTreeMap<u32, (Rank, FrameId)>,
    /// By page and block.
    blocks: BTreeMap<(u32, u32), MappedBlock>,
    pub copies: Copies,
    /// Blocks made read-only, and pages with all blocks unmapped.
    protected: u64,
    emptied: u64,
    has_refused: bool,
    refusals: u64,
    unmapped: u64,
}

impl Mapper {
    pub fn new(rank: Rank, memory: RankMemory, settings: Settings) -> Mapper {
        Mapper(Arc::new(Inner { rank, memory, settings, state: Mutex::default() }))
    }

    /// The mapping for a load or store at page `index`.
    pub fn at(&self, index: u32) -> Option<Mapping> {
        self.state().pages.get(&index).copied()
    }

    /// Whether a load or store at a byte of page `index` succeeds without a fault.
    pub fn reaches(&self, index: u32, offset_bytes: usize, access: Access) -> bool {
        let is_copied = access == Access::Read && self.copy_at(index, offset_bytes).is_some();
        let is_in_block = self.block_at(index, offset_bytes).is_some_and(|block| block.access >= access);
        is_copied || is_in_block || self.allows(index, access)
    }

    /// The block for a load or store at a byte of page `index`.
    pub fn block_at(&self, index: u32, offset_bytes: usize) -> Option<MappedBlock> {
        self.state().blocks.get(&(index, (offset_bytes / MAPPED_BLOCK_BYTES) as u32)).copied()
    }

    /// All mapped blocks, by page and block.
    pub fn blocks(&self) -> Vec<((u32, u32), MappedBlock)> {
        self.state().blocks.iter().map(|(at, block)| (*at, *block)).collect()
    }

    /// Blocks made read-only, and pages with all blocks unmapped.
    pub fn blocks_taken(&self) -> (u64, u64) {
        let state = self.state();
        (state.protected, state.emptied)
    }

    /// The mapper of this segment's blocks.
    pub fn of_blocks(&self) -> Box<dyn BlockMapper> {
        Box::new(BlocksTwin(self.clone()))
    }

    /// Whether the page `index` is mapped for loads or stores, from any pool.
    pub fn allows(&self, index: u32, access: Access) -> bool {
        let is_lent = access == Access::Read && self.lent_at(index).is_some();
        is_lent || self.at(index).is_some_and(|mapped| mapped.access >= access)
    }

    /// The neighbour's frame for a load at page `index`.
    pub fn lent_at(&self, index: u32) -> Option<(Rank, FrameId)> {
        self.state().lent.get(&index).copied()
    }

    /// All pages mapped from neighbours.
    pub fn lent(&self) -> Vec<(u32, (Rank, FrameId))> {
        self.state().lent.iter().map(|(index, from)| (*index, *from)).collect()
    }

    /// The mapper of a neighbour's frames.
    pub fn of_neighbour(&self, lender: Rank) -> Box<dyn PageMapper> {
        Box::new(LentMapper { mapper: self.clone(), lender })
    }

    /// All mapped pages.
    pub fn pages(&self) -> Vec<(u32, Mapping)> {
        self.state().pages.iter().map(|(index, mapped)| (*index, *mapped)).collect()
    }

    /// Mappings refused for lack of room.
    pub fn refusals(&self) -> u64 {
        self.state().refusals
    }

    /// Pages unmapped so far.
    pub fn unmapped(&self) -> u64 {
        self.state().unmapped
    }

    pub fn settings(&self) -> Settings {
        self.0.settings
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("nobody panics with the mapper locked, but to fail the test")
    }

    fn is_pinned(&self, index: u32) -> bool {
        let table = &self.0.memory.table;
        table.find(PageId::of_segment(self.0.rank, index)).is_some_and(|frame| table.is_pinned(frame))
    }
}

impl Mapper {
    /// Maps a page of a run, except the first one.
    fn map_following(&self, index: u32, frame: FrameId, access: Access) {
        let mut state = self.state();
        assert!(!state.lent.contains_key(&index), "page {index} has a neighbour's frame");
        state.assert_without_blocks(index);
        assert!(self.is_pinned(index), "page {index} is mapped but not pinned, and may be closed at any moment");
        assert!(state.pages.values().all(|mapped| mapped.frame != frame), "{frame:?} is mapped as page {index}, too");
        assert_eq!(state.pages.insert(index, Mapping { frame, access }), None, "page {index} is mapped twice");
    }
}

impl State {
    fn assert_without_blocks(&self, index: u32) {
        let mut blocks = self.blocks.range((index, 0)..(index + 1, 0));
        assert_eq!(blocks.next(), None, "page {index} is mapped, and a block of it");
        self.copies.assert_without(index);
    }

    /// Nothing is mapped in the place of a page.
    pub fn assert_unmapped(&self, index: u32) {
        self.assert_without_blocks(index);
        assert!(!self.pages.contains_key(&index) && !self.lent.contains_key(&index), "page {index} is mapped");
    }

    /// Whether something is mapped in the place of a block.
    pub fn maps_part_of(&self, index: u32, block: u32) -> bool {
        self.pages.contains_key(&index) || self.lent.contains_key(&index) || self.blocks.contains_key(&(index, block))
    }

    /// The system's mappings besides the first one, once this page is mapped, too.
    fn areas_with(&self, index: u32, mapping: Mapping) -> u32 {
        let of = |page: u32| if page == index { Some(mapping) } else { self.pages.get(&page).copied() };
        let pages = self.pages.keys().copied().chain([index]);
        let areas = pages.map(|page| {
            let before = page.checked_sub(1).and_then(of);
            let (mine, next) = (of(page).expect("it is mapped"), |FrameId(frame)| FrameId(frame + 1));
            let joins = before.is_some_and(|it| next(it.frame) == mine.frame && it.access == mine.access);
            u32::from(!joins) + u32::from(before.is_none() && page > 0)
        });
        areas.sum()
    }
}

impl vgasnet_memory::PageMapper for Mapper {
    fn map(&self, index: u32, frame: FrameId, access: Access, instead: Option<Access>) -> Result<(), i32> {
        let Settings { areas_max, room, .. } = self.0.settings;
        let mut state = self.state();
        let before = instead.map(|access| Mapping { frame, access });
        assert!(!state.lent.contains_key(&index), "page {index} has a neighbour's frame");
        state.assert_without_blocks(index);
        assert_eq!(state.pages.get(&index).copied(), before, "page {index} is not mapped as its caller believes");
        assert!(self.is_pinned(index), "page {index} is mapped but not pinned, and may be closed at any moment");
        if before.is_none() {
            let twice = state.pages.iter().find(|(_, mapped)| mapped.frame == frame);
            assert!(twice.is_none(), "{frame:?} is mapped as page {index} and as {twice:?}");
            let is_full = state.areas_with(index, Mapping { frame, access }) > areas_max;
            assert!(!is_full || state.pages.keys().all(|other| self.is_pinned(*other)), "more areas than {areas_max}");
        }
        // The second attempt succeeds even if no page could be unmapped for it because all are pinned.
        state.has_refused = state.pages.len() >= room && !state.has_refused;
        if state.has_refused {
            state.refusals += 1;
            return Err(libc::ENOMEM);
        }
        state.pages.insert(index, Mapping { frame, access });
        Ok(())
    }

    fn map_run(&self, index: u32, frame: FrameId, count: u32, access: Access) -> Result<(), i32> {
        (1..count).for_each(|at| self.map_following(index + at, FrameId(frame.0 + at), access));
        let mapped = self.map(index, frame, access, None);
        if mapped.is_err() {
            self.state().pages.retain(|page, _| !(index..index + count).contains(page));
        }
        mapped
    }

    fn unmap(&self, index: u32, frame: FrameId, access: Access) -> Result<(), i32> {
        let mut state = self.state();
        assert_eq!(state.pages.remove(&index), Some(Mapping { frame, access }), "page {index} is unmapped as another");
        assert!(!self.is_pinned(index), "page {index} is unmapped while it is pinned");
        state.unmapped += 1;
        state.copies.cover(index);
        Ok(())
    }
}

/// Maps a neighbour's frames in the segment of a rank.
struct LentMapper {
    mapper: Mapper,
    lender: Rank,
}

impl PageMapper for LentMapper {
    fn map_run(&self, index: u32, frame: FrameId, count: u32, access: Access) -> Result<(), i32> {
        assert_eq!(count, 1, "loans are mapped one by one");
        self.map(index, frame, access, None)
    }

    fn map(&self, index: u32, frame: FrameId, access: Access, instead: Option<Access>) -> Result<(), i32> {
        assert_eq!((access, instead), (Access::Read, None), "only loads use a neighbour's frame");
        let mut state = self.mapper.state();
        assert!(!state.pages.contains_key(&index), "page {index} has a frame of the own pool");
        state.assert_without_blocks(index);
        assert_eq!(state.lent.insert(index, (self.lender, frame)), None, "page {index} is lent twice");
        Ok(())
    }

    fn unmap(&self, index: u32, frame: FrameId, _access: Access) -> Result<(), i32> {
        let mut state = self.mapper.state();
        let lent = state.lent.remove(&index);
        state.copies.cover(index);
        assert_eq!(lent, Some((self.lender, frame)), "page {index} is given back as another");
        Ok(())
    }
}

/// Maps blocks in the segment of a rank.
struct BlocksTwin(Mapper);

impl BlockMapper for BlocksTwin {
    fn map(&self, index: u32, block: u32, offset_bytes: usize, access: Access) -> Result<(), i32> {
        let Settings { blocks_max, room, .. } = self.0.0.settings;
        let mut state = self.0.state();
        let is_free = !state.pages.contains_key(&index) && !state.lent.contains_key(&index);
        assert!(is_free, "a block of page {index} is mapped, and the page");
        let before = state.blocks.get(&(index, block)).copied();
        if before.is_none() && state.blocks.len() >= room {
            return Err(libc::ENOMEM);
        }
        assert!(
            before.is_none_or(|before| before.offset_bytes == offset_bytes),
            "block {block} of page {index} is mapped as another slot"
        );
        state.protected += u64::from(before.is_some_and(|before| before.access > access));
        state.blocks.insert((index, block), MappedBlock { offset_bytes, access });
        state.copies.replace((index, block));
        assert!(state.blocks.len() <= blocks_max as usize, "more blocks than {blocks_max}");
        Ok(())
    }

    fn unmap(&self, index: u32, block: u32) -> Result<(), i32> {
        assert!(self.0.state().blocks.remove(&(index, block)).is_some(), "block {block} of page {index} is not mapped");
        Ok(())
    }

    fn unmap_page(&self, index: u32) -> Result<(), i32> {
        let mut state = self.0.state();
        let before = state.blocks.len();
        state.blocks.retain(|at, _| at.0 != index);
        assert!(state.blocks.len() < before, "page {index} has no blocks mapped");
        state.emptied += 1;
        state.copies.cover_blocks(index);
        Ok(())
    }

    fn copier(&self) -> Option<Arc<dyn BlockCopier>> {
        (self.0.settings().copies_max > 0).then(|| Arc::new(CopiesTwin(self.0.clone())) as Arc<dyn BlockCopier>)
    }
}
