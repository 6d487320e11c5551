//! Merges operations on adjacent pages of a file into runs for the storage, each with the dirty extents of its page.

use super::StorageServer;
use super::page_operations::Order;
use super::storage_queue::{Need, WaitingOperation};
use vgasnet_memory::{DIRTY_BLOCK_BYTES, Extent};
use vgasnet_protocol::coherence::Priority;
use vgasnet_stats::{self as stats, Row};
use vgasnet_storage::{BLOCK_BYTES, FileSlot, IoDirection, IoOperation};

/// Maximum length of a run, in bytes.
const RUN_BYTES_MAX: usize = 1 << 20;

/// Maximum length of a run that begins with an urgent operation and has background ones, in bytes.
const COMPANY_BYTES_MAX: usize = 256 << 10;

impl StorageServer {
    /// An operation and its successors in the file that may join it: of the same direction, ready, and as urgent or
    /// close by. Each comes with its next part, which begins in the file at the end of the one before it.
    pub(super) fn run_from(&self, first: &WaitingOperation) -> Vec<(usize, Extent)> {
        let next_part = |id| self.next_part(id).expect("it is not done");
        if first.need != Need::Nothing {
            return vec![(first.id, Extent::NONE)];
        }
        let mut run = vec![(first.id, next_part(first.id))];
        let Order { direction, place, priority, .. } = self.operations.get(first.id).order();
        let is_urgent = priority == Priority::Now;
        let most = RUN_BYTES_MAX / self.space.page_bytes();
        let most = if is_urgent { most } else { most.min(self.background.left().div_ceil(2)) };
        let company = if is_urgent { (COMPANY_BYTES_MAX / self.space.page_bytes()) as u32 } else { 0 };
        let goes_with = |id: &usize| {
            let (operation, other) = (self.operations.get(*id), self.operations.get(*id).order());
            let is_as_urgent = other.priority == priority || other.place.index() - place.index() < company;
            other.direction == direction && operation.is_ready() && is_as_urgent
        };
        let behind = (1..).map_while(|pages| self.operations.of_page(place.behind(pages)).filter(goes_with));
        for id in behind.take(most.saturating_sub(1)) {
            let mut part = next_part(id);
            if !run.last_mut().is_some_and(|(_, before)| self.join(before, &mut part)) {
                break;
            }
            run.push((id, part));
        }
        debug_assert!(run.len() <= most.max(1), "a run has at most {most} pages");
        run
    }

    /// Joins two parts of adjacent pages, if the gap between them is small.
    fn join(&self, before: &mut Extent, behind: &mut Extent) -> bool {
        debug_assert!(behind.start_bytes < behind.end_bytes, "{behind:?} has bytes");
        let page_bytes = self.space.page_bytes();
        debug_assert!(before.end_bytes <= page_bytes, "{before:?} is a part of a page");
        let gap_bytes = page_bytes - before.end_bytes + behind.start_bytes;
        let is_small = gap_bytes == 0 || gap_bytes < self.gap_bytes;
        if is_small {
            (before.end_bytes, behind.start_bytes) = (page_bytes, 0);
        }
        is_small
    }

    pub(super) fn whole(&self) -> Extent {
        Extent { start_bytes: 0, end_bytes: self.space.page_bytes() }
    }

    /// The part of a page to be read or written after the last one.
    pub(super) fn next_part(&self, id: usize) -> Option<Extent> {
        let part = self.operations.get(id).part();
        self.extents(id).into_iter().find(|next| next.start_bytes >= part.end_bytes)
    }

    /// The extents of a page to be read or written. No rank writes to the page meanwhile, so its dirty blocks do not
    /// change.
    pub(super) fn extents(&self, id: usize) -> Vec<Extent> {
        let operation = self.operations.get(id);
        let Order { direction, peer, frame, .. } = operation.order();
        let is_in_place = direction == IoDirection::Write && operation.staging().is_none();
        let blocks = self.space.blocks(peer).filter(|_| is_in_place);
        let extents = match blocks {
            Some(blocks) => blocks.extents(frame, self.gap_bytes),
            None => vec![self.whole()],
        };
        let is_sorted = extents.windows(2).all(|two| two[0].end_bytes <= two[1].start_bytes);
        debug_assert!(is_sorted, "the extents of a page are written in order");
        debug_assert!(
            extents.last().is_none_or(|last| last.end_bytes <= self.space.page_bytes()),
            "extents lie in their page"
        );
        // The storage takes no empty operations: a page without dirty blocks writes one block.
        let first = Extent { start_bytes: 0, end_bytes: DIRTY_BLOCK_BYTES };
        if extents.is_empty() { vec![first] } else { extents }
    }

    /// Submits adjacent operations to the storage. Returns how many it took.
    pub(super) fn submit(&mut self, parts: &[(usize, Extent)]) -> usize {
        assert!(!parts.is_empty(), "a run has operations");
        let run: Vec<IoOperation> = parts.iter().map(|(id, part)| self.io_operation(*id, *part)).collect();
        // SAFETY: the memory lies in frames that stay mapped until the process ends. A staging frame belongs to its
        // operation. A requester's frame is reserved for the page until its Data message, which follows completion. A
        // dirty owner's frame keeps the page closed to writes until its Evicted message, which follows completion.
        let taken = unsafe { self.storage.start_run(&run) };
        assert!(taken <= run.len(), "the storage takes what it is given");
        if run[0].file != FileSlot::BACKING && run[0].direction == IoDirection::Write {
            stats::add(Row::FileCoalesced, taken.saturating_sub(1) as u64);
        }
        let mut leads = true;
        for (id, _) in &parts[..taken] {
            if !self.operations.get(*id).is_urgent() {
                self.operations.enter_background(*id, leads);
                self.background.on_begun(std::mem::take(&mut leads));
            }
        }
        taken
    }

    pub(super) fn io_operation(&self, id: usize, part: Extent) -> IoOperation {
        let is_part = part.start_bytes < part.end_bytes && part.end_bytes <= self.space.page_bytes();
        assert!(is_part, "{part:?} is a part of a page");
        debug_assert!(
            part.start_bytes % BLOCK_BYTES == 0 && part.len_bytes() % BLOCK_BYTES == 0,
            "the storage moves whole blocks"
        );
        let Order { direction, place, priority, .. } = self.operations.get(id).order();
        let (token, is_urgent) = (id as u64, priority == Priority::Now);
        let memory = self.memory_of(id);
        let page_bytes = self.space.page_bytes() as u64;
        let offset_bytes = u64::from(place.index()) * page_bytes + part.start_bytes as u64;
        let memory = memory.wrapping_add(part.start_bytes);
        let file = FileSlot(place.slot());
        IoOperation { direction, file, offset_bytes, memory, len_bytes: part.len_bytes(), token, is_urgent }
    }

    /// The memory that an operation reads the page into or writes it from.
    pub(super) fn memory_of(&self, id: usize) -> *mut u8 {
        let Order { peer, frame, .. } = self.operations.get(id).order();
        match self.operations.get(id).staging() {
            Some(staging) => self.space.own.pool.frame(staging),
            None => self.space.frame(peer, frame).expect("a frame without staging is mapped here"),
        }
    }
}
