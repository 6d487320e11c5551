//! The invariants: some hold after every step, some only when nothing is in flight.

use crate::job::{COPIES_BYTES, Job, PAGE_BYTES, Task};
use std::collections::{BTreeMap, BTreeSet};
use vgasnet_engine::Pending;
use vgasnet_protocol::Rank;
use vgasnet_protocol::coherence::{Access, Cache, FrameId, PageId, Protocol};
use vgasnet_storage::BLOCK_BYTES;

/// Notices of clean evictions per message.
const NOTICES_A_MESSAGE: usize = 12;

/// Pieces of a part that another rank carries out. Messages are short here.
const PIECES_MAX: usize = 5;

impl Job {
    /// Checks the invariants of every step.
    pub fn check(&self) {
        self.check_copies();
        for rank in 0..self.nodes.len() {
            self.check_words(rank);
            self.check_uses(rank);
            self.check_bounds(rank);
            self.check_dirty_of_files(rank);
            self.check_mapped(rank);
            self.check_mapped_blocks(rank);
            self.check_copied_blocks(rank);
        }
        self.check_lent();
        self.check_directories();
        self.check_locks();
    }

    /// One writer or many readers, and every copy is the newest.
    fn check_copies(&self) {
        let mut seen: BTreeMap<PageId, (u32, u32)> = BTreeMap::new();
        for rank in 0..self.nodes.len() {
            for (page, frame, access) in self.nodes[rank].engine.protocol().cache.copies() {
                let (copies, writers) = seen.entry(page).or_default();
                *copies += 1;
                *writers += u32::from(access == Access::Write);
                if !self.is_cutting(page) {
                    self.check_frame(rank, frame, page);
                }
                if !self.is_closing(page) {
                    self.check_blocks(rank, frame, page);
                }
            }
        }
        for (page, (copies, writers)) in seen {
            assert!(writers == 0 || copies == 1, "{page:?} has {writers} writers and {copies} copies");
        }
    }

    /// A rank's count of dirty file pages is exact, and includes pages about to be dirty. A home lists all its pages
    /// that are dirty in some pool.
    fn check_dirty_of_files(&self, rank: usize) {
        let Protocol { cache, home, .. } = self.nodes[rank].engine.protocol();
        for space in self.files.open.keys() {
            let is_dirty = |page: &PageId| home.dirty_owner(*page).is_some() || home.is_writing(*page);
            let dirty: BTreeSet<PageId> = home.known_pages_of(*space).filter(is_dirty).collect();
            assert_eq!(home.dirty_pages_of(*space).collect::<BTreeSet<_>>(), dirty, "r{rank} finds others");
        }
        let pages = self.files.open.keys().flat_map(|space| cache.pages_of(*space));
        let dirty = pages.filter(|page| cache.will_be_dirty(*page)).count();
        assert_eq!(cache.dirty_of_files() as usize, dirty, "r{rank} counts others");
    }

    fn check_frame(&self, rank: usize, frame: FrameId, page: PageId) {
        let memory = self.nodes[rank].space.own.pool.frame(frame);
        // SAFETY: the frame lies in the pool, and no other thread writes there.
        let bytes = unsafe { std::slice::from_raw_parts(memory, PAGE_BYTES) };
        let newest = self.model.page(page);
        if bytes != newest {
            let at = bytes.iter().zip(newest).position(|(byte, new)| byte != new);
            panic!("r{rank} has old bytes of {page:?} in {frame:?} from {at:?} on");
        }
    }

    /// Every block not marked as dirty is on the disk.
    fn check_blocks(&self, rank: usize, frame: FrameId, page: PageId) {
        let blocks = &self.nodes[rank].space.own.blocks;
        for (at, newest) in self.model.page(page).chunks(BLOCK_BYTES).enumerate() {
            let is_there = blocks.is_marked(frame, at * BLOCK_BYTES) || self.is_stored(page, at, newest);
            assert!(is_there, "block {at} of {page:?} in {frame:?} of r{rank} is clean, but not on the disk");
        }
    }

