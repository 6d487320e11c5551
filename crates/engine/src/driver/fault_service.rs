//! Serves faulting threads, and runs the helper thread for threads that may not drive.

use super::Driver;
use super::outstanding::HELD_UP_SLEEP;
use super::sleepers::Awaited;
use crate::request::{Fault, FaultId, Part};
use std::time::{Duration, Instant};
use vgasnet_conduit::Sleeper;
use vgasnet_protocol::streams::ends_step;

/// A thread waits this long for a page before it admits the client's signals. Pages nearly always come sooner.
const PATIENCE: Duration = Duration::from_millis(100);

impl Driver {
    /// Whether a thread may drive the engine in its SIGSEGV handler. The thread may hold a lock of the client or be
    /// inside the C library's malloc. The engine uses neither and allocates from the library's own heap. MPI and GASNet
    /// may use both.
    pub fn drives_in_faults(&self) -> bool {
        self.conduit.capabilities().signal_safe
    }

    /// Waits until the page of a fault is mapped and pinned, or its block is mapped or copied. Called in handlers of faults.
    /// Returns whether it is. After [`PATIENCE`] another thread takes over, and this one sleeps until the fault is
    /// served.
    pub fn fetch(&self, fault: &Fault) -> bool {
        if fault.looks() {
            let part = Part::of_fault(self.space.own_page(fault.wants().0), FaultId::of(fault));
            // A driver may be asleep. It need not hear of a page that this rank serves itself, but has to drive again
            // soon if the conduit had no room for this thread's messages.
            if !self.submit_and_read(part, None) && self.sleepers.has_driver() {
                self.step();
            }
            let end = Instant::now() + PATIENCE;
            let awaited = Awaited::page(fault.wants().0);
            self.wait_for_engine(&|| fault.is_over(), awaited, Some(end), self.spinning.in_fault());
            if !self.helper.mailbox().fall_asleep(fault) {
                return true;
            }
            self.conduit.wake_helper();
        } else {
            self.helper.mailbox().post(fault);
            self.conduit.wake_helper();
            fault.wait(Some(PATIENCE));
        }
        fault.is_over()
    }

    /// Notes the first use of a prefetched page of the own segment. Called in SIGSEGV handlers: the helper reads ahead
    /// while the thread goes on.
    pub fn note_first_use(&self, index: u32) {
        if ends_step(index, self.stream_step) {
            self.helper.mailbox().hint(index);
            self.conduit.wake_helper();
        }
    }

    /// Body of the helper thread, until the process ends.
    pub fn help(&self) -> ! {
        let (table, mailbox) = (&self.space.own.table, self.helper.mailbox());
        loop {
            let notices = table.unpin_notices();
            let took = self.take_faults();
            let faulted = mailbox.has_sleepers();
            let has_driver = self.sleepers.has_driver();
            if !has_driver || faulted || took {
                while self.drive() {}
                // Meanwhile a client thread may have become the driver and gone to sleep.
                self.delegate();
            }
            // A driver watches the storage itself. The doorbell rings until the driver polls and would wake the helper.
            let also = if has_driver { None } else { self.helper.doorbell() };
            // A sleeping driver may be the faulting thread in its signal handler. Then no other thread looks.
            let limit = if has_driver && faulted { Some(HELD_UP_SLEEP) } else { self.outstanding.sleep_limit() };
            let stay = || {
                table.unpin_notices() != notices
                    || (has_driver && !self.sleepers.has_driver())
                    || (limit.is_none() && self.outstanding.is_held_up())
                    || mailbox.has_any()
            };
            let sleep = || self.conduit.sleep(Sleeper::Helper, also, limit, &stay);
            self.helper.sleep_watching(also.is_some(), sleep);
        }
    }

    /// Submits the posted faults and read-ahead hints. Returns whether there were any.
    fn take_faults(&self) -> bool {
        let mailbox = self.helper.mailbox();
        let has_any = mailbox.has_any();
        if has_any {
            let mut engine = self.engine.lock_deferred();
            for fault in mailbox.take() {
                let page = self.space.own_page(fault.wants().0);
                engine.submit(Part::of_fault(page, fault));
            }
            for index in mailbox.take_hints() {
                engine.prefetch_after_use(self.space.own_page(index));
            }
        }
        has_any
    }
}
