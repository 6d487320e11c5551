//! Makes operations of a storage fail, for tests of I/O errors.

use super::{BlockingReader, Busy, FileSlot, IoDirection, IoOperation, NamedFile, Storage};
use crate::settings::{IoFault, IoTarget};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Any storage, some operations of which fail.
///
/// Such an operation does run, and only its result is replaced. So it counts in the depth, rings the doorbell, and ends
/// when it would have ended. The bytes that a failed operation leaves behind are unspecified anyway.
pub struct Faulty {
    inner: Box<dyn Storage>,
    fault: IoFault,
    /// How many of the operations that the fault counts were started.
    started: u64,
    /// The tokens of operations in flight that fail.
    doomed: Vec<u64>,
    /// The file of the burst buffer.
    spill: Option<FileSlot>,
}

impl Faulty {
    /// `inner`, with `fault` counted from now on. Operations that it refuses as busy do not count.
    ///
    /// # Panics
    /// If `fault.nth` is 0.
    pub fn new(inner: Box<dyn Storage>, fault: IoFault) -> Faulty {
        assert!(fault.nth > 0, "operations are counted from 1");
        Faulty { inner, fault, started: 0, doomed: Vec::new(), spill: None }
    }

    fn is_meant(&self, file: FileSlot) -> bool {
        let target = match file {
            FileSlot::BACKING => IoTarget::Backing,
            file if self.spill == Some(file) => IoTarget::Spill,
            _ => IoTarget::Files,
        };
        self.fault.target == target
    }

    /// Counts an operation that was started, which may be doomed.
    fn count(&mut self, operation: &IoOperation) {
        if operation.direction == self.fault.direction && self.is_meant(operation.file) {
            self.started += 1;
            let fails = self.fault.nth..self.fault.nth.saturating_add(self.fault.count);
            if fails.contains(&self.started) {
                self.doomed.push(operation.token);
            }
        }
    }
}

impl Storage for Faulty {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        // SAFETY: the memory is valid, and left to the operation until the token comes back, which the inner storage
        // hands out.
        unsafe { self.inner.start(operation) }?;
        self.count(&operation);
        Ok(())
    }

    unsafe fn start_runs(&mut self, runs: &[&[IoOperation]]) -> usize {
        // SAFETY: the memory is valid, and left to each operation until its token comes back.
        let started = unsafe { self.inner.start_runs(runs) };
        runs.iter().copied().flatten().take(started).for_each(|operation| self.count(operation));
        started
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let (doomed, errno) = (&mut self.doomed, self.fault.errno);
        self.inner.poll(&mut |token, result| match doomed.iter().position(|its| *its == token) {
            Some(at) => {
                doomed.swap_remove(at);
                sink(token, Err(io::Error::from_raw_os_error(errno)));
            }
            None => sink(token, result),
        });
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn add_file(&mut self, file: Arc<NamedFile>) -> FileSlot {
        let is_spill = file.is_nameless();
        let slot = self.inner.add_file(file);
        self.spill = if is_spill { Some(slot) } else { self.spill };
        slot
    }

    fn remove_file(&mut self, slot: FileSlot) {
        self.inner.remove_file(slot);
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.inner.doorbell()
    }

    /// Reads that are to fail go the other way.
    fn reader(&self, file: FileSlot) -> Option<Arc<dyn BlockingReader>> {
        let fails_reads = self.fault.direction == IoDirection::Read && self.is_meant(file);
        if fails_reads { None } else { self.inner.reader(file) }
    }
}