    /// The page table allows pins exactly on the pages opened by the protocol, and counts exactly the pins of their
    /// users.
    fn check_words(&self, rank: usize) {
        let node = &self.nodes[rank];
        let table = &node.space.own.table;
        let copies: BTreeMap<PageId, (FrameId, Access)> =
            node.engine.protocol().cache.copies().map(|(page, frame, access)| (page, (frame, access))).collect();
        let untaken = node.engine.pending().work > 0;
        let pins = self.pins_at(rank);
        for page in self.pages() {
            for access in [Access::Read, Access::Write] {
                let Some(pinned) = table.pin(page, access) else { continue };
                assert!(!table.unpin(pinned.frame), "an open page is not closing");
                let copy = copies.get(&page).copied();
                let allowed = copy.is_some_and(|(frame, most)| frame == pinned.frame && most >= access);
                assert!(allowed, "r{rank} lets {access:?} {page:?} in {:?}, but has {copy:?}", pinned.frame);
            }
            let (found, known) =
                (table.find(page).map_or(0, |frame| table.pins(frame)), pins.get(&page).copied().unwrap_or(0));
            let is_right = if untaken { found >= known } else { found == known };
            assert!(is_right, "{page:?} is pinned {found} times at r{rank}, by {known} users");
        }
    }

    /// The pins of each page in this rank's pool, counted by their users.
    fn pins_at(&self, rank: usize) -> BTreeMap<PageId, u32> {
        let mut pins = BTreeMap::new();
        let uses = self.nodes.iter().flat_map(|node| node.operations.iter().filter_map(|operation| operation.in_use()));
        for using in uses.filter(|using| using.rank == rank) {
            *pins.entry(using.piece.page).or_default() += 1;
        }
        for task in &self.nodes[rank].tasks {
            let done = match task {
                Task::Copies { page, done, .. } => {
                    *pins.entry(*page).or_default() += 1;
                    done
                }
                Task::Finish(parts) => parts,
                _ => continue,
            };
            for part in done.iter().filter(|part| part.copy.mapped_access().is_some()) {
                *pins.entry(part.piece.page).or_default() += 1;
            }
        }
        for page in self.access_pins(rank).chain(self.client_pins(rank).map(|(page, ..)| page)) {
            *pins.entry(page).or_default() += 1;
        }
        pins
    }

    /// A page in use stays in its frame, with the rights its user needs.
    fn check_uses(&self, rank: usize) {
        for using in self.nodes[rank].operations.iter().filter_map(|operation| operation.in_use()) {
            self.check_use(using.rank, using.piece.page, using.frame, using.access);
        }
        for task in &self.nodes[rank].tasks {
            if let Task::Copies { page, frame, left, .. } = task {
                let access = left.iter().map(|part| part.copy.access()).max().unwrap_or(Access::Read);
                self.check_use(rank, *page, *frame, access);
            }
        }
    }

    pub fn check_use(&self, rank: usize, page: PageId, frame: FrameId, access: Access) {
        let mut copies = self.nodes[rank].engine.protocol().cache.copies();
        let stays = copies.any(|copy| copy.0 == page && copy.1 == frame && copy.2 >= access);
        assert!(stays, "{page:?} in {frame:?} of r{rank} went away while it was in use: {access:?}");
    }

    fn total_frames(&self) -> usize {
        self.shape.ranks.iter().map(|rank| rank.frames as usize).sum()
    }

