//! What the engine asks of a home about single files, by their names.

use super::StorageServer;
use super::home_page::HomePage;
use crate::request::Part;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::Cause;
use vgasnet_storage::{FileSlot, NamedFile};

impl StorageServer {
    /// Opens a file.
    pub(crate) fn add_file(&mut self, space: Space, file: Arc<NamedFile>) {
        let FileSlot(slot) = self.storage.add_file(file);
        self.files.add(space, slot);
    }

    /// Closes a file. Nothing may be in flight; unwritten data are lost.
    pub(crate) fn remove_file(&mut self, space: Space) {
        let Some(slot) = self.files.remove(space) else { return };
        debug_assert!(!self.operations.has_any_of(slot), "no page of {space:?} is in flight");
        debug_assert!(self.blocks.is_quiet_about(slot), "no block of {space:?} is in use or in flight");
        self.blocks.forget_from(HomePage::of_file(slot, 0));
        self.blocks.forget_file(slot);
        self.storage.remove_file(FileSlot(slot));
    }

    /// Whether a part may become a job on blocks: enough blocks are reserved for it even if no file can be written.
    pub(crate) fn takes_on_blocks(&self, part: &Part) -> bool {
        let page = self.files.number(part.piece.page);
        part.piece.len_bytes <= self.blocks.part_bytes_max()
            && (self.files.is_empty() || self.blocks.always_fits(page, &part.piece, part.copy.is_put()))
    }

    /// Whether no operation on the file is in progress.
    pub(crate) fn is_quiet_about(&self, space: Space) -> bool {
        self.files.slot(space).is_none_or(|slot| {
            !self.operations.has_any_of(slot) && self.blocks.is_quiet_about(slot) && !self.is_draining(slot)
        })
    }

    /// Whether blocks of files have become dirty since the last call.
    pub(crate) fn take_newly_dirty(&mut self) -> bool {
        self.blocks.take_newly_dirty()
    }

    /// Files with failed block writes since the last call, and the causes.
    pub(crate) fn take_block_failures(&mut self) -> Vec<(Space, Cause)> {
        let failures = self.blocks.take_failures().into_iter();
        failures.filter_map(|(slot, cause)| Some((self.files.space_of(slot)?, cause))).collect()
    }

    /// Starts writing the dirty blocks of all files, except files with failed writes.
    pub(crate) fn flush_blocks_of_files(&mut self) {
        self.files.slots().for_each(|slot| self.blocks.flush_unless_refused(slot));
    }

    /// Makes the storage's doorbell ring after this time.
    pub(crate) fn ring_in(&mut self, time: Option<Duration>) {
        self.storage.ring_in(time);
    }

    /// Starts writing all dirty blocks of a file.
    pub(crate) fn flush_file(&mut self, space: Space) {
        if let Some(slot) = self.files.slot(space) {
            self.blocks.flush_file(slot);
            self.write_through(slot);
        }
    }

    /// The outcome of the last flush of a file's blocks; `None` while it is in progress. A rank that does no I/O on the
    /// file has none.
    pub(crate) fn is_flushed(&self, space: Space) -> Option<Result<(), Cause>> {
        self.files.slot(space).map_or(Some(Ok(())), |slot| self.blocks.is_flushed(slot))
    }

    /// The bytes in blocks and in the spill of a file that could not be written.
    pub(crate) fn unwritten_bytes(&self, space: Space) -> Vec<Range<u64>> {
        let of_slot = |slot| [self.blocks.unwritten_bytes(slot), self.undrained_bytes(slot)].concat();
        self.files.slot(space).map(of_slot).unwrap_or_default()
    }

    /// Drops the blocks of a file from a page on, where the file is cut. Nothing may be in flight.
    pub(crate) fn cut_file(&mut self, space: Space, pages: u32) {
        if let Some(slot) = self.files.slot(space) {
            debug_assert!(!self.operations.has_any_of(slot), "no page of {space:?} is in flight");
            self.blocks.forget_from(HomePage::of_file(slot, pages));
            self.cut_spilled(slot, pages);
        }
    }

    /// For tests: number of resident blocks of files, and of dirty or potentially dirty ones among them.
    pub fn blocks_of_files(&self) -> (usize, usize) {
        self.blocks.of_files()
    }
}
