//! Makes operations of a storage fail, for tests of I/O errors.

use super::{BlockingReader, Busy, FileSlot, IoDirection, IoOperation, NamedFile, Storage};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use vgasnet_settings::{IoFault, IoTarget};

/// Any storage, with some operations failing.
///
/// A failing operation still runs; only its result is replaced. So it counts in the bound on operations in flight,
/// rings the doorbell, and completes at its usual time. The bytes left behind by a failed operation are unspecified
/// anyway.
pub struct Faulty {
    inner: Box<dyn Storage>,
    fault: IoFault,
    /// Number of started operations counted by the fault.
    started: u64,
    /// The tokens of operations in flight that will fail.
    failing: Vec<u64>,
    /// The slot of the burst buffer.
    spill: Option<FileSlot>,
}

impl Faulty {
    /// Wraps `inner` and counts operations for `fault` from now on, without the ones refused as busy.
    ///
    /// # Panics
    /// If `fault.nth` is 0.
    pub fn new(inner: Box<dyn Storage>, fault: IoFault) -> Faulty {
        assert!(fault.nth > 0, "operations are counted from 1");
        Faulty { inner, fault, started: 0, failing: Vec::new(), spill: None }
    }

    fn is_meant(&self, file: FileSlot) -> bool {
        let target = match file {
            FileSlot::BACKING => IoTarget::Backing,
            file if self.spill == Some(file) => IoTarget::Spill,
            _ => IoTarget::Files,
        };
        self.fault.target == target
    }

    /// Counts a started operation and marks it if it has to fail.
    fn count(&mut self, operation: &IoOperation) {
        if operation.direction == self.fault.direction && self.is_meant(operation.file) {
            self.started += 1;
            let fails = self.fault.nth..self.fault.nth.saturating_add(self.fault.count);
            if fails.contains(&self.started) {
                self.failing.push(operation.token);
            }
        }
    }
}

impl Storage for Faulty {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        // SAFETY: the memory is valid and left to the operation until the inner storage returns the token through
        // `poll`.
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
        let (failing, errno) = (&mut self.failing, self.fault.errno);
        self.inner.poll(&mut |token, result| match failing.iter().position(|its| *its == token) {
            Some(at) => {
                failing.swap_remove(at);
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

    /// `None` if the fault is about reads of this file: the caller then uses `start`, which counts them.
    fn reader(&self, file: FileSlot) -> Option<Arc<dyn BlockingReader>> {
        let fails_reads = self.fault.direction == IoDirection::Read && self.is_meant(file);
        if fails_reads { None } else { self.inner.reader(file) }
    }
}
