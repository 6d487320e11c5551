//! Spilled data of files at their home, which treats the burst buffer as part of the storage.

use super::StorageServer;
use std::ops::Range;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::Cause;
use vgasnet_storage::FileSlot;

impl StorageServer {
    fn slot_of(&self, space: Space) -> Option<FileSlot> {
        self.files.slot(space).map(FileSlot)
    }

    /// Whether writes to files may stay spilled on the node's disk.
    pub(crate) fn spills(&self) -> bool {
        self.storage.spill().is_some()
    }

    /// Sends writes straight to the file from now on, until [`StorageServer::drain_file`].
    pub(super) fn write_through(&mut self, slot: u32) {
        self.storage.spill_mut().into_iter().for_each(|spill| spill.begin_flush(FileSlot(slot)));
    }

    /// Starts draining a file's spilled data.
    pub(crate) fn drain_file(&mut self, space: Space) {
        if let (Some(slot), Some(spill)) = (self.slot_of(space), self.storage.spill_mut()) {
            spill.drain(slot);
        }
    }

    /// The outcome of draining, or `None` while it is in progress.
    pub(crate) fn is_drained(&self, space: Space) -> Option<Result<(), Cause>> {
        match (self.slot_of(space), self.storage.spill()) {
            (Some(slot), Some(spill)) => {
                spill.drained(slot).map(|drained| drained.map_err(|errno| Cause(errno.unsigned_abs())))
            }
            _ => Some(Ok(())),
        }
    }

    /// Whether spilled data of a file are in flight to it.
    pub(super) fn is_draining(&self, slot: u32) -> bool {
        self.storage.spill().is_some_and(|spill| spill.is_draining(FileSlot(slot)))
    }

    /// Number of drain operations that have ended or failed, wrapping.
    pub(super) fn drains_ended(&self) -> u32 {
        self.storage.spill().map_or(0, |spill| spill.drains_ended())
    }

    /// Stops draining to a file that is about to be closed or cut.
    pub(crate) fn stop_draining(&mut self, space: Space) {
        if let (Some(slot), Some(spill)) = (self.slot_of(space), self.storage.spill_mut()) {
            spill.pause(slot, true);
        }
    }

    /// Drops a file's spilled data from a page on, and resumes draining the others.
    pub(super) fn cut_spilled(&mut self, slot: u32, pages: u32) {
        if let Some(spill) = self.storage.spill_mut() {
            spill.forget(FileSlot(slot), pages.into());
            spill.pause(FileSlot(slot), false);
        }
    }

    /// The bytes of a file that could not be drained.
    pub(super) fn undrained_bytes(&self, slot: u32) -> Vec<Range<u64>> {
        self.storage.spill().map(|spill| spill.undrained_bytes(FileSlot(slot))).unwrap_or_default()
    }

    /// Files with failed drains since the last call, and the causes.
    pub(crate) fn take_undrained(&mut self) -> Vec<(Space, Cause)> {
        let failures = self.storage.spill_mut().map(|spill| spill.take_failures()).unwrap_or_default();
        let file_of =
            |(FileSlot(slot), errno): (FileSlot, i32)| Some((self.files.space_of(slot)?, Cause(errno.unsigned_abs())));
        failures.into_iter().filter_map(file_of).collect()
    }
}