    /// The job's frames and the client's operations bound the pending work of an engine.
    fn check_bounds(&self, rank: usize) {
        let node = &self.nodes[rank];
        let pending = node.engine.pending();
        let frames = self.total_frames();
        let parts: usize = node.operations.iter().map(|operation| operation.submitted()).sum();
        // A part of another rank may be served here in pieces.
        let of_others = self.nodes.iter().flat_map(|node| &node.operations).map(|operation| operation.submitted());
        let served = PIECES_MAX * of_others.sum::<usize>();
        let parts = parts + served + self.mappings_awaited(rank);
        let own_frames = self.shape.ranks[rank].frames as usize;
        let cache = &node.engine.protocol().cache;
        assert!(cache.notices() <= cache.notices_max(), "r{rank} keeps {} notices", cache.notices());
        // A frame has at most one transfer into it, and one from it to a file. A home owes one answer and one
        // invalidation for each frame of the job. Each notice still kept adds an invalidation that finds nothing.
        let notices: usize = self.nodes.iter().map(|node| node.engine.protocol().cache.notices_max() + 1).sum();
        assert!(pending.parts <= parts, "{pending:?} for {parts} parts");
        assert!(
            pending.transfers <= frames && pending.storage_operations <= 2 * frames + parts,
            "{pending:?}, {frames} frames"
        );
        assert!(pending.closing <= own_frames, "{pending:?}, {own_frames} own frames");
        assert!(pending.ahead <= 2 * own_frames, "{pending:?}, {own_frames} own frames");
        // An own frame is unmapped twice at most: because its page is closed, and because the policy evicts it. A
        // neighbour's frame is unmapped when the neighbour asks for it back.
        assert!(
            pending.shipped <= parts && pending.served <= served && pending.deferred <= parts,
            "{pending:?}, {parts} parts"
        );
        assert!(pending.work <= 3 * frames + 3 * own_frames + 2 * parts, "{pending:?}, {frames} frames, {parts} parts");
        let messages = 4 * frames + notices + served + self.lock_messages_max();
        assert!(pending.messages <= messages, "{pending:?}, {frames} frames");
    }

    /// A directory entry exists only for a page with a holder or a request. The newest bytes of a page are in its dirty
    /// owner's frame, or else on the disk, unless a transaction is making a new owner.
    fn check_directories(&self) {
        let messages: usize = self.nodes.iter().map(|node| node.engine.pending().messages).sum();
        // Ranks send no message when they forget the pages of a closing file.
        let known = self.nodes.iter().flat_map(|node| node.engine.protocol().home.known_pages());
        let entries = known.filter(|page| page.space.segment().is_some()).count();
        let caches = self.nodes.iter().map(|node| &node.engine.protocol().cache);
        let notices: usize = caches.map(Cache::notices).sum();
        let most = self.total_frames() + notices + NOTICES_A_MESSAGE * (self.hub.in_flight() + messages);
        assert!(entries <= most, "{entries} directory entries, {most} frames and notices");
        for page in self.pages() {
            let directory = &self.nodes[self.model.home_of(page)].engine.protocol().home;
            if directory.is_writing(page) {
                continue;
            }
            if let Some(dirty_owner) = directory.dirty_owner(page) {
                let frame = self.nodes[dirty_owner.index()].engine.protocol().cache.dirty_frame(page);
                self.check_frame(dirty_owner.index(), frame.expect("a dirty owner has dirty bytes"), page);
            } else if directory.is_written(page) {
                assert!(self.is_on_disk(page), "the disk's {page:?} is old");
            } else {
                let zeros = self.model.page(page).iter().all(|byte| *byte == 0);
                assert!(zeros, "{page:?} was written and nobody accounts for it");
            }
        }
    }

    fn is_on_disk(&self, page: PageId) -> bool {
        let mut blocks = self.model.page(page).chunks(BLOCK_BYTES).enumerate();
        blocks.all(|(at, newest)| self.is_stored(page, at, newest))
    }

