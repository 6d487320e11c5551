//! The shared pointer of a file: a number in the memory of its first rank. Who has that mapped adds to it there, others ask.

use super::together::Collective;
use super::{FileError, Files, SharedFile};
use std::sync::atomic::Ordering;
use vgasnet_protocol::Rank;
use vgasnet_protocol::file_message::FileAsk;

impl Files {
    /// Adds to the shared pointer. Returns what it was. It wraps.
    pub fn take(&self, file: &SharedFile, amount: u64) -> u64 {
        if let Some(pointer) = file.state.pointer {
            return pointer.fetch_add(amount, Ordering::Relaxed);
        }
        let first = Rank(file.members[0]);
        self.driver().ask_of_file(std::iter::once(first), file.space, FileAsk::Take, amount)[0].value
    }

    /// Sets the shared pointer. Collective over the file's team.
    ///
    /// # Errors
    /// The ranks do not give the same, or do not call the same.
    pub fn set_pointer(&self, file: &SharedFile, value: u64) -> Result<(), FileError> {
        // What others took before has been taken when all have come.
        self.come_together(file, Collective::SetPointer(value))?;
        if let Some(pointer) = file.state.pointer.filter(|_| file.me == 0) {
            pointer.store(value, Ordering::Relaxed);
        }
        self.coll.gather_all(file.team, 0_u32)?;
        Ok(())
    }
}
