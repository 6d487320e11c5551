//! Makes one operation of a storage fail, for tests of I/O errors.

use super::{Busy, Storage};
use crate::settings::{IoDirection, IoFault};
use std::io;
use std::os::fd::BorrowedFd;

/// Any storage, one operation of which fails with `EIO`.
///
/// The operation does run, and only its result is replaced. So it counts in the depth, rings the doorbell, and ends
/// when it would have ended. The bytes that a failed operation leaves behind are unspecified anyway.
pub struct Faulty<S> {
    inner: S,
    direction: IoDirection,
    /// How many operations in `direction` are still to be started before the one that fails; `None` after that.
    left: Option<u64>,
    /// The token of the operation that fails, while it is in flight.
    doomed: Option<u64>,
}

impl<S: Storage> Faulty<S> {
    /// `inner`, with `fault` counted from now on. Operations that it refuses as busy do not count.
    ///
    /// # Panics
    /// If `fault.nth` is 0.
    pub fn new(inner: S, fault: IoFault) -> Faulty<S> {
        assert!(fault.nth > 0, "operations are counted from 1");
        Faulty { inner, direction: fault.direction, left: Some(fault.nth - 1), doomed: None }
    }

    fn count(&mut self, direction: IoDirection, token: u64) {
        match self.left {
            Some(left) if direction == self.direction => {
                self.left = left.checked_sub(1);
                if left == 0 {
                    self.doomed = Some(token);
                }
            }
            _ => {}
        }
    }
}

impl<S: Storage> Storage for Faulty<S> {
    unsafe fn read(&mut self, offset_bytes: u64, memory: *mut u8, len_bytes: usize, token: u64) -> Result<(), Busy> {
        // SAFETY: `memory` is valid for writes, and left alone until the token comes back, which the inner storage
        // hands out.
        unsafe { self.inner.read(offset_bytes, memory, len_bytes, token) }?;
        self.count(IoDirection::Read, token);
        Ok(())
    }

    unsafe fn write(&mut self, offset_bytes: u64, memory: *const u8, len_bytes: usize, token: u64) -> Result<(), Busy> {
        // SAFETY: `memory` is valid for reads, and not written until the token comes back, which the inner storage
        // hands out.
        unsafe { self.inner.write(offset_bytes, memory, len_bytes, token) }?;
        self.count(IoDirection::Write, token);
        Ok(())
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let doomed = &mut self.doomed;
        self.inner.poll(&mut |token, result| {
            if *doomed == Some(token) {
                *doomed = None;
                sink(token, Err(io::Error::from_raw_os_error(libc::EIO)));
            } else {
                sink(token, result);
            }
        });
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.inner.doorbell()
    }
}
