//! What of files is spilled to the node's disk, as their home sees it: to it the burst buffer is part of the storage.

use super::StorageServer;
use crate::storage::FileSlot;
use std::ops::Range;
use vgasnet_protocol::Space;
use vgasnet_protocol::coherence::Cause;

impl StorageServer {
    fn slot_of(&self, space: Space) -> Option<FileSlot> {
        self.files.slot(space).map(FileSlot)
    }

    /// Whether what is written to files may stay on the node's disk for a while.
    pub(in crate::engine) fn spills(&self) -> bool {
        self.storage.spill().is_some()
    }

    /// What is written to a file goes there from now on, until [`StorageServer::drain_file`].
    pub(super) fn write_through(&mut self, slot: u32) {
        self.storage.spill_mut().into_iter().for_each(|spill| spill.begin_flush(FileSlot(slot)));
    }

    /// Asks for all that is spilled of a file to be brought there.
    pub(in crate::engine) fn drain_file(&mut self, space: Space) {
        if let (Some(slot), Some(spill)) = (self.slot_of(space), self.storage.spill_mut()) {
            spill.drain(slot);
        }
    }

    /// Whether that has been done, or cannot be; then why.
    pub(in crate::engine) fn is_drained(&self, space: Space) -> Option<Result<(), Cause>> {
        match (self.slot_of(space), self.storage.spill()) {
            (Some(slot), Some(spill)) => {
                spill.drained(slot).map(|drained| drained.map_err(|errno| Cause(errno.unsigned_abs())))
            }
            _ => Some(Ok(())),
        }
    }

    /// Whether something is on its way from there to a file.
    pub(super) fn is_draining(&self, slot: u32) -> bool {
        self.storage.spill().is_some_and(|spill| spill.is_draining(FileSlot(slot)))
    }

    /// How often something has been brought from there to a file, or could not be; it wraps.
    pub(super) fn drains_ended(&self) -> u32 {
        self.storage.spill().map_or(0, |spill| spill.drains_ended())
    }

    /// Nothing more is brought to a file, which is about to be closed or cut.
    pub(in crate::engine) fn stop_draining(&mut self, space: Space) {
        if let (Some(slot), Some(spill)) = (self.slot_of(space), self.storage.spill_mut()) {
            spill.pause(slot, true);
        }
    }

    /// Forgets what is spilled of a file from a page on, and goes on with the rest.
    pub(super) fn cut_spilled(&mut self, slot: u32, pages: u32) {
        if let Some(spill) = self.storage.spill_mut() {
            spill.forget(FileSlot(slot), pages.into());
            spill.pause(FileSlot(slot), false);
        }
    }

    /// The bytes of a file that could not be brought there.
    pub(super) fn undrained_bytes(&self, slot: u32) -> Vec<Range<u64>> {
        self.storage.spill().map(|spill| spill.undrained_bytes(FileSlot(slot))).unwrap_or_default()
    }

    /// Files to which something could not be brought since this was asked last, and why.
    pub(in crate::engine) fn take_undrained(&mut self) -> Vec<(Space, Cause)> {
        let failures = self.storage.spill_mut().map(|spill| spill.take_failures()).unwrap_or_default();
        let file_of =
            |(FileSlot(slot), errno): (FileSlot, i32)| Some((self.files.space_of(slot)?, Cause(errno.unsigned_abs())));
        failures.into_iter().filter_map(file_of).collect()
    }
}
