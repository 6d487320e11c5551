//! Refreshing a file open only for reading, after others may have written it.

use super::together::Collective;
use super::{Call, FileError, Files};

impl Files {
    /// Drops the pages of a file open only for reading and asks for its size again: from now on reads find the file
    /// system's content. Collective over the file's team. Calls of other threads end before, or wait.
    ///
    /// # Errors
    /// The file system does not give the size. The file is unchanged.
    pub(super) fn refresh(&self, file: &Call<'_>) -> Result<(), FileError> {
        let file = &*file.bar();
        self.wait_for_begun(file, Collective::Sync);
        self.driver().settle_file(file.space());
        let mut size_bytes = 0;
        self.by_first(file, "get its size", |named| {
            size_bytes = named.size_bytes()?;
            Ok(())
        })?;
        self.driver().settle_file_at_home(file.space());
        let size_bytes = file.members().gather(size_bytes)?.into_iter().fold(0, u64::max);
        let pages = size_bytes.div_ceil(self.ops.space().page_bytes() as u64) as u32;
        self.driver().cut_file(file.space(), 0, pages);
        file.length().set(size_bytes);
        // Until all ranks have dropped their pages, one could fetch an old page from another.
        file.members().meet()
    }
}
