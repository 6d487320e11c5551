//! The shared pointer of a file: a number in the memory of the team's first rank. Ranks with this memory mapped add to
//! it directly; others ask the first rank.

use super::together::Collective;
use super::{FileError, Files, SharedFile};
use std::sync::atomic::Ordering;
use vgasnet_protocol::file_message::FileAsk;

impl Files {
    /// Adds to the shared pointer, wrapping. Returns its previous value.
    pub fn take(&self, file: &SharedFile, amount: u64) -> u64 {
        if let Some(pointer) = file.state().pointer() {
            return pointer.fetch_add(amount, Ordering::Relaxed);
        }
        let first = file.members().first();
        self.driver().ask_of_file(std::iter::once(first), file.space(), FileAsk::Take, amount)[0].value
    }

    /// Sets the shared pointer. Collective over the file's team.
    ///
    /// # Errors
    /// The ranks give different values, or make different calls.
    pub fn set_pointer(&self, file: &SharedFile, value: u64) -> Result<(), FileError> {
        // Earlier takes of all ranks are complete once all have come.
        self.come_together(file, Collective::SetPointer(value))?;
        if let Some(pointer) = file.state().pointer().filter(|_| file.members().is_first()) {
            pointer.store(value, Ordering::Relaxed);
        }
        file.members().meet()
    }
}