    /// Whether the home's storage has these bytes: in a block in memory, or else in the file.
    fn is_stored(&self, page: PageId, block: usize, bytes: &[u8]) -> bool {
        let home = &self.nodes[self.model.home_of(page)];
        match home.engine.storage().block_in_memory(page, block) {
            // SAFETY: a block in memory has `BLOCK_BYTES` bytes, and no other thread writes there.
            Some(memory) => (unsafe { std::slice::from_raw_parts(memory, BLOCK_BYTES) }) == bytes,
            // The block is filled, but the block cache has not been told yet.
            None if home.tasks.iter().any(|task| fills(task, page, block)) => true,
            None if page.space.segment().is_none() => self.files.has_block(page, block, bytes),
            None => home.disk.has_block(self.model.place_of(page), block, bytes),
        }
    }

    /// Checks the invariants of a job in which nothing can happen: every operation is complete, and homes know every
    /// copy.
    pub fn check_quiet(&mut self) {
        assert_eq!(self.hub.in_flight(), 0);
        for (rank, node) in self.nodes.iter().enumerate() {
            let protocol = node.engine.protocol();
            let is_quiet = protocol.home.is_quiet() && protocol.cache.is_quiet() && !node.engine.storage().is_busy();
            assert!(is_quiet && protocol.cache.flushed(), "r{rank} is stuck:\n{protocol:#?}");
            assert_eq!(node.engine.pending(), Pending::default(), "work for nobody is pending at r{rank}");
            assert!(node.tasks.is_empty() && node.operations.is_empty(), "operations of r{rank} wait forever");
            assert!(node.threads.is_empty() && node.pinners.is_empty(), "threads of r{rank} wait forever");
            assert!(node.copies.take(COPIES_BYTES).is_some(), "r{rank} has not given back room for copies");
            for (page, _, _) in protocol.cache.copies() {
                let home = &self.nodes[self.model.home_of(page)].engine.protocol().home;
                let dirty_owner = home.dirty_owner(page) == Some(Rank(rank as u32));
                assert!(home.holders(page).any(|holder| holder.rank.index() == rank), "{page:?} is not r{rank}'s");
                assert_eq!(protocol.cache.dirty_frame(page).is_some(), dirty_owner, "who accounts for {page:?}");
                assert!(node.space.own.table.is_open(page, Access::Read), "{page:?} is not open at r{rank}");
            }
        }
        self.check_unpinned();
        // Ranks have told the homes of their evictions, or will.
        for page in self.pages() {
            for holder in self.nodes[self.model.home_of(page)].engine.protocol().home.holders(page) {
                let cache = &self.nodes[holder.rank.index()].engine.protocol().cache;
                let is_known = cache.has_notice(page) || cache.copies().any(|copy| copy.0 == page);
                assert!(is_known, "{holder:?} has no copy of {page:?}, and will not tell");
            }
        }
        self.check();
    }

    /// Checks, after a flush of every rank, that the disks have the newest bytes.
    pub fn check_disks(&self) {
        for page in self.pages().filter(|page| page.space.segment().is_some()) {
            let home = &self.nodes[self.model.home_of(page)];
            assert_eq!(home.engine.protocol().home.dirty_owner(page), None, "{page:?} is dirty after a flush");
            assert!(self.is_on_disk(page), "the disk's {page:?} is old");
            let blocks = (0..PAGE_BYTES / BLOCK_BYTES).map(|at| home.engine.storage().block_in_memory(page, at));
            if blocks.flatten().next().is_none() {
                assert!(
                    home.disk.read_page(self.model.place_of(page)) == self.model.page(page),
                    "the disk's {page:?} is old"
                );
            }
        }
    }
}

/// Whether this task ends copies of a whole block of the page.
fn fills(task: &Task, page: PageId, block: usize) -> bool {
    let Task::EndBlocks { part, failed: None, .. } = task else { return false };
    let (start, end) = (part.piece.offset_bytes, part.piece.offset_bytes + part.piece.len_bytes);
    part.copy.is_put() && part.piece.page == page && start <= block * BLOCK_BYTES && (block + 1) * BLOCK_BYTES <= end
}
