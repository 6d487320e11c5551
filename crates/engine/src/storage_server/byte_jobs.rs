//! Small operations in file blocks of pages that no rank holds.

use super::{BLOCK_TOKEN, StorageServer, cause_of};
use crate::queue::Todo;
use crate::request::Part;
use crate::work::{BlockCopies, Work};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use vgasnet_memory::{BlockMapper, mapping_refused};
use vgasnet_protocol::coherence::{FrameId, PageId};
use vgasnet_settings::UserError;

impl StorageServer {
    /// Largest part for [`StorageServer::start_on_blocks`], in bytes.
    pub(crate) fn block_part_bytes_max(&self) -> usize {
        self.blocks.part_bytes_max()
    }

    /// Whether jobs use blocks of the page, which no rank holds: messages about it have to wait.
    pub(crate) fn has_jobs(&self, page: PageId) -> bool {
        self.blocks.has_jobs(self.files.number(page))
    }

    /// Enables mapping of at most `most` blocks in the segment for loads and stores.
    #[must_use]
    pub fn with_mapped_blocks(mut self, mapper: Box<dyn BlockMapper>, most: u32) -> StorageServer {
        self.blocks.map_by(mapper, most);
        self
    }

    /// Number of pool frames in use for blocks.
    pub(crate) fn frames_for_blocks(&self) -> u32 {
        self.blocks.serving_frames()
    }

    /// Blocks written for lack of idle slots since the last call.
    pub(crate) fn take_cleaned_blocks(&mut self) -> u32 {
        self.blocks.take_cleaned()
    }

    /// Takes a free frame of the pool for blocks.
    pub(crate) fn give_to_blocks(&mut self, frame: FrameId) {
        self.blocks.take_frame(frame);
    }

    /// A page needs a frame: makes one of those serving for blocks leave.
    pub(crate) fn release_frame(&mut self) {
        self.blocks.release_frame();
    }

    /// Takes a frame that has stopped serving for blocks.
    pub(crate) fn take_returned_frame(&mut self) -> Option<FrameId> {
        self.blocks.take_returned()
    }

    /// Whether blocks are mapped for loads and stores.
    pub(crate) fn maps_blocks(&self) -> bool {
        self.blocks.may_map()
    }

    /// Unmaps the blocks of a page before a message about it is handled. No job may use them.
    ///
    /// # Errors
    /// The system refuses to unmap.
    pub(crate) fn unmap_blocks(&mut self, page: PageId) -> Result<(), UserError> {
        debug_assert!(!self.has_jobs(page), "no job uses blocks of {page:?}");
        if page.space.segment().is_some() {
            self.blocks.unmap_page(page.index);
        }
        self.check_unmapped()
    }

    /// Starts noting pages with blocks mapped for stores. First unmaps all.
    pub(crate) fn watch_blocks(&mut self) {
        self.blocks.watch();
    }

    /// Pages with blocks mapped for stores since the last call.
    pub(crate) fn take_opened(&mut self) -> BTreeSet<u32> {
        self.blocks.take_opened()
    }

    /// Unmaps the blocks of these pages.
    ///
    /// # Errors
    /// The system refuses to unmap.
    pub(crate) fn unmap_blocks_of(&mut self, pages: Range<u32>) -> Result<(), UserError> {
        self.blocks.unmap_pages(pages);
        self.check_unmapped()
    }

    /// # Errors
    /// The system has refused to unmap a block.
    pub(super) fn check_unmapped(&self) -> Result<(), UserError> {
        self.blocks.refused().map_or(Ok(()), |errno| Err(mapping_refused("unmap", errno)))
    }

    /// Whether all blocks of the part are in memory.
    pub(crate) fn has_blocks(&self, part: &Part) -> bool {
        self.blocks.has(self.files.number(part.piece.page), &part.piece)
    }

    /// Whether blocks may be read ahead: many slots are idle.
    pub(crate) fn has_room_ahead(&self) -> bool {
        self.blocks.has_room_ahead()
    }

    /// Takes a part that reads or writes bytes of a page of this home. No rank may hold the page or be about to.
    /// `is_written`: the file has bytes of the page.
    pub(crate) fn start_on_blocks(&mut self, part: Part, is_written: bool, todo: &mut Todo) {
        let page = self.files.number(part.piece.page);
        debug_assert!(self.operations.of_page(page).is_none(), "no rank is about to hold {:?}", part.piece.page);
        let refusal = self.blocks.refusal(page).filter(|_| part.copy.is_put());
        if let Some(cause) = refusal {
            return todo.add(Work::Fail { parts: vec![part], cause });
        }
        todo.add_all(self.blocks.start(part, page, is_written).map(|copies| Work::Blocks(Box::new(copies))));
    }

    /// The copies of a job are done, and its block is in the segment if `is_copied`. Returns its page if the page has no
    /// other job.
    pub(crate) fn end_on_blocks(&mut self, job: usize, is_copied: bool, todo: &mut Todo) -> Option<PageId> {
        let (ready, page) = self.blocks.end(job, is_copied);
        extend(todo, ready);
        extend(todo, self.blocks.go_on());
        debug_assert!(page.is_none_or(|page| !self.blocks.has_jobs(page)), "the page has no other job");
        page.map(|page| self.files.page(page))
    }

    /// Starts writing all dirty blocks, and drops the others. Returns whether none is left.
    pub(crate) fn empty_blocks(&mut self) -> bool {
        self.blocks.empty()
    }

    /// For tests: a block of a page in memory, which overlays the file.
    pub fn block_in_memory(&self, page: PageId, block: usize) -> Option<*const u8> {
        self.blocks.in_memory(self.files.number(page), block).map(<*mut u8>::cast_const)
    }

    /// Gives blocks to waiting jobs, and submits reads and writes of blocks. Blocks of pages in flight stay unchanged.
    #[inline(never)]
    pub(super) fn advance_blocks(&mut self, todo: &mut Todo) {
        // The write-back of a page may have freed its dirty blocks.
        extend(todo, self.blocks.go_on());
        let operations = &self.operations;
        self.blocks.advance(&mut *self.storage, |page| operations.of_page(page).is_none());
        self.blocks.check();
    }

    /// Handles the storage's completion of a block.
    ///
    /// # Errors
    /// The I/O failed for a block of a segment. No other copy of it is accounted for, so the job cannot go on.
    #[inline(never)]
    pub(super) fn complete_block(
        &mut self,
        token: u64,
        result: &io::Result<()>,
        todo: &mut Todo,
    ) -> Result<(), UserError> {
        assert!(token >= BLOCK_TOKEN, "token {token} is of a block");
        let (page, direction) = self.blocks.operation_of(token);
        let (ready, written) = match result {
            Ok(()) => self.blocks.on_moved(token),
            Err(error) if page.is_of_segment() => return Err(self.failure_at(direction, self.files.page(page), error)),
            Err(error) => self.blocks.on_failed(token, cause_of(error)),
        };
        extend(todo, ready);
        // Pages rarely wait for their blocks, and checking all of a page's blocks is slow.
        let waited_for = written.filter(|page| self.operations.waits_for_blocks(*page));
        let waited_for = waited_for.filter(|page| !self.blocks.is_writing(*page));
        if let Some(id) = waited_for.and_then(|page| self.operations.end_wait_for_blocks(page)) {
            self.begin_page(id);
        }
        Ok(())
    }
}

fn extend(todo: &mut Todo, ready: Vec<BlockCopies>) {
    todo.add_all(ready.into_iter().map(|copies| Work::Blocks(Box::new(copies))));
}
