//! Makes one operation of a storage fail, for tests of I/O errors.

use super::{Busy, IoOperation, Storage};
use crate::settings::{IoDirection, IoFault};
use std::io;
use std::os::fd::BorrowedFd;

/// Any storage, one operation of which fails with `EIO`.
///
/// The operation does run, and only its result is replaced. So it counts in the depth, rings the doorbell, and ends
/// when it would have ended. The bytes that a failed operation leaves behind are unspecified anyway.
pub struct Faulty {
    inner: Box<dyn Storage>,
    direction: IoDirection,
    /// How many operations in `direction` are still to be started before the one that fails; `None` after that.
    left: Option<u64>,
    /// The token of the operation that fails, while it is in flight.
    doomed: Option<u64>,
}

impl Faulty {
    /// `inner`, with `fault` counted from now on. Operations that it refuses as busy do not count.
    ///
    /// # Panics
    /// If `fault.nth` is 0.
    pub fn new(inner: Box<dyn Storage>, fault: IoFault) -> Faulty {
        assert!(fault.nth > 0, "operations are counted from 1");
        Faulty { inner, direction: fault.direction, left: Some(fault.nth - 1), doomed: None }
    }
}

impl Storage for Faulty {
    unsafe fn start(&mut self, operation: IoOperation) -> Result<(), Busy> {
        // SAFETY: the memory is valid, and left to the operation until the token comes back, which the inner storage
        // hands out.
        unsafe { self.inner.start(operation) }?;
        if operation.direction == self.direction {
            if self.left == Some(0) {
                self.doomed = Some(operation.token);
            }
            self.left = self.left.and_then(|left| left.checked_sub(1));
        }
        Ok(())
    }

    fn poll(&mut self, sink: &mut dyn FnMut(u64, io::Result<()>)) {
        let doomed = &mut self.doomed;
        self.inner.poll(&mut |token, result| {
            let is_doomed = doomed.take_if(|its| *its == token).is_some();
            sink(token, if is_doomed { Err(io::Error::from_raw_os_error(libc::EIO)) } else { result });
        });
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.inner.doorbell()
    }
}
