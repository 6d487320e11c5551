//! The triad over a file mapped by a process with the memory of a rank.

use super::arrays::{ARRAYS, Arrays};
use super::out_of_core::Passes;
use crate::mapped::{self, fail_in};
use crate::prelude::*;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use vgasnet_storage::BackingFile;

/// The work of the process: it writes the arrays in the first step, and runs a triad in each further one.
pub fn serve(spec: &Spec) {
    mapped::serve(spec, |mapping| {
        let file = BackingFile::create(&mapping.dir, spec.data_bytes).unwrap_or_else(|error| fail(error.to_string()));
        let memory = Memory::of_file(file.as_fd(), spec.data_bytes as usize);
        let memory = memory.unwrap_or_else(|error| fail_in(mapping, &error));
        let (mut passes, mut is_initialised, mapping) = (Passes::default(), false, mapping.clone());
        move || {
            // SAFETY: the mapping is page-aligned and as long as the arrays. The file has no other user. The mapping
            // outlives the arrays.
            let mut arrays = unsafe { Arrays::new(memory.start(), spec.data_bytes / ARRAYS, spec.seed) };
            let write_back = || write_back(file.as_fd()).unwrap_or_else(|error| fail_in(&mapping, &error));
            if std::mem::replace(&mut is_initialised, true) {
                passes.run(&mut arrays, write_back);
            } else {
                passes.initialise(&mut arrays, write_back);
            }
            passes.clone()
        }
    });
}

/// Waits until the disk has all stores. Unlike `msync` this does not flush the disk's own cache; the other ways do not
/// either.
fn write_back(file: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the descriptor is open. The call touches no memory of this program.
    let synced = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) };
    if synced == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
